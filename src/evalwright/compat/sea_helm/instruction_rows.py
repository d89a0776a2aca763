"""What the two IFEval tasks ask of an answer, as our scorers of instructions read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalwright import Sample, UsageError
from evalwright.compat.sea_helm.sea_task import Row, SeaTask
from evalwright.extend import Scorer, ScoringError, TaskError

SUBCATEGORY = "subcategories."
"""Before the name of a kind of instruction, or of a phenomenon, in a number's name."""
FORMS: Sequence[Mapping[str, Any]] = tuple(
    {"count": count, "loose": loose}
    for loose in (False, True)
    for count in ("all", "share")
)
"""Options of the scorer `instructions`, for each number of a row of Google's set."""


def english_instructions(row: Row) -> dict[str, Any]:
    """Metadata of a row of Google's set."""
    return {
        "kinds": row["metadata"]["instruction_id_list"],
        "settings": row["kwargs"],
    }


def language_instructions(row: Row) -> dict[str, Any]:
    """Metadata of a row of SEA-HELM's own set, which has one instruction."""
    metadata = row["metadata"]
    settings = (row["kwargs"] or [None])[0] or {}
    response_language = (
        settings.get("response_language")
        if metadata.get("category") == "language"
        else None
    )
    return {
        "kinds": [str(metadata["subcategory"])],
        "settings": [settings],
        "answer_language": response_language or "",
    }


def instruction_kinds(
    task: SeaTask,
    rows: Sequence[Row],
    metadata_of: Callable[[Row], Mapping[str, Any]],
    scorer: Scorer,
) -> list[str]:
    """The kinds of instructions that rows have. Raises TaskError for a row that the scorer refuses,
    or that is no such row.
    """
    kinds: set[str] = set()
    for row_index, row in enumerate(rows):
        try:
            metadata = metadata_of(row)
            if scorer.refuse is not None:
                scorer.refuse(Sample(str(row.get("id", row_index)), metadata=metadata))
        except (UsageError, ScoringError, LookupError, TypeError) as error:
            reason = (
                error
                if isinstance(error, UsageError | ScoringError)
                else f"it has no {error}."
            )
            raise TaskError(
                f"Row {row_index + 1:,} of '{task.name}' ({task.language}): {reason}"
            ) from None
        kinds.update(metadata["kinds"])
    return sorted(kinds)
