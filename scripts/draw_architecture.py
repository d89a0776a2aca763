"""Draws docs/images/architecture.svg: the rooms of the code, and the path of a sample through them.

    python -m scripts.draw_architecture

The picture has colours for light and for dark pages, and a background of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

PICTURE = (
    Path(__file__).resolve().parent.parent / "docs" / "images" / "architecture.svg"
)

WIDTH = 1000
HEIGHT = 748
IMPORTS_TOP = 698
LINE_HEIGHT = 17
STEP_RADIUS = 10

STYLE = """
svg { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 13px; }
.page { fill: #ffffff; }
.room { fill: #eef3fb; stroke: #4a6fa5; stroke-width: 1.2; }
.base { fill: #f3f3f3; stroke: #8a8a8a; stroke-width: 1.2; }
.outside { fill: none; stroke: #8a8a8a; stroke-width: 1.2; stroke-dasharray: 5 4; }
.name { fill: #14294a; font-weight: 600; font-size: 15px; }
.note { fill: #3c4654; }
.path { fill: none; stroke: #b4461f; stroke-width: 1.8; }
.head { fill: #b4461f; }
.call { fill: none; stroke: #8a8a8a; stroke-width: 1.2; }
.call-head { fill: #8a8a8a; }
.step { fill: #b4461f; }
.number { fill: #ffffff; font-weight: 600; font-size: 12px; }
@media (prefers-color-scheme: dark) {
  .page { fill: #14181f; }
  .room { fill: #1f2c42; stroke: #7fa3d8; }
  .base { fill: #262b33; stroke: #9aa4b2; }
  .outside, .call { stroke: #9aa4b2; }
  .name { fill: #e8eefa; }
  .note { fill: #c3cbd6; }
  .path { stroke: #f0936b; }
  .head, .step { fill: #f0936b; }
  .call-head { fill: #9aa4b2; }
  .number { fill: #14181f; }
}
"""


IMPORTS = (
    "Imports go one way: core, bounded, statistics, models, engine, sandboxes, tools, strategies,",
    "scorers, metrics, tasks, runs, trackers, evaluation, proxy, analysis, reports, entries, api,",
    "extend, compat, cli.",
)


@dataclass(frozen=True)
class Box:
    """A room, or something outside of the code, with what it does in a line or two."""

    name: str
    notes: tuple[str, ...]
    left: int
    top: int
    width: int
    height: int = 62
    kind: str = "room"


BOXES = (
    Box("cli/", ("a file per command",), 30, 20, 150, 50),
    Box("api.py", ("calls from Python",), 200, 20, 150, 50),
    Box("extend/ · compat/", ("other frameworks",), 370, 20, 185, 50),
    Box("entries/", ("boards by pull requests",), 770, 20, 190, 50),
    Box("tasks/", ("file or Python", "becomes samples"), 30, 145, 150, 76),
    Box(
        "evaluation/",
        ("settings become a plan,", "a plan becomes runs"),
        270,
        145,
        210,
        76,
    ),
    Box("runs/", ("run.json and", "samples.jsonl"), 570, 145, 130, 76),
    Box("analysis/", ("comparison,", "board, power"), 725, 145, 115, 76),
    Box("reports/", ("terminal, HTML,", "explorer"), 865, 145, 115, 76),
    Box("trackers/", ("experiment trackers",), 590, 20, 150, 50),
    Box("tools/", ("run what", "models call"), 10, 290, 100, 70),
    Box("sandboxes/", ("jail, containers",), 5, 384, 115, 52),
    Box("strategies/", ("form an Answer",), 150, 300, 160),
    Box("scorers/", ("give it a Score",), 350, 300, 160),
    Box("metrics/", ("Scores to Estimates",), 570, 300, 170),
    Box("proxy/", ("other programs'", "requests"), 10, 456, 110, 70),
    Box("engine/", ("key, claim, queue, pacing, retries, budget",), 150, 430, 360, 56),
    Box("store", ("SQLite or PostgreSQL",), 610, 430, 190, 56, "outside"),
    Box("models/", ("remote/ over HTTP · local/ with weights",), 150, 550, 360, 56),
    Box("a provider or a GPU", (), 610, 555, 190, 46, "outside"),
    Box(
        "core/ · bounded.py · statistics/",
        (
            "imported by all rooms: nouns, errors; a process with limits; arrays in, numbers out",
        ),
        30,
        626,
        950,
        50,
        "base",
    ),
)


@dataclass(frozen=True)
class Arrow:
    """A step of the sample's path (number and what goes along it), or a plain call (number 0)."""

    points: tuple[tuple[int, int], ...]
    number: int = 0
    label: str = ""
    at: tuple[int, int] = (0, 0)
    """Where the number is; the label stands to its right."""


ARROWS = (
    Arrow(((105, 70), (105, 105), (330, 105), (330, 140))),
    Arrow(((275, 70), (275, 105), (330, 105), (330, 140))),
    Arrow(((465, 70), (465, 105), (420, 105), (420, 140))),
    Arrow(((180, 183), (265, 183)), 1, "Sample", (198, 168)),
    Arrow(((290, 221), (290, 295)), 2, "evaluate_sample", (160, 262)),
    Arrow(((200, 362), (200, 425)), 3, "ask(role, request)", (217, 388)),
    Arrow(((510, 448), (605, 448)), 4, "stored?", (534, 434)),
    Arrow(((200, 486), (200, 545)), 5, "if not: send", (217, 510)),
    Arrow(((510, 578), (605, 578)), 6, "", (556, 564)),
    Arrow(
        ((400, 550), (400, 500), (560, 500), (560, 470), (605, 470)),
        7,
        "Response, first stored",
        (417, 518),
    ),
    Arrow(((170, 430), (170, 367)), 8, "", (142, 400)),
    Arrow(((310, 331), (345, 331)), 9, "Answer", (322, 286)),
    Arrow(((150, 331), (115, 331))),
    Arrow(((120, 474), (145, 474))),
    Arrow(((60, 360), (60, 380))),
    Arrow(((430, 362), (430, 425)), 0, "a judge is asked the same way", (425, 392)),
    Arrow(((430, 300), (430, 226)), 10, "Score", (446, 262)),
    Arrow(((480, 183), (565, 183)), 11, "record", (498, 168)),
    Arrow(((620, 226), (620, 295)), 12, "metrics of a task", (636, 262)),
    Arrow(((700, 183), (720, 183))),
    Arrow(((840, 183), (860, 183))),
    Arrow(((635, 140), (635, 75))),
)


def draw() -> str:
    """The picture as SVG."""
    title = "The rooms of the code, and the path of a sample through them"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        "<defs>",
        _arrow_head("path-head", "head"),
        _arrow_head("call-head", "call-head"),
        "</defs>",
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
    ]
    parts += [_box(box) for box in BOXES]
    parts += [_arrow(arrow) for arrow in ARROWS]
    for index, line in enumerate(IMPORTS):
        parts.append(_text(line, WIDTH / 2, IMPORTS_TOP + index * LINE_HEIGHT, "note"))
    return "\n".join([*parts, "</svg>", ""])


def _arrow_head(name: str, style: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" '
        f'markerWidth="7" markerHeight="7" orient="auto">'
        f'<path class="{style}" d="M0 0 L10 5 L0 10 z"/></marker>'
    )


def _box(box: Box) -> str:
    corners = 26 if box.kind == "outside" else 6
    middle = box.left + box.width / 2
    lines = [("name", box.name), *(("note", note) for note in box.notes)]
    first = box.top + box.height / 2 - (len(lines) - 1) * LINE_HEIGHT / 2 + 5
    texts = [
        _text(text, middle, first + index * LINE_HEIGHT, style)
        for index, (style, text) in enumerate(lines)
    ]
    outline = (
        f'<rect class="{box.kind}" x="{box.left}" y="{box.top}" width="{box.width}" '
        f'height="{box.height}" rx="{corners}"/>'
    )
    return "\n".join([outline, *texts])


def _arrow(arrow: Arrow) -> str:
    points = " ".join(f"{x},{y}" for x, y in arrow.points)
    style = "path" if arrow.number else "call"
    parts = [
        f'<polyline class="{style}" points="{points}" marker-end="url(#{style}-head)"/>'
    ]
    x, y = arrow.at
    if arrow.number:
        parts.append(f'<circle class="step" cx="{x}" cy="{y}" r="{STEP_RADIUS}"/>')
        parts.append(_text(str(arrow.number), x, y + 4, "number"))
    if arrow.label:
        parts.append(
            _text(arrow.label, x + STEP_RADIUS + 4, y + 5, "note", anchor="start")
        )
    return "\n".join(parts)


def _text(text: str, x: float, y: float, style: str, *, anchor: str = "middle") -> str:
    return f'<text class="{style}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
