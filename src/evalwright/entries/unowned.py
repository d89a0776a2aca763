"""Results without an entry: imported ones, and those of entries that were deleted or renamed.

The board goes on showing them. Whoever is no maintainer cannot put another model in their place,
by taking the name of their folder or what the board calls them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evalwright.entries.board_file import RESULTS_FOLDER, BoardFile
from evalwright.entries.entry_file import Entry
from evalwright.entries.imitation import last_part, looks_of
from evalwright.entries.problems import Problem, shown_text
from evalwright.runs.reader import list_runs


@dataclass(frozen=True, slots=True)
class UnownedResult:
    """What the board shows of a folder of results that belongs to no entry.

    Attributes:
        name: the folder's name.
        label: what the board calls the model.
        model: the model's name in the record.
    """

    name: str
    label: str
    model: str

    def is_of(self, entry: Entry) -> bool:
        """Whether the entry asks the model that the results are of."""
        return last_part(self.model) == last_part(entry.model)


def unowned_results(
    board: BoardFile, entry_names: Iterable[str]
) -> list[UnownedResult]:
    """Find what the board shows without having an entry for it.

    Args:
        board: the board.
        entry_names: the names of its entries.

    Returns:
        A row for each label and model; records that cannot be read have none, since they stop
        the commands that show them.
    """
    folder = board.results_folder
    if not folder.is_dir():
        return []
    entry_name_set = set(entry_names)
    rows = {
        UnownedResult(result_folder.name, run.label, run.shown_model): None
        for result_folder in sorted(folder.iterdir())
        if result_folder.name not in entry_name_set
        and result_folder.is_dir()
        and not result_folder.is_symlink()
        for run in list_runs(result_folder)
    }
    return list(rows)


def check_places(
    proposed: Sequence[Entry],
    present: Sequence[Entry],
    board: BoardFile,
    author: str,
) -> list[Problem]:
    """Find entries that would take the place of results that belong to no entry.

    Args:
        proposed: what a pull request adds or changes.
        present: the entries that the board has after it, beside these.
        board: the board, which names its maintainers.
        author: whose pull request it is; "" where that is not known.
    """
    if not author or board.entries.is_maintainer(author):
        return []
    results = unowned_results(board, (entry.name for entry in present))
    problems = []
    for entry in proposed:
        others = [result for result in results if not result.is_of(entry)]
        sentence = _taken_place(entry, others)
        if sentence:
            key = "label" if entry.label else "model"
            problems.append(entry.problem(key, sentence))
    return problems


def _taken_place(entry: Entry, results: Sequence[UnownedResult]) -> str:
    """Say whose place an entry would take; "" if nobody's."""
    looks = looks_of(entry.shown_name)
    for result in results:
        result_path = f"{RESULTS_FOLDER}/{result.name}"
        owner = f"{shown_text(result.label)} ({shown_text(result.model)})"
        if result.name == entry.name:
            return (
                f"{result_path} has results of {owner}, which has no entry: give the file of"
                " another model another name, or ask a maintainer."
            )
        if looks_of(result.label) == looks:
            return (
                f"{shown_text(entry.shown_name)} looks like {owner} in {result_path}, which has no"
                " entry: give it a label that tells them apart, or ask a maintainer."
            )
    return ""
