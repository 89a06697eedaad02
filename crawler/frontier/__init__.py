"""The durable record of every URL: queue, hosts, runs, outcomes. One package a backend, one contract suite for all."""
