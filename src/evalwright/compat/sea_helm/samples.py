"""The rows of a task as samples."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from evalwright import Sample
from evalwright.compat.sea_helm.conversations import Shots, conversation
from evalwright.compat.sea_helm.sea_task import Row, SeaTask
from evalwright.compat.sea_helm.task_rows import load_rows, unset

TRANSLATED = (
    "belebele-qa-mc",
    "qa-mc",
    "global_mmlu",
    "mt-bench",
    "if-eval",
    "causal",
    "nli",
    "translation-",
    "xm3600",
    "world_cuisine",
)
"""Tasks whose languages ask the same items: translations of one text have one id."""
_NOT_KEPT = ("images", "image_files", "prompt_templates", "test_cases")
"""Of a row in the record: bytes, tests that are to stay private, and what nothing reads."""


class Samples:
    """The rows that are asked (`core.tasks.SampleSource`).

    What needs the data is read when it is first needed.
    """

    def __init__(
        self, task: SeaTask, shots: int, tokenizer: str, slices: Sequence[str] = ()
    ) -> None:
        """slices: keys of a row's metadata that metrics go by."""
        self.task = task
        self._count = shots
        self._tokenizer = tokenizer
        self.slices = slices

    @cached_property
    def rows(self) -> Sequence[Row]:
        """All rows."""
        return load_rows(self.task, tokenizer=self._tokenizer)

    @cached_property
    def shots(self) -> Shots:
        """The examples of each row."""
        return Shots(self.task, self._count)

    @cached_property
    def _facts(self) -> tuple[str, Sequence[str], Sequence[str]]:
        """The hash of all rows and examples, the samples' ids, and the labels that are one text."""
        digest = hashlib.blake2b(digest_size=16)
        labels = set[str]()
        names: list[str] = []
        for row in self.rows:
            digest.update(_line(row))
            names.append("" if row.get("id") is None else str(row["id"]))
            labels |= {row["label"]} if isinstance(row.get("label"), str) else set()
        for row in self.shots.pool:
            digest.update(_line(row))
        often = Counter(names)
        ids = [
            name if name and often[name] == 1 else f"{name}#{name_index}"
            for name_index, name in enumerate(names)
        ]
        return digest.hexdigest(), ids, sorted(labels)

    @property
    def content_hash(self) -> str:
        """Of all rows and all examples."""
        return self._facts[0]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int, /) -> Sample:
        task = self.task
        row = self.rows[index]
        place = index % len(self.rows)
        label = row.get("label")
        labels = [] if label is None else [label]
        if isinstance(label, list):
            labels = label
        targets = tuple(
            label_text if isinstance(label_text, str) else _json(label_text)
            for label_text in labels
        )
        gold: dict[str, Any] = {}
        if task.is_twin and targets:
            choices = targets[:1] if task.published else tuple(self._facts[2])
            gold = {
                "choices": choices,
                "gold": (choices.index(targets[0]),) if targets[0] in choices else (),
            }
        kept_row = {key: value for key, value in row.items() if key not in _NOT_KEPT}
        about = {
            "language": task.language,
            "competency": str(task.config["competency"]),
            "index": place,
        }
        sliced = {
            key: str((row.get("metadata") or {}).get(key, "")) for key in self.slices
        }
        question = "" if unset(task, row) else conversation(task, kept_row)[-1].text
        facts = {**about, "row": kept_row, **sliced}
        cluster = cluster_of(task, row)
        return Sample(
            self._facts[1][place],
            question,
            targets,
            **gold,
            metadata=facts,
            cluster=cluster,
        )


def _json(value: Any, **more: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str, **more)


def _line(row: Row) -> bytes:
    return f"{_json(row, sort_keys=True)}\n".encode("utf-8", "surrogatepass")


def cluster_of(task: SeaTask, row: Row) -> str:
    """What a row's item is called in every language that it is translated into; "" where it stands
    for itself.
    """
    metadata = row.get("metadata") or {}
    source_id = metadata.get("sample_id") or row.get("id")
    name = task.plain_name
    if source_id is None or not name.startswith(TRANSLATED):
        return ""
    return (
        f"{name}:{re.sub(rf'(?i)[_-]{re.escape(task.language)}$', '', str(source_id))}"
    )
