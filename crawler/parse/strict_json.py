"""JSON from a process that read hostile markup: what parses is plain data that can be stored, compared and printed.

Beyond RFC 8259 Python's parser takes NaN, Infinity, numbers that overflow to them, and halves of surrogate pairs, which
no file and no database can hold. None of it comes through here. What the data means is for `workers` and `workers.sandbox`.
"""

import json
from math import isfinite
from typing import Any, Final


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is no number")
    return number


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def loads(data: bytes) -> Any:
    """The value in `data`, UTF-8. Raises `ValueError`, or `RecursionError` for what is nested too deep."""
    text = data.decode()
    value = _DECODER.decode(text)
    if "\\ud" in text.lower():  # surrogates: a pair is a character, a half is nothing
        json.dumps(value, ensure_ascii=False).encode()
    return value
