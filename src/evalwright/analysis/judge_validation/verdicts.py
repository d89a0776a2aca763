"""A run's verdicts as arrays: one scorer's values for every record, with what the judge's faults may hang on."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import ConfigurationError, EvalwrightError, UnknownName
from evalwright.runs.reader import Run
from evalwright.runs.scores import cluster_code, hashed
from evalwright.scorers.registry import bind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONFIDENCE, ANSWER_FIRST, ANSWER_SECOND = "confidence", "answer_first", "answer_second"
"""Parts of a score that are read: how sure the judge is (0 to 1), and its verdicts with the answer shown first and second."""

_MISSING = float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """One scorer's verdicts on the records of some tasks, in the run's order; every array has the shape (records,).

    values: 0 to 1, nan where there is none. keys: hashed task, id and draw. items: hashed task and id. clusters: draws of
    one item share one, and items of one cluster. answers: hashed answer texts. lengths: characters of answers, nan where
    there is none. confidence, answer_first, answer_second: parts of the score, nan where it has none. digest: of which answers
    were given, whatever was thought of them. graded: whether any verdict lies between 0 and 1.
    """

    run: Run
    scorer: str
    tasks: tuple[str, ...]
    keys: NDArray[np.int64]
    values: NDArray[np.float64]
    items: NDArray[np.int64]
    clusters: NDArray[np.int64]
    answers: NDArray[np.int64]
    lengths: NDArray[np.float64]
    parts: Mapping[str, NDArray[np.float64]]
    digest: str

    @property
    def graded(self) -> bool:
        """Whether any verdict lies between 0 and 1."""
        values = self.values
        return bool((~((values == 0) | (values == 1) | (values != values))).any())


def read_verdicts(run: Run, scorer: str = "", tasks: Sequence[str] = ()) -> Verdicts:
    """The verdicts of a scorer ("": the only one, or the only one that asks a model) on some tasks (none: all that it scored).

    Raises UnknownName for names that the run lacks, ConfigurationError where several scorers could be meant or the values are
    not between 0 and 1, and RunError where the records cannot be read.
    """
    known = [task["name"] for task in run.data["tasks"]]
    for name in tasks:
        if name not in known:
            raise UnknownName(f"task in the run '{run.id}'", name, known)
    read = _Records(tasks or known)
    for row in run.rows():
        read.add(row)
    chosen = _chosen(run, read, scorer)
    found = read.verdicts(run, chosen)
    _check_values(found)
    return found


def shown_answer(row: Mapping[str, Any]) -> str | None:
    """A record's answer as people see it: the text, or the option that was chosen; None where there is none."""
    if "answer" not in row:
        return None
    text, choice, choices = str(row["answer"]), row.get("choice"), row.get("choices", ())
    return str(choices[choice]) if not text and choice is not None and choice < len(choices) else text


class _Records:
    """What one reading of the records keeps of them."""

    def __init__(self, tasks: Sequence[str]) -> None:
        self._wanted = frozenset(tasks)
        self._tasks: array[int] = array("i")
        self._names: dict[str, int] = {}
        self._ints = {name: array("q") for name in ("keys", "items", "clusters", "answers")}
        self._lengths = array("d")
        self._columns: dict[tuple[str, str], array[float]] = {}
        self.seen: dict[str, dict[str, None]] = {}
        self._digests: dict[str, Any] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        task = str(row["task"])
        if task not in self._wanted:
            return
        item, draw, answer = f"{task}\0{row['id']}", row["draw"], shown_answer(row)
        code = hashed(item)
        count = len(self._lengths)
        self._tasks.append(self._names.setdefault(task, len(self._names)))
        self._ints["keys"].append(hashed(f"{item}\0{draw}"))
        self._ints["items"].append(code)
        self._ints["clusters"].append(cluster_code(row.get("cluster"), code))
        self._ints["answers"].append(hashed(answer or ""))
        self._lengths.append(_MISSING if answer is None else len(answer))
        digest = self._digests.setdefault(task, blake2b(digest_size=16))
        digest.update(f"{item}\0{draw}\0{answer}\n".encode(errors="surrogatepass"))
        for name, score in row["scores"].items():
            self.seen.setdefault(task, {})[name] = None
            self._put(name, "", score["value"], count)
            for part in (CONFIDENCE, ANSWER_FIRST, ANSWER_SECOND):
                if part in score.get("parts", ()):
                    self._put(name, part, score["parts"][part], count)

    def _put(self, scorer: str, part: str, value: float | None, place: int) -> None:
        column = self._columns.setdefault((scorer, part), array("d"))
        column.extend([_MISSING] * (place - len(column)))
        column.append(_MISSING if value is None else value)

    def verdicts(self, run: Run, scorer: str) -> Verdicts:
        import numpy as np

        tasks = tuple(name for name in self._names if scorer in self.seen.get(name, ()))
        kept = np.isin(np.frombuffer(self._tasks, np.int32), [self._names[name] for name in tasks])

        def column(part: str) -> NDArray[np.float64]:
            full = np.full(len(kept), np.nan)
            found = self._columns.get((scorer, part), array("d"))
            full[: len(found)] = np.frombuffer(found, np.float64) if found else 0.0
            return full[kept]

        ints = {name: np.frombuffer(values, np.int64)[kept] for name, values in self._ints.items()}
        whole = blake2b(digest_size=16)
        for name in tasks:
            whole.update(f"{name}\0{self._digests[name].hexdigest()}\n".encode(errors="surrogatepass"))
        return Verdicts(
            run=run,
            scorer=scorer,
            tasks=tasks,
            values=column(""),
            lengths=np.frombuffer(self._lengths, np.float64)[kept],
            parts={part: column(part) for part in (CONFIDENCE, ANSWER_FIRST, ANSWER_SECOND)},
            digest=whole.hexdigest(),
            **ints,
        )


def _chosen(run: Run, read: _Records, wanted: str) -> str:
    """The scorer's name."""
    names = list(dict.fromkeys(name for seen in read.seen.values() for name in seen))
    if wanted:
        if wanted not in names:
            raise UnknownName(
                f"scorer in the run '{run.id}'", wanted, names, f"Its scorers: {', '.join(names) or 'none'}."
            )
        return wanted
    if not names:
        raise ConfigurationError(
            f"The run '{run.id}' has no scored answer, so there is nothing to check against people."
        )
    asking = [name for name in names if _asks(run, name)]
    for several in (names, asking):
        if len(several) == 1:
            return several[0]
    raise ConfigurationError(
        f"The run '{run.id}' has several scorers: {', '.join(names)}. Name one with --scorer."
    )


def _asks(run: Run, name: str) -> bool:
    """Whether a scorer of the run asks a model."""
    for task in run.data["tasks"]:
        for scorer in task.get("scorers", ()):
            if scorer["name"] == name:
                try:
                    return bool(bind(scorer["kind"], scorer["options"], name).roles)
                except EvalwrightError:
                    return False  # of a plug-in that is not loaded, or of another framework
    return False


def _check_values(found: Verdicts) -> None:
    import numpy as np

    values = found.values[~np.isnan(found.values)]
    if len(values) and not (values.min() >= 0 and values.max() <= 1):
        least, most = float(values.min()), float(values.max())
        raise ConfigurationError(
            f"The values of the scorer '{found.scorer}' run from {least:g} to {most:g}; people can check verdicts between 0 "
            f"and 1. Name another scorer with --scorer."
        )
    if not len(values) or math.isnan(float(values.sum())):
        raise ConfigurationError(
            f"The scorer '{found.scorer}' gave no verdict on any answer of the run '{found.run.id}'."
        )
