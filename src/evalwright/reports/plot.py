"""Draws a leaderboard as bars with intervals, as SVG, PNG or PDF, with matplotlib.

The same board gives the same bytes: fonts are those that matplotlib ships, settings of the
machine are ignored, and the file has no date. In an SVG letters are outlines: as text they
would be set in the reader's font, in which names that were fitted to their place might no
longer fit. The page that shows the picture has the words. The shipped font has Latin, Greek,
Cyrillic, Arabic and Hebrew letters. Others are looked up in a short list of common fonts; a
letter that none has is shown as the replacement character.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import ConfigurationError, MissingExtra
from evalwright.reports.plot_view import OTHER_GROUP
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from evalwright.reports.plot_view import PlotRow, PlotView

FALLBACK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans CJK KR",
    "Noto Sans SC",
    "Noto Sans JP",
    "Noto Sans KR",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Hiragino Sans",
    "PingFang SC",
    "Apple SD Gothic Neo",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Noto Sans Thai",
    "Noto Sans Devanagari",
    "Noto Sans Tamil",
    "Nirmala UI",
    "Leelawadee UI",
)
"""Fonts for the scripts that the shipped one lacks, in the order in which they are tried."""

REPLACEMENT_CHARACTER = "\ufffd"

_PIECES = re.compile(r"\s+|[^\s/_@:+-]*[/_@:+-]+|[^\s/_@:+-]+")
"""Pieces between which a text may be broken: after spaces and after separators in a name."""


class Fonts:
    """Measures and draws texts in the fonts of one picture.

    Sizes are in points, widths in inches.

    Attributes:
        as_text: Whether letters that no font here has are kept, because the reader's fonts may have
            them.
        missing_letters: Letters that no font here has.
    """

    def __init__(self, as_text: bool = False) -> None:
        self.as_text = as_text
        self.missing_letters: set[str] = set()
        self._widths: dict[tuple[str, float, bool], float] = {}

    def font_for(
        self, text: str, size: float, *, bold: bool = False
    ) -> tuple[Any, str]:
        """Choose a font that has all letters of the text, and return it with the text.

        If there is none, the shipped font is returned, and the text with replacement characters.
        """
        from matplotlib.font_manager import FontProperties

        file = _shipped(bold)
        lacking = {char for char in text if ord(char) not in _letters(file)}
        if lacking:
            fallback = next(
                (
                    path
                    for path in _others()
                    if all(ord(c) in _letters(path) for c in text)
                ),
                None,
            )
            if fallback is not None:
                return FontProperties(fname=fallback, size=size), text
            self.missing_letters |= lacking
            if not self.as_text:
                text = "".join(
                    REPLACEMENT_CHARACTER if char in lacking else char for char in text
                )
        return FontProperties(fname=file, size=size), text

    def width(self, text: str, size: float, *, bold: bool = False) -> float:
        """Return the width of the text."""
        measured = self._widths.get((text, size, bold))
        if measured is None:
            measured = self._widths[text, size, bold] = (
                self._measure(text, size, bold) if text else 0.0
            )
        return measured

    def _measure(self, text: str, size: float, bold: bool) -> float:
        from matplotlib.textpath import text_to_path

        font, glyphs = self.font_for(text, size, bold=bold)
        glyphs = "".join(
            "M" if char in self.missing_letters else char for char in glyphs
        )
        width, _, _ = text_to_path.get_text_width_height_descent(
            glyphs, font, ismath=False
        )
        return float(width) / 72

    def shorten_to_fit(
        self, text: str, size: float, room: float, *, bold: bool = False
    ) -> str:
        """Cut out the middle of a text that does not fit; both ends of a name identify a model."""
        if self.width(text, size, bold=bold) <= room:
            return text
        # the number of characters that are kept
        low = 0
        high = len(text) - 1
        while low < high:
            n_kept = (low + high + 1) // 2
            fits = self.width(_cut(text, n_kept), size, bold=bold) <= room
            low, high = (n_kept, high) if fits else (low, n_kept - 1)
        return _cut(text, low)

    def break_lines(
        self, text: str, size: float, room: float, *, bold: bool = False
    ) -> list[str]:
        """Break the text into lines that fit, at spaces and separators, or within long words."""
        lines = [""]
        for piece in _PIECES.findall(inert(text)):
            if self.width(lines[-1] + piece.rstrip(), size, bold=bold) <= room:
                lines[-1] += piece
                continue
            lines.append(piece.lstrip())
            while len(lines[-1]) > 1 and self.width(lines[-1], size, bold=bold) > room:
                ends = range(len(lines[-1]) - 1, 1, -1)
                n_fitting = next(
                    (
                        end
                        for end in ends
                        if self.width(lines[-1][:end], size, bold=bold) <= room
                    ),
                    1,
                )
                lines[-1:] = [lines[-1][:n_fitting], lines[-1][n_fitting:]]
        return [line for line in lines if line.strip()] or [""]

    def draw_text(
        self,
        axes: Any,
        left: float,
        y: float,
        text: str,
        size: float,
        colour: str,
        *,
        bold: bool = False,
        align: str = "left",
    ) -> None:
        """Draw a text on the base line at `y`."""
        if text.strip():
            font, glyphs = self.font_for(text, size, bold=bold)
            axes.text(
                left,
                y,
                glyphs,
                fontproperties=font,
                color=colour,
                ha=align,
                va="baseline",
                parse_math=False,
            )

    def wrap_words(self, text: str, size: float, room: float) -> list[str]:
        """Break the text into lines that fit, at spaces; a word that is too long is cut."""
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.width(longer, size) > room:
                lines.append(self.shorten_to_fit(word, size, room))
            else:
                lines[-1] = self.shorten_to_fit(longer, size, room)
        return lines


def _cut(text: str, n_kept: int) -> str:
    head = (n_kept + 1) * 3 // 5
    tail = n_kept - head
    return f"{text[:head].rstrip()}…{text[len(text) - tail :].lstrip() if tail else ''}"


@lru_cache(maxsize=2)
def _shipped(bold: bool) -> str:
    import matplotlib

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name)


@lru_cache(maxsize=1)
def _others() -> tuple[str, ...]:
    from matplotlib.font_manager import fontManager

    font_files = {
        font.name: font.fname
        for font in reversed(fontManager.ttflist)
        if font.name in FALLBACK_FONTS
    }
    return tuple(font_files[name] for name in FALLBACK_FONTS if name in font_files)


@lru_cache(maxsize=32)
def _letters(file: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(file).get_charmap())


SUFFIXES = (".svg", ".png", ".pdf")

INK = "#1c2128"
QUIET = "#59636e"
LINE = "#d9dee3"
LEADS = "#2477cf"
OTHERS = "#b9c7d5"
"""Blue and light grey-blue, which differ in lightness too, for readers who see no colour."""
GROUP_STYLES = (
    ("#0072b2", ""),
    ("#e69f00", "////"),
    ("#009e73", "----"),
    ("#cc79a7", "...."),
    ("#56b4e9", "\\\\\\\\"),
    ("#d55e00", "||||"),
    ("#8a6d3b", "xxxx"),
)
"""Colours and hatches of groups (Okabe & Ito), told apart by lightness and hatch without colour."""

OTHER_STYLE = (OTHERS, "")
LEADS_RANGE = "#0b2a52"
OTHERS_RANGE = "#4c5b69"

KEY_INCHES = 0.22
LEGEND_LINE_INCHES = 0.24
MAX_GROUP_NAME_INCHES = 2.5

WIDTH_INCHES = 9.0
"""In inches: 864 pixels in an SVG, which is about the width of a README."""
ROW_INCHES = 0.3
PNG_DPI = 200
"""Dots per inch of a PNG, which is sharp on a screen that shows it at half its size."""


def check_plot(file: str) -> str:
    """Return the type of a picture by its file name, one of `SUFFIXES`.

    Raises ConfigurationError, or MissingExtra without matplotlib.
    """
    suffix = next((ending for ending in SUFFIXES if file.lower().endswith(ending)), "")
    if not suffix:
        raise ConfigurationError(f"'{file}' must end with .svg, .png or .pdf.")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "A PDF" if suffix == ".pdf" else "A plot", "plot", "matplotlib"
        ) from None
    return suffix


@contextmanager
def fixed_settings(suffix: str, letters: str = "path") -> Iterator[None]:
    """Use the same matplotlib settings on every machine, so that pictures have the same bytes.

    Args:
        suffix: The type of the picture, such as ".svg".
        letters: How letters are written in an SVG, "path" or "none".
    """
    check_plot(f"drawing{suffix}")
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "svg.hashsalt": "evalwright",
                "axes.unicode_minus": False,
                "pdf.fonttype": 42,
                "svg.fonttype": letters,
            }
        )
        yield


def draw_for_reader(view: PlotView) -> bytes:
    """Draw a picture as SVG; if no font here has a letter, leave all text to the reader's fonts."""
    import warnings

    check_plot("board.svg")
    fonts = Fonts(as_text=True)
    for row in view.rows:
        fonts.font_for(f"{view.title}{view.subtitle}{''.join(view.notes)}", 10)
        fonts.font_for(row.label, 10)
    if not fonts.missing_letters:
        return draw_plot(view, ".svg")
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # matplotlib warns about the letters that it cannot measure
        return draw_plot(view, ".svg", as_text=True)


def draw_plot(view: PlotView, suffix: str, *, as_text: bool = False) -> bytes:
    """Draw the picture and return it as a file.

    Args:
        view: What to draw.
        suffix: The type of the file.
        as_text: Whether letters of an SVG stay text instead of outlines.
    """
    with fixed_settings(suffix, "none" if as_text else "path"):
        return save_figure(_Drawing(view, Fonts(as_text)).figure, suffix, view.title)


def save_figure(figure: Any, suffix: str, title: str) -> bytes:
    """Write a figure as a file, without date and version."""
    omitted_metadata = {
        ".svg": ("Date", "Creator"),
        ".png": ("Software",),
        ".pdf": ("CreationDate", "Creator", "Producer"),
    }[suffix]
    buffer = io.BytesIO()
    metadata = {**dict.fromkeys(omitted_metadata), "Title": title}
    figure.savefig(
        buffer,
        format=suffix[1:],
        dpi=PNG_DPI if suffix == ".png" else "figure",
        metadata=metadata,
    )
    return buffer.getvalue()


@dataclass(frozen=True, slots=True)
class _Places:
    """Horizontal positions, in inches from the left.

    They are the right edge of the ranks, the left edge of the names and of the bars, and the right
    edges of the bars and of the two columns of numbers.
    """

    rank: float
    name: float
    bars: float
    bars_end: float
    value: float
    interval: float


class _Drawing:
    """One picture, with all positions in inches from the upper left corner."""

    def __init__(self, view: PlotView, fonts: Fonts) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.view = view
        self.fonts = fonts
        self.notes = [
            line
            for note in view.notes
            for line in self.fonts.wrap_words(note, 8, WIDTH_INCHES - 0.5)
        ]
        self.styles = {
            group: GROUP_STYLES[i] if i < len(GROUP_STYLES) else OTHER_STYLE
            for i, group in enumerate(view.groups)
        }
        if OTHER_GROUP in self.styles:
            self.styles[OTHER_GROUP] = OTHER_STYLE
        self.legend = self._legend_lines()
        self.top = 1.2 if view.ranked or view.has_intervals else 0.95
        self.top += LEGEND_LINE_INCHES * len(self.legend)
        self.body = ROW_INCHES * len(view.rows)
        self.height = self.top + self.body + 0.42 + 0.17 * len(self.notes) + 0.12
        self.figure: Any = Figure(
            figsize=(WIDTH_INCHES, self.height), facecolor="white"
        )
        FigureCanvasAgg(self.figure)
        self.axes = self.figure.add_axes(
            (0, 0, 1, 1), xlim=(0, WIDTH_INCHES), ylim=(self.height, 0)
        )
        self.axes.set_axis_off()
        self.axes.autoscale(False)
        self._text = partial(fonts.draw_text, self.axes)
        self.places = self._places()
        self._head()
        self._bars()
        for i, note in enumerate(reversed(self.notes)):
            self._text(0.25, self.height - 0.17 - 0.17 * i, note, 8, QUIET)

    def _places(self) -> _Places:
        rows = self.view.rows
        fonts = self.fonts
        ranks = max((fonts.width(row.ranks, 9.5) for row in rows), default=0)
        rank = 0.25 + ranks
        name = rank + (0.14 if ranks else 0)
        widest = max(fonts.width(row.label, 10, bold=row.leads) for row in rows)
        ends = max((fonts.width(row.interval, 9) for row in rows), default=0)
        value_width = max(fonts.width(row.value_text, 10, bold=True) for row in rows)
        interval = WIDTH_INCHES - 0.25
        value_end = interval - ends - (0.1 if ends else 0)
        bars_end = value_end - value_width - 0.2
        # Names may take room until the bars have a third of the picture.
        bars = min(name + widest + 0.15, max(name + 1.2, bars_end - WIDTH_INCHES / 3))
        return _Places(rank, name, bars, bars_end, value_end, interval)

    def _head(self) -> None:
        view = self.view
        room = WIDTH_INCHES - 0.5
        self._text(
            0.25,
            0.36,
            self.fonts.shorten_to_fit(view.title, 15, room, bold=True),
            15,
            INK,
            bold=True,
        )
        self._text(
            0.25,
            0.67,
            self.fonts.shorten_to_fit(view.subtitle, 10.5, room),
            10.5,
            QUIET,
        )
        if not (view.ranked or view.has_intervals):
            return
        left = 0.25
        if view.groups:
            left = self._group_keys()
        elif view.ranked:
            left = self._key(
                left, LEADS, "may be the best: no model is significantly better"
            )
            if any(not row.leads for row in view.rows):
                left = self._key(
                    left, OTHERS, "at least one model is significantly better"
                )
        if view.has_intervals:
            self._range(left, left + 0.3, 0.955, OTHERS_RANGE)
            self._text(left + 0.38, 1.0, "95% interval", 9, QUIET)

    def _key(
        self, left: float, colour: str, text: str, *, y: float = 1.0, hatch: str = ""
    ) -> float:
        """Draw a sample bar with its meaning; return the position of the next one."""
        self._box(left, y - 0.11, left + KEY_INCHES, y + 0.02, colour, hatch)
        self._text(left + KEY_INCHES + 0.08, y, text, 9, QUIET)
        return left + self._key_width(text)

    def _key_width(self, text: str) -> float:
        return KEY_INCHES + 0.08 + self.fonts.width(text, 9) + 0.28

    def _legend_lines(self) -> list[list[str]]:
        """Break the groups of the legend into lines that fit."""
        lines: list[list[str]] = []
        left = WIDTH_INCHES
        for group in self.view.groups:
            width = self._key_width(self._group_name(group))
            if left + width > WIDTH_INCHES - 0.25:
                lines.append([])
                left = 0.25
            lines[-1].append(group)
            left += width
        return lines

    def _group_name(self, group: str) -> str:
        return self.fonts.shorten_to_fit(group, 9, MAX_GROUP_NAME_INCHES)

    def _group_keys(self) -> float:
        """Draw the legend of the groups below the line of the intervals; return where that goes
        on.
        """
        for number, groups in enumerate(self.legend, 1):
            left = 0.25
            for group in groups:
                colour, hatch = self.styles[group]
                left = self._key(
                    left,
                    colour,
                    self._group_name(group),
                    y=1.0 + LEGEND_LINE_INCHES * number,
                    hatch=hatch,
                )
        if not self.view.ranked:
            return 0.25
        text = "bold: may be the best, no model is significantly better"
        self._text(0.25, 1.0, text, 9, QUIET)
        return 0.25 + self.fonts.width(text, 9) + 0.28

    def _bars(self) -> None:
        low, high, ticks = self._scale()
        places = self.places
        last = self.top + self.body
        length = places.bars_end - places.bars

        def position(number: float) -> float:
            return places.bars + length * (number - low) / (high - low)

        for tick, label in ticks:
            self._line(
                position(tick),
                self.top - 0.02,
                position(tick),
                last + 0.04,
                QUIET if tick == 0 else LINE,
                0.8,
            )
            self._text(position(tick), last + 0.2, label, 8.5, QUIET, align="center")
        for i, row in enumerate(self.view.rows):
            self._row(row, self.top + ROW_INCHES * (i + 0.5), position)

    def _row(self, row: PlotRow, y: float, position: Any) -> None:
        places = self.places
        room = self.places.bars - self.places.name - 0.12
        base = y + 0.048
        self._text(places.rank, base, row.ranks, 9.5, QUIET, align="right")
        name = self.fonts.shorten_to_fit(row.label, 10, room, bold=row.leads)
        self._text(places.name, base, name, 10, INK, bold=row.leads)
        start, end = sorted((position(0.0), position(row.value)))
        colour, hatch = self.styles.get(row.group, (LEADS if row.leads else OTHERS, ""))
        self._box(start, y - 0.09, end, y + 0.09, colour, hatch)
        if row.ends:
            self._range(
                position(row.ends[0]),
                position(row.ends[1]),
                y,
                LEADS_RANGE if row.leads or row.group else OTHERS_RANGE,
            )
        self._text(
            places.value, base, row.value_text, 10, INK, bold=True, align="right"
        )
        self._text(places.interval, base, row.interval, 9, QUIET, align="right")

    def _scale(self) -> tuple[float, float, list[tuple[float, str]]]:
        """Choose the axis, which includes 0, where bars begin, and every interval."""
        from matplotlib.ticker import MaxNLocator

        ends = [
            end for row in self.view.rows for end in row.ends or (row.value, row.value)
        ]
        low = min(0.0, *ends)
        high = max(0.0, *ends)
        if low == high:
            high = 1.0
        tick_values = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]).tick_values(
            low, high
        )
        if self.view.bounded:
            high = min(high, 100.0)
        ticks = [
            round(float(tick), 10)
            for tick in tick_values
            if low - 1e-9 <= tick <= high * (1 + 1e-9) + 1e-9
        ]
        step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
        decimals = next((d for d in range(7) if abs(round(step, d) - step) < 1e-9), 7)
        return low, high, [(tick, f"{tick + 0.0:,.{decimals}f}") for tick in ticks]

    # -- marks, in inches from the upper left corner

    def _box(
        self,
        left: float,
        top: float,
        right: float,
        bottom: float,
        colour: str,
        hatch: str = "",
    ) -> None:
        (patch,) = self.axes.fill(
            [left, right, right, left],
            [top, top, bottom, bottom],
            colour,
            linewidth=0,
            zorder=2,
        )
        if hatch:
            patch.set_hatch(hatch)
            patch.set_edgecolor("white")

    def _line(
        self,
        x0: float,
        y0: float,
        x1: float,
        y1: float,
        colour: str,
        width: float,
        order: int = 1,
    ) -> None:
        self.axes.plot(
            [x0, x1],
            [y0, y1],
            colour,
            linewidth=width,
            solid_capstyle="butt",
            zorder=order,
        )

    def _range(self, x0: float, x1: float, y: float, colour: str) -> None:
        """Draw an interval: a line with a stroke at both ends."""
        self._line(x0, y, x1, y, colour, 1.4, order=3)
        for end in (x0, x1):
            self._line(end, y - 0.05, end, y + 0.05, colour, 1.4, order=3)
