"""HTTP requests: connections, limits, retries, politeness, and the check of addresses before connecting."""
