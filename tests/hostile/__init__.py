"""Hostile sites on loopback: `server` serves them, `sites` defines them with the expected results."""
