"""Parsers of untrusted input: URLs, headers, HTML, robots.txt. Total, bounded and pure: no I/O, no clock, no awaiting."""
