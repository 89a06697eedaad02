"""The zoo: small sites that trap crawlers, and true sites that look like traps. `python -m benchmarks.zoo --help`."""

from benchmarks.zoo import calendars, errors, lookalikes, queries, routing, strangers

FAMILIES = (routing, errors, queries, calendars, lookalikes, strangers)
SITES = {site.name: site for family in FAMILIES for site in family.SITES}
