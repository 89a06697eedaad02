"""Signs that a run did not see its whole site: a start page that hides it, or rules that exclude most of its
pages.

`app` checks the counts of the frontier at the end of a run. A doubt prevents the first publication of a
sitemap (the guard compares later ones with the previous one); a note is only reported. Pure: sentences from
counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from crawler.model.facts import Obstacle
from crawler.model.reasons import Why
from crawler.model.survey import PagesOfKind, Survey
from crawler.parse.url import Url
from crawler.rules.logout import names_login

# Listed pages: beside a login form there are pages for a lost password, terms, an imprint.
FEW_LISTED: Final = 10
# Least number of pages with a canonical on one other origin that is not an accident.
MANY_CANONICALS: Final = 10
MANY_SHELLS: Final = 10  # addresses with the same bytes and scripts, from which on that is no accident
ANYWAY: Final = "--min-urls 1 publishes it anyway."
HELP: Final = {
    Obstacle.SHELL: "--render auto runs its scripts in a browser (docs/use/recipes.md); without one, add "
    "a sitemap with --seed-sitemaps. " + ANYWAY,
    Obstacle.HASH_ROUTES: "Give each view a path of its own (docs/use/report.md, hash-routes). " + ANYWAY,
    Obstacle.EMPTY: "`explain` shows what its scripts requested (docs/use/recipes.md). " + ANYWAY,
    Obstacle.LOGIN: "--auth-env or --cookie-file provide a login. " + ANYWAY,
    Obstacle.NOFOLLOW: "--no-rule nofollow follows them. " + ANYWAY,
}
_OF_SCRIPTS: Final = (Obstacle.SHELL, Obstacle.HASH_ROUTES, Obstacle.EMPTY)
_PAGES: Final = tuple(f"unlisted:{why.value}" for why in (Why.CANONICAL, Why.NOINDEX, Why.SOFT_404, Why.TRAP))


class Landing(Struct, frozen=True):
    """The page that a start URL led to."""

    url: Url
    obstacle: Obstacle | None
    has_moved: bool = False
    was_open: bool = False  # of a partial run: the start URL was a listed page before
    is_elsewhere: bool = False  # on another origin, and pages of the site were not visited since

    def hidden_by(self) -> Obstacle | None:
        """What may hide the site; a redirect to a URL named like a login counts as one."""
        return self.obstacle or (Obstacle.LOGIN if self.has_moved and names_login(self.url) else None)


class SiteDoubts(Struct, frozen=True):
    """`doubt` is a reason not to publish for the first time; `notes` are worth knowing."""

    doubt: str = ""
    notes: tuple[str, ...] = ()
    partial: str = ""  # why a partial run cannot be published


def without_flag(doubt: str) -> str:
    """A doubt without the flag that publishes anyway, which is of use for a first publication only."""
    return " ".join(doubt.replace(ANYWAY, "").split())


def doubts(landings: Sequence[Landing], survey: Survey, shell: PagesOfKind | None = None) -> SiteDoubts:
    """The doubts and notes about a run. `landings`: one for each start URL. `shell`: see `SameShell`."""
    found = [*_hidden_site(landings, survey), *_elsewhere(survey)]
    bound = (*_excluded_by_rule(survey.outcomes), *(() if found else _same_shell(shell)))
    single = () if found or bound else tuple(_single_page(landings, survey))
    return SiteDoubts(" ".join(found), (*bound, *single), _of_partial(landings))


def _of_partial(landings: Sequence[Landing]) -> str:
    """A partial run sees few pages: what has become of all others is told by the start pages."""
    moved = [one for one in landings if one.has_moved and one.was_open]
    if not moved:
        return ""
    words = f"The start page redirects to {moved[0].url} now"
    if len(moved) == len(landings) and all(one.hidden_by() is Obstacle.LOGIN for one in moved):
        return (
            f"{words}, which {Obstacle.LOGIN.says}; the old files are kept. --auth-env or --cookie-file "
            "provide a login; if the other pages are still public, a crawl without a limit on pages or time "
            "shows it."
        )
    if any(one.is_elsewhere for one in moved):
        return (
            f"{words}, and other pages were not visited since; the old files are kept. A crawl without a "
            "limit on pages or time visits all of them, under the new address."
        )
    return ""


def _listed(survey: Survey) -> int:
    return sum(survey.obstacles.values())


def _hidden_site(landings: Sequence[Landing], survey: Survey) -> Iterator[str]:
    """The start page is (nearly) the only page, and looks as if the site were hidden behind it."""
    obstacles = [landing.hidden_by() for landing in landings]
    listed, first = _listed(survey), obstacles[0] if obstacles else None
    most = {
        **{one: survey.obstacles.get(one.value, 0) for one in _OF_SCRIPTS},
        Obstacle.LOGIN: FEW_LISTED - 1,
        Obstacle.NOFOLLOW: 1,
    }
    if first and all(obstacles) and listed <= most[first]:
        yield f"{landings[0].url} {first.says}. {HELP[first]}"


def _elsewhere(survey: Survey) -> Iterator[str]:
    if survey.elsewhere is None:
        return
    name, count = survey.elsewhere
    listed = _listed(survey)
    pages = listed + sum(survey.outcomes.get(code, 0) for code in _PAGES)
    if count * 2 > pages and (count >= MANY_CANONICALS or not listed):
        yield (
            f"{count:,} of {max(count, pages):,} {'page names' if count == 1 else 'pages name'} {name} as "
            f"canonical: if this is a copy of that site, --publish-base {name} publishes it under that "
            "address; --no-rule canonical ignores the canonical links."
        )


def _excluded_by_rule(outcomes: Mapping[str, int]) -> Iterator[str]:
    """Most URLs of the site are excluded by a rule that can be switched off."""
    total = sum(outcomes.values())
    for why, flag in (
        (Why.NOFOLLOW, "--no-rule nofollow"),
        (Why.ROBOTS, "--ignore-robots (only on your own site)"),
    ):
        count = outcomes.get(f"unlisted:{why.value}", 0)
        if count * 2 > total:
            yield f"{count:,} of the {total:,} URLs of the site are {why.says}: {flag} crawls them."


def _same_shell(shell: PagesOfKind | None) -> Iterator[str]:
    if shell:
        yield (
            f"{shell.pages:,} addresses answer with the same bytes as {shell.first}, which run scripts: if "
            "these make the pages, --render auto runs them in a browser (docs/use/recipes.md)."
        )


def _single_page(landings: Sequence[Landing], survey: Survey) -> Iterator[str]:
    if _listed(survey) == 1 and sum(survey.outcomes.values()) == 1 and landings:
        yield f"The site is one page: {landings[0].url} has no link to another page of the site."
