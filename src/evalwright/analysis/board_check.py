"""Checks a published `board.json` against runs: computes the board again and compares what it says.

A model of the file is matched with a run by the SHA-256 of its samples, else by the run's name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.analysis.model_facts import FROM_TABLE
from evalwright.analysis.words import counted, listed, plural
from evalwright.core.text import printable

RELATIVE_TOLERANCE = 1e-6
ABSOLUTE_TOLERANCE = 1e-9
MAX_LISTED = 20
"""Most differences that are listed; the others are counted."""
MODEL = "model"
"""The number under which models that one of the two boards lacks are listed."""
THERE = "there"

LONGEST_SHOWN = 200
"""Most characters of a text of the file in a message."""
BOARD_FIELDS = ("as_of", "preset", "rank_by", "judges")
"""What is compared of the board as a whole. Its title and citation are its publisher's."""
NODE_FIELDS = ("title", "kind", "keys", "metric", "measure", "lower_is_better", "tasks")
NODE_NUMBERS = ("value", "low", "high", "n", "missing", "rank", "tied")
MODEL_FIELDS = ("label", "model", "run", "date", "facts", "fact_sources", "prompt")
"""Which model a row is of. Without them a row's numbers could stand under another's name."""
FACT_FIELDS = ("facts", "fact_sources", "extra")
"""What comes from a table of facts."""
MODEL_NUMBERS = (
    "rank",
    "tied",
    "items",
    "asked",
    "not_asked",
    "missing",
    "unsure",
    "cost",
    "outcomes",
    "provisional",
    "corrected",
    "judge_errors",
    "extra",
)


@dataclass(frozen=True, slots=True)
class BoardDifference:
    """A number of a published board that differs from the one computed from runs.

    Args:
        model: the model's label; "" for something about the whole board.
        number: which number it is.
        published: what the file says.
        computed: what the runs say.
    """

    model: str
    number: str
    published: Any
    computed: Any

    @property
    def sentence(self) -> str:
        """A sentence with both."""
        of_model = f"{self.model}, " if self.model else ""
        published = _shorten(self.published)
        return (
            f"{of_model}{self.number}: {published} in the file, {_shorten(self.computed)}"
            " from the runs"
        )


@dataclass(frozen=True, slots=True)
class BoardCheck:
    """The outcome of checking a board.

    Args:
        n_numbers: how many numbers and names were compared.
        n_models: how many models of the file are among the runs.
        differences: all numbers that differ.
        has_checked_facts: whether facts about models were compared, too.
    """

    n_numbers: int
    n_models: int
    differences: tuple[BoardDifference, ...]
    has_checked_facts: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        return {
            "n_numbers": self.n_numbers,
            "n_models": self.n_models,
            "differences": [
                {
                    "model": difference.model,
                    "number": difference.number,
                    "published": difference.published,
                    "computed": difference.computed,
                }
                for difference in self.differences
            ],
        }


def check_board(
    published: Mapping[str, Any], computed: Mapping[str, Any]
) -> BoardCheck:
    """Compare the numbers of two boards.

    Args:
        published: the content of the file, with schema 1.
        computed: the board that the runs give, in the same form.
    """
    return _Checker(published, computed).check()


class _Checker:
    """Compares number by number, and counts."""

    def __init__(
        self, published: Mapping[str, Any], computed: Mapping[str, Any]
    ) -> None:
        self._published = published
        self._computed = computed
        self._n_numbers = 0
        self._differences: list[BoardDifference] = []
        self.checks_facts = _is_made_with_facts(published) == _has_facts(computed)
        """Whether both boards have a table of facts, or neither has."""

    def check(self) -> BoardCheck:
        pairs = self._pair_models()
        for published_row, computed_row in pairs:
            self._compare_models(published_row, computed_row)
        self._compare_nodes(pairs)
        for name in BOARD_FIELDS:
            theirs = self._published.get(name)
            self._compare("", name, theirs, self._computed.get(name))
        self._compare_notes()
        return BoardCheck(
            self._n_numbers, len(pairs), tuple(self._differences), self.checks_facts
        )

    def _pair_models(self) -> list[tuple[int, int]]:
        """Match models by the hash of their samples, else by their run; note those without one."""
        theirs = self._published["models"]
        ours = self._computed["models"]
        unpaired = dict(enumerate(ours))
        pairs = []
        unmatched = []
        for row, model in enumerate(theirs):
            match = _find_match(model, unpaired)
            if match is None:
                unmatched.append(row)
                continue
            pairs.append((row, match))
            del unpaired[match]
        for row in unmatched:
            self._differ(theirs[row]["label"], MODEL, THERE, "no such run")
        for model in unpaired.values():
            self._differ(model["label"], MODEL, "not there", THERE)
        return pairs

    def _compare_models(self, published_row: int, computed_row: int) -> None:
        theirs = self._published["models"][published_row]
        ours = self._computed["models"][computed_row]
        label = ours["label"]
        if theirs.get("samples_sha256") and ours.get("samples_sha256"):
            self._compare(
                label,
                "samples_sha256",
                theirs["samples_sha256"],
                ours["samples_sha256"],
            )
        unchecked = () if self.checks_facts else FACT_FIELDS
        for name in (*MODEL_FIELDS, *MODEL_NUMBERS):
            if name in unchecked:
                continue
            self._compare(label, name, theirs.get(name), ours.get(name))
        scores = {**(theirs.get("scores") or {}), **(ours.get("scores") or {})}
        for column in scores:
            self._compare_scores(
                label,
                f"scores.{column}",
                (theirs.get("scores") or {}).get(column),
                (ours.get("scores") or {}).get(column),
            )

    def _compare_scores(self, label: str, name: str, theirs: Any, ours: Any) -> None:
        if not isinstance(theirs, Mapping) or not isinstance(ours, Mapping):
            self._compare(label, name, theirs, ours)
            return
        for field in ("value", "low", "high", "n", "n_missing"):
            self._compare(label, f"{name}.{field}", theirs.get(field), ours.get(field))

    def _compare_nodes(self, pairs: Sequence[tuple[int, int]]) -> None:
        theirs = {node["id"]: node for node in self._published["nodes"]}
        ours = {node["id"]: node for node in self._computed["nodes"]}
        missing_ids = [node_id for node_id in theirs if node_id not in ours]
        added_ids = [node_id for node_id in ours if node_id not in theirs]
        if missing_ids:
            self._differ("", "nodes", listed(missing_ids, 5), "not there")
        if added_ids:
            self._differ("", "nodes", "not there", listed(added_ids, 5))
        for node_id, node in theirs.items():
            if node_id not in ours:
                continue
            for name in NODE_FIELDS:
                of_ours = ours[node_id].get(name)
                self._compare("", f"{node_id} {name}", node.get(name), of_ours)
            self._compare_reasons(node_id, node, ours[node_id], pairs)
            for published_row, computed_row in pairs:
                label = self._computed["models"][computed_row]["label"]
                for name in NODE_NUMBERS:
                    self._compare(
                        label,
                        f"{node_id} {name}",
                        _entry_of(node, name, published_row),
                        _entry_of(ours[node_id], name, computed_row),
                    )

    def _compare_notes(self) -> None:
        """Name notes that the runs do not give, and those that are kept from the reader.

        A reader with published scores gets a note on them that the publisher with samples has not.
        """
        theirs = self._published.get("notes")
        if not isinstance(theirs, list):
            theirs = []
        ours = self._computed.get("notes") or []
        for note in theirs:
            self._compare("", "notes", note, note if note in ours else None)
        if not self._computed.get("numbers_from"):
            for note in ours:
                self._compare("", "notes", note if note in theirs else None, note)

    def _compare_reasons(
        self,
        node_id: str,
        theirs: Mapping[str, Any],
        ours: Mapping[str, Any],
        pairs: Sequence[tuple[int, int]],
    ) -> None:
        """Compare why a node has no number, or no interval, for a model."""
        for published_row, computed_row in pairs:
            label = self._computed["models"][computed_row]["label"]
            published_reasons = theirs.get("reasons")
            if not isinstance(published_reasons, Mapping):
                published_reasons = {}
            published = published_reasons.get(str(published_row))
            computed = (ours.get("reasons") or {}).get(str(computed_row))
            self._compare(label, f"{node_id} reason", published, computed)

    def _compare(self, label: str, name: str, theirs: Any, ours: Any) -> None:
        self._n_numbers += 1
        if not _same(theirs, ours):
            self._differ(label, name, theirs, ours)

    def _differ(self, label: str, name: str, theirs: Any, ours: Any) -> None:
        self._differences.append(BoardDifference(label, name, theirs, ours))


def _is_made_with_facts(board: Mapping[str, Any]) -> bool:
    settings = board.get("settings")
    return isinstance(settings, Mapping) and bool(settings.get("facts"))


def _has_facts(board: Mapping[str, Any]) -> bool:
    """Whether a fact of a model comes from a table."""
    return any(
        FROM_TABLE in (model.get("fact_sources") or {}).values()
        for model in board["models"]
    )


def _find_match(
    model: Mapping[str, Any], unpaired: Mapping[int, Mapping[str, Any]]
) -> int | None:
    digest = model.get("samples_sha256")
    for row, candidate in unpaired.items():
        if digest and candidate.get("samples_sha256") == digest:
            return row
    for row, candidate in unpaired.items():
        if candidate["run"] == model.get("run"):
            return row
    return None


def _entry_of(node: Mapping[str, Any], name: str, row: int) -> Any:
    entries = node.get(name)
    if not isinstance(entries, list) or row >= len(entries):
        return None
    return entries[row]


def _same(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        return theirs.keys() == ours.keys() and all(
            _same(theirs[key], ours[key]) for key in theirs
        )
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(_same, theirs, ours))
    if _is_number(theirs) and _is_number(ours):
        return math.isclose(
            theirs, ours, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE
        )
    return bool(theirs == ours)


def _shorten(content: Any) -> str:
    text = printable(str(content))
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _is_number(content: object) -> bool:
    return isinstance(content, int | float) and not isinstance(content, bool)


def _is_of_all(difference: BoardDifference) -> bool:
    """Tell whether a number is about all models together: a rank, a letter, a note."""
    number = difference.number
    last_word = number.rpartition(" ")[2]
    return last_word in ("rank", "tied") or (
        not difference.model and number in ("judges", "notes")
    )


def check_sentences(check: BoardCheck, file: str) -> Iterator[str]:
    """Say what differs, a sentence for each number up to `MAX_LISTED`."""
    n_numbers = counted(check.n_numbers, "entry", "entries")
    models = counted(check.n_models, "model")
    if not check.differences:
        and_facts = " facts," if check.has_checked_facts else ""
        yield (
            f"'{file}': all {n_numbers} of {models} are those of the runs, names,{and_facts}"
            " judges and notes too. Its title and citation are not checked."
        )
        if not check.has_checked_facts:
            yield (
                "What the table of facts says of the models is not checked: give it, too,"
                " with --facts FILE."
            )
        return
    models_changed = [
        difference for difference in check.differences if difference.number == MODEL
    ]
    removed_models = [
        difference.model
        for difference in models_changed
        if difference.published == THERE
    ]
    added_models = [
        difference.model
        for difference in models_changed
        if difference.published != THERE
    ]
    listable = [
        difference for difference in check.differences if difference.number != MODEL
    ]
    if removed_models:
        yield f"Gone from the board: {listed(removed_models, 10)}."
    if added_models:
        yield f"New on the board: {listed(added_models, 10)}."
    if models_changed:
        # Ranks and notes change with the models that there are, whatever the others scored.
        shifted = [difference for difference in listable if _is_of_all(difference)]
        listable = [difference for difference in listable if not _is_of_all(difference)]
        n_ranks = sum(bool(difference.model) for difference in shifted)
        n_models = len({difference.model for difference in shifted} - {""})
        if n_ranks:
            yield (
                f"{counted(n_ranks, 'rank or letter', 'ranks and letters')} of"
                f" {counted(n_models, 'other model')} shifted with that: --json lists them."
            )
        if n_notes := len(shifted) - n_ranks:
            yield f"{counted(n_notes, 'note')} changed with that: --json lists them."
        moved = sorted({difference.model for difference in listable} - {""})
        if moved:
            yield f"Other numbers have changed, too, of {listed(moved, 10)}:"
        elif not listable:
            n_same = check.n_models
            yield (
                f"The scores of {counted(n_same, 'other model')}"
                f" {plural(n_same, 'is', 'are')} the same."
            )
    for difference in listable[:MAX_LISTED]:
        yield difference.sentence
    n_more = len(listable) - MAX_LISTED
    if n_more > 0:
        yield f"{n_more:,} more differ."
    yield (
        f"'{file}': {len(check.differences):,} of {n_numbers} of {models} differ from"
        " what the runs give."
    )
