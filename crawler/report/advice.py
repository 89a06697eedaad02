"""What to do about each finding: two or three sentences, so that a report can be acted on without a network.

docs/use/report.md says more.
"""

from collections.abc import Mapping
from typing import Final

from crawler.report.catalogue import Code

ADVICE: Final[Mapping[Code, str]] = {
    Code.BROKEN_LINK: (
        "Correct or remove the link on the pages shown. If the page has moved, redirect its old address to "
        "the new one: that mends every link at once."
    ),
    Code.SERVER_ERROR: (
        "Open one of the addresses: if it fails again, look into the log of the server at that time. If it "
        "works now, the next run shows whether it lasts; what fails only under load needs a lower --rate."
    ),
    Code.UNREACHABLE: (
        "Mend the host, or correct the link if its address is wrong. The cause stands beside each address: a "
        "name that does not resolve, a certificate, a timeout."
    ),
    Code.REDIRECT_LOOP: (
        "Look for two rules of the server that undo each other: one adds a slash, www. or https, another "
        "removes it. A redirect that sets a cookie and leads to itself needs that cookie: see --cookie-file."
    ),
    Code.CANONICAL_BROKEN: (
        "Name the address of the page itself as canonical, or that of the page that is meant. Until then, "
        "search engines may drop the page without a replacement."
    ),
    Code.SITEMAP_STALE: (
        "Take the address out of the sitemap that names it, or replace that sitemap by the one that this "
        "program writes. Only that one should be named by robots.txt and in the consoles of search engines."
    ),
    Code.BROKEN_EXTERNAL: (
        "Correct or remove the link on the pages shown. What the other site answered stands beside it; one "
        "that only refuses crawlers is not reported."
    ),
    Code.CLIENT_ERROR: (
        "Open the address in a browser: if it fails there too, correct or remove the link. If it works, "
        "the server treats the crawler differently, and perhaps search engines as well."
    ),
    Code.CANONICAL_CHAIN: (
        "Name the page at the end of the chain as canonical: one that answers, may be indexed, and names "
        "itself."
    ),
    Code.NOINDEX_CANONICAL: (
        "Keep one of the two. A copy of another page names that as canonical, without noindex; a page that "
        "should not appear in search results says noindex, and names no other page."
    ),
    Code.CANONICAL_CONFLICT: (
        "Name the address of the page itself as canonical, or that of the page that is meant, and only once. "
        "The cause stands beside it; until then, search engines choose by themselves."
    ),
    Code.NOINDEX_FOR_BOT: (
        "If no search engine shall show the page, mark it noindex for all, as robots. If only that engine "
        "reads the sitemap, give its crawler with --bots."
    ),
    Code.REDIRECT_CHAIN: (
        "Redirect the first address directly to the last one, which is shown. Each hop costs a visitor a "
        "round trip, and search engines follow only a few."
    ),
    Code.REDIRECT_LINKED: (
        "Link to the target, which is shown. Keep the redirect itself for links from other sites."
    ),
    Code.ORPHAN: (
        "Link to the page from a suitable one, or remove it if it is a leftover. Pages without links are "
        "found late, and are taken as unimportant."
    ),
    Code.VANISHED: (
        "If the pages still answer, a menu or a listing has probably lost its links: restore them, or name "
        "the pages in a sitemap, and they are listed again. If they are gone on purpose, nothing is to be "
        "done."
    ),
    Code.DUPLICATE_CONTENT: (
        "If the pages of a group are one page, redirect the others to it, or let them name it as "
        "canonical. If they are different pages, give each its own content."
    ),
    Code.DUPLICATE_TITLE: "Give each page a title that says what is on it, as search results show it first.",
    Code.HREFLANG_NO_RETURN: (
        "Let every language version name all versions, and itself. A link that is not returned is ignored, "
        "and the sitemap leaves it out."
    ),
    Code.HREFLANG_CODE: (
        "Use a language of ISO 639-1, perhaps with a script and a country of ISO 3166-1, or x-default. The "
        "likely code is shown, such as en-GB for en-UK."
    ),
    Code.HREFLANG_TARGET: "Remove the link to that version, or make the version indexable.",
    Code.HREFLANG_CONFLICT: (
        "Keep one address for each code, or give the others codes of their own, such as de-AT beside de."
    ),
    Code.HREFLANG_NO_SELF: "Add the page itself to the versions that it names.",
    Code.IMAGES_CUT: "Divide the page into several: search engines read the first 1,000 images of one.",
    Code.BROKEN_IMAGE: (
        "Correct the address of the image in the page, or put the file back where it was. An image that does "
        "not exist (404 or 410) is left out of the sitemap until it is back."
    ),
    Code.BROKEN_SCRIPT: (
        "Correct the address of the script in the page, or put the file back where it was. A page whose "
        "content a script makes may be empty until then."
    ),
    Code.BROKEN_STYLE: (
        "Correct the address of the style sheet in the page, or put the file back where it was."
    ),
    Code.BLOCKED_FILE: (
        "Allow these files in robots.txt; the line stands beside each. A search engine may see an empty page "
        "without a script, and takes no disallowed image into its image search."
    ),
    Code.TRAP: (
        "Disallow the pattern in robots.txt, or mark its links with nofollow: search engines run into it "
        "as well. If its pages are wanted, --allow-trap crawls them."
    ),
    Code.LASTMOD_LIES: (
        "Send the date of the content as Last-Modified, or none. Pages may also state their date as "
        "article:modified_time, or in JSON-LD."
    ),
    Code.ROBOTS_LINE: (
        "Add the line shown to robots.txt; it never changes. Remove another sitemap that is named there, "
        "if nobody maintains it."
    ),
    Code.HASH_ROUTES: (
        "Give each view a path of its own, by the History API (createWebHistory in Vue Router, "
        "BrowserRouter in React Router), and link to that."
    ),
    Code.NOT_RENDERED: (
        "Open the page in a browser with a slow processor, and look for what keeps its scripts busy. More "
        "time is given by --total-timeout."
    ),
    Code.RESTRICTED: (
        "If visitors have no access either, remove the link. If they have, give the crawler a login "
        "(--auth-env, --cookie-file), or let the server admit it."
    ),
    Code.ROBOTS_LINKED: "That is often intended. If not, change the line of robots.txt that is shown.",
    Code.NOINDEX_LINKED: "That is often intended. If not, remove the noindex from the page.",
    Code.NEEDS_SCRIPTS: (
        "Render the pages on the server, or when the site is built: that helps all search engines, and "
        "previews of links as well."
    ),
    Code.NO_LASTMOD: (
        "Nothing has to be done. A correct Last-Modified header, or a date in the page, tells search "
        "engines what to visit again."
    ),
    Code.LASTMOD_UNIFORM: (
        "Send the date of each page's content as Last-Modified, or state it in the page; the date of a build "
        "or of a move is none. Where all pages really changed at once, nothing is to be done."
    ),
}
