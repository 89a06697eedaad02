"""Masks credentials in URLs wherever the program prints one: errors, logs, settings and summaries.

A URL holds them in two places: the user information before the host, and query parameters with a name like
`token`. Stored and published URLs are not masked: `Normaliser` has already removed their user information.
"""

import re
from typing import Final

from crawler.parse.late import late

MASK: Final = "***"

# The user information ends with the last @ of the authority (URL Standard 4.4, authority state).
_USER: Final = late(r"(//|\\\\)[^/?#\\\s\"'<>]{1,2000}@")
# An unescaped /, ? or # in a password ends the authority early, after something that is not a port: still a
# password.
_CUT_USER: Final = late(r"(//)[^/?#\s:@\"'<>]{0,300}:(?!\d{0,5}(?:[/?#\s\"'<>]|$))[^\s\"'<>]{0,2000}@")
# Typed without a scheme.
_BARE_USER: Final = late(r"(?<![\w/:@.+-])[\w.+-]{1,300}:[^/\s@\"'<>]{1,300}@(?=[\w\[])")
_PARAMETER: Final = late(
    r"([?&;](?:[\w.-]{0,40}[_.-])?(?:pass|passwd|password|passphrase|pwd|secret|token|jwt|auth|credentials?|signature|sig"
    r"|(?:api|access|private)[_-]?key|accesstoken|authtoken|clientsecret)=)[^&;#\s\"'<>]+",
    re.IGNORECASE,
)
# Of the address of a database, only what names it: its parameters may be passwords, or the paths of keys.
_DATABASE: Final = late(
    r"\b(postgres(?:ql)?://)(?:[^?#\s\"'<>]{0,2000}@)?([^@?#\s\"'<>]{0,2000})(?:\?[^#\s\"'<>]{0,4000})?",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """`text` with *** in place of user names, passwords and tokens in its URLs. Takes linear time."""
    if "://" in text and "postgres" in text:
        text = _DATABASE.sub(r"\1\2", text)
    if "@" in text:
        text = _CUT_USER.sub(rf"\1{MASK}@", _USER.sub(rf"\1{MASK}@", text))
        text = _BARE_USER.sub(f"{MASK}@", text)
    return _PARAMETER.sub(rf"\1{MASK}", text) if "=" in text else text
