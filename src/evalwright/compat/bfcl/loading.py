"""Makes tasks of BFCL's categories, and says how a recorded run of one is scored again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from evalwright import Message, Sample, Task
from evalwright.compat.bfcl.averages import DIALECT
from evalwright.compat.bfcl.expected import expected_calls
from evalwright.compat.bfcl.files import (
    BfclRow,
    Category,
    category_of,
    find_categories,
    read_category,
)
from evalwright.compat.bfcl.published import bfcl_score
from evalwright.compat.bfcl.tool_definitions import offered_tools
from evalwright.extend import (
    SCORINGS,
    ListedTask,
    MetricSpec,
    Prompt,
    Scorer,
    ScoringRules,
    Setup,
    Strategy,
    bind_scorer,
    bind_strategy,
    check_known,
    task_from_definition,
)

CALLS = "calls"
"""The metadata with the calls that the corrected scoring expects."""
CHECKED = "bfcl"
"""The metadata with what BFCL's own rules read."""
MAX_TOKENS = 4096


def names(roots: Sequence[Path]) -> Sequence[ListedTask]:
    """List the categories whose files are in the folders, or in the installed package."""
    categories = find_categories(roots)
    return [
        ListedTask(name, "task", str(category.questions))
        for name, category in sorted(categories.items())
    ]


def load(
    name: str, settings: Mapping[str, Any], *, prompt_format: str, chat: bool
) -> list[Task]:
    """Make the task of a category.

    Raises:
        TaskError: the category cannot be run, or its files are missing.
        UnknownName: there is no such category.
    """
    scoring = _scoring(settings)
    category = category_of(name, settings.get("task_root") or ())
    rows = list(read_category(category))
    task_name = f"{DIALECT}:{category.name}"
    definition = {
        "task": category.name,
        "description": f"BFCL {category.version}, category {category.name}.",
        "tools": "{{ tools }}",
        "prompt": {"user": "{{ input }}"},
        "answer": {"max_tokens": MAX_TOKENS},
        "scorers": ["outcome"],  # replaced below
        "metadata": {"language": "en", "licence": "Apache-2.0"},
    }
    task = task_from_definition(
        definition,
        chat=chat,
        samples=BfclSamples(rows, category),
    )
    scorers, metrics = _scoring_of(category.name, category.language, scoring)
    record = {
        "dialect": DIALECT,
        "task": category.name,
        "version": category.version,
        "scoring": scoring,
        "language": category.language,
    }
    return [
        replace(
            task,
            name=task_name,
            strategy=_with_all_messages(task.strategy),
            definition=record,
            scorers=scorers,
            metrics=metrics,
            score_as_empty=_as_empty(category.name, scoring),
        )
    ]


def rules(
    task: Mapping[str, Any],
    configuration: Mapping[str, Any],
    first: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> ScoringRules:
    """Say how a recorded task is scored again, without its files."""
    definition = task.get("definition") or {}
    scoring = _scoring(settings, str(definition.get("scoring") or SCORINGS[0]))
    category = str(definition.get("task") or str(task["name"]).partition(":")[2])
    language = str(definition.get("language") or "python")
    scorers, metrics = _scoring_of(category, language, scoring)
    return ScoringRules(scorers, metrics, as_empty=_as_empty(category, scoring))


def _scoring(settings: Mapping[str, Any], default: str = SCORINGS[0]) -> str:
    scoring = str(settings.get("scoring") or default)
    check_known("scoring", [scoring], SCORINGS)
    return scoring


def _scoring_of(
    category: str, language: str, scoring: str
) -> tuple[tuple[Scorer, ...], tuple[MetricSpec, ...]]:
    """Return scorers and metrics; answers in Java and JavaScript are read by BFCL's rules only."""
    by_own_rules = language == "python" and category != "live_relevance"
    scorer = (
        bind_scorer("tool-calls", {"expected": CALLS})
        if scoring == "corrected" and by_own_rules
        else Scorer(DIALECT, DIALECT, {}, bfcl_score)
    )
    return (scorer,), (MetricSpec("accuracy", "accuracy", scorer.name),)


def _as_empty(category: str, scoring: str) -> tuple[Any, ...]:
    """Return the outcomes that are scored as an empty answer.

    BFCL counts an empty reply as right where no call is wanted.
    """
    no_call = category.endswith("irrelevance")
    return ("cut", "empty") if no_call and scoring == "published" else ()


def _sample(row: BfclRow, category: Category) -> Sample:
    """Make the sample of a row, with what both scorings read in its metadata."""
    functions = [
        {
            "name": function["name"],
            "parameters": {
                "required": list(function["parameters"]["required"]),
                "properties": {
                    name: _types(schema)
                    for name, schema in function["parameters"]["properties"].items()
                },
            },
        }
        for function in row.functions
    ]
    question = next(
        (turn["content"] for turn in reversed(row.turns) if turn["role"] == "user"), ""
    )
    metadata: dict[str, Any] = {
        CALLS: expected_calls(row.possible, row.functions),
        CHECKED: {
            "category": category.name,
            "language": category.language,
            "functions": functions,
            "possible": list(row.possible),
        },
        "language": "en",
    }
    return Sample(
        row.id,
        question,
        metadata=metadata,
        row={
            "turns": list(row.turns),
            "tools": offered_tools(row.functions, category.language),
        },
    )


def _types(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the rules read of a parameter's description."""
    types = {"type": schema["type"]}
    element_schema = schema.get("items")
    if isinstance(element_schema, Mapping) and "type" in element_schema:
        types["items"] = {"type": element_schema["type"]}
    return types


class BfclSamples:
    """The samples of a category (`core.tasks.SampleSource`)."""

    def __init__(self, rows: Sequence[BfclRow], category: Category) -> None:
        self._rows = rows
        self._category = category

    @cached_property
    def content_hash(self) -> str:
        """Hash of all rows."""
        digest = hashlib.blake2b(digest_size=16)
        for row in self._rows:
            digest.update(json.dumps(asdict(row), sort_keys=True).encode())
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int, /) -> Sample:
        return _sample(self._rows[index], self._category)


def _with_all_messages(strategy: Any) -> Strategy:
    """Return the strategy with the prompts of BFCL: a few have a system message or a history."""
    setup = Setup(render=_messages, sampling=strategy.sampling, tools=strategy.tools)
    return bind_strategy("single-draw", setup)


def _messages(sample: Sample) -> Prompt:
    return tuple(Message(turn["role"], turn["content"]) for turn in sample.row["turns"])
