"""Reads returned label tables, checks each row, and matches them with verdicts.

Tables are read as spreadsheets save them: CSV with commas, semicolons or tabs, with or without
a byte order mark, in UTF-8, UTF-16 or Windows-1252, with any line ends. Errors name the file
and line.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.judge_validation.drawing import (
    LabelSet,
    find_set,
    sheet_rows,
)
from evalwright.analysis.judge_validation.verdicts import Verdicts, read_verdicts
from evalwright.core.errors import ConfigurationError, closest
from evalwright.core.private import check_ordinary
from evalwright.runs.reader import Run
from evalwright.statistics.units import row_means
from evalwright.tasks.safe_files import failing_as

ROW_NAME = re.compile(r"(s[0-9a-f]{8})-([0-9]{1,9})", re.IGNORECASE)
WORDS: Mapping[str, float] = {
    **dict.fromkeys(
        ("1", "yes", "y", "true", "pass", "passed", "right", "correct"), 1.0
    ),
    **dict.fromkeys(
        ("0", "no", "n", "false", "fail", "failed", "wrong", "incorrect"), 0.0
    ),
}
"""What people write for right and wrong, in lower case."""

_LONGEST = 1 << 22
"""Longest cell, in characters."""
_MOST_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Label:
    """One row of a returned table.

    Args:
        set: the labelling set that it belongs to.
        number: of the row in its set, from 0.
        value: the label; nan if the row has none.
        labeller: the person.
        where: file and line, for messages.
        answer: task, id and draw of a hand-picked answer, which belongs to no set.
    """

    set: str
    number: int
    value: float
    labeller: str
    where: str
    answer: tuple[str, str, int] | None = None


@dataclass(frozen=True, slots=True)
class LabelFile:
    """A returned table: its path, the SHA-256 of its bytes, and its rows."""

    path: Path
    sha256: str
    labels: tuple[Label, ...]

    @property
    def facts(self) -> dict[str, str]:
        """The file's name and hash, for records."""
        return {"file": self.path.name, "sha256": self.sha256}


def read_label_files(paths: Sequence[str | Path]) -> list[LabelFile]:
    """Read returned tables.

    A row's labeller is in its column `labeller`, else the file's name is used.

    Raises:
        ConfigurationError: with file and line, for an unreadable file, a missing column, a row of
            no set, an invalid label, or two labels of one person for a row.
    """
    files = [_read_label_file(Path(path), name_file=len(paths) > 1) for path in paths]
    first: dict[tuple[object, ...], str] = {}
    for file in files:
        for label in file.labels:
            key = (label.set, label.number, label.answer, label.labeller.casefold())
            if key in first:
                raise ConfigurationError(
                    f"{label.where}: the row was already labelled in {first[key]}"
                    + (
                        f", labelled by '{_shorten(label.labeller)}' too"
                        if label.labeller
                        else ""
                    )
                    + ". Each person labels a row once: remove one of them, or name the"
                    " people in the column 'labeller'."
                )
            first[key] = label.where
    return files


def _read_label_file(path: Path, *, name_file: bool) -> LabelFile:
    with failing_as(ConfigurationError, f"The labels '{path}' cannot be read"):
        table = check_ordinary(path)
        if table.stat().st_size > _MOST_BYTES:
            raise ConfigurationError(
                f"The labels '{path}' have more than {_MOST_BYTES >> 20} MiB: split the table."
            )
        content = table.read_bytes()
    if content[:4] == b"PK\x03\x04":
        raise ConfigurationError(
            f"The labels '{path}' are a workbook. Save the sheet as CSV."
        )
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = content.decode("utf-16", "replace")
    else:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = content.decode("cp1252", "replace")
    default_labeller = str(path) if name_file else ""
    labels = tuple(_parse_labels(_read_rows(text, path), path, default_labeller))
    return LabelFile(path, hashlib.sha256(content).hexdigest(), labels)


def _read_rows(text: str, path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Iterate over the rows: the line where each begins, and its cells by column name.

    Column names are in lower case.
    """
    first, _, remainder = text.partition("\n")
    skipped = 0
    if (
        first.strip().lower().startswith("sep=")
    ):  # a hint that spreadsheets write for themselves
        text = remainder
        skipped = 1
    header = text.partition("\n")[0].strip("\r")
    delimiter = max(",;\t", key=header.count)
    csv.field_size_limit(_LONGEST)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names: list[str] = []
    begins = 1 + skipped
    try:
        for cells in reader:
            line = begins
            begins = reader.line_num + 1 + skipped
            if not names:
                names = [cell.strip().lower() for cell in cells]
                _check_header(names, path, line)
            elif any(cell.strip() for cell in cells):
                yield line, dict(zip(names, cells, strict=False))
    except csv.Error as error:
        raise ConfigurationError(
            f"{path}, line {begins}: this is not CSV: {error}."
        ) from error
    if not names:
        raise ConfigurationError(f"The labels '{path}' are empty.")


def _check_header(names: list[str], path: Path, line: int) -> None:
    for column in ("row", "label"):
        if names.count(column) > 1:
            raise ConfigurationError(
                f"{path}, line {line}: the column '{column}' is given twice."
            )
        if column not in names:
            near = closest(column, names, 1)
            hint = f" Is '{near[0]}' meant?" if near else ""
            raise ConfigurationError(
                f"{path}, line {line}: the column '{column}' is missing.{hint} Labels"
                " go into the table that `evalwright check judge sample` wrote, which keeps"
                " its header."
            )


def _parse_labels(
    rows: Iterator[tuple[int, dict[str, str]]], path: Path, default_labeller: str
) -> Iterator[Label]:
    for line, cells in rows:
        where = f"{path}, line {line}"
        name = cells.get("row", "").strip().lstrip("'")
        row_match = ROW_NAME.fullmatch(name)
        labeller = (
            " ".join(cells.get("labeller", "").split()).lstrip("'") or default_labeller
        )
        answer = None if name else _chosen_answer(cells)
        drawn = (row_match[1].lower(), int(row_match[2]) - 1) if row_match else ("", -1)
        if not answer and drawn[1] < 0:
            raise ConfigurationError(
                f"{where}: '{_shorten(name)}' in the column 'row' is not a row of a"
                " labelling set (such as s0a1b2c3d-007)."
            )
        yield Label(
            *drawn, _parse_label(cells.get("label", ""), where), labeller, where, answer
        )


def _chosen_answer(cells: Mapping[str, str]) -> tuple[str, str, int] | None:
    """The answer that a row without a name is about; None if it does not say."""
    task, name = (
        re.sub(r"^'(?=\s*[=+\-@])", "", cells.get(column, ""))
        for column in ("task", "id")
    )
    draw = cells.get("draw", "").strip() or "0"
    return (
        (task, name, int(draw))
        if task and name and re.fullmatch("[0-9]{1,9}", draw)
        else None
    )


def _parse_label(text: str, where: str) -> float:
    plain = text.strip().strip("'").strip().casefold()
    if not plain:
        return math.nan
    if plain in WORDS:
        return WORDS[plain]
    try:
        label = float(plain.replace(",", "."))
    except ValueError:
        label = math.nan
    if not 0.0 <= label <= 1.0:
        raise ConfigurationError(
            f"{where}: the label '{_shorten(text.strip())}' is not a label: write 1 for"
            " right and 0 for wrong (or yes and no), a number between them where a"
            " part of the answer is right, or leave the cell empty."
        )
    return label


def _shorten(text: str) -> str:
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return text if len(text) <= 60 else f"{text[:57]}..."


EQUAL_CHANCES = 1.1
"""Largest ratio of sampling probabilities up to which labels count as equally likely.

It applies to figures that cannot be weighted.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A run's verdicts and the labels that people gave to some of them.

    Args:
        verdicts: of all records of the set's tasks.
        drawn: the labelling set.
        judge: (records,), nan without a verdict or if not drawable.
        people: (records, labellers), nan without a label.
        human: (records,), the mean over labellers.
        strata: (records,), None for a simple random set.
        labellers: the persons' names.
        equal_chances: whether every answer was equally likely to be drawn.
        n_unlabelled: rows of the set without a label.
    """

    verdicts: Verdicts
    drawn: LabelSet
    judge: NDArray[np.float64]
    people: NDArray[np.float64]
    human: NDArray[np.float64]
    strata: NDArray[np.int64] | None
    labellers: tuple[str, ...]
    equal_chances: bool
    n_unlabelled: int

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which records have a label from at least one person, (records,)."""
        is_labelled: NDArray[np.bool_] = self.human == self.human
        return is_labelled


def find_sets(files: Sequence[LabelFile], runs: Sequence[Run]) -> dict[str, LabelSet]:
    """Find the sets that the labels belong to, by name.

    Raises ConfigurationError, with file and line, for an unknown one.
    """
    labels = [label for file in files for label in file.labels]
    if chosen := next((label for label in labels if label.answer), None):
        raise ConfigurationError(
            f"{chosen.where}: this answer was chosen by hand. Only labels of answers"
            " that were drawn by chance (`evalwright check judge sample`) can correct a"
            " score: hand in those of chosen answers by themselves, for one run."
        )
    folders = [run.folder for run in runs]
    names = sorted({label.set for label in labels})
    found_sets = {name: find_set(name, folders) for name in names}
    sets = {name: drawn for name, drawn in found_sets.items() if drawn is not None}
    partners = {drawn.partner for drawn in sets.values()}
    for label in labels:
        drawn = sets.get(label.set)
        if drawn is None and label.set not in partners:
            raise ConfigurationError(
                f"{label.where}: the labelling set '{label.set}' is unknown: it belongs"
                f" to another run, or its file labelling-{label.set}.json is no longer"
                f" in the folder of the run '{runs[0].id}'."
            )
        if drawn is not None and label.number >= len(drawn.rows):
            raise ConfigurationError(
                f"{label.where}: the labelling set '{label.set}' has {len(drawn.rows)}"
                f" rows, and this names row {label.number + 1}."
            )
    return sets


def gather_evidence(
    run: Run, files: Sequence[LabelFile], sets: Mapping[str, LabelSet], scorer: str = ""
) -> Evidence:
    """Match one run's verdicts with the labels of its set.

    Rows of the other half of a set drawn for two runs are skipped.

    Args:
        run: the run.
        files: the tables of labels.
        sets: the labelling sets by name.
        scorer: of the run; "" for the one that the set was drawn for.

    Raises:
        ConfigurationError: the labels are of other answers or of several sets, or there are none.
    """
    labels = [label for file in files for label in file.labels]
    drawn, verdicts = _find_own_set(run, labels, sets, scorer)
    if drawn.only:
        raise ConfigurationError(
            f"The labelling set '{drawn.name}' was drawn from {drawn.only} alone, so it"
            f" cannot correct a score of '{run.id}'. `evalwright check judge calibrate"
            f" {run.id} --labels FILE` says how the judge did on these answers; to"
            " correct the score, label answers drawn from all: `evalwright check judge"
            f" sample {run.id}`."
        )
    for label in labels:
        if label.set not in (drawn.name, drawn.partner, *drawn.earlier):
            raise ConfigurationError(
                f"{label.where}: this row is of the labelling set '{label.set}', drawn"
                f" from the run '{sets[label.set].run}', and others are of"
                f" '{drawn.name}'. Labels of different sets cannot be combined, because"
                " they were drawn with different probabilities."
            )
    return make_evidence(verdicts, drawn, labels, sets)


def name_answers(
    run: Run, files: Sequence[LabelFile], sets: Mapping[str, LabelSet]
) -> tuple[LabelSet, list[LabelFile]]:
    """Name the answers of a set of disputed ones, as if they had been chosen by hand.

    Returns:
        The set, and the tables with task, id and draw in each row.

    Raises:
        ConfigurationError: the labels are of other answers, or of several sets.
    """
    labels = [label for file in files for label in file.labels]
    drawn, _ = _find_own_set(run, labels, sets, "")
    strange = next((label for label in labels if label.set != drawn.name), None)
    if strange is not None:
        raise ConfigurationError(
            f"{strange.where}: this row is of the labelling set '{strange.set}', and"
            f" others are of '{drawn.name}': hand them in by themselves."
        )
    answers = [(row.task, row.id, int(row.draw)) for row in sheet_rows([(run, drawn)])]
    return drawn, [
        replace(
            file,
            labels=tuple(
                replace(label, answer=answers[label.number]) for label in file.labels
            ),
        )
        for file in files
    ]


def _find_own_set(
    run: Run, labels: Sequence[Label], sets: Mapping[str, LabelSet], scorer: str
) -> tuple[LabelSet, Verdicts]:
    """Find the set with the run's answers: its own, or else that of a run with the same answers."""
    if not sets:
        raise ConfigurationError(
            "The labels have no row. Fill in what `evalwright check judge sample` wrote."
        )
    names = {task["name"] for task in run.data["tasks"]}
    scorers = {
        recorded_scorer["name"]
        for task in run.data["tasks"]
        for recorded_scorer in task.get("scorers", ())
    }
    for drawn in latest_first(sets, run):
        if set(drawn.tasks) <= names:
            scorer_name = scorer or (
                drawn.scorer if drawn.scorer in scorers or drawn.run == run.id else ""
            )
            verdicts = read_verdicts(run, scorer_name, drawn.tasks)
            if verdicts.tasks == drawn.tasks and verdicts.digest == drawn.answers:
                drawn.check(len(verdicts.values))
                return drawn, verdicts
    first = next(label for label in labels if label.set in sets)
    label_set = sets[first.set]
    own_run = label_set.run == run.id
    why = (
        "whose answers have changed since"
        if own_run
        else f"not from '{run.id}', which has other answers"
    )
    raise ConfigurationError(
        f"{first.where}: the labelling set '{label_set.name}' was drawn from the run"
        f" '{label_set.run}', {why}. Draw one from this run: evalwright check judge sample"
        f" {run.id}"
    )


def latest_first(sets: Mapping[str, LabelSet], run: Run) -> list[LabelSet]:
    """Sort sets: the run's own first, and before those that it takes labels over from."""
    taken_over = {name for drawn in sets.values() for name in drawn.earlier}
    return sorted(
        sets.values(), key=lambda drawn: (drawn.run != run.id, drawn.name in taken_over)
    )


def make_evidence(
    verdicts: Verdicts,
    drawn: LabelSet,
    all_labels: Sequence[Label],
    sets: Mapping[str, LabelSet],
) -> Evidence:
    """Match verdicts with the labels of a set, and of earlier sets that it takes over.

    Raises ConfigurationError where no row has a label, or one is of another kind.
    """
    labels = [
        label for label in all_labels if label.set in (drawn.name, *drawn.earlier)
    ]
    size = len(verdicts.values)
    graded = drawn.graded or verdicts.graded
    filled = [label for label in labels if label.value == label.value]
    for label in filled:
        if not graded and label.value not in (0.0, 1.0):
            raise ConfigurationError(
                f"{label.where}: the label {label.value:g} is out of range: this judge"
                " says right or wrong, so labels are 1 or 0."
            )
    if not filled:
        places = " and ".join(
            sorted({label.where.rpartition(", line ")[0] for label in labels})
        )
        raise ConfigurationError(
            f"{places or 'The labels'}: no row of the set '{drawn.name}' has a label"
            " yet. Write 1 or 0 into the column 'label'."
        )
    labellers = tuple(sorted({label.labeller for label in filled}))
    codes = {name: number for number, name in enumerate(labellers)}
    people = np.full((size, len(labellers)), np.nan)
    for label in filled:
        people[sets[label.set].rows[label.number], codes[label.labeller]] = label.value
    human = row_means(people)
    judge = verdicts.values.copy()
    judge[list(drawn.left_out)] = np.nan
    chances = np.array(drawn.probabilities)
    return Evidence(
        verdicts=verdicts,
        drawn=drawn,
        judge=judge,
        people=people,
        human=human,
        strata=None if drawn.strata is None else np.array(drawn.strata, dtype=np.int64),
        labellers=labellers,
        equal_chances=bool(chances.max() <= EQUAL_CHANCES * chances.min()),
        n_unlabelled=len(drawn.rows) - int(np.count_nonzero(~np.isnan(human))),
    )


def unlabelled_evidence(verdicts: Verdicts) -> Evidence:
    """The evidence of a run without any label, whose set is empty."""
    size = len(verdicts.values)
    drawn = LabelSet(
        name="",
        run=verdicts.run.id,
        scorer=verdicts.scorer,
        tasks=verdicts.tasks,
        samples_sha256=verdicts.run.samples_sha256,
        answers=verdicts.digest,
        graded=verdicts.graded,
        design="random",
        seed=0,
        rows=(),
        probabilities=(),
        strata=None,
        left_out=(),
    )
    return Evidence(
        verdicts=verdicts,
        drawn=drawn,
        judge=verdicts.values.copy(),
        people=np.full((size, 1), np.nan),
        human=np.full(size, np.nan),
        strata=None,
        labellers=(),
        equal_chances=True,
        n_unlabelled=0,
    )
