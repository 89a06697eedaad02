"""The four single-page applications, served on loopback: 65 pages each, with one shell for all of them."""

import hashlib
import json
from functools import cache, partial
from pathlib import Path

from crawler.cli.demo.site import CannedResponse, Site

BUILT = Path(__file__).parent / "apps" / "built"
APPS = ("angular", "react", "svelte", "vue")
SECTIONS = ("tea", "coffee", "cocoa", "juice")
ITEMS = 15  # in each section
TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript", "css": "text/css"}


@cache
def built(app: str) -> dict[str, CannedResponse]:
    """The files of an application, by their path, still compressed."""
    return {
        f"/{file.relative_to(BUILT / app).with_suffix('')}": CannedResponse(
            200,
            file.read_bytes(),
            (("Content-Type", TYPES[file.with_suffix("").suffix[1:]]), ("Content-Encoding", "br")),
        )
        for file in (BUILT / app).rglob("*.br")
    }


def paths() -> list[str]:
    """The paths of all pages."""
    items = [f"/{section}/{number}" for section in SECTIONS for number in range(1, ITEMS + 1)]
    return ["/", *(f"/{section}" for section in SECTIONS), *items]


def _json(value: object) -> CannedResponse:
    return CannedResponse(200, json.dumps(value).encode(), (("Content-Type", "application/json"),))


def spa(app: str) -> Site:
    """The application, as a static server with a fallback for its routes would serve it."""
    site, files = Site(), built(app)
    answers = dict.fromkeys(paths(), files["/index.html"])
    answers |= {path: file for path, file in files.items() if path != "/index.html"}
    for section in SECTIONS:
        names = {number: f"{section} no. {number}" for number in range(1, ITEMS + 1)}
        items = [{"id": number, "name": name} for number, name in names.items()]
        answers[f"/api/{section}.json"] = _json({"title": f"All {section}", "items": items})
        for number, name in names.items():
            text = f"This {section} is number {number}: " + f"it grows in place {number * 7}. " * number
            answers[f"/api/{section}/{number}.json"] = _json({"name": name, "text": text})
    for path, response in answers.items():
        tag = f'"{hashlib.sha256(response.body).hexdigest()[:16]}"'
        tagged = CannedResponse(response.status, response.body, (*response.headers, ("ETag", tag)))
        site.respond(path, partial(_same, tagged))
    return site


def _same(response: CannedResponse, _: object) -> CannedResponse:
    return response
