"""The limits of the Sitemap protocol (sitemaps.org/protocol.html), and redirect statuses of HTTP."""

MAX_ENTRIES = 50_000  # URLs in a sitemap, sitemaps in an index
MAX_BYTES = 52_428_800  # bytes of one file before compression
MAX_LOC = 2_047  # characters of a loc: "less than 2,048"
MAX_IMAGES = 1_000  # images of one URL (Google, image sitemaps)
REDIRECTS = frozenset({301, 302, 303, 307, 308})  # RFC 9110 15.4; 300, 304, 305 and 306 are not among them
NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
