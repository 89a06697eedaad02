"""One exchange over HTTP: connections, limits, retries, politeness, and which addresses may be asked."""
