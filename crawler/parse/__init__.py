"""Parsers of untrusted input: total, bounded and pure. No I/O, no clock, no awaiting."""
