"""`import_hhem` on older files, hostile names, broken lines and nothing at all: a run, or a
sentence.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat.hhem.hhem_trees import (
    PLACEHOLDERS,
    Model,
    about,
    lines_of,
    mixed,
    one,
    read,
    text_of,
    three,
    write,
)
from evalwright.compat.hhem.importing import import_hhem
from evalwright.core.errors import RunError, UnknownName


def test_older_field_names_and_another_order_of_fields(tmp_path: Path) -> None:
    folder = tmp_path / "output" / "acme" / "dummy-llm"
    folder.mkdir(parents=True)
    scores = [
        (0.9, True, 15, "061024"),
        (0.2, True, 8, "061024"),
        (0.4, False, 6, "061024"),
        (0.98, True, 20, "061025"),
    ]
    write(
        folder / "judgements.jsonl",
        [
            {"summary_words": words, "valid": valid, "hhem_score": score, "hhem_version": "HHEM-2.3", "date_code": code,
             "summary_uid": f"uid{place}", "article_id": place, "timestamp": "2025-06-10"}
            for place, (score, valid, words, code) in enumerate(scores)
        ],
    )  # fmt: skip
    write(
        folder / "stats.jsonl",
        [
            {"timestamp": "2025-06-10", "llm": "dummy-llm", "date_code": code, "hallucination_rate": rate,
             "answer_rate": answered, "avg_summary_length": words, "confidence_interval": -1.0}
            for code, rate, answered, words in (("061024", 50.0, 66.7, 11.5), ("061025", 0.0, 100.0, 20.0))
        ],
    )  # fmt: skip
    for summaries in (False, True):
        if summaries:
            texts = [text_of(1), text_of(2), PLACEHOLDERS[2], text_of(4)]
            write(
                folder / "summaries.jsonl",
                [
                    {"summary": text, "article_id": place, "llm": "dummy-llm", "timestamp": "2025-06-10",
                     "summary_uid": f"uid{place}", "date_code": scores[place][3], "temperature": 0.0}
                    for place, text in enumerate(texts)
                ],
            )  # fmt: skip
        runs = {
            run.model: run
            for run in import_hhem(tmp_path / "output", tmp_path / str(summaries))[0]
        }
        assert {name: three(run) for name, run in runs.items()} == {
            "acme/dummy-llm-061024": (50.0, 66.7, 11.5),
            "acme/dummy-llm-061025": (0.0, 100.0, 20.0),
        }
        assert all(about(run)["differences"] == [] for run in runs.values())
        first = list(runs["acme/dummy-llm-061024"].rows())
        assert [row["id"] for row in first] == ["0", "1", "2"]
        assert first[2]["scores"]["answered"]["label"] == (
            "thinking never closed" if summaries else "failed"
        )


def test_no_secret_enters_the_run(tmp_path: Path) -> None:
    secrets = {
        "model_key": "s3cret-1",
        "azure_endpoint": "https://s3cret-2.example",
        "API_KEY": "s3cret-3",
        "headers": {"Authorization": "s3cret-4"},
        "threads": {"nested": "s3cret-5"},
        "temperature": 0.5,
    }
    folder = Model(more=secrets).write(tmp_path / "output", mixed())
    rows = read(folder / "summaries.jsonl")
    write(
        folder / "summaries.jsonl", [{**row, "model_key": "s3cret-6"} for row in rows]
    )
    run = one(folder, tmp_path / "runs")
    for file in run.folder.iterdir():
        assert "s3cret" not in file.read_text(encoding="utf-8")
    assert about(run)["settings"]["temperature"] == 0.5
    assert about(run)["fields_left_out"] == [
        "API_KEY",
        "azure_endpoint",
        "headers",
        "model_key",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "nova-pro-v1:0",
        "...",
        "..x",
        "a b",
        "<script>",
        "-rf",
        "ä" * 60,
        "語" * 80,
        "x\x1b[31m",
        "a\nb",
    ],
)
def test_names_that_are_no_names_of_folders(tmp_path: Path, name: str) -> None:
    folder = Model("acme/m").write(tmp_path / "output", lines_of([0.9, 0.1]))
    hostile = folder.with_name(name)
    folder.rename(hostile)
    (hostile / "summaries.jsonl").unlink()
    (hostile / "stats.jsonl").unlink()
    out = tmp_path / "runs"
    run = one(tmp_path / "output", out)
    assert run.folder.parent == out and run.folder.resolve().parent == out.resolve()
    assert run.id.isprintable() and run.model.isprintable()
    assert not set(run.id) & set(':<>"/\\|?*\n')
    assert not run.id.startswith((".", "-"))


def test_runs_that_would_have_one_name(tmp_path: Path) -> None:
    tree = tmp_path / "output"
    for name, rate in (("acme/v1:0", 0.9), ("acme/v1-0", 0.1), ("acme/V1-0", 0.1)):
        folder = Model(name).write(tree, lines_of([rate]))
        (folder / "summaries.jsonl").unlink()
    runs = import_hhem(tree, tmp_path / "runs")[0]
    assert len({run.folder.name.lower() for run in runs}) == 3
    assert len({run.model for run in runs}) == 3
    again = import_hhem(tree, tmp_path / "runs")[0]
    assert [run.id for run in again] == [run.id for run in runs]
    assert len(import_hhem(tree, tmp_path / "runs", name="mine")[0]) == 3


def test_another_run_is_not_overwritten(tmp_path: Path) -> None:
    folder = Model().write(tmp_path / "output", lines_of([0.9, 0.1]))
    before = one(folder, tmp_path / "runs", name="mine")
    with pytest.raises(RunError, match="already has another run"):
        import_hhem(folder, tmp_path / "runs", "mine", scoring="published")
    Model(judgment_date="2026-01-02").write(tmp_path / "output", lines_of([0.1, 0.1]))
    with pytest.raises(RunError, match="already has another run"):
        import_hhem(folder, tmp_path / "runs", "mine")
    before.verify()


@pytest.mark.parametrize(
    ("file", "line", "says"),
    [
        ("judgments.jsonl", '{"summary_uid": "a", "hhem', "is not valid JSON"),
        ("judgments.jsonl", "[1, 2]", "is not a record"),
        ("judgments.jsonl", "{}", "'summary_uid' must be"),
        ("judgments.jsonl", '{"summary_uid": "a", "is_valid": "yes"}', "'is_valid' must be"),
        ("judgments.jsonl", '{"summary_uid": "a", "is_valid": true, "word_count": -1}', "'word_count' must be"),
        ("judgments.jsonl", '{"summary_uid": "a", "is_valid": true, "word_count": 9, "hhem_score": 2}', "0 to 1"),
        ("judgments.jsonl", '{"summary_uid": "a", "is_valid": true, "word_count": 9, "hhem_score": Infinity}', "0 to 1"),
        ("judgments.jsonl", "[" * 100_000, "is not valid JSON"),
        ("summaries.jsonl", '{"summary_uid": "a"}', "'article_id' must be"),
        ("summaries.jsonl", '{"article_id": 1}', "'summary_uid' must be"),
        ("stats.jsonl", "nothing", "is not valid JSON"),
    ],
)  # fmt: skip
def test_a_broken_line_is_named_and_nothing_is_imported(
    tmp_path: Path, file: str, line: str, says: str
) -> None:
    folder = Model().write(tmp_path / "output", lines_of([0.9, 0.1]))
    text = (folder / file).read_text()
    (folder / file).write_text(f"{text}\n{line}\n")
    place = text.count("\n") + 2
    with pytest.raises(RunError, match=says) as caught:
        import_hhem(tmp_path / "output", tmp_path / "runs")
    assert f"{folder / file}, line {place}" in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_bytes_that_others_write(tmp_path: Path) -> None:
    folder = Model().write(tmp_path / "output", lines_of([0.9, 0.1]))
    for file in ("judgments.jsonl", "summaries.jsonl"):
        text = (
            (folder / file)
            .read_text()
            .replace("\n", "\r\n\r\n")
            .replace("The article", "\\ud800 article")
        )
        (folder / file).write_bytes(b"\xef\xbb\xbf" + text.encode())
    run = one(folder, tmp_path / "runs")
    assert three(run)[0] == 50.0
    assert next(run.samples()).answer is not None


def test_nothing_to_import_is_a_sentence(tmp_path: Path) -> None:
    tree = tmp_path / "output"
    Model().write(tree, lines_of([0.9]))
    with pytest.raises(RunError, match=r"'.*outputs'.*Did you mean '.*output'\?"):
        import_hhem(tmp_path / "outputs", tmp_path / "runs")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(RunError, match=r"has no results .* It is empty\."):
        import_hhem(empty, tmp_path / "runs")
    (empty / "judgment.jsonl").write_text("")
    with pytest.raises(RunError, match=r"The closest is '.*judgment\.jsonl'"):
        import_hhem(empty, tmp_path / "runs")
    with pytest.raises(RunError, match="is not a folder"):
        import_hhem(empty / "judgment.jsonl", tmp_path / "runs")
    never = tree / "acme" / "never"
    never.mkdir()
    write(never / "summaries.jsonl", read(tree / "acme" / "one" / "summaries.jsonl"))
    with pytest.raises(RunError, match="has no judgment"):
        import_hhem(never, tmp_path / "runs")
    runs, left_out = import_hhem(tree, tmp_path / "runs")
    assert (len(runs), len(left_out)) == (1, 1)
    with pytest.raises(UnknownName, match="Did you mean 'published'"):
        import_hhem(tree, tmp_path / "runs", scoring="publish")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,text\n1,x\n", "has no column 'article_id', but 'id', 'text'"),
        ("article_id,text\n1,x\n1,y\n", "the article '1' a second time"),
        ("article_id,text\n,x\n", "has no 'article_id'"),
        ("", "no columns at all"),
    ],
)
def test_a_csv_that_is_none(tmp_path: Path, text: str, says: str) -> None:
    Model().write(tmp_path / "output", lines_of([0.9]))
    csv = tmp_path / "articles.csv"
    csv.write_text(text)
    with pytest.raises(RunError, match=says):
        import_hhem(tmp_path / "output", tmp_path / "runs", articles=csv)
    csv.write_bytes(b"article_id\n\xff\xfe\n")
    with pytest.raises(RunError, match="not a CSV in UTF-8"):
        import_hhem(tmp_path / "output", tmp_path / "runs", articles=csv)
    with pytest.raises(RunError, match="cannot be read"):
        import_hhem(
            tmp_path / "output", tmp_path / "runs", articles=tmp_path / "none.csv"
        )


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("judgment_date", "x", "must be a date such as 2026-01-31"),
        ("judgment_date", 1.5, "must be a date such as 2026-01-31"),
        ("judgment_date", {}, "must be a date such as 2026-01-31"),
        ("hhem_version", [], "must be text"),
        ("hhem_version", True, "must be text"),
    ],
)
def test_a_date_that_is_none_makes_no_judgment_of_its_own(
    tmp_path: Path, key: str, value: object, says: str
) -> None:
    folder = Model("acme/m").write(tmp_path / "output", lines_of([0.9, 0.1]))
    rows = [
        json.loads(line)
        for line in (folder / "judgments.jsonl").read_text().splitlines()
    ]
    write(folder / "judgments.jsonl", [rows[0], {**rows[1], key: value}])
    with pytest.raises(RunError, match=f"line 2: '{key}' {says}"):
        import_hhem(tmp_path / "output", tmp_path / "runs")
