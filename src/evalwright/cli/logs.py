"""The log that `--verbose` and `--log-file` show, on standard error or appended to a file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

from evalwright.cli.options import combine_options, flag, option
from evalwright.core.errors import ConfigurationError
from evalwright.core.secrets import mask
from evalwright.reports.text import inert
from evalwright.tasks.safe_files import failing_as

LOGGING = combine_options(
    flag("--verbose", "Also show retries, failed requests and what libraries say."),
    option("--log-file", "FILE", "Also append what happens, with times, to a file."),
)


class _PersonHandler(logging.Handler):
    """Shows log records to a person, above the live lines of a run."""

    def __init__(self, tell: Callable[[str], None], level: int) -> None:
        super().__init__(level)
        self._tell = tell
        # Messages of the progress display are shown by that display.
        self.addFilter(lambda record: record.name != "evalwright.progress")

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(self.format(record))


class _FileHandler(logging.StreamHandler[TextIOWrapper]):
    """Writes log records to a file, one line each, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return inert(mask(super().format(record)))


@contextmanager
def logged(
    verbose: bool, file: str | None, tell: Callable[[str], None]
) -> Iterator[None]:
    """Log within the block.

    Args:
        verbose: whether to show debug messages; warnings are always shown.
        file: where to append the log, with times.
        tell: shows a message to a person.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    logger = logging.getLogger("evalwright")
    handlers: list[logging.Handler] = [
        _PersonHandler(tell, logging.DEBUG if verbose else logging.WARNING)
    ]
    if file is not None:
        handlers.append(_open_log(Path(file)))
    level = logger.level
    if verbose or file is not None:
        # Libraries are silenced unless the level is DEBUG.
        logger.setLevel(logging.DEBUG if verbose else logging.INFO)
    for handler in handlers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(level)
        for handler in handlers:
            logger.removeHandler(handler)
            if isinstance(handler, _FileHandler):
                handler.stream.close()


def _open_log(path: Path) -> _FileHandler:
    with failing_as(ConfigurationError, f"The log file '{path}' cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = _FileHandler(
            path.open("a", encoding="utf-8", errors="backslashreplace")
        )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    return handler
