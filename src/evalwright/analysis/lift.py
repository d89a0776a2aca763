"""What passages add: one run's answers from passages against its answers to the same questions from memory, paired by question.

Both tasks are scored alike (`grounded-answer`: right, or rightly no answer), so the difference is that of the passages. It is
shown over all questions and apart for those that the passages answer and those that they do not: a model that knows nothing and
says so is right on the latter in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import RunError
from evalwright.reports.comparison_sentence import sentence
from evalwright.runs.reader import Run
from evalwright.runs.scores import ItemScores, item_scores, paired_scores
from evalwright.statistics import PairedComparison, compare_paired

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OPEN_BOOK, CLOSED_BOOK = "factual-grounded", "factual-grounded-closed-book"
SCORER, SLICE = "answer", "answerable"
_SHOWN = {"True": "answerable", "False": "not answerable"}


@dataclass(frozen=True, slots=True)
class LiftPart:
    """The comparison over some of the questions: which, with passages minus without, and what it says in a sentence."""

    questions: str
    comparison: PairedComparison
    sentence: str


@dataclass(frozen=True, slots=True)
class Lift:
    """What passages add to one run. parts: all questions first, then by whether the passages answer them."""

    run: str
    open_book: str
    closed_book: str
    scorer: str
    parts: tuple[LiftPart, ...]

    @property
    def conclusion(self) -> str:
        """The sentence over all questions."""
        return self.parts[0].sentence

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        return {
            "run": self.run,
            "open_book": self.open_book,
            "closed_book": self.closed_book,
            "scorer": self.scorer,
            "parts": [
                {"questions": part.questions, "sentence": part.sentence, **part.comparison.as_dict()}
                for part in self.parts
            ],
            "conclusion": self.conclusion,
        }


def passages_lift(
    run: Run,
    open_book: str = OPEN_BOOK,
    closed_book: str = CLOSED_BOOK,
    *,
    scorer: str = SCORER,
    by: str = SLICE,
    level: float = 0.95,
) -> Lift:
    """Compare two tasks of one run that ask the same questions, with and without passages.

    scorer: the column that both have. by: the metadata key whose values are shown apart. Questions are paired by id, and those on
    the same passages are one cluster. Raises RunError where a task or its scores are missing, or no question is shared.
    """
    _check(run, (open_book, closed_book), scorer)
    found = item_scores(run, {open_book: scorer, closed_book: scorer}, [by])
    keys, (with_passages, without), clusters = paired_scores(found[open_book], found[closed_book])
    if not len(keys):
        raise RunError(
            f"The tasks '{open_book}' and '{closed_book}' of the run '{run.id}' share no question, so nothing can be paired."
        )
    parts = [_part("all", with_passages, without, clusters, level)]
    for name, chosen in _groups(found[open_book], keys, by):
        some = None if clusters is None else clusters[chosen]
        parts.append(
            _part(
                _SHOWN.get(name, f"{by}: {name}") if by == SLICE else f"{by}: {name}",
                with_passages[chosen],
                without[chosen],
                some,
                level,
            )
        )
    return Lift(run.id, open_book, closed_book, scorer, tuple(parts))


def _part(
    questions: str,
    with_passages: NDArray[np.float64],
    without: NDArray[np.float64],
    clusters: NDArray[np.int64] | None,
    level: float,
) -> LiftPart:
    found = compare_paired(with_passages, without, clusters=clusters, level=level)
    return LiftPart(questions, found, sentence(found, "the model with passages", "the model without them"))


def _groups(scores: ItemScores, keys: NDArray[np.int64], by: str) -> list[tuple[str, NDArray[np.bool_]]]:
    """The values of a metadata key, each with its questions among `keys`."""
    import numpy as np

    codes = scores.slices.get(by)
    if codes is None:
        return []
    places = np.searchsorted(scores.keys, keys)
    own = codes.codes[places]
    order: Sequence[str] = sorted(codes.names, reverse=True)
    groups = [(name, own == codes.names.index(name)) for name in order]
    return [(name, chosen) for name, chosen in groups if chosen.any()]


def _check(run: Run, tasks: tuple[str, str], scorer: str) -> None:
    records = {record["name"]: record for record in run.data["tasks"]}
    for task in tasks:
        if task not in records:
            there = ", ".join(sorted(records)) or "none"
            raise RunError(
                f"The run '{run.id}' has no task '{task}'; it has: {there}. Both are needed in one run: "
                f"`evalwright run {' '.join(tasks)} --model ...`."
            )
    for task in tasks:
        columns = [one["name"] for one in records[task]["scorers"]]
        if scorer not in columns:
            raise RunError(
                f"On '{task}' the run '{run.id}' has no scores by '{scorer}', but by {', '.join(columns)}. Name another with "
                f"--scorer, or score it again with `evalwright score`."
            )
