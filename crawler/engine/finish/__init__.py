"""Rules over the set of all pages, run once when everything is settled: they decide what is listed, and with which date."""
