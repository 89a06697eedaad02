"""URL parameters that do not identify a page: campaign tracking and session ids."""

import re

TRACKING = frozenset({
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "fbclid", "msclkid", "mc_cid",
    "mc_eid", "_ga", "_gl", "yclid", "ysclid", "igshid", "twclid", "ttclid", "li_fat_id", "srsltid", "epik",
    "mkt_tok", "vero_id", "oly_anon_id", "oly_enc_id", "rb_clickid", "wickedid", "s_cid", "_hsenc", "_hsmi",
    "__hssc", "__hstc", "__hsfp", "hsctatracking", "_openstat",
})  # fmt: skip
"""Query parameters that identify a campaign or a click. A name that ends with `*` is a prefix."""

# Session ids: unambiguous names, and ambiguous ones, which count only if the value looks like a session id.
SESSIONS = frozenset({"phpsessid", "jsessionid", "oscsid", "zenid", "cftoken"})
MAYBE_SESSIONS = frozenset({"sid", "sess", "session", "sessid", "sessionid", "session_id", "cfid"})
SESSION_VALUE = re.compile(r"(?=[^&]*\d)(?=[^&]*[A-Za-z])[\w.~-]{8,}|\w{16,}", re.ASCII)
FORUM_SESSION = re.compile(r"s=[0-9a-f]{32}", re.IGNORECASE)
PATH_SESSION = re.compile(r";(jsessionid|phpsessid|sessionid|session_id|sid)=[^/?;]*", re.IGNORECASE)
