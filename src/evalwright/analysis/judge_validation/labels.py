"""Labels that come back: tables in whatever form a spreadsheet left them in, each row checked.

Read are CSV with commas, semicolons or tabs, with or without a byte order mark, in UTF-8, UTF-16 or Windows-1252, with any
line ends. A fault is told with its file and line.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalwright.core.errors import ConfigurationError, closest

ROW_NAME = re.compile(r"(s[0-9a-f]{8})-([0-9]{1,9})", re.IGNORECASE)
WORDS: Mapping[str, float] = {
    **dict.fromkeys(("1", "yes", "y", "true", "pass", "passed", "right", "correct"), 1.0),
    **dict.fromkeys(("0", "no", "n", "false", "fail", "failed", "wrong", "incorrect"), 0.0),
}
"""What people write for right and wrong, in lower case."""

_LONGEST = 1 << 28
"""Characters of a field that are read: answers may be long."""


@dataclass(frozen=True, slots=True)
class Label:
    """One row of a returned table. number: of the row in its set, from 0; value: nan where the row has no label."""

    set: str
    number: int
    value: float
    labeller: str
    where: str


@dataclass(frozen=True, slots=True)
class LabelFile:
    """A returned table: its path, the SHA-256 of its bytes, and its rows."""

    path: Path
    sha256: str
    labels: tuple[Label, ...]

    @property
    def facts(self) -> dict[str, str]:
        """Which file it was."""
        return {"file": self.path.name, "sha256": self.sha256}


def read_label_files(paths: Sequence[str | Path]) -> list[LabelFile]:
    """Read returned tables. A row's labeller is its column `labeller`, else the file's name.

    Raises ConfigurationError, with file and line: for a file that cannot be read or has no columns `row` and `label`, a row
    that is of no set, a label that is none, and two labels of one person for one row.
    """
    files = [_read(Path(path), several=len(paths) > 1) for path in paths]
    first: dict[tuple[str, int, str], str] = {}
    for file in files:
        for label in file.labels:
            key = (label.set, label.number, label.labeller.casefold())
            if key in first:
                raise ConfigurationError(
                    f"{label.where}: the row was already labelled in {first[key]}"
                    + (f", labelled by '{_short(label.labeller)}' too" if label.labeller else "")
                    + ". Each person labels a row once: remove one of them, or name the people in the column 'labeller'."
                )
            first[key] = label.where
    return files


def _read(path: Path, *, several: bool) -> LabelFile:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"The labels '{path}' cannot be read: {error.strerror}.") from error
    if data[:4] == b"PK\x03\x04":
        raise ConfigurationError(f"The labels '{path}' are a workbook. Save the sheet as CSV.")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("cp1252", "replace")
    own = str(path) if several else ""
    labels = tuple(_labels(_rows(text, path), path, own))
    return LabelFile(path, hashlib.sha256(data).hexdigest(), labels)


def _rows(text: str, path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The line each row begins in, and its cells by the header's names in lower case."""
    first, _, rest = text.partition("\n")
    skipped = 0
    if first.strip().lower().startswith("sep="):  # a hint that spreadsheets write for themselves
        text, skipped = rest, 1
    header = text.partition("\n")[0].strip("\r")
    delimiter = max(",;\t", key=header.count)
    csv.field_size_limit(_LONGEST)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names: list[str] = []
    begins = 1 + skipped
    try:
        for cells in reader:
            line, begins = begins, reader.line_num + 1 + skipped
            if not names:
                names = [cell.strip().lower() for cell in cells]
                _check_header(names, path, line)
            elif any(cell.strip() for cell in cells):
                yield line, dict(zip(names, cells, strict=False))
    except csv.Error as error:
        raise ConfigurationError(f"{path}, line {begins}: this is not CSV: {error}.") from error
    if not names:
        raise ConfigurationError(f"The labels '{path}' are empty.")


def _check_header(names: list[str], path: Path, line: int) -> None:
    for wanted in ("row", "label"):
        if names.count(wanted) > 1:
            raise ConfigurationError(f"{path}, line {line}: the column '{wanted}' is given twice.")
        if wanted not in names:
            near = closest(wanted, names, 1)
            hint = f" Is '{near[0]}' meant?" if near else ""
            raise ConfigurationError(
                f"{path}, line {line}: the column '{wanted}' is missing.{hint} Labels go into the table that "
                "`evalwright judge sample` wrote, which keeps its header."
            )


def _labels(rows: Iterator[tuple[int, dict[str, str]]], path: Path, own: str) -> Iterator[Label]:
    for line, cells in rows:
        where = f"{path}, line {line}"
        name = cells.get("row", "").strip().lstrip("'")
        found = ROW_NAME.fullmatch(name)
        if not found or int(found[2]) < 1:
            raise ConfigurationError(
                f"{where}: '{_short(name)}' in the column 'row' is not a row of a labelling set (such as s0a1b2c3d-007)."
            )
        labeller = " ".join(cells.get("labeller", "").split()).lstrip("'")
        yield Label(
            set=found[1].lower(),
            number=int(found[2]) - 1,
            value=_value(cells.get("label", ""), where),
            labeller=labeller or own,
            where=where,
        )


def _value(text: str, where: str) -> float:
    plain = text.strip().strip("'").strip().casefold()
    if not plain:
        return math.nan
    if plain in WORDS:
        return WORDS[plain]
    try:
        value = float(plain.replace(",", "."))
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise ConfigurationError(
            f"{where}: the label '{_short(text.strip())}' is not a label: write 1 for right and 0 for wrong (or yes and no), a "
            "number between them where a part of the answer is right, or leave the cell empty."
        )
    return value


def _short(text: str) -> str:
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return text if len(text) <= 60 else f"{text[:57]}..."
