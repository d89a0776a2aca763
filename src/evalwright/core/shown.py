"""Ways to look at a result: one line, HTML in a notebook, a data frame, a plot, a report, a file.

The reports package does the work. It imports the packages that create results, so it is
imported here by name, and only when a result is displayed.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

REPORTS = "evalwright.reports.results"
FrameLibrary = Literal["pandas", "polars"]


class View(Protocol):
    """A plot or a report: a notebook displays it, `str` returns it as text, `save` writes it."""

    def save(self, file: str | Path) -> Path: ...

    def _repr_html_(self) -> str: ...


class Shown:
    """Base of results that can be displayed in several ways."""

    __slots__ = ()

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """Return the rows as a data frame.

        A run has its samples as rows, a comparison its differences, a leaderboard its models.

        Args:
            library: "pandas" or "polars"; by default the one already imported, else the one
                installed.

        Raises:
            MissingExtra: the library is not installed.
        """
        return import_module(REPORTS).frame(self, library)

    def plot(self) -> View:
        """Plot the scores or differences with their intervals.

        Raises MissingExtra without matplotlib.
        """
        view: View = import_module(REPORTS).picture(self)
        return view

    def report(self) -> View:
        """Create the full report; a run's contains an analysis of its answers."""
        view: View = import_module(REPORTS).report(self)
        return view

    def save(self, file: str | Path) -> Path:
        """Write the result to a file, in the format of its suffix.

        Args:
            file: a name that ends in .html, .md, .tex, .pdf, .json, .csv, .svg or .png.

        Raises:
            ConfigurationError: another suffix.
        """
        written: Path = import_module(REPORTS).save(self, file)
        return written

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook displays."""
        html: str = import_module(REPORTS).notebook_html(self)
        return html

    def __repr__(self) -> str:
        """Return one line. It never raises: a debugger also shows incomplete results."""
        try:
            return f"<{import_module(REPORTS).line(self)}>"
        except Exception as error:
            return (
                f"<{type(self).__name__}, which cannot be shown:"
                f" {type(error).__name__}>"
            )


def brief(text: str, most: int = 60) -> str:
    """Shorten a text for a `repr`: quoted, on one line, at most `most` characters."""
    return repr(text if len(text) <= most else f"{text[: most - 1]}…")
