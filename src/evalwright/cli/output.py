"""Where text leaves the program, and printing that commands share.

While a command runs, standard output and standard error are `Outlet`s. They make text harmless that
would act on a terminal, and mask secrets, whoever prints it (we, a library, a warning), and they
catch errors of writing, so that these never reach the work.
"""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from evalwright.core.secrets import mask
from evalwright.reports.text import inert_lines, json_escaped

if TYPE_CHECKING:
    from evalwright.reports.document import Document


class Outlet(io.TextIOBase):
    """A stream to a person or a file.

    Attributes:
        write_error: why it can no longer be written, or None. Later text is dropped.
    """

    def __init__(self, stream: TextIO | Outlet | None) -> None:
        self._stream = stream
        self.write_error: OSError | None = None

    @property
    def styled(self) -> Outlet:
        """This stream, for harmless text with our own colours."""
        return self if isinstance(self._stream, Outlet) else Outlet(self)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        with suppress(OSError, ValueError):
            return self._stream is not None and self._stream.isatty()
        return False

    def fileno(self) -> int:
        if self._stream is None:
            raise io.UnsupportedOperation("fileno")
        return self._stream.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if isinstance(self._stream, Outlet):
            self._stream.write_masked(text)
        else:
            # Progress bars of libraries begin each update with a carriage return.
            start = int(text.startswith("\r") and self.isatty())
            self.write_masked(text[:start] + inert_lines(text[start:]))
        return len(text)

    def write_masked(self, text: str) -> None:
        """Write text as it is, except for secrets."""
        if self._stream is None or self.write_error is not None:
            return
        text = mask(text)
        try:
            self._stream.write(
                text.encode(self.encoding, "backslashreplace").decode(self.encoding)
            )
            self._stream.flush()
        except BlockingIOError:  # another program made it non-blocking, and it is slow
            with suppress(OSError, ValueError):
                os.set_blocking(self._stream.fileno(), True)
                self._stream.flush()
        except (OSError, ValueError) as error:
            self.write_error = (
                error
                if isinstance(error, OSError)
                else OSError(errno.EBADF, str(error))
            )
            with suppress(OSError, ValueError):
                # Buffered text would fail again when the interpreter exits.
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def flush(self) -> None:
        """Do nothing: every text is written at once."""


@contextmanager
def outlets() -> Iterator[Outlet]:
    """Replace standard output and standard error by outlets; yield that of standard output."""
    with suppress(OSError):
        while (handle := os.open(os.devnull, os.O_RDWR)) < 3:
            # 0, 1 or 2 was closed: a file of ours must not become the stream to which libraries
            # print
            pass
        os.close(handle)
    before = sys.stdout, sys.stderr
    stdout = Outlet(before[0])
    sys.stdout = cast(TextIO, stdout)
    sys.stderr = cast(TextIO, Outlet(before[1]))
    try:
        yield stdout
    finally:
        sys.stdout, sys.stderr = before


def print_json(record: Any) -> None:
    """Print a JSON document on standard output, with active characters escaped."""
    click.echo(json_escaped(json.dumps(record, indent=2, ensure_ascii=False)))


def echo(text: str, *, before: str = "", error: bool = False, **style: bool) -> None:
    """Print text to a person, with active characters shown as escapes; lines and tabs stay.

    Args:
        text: the text.
        before: text to print before it, in the style; without it, the text has the style.
        error: whether to print on standard error.
        style: a style of click, such as `dim=True`.
    """
    plain = inert_lines(text)
    styled = (
        click.style(inert_lines(before), **style) + plain
        if before
        else click.style(plain, **style)
    )
    file = sys.stderr if error else sys.stdout
    click.echo(styled if style else plain, file=getattr(file, "styled", file))


def print_result(as_json: bool, record: Any, *documents: Document) -> None:
    """Print a result as JSON, or its documents for people."""
    if as_json:
        print_json(record)
        return
    from evalwright.reports.terminal import show

    show(*documents)


def write_result(file: str, content: Any) -> None:
    """Write a file that the user named, and say so; text is written as it is, all else as JSON."""
    from evalwright.tasks.safe_files import write_file

    text = (
        content
        if isinstance(content, str | bytes)
        else json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    )
    write_file(Path(file), text)
    echo(f"Written: {file}", error=True)
