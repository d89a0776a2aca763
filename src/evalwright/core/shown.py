"""Results that people look at: one line, HTML in a notebook, a data frame, a picture, a report, a
file.

The reports package, which imports the packages that make results, does the work. So it is imported
by name, and only when a result is looked at.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

REPORTS = "evalwright.reports.results"
FrameLibrary = Literal["pandas", "polars"]


class View(Protocol):
    """A picture or a report: a notebook shows it, `str` gives it as text, `save` writes it."""

    def save(self, file: str | Path) -> Path: ...

    def _repr_html_(self) -> str: ...


class Shown:
    """A result that can be shown in several ways."""

    __slots__ = ()

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """The rows as a data frame: a run's samples, a comparison's differences, a leaderboard's
        models.

        Args:
            library: "pandas" or "polars"; by default the one already imported, else the one
                installed.

        Raises:
            MissingExtra: the library is not installed.
        """
        return import_module(REPORTS).frame(self, library)

    def plot(self) -> View:
        """Its scores, or differences, with their intervals as a picture.

        Raises MissingExtra without matplotlib.
        """
        view: View = import_module(REPORTS).picture(self)
        return view

    def report(self) -> View:
        """The full report; for a run, with an analysis of its answers."""
        view: View = import_module(REPORTS).report(self)
        return view

    def save(self, file: str | Path) -> Path:
        """Write to a file, in the format of its suffix: .html, .md, .tex, .pdf, .json, .csv, .svg
        or .png.

        Raises:
            ConfigurationError: another suffix.
        """
        written: Path = import_module(REPORTS).save(self, file)
        return written

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        html: str = import_module(REPORTS).notebook_html(self)
        return html

    def __repr__(self) -> str:
        """One line. It never raises: a debugger also shows incomplete results."""
        try:
            return f"<{import_module(REPORTS).line(self)}>"
        except Exception as error:
            return (
                f"<{type(self).__name__}, which cannot be shown:"
                f" {type(error).__name__}>"
            )


def brief(text: str, most: int = 60) -> str:
    """A text for a `repr`: quoted, on one line, shortened."""
    return repr(text if len(text) <= most else f"{text[: most - 1]}…")
