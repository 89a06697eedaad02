"""The frontier on PostgreSQL: one schema a crawl, shared by all members of it. Needs the extra `postgres`."""
