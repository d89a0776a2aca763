"""Results that people look at: a line, HTML in a notebook, a table of data, a picture, a report, a
file.

How a result is shown is the matter of reports, which stand below the rooms that make results. So
they are reached by name, and only when somebody looks.
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
    """A result with the same few ways to look at it, whatever it is."""

    __slots__ = ()

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """Its rows as a data frame: a run's samples, a comparison's differences, a board's models.

        library: pandas or polars; without it the one that the program has imported, else the one
        that is installed. Raises MissingExtra where it is not installed.
        """
        return import_module(REPORTS).frame(self, library)

    def plot(self) -> View:
        """Its scores, or differences, with their intervals as a picture.

        Raises MissingExtra without matplotlib.
        """
        made: View = import_module(REPORTS).picture(self)
        return made

    def report(self) -> View:
        """All that there is to say of it; of a run with an analysis of its answers."""
        made: View = import_module(REPORTS).report(self)
        return made

    def save(self, file: str | Path) -> Path:
        """Write it to a file, by its name's ending: .html, .md, .tex, .pdf, .json, .csv, .svg or
        .png. Raises ConfigurationError.
        """
        written: Path = import_module(REPORTS).save(self, file)
        return written

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        shown: str = import_module(REPORTS).notebook_html(self)
        return shown

    def __repr__(self) -> str:
        """One line, which never raises: a debugger shows half-made results too."""
        try:
            return f"<{import_module(REPORTS).line(self)}>"
        except Exception as error:
            return (
                f"<{type(self).__name__}, which cannot be shown:"
                f" {type(error).__name__}>"
            )


def brief(text: str, most: int = 60) -> str:
    """A text for a `repr`: quoted, on one line, cut."""
    return repr(text if len(text) <= most else f"{text[: most - 1]}…")
