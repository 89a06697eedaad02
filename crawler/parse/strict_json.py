"""A strict JSON parser for messages from processes that parse untrusted HTML.

Beyond RFC 8259, Python's parser accepts NaN, Infinity, numbers that overflow to them, and lone surrogates, which cannot
be stored in a file or database. These are errors here. What the data means is checked in `workers`.
"""

import json
from math import isfinite
from typing import Any, Final


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is not a number")
    return number


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def loads(data: bytes) -> Any:
    """The value in `data`, UTF-8. Raises `ValueError`, or `RecursionError` if nested too deeply."""
    text = data.decode()
    value = _DECODER.decode(text)
    if "\\ud" in text.lower():  # an escaped surrogate: encoding fails unless it is part of a pair
        json.dumps(value, ensure_ascii=False).encode()
    return value
