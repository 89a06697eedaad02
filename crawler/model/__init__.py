"""The values that flow through a crawl, all immutable. They record what happened and make no decisions."""
