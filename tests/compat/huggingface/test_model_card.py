"""Model-card metadata: read back by the Hub's own library, every number with its interval and n."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright.compat.huggingface.model_card import export_model_cards
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.runs.reader import Run, open_run
from support.hostile import HOSTILE
from support.runs import edited, make_run
from support.typed import typed

repocard = pytest.importorskip("huggingface_hub.repocard")
repocard_data = pytest.importorskip("huggingface_hub.repocard_data")


def results_of(file: Path) -> dict[str, Any]:
    """The results by name of the task, as the Hub's library reads them, unchanged on the way."""
    card = repocard.ModelCard.load(file)
    results = card.data.eval_results
    header = yaml.safe_load(file.read_text(encoding="utf-8").split("---\n")[1])
    again = repocard_data.eval_results_to_model_index(card.data.model_name, results)
    assert again == header["model-index"]
    assert all(result.verified is None for result in results)
    return {result.task_name: result for result in results}


def with_dataset(run: Run, dataset: dict[str, Any]) -> Run:
    with edited(run.folder) as record:
        for task in record["tasks"]:
            task["definition"]["dataset"] = dataset
    return open_run(run.folder)


def test_a_result_for_each_task_with_interval_and_counts(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        model="hf/acme/nova",
        scores={"quiz": [1.0] * 6 + [0.0] * 4 + [None], "prose": [-5.0, -4.0]},
        metric={"prose": "token-perplexity"},
    )
    (file,) = export_model_cards([run], tmp_path / "cards").files
    assert file == tmp_path / "cards" / "acme" / "nova.md"
    quiz, prose = results_of(file).values()
    estimate = run.tasks[0].metrics[0].estimate
    assert quiz.metric_type == "accuracy" and quiz.metric_value == 60.0
    low, high = (f"{100 * end:.4g}" for end in (estimate.low, estimate.high))
    assert quiz.metric_name == (
        f"accuracy (%, 95% interval {low} to {high}, 10 items, 1 missing)"
    )
    assert quiz.dataset_type == "quiz" and quiz.task_type == "text-generation"
    assert "lower is better" in prose.metric_name and prose.metric_value > 1


def test_a_data_set_on_the_hub_is_named(tmp_path: Path) -> None:
    revision = "a" * 40
    run = with_dataset(
        make_run(tmp_path, model="x/y", scores={"a": [1.0, 0.0], "b": [1.0, 1.0]}),
        {"hub": "acme/bench", "revision": revision, "split": "test"},
    )
    (file,) = export_model_cards([run], tmp_path / "cards").files
    for task, result in results_of(file).items():
        assert result.dataset_type == "acme/bench" and result.dataset_split == "test"
        # Readers merge results of one data set, so that each has a config of its own.
        assert (result.dataset_revision, result.dataset_config) == (revision, task)


def test_runs_of_one_model_share_a_file_and_models_do_not(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, name="1", model="x/y", scores={"a": [1.0, 0.0]}),
        make_run(tmp_path, name="2", model="x/y", scores={"b": [1.0, 0.0]}),
        make_run(tmp_path, name="3", model="x/z", scores={"a": [1.0, 0.0]}),
    ]
    files = export_model_cards(
        runs,
        tmp_path / "cards",
        unit="share",
        source_url="https://example.org/board",
        source_name="A board",
    ).files
    assert [file.name for file in files] == ["y.md", "z.md"]
    first = results_of(files[0])
    assert list(first) == ["a", "b"]
    assert first["a"].metric_value == 0.5 and "share of 1" in first["a"].metric_name
    assert first["a"].source_url == "https://example.org/board"


def test_what_the_hub_would_refuse_is_an_error(tmp_path: Path) -> None:
    run = make_run(tmp_path, model="x/y", scores=[1.0, 0.0])
    nothing = make_run(tmp_path, name="n", model="x/n", scores=[None])
    with pytest.raises(ConfigurationError, match="text-generation"):
        export_model_cards([run], tmp_path, task_type="Text Generation")
    with pytest.raises(ConfigurationError, match="https"):
        export_model_cards([run], tmp_path, source_url="ftp:x")
    with pytest.raises(UnknownName, match="unit"):
        export_model_cards([run], tmp_path, unit="per mille")
    with pytest.raises(ConfigurationError, match="nothing was scored"):
        export_model_cards([nothing], tmp_path)


def test_hostile_names_are_data(tmp_path: Path) -> None:
    for i, name in enumerate(HOSTILE):
        run = make_run(
            tmp_path / "runs", model=name or "x", label=name, name=f"r{i}", scores=[1.0]
        )
        (file,) = export_model_cards([run], tmp_path / f"cards-{i}").files
        assert file.resolve().is_relative_to((tmp_path / f"cards-{i}").resolve())
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
        assert yaml.safe_load(text.split("---\n")[1])["model-index"][0]["results"]


@pytest.mark.usefixtures("own_folder")
def test_the_command() -> None:
    make_run(Path("runs"), name="r", model="x/y", scores=[1.0, 0.0])
    done = typed("export", "model-card", "r", "--out", "cards")
    assert done.code == 0 and "cards/x/y.md" in done.out
    done = typed("export", "model-card", "r", "--source-name", "Board")
    assert done.code == 2 and "--source-url" in done.err
