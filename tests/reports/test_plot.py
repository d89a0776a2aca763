"""The picture: the same bytes again, bars and intervals where the numbers are, any name harmless
and inside its place.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from evalwright.reports import plot
from evalwright.reports.plot_view import PlotRow, PlotView
from evalwright.reports.text import inert
from support.command import environment
from support.hostile import ACTIVE, HOSTILE

pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")

SVG = "{http://www.w3.org/2000/svg}"


def _view(
    labels: list[str], values: list[float], *, half: float = 3.0, bounded: bool = True
) -> PlotView:
    rows = tuple(
        PlotRow(
            f"{i + 1}",
            label,
            value,
            (value - half, value + half),
            f"{value:.1f}",
            "[a, b]",
            i == 0,
        )
        for i, (label, value) in enumerate(zip(labels, values, strict=True))
    )
    return PlotView(
        "A title", "Rate, % · lower is better", rows, True, bounded, True, ("A note.",)
    )


def _pixels(view: PlotView) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    from matplotlib.image import imread

    found = np.asarray(imread(io.BytesIO(plot.draw_plot(view, ".png"))))
    return (found[..., :3] * 255).round().astype(np.uint8)


def _columns(
    image: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], row: int, colour: str
) -> tuple[int, int]:
    """Where a row's bar begins and ends, in pixels, seen above its interval."""
    y = round((1.2 + plot.ROW_INCHES * (row + 0.5) - 0.07) * plot.PNG_DPI)
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    places = np.flatnonzero((image[y] == wanted).all(axis=1))
    return int(places[0]), int(places[-1])


def test_bars_are_as_long_as_their_numbers() -> None:
    image = _pixels(_view(["a", "b", "c"], [10.0, 20.0, 40.0]))
    starts, ends = zip(
        *[_columns(image, i, plot.LEADS if i == 0 else plot.OTHERS) for i in range(3)],
        strict=True,
    )
    assert max(starts) - min(starts) <= 1
    lengths = np.subtract(ends, starts)
    assert lengths[1] == pytest.approx(2 * lengths[0], abs=4) and lengths[
        2
    ] == pytest.approx(4 * lengths[0], abs=6)
    assert image[0, 0].tolist() == [255, 255, 255]


@pytest.mark.parametrize("suffix", plot.SUFFIXES)
def test_the_same_board_gives_the_same_bytes_everywhere(
    suffix: str, tmp_path: Path
) -> None:
    view = _view(["a", "b"], [10.0, 20.0])
    own = plot.draw_plot(view, suffix)
    assert plot.draw_plot(view, suffix) == own
    (tmp_path / "matplotlibrc").write_text(
        "font.size: 30\nsvg.fonttype: none\nfigure.facecolor: red\nfont.family: serif\n"
    )
    code = (
        "import sys; from evalwright.reports.plot import draw_plot; from evalwright.reports.plot_view import PlotRow, PlotView\n"
        f"sys.stdout.buffer.write(draw_plot({view!r}, {suffix!r}))"
    )
    settings = environment({"MATPLOTLIBRC": str(tmp_path), "TZ": "Asia/Tokyo"})
    done = subprocess.run(
        [sys.executable, "-c", code], env=settings, capture_output=True, check=True
    )
    assert done.stdout == own


def test_an_svg_names_no_time_and_loads_nothing() -> None:
    text = plot.draw_plot(_view(["a"], [10.0]), ".svg").decode()
    assert (
        "dc:date" not in text
        and "<image" not in text
        and "<script" not in text
        and "@import" not in text
    )
    assert re.findall(r'(?:href|src)="(?!#)', text) == []
    assert "<text" not in text  # letters are outlines


def test_any_name_is_drawn_and_harmless() -> None:
    names = [
        inert(name) or "(no name)"
        for name in (
            *HOSTILE,
            "$x^2$",
            "$\\frac{",
            "a--b -->",
            "\\alpha",
            "नमस्ते",
            "مرحبا",
        )
    ]
    data = plot.draw_plot(_view(names, [10.0] * len(names)), ".svg")
    root = ElementTree.fromstring(data)
    assert {each.tag.removeprefix(SVG) for each in root.iter() if each.tag.startswith(SVG)} <= {
        "svg", "g", "path", "use", "defs", "metadata", "style", "title", "rect", "clipPath",
    }  # fmt: skip
    assert not set(data.decode()) & set(ACTIVE)


@pytest.mark.parametrize(
    "label", ["x" * 300, "meta/" + "very-long-" * 20 + "end", "short"]
)
def test_a_name_stays_in_its_place(label: str) -> None:
    image = _pixels(_view([label, "b"], [20.0, 50.0]))
    start, _ = _columns(image, 1, plot.OTHERS)
    y = slice(round(1.2 * plot.PNG_DPI), round((1.2 + plot.ROW_INCHES) * plot.PNG_DPI))
    ink = np.flatnonzero((image[y, : start - 5] < 120).all(axis=2).any(axis=0))
    assert ink.size and ink[-1] < start - 8 and ink[0] > 30
    assert start < image.shape[1] * 0.66
