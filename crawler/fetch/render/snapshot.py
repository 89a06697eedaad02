"""What is read of a page once its scripts ran: a script for the browser, and a document. Pure.

The script runs in a world of its own, where the page cannot replace the functions that it calls.
"""

import html
from typing import Any, Final, NamedTuple

from crawler.parse.url import Url

SCRIPT: Final = """
(limit) => {
    const hidden = document.querySelectorAll("noscript");
    for (const element of hidden) element.remove();  // what browsers without scripts would show
    const routes = [...document.querySelectorAll("a[href]")].filter(
        (link) => link.host === location.host && /^#[!/]/.test(link.hash)).length;
    const base = document.baseURI;
    let root = document.documentElement;
    if (!root) return {html: "", base, routes};
    const isWritten = (node) => node instanceof HTMLIFrameElement && node.srcdoc !== "";
    const inner = (node) => node.shadowRoot || (isWritten(node) && node.contentDocument?.body);
    if ([...document.querySelectorAll("*")].some(inner)) {
        // The content of open shadow trees and of `srcdoc` stands in their host, as search engines read it.
        const inert = document.implementation.createHTMLDocument("");
        const copied = (node, depth) => {
            const copy = isWritten(node) ? inert.createElement("div") : inert.importNode(node, false);
            if (depth > 500) return copy;
            const hosted = inner(node)?.childNodes ?? [];
            for (const child of [...hosted, ...node.childNodes]) copy.appendChild(copied(child, depth + 1));
            return copy;
        };
        root = copied(root, 0);
    }
    const text = root.outerHTML;
    return text.length > limit ? {html: null, base, routes} : {html: text, base, routes};
}
"""

PREPARE: Final = """
delete Navigator.prototype.serviceWorker;
{
    const {now} = Date, exact = performance.now.bind(performance);
    let last = 0, looks = 0, ahead = 0;
    const passed = () => {
        const shown = now();
        looks = shown === last ? looks + 1 : 1;
        last = shown;
        ahead += looks % 1000 === 0;
        return ahead;
    };
    const time = Date.now = () => now() + passed();
    performance.now = () => exact() + passed();
    Date = Date.prototype.constructor = new Proxy(Date, {
        apply: (made) => new made(time()).toString(),
        construct: (made, given, called) => Reflect.construct(made, given.length ? given : [time()], called),
    });
}
"""
"""There are no service workers, as on pages without TLS: pages that ask for one would wait for ever.

So would scripts that look at a clock until some time has passed, as virtual time stands still meanwhile: with
each thousand looks, their clocks go on by a millisecond.
"""

FRAME: Final = """
(height) => new Promise((drawn) => {
    let left = 600;
    const frame = () => {
        const isGrown = innerHeight >= height || --left === 0;
        requestAnimationFrame(isGrown ? () => drawn(true) : frame);
    };
    requestAnimationFrame(frame);
})
"""
"""Draws frames until the window is so high, which takes a while. Observers of what is in view are served at
the end of a frame: the last one begins after that.
"""

SIZE: Final = '[document.getElementsByTagName("*").length, document.links.length]'


class Snapshot(NamedTuple):
    """A rendered page."""

    html: str | None  # None: larger than the limit
    base: str  # its base URL, after scripts may have changed the address or added a `base` element
    routes: int  # links to #/… or #!…


def read(value: Any) -> Snapshot:
    """What the script returned. Raises `ValueError`, `LookupError` or `TypeError` for anything else."""
    text, base, routes = value["html"], value["base"], value["routes"]
    if not (text is None or isinstance(text, str)) or not isinstance(base, str):
        raise TypeError("no snapshot")
    return Snapshot(text, base, int(routes))


def document(text: str, url: Url, base: str, canonical: str | None = None) -> bytes:
    """The HTML, with the base URL that its relative links had in the browser.

    `canonical`: is added unless the page names one.
    """
    changed = "" if base == url else f'<base href="{html.escape(base)}">'
    if canonical and 'rel="canonical"' not in text:
        changed += f'<link rel="canonical" href="{html.escape(canonical)}">'
    return f"<!doctype html>{changed}{text}".encode("utf-8", "replace")


def replacement(url: str, shown: str) -> str | None:
    """Where a page has moved whose scripts replaced its address by `shown`; None if it is still that page.

    A query that they add to a path without one only notes the state of the page.
    """
    path, _, query = shown.partition("?")
    if not shown.startswith(("http://", "https://")) or (query and path == url):
        return None
    return shown


def is_same_but_for_slash(url: str, shown: str) -> bool:
    """Whether scripts only added or left out the last slash of the path.

    The server may redirect to what they left out.
    """
    (path, *query), (other, *its_query) = url.split("?", 1), shown.split("?", 1)
    return path.rstrip("/") == other.rstrip("/") and query == its_query


def redirect(to: str) -> bytes:
    """The document of a page whose scripts led to another one: the same as a refresh without delay."""
    return f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(to)}">'.encode(
        "utf-8", "replace"
    )
