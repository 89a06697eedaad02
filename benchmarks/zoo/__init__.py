"""The zoo: small sites that trap crawlers, and true sites that look like traps. `python -m benchmarks.zoo --help`."""

from benchmarks.zoo import calendars, errors, lookalikes, oddities, queries, routed, routing, strangers

FAMILIES = (routing, routed, errors, queries, calendars, lookalikes, strangers, oddities)
SITES = {site.name: site for family in FAMILIES for site in family.SITES}
