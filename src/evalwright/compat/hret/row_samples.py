"""HRET's sample dict on its way through a native run: the row in a Sample, what was added to it in
an Answer and in Scores.

- `sample.metadata["row"]`: the dict of the dataset, its input with the few-shot prefix
- `answer.strategy["row"]`: what a model or scaling method of a plug-in changed in it; `prediction`
  only where that is no text
- `score.item["row"]`: what a scorer writes into it (`evaluation`, `judge_score`, ...), in the order
  of the scorers
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from evalwright import Answer, Sample, Score
from evalwright.extend import MetricResult, TaskResult

Row = dict[str, Any]
"""A sample as HRET has it."""
Rows = list[Row]
Given = Mapping[str, Any]
"""A row, or parameters by their names, to be read."""

ROW = "row"


class RowPrompt(str):
    """The text of a row's own input, and what a method has put behind it: a request with it is the
    row's own, with its images, turns and options.
    """

    row_text: str

    def __new__(cls, row_text: str, suffix: str = "") -> RowPrompt:
        prompt = super().__new__(cls, row_text + suffix)
        prompt.row_text = row_text
        return prompt

    @property
    def suffix(self) -> str:
        """What was put behind the row's text."""
        return self[len(self.row_text) :]

    def __add__(self, suffix: str) -> RowPrompt:
        return RowPrompt(self.row_text, self.suffix + suffix)


def prompt_of(sample: Sample) -> RowPrompt:
    """The prompt of the sample's own row."""
    return RowPrompt(input_of(sample.metadata.get(ROW, {})))


def row_of(sample: Sample, answer: Answer | None = None) -> dict[str, Any]:
    """A copy of the sample's dict, with an answer the one that HRET's evaluators get: with
    `prediction` and what models added.
    """
    row: dict[str, Any] = copy.deepcopy(dict(sample.metadata.get(ROW, {})))
    return row if answer is None else answered(row, answer)


def answered(row: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """The dict with `prediction` and what models added."""
    thought = {"chain_of_thought": answer.reasoning} if answer.reasoning else {}
    return {
        **row,
        "prediction": answer.text,
        **thought,
        **copy.deepcopy(dict(answer.strategy.get(ROW, {}))),
    }


def input_of(row: Given) -> str:
    """The text of a row's input, which may be {"text", "images"} or a list of chat messages."""
    row_input = row.get("input", "")
    if isinstance(row_input, Mapping):
        row_input = row_input.get("text", "")
    if isinstance(row_input, list):
        return "\n\n".join(
            str(turn.get("content", ""))
            for turn in row_input
            if isinstance(turn, Mapping)
        )
    return "" if row_input is None else str(row_input)


def sample_of(number: int, row: Given, **more: Any) -> Sample:
    """The row as a sample. more: further metadata."""
    options = row.get("options")
    reference = row.get("reference")
    choices = tuple(map(str, options)) if isinstance(options, list | tuple) else ()
    target = "" if reference is None else str(reference)
    recorded_row = plain(row)
    subset = (
        {"subset": str(recorded_row["_subset_name"])}
        if "_subset_name" in recorded_row
        else {}
    )
    return Sample(
        id=f"{number:06}",
        input=input_of(row),
        targets=(target,) if target else (),
        choices=choices,
        gold=(choices.index(target),) if target in choices else (),
        metadata={ROW: recorded_row, **more, **subset},
        cluster=str(row.get("_cluster", "")),
        row=dict(row),
    )


def task_name(*parts: str) -> str:
    """The name of a task of HRET's, made of the names of its parts."""
    name = "-".join(filter(None, ("hret", *parts)))
    return "".join(sign if sign.isalnum() or sign in "._-" else "-" for sign in name)


def scored_row(row: dict[str, Any], scores: Mapping[str, Score]) -> dict[str, Any]:
    """The dict with what the scorers write into it."""
    for score in scores.values():
        row.update((score.item or {}).get(ROW, {}))
    return row


def values_of(metrics: Iterable[MetricResult]) -> dict[str, float]:
    """The metrics that have a number, by their labels."""
    return {
        metric.label: metric.estimate.value
        for metric in metrics
        if metric.estimate.value == metric.estimate.value
    }


def counts_of(scored: TaskResult) -> dict[str, int]:
    """How many samples are missing, and of how many a reader might argue, where there are some."""
    counts = {"n_missing": scored.n_missing, "n_unsure": scored.n_unsure}
    return {name: count for name, count in counts.items() if count}


def plain(value: Any) -> Any:
    """A value as JSON has it: what JSON does not know becomes its text."""
    if isinstance(value, Mapping):
        return {str(key): plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(element) for element in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return str(value)
