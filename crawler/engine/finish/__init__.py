"""Rules over the set of all pages, run once when all are settled: they decide which are listed, and with
which date.
"""
