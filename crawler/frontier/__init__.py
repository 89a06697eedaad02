"""The durable record of every URL: queue, hosts, runs, outcomes.

One package per backend, one contract suite for all.
"""
