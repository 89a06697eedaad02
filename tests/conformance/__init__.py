"""The public test suites of the web's standards, run through the functions that the crawl itself uses.

python -m tests.conformance DIR [--topic T ...] [--failures]
"""
