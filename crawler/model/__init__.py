"""The values that flow through a crawl, frozen, in the order of the walk. They say what happened, never what to do."""
