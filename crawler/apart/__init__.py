"""Risky markup, read in another process: `parent` asks, `child` reads. Which markup is risky, `extract` says."""
