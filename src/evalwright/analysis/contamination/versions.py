"""What changed between two versions of a task: samples, wordings, references and metadata.

Samples are matched by id. A sample with a new id but the same content hash counts as renamed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from evalwright.core.samples import Sample
from evalwright.core.tasks import Task

PARTS = ("wording", "references", "metadata")
_HEX = 16


@dataclass(frozen=True, slots=True)
class SampleChange:
    """A sample that differs between two versions.

    Args:
        id: the sample's id.
        what: which parts differ, of "wording", "references" and "metadata".
        before: these parts in the first version.
        after: these parts in the second version.
        hash_before: content hash in the first version.
        hash_after: content hash in the second version.
    """

    id: str
    what: tuple[str, ...]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    hash_before: str
    hash_after: str


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting of the task that differs: its prompt, scorers, metrics or answer."""

    key: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class TaskDiff:
    """The differences between two versions of a task.

    Args:
        a: name of the first task.
        b: name of the second task.
        version_a: its version.
        version_b: its version.
        n_a: number of samples in a.
        n_b: number of samples in b.
        hash_a: content hash of a's samples.
        hash_b: content hash of b's samples.
        unchanged: how many samples are equal.
        added: ids only in b.
        removed: ids only in a.
        renamed: (old id, new id) of samples with equal content.
        changed: samples that differ.
        settings: settings that differ.
    """

    a: str
    b: str
    version_a: str
    version_b: str
    n_a: int
    n_b: int
    hash_a: str
    hash_b: str
    unchanged: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    changed: tuple[SampleChange, ...]
    settings: tuple[SettingChange, ...]

    @property
    def same_scores(self) -> bool:
        """Whether both versions ask and judge the same questions in the same way."""
        judged = any(set(change.what) - {"metadata"} for change in self.changed)
        return not (self.added or self.removed or judged or self.settings)

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return {**plain, "same_scores": self.same_scores}


def diff_tasks(a: Task, b: Task) -> TaskDiff:
    """Compare two versions of a task sample by sample; memory grows with the number of samples."""
    before, after = (
        {sample.id: _sample_contents(sample) for sample in task.samples}
        for task in (a, b)
    )
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    by_content: dict[str, list[str]] = {}
    for name in new:
        by_content.setdefault(_content_hash(after[name]), []).append(name)
    renamed = list[tuple[str, str]]()
    for name in gone:
        same = by_content.get(_content_hash(before[name]))
        if same:
            renamed.append((name, same.pop(0)))

    moved_from, moved_to = ({pair[side] for pair in renamed} for side in (0, 1))
    changed = tuple(
        _describe_change(name, contents, after[name])
        for name, contents in before.items()
        if name in after and contents != after[name]
    )
    return TaskDiff(
        a=a.name,
        b=b.name,
        version_a=a.version,
        version_b=b.version,
        n_a=len(before),
        n_b=len(after),
        hash_a=a.samples.content_hash,
        hash_b=b.samples.content_hash,
        unchanged=len(before) - len(gone) - len(changed),
        added=tuple(name for name in new if name not in moved_to),
        removed=tuple(name for name in gone if name not in moved_from),
        renamed=tuple(renamed),
        changed=changed,
        # Settings that affect requests or scoring; data and names are compared elsewhere.
        settings=tuple(
            SettingChange(key, a.definition.get(key), b.definition.get(key))
            for key in ("prompt", "answer", "scorers", "metrics")
            if a.definition.get(key) != b.definition.get(key)
        ),
    )


def _sample_contents(sample: Sample) -> dict[str, Any]:
    right = (
        sorted(sample.choices[option] for option in sample.gold)
        if sample.choices
        else list(sample.targets)
    )
    return {
        "wording": {
            "input": sample.input,
            "choices": list(sample.choices),
            "passages": [[passage.id, passage.text] for passage in sample.passages],
        },
        "references": right,
        "metadata": {
            **sample.metadata,
            **({"cluster": sample.cluster} if sample.cluster else {}),
        },
    }


def _content_hash(contents: Mapping[str, Any]) -> str:
    """Hash a sample's wording, references and metadata, but not its id."""
    text = json.dumps(contents, sort_keys=True, ensure_ascii=True, default=str)
    return sha256(text.encode()).hexdigest()[:_HEX]


def _describe_change(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> SampleChange:
    changed_aspects = tuple(
        aspect for aspect in PARTS if before[aspect] != after[aspect]
    )
    return SampleChange(
        name,
        changed_aspects,
        {
            aspect: _differing_keys(before[aspect], after[aspect])
            for aspect in changed_aspects
        },
        {
            aspect: _differing_keys(after[aspect], before[aspect])
            for aspect in changed_aspects
        },
        _content_hash(before),
        _content_hash(after),
    )


def _differing_keys(before: Any, after: Any) -> Any:
    """Reduce a mapping to the keys that differ; return anything else unchanged."""
    if not isinstance(before, Mapping):
        return before
    return {
        key: content
        for key, content in before.items()
        if key not in after or after[key] != content
    }
