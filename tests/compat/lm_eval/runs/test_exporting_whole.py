"""Every field of the files that lm_eval 0.4.13 wrote, against ours for the same model and tasks;
each that may differ is named with its reason.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.lm_eval.runs.lm_eval_0_4_13.table.record import RUNS, TASKS, table_model
from evalwright.compat.lm_eval import LM, simple_evaluate

pytest.importorskip("datasets")

TABLE = Path(__file__).parent / "lm_eval_0_4_13" / "table"
DIFFERENT = {
    "date": "time",
    "total_evaluation_time_seconds": "time",
    "pretty_env_info": "host",
    "git_hash": "the checkout in the working folder: theirs shortened, ours whole",
    "upper_git_hash": "the checkout around it",
    "transformers_version": "version",
    "lm_eval_version": "version; ours says that it wrote the file",
    "model_name": "a model made in Python has no name there: eight random letters",
    "model_name_sanitized": "the same",
    "evalwright": "ours alone: how many samples failed, which their files have no place for",
}
ADDRESS = re.compile(r"<function \w+ at 0x[0-9a-f]+>")
"""What they write of a function of shots: where it lay in memory. Ours is its name in the file."""


@pytest.mark.parametrize("name", RUNS)
def test_every_field_is_theirs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("tasks", "train.jsonl", "test.jsonl"):
        (shutil.copytree if part == "tasks" else shutil.copy)(
            TABLE / part, tmp_path / part
        )
    monkeypatch.chdir(tmp_path)
    ours = simple_evaluate(
        table_model(LM),
        tasks=TASKS,
        include_path="tasks",
        trust=["tasks"],
        **RUNS[name],
    )
    ours = json.loads(json.dumps(ours).replace(str(tmp_path), "."))
    theirs = json.loads((TABLE / name / "results.json").read_text(encoding="utf-8"))
    samples = ours.pop("samples")
    assert {*ours, *theirs} >= set(DIFFERENT)
    for key in DIFFERENT:
        ours.pop(key, None), theirs.pop(key, None)
    assert list(differences(ours, theirs)) == []
    assert list(samples) == list(theirs["results"])[: len(samples)]
    for task, lines in samples.items():
        text = (TABLE / name / f"samples_{task}.jsonl").read_text(encoding="utf-8")
        wanted = [json.loads(line) for line in text.splitlines()]
        assert list(differences([written(line) for line in lines], wanted, task)) == []


def written(line: dict[str, Any]) -> dict[str, Any]:
    """A sample of the dictionary as their writer spells it."""
    arguments = {
        f"gen_args_{place}": {f"arg_{number}": part for number, part in enumerate(one)}
        for place, one in enumerate(line["arguments"])
    }
    parts = {name: spelled(line[name]) for name in ("resps", "filtered_resps")}
    return {**line, **parts, "arguments": arguments, "target": str(line["target"])}


def spelled(value: Any) -> Any:
    return (
        [spelled(one) for one in value]
        if isinstance(value, list | tuple)
        else str(value)
    )


def differences(ours: Any, theirs: Any, where: str = "") -> Iterator[str]:
    """Where two values differ.

    Numbers are equal by value (31 and 31.0); a truth value is none. Outer keys have their order
    too.
    """
    if isinstance(ours, dict) and isinstance(theirs, dict):
        ordered = where.startswith(("/results", "/groups")) or where.count("/") == 1
        if ordered and list(ours) != list(theirs):
            yield f"{where}: {list(ours)} here, {list(theirs)} there"
        for key in {**ours, **theirs}:
            if key not in ours or key not in theirs:
                yield f"{where}/{key}: only {'here' if key in ours else 'there'}"
            else:
                yield from differences(ours[key], theirs[key], f"{where}/{key}")
    elif (
        isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs)
    ):
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{where}[{place}]")
    elif isinstance(theirs, str) and ADDRESS.fullmatch(theirs):
        if not str(ours).startswith("!function "):
            yield f"{where}: {ours!r} here, a function there"
    elif {type(ours), type(theirs)} <= {int, float}:
        if not math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-12):
            yield f"{where}: {ours!r} here, {theirs!r} there"
    elif type(ours) is not type(theirs) or ours != theirs:
        yield f"{where}: {ours!r} here, {theirs!r} there"
