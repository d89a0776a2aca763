"""Runs as results of lm_eval: against files that its release wrote, and there and back again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from compat.lm_eval.runs.lm_eval_files import RELEASED, read_lines, read_results, values
from evalwright import ScriptedModel, evaluate
from evalwright.compat.lm_eval.runs.exporting import export_lm_eval
from evalwright.compat.lm_eval.runs.importing import import_lm_eval
from evalwright.core.errors import RateLimited
from evalwright.core.requests import Generate, LogLikelihood, RollingLogLikelihood
from evalwright.core.responses import Response
from evalwright.models.model_interface import Pacing
from evalwright.runs.reader import Run
from evalwright.tasks.loading import task_from_definition
from support.runs import make_run

ROWS = [
    {
        "id": f"q{i}",
        "q": f"Colour {i}?",
        "options": ["red", "green"],
        "a": ["red", "green"][i % 2],
    }
    for i in range(6)
]
SAMPLE = {"id": "{{ id }}", "input": "{{ q }}", "target": "{{ a }}"}
MODES: Mapping[str, Mapping[str, Any]] = {
    "written": {
        "answer": {"mode": "generate", "max_tokens": 5, "stop": ["\n"]},
        "scorers": ["exact-match"],
    },
    "chosen": {
        "answer": {"mode": "likelihood"},
        "scorers": [
            "choice",
            {"choice": {"name": "by-length", "normalise": "characters"}},
        ],
        "metrics": [
            {"accuracy": {"scorer": "choice"}},
            {"accuracy": {"name": "by-length", "scorer": "by-length"}},
            {"macro-f1": {"scorer": "choice"}},
        ],
    },
    "lettered": {"answer": {"mode": "letter"}, "scorers": ["choice"]},
    "continued": {"answer": {"mode": "continuation"}, "scorers": ["likelihood"]},
    "read": {
        "answer": {"mode": "perplexity"},
        "scorers": ["perplexity"],
        "metrics": ["token-perplexity", "word-perplexity", "bits-per-byte"],
    },
}


def answers(request: Any) -> Response:
    if isinstance(request, (LogLikelihood, RollingLogLikelihood)):
        text = (
            request.continuation if isinstance(request, LogLikelihood) else request.text
        )
        digest = hashlib.sha256(text.encode()).digest()
        greedy = digest[0] % 2 == 0 if isinstance(request, LogLikelihood) else None
        return Response(
            log_likelihood=-digest[1] / 7 - 0.1, is_greedy=greedy, tokens_scored=3
        )
    return Response(text="red" if request.draw != 1 else "green", finish_reason="stop")


def ill(request: Any, asked: int) -> RateLimited | None:
    lost = isinstance(request, Generate) and "Colour 3?" in str(request.prompt)
    return RateLimited("HTTP 429: slow down.") if lost else None


def make(*, draws: int = 1) -> Run:
    """A run of a task in every mode; one answer fails."""
    tasks = []
    for name, parts in MODES.items():
        sample = {
            **SAMPLE,
            **({"choices": "{{ options }}"} if name in ("chosen", "lettered") else {}),
        }
        definition = {
            "task": name,
            "dataset": {"rows": ROWS},
            "sample": sample,
            "prompt": {"user": "{{ input }}"},
            **parts,
        }
        if draws > 1 and name == "written":
            definition["answer"] = {
                **parts["answer"],
                "draws": draws,
                "temperature": 0.7,
            }
        tasks.append(task_from_definition(definition))
    model = ScriptedModel(answers, failures=ill, pacing=Pacing(max_attempts=1))
    (run,) = evaluate(tasks, model, name="native", out="runs")
    return run


def test_the_files_of_every_mode(tmp_path: Path) -> None:
    run = make()
    files = export_lm_eval(run, tmp_path / "out")
    assert [
        file.name.split("_")[1] for file in files if file.name.startswith("samples_")
    ] == list(MODES)
    theirs = read_results(RELEASED)
    ours = read_results(tmp_path / "out")
    assert set(theirs) - set(ours) == {"groups"}
    assert set(ours) - set(theirs) == {"evalwright"}
    assert [key for key in ours if key in theirs] == [
        key for key in theirs if key in ours
    ]
    for key in (
        "configs",
        "versions",
        "n-shot",
        "higher_is_better",
        "n-samples",
        "results",
        "task_hashes",
    ):
        assert set(ours[key]) == set(MODES), key
    assert ours["results"]["written"] | {"exact_match_stderr,none": 0} == {
        "name": "written",
        "alias": "written",
        "sample_len": 5,
        "exact_match,none": pytest.approx(0.6),
        "exact_match_stderr,none": 0,
    }
    assert list(ours["results"]["chosen"])[3:] == [
        f"{metric}{error},{found}"
        for metric, found in (
            ("acc", "none"),
            ("by_length", "none"),
            ("macro_f1", "none"),
        )
        for error in ("", "_stderr")
    ]
    assert set(ours["results"]["read"]) >= {
        "word_perplexity,none",
        "bits_per_byte,none",
    }
    assert ours["higher_is_better"]["read"]["word_perplexity"] is False
    assert ours["n-samples"]["written"] == {"original": 6, "effective": 5}


def test_lines_have_the_shape_of_theirs(tmp_path: Path) -> None:
    export_lm_eval(make(), tmp_path)
    pairs = {
        "written": "sums",
        "chosen": "pick",
        "lettered": "pick",
        "continued": "last",
        "read": "roll",
    }
    for mine, other in pairs.items():
        ours = read_lines(tmp_path, mine)
        theirs = read_lines(RELEASED, other)
        fixed = list(theirs[0])[: list(theirs[0]).index("target_hash") + 1]
        assert list(ours[0])[: len(fixed)] == fixed
        for key in ("arguments", "resps", "filtered_resps", "filter", "metrics"):
            assert shape(ours[0][key]) == shape(theirs[0][key]), (mine, key)
        for row in ours:
            text = json.dumps(row["doc"], indent=2, ensure_ascii=False)
            assert row["doc_hash"] == hashlib.sha256(text.encode()).hexdigest()
            assert (
                row["target_hash"] == hashlib.sha256(row["target"].encode()).hexdigest()
            )
            prompt = row["arguments"]["gen_args_0"]["arg_0"]
            assert row["prompt_hash"] == hashlib.sha256(prompt.encode()).hexdigest()
            assert set(row["metrics"]) <= set(row)
    chosen = read_lines(tmp_path, "chosen")[1]
    lettered = read_lines(tmp_path, "lettered")[1]
    assert [chosen["arguments"][f"gen_args_{i}"]["arg_1"] for i in range(2)] == [
        " red",
        " green",
    ]
    assert [lettered["arguments"][f"gen_args_{i}"]["arg_1"] for i in range(2)] == [
        " A",
        " B",
    ]
    assert (chosen["target"], chosen["macro_f1"][0]) == ("1", 1.0)


def shape(value: Any) -> Any:
    """Types and nesting of the first of each kind."""
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    if isinstance(value, dict):
        first = next(iter(value))
        return (
            {first: shape(value[first])}
            if first.startswith(("gen_args", "arg_0"))
            else "settings"
        )
    return type(value).__name__


def test_what_failed_stands_beside(tmp_path: Path) -> None:
    run = make()
    assert run.n_missing == 1
    export_lm_eval(run, tmp_path)
    assert [row["doc_id"] for row in read_lines(tmp_path, "written")] == [0, 1, 2, 4, 5]
    (row,) = read_lines(tmp_path, "written", "failures")
    assert (row["doc_id"], row["failure"]["kind"], "exact_match" in row) == (
        3,
        "rate limited",
        False,
    )
    (back,) = import_lm_eval(tmp_path, tmp_path / "runs", "back")
    task = back.task("lm-eval:written")
    assert (task.n_samples, task.n_missing, dict(task.failures)) == (
        6,
        1,
        {"rate limited": 1},
    )
    assert [record.index for record in back.samples()][:6] == list(range(6))


@pytest.mark.parametrize("draws", [1, 2])
def test_there_and_back_again(tmp_path: Path, draws: int) -> None:
    run = make(draws=draws)
    export_lm_eval(run, tmp_path / "1")
    (back,) = import_lm_eval(tmp_path / "1", tmp_path / "runs", "back")
    export_lm_eval(back, tmp_path / "2")
    (again,) = import_lm_eval(tmp_path / "2", tmp_path / "runs", "again")
    export_lm_eval(again, tmp_path / "3")
    assert list(values(back).values()) == pytest.approx(
        list(values(run).values()), rel=1e-12
    )
    assert values(again) == values(back)
    assert tree(tmp_path / "2") == tree(tmp_path / "3")
    first = tree(tmp_path / "1")
    second = tree(tmp_path / "2")
    assert first.keys() == second.keys()
    for name in first:
        assert close(
            json.loads(f"[{','.join(first[name])}]"),
            json.loads(f"[{','.join(second[name])}]"),
        ), name


def tree(folder: Path) -> dict[str, list[str]]:
    """Every file's lines; a results file is one."""
    out = {}
    for path in sorted(folder.rglob("*.json*")):
        text = path.read_text(encoding="utf-8")
        out[path.name] = text.splitlines() if path.suffix == ".jsonl" else [text]
    return out


def close(a: Any, b: Any) -> bool:
    """Equal but for rounding in the last digits."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == pytest.approx(b, rel=1e-9)
    return bool(a == b)


def test_released_results_come_back_as_they_were(tmp_path: Path) -> None:
    (run,) = import_lm_eval(RELEASED, tmp_path / "runs")
    export_lm_eval(run, tmp_path / "out")
    theirs = read_results(RELEASED)
    ours = read_results(tmp_path / "out")
    for task in ("sums", "pick", "roll", "last"):
        assert read_lines(tmp_path / "out", task) == read_lines(RELEASED, task)
    assert list(ours) == list(theirs)
    same = set(theirs) - {
        "results",
        "pretty_env_info",
        "model_name",
        "model_name_sanitized",
    }
    assert {key: ours[key] for key in same} == {key: theirs[key] for key in same}
    assert list(ours["results"]) == list(theirs["results"])
    for task, entry in theirs["results"].items():
        assert list(ours["results"][task]) == list(entry)
        for key, value in entry.items():
            if "_stderr" not in key:
                assert close(ours["results"][task][key], value), (task, key)


def test_clusters_stay(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", scores=[1, 1, 0, 0, 1, 1, 0, 1], cluster_size=2)
    export_lm_eval(run, tmp_path / "out")
    (back,) = import_lm_eval(tmp_path / "out", tmp_path / "runs", "back")
    (before,), (after,) = run.tasks[0].metrics, back.tasks[0].metrics
    assert after.estimate.n_clusters == before.estimate.n_clusters == 4
    assert after.estimate == before.estimate


@pytest.mark.parametrize("model", ["../../evil", "..", "a/b:c", "/etc/x"])
def test_nothing_leaves_its_folder(tmp_path: Path, model: str) -> None:
    run = make_run(tmp_path / "runs", scores={"../t": [1, 0]}, model=model, name="odd")
    for file in export_lm_eval(run, tmp_path / "out"):
        assert file.resolve().parent.parent == (tmp_path / "out").resolve()
