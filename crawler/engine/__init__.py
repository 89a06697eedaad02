"""The crawl itself: lease, permit, fetch, judge, settle. It knows rules, values and ports only."""
