"""Dates and pages that go on for ever, and true archives that look the same from outside."""

from dataclasses import replace
from datetime import date, timedelta

from benchmarks.zoo.site import MISSING, Reply, Request, Site, links, number, page, prose, token, worthless

DAYS = tuple(date(2024, 1, 1) + timedelta(3 * n) for n in range(300))
NEWS = dict.fromkeys(f"/{day:%Y/%m/%d}" for day in DAYS)
MONTHS = tuple((year, month) for year in (2024, 2025, 2026) for month in range(1, 13))


def _month(asked: Request) -> tuple[int, int] | None:
    """The year and month at the end of a path."""
    match asked.segments[-2:]:
        case [year, month] if (
            year.isdigit() and month.isdigit() and int(year) < 9999 and 1 <= int(month) <= 12
        ):
            return int(year), int(month)
    return None


def _around(year: int, month: int) -> list[str]:
    after, before = (year, month + 1), (year, month - 1)
    return [f"{y + (m == 13) - (m == 0)}/{(m - 1) % 12 + 1:02}" for y, m in (before, after)]


def two_calendars(asked: Request) -> Reply:
    """The one has events in 36 months and ends, the other is empty and never does."""
    if asked.path == "/":
        return page("town", ["/events/2024/01", "/rooms/2026/11"])
    found = _month(asked)
    if found is None or len(asked.segments) != 3:
        return MISSING
    to = [f"/{asked.segments[0]}/{when}" for when in _around(*found)]
    if asked.segments[0] == "rooms":
        return worthless(f"Rooms in {found[1]:02}/{found[0]}", "Nothing is booked.", to)
    return page(f"events {found}", to) if found in MONTHS else MISSING


def month_query(asked: Request) -> Reply:
    """A calendar in parameters without any entry, beside 40 true pages."""
    names = [f"club-{n}" for n in range(40)]
    if asked.path == "/diary":
        at = int(asked.query.get("month", "0"))
        return worthless(
            "Diary", f"Month {at}: no entries.", [f"/diary?month={at - 1}", f"/diary?month={at + 1}", "/"]
        )
    name = asked.path.strip("/")
    return (
        page(name or "clubs", [*(f"/{to}" for to in names), "/diary?month=0"])
        if not name or name in names
        else MISSING
    )


def weeks(asked: Request) -> Reply:
    """A timetable whose weeks all say the same, apart from their dates."""
    names = [f"course-{n}" for n in range(30)]
    if asked.path == "/" or asked.path.strip("/") in names:
        return page(asked.path.strip("/") or "school", [*(f"/{to}" for to in names), "/timetable/2026-11-23"])
    try:
        day = date.fromisoformat(asked.segments[-1])
    except (ValueError, IndexError):
        return MISSING
    days = " ".join((day + timedelta(n)).strftime("%A %d %B %Y: closed.") for n in range(7))
    return worthless(
        "Timetable", days, [f"/timetable/{day + timedelta(n)}" for n in (-7, 7) if day.year < 9990]
    )


def page_numbers(asked: Request) -> Reply:
    """/page/N has a link to N+1 also beyond the last one, where it is empty."""
    if asked.path == "/" or asked.segments[:1] == ["page"]:
        at = int(asked.segments[1]) if len(asked.segments) == 2 and asked.segments[1].isdigit() else 1
        some = [f"/entry-{n}" for n in range((at - 1) * 10, min(at * 10, 120))]
        if not some:
            empty = worthless("Blog", "Nothing here yet.", [f"/page/{at + 1}"])
            return replace(empty, optional=at == 13)  # a true page links to it
        return page(f"blog page {at}", [*some, f"/page/{at + 1}"])
    at = int(asked.path.removeprefix("/entry-")) if asked.path.removeprefix("/entry-").isdigit() else 999
    return page(f"entry {at}", ["/"]) if at < 120 else MISSING


def last_page_again(asked: Request) -> Reply:
    """Beyond its end a list repeats the last page, with a link to the next number."""
    if asked.path == "/":
        at = int(asked.query.get("p", "1"))
        shown = min(max(at, 1), 8)
        return page(
            f"list {shown}", [*(f"/thing-{n}" for n in range(shown * 10 - 10, shown * 10)), f"/?p={at + 1}"]
        )
    at = int(asked.path.removeprefix("/thing-")) if asked.path.removeprefix("/thing-").isdigit() else 999
    return page(f"thing {at}", ["/"]) if at < 80 else MISSING


WARES = tuple(f"/ware/{chr(97 + n // 9)}{chr(110 + n % 9)}" for n in range(54))


def clamped(asked: Request) -> Reply:
    """A list whose pages do not show their numbers; beyond its end the last one is shown."""
    at = asked.query.get("from", "1")
    if asked.path == "/stock" and at.isdigit():
        shown = min(max(int(at), 1), 6)
        to = [*WARES[shown * 9 - 9 : shown * 9], f"/stock?from={int(at) + 1}"]
        return Reply(page("Stock", to, text=prose(("stock", shown))).body, content=f"stock {shown}")
    if asked.path == "/":
        return page("wares", ["/stock?from=1"])
    return page(asked.path, ["/"]) if asked.path in WARES else MISSING


def archive(asked: Request) -> Reply:
    """An honest archive: 300 dated articles, lists by year and month, all with text of their own."""
    if asked.path == "/":
        return page("archive", [f"/{year}" for year in (2024, 2025, 2026)])
    if asked.path in NEWS:
        return page(f"news of {asked.path}", ["/"])
    below = [to for to in NEWS if to.startswith(asked.path + "/")]
    if not below:
        return MISSING
    depth = len(asked.segments) + 2
    return page(f"news {asked.path}", sorted({"/".join(to.split("/")[:depth]) for to in below}))


DRAWS = dict.fromkeys(f"/draw/{date(2015, 1, 3) + timedelta(7 * n)}" for n in range(600))


def draws(asked: Request) -> Reply:
    """600 lottery draws by date: six numbers each, and no other text."""
    if asked.path == "/":
        return page("draws", [f"/year/{year}" for year in range(2015, 2027)])
    if asked.segments[:1] == ["year"]:
        own = [to for to in DRAWS if to.startswith(f"/draw/{asked.segments[-1]}-")]
        return page(f"draws of {asked.segments[-1]}", own) if own else MISSING
    if asked.path not in DRAWS:
        return MISSING
    numbers = " ".join(str(1 + number(asked.path, n, below=49)) for n in range(6))
    return page(asked.path.strip("/"), ["/"], text=numbers)


def appointments(asked: Request) -> Reply:
    """A form to book any day: the day is a parameter, the form always the same."""
    names = [f"doctor-{n}" for n in range(12)]
    name, day = asked.path.strip("/"), asked.query.get("day")
    if name and name not in names:
        return MISSING
    if day:
        at = date.fromisoformat(day)
        to = [f"{asked.path}?day={at + timedelta(n)}" for n in (1, 7) if at.year < 9990]
        return worthless(f"Book {at:%d.%m.%Y}", "Choose a time." + links([]), to)
    return page(
        name or "practice", [*(f"/{to}" for to in names), *([f"/{name}?day=2026-11-23"] if name else [])]
    )


def stamps(asked: Request) -> Reply:
    """A feed of changes that goes back by seconds: /changes/before/1790000000, for ever, without entries."""
    names = [f"file-{n}" for n in range(40)]
    name = asked.path.strip("/")
    if name in ("", *names):
        return page(name or "files", [*(f"/{to}" for to in names), "/changes/before/1790000000"])
    if asked.segments[:2] != ["changes", "before"] or not asked.segments[-1].isdigit():
        return MISSING
    before = int(asked.segments[-1]) - number(asked.path, below=5000) - 1
    return worthless("Changes", f"No changes. {prose('changes', 20)}", [f"/changes/before/{before}"])


def random_page(asked: Request) -> Reply:
    """A link to a random article, under a token that is never the same."""
    names = [f"fact-{n}" for n in range(50)]
    if asked.path == "/surprise":
        return Reply("", 302, {"Location": f"/{names[number(asked.target, below=50)]}"})
    name = asked.path.strip("/")
    if name and name not in names:
        return MISSING
    return page(name or "facts", [*(f"/{to}" for to in names), f"/surprise?seed={token(asked.target)[:8]}"])


def german_weeks(asked: Request) -> Reply:
    """An empty calendar by year and week, in German: what it says are dates that its address does not have."""
    names = [f"verein-{n}" for n in range(30)]
    name = asked.path.strip("/")
    if name in {"", *names}:
        return page(name or "vereine", [*(f"/{to}" for to in names), "/plan/2026/kw/48"])
    if asked.segments[:1] != ["plan"] or len(asked.segments) != 4:
        return MISSING
    monday = date(int(asked.segments[1]), 1, 4) + timedelta(7 * int(asked.segments[3]) - 7)
    days = ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag")
    months = [
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    ]
    shown = [monday + timedelta(n) for n in range(5)]
    text = "<br>".join(
        f"{day}, {at.day}. {months[at.month - 1]}: keine Termine" for day, at in zip(days, shown, strict=True)
    )
    to = [(monday + timedelta(n)).isocalendar() for n in (-7, 7)]
    return worthless("Wochenplan", text, [f"/plan/{at.year}/kw/{at.week}" for at in to])


def hidden_calendar(asked: Request) -> Reply:
    """An empty calendar whose pages ask not to be indexed."""
    return _calendar(asked, '<meta name="robots" content="noindex">')


def canonical_calendar(asked: Request) -> Reply:
    """An empty calendar whose pages name one page as canonical."""
    return _calendar(asked, '<link rel="canonical" href="/">')


def _calendar(asked: Request, head: str) -> Reply:
    names = [f"hall-{n}" for n in range(30)]
    name = asked.path.strip("/")
    if name in {"", *names}:
        return page(name or "halls", [*(f"/{to}" for to in names), "/free/2026/11"])
    found = _month(asked)
    if found is None or asked.segments[0] != "free":
        return MISSING
    shown = worthless(
        f"{found[1]:02}/{found[0]}", prose(found, 30), [f"/free/{when}" for when in _around(*found)]
    )
    return Reply(shown.body.replace("</head>", head + "</head>"))


def sparse(asked: Request) -> Reply:
    """A true calendar of five years with a concert every fifth month; it ends on both sides."""
    if asked.path == "/":
        return page("concerts", ["/programme/2026/11"])
    if asked.path.startswith("/concert/"):
        return page(asked.path, ["/"]) if asked.path in CONCERTS else MISSING
    found = _month(asked)
    if found is None or not 2024 <= found[0] <= 2028:
        return MISSING
    own = f"/concert/{found[0]}-{found[1]}"
    to = [f"/programme/{when}" for when in _around(*found)]
    reply = worthless("Programme", "Concerts in this month:", [*([own] if own in CONCERTS else []), *to])
    return Reply(reply.body, optional=True)


CONCERTS = tuple(f"/concert/{n // 12}-{n % 12 + 1}" for n in range(2024 * 12, 2029 * 12, 5))


CONCERT_DAYS = [date(2026, 10, 17) + timedelta(3 * n) for n in range(30)]


def event_views(asked: Request) -> Reply:
    """Events by day and by month, of which few have any; each month links to its days and to others."""
    match asked.segments:
        case []:
            return page(
                "town hall", [f"/event/{day}/" for day in CONCERT_DAYS[:3]], menu=["/events/2026-11/"]
            )
        case ["event", day] if day in map(str, CONCERT_DAYS):
            return page(f"event {day}", [f"/events/{day}/"], menu=["/events/2026-11/"])
        case ["events", when] if len(when) == 7:
            month = date.fromisoformat(f"{when}-01")
            near = [f"/events/{month + timedelta(days):%Y-%m}/" for days in (-1, 31)]
            days = range(1, 29)
            to = [*near, *(f"/events/{when}-{day:02}/" for day in days)]
        case ["events", when]:
            day = date.fromisoformat(when)
            days, to = range(0), [f"/events/{day + timedelta(step)}/" for step in (-1, 1)]
        case _:
            return MISSING
    found = [str(day) for day in CONCERT_DAYS if str(day).startswith(when)]
    said = page(
        f"Events of {when}",
        [*(f"/event/{day}/" for day in found), *to],
        text=f"{' '.join(map(str, days))}: {len(found)} events.",
    )
    return replace(said, content=f"events of {when}" if found else "", optional=bool(found))


def day_views(asked: Request) -> Reply:
    """A timetable whose days stand in the middle of addresses, with what they say on its pages."""
    names = [f"/ward-{n}" for n in range(30)]
    match asked.segments:
        case []:
            return page("hospital", [*names, "/visits/2026-11-01/list"])
        case ["visits", when, "list"]:
            day = date.fromisoformat(when)
            near = [f"/visits/{day + timedelta(step)}/list" for step in (-1, 1)]
            return worthless("Visits", f"No visits on {day:%A, %d %B %Y}.", near)
        case _:
            return page(asked.target, ["/"]) if asked.target in names else MISSING


SITES = (
    Site("two-calendars", two_calendars, ("/", *(f"/events/{year}/{month:02}" for year, month in MONTHS)), "36 true months beside an empty calendar", endless=True),
    Site("month-query", month_query, ("/", *(f"/club-{n}" for n in range(40))), "an empty calendar in parameters", endless=True),
    Site("timetable", weeks, ("/", *(f"/course-{n}" for n in range(30))), "weeks that only differ by their dates", endless=True),
    Site("page-numbers", page_numbers, ("/", *(f"/page/{n}" for n in range(2, 13)), *(f"/entry-{n}" for n in range(120))), "empty pages beyond the last one", endless=True),
    Site("last-page-again", last_page_again, ("/", *(f"/?p={n}" for n in range(2, 9)), *(f"/thing-{n}" for n in range(80))), "the last page again for any higher number", endless=True),
    Site("last-page-unnumbered", clamped, ("/", *(f"/stock?from={n}" for n in range(1, 7)), *WARES), "the last page for any higher number, without its number", endless=True),
    Site("archive", archive, ("/", *dict.fromkeys(to[:end] for end in (5, 8, 11) for to in NEWS)), "300 dated articles with lists"),
    Site("draws", draws, ("/", *(f"/year/{year}" for year in range(2015, 2027)), *DRAWS), "600 lottery draws, numbers only"),
    Site("appointments", appointments, ("/", *(f"/doctor-{n}" for n in range(12))), "a form for every day", endless=True),
    Site("changes-before", stamps, ("/", *(f"/file-{n}" for n in range(40))), "a time in the path that goes back", endless=True),
    Site("surprise", random_page, ("/", *(f"/fact-{n}" for n in range(50))), "a redirect to a random page"),
    Site("german-weeks", german_weeks, ("/", *(f"/verein-{n}" for n in range(30))), "an empty calendar by week, in German", endless=True),
    Site("hidden-calendar", hidden_calendar, ("/", *(f"/hall-{n}" for n in range(30))), "an endless calendar with noindex", endless=True),
    Site("canonical-calendar", canonical_calendar, ("/", *(f"/hall-{n}" for n in range(30))), "an endless calendar with one canonical", endless=True),
    Site("day-views", day_views, ("/", *(f"/ward-{n}" for n in range(30))), "an endless calendar with its date in the middle of addresses", endless=True),
    Site("event-views", event_views, ("/", *(f"/event/{day}/" for day in CONCERT_DAYS)), "an endless calendar by day and month with a few events", endless=True, distinct=70),
    Site("sparse-calendar", sparse, ("/", *CONCERTS), "a true calendar with long gaps", distinct=73),
)  # fmt: skip
