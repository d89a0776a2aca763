"""Structured results for the Hub: their shape by a schema, their numbers by the run's own, and
nothing made up.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compat.hhem.hhem_trees import REFUSAL, Line, Model, text_of
from evalwright.compat.hhem.importing import import_hhem
from evalwright.compat.huggingface.hf_results import (
    export_hf_results,
    hub_name,
    is_annotated,
    read_annotations,
)
from evalwright.core.errors import ConfigurationError, RunError, UnknownName
from evalwright.runs.reader import Run
from support.runs import make_run
from support.typed import typed


def _runs(folder: Path) -> list[Run]:
    """100 articles; of the category "silent" every summary is refused."""
    categories = ["law", "sports", "silent"]
    (folder / "articles.csv").write_text(
        "article_id,text,category,text_type\n"
        + "".join(f"{i},x,{categories[i % 3]},{'standard_text' if i % 4 else 'intensive_text'}\n" for i in range(100))
    )  # fmt: skip
    for name in ("acme/nova-pro-v1:0", "beta/other"):
        lines = [
            Line(i, REFUSAL if i % 3 == 2 else text_of(i), 0.1 if i % 5 == 0 else 0.9)
            for i in range(100)
        ]
        Model(name=name).write(folder / "tree", lines)
    return list(
        import_hhem(folder / "tree", folder / "runs", articles=folder / "articles.csv")[
            0
        ]
    )


def _read(file: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return data


def test_shape_and_numbers(tmp_path: Path) -> None:
    run = _runs(tmp_path)[0]
    file = export_hf_results(run, tmp_path / "out")
    assert (
        file
        == tmp_path
        / "out"
        / "acme"
        / "nova-pro-v1__0"
        / "results_2026-01-02T00-00-00.json"
    )
    data = _read(file)
    parts = [
        "config", "results", "model_annotations", "category_results", "text_complexity_results", "evalwright",
    ]  # fmt: skip
    assert list(data) == parts
    assert all(
        set(part) == {"hallucination_rate", "answer_rate", "average_summary_length"}
        for part in data["category_results"].values()
    )
    answered = [i for i in range(100) if i % 3 != 2]
    wrong = [i for i in answered if i % 5 == 0]
    rate = round(100 * len(wrong) / len(answered), 3)
    assert data["results"] == {
        "hallucination_rate": rate,
        "factual_consistency_rate": pytest.approx(100 - rate, abs=0.002),
        "answer_rate": float(len(answered)),
        "average_summary_length": 15.0,
    }
    law = [i for i in range(100) if i % 3 == 0]
    assert data["category_results"]["law"]["hallucination_rate"] == pytest.approx(
        100 * sum(i % 5 == 0 for i in law) / len(law), abs=0.001
    )
    assert data["category_results"]["law"]["answer_rate"] == 100.0
    low = [i for i in answered if i % 4]
    assert data["text_complexity_results"]["low_complexity_text"][
        "hallucination_rate"
    ] == pytest.approx(100 * sum(i % 5 == 0 for i in low) / len(low), abs=0.001)


def test_nothing_is_made_up(tmp_path: Path) -> None:
    run = _runs(tmp_path)[0]
    data = _read(export_hf_results(run, tmp_path / "out"))
    assert data["config"] == {
        "model_dtype": None,
        "model_name": "acme/nova-pro-v1:0",
        "model_sha": None,
    }
    # A category without an answer has no hallucination rate; it is not 0, and its answer rate is
    # not 100.
    assert data["category_results"]["silent"] == {
        "hallucination_rate": None,
        "answer_rate": 0.0,
        "average_summary_length": None,
    }
    assert data["model_annotations"] == {}
    plain = make_run(tmp_path, name="plain", scores=[1.0, 0.0])
    assert _read(export_hf_results(plain, tmp_path / "out"))[
        "text_complexity_results"
    ] == {
        "low_complexity_text": None,
        "high_complexity_text": None,
    }


def test_what_the_record_knows_of_the_model_is_told(tmp_path: Path) -> None:
    run = make_run(
        tmp_path, model="hf/acme/one@main", scores=[1.0, 0.0], metric="accuracy"
    )
    sha = "0123456789abcdef0123456789abcdef01234567"
    for revision, dtype, wanted in (
        (sha, "bfloat16", (sha, "bfloat16")),
        ("main", "auto", (None, None)),
    ):
        run.data["model"].update(revision=revision, dtype=dtype)
        data = _read(export_hf_results(run, tmp_path / "out"))
        assert (data["config"]["model_sha"], data["config"]["model_dtype"]) == wanted
    assert data["config"]["model_name"] == "acme/one" and data["results"] == {
        "accuracy": 50.0
    }
    assert hub_name("openai/gpt-4o@x") == "openai/gpt-4o@x"


def test_annotations_by_model(tmp_path: Path) -> None:
    first, second = _runs(tmp_path)
    table = tmp_path / "table.yaml"
    table.write_text("'acme/nova-pro-v1:0': {model_size: small, accessibility: open}\n")
    annotations = read_annotations(table)
    own = _read(export_hf_results(first, tmp_path / "out", annotations=annotations))[
        "model_annotations"
    ]
    assert own == {"model_size": "small", "accessibility": "open"}
    other = _read(export_hf_results(second, tmp_path / "out", annotations=annotations))[
        "model_annotations"
    ]
    assert other == {"model_size": None, "accessibility": None}
    labelled = make_run(
        tmp_path,
        model="hf/acme/nova-pro-v1:0",
        label="high",
        name="high",
        scores=[1.0, 0.0],
    )
    assert is_annotated(annotations, labelled)
    assert (
        _read(export_hf_results(labelled, tmp_path / "out", annotations=annotations))[
            "model_annotations"
        ]
        == own
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [("- a\n", "mapping"), ("a: 1\n", "'a' must be a mapping"), ("a: [\n", "yaml")],
)
def test_tables_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    table = tmp_path / "table.yaml"
    table.write_text(text)
    with pytest.raises(Exception, match=said) as error:
        read_annotations(table)
    assert "Error" in type(error.value).__name__ and not isinstance(
        error.value, (TypeError, AttributeError)
    )
    with pytest.raises(ConfigurationError, match="do not exist"):
        read_annotations(tmp_path / "none.yaml")


def test_one_task_of_several_must_be_named(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores={"a": [1.0], "b": [0.0]})
    with pytest.raises(RunError, match=r"several tasks \('a', 'b'\)"):
        export_hf_results(run, tmp_path / "out")
    with pytest.raises(UnknownName):
        export_hf_results(run, tmp_path / "out", task="c")
    assert _read(export_hf_results(run, tmp_path / "out", task="b"))["results"] == {
        "accuracy": 0.0
    }


@pytest.mark.parametrize(
    "name", ["../../evil/..", "/etc/x", "a/../../../b", "C:\\x", "..", "a//b"]
)
def test_no_file_leaves_the_folder(tmp_path: Path, name: str) -> None:
    run = make_run(tmp_path / "runs", model=name, name="run", scores=[1.0, 0.0])
    file = export_hf_results(run, tmp_path / "out" / "here")
    assert (tmp_path / "out" / "here").resolve() in file.resolve().parents


def test_the_command(tmp_path: Path) -> None:
    _runs(tmp_path)
    (tmp_path / "t.yaml").write_text("beta/other: {model_size: large}\n")
    names = ["acme-nova-pro-v1-0--2026-01-02", "beta-other--2026-01-02"]
    done = typed("export", "hf-results", *names, "--annotations", "t.yaml", "--json")
    assert done.code == 0
    assert [json.loads(Path(file).read_text())["model_annotations"] for file in json.loads(done.out)] == [
        {"model_size": None}, {"model_size": "large"},
    ]  # fmt: skip
    assert (
        done.err
        == "'t.yaml' has no annotations of 'acme/nova-pro-v1:0': they are null.\n"
    )


def test_a_label_names_the_model(tmp_path: Path) -> None:
    """Two settings of one model are two models there, as on the board."""
    labels = ("gpt-5-high", "openai/gpt-5-low")
    runs = [
        make_run(
            tmp_path, model="openai/gpt-5", label=label, name=f"r{i}", scores=[1.0, 0.0]
        )
        for i, label in enumerate(labels)
    ]
    files = [export_hf_results(run, tmp_path / "out") for run in runs]
    assert [file.parent.relative_to(tmp_path / "out").as_posix() for file in files] == [
        "openai/gpt-5-high",
        "openai/gpt-5-low",
    ]
    data = _read(files[0])
    assert (data["config"]["model_name"], data["evalwright"]["model"]) == (
        "openai/gpt-5-high",
        "openai/gpt-5",
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "model,model_size\nacme/x,small\n"),
        ("t.json", '[{"label": "acme/x", "model_size": "small"}]'),
        ("t.json", '{"acme/x": {"model_size": "small"}}'),
        ("t.yaml", "- {model: acme/x, model_size: small}\n"),
    ],
)
def test_annotations_are_read_from_any_table_of_facts(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    assert read_annotations(tmp_path / name) == {"acme/x": {"model_size": "small"}}


@pytest.mark.parametrize(
    ("name", "text"),
    [("t.csv", "size\n3\n"), ("t.json", "[3]"), ("t.json", "3"), ("t.yaml", "- {a: 1}\n")],
)  # fmt: skip
def test_a_table_without_names_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError, match="model"):
        read_annotations(tmp_path / name)
