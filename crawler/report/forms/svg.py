"""Charts as inline SVG: numbers and labels in, markup out. Pure.

Only presentation attributes and classes are used, since the policy of the page blocks `style` attributes.
Each chart has a `<title>` for screen readers, and the page also has every number in a table.
"""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

WIDTH: Final = 960
CHARACTER: Final = 7.2  # average width in units, in a label of font size 12
LINE: Final = 18
SHORTEST: Final = 5  # fewest characters of a shortened label


class ChartPart(NamedTuple):
    """A share of a whole."""

    label: str
    value: int
    css: str  # class of its fill
    note: str = ""  # for the tooltip


class Box(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


ROOM: Final = Box(0, 0, WIDTH, 320)  # of a treemap


def stacked(parts: Sequence[ChartPart], title: str, height: int = 34) -> str:
    """One bar of all parts, each as wide as its share, without text: it is as high on a small screen."""
    whole = sum(part.value for part in parts) or 1
    gaps, x, inner = 2 * (len(parts) - 1), 0.0, list[str]()
    for part in parts:
        width = max(2.0, (WIDTH - gaps) * part.value / whole)
        box = Box(x, 0, min(width, WIDTH - x), height)
        inner.append(_filled(box, part, f"{part.label}: {part.value:,}", ()))
        x += width + 2
    return _svg(Box(0, 0, WIDTH, height), title, inner, "bar", ' preserveAspectRatio="none"')


def treemap(parts: Sequence[ChartPart], title: str, room: Box = ROOM, css: str = "") -> str:
    """A rectangle for each part, the largest first: its area is the share, its shape nearly square."""
    shown = [part for part in parts if part.value > 0]
    boxes = squarified([part.value for part in shown], room)
    inner = [
        _filled(box, part, part.note, _two_lines(part, box)) for box, part in zip(boxes, shown, strict=True)
    ]
    return _svg(room, title, inner, css)


def line(values: Sequence[float | None], title: str, width: int = 300, height: int = 70) -> str:
    """A line over equal steps, with a gap for each unknown value."""
    known = [value for value in values if value is not None]
    most = max(known, default=0) or 1
    step = (width - 12) / max(1, len(values) - 1)
    points = [
        None if value is None else (6 + place * step, height - 6 - (height - 12) * value / most)
        for place, value in enumerate(values)
    ]
    inner = [f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in run)}"/>' for run in _runs(points)]
    inner += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in filter(None, points)]
    return _svg(Box(0, 0, width, height), title, inner, "line")


def squarified(values: Sequence[float], room: Box) -> list[Box]:
    """Rectangles that fill `room`, with the descending areas `values` (Bruls, Huizing, van Wijk 2000)."""
    scale = room.width * room.height / (sum(values) or 1)
    areas, boxes = [value * scale for value in values], list[Box]()
    while areas:
        side, row = min(room.width, room.height), areas[:1]
        while len(row) < len(areas) and _worst(row, side) >= _worst(areas[: len(row) + 1], side):
            row = areas[: len(row) + 1]
        placed, room = _row(row, room)
        boxes += placed
        areas = areas[len(row) :]
    return boxes


def _worst(row: Sequence[float], side: float) -> float:
    """The largest aspect ratio (at least 1) of the rectangles in a row along `side`."""
    whole = sum(row) or 1e-9
    return max(max(side**2 * area, whole**2) / max(min(side**2 * area, whole**2), 1e-9) for area in row)


def _row(row: Sequence[float], room: Box) -> tuple[list[Box], Box]:
    """The rectangles of a row along the shorter side, and the remaining area."""
    x, y, width, height = room
    boxes = []
    if width >= height:
        thick = sum(row) / (height or 1e-9)
        for area in row:
            long = area / (thick or 1e-9)
            boxes.append(Box(x, y, thick, long))
            y += long
        return boxes, Box(room.x + thick, room.y, max(0.0, width - thick), height)
    thick = sum(row) / (width or 1e-9)
    for area in row:
        long = area / (thick or 1e-9)
        boxes.append(Box(x, y, long, thick))
        x += long
    return boxes, Box(room.x, room.y + thick, width, max(0.0, height - thick))


def _filled(box: Box, part: ChartPart, tip: str, lines: Sequence[str]) -> str:
    """A rectangle with its lines of text."""
    x, y, width, height = box
    top = y + (16 if height >= 2 * LINE + 4 else height / 2 + 4)
    words = "".join(
        f'<text class="on" x="{x + 6:.1f}" y="{top + place * LINE:.1f}">{escape(text)}</text>'
        for place, text in enumerate(lines)
    )
    size = f'width="{max(0.5, width - 1):.1f}" height="{max(0.5, height - 1):.1f}"'
    rect = f'<rect class="{part.css}" x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" {size} rx="2"/>'
    return f"<g><title>{escape(tip)}</title>{rect}{words}</g>"


def _two_lines(part: ChartPart, box: Box) -> Sequence[str]:
    """The label, shortened if necessary, and the number; nothing if there is too little space."""
    room = int((box.width - 10) / CHARACTER)
    if box.height < LINE or (room < len(part.label) and room < SHORTEST):
        return []
    label = part.label if len(part.label) <= room else part.label[: room - 1] + "…"
    number = f"{part.value:,}"
    return [label, number] if box.height >= 2 * LINE + 4 and len(number) <= room else [label]


def _runs(points: Sequence[tuple[float, float] | None]) -> Iterator[list[tuple[float, float]]]:
    run = list[tuple[float, float]]()
    for point in (*points, None):
        if point is None:
            if len(run) > 1:
                yield run
            run = []
        else:
            run.append(point)


def _svg(room: Box, title: str, inner: Sequence[str], css: str = "", more: str = "") -> str:
    name = f' class="{css}"' if css else ""
    size = f"0 0 {room.width:g} {room.height:g}"
    head = f'<svg{name} viewBox="{size}"{more} role="img"><title>{escape(title)}</title>'
    return f"{head}{''.join(inner)}</svg>"
