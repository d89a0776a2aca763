"""The twelve dataset classes: published samples equal the recorded ones; each defect of the data part is mended in corrected mode."""

from __future__ import annotations

import ast
import gzip
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evalwright.compat.hret import datasets as hret

datasets = pytest.importorskip("datasets")

FOLDERS = [
    folder / "shared" / "golden" / "hret" / "golden.jsonl.gz" for folder in Path(__file__).resolve().parents
]
GOLDEN = next((path for path in FOLDERS if path.exists()), FOLDERS[0])
SKIPPED_KEYS = {"prediction", "evaluation"}


class Hub:
    """Stands in for `datasets.load_dataset`: tables by repository, subset and split; errors in the library's words."""

    def __init__(self, tables: Mapping[str, Any], *, streams: bool = False) -> None:
        self.tables, self.streams = tables, streams
        self.calls: list[dict[str, Any]] = []

    def __call__(self, path: str, name: str | None = None, *, split: str, **options: Any) -> Any:
        self.calls.append({"path": path, "name": name, "split": split, **options})
        if unknown := set(options) - {"revision", "token"} - ({"streaming"} if self.streams else set()):
            raise ValueError(
                f"BuilderConfig ParquetConfig(name='{name}') doesn't have a '{min(unknown)}' key."
            )
        subsets = self.tables.get(path, {})
        found = subsets.get(name or "default")
        if found is None:
            raise ValueError(f"BuilderConfig '{name}' not found. Available: {sorted(subsets)}")
        if split not in found:
            raise ValueError(f'Unknown split "{split}". Should be one of {sorted(found)}.')
        rows = found[split]
        return iter(rows) if options.get("streaming") else rows


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives rows to `load_dataset` and returns the stand-in."""

    def give(tables: Mapping[str, Any], **options: Any) -> Hub:
        stand_in = Hub(tables, **options)
        monkeypatch.setattr(datasets, "load_dataset", stand_in)
        return stand_in

    return give


def loaded(key: str, mode: str = "corrected", **arguments: Any) -> list[dict[str, Any]]:
    dataset = hret.load_datasets(key, **{"split": "test", **arguments})
    dataset.scoring = mode
    samples: list[dict[str, Any]] = dataset.load()
    return samples


@cache
def recorded() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The recorded runs, and the hub of all their rows."""
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    tables: dict[str, Any] = {}
    for record in records:
        for path, subsets in (record.get("rows") or {}).items():
            for name, splits in subsets.items():
                tables.setdefault(path, {}).setdefault(name, {}).update(splits)
    return records, tables


def runs() -> Iterator[tuple[dict[str, Any], str, dict[str, Any]]]:
    """The recorded calls that read hub rows without few-shot: the record, the dataset's key, the arguments of its class."""
    for record in recorded()[0]:
        call = record["call"]
        # Judges and back ends that overwrite or lose what a row said are recorded too; they are no part of a dataset.
        spoiled = record["name"].startswith(("hf_judge/", "litellm/"))
        if spoiled or not call.startswith("Evaluator().run(") or "few_shot" in call:
            continue
        tree = ast.parse(call).body
        if len(tree) != 1 or not isinstance(tree[0], ast.Expr) or not isinstance(tree[0].value, ast.Call):
            continue
        given = {
            word.arg: ast.literal_eval(word.value)
            for word in tree[0].value.keywords
            if word.arg in ("dataset", "subset", "split", "dataset_params")
        }
        key = given.pop("dataset", "haerae_bench")
        if key in hret.DATASET_REGISTRY and key != "generic_file":
            yield record, key, {"subset": None, **given.pop("dataset_params", {}), **given}


@pytest.mark.skipif(not GOLDEN.exists(), reason="the recorded runs are not here")
def test_published_samples_are_the_recorded_ones(hub: Any) -> None:
    compared: dict[str, int] = {}
    for record, key, arguments in runs():
        hub(record["rows"])
        if not record["samples"]:
            continue
        samples = loaded(key, "published", **arguments)
        assert len(samples) == len(record["samples"]), record["name"]
        for sample, then in zip(samples, record["samples"], strict=True):
            wanted = {name: then[name] for name in sample if name not in SKIPPED_KEYS}
            ours = {name: value for name, value in sample.items() if name not in SKIPPED_KEYS}
            assert ours == wanted, record["name"]
            assert not {"options", "_subset_name", "metadata", "reference"} & (set(then) - set(sample))
        compared[key] = compared.get(key, 0) + len(samples)
    assert len(compared) >= 10, compared


@pytest.mark.skipif(not GOLDEN.exists(), reason="the recorded runs are not here")
def test_what_hret_refuses_to_load_is_refused_in_the_same_words(hub: Any) -> None:
    hub(recorded()[1])
    seen = 0
    for record, key, arguments in runs():
        told = record["metrics"].get("pipeline_error")
        if not record["name"].startswith("ds/") or not told or "allows evaluation" in told:
            continue
        with pytest.raises(ValueError) as caught:
            loaded(key, "published", **arguments)
        assert str(caught.value)[:40] == told[:40], record["name"]
        seen += 1
    assert seen >= 5
