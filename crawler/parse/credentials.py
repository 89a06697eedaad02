"""Credentials that stand in a URL, masked wherever the program speaks: in errors, logs, settings and summaries.

Two places of a URL hold them: the user information before the host, and query parameters with a name like `token`.
What is stored and published is not for this module: URLs that are crawled hold no user information (`parse.url`).
"""

import re
from typing import Final

MASK: Final = "***"

# The user information ends with the last @ of the authority (URL Standard 4.4, authority state).
_USER: Final = re.compile(r"(//|\\\\)[^/?#\\\s\"'<>]{1,2000}@")
# A password with a bare /, ? or # ends the authority too early, after what is no port; it is a password all the same.
_CUT_USER: Final = re.compile(r"(//)[^/?#\s:@\"'<>]{0,300}:(?!\d{0,5}(?:[/?#\s\"'<>]|$))[^\s\"'<>]{0,2000}@")
# Typed without a scheme.
_BARE_USER: Final = re.compile(r"(?<![\w/:@.+-])[\w.+-]{1,300}:[^/\s@\"'<>]{1,300}@(?=[\w\[])")
_PARAMETER: Final = re.compile(
    r"([?&;](?:[\w.-]{0,40}[_.-])?(?:pass|passwd|password|passphrase|pwd|secret|token|jwt|auth|credentials?|signature|sig"
    r"|(?:api|access|private)[_-]?key|accesstoken|authtoken|clientsecret)=)[^&;#\s\"'<>]+",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """`text` with *** in place of user names, passwords and tokens of the URLs in it. The work grows with its length."""
    if "@" in text:
        text = _CUT_USER.sub(rf"\1{MASK}@", _USER.sub(rf"\1{MASK}@", text))
        text = _BARE_USER.sub(f"{MASK}@", text)
    return _PARAMETER.sub(rf"\1{MASK}", text) if "=" in text else text
