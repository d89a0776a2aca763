"""A run's verdicts as arrays, with the facts on which a judge's faults may depend."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.words import counted
from evalwright.core.errors import (
    ConfigurationError,
    EvalwrightError,
    UnknownName,
    check_known,
)
from evalwright.runs.reader import Run
from evalwright.runs.scores import NAN, cluster_code, hashed
from evalwright.scorers.registry import bind

CONFIDENCE, ANSWER_FIRST, ANSWER_SECOND = PARTS = (
    "confidence",
    "answer_first",
    "answer_second",
)
"""Parts of a score that are read.

They are the judge's confidence (0 to 1), and its verdicts with the answer shown first and
second.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """One scorer's verdicts on the records of some tasks, in the run's order, (records,) each.

    Args:
        run: the run.
        scorer: the scorer.
        tasks: the tasks.
        task_codes: the position of each record's task in `tasks`.
        keys: hashed task, id and draw.
        values: 0 to 1, nan without a verdict.
        items: hashed task and id.
        clusters: shared by the draws of an item, and by the items of a cluster.
        answers: hashed answer texts.
        lengths: characters of answers, nan without one.
        parts: of the score, by the names in PARTS, nan without one.
        unsure: which verdicts a careful reader might dispute.
        digest: of the answers, independent of their scores.
    """

    run: Run
    scorer: str
    tasks: tuple[str, ...]
    task_codes: NDArray[np.int64]
    keys: NDArray[np.int64]
    values: NDArray[np.float64]
    items: NDArray[np.int64]
    clusters: NDArray[np.int64]
    answers: NDArray[np.int64]
    lengths: NDArray[np.float64]
    parts: Mapping[str, NDArray[np.float64]]
    unsure: NDArray[np.bool_]
    digest: str

    @property
    def graded(self) -> bool:
        """Whether any verdict is between 0 and 1."""
        values = self.values
        return bool((~((values == 0) | (values == 1) | (values != values))).any())


def read_verdicts(run: Run, scorer: str = "", tasks: Sequence[str] = ()) -> Verdicts:
    """Read the verdicts of a scorer on some tasks.

    Args:
        run: the run.
        scorer: "" for the only one, or the only one that uses a model.
        tasks: by default all that it scored.

    Raises:
        UnknownName: the run lacks a name.
        ConfigurationError: several scorers fit, or values are not between 0 and 1.
        RunError: the records cannot be read.
    """
    task_names = [task["name"] for task in run.data["tasks"]]
    check_known("task", tasks, task_names, f"The run '{run.id}' has ")
    records = Records(run, tasks or task_names)
    chosen = _choose_scorer(run, records.scorers, scorer)
    scored = [name for name in records.digests if (name, chosen) in records.scored]
    task_codes = records.ints("tasks")
    scored_codes = [list(records.digests).index(name) for name in scored]
    is_scored = np.isin(task_codes, scored_codes)
    digest = blake2b(digest_size=16)
    for name in scored:
        digest.update(
            f"{name}\0{records.digests[name].hexdigest()}\n".encode(
                errors="surrogatepass"
            )
        )
    verdicts = Verdicts(
        run=run,
        scorer=chosen,
        tasks=tuple(scored),
        task_codes=np.searchsorted(scored_codes, task_codes)[is_scored],
        values=records.column(chosen)[is_scored],
        lengths=records.lengths[is_scored],
        unsure=records.unsure(chosen)[is_scored],
        parts={part: records.column(chosen, part)[is_scored] for part in PARTS},
        digest=digest.hexdigest(),
        **{
            name: records.ints(name)[is_scored]
            for name in ("keys", "items", "clusters", "answers")
        },
    )
    _check_values(verdicts)
    return verdicts


def shown_answer(row: Mapping[str, Any]) -> str | None:
    """Return a record's answer as people see it: the text, or the chosen option.

    None without one.
    """
    if "answer" not in row or "failure" in row:
        return None
    text = str(row["answer"])
    choice = row.get("choice")
    choices = row.get("choices", ())
    return (
        str(choices[choice])
        if not text and choice is not None and choice < len(choices)
        else text
    )


def log_lengths(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute log(length / median length) of answers, nan for an empty answer or none."""
    positive = lengths[lengths > 0]
    logarithms = np.full(len(lengths), np.nan)
    return np.log(
        lengths / (np.median(positive) if len(positive) else 1.0),
        out=logarithms,
        where=lengths > 0,
    )


class Records:
    """The records of some tasks of a run as columns, read once.

    Args:
        run: the run.
        tasks: by default all.
        parts: the parts of scores to keep.

    Attributes:
        digests: of the answers, by task.
        scored: pairs of task and scorer that have a score.
    """

    def __init__(
        self, run: Run, tasks: Sequence[str] = (), parts: Sequence[str] = PARTS
    ) -> None:
        self.digests: dict[str, Any] = {}
        self.scored: set[tuple[str, str]] = set()
        self.scorers: dict[str, None] = {}
        self._ints = {
            name: array("q")
            for name in ("tasks", "keys", "items", "clusters", "answers")
        }
        self._lengths = array("d")
        self._columns: dict[tuple[str, str], array[float]] = {}
        self._unsure: dict[str, list[int]] = {}
        self._places: dict[str, int] = {}
        task_names = frozenset(tasks)
        for row in run.rows():
            if not task_names or row["task"] in task_names:
                self._add(row, parts)

    def _add(self, row: Mapping[str, Any], parts: Sequence[str]) -> None:
        task = str(row["task"])
        draw = row["draw"]
        answer = shown_answer(row)
        name = f"{task}\0{row['id']}"
        item_key = hashed(name)
        codes = {
            "tasks": self._places.setdefault(task, len(self._places)),
            "keys": hashed(f"{name}\0{draw}"),
            "items": item_key,
            "clusters": cluster_code(row.get("cluster"), item_key),
            "answers": hashed(answer or ""),
        }
        for key, code in codes.items():
            self._ints[key].append(code)
        position = len(self._lengths)
        self._lengths.append(NAN if answer is None else len(answer))
        digest = self.digests.setdefault(task, blake2b(digest_size=16))
        digest.update(f"{name}\0{draw}\0{answer}\n".encode(errors="surrogatepass"))
        for scorer, score in row["scores"].items():
            self.scored.add((task, scorer))
            self.scorers[scorer] = None
            if score.get("unsure"):
                self._unsure.setdefault(scorer, []).append(position)
            score_parts = score.get("parts", {})
            for part in ("", *(part for part in parts if part in score_parts)):
                code = score_parts[part] if part else score["value"]
                column = self._columns.setdefault((scorer, part), array("d"))
                column.extend([NAN] * (position - len(column)))
                column.append(NAN if code is None else code)

    def ints(self, name: str) -> NDArray[np.int64]:
        """Return a column of hashes or codes, (records,)."""
        return np.frombuffer(self._ints[name], np.int64)

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Characters of answers, (records,), nan without one."""
        return np.frombuffer(self._lengths, np.float64)

    def unsure(self, scorer: str) -> NDArray[np.bool_]:
        """Return which records have an unsure score by this scorer, (records,)."""
        is_unsure = np.zeros(len(self._lengths), np.bool_)
        is_unsure[self._unsure.get(scorer, [])] = True
        return is_unsure

    def column(self, scorer: str, part: str = "") -> NDArray[np.float64]:
        """Return a scorer's values, or a part of its scores, (records,)."""
        full = np.full(len(self._lengths), np.nan)
        recorded = self._columns.get((scorer, part))
        if recorded:
            full[: len(recorded)] = np.frombuffer(recorded, np.float64)
        return full


def _choose_scorer(run: Run, scorers: Mapping[str, None], scorer_name: str) -> str:
    """Choose the scorer: the named one, the only one, or the only one that uses a model."""
    names = list(scorers)
    if scorer_name:
        if scorer_name not in names:
            scorers_sentence = f"Its scorers: {', '.join(names) or 'none'}."
            raise UnknownName(
                f"scorer in the run '{run.id}'", scorer_name, names, scorers_sentence
            )
        return scorer_name
    if not names:
        raise ConfigurationError(
            f"The run '{run.id}' has no scored answer, so there is nothing to label."
        )
    asking = [name for name in names if _asks_model(run, name)]
    for candidates in (names, asking):
        if len(candidates) == 1:
            return candidates[0]
    listed = ", ".join(names)
    raise ConfigurationError(
        f"The run '{run.id}' has several scorers: {listed}. Name one with --scorer"
        f"{_suggest_scorer(run, names, asking)}."
    )


def _suggest_scorer(run: Run, names: Sequence[str], asking: Sequence[str]) -> str:
    """Suggest a scorer: one that asks a model, else the one behind most main metrics."""
    if asking:
        return f", such as {asking[0]}, which asks a model"
    counts = Counter(
        task.main.scorer
        for task in run.tasks
        if task.main and task.main.scorer in names
    )
    if not counts:
        return ""
    ((scorer, n_tasks),) = counts.most_common(1)
    return (
        f", such as {scorer}, which gives the main metric of {n_tasks} of"
        f" {counted(len(run.tasks), 'task')}"
    )


def _asks_model(run: Run, name: str) -> bool:
    """Tell whether a scorer uses a model; False if its plug-in or framework is not loaded."""
    recorded_scorers = (
        recorded_scorer
        for task in run.data["tasks"]
        for recorded_scorer in task.get("scorers", ())
        if recorded_scorer["name"] == name
    )
    try:
        return any(
            bind(recorded_scorer["kind"], recorded_scorer["options"], name).roles
            for recorded_scorer in recorded_scorers
        )
    except EvalwrightError:
        return False


def _check_values(verdicts: Verdicts) -> None:
    values = verdicts.values[~np.isnan(verdicts.values)]
    if not len(values):
        raise ConfigurationError(
            f"The scorer '{verdicts.scorer}' gave no verdict in the run '{verdicts.run.id}'."
        )
    if not (values.min() >= 0 and values.max() <= 1):
        raise ConfigurationError(
            f"The values of the scorer '{verdicts.scorer}' run from {values.min():g} to"
            f" {values.max():g}; people can check verdicts between 0 and 1. Name"
            " another scorer with --scorer."
        )
