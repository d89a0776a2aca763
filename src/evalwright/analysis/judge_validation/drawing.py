"""Labelling sets: which answers people label, drawn with known probabilities.

A set is named by its content, so the same command draws the same set. Its file
`labelling-<set>.json` in the run's folder holds all that the correction needs. Labels are about
answers, so they can be used for every run with the same answers, whichever judge it had. The
rows that people see do not reveal the judge's verdict.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from evalwright.analysis.judge_validation.verdicts import (
    CONFIDENCE,
    Verdicts,
    shown_answer,
)
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.core.plain import Plain, plain_fields
from evalwright.runs.reader import Run
from evalwright.runs.writer import write_json
from evalwright.statistics import draw_labelling_set
from evalwright.statistics.labelling import Design
from evalwright.tasks.safe_files import failing_as, read_json

USUAL_SIZE = 200


@dataclass(frozen=True, slots=True)
class LabelSet(Plain):
    """The answers that people are to label in one run.

    Positions count the records of `tasks` in the run's order, from 0.

    Args:
        name: the set's name, a prefix of the row names in sheets.
        run: the run that it was drawn from.
        scorer: the scorer whose verdicts were used.
        tasks: the tasks it scored.
        samples_sha256: hash of the run's samples.
        answers: a digest of the answers.
        graded: whether verdicts are graded rather than right or wrong.
        design: how the set was drawn.
        seed: the seed of the draw.
        rows: the positions drawn, in the order drawn.
        probabilities: the probability with which each was drawn.
        strata: of all records, -1 if not drawable; None for a simple random set.
        left_out: positions that could not be drawn for lack of a verdict.
        partner: the other run's set if two runs were drawn together, else "".
        schema: version of the file's format.
        only: which answers could be drawn, in words, if not all with a verdict: such a set says
            nothing of the run's score.
        earlier: names of the run's earlier sets, whose labels count beside those of this one: it
            was drawn from what they had left, within the same strata.
    """

    name: str
    run: str
    scorer: str
    tasks: tuple[str, ...]
    samples_sha256: str
    answers: str
    graded: bool
    design: Design
    seed: int
    rows: tuple[int, ...]
    probabilities: tuple[float, ...]
    strata: tuple[int, ...] | None
    left_out: tuple[int, ...]
    partner: str = ""
    schema: Literal[1] = 1
    only: str = ""
    earlier: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form; `only` and `earlier` are there where they say something."""
        optional = ("only", "earlier")
        return plain_fields(
            self, [name for name in optional if not getattr(self, name)]
        )

    def row_name(self, number: int) -> str:
        """The name of a row in sheets, which spreadsheets do not mistake for a number or date."""
        return f"{self.name}-{number + 1:0{len(str(len(self.rows)))}d}"

    def check(self, records: int) -> None:
        """Raise RunError if the set does not fit this number of records."""
        places = (*self.rows, *self.left_out)
        sound = (
            all(0 <= position < records for position in places)
            and all(0 < p <= 1 for p in self.probabilities)
            and len(self.probabilities) == len(set(self.rows)) == len(self.rows) > 0
            and (self.strata is None or len(self.strata) == records)
        )
        if not sound:
            raise RunError(
                f"labelling-{self.name}.json was changed: it is not the set that was"
                " drawn."
            )


def draw_set(
    verdicts: Verdicts, size: int | None, design: Design, seed: int
) -> LabelSet:
    """Draw the answers of one run that people should label.

    Graded verdicts serve as confidence if the judge states none between 0 and 1, so that a
    stratified set has more of the doubtful ones.

    Args:
        verdicts: the judge's verdicts.
        size: number of answers; None means 200, or all if there are fewer.
        design: "random" or "stratified".
        seed: seeds the draw.

    Raises:
        ConfigurationError: the size cannot be drawn.
    """
    stated_confidence = verdicts.parts[CONFIDENCE]
    has_confidence = bool(
        (~np.isnan(stated_confidence)).any()
        and (
            (stated_confidence >= 0) & (stated_confidence <= 1)
            | np.isnan(stated_confidence)
        ).all()
    )
    confidence = verdicts.values if verdicts.graded else None
    if has_confidence:
        confidence = stated_confidence
    positions = np.arange(len(verdicts.values))
    (drawn,) = _draw_label_sets(
        [verdicts], [positions], verdicts.values, confidence, size, design, seed
    )
    return drawn


def draw_disputed_set(
    verdicts: Verdicts,
    size: int | None,
    seed: int,
    *,
    unsure: bool = False,
    flipped: Verdicts | None = None,
) -> LabelSet:
    """Draw at random from the disputed answers of a run alone.

    Args:
        verdicts: the judge's verdicts.
        size: number of answers; None means 200, or all if there are fewer.
        seed: seeds the draw.
        unsure: whether those count of which the scorer is unsure.
        flipped: verdicts on another run; answers of items that it scored differently count.

    Raises:
        ConfigurationError: no answer is disputed, or the size cannot be drawn.
    """
    disputed = np.zeros(len(verdicts.values), dtype=np.bool_)
    kinds = []
    if unsure:
        disputed |= verdicts.unsure
        kinds.append("unsure answers")
    if flipped is not None:
        _, positions, others = np.intersect1d(
            verdicts.keys, flipped.keys, return_indices=True
        )
        gaps = verdicts.values[positions] - flipped.values[others]
        disputed[positions] |= np.nan_to_num(gaps) != 0
        kinds.append(f"answers that '{flipped.run.id}' scored differently")
    values = np.where(disputed, verdicts.values, np.nan)
    only = " and ".join(kinds)
    if np.isnan(values).all():
        raise ConfigurationError(
            f"The scorer '{verdicts.scorer}' gave the run '{verdicts.run.id}' no"
            f" {only.replace(' and ', ' or ')}: there is nothing to draw."
        )
    (drawn,) = _draw_label_sets(
        [replace(verdicts, values=values)],
        [np.arange(len(values))],
        values,
        None,
        size,
        "random",
        seed,
    )
    return replace(drawn, only=only)


def draw_sets(
    a: Verdicts, b: Verdicts, size: int | None, design: Design, seed: int
) -> tuple[LabelSet, LabelSet]:
    """Draw the same items of two runs, to correct their difference.

    Strata are by the difference of the two verdicts.

    Args:
        a: the judge's verdicts on the first run.
        b: those on the second run.
        size: number of answers of each run; None for the default.
        design: "random" or "stratified".
        seed: seeds the draw.

    Raises:
        ConfigurationError: there is no common item, or the size cannot be drawn.
    """
    _, in_a, in_b = np.intersect1d(a.keys, b.keys, return_indices=True)
    order = np.argsort(in_a)
    in_a = in_a[order]
    in_b = in_b[order]
    differences = a.values[in_a] - b.values[in_b]
    if not len(differences) or np.isnan(differences).all():
        raise ConfigurationError(
            f"No item has a verdict both in the run '{a.run.id}' and in '{b.run.id}':"
            " nothing can be compared."
        )
    first, second = _draw_label_sets(
        [a, b], [in_a, in_b], differences, None, size, design, seed
    )
    return first, second


def _draw_label_sets(
    sources: list[Verdicts],
    positions: list[NDArray[np.int64]],
    values: NDArray[np.float64],
    confidence: NDArray[np.float64] | None,
    size: int | None,
    design: Design,
    seed: int,
) -> list[LabelSet]:
    n_scored = int(np.count_nonzero(~np.isnan(values)))
    size_drawn = min(USUAL_SIZE, n_scored) if size is None else size
    if not 1 <= size_drawn <= n_scored:
        raise ConfigurationError(
            f"--n must be between 1 and {n_scored}, the answers with a verdict, not"
            f" {size_drawn}."
        )
    with failing_as(ConfigurationError, "No labelling set can be drawn", ValueError):
        labelling_draw = draw_labelling_set(
            values, size_drawn, design=design, confidence=confidence, seed=seed
        )
    names = [_set_name(source, sources, size_drawn, design, seed) for source in sources]
    chosen = np.array(labelling_draw.indices)
    chances = np.array(labelling_draw.probabilities)
    sets = []
    for name, partner, source, source_positions in zip(
        names, names[::-1], sources, positions, strict=True
    ):
        strata = np.full(len(source.values), -1, dtype=np.int64)
        strata[source_positions] = labelling_draw.strata
        sets.append(
            LabelSet(
                name=name,
                run=source.run.id,
                scorer=source.scorer,
                tasks=source.tasks,
                samples_sha256=source.run.samples_sha256,
                answers=source.digest,
                graded=any(verdicts.graded for verdicts in sources),
                design=design,
                seed=seed,
                rows=tuple(source_positions[chosen].tolist()),
                probabilities=tuple(chances[chosen].tolist()),
                strata=tuple(strata.tolist()) if design == "stratified" else None,
                left_out=tuple(np.flatnonzero(strata < 0).tolist()),
                partner=partner if len(sources) == 2 else "",
            )
        )
    return sets


def _set_name(
    source: Verdicts, sources: list[Verdicts], size: int, design: str, seed: int
) -> str:
    """Derive a set's name from its content.

    It begins with a letter, so that it is no number or date.
    """
    facts = [
        [v.run.id, v.scorer, v.tasks, v.digest, blake2b(v.values.tobytes()).hexdigest()]
        for v in (source, *sources)
    ]
    text = json.dumps([facts, size, design, seed])
    return "s" + blake2b(text.encode(errors="surrogatepass"), digest_size=4).hexdigest()


def set_file(folder: Path, name: str) -> Path:
    """Return the path of a run's labelling set of that name."""
    return folder / f"labelling-{name}.json"


def write_set(folder: Path, drawn: LabelSet) -> Path:
    """Write the set into the run's folder, atomically.

    Raises RunError.
    """
    path = set_file(folder, drawn.name)
    try:
        write_json(path, drawn.as_dict())
    except OSError as error:
        raise RunError(
            f"'{path}' cannot be written: {error.strerror}. Nothing was drawn."
        ) from error
    return path


def find_set(name: str, folders: list[Path]) -> LabelSet | None:
    """Find the set of that name in the runs' folders or beside them; None if there is none."""
    beside = {folder.parent for folder in folders}
    places = [set_file(folder, name) for folder in folders]
    places += [
        path
        for parent in sorted(beside)
        for path in sorted(parent.glob(f"*/labelling-{name}.json"))
    ]
    for path in places:
        if path.is_file():
            return _read_set(path, name)
    return None


def _read_set(path: Path, name: str) -> LabelSet:
    """Read a set from a file; its numbers are checked by `LabelSet.check`."""
    content = read_json(path, RunError, str(path))
    try:
        label_set = TypeAdapter(LabelSet).validate_python(content)
    except ValidationError:
        label_set = None
    if label_set is None or label_set.name != name:
        raise RunError(f"{path} is not a labelling set that this version reads.")
    return label_set


_TOGETHER = 10
"""Number of items per block when answers of two runs are mixed."""


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One answer to label, with texts as recorded: code that displays them must sanitise them.

    Args:
        row: its name in the set.
        task: the task's name.
        id: the sample's id.
        draw: the repeat.
        input: the question.
        choices: the options.
        context: the passages.
        reference: the right answers.
        answer: the answer to label.
    """

    row: str
    task: str
    id: str
    draw: str
    input: str
    choices: str
    context: str
    reference: str
    answer: str


def sheet_rows(pairs: Sequence[tuple[Run, LabelSet]]) -> list[SheetRow]:
    """Build the rows of one set in the order drawn, or of several sets mixed.

    The answers of several sets are shuffled in blocks of ten items: labellers cannot tell which run
    an answer is from, and stopping early leaves labelled pairs.

    Raises:
        RunError: the records are not those that the set was drawn from.
    """
    rows_by_set = [_read_sheet_rows(run, drawn) for run, drawn in pairs]
    if len(rows_by_set) == 1:
        return rows_by_set[0]
    shuffle = random.Random(" ".join(drawn.name for _, drawn in pairs)).shuffle
    mixed: list[SheetRow] = []
    for start in range(0, max(map(len, rows_by_set)), _TOGETHER):
        block = [row for rows in rows_by_set for row in rows[start : start + _TOGETHER]]
        shuffle(block)
        mixed += block
    return mixed


def check_texts(
    rows: Sequence[SheetRow], pairs: Sequence[tuple[Run, LabelSet]]
) -> None:
    """Check that people can read what they are to label.

    Args:
        rows: The rows of the sheet.
        pairs: The runs with their sets.

    Raises:
        ConfigurationError: a run's records have no answers, or nothing to judge them by.
    """
    for run, drawn in pairs:
        own_rows = [row for row in rows if row.row.startswith(f"{drawn.name}-")]
        lacking = []
        if not any(row.input or row.context or row.reference for row in own_rows):
            lacking.append("questions or articles")
        if not any(row.answer for row in own_rows):
            lacking.append("answers or summaries")
        if lacking:
            raise ConfigurationError(
                f"The run '{run.id}' has scores but no texts: its records have no"
                f" {' and no '.join(lacking)}, so people could not judge them. Nothing was"
                " drawn. Import the run again with its texts, or run the task again."
            )


def _read_sheet_rows(run: Run, drawn: LabelSet) -> list[SheetRow]:
    numbers = {position: number for number, position in enumerate(drawn.rows)}
    tasks = set(drawn.tasks)
    rows_by_number: dict[int, SheetRow] = {}
    position = 0
    for row in run.rows():
        if row["task"] in tasks:
            number = numbers.get(position)
            if number is not None:
                rows_by_number[number] = _sheet_row(row, drawn.row_name(number))
            position += 1
    if len(rows_by_number) != len(numbers):
        raise RunError(
            f"The run '{run.id}' has other records than those that were drawn from."
        )
    return [rows_by_number[number] for number in range(len(numbers))]


def _sheet_row(row: Mapping[str, Any], name: str) -> SheetRow:
    choices = [str(choice) for choice in row.get("choices", ())]
    targets = [str(target) for target in row["targets"]]
    targets = targets or [
        choices[option] for option in row.get("gold", ()) if option < len(choices)
    ]
    return SheetRow(
        row=name,
        **{column: str(row[column]) for column in ("task", "id", "draw", "input")},
        choices="\n".join(choices),
        context="\n\n".join(
            f"[{passage['id']}] {passage['text']}"
            for passage in row.get("passages", ())
        ),
        reference=" | ".join(targets),
        answer=shown_answer(row) or "",
    )
