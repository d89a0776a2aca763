"""`import_hhem` on trees with everything that can be wrong in them."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import RunError, UnknownName
from evalwright.runs.board import make_board
from evalwright.runs.comparison import compare_runs
from evalwright.runs.formats.hhem_import import import_hhem
from evalwright.runs.reader import Run
from runs.formats.hhem_trees import PLACEHOLDERS, Line, Model, engine, lines_of, read, shown, text_of, write
from runs.test_schemas import validator

REFUSAL = "I am unable to summarize this passage."


def one(path: Path, out: Path, **options: Any) -> Run:
    (run,) = import_hhem(path, out, **options).runs
    return run


def about(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = run.data["configuration"]["imported"]
    return found


def three(run: Run) -> tuple[float | None, ...]:
    found = shown(run)
    return found["hallucination-rate"], found["answer-rate"], found["mean-words"]


def mixed() -> list[Line]:
    """Seven articles: three good, one hallucinated, one refused, one failed, one too short."""
    texts = [text_of(1), text_of(2), text_of(3), text_of(4), REFUSAL, PLACEHOLDERS[0], "Too short."]
    scores = [0.9, 0.5, 0.8, 0.4999, 0.9, 0.1, 0.9]
    return [
        Line(place, text, score) for place, (text, score) in enumerate(zip(texts, scores, strict=True), 1)
    ]


# -- what a run holds ---------------------------------------------------------------------------------------------------


def test_rows_are_what_became_of_them(tmp_path: Path) -> None:
    Model().write(tmp_path / "output", mixed())
    run = one(tmp_path / "output", tmp_path / "runs")
    run.verify()
    validator("run").validate(json.loads((run.folder / "run.json").read_text()))
    rows = list(run.rows())
    for row in rows:
        validator("sample").validate(row)
    assert [record.as_dict() for record in run.samples()] == rows
    assert [row["id"] for row in rows] == [str(place) for place in range(1, 8)]
    labels = [row["scores"]["answered"]["label"] for row in rows]
    assert labels == ["answered"] * 4 + ["refused", "failed", "too short"]
    values = [row["scores"].get("consistency", {}).get("value") for row in rows]
    assert values == [1.0, 1.0, 1.0, 0.0, None, None, None]
    assert rows[3]["scores"]["consistency"]["parts"] == {"score": 0.4999}
    assert rows[5]["score_failures"]["consistency"]["kind"] == "request failed"
    assert rows[5]["metadata"]["recorded"] == PLACEHOLDERS[0]
    assert "answer" not in rows[5] and rows[4]["answer"] == REFUSAL
    (task,) = run.tasks
    assert (task.n_samples, task.n_failed, task.failures) == (7, 1, {"request failed": 1})
    assert three(run) == (25.0, 57.1, 15.0)
    by_label = {metric.label: metric.estimate for metric in task.metrics}
    main = by_label["hallucination-rate"]
    assert (main.n, main.n_failed) == (4, 1)
    assert main.low < 0.25 < main.high
    assert main.bounds is not None and list(main.bounds) == pytest.approx([0.4, 0.2])
    consistent = by_label["factual-consistency-rate"]
    assert (consistent.value, consistent.low, consistent.high) == (0.75, 1 - main.high, 1 - main.low)
    replies = by_label["answer-rate-of-replies"]
    assert replies.value == pytest.approx(4 / 6)
    assert (replies.n, replies.n_failed) == (6, 1)
    assert run.model == "acme/one"
    assert run.data["started"] == "2026-01-02T00:00:00+00:00"
    assert about(run)["judge"] == "HHEM-2.3-API"


def test_the_path_is_a_tree_a_company_a_model_or_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Model().write(tmp_path / "output", mixed())
    out = tmp_path / "runs"
    found = {
        one(path, out).folder
        for path in (folder, folder.parent, folder.parent.parent, folder / "judgments.jsonl")
    }
    monkeypatch.chdir(folder)
    found.add(one(Path(), out).folder)
    assert found == {out / "acme-one--2026-01-02"}
    assert one(folder, out, name="mine").id == "mine"


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("summaries", [True, False])
def test_both_modes_against_plain_loops(tmp_path: Path, summaries: bool, shuffled: bool) -> None:
    """Rows that share uids at random: the engine's numbers by its join, ours by counting rows."""
    dice = random.Random(f"{summaries}{shuffled}")
    lines = []
    for place in range(1, 120):
        text = dice.choice([text_of(place), text_of(dice.randrange(9)), REFUSAL, "Short.", PLACEHOLDERS[1]])
        uid = text if dice.random() < 0.5 else ""
        lines.append(Line(place, text, dice.choice([0.2, 0.4999, 0.5, 0.9]), uid))
    folder = Model().write(tmp_path / "output", lines)
    judgments, written = read(folder / "judgments.jsonl"), read(folder / "summaries.jsonl")
    if shuffled:
        dice.shuffle(written)
        write(folder / "summaries.jsonl", written)
    if not summaries:
        (folder / "summaries.jsonl").unlink()
    theirs = one(folder, tmp_path / "published", scoring="published")
    assert three(theirs) == engine(judgments, written, "", "2026-01-01", "2026-01-02")
    assert about(theirs)["differences"] == []
    ours = one(folder, tmp_path / "corrected")
    valid = [row for row in judgments if row["is_valid"]]
    wrong = sum(row["hhem_score"] < 0.5 for row in valid)
    words = sum(row["word_count"] for row in valid) / len(valid)
    assert three(ours) == (
        round(wrong / len(valid) * 100, 1),
        round(len(valid) / len(judgments) * 100, 1),
        round(words, 1),
    )
    assert three(ours) != three(theirs)
    differing = {one["metric"]: one for one in about(ours)["differences"]}
    assert differing["answer-rate"] == {
        "metric": "answer-rate",
        "ours": three(ours)[1],
        "published": three(theirs)[1],
    }
    assert next(ours.rows())["id"] == ("1" if summaries else "1 of 119")
    if summaries:
        ids = {row["id"]: row for row in ours.rows()}
        for line, judgment in zip(lines, judgments, strict=True):
            scores = ids[str(line.article)]["scores"]
            if judgment["is_valid"]:
                assert scores["consistency"]["parts"]["score"] == line.score


# -- groups -------------------------------------------------------------------------------------------------------------


def test_the_last_judgment_of_each_date_code(tmp_path: Path) -> None:
    tree = tmp_path / "output"
    old = Model()
    old.write(tree, lines_of([0.1, 0.1, 0.9]))
    new = old.but(judgment_date="2026-02-01", summary_date="2026-01-31")
    new.write(tree, lines_of([0.9, 0.9, 0.9]), append=True)
    run = one(tree, tmp_path / "runs")
    assert three(run)[0] == 0.0
    assert about(run)["older_judgments_left_out"] == 1
    assert about(run)["summary_date"] == "2026-01-31"
    both = import_hhem(tree, tmp_path / "all", every=True).runs
    assert [(three(found)[0], found.id[-10:]) for found in both] == [
        (66.7, "2026-01-02"),
        (0.0, "2026-02-01"),
    ]


def test_a_date_code_that_the_engine_lost(tmp_path: Path) -> None:
    """Two models in one folder; the statistics know one of them, or none."""
    tree = tmp_path / "output"
    Model().write(tree, lines_of([0.9, 0.9]))
    Model(date_code="0324", stats=False).write(tree, lines_of([0.1, 0.9]), append=True)
    runs = {run.model: run for run in import_hhem(tree, tmp_path / "runs").runs}
    assert {name: three(run)[0] for name, run in runs.items()} == {"acme/one": 0.0, "acme/one-0324": 50.0}
    assert about(runs["acme/one-0324"])["published"] is None
    assert "published nothing" in about(runs["acme/one-0324"])["notes"][0]
    (tree / "acme" / "one" / "stats.jsonl").write_text("")
    assert len(import_hhem(tree, tmp_path / "again").runs) == 2


def test_a_model_summarised_twice(tmp_path: Path) -> None:
    """Asked twice without overwriting, every article stands twice: one cluster each, and pairing with others holds."""
    tree = tmp_path / "output"
    Model().write(tree, lines_of([0.9, 0.1, 0.9]))
    Model().write(tree, lines_of([0.9, 0.9, 0.9]), append=True)
    Model("acme/two").write(tree, lines_of([0.9, 0.9, 0.1]))
    doubled, other = import_hhem(tree, tmp_path / "runs").runs
    assert [row["id"] for row in doubled.rows()] == ["1", "2", "3", "1#2", "2#2", "3#2"]
    main = doubled.tasks[0].metrics[0].estimate
    assert (main.n, main.n_clusters) == (6, 3)
    assert main.value == pytest.approx(1 / 6)
    assert about(doubled)["lost"] == 0
    assert compare_runs(doubled, other).tasks[0].paired.n == 3


def test_two_judges_are_two_groups_and_no_board_mixes_them_silently(tmp_path: Path) -> None:
    tree = tmp_path / "output"
    Model().write(tree, lines_of([0.9, 0.1, 0.9]))
    Model("acme/two", version="2.3-PROD").write(tree, lines_of([0.9, 0.9, 0.1]))
    runs = import_hhem(tree, tmp_path / "runs").runs
    assert any("did not ask 'summary-faithfulness' alike" in note for note in make_board(runs).notes)
    assert any("definition" in text or "judge" in text for text in compare_runs(*runs).differences)


def test_summaries_and_judgments_that_do_not_meet(tmp_path: Path) -> None:
    tree = tmp_path / "output"
    folder = Model(stats=False).write(tree, lines_of([0.9, 0.1, 0.9]))
    kept = read(folder / "summaries.jsonl")
    write(folder / "summaries.jsonl", [*kept[:2], {**kept[2], "summary_uid": "other", "article_id": 9}])
    run = one(tree, tmp_path / "runs")
    rows = list(run.rows())
    assert [row["id"] for row in rows] == [f"{place} of 4" for place in range(1, 5)]
    assert rows[3]["score_failures"]["consistency"]["kind"] == "not judged"
    assert run.tasks[0].metrics[0].estimate.n == 3
    notes = " ".join(about(run)["notes"])
    assert "never judged: 1" in notes and "without an article: 1" in notes
    write(folder / "summaries.jsonl", [{**row, "summary_uid": f"x{row['summary_uid']}"} for row in kept])
    run = one(tree, tmp_path / "none")
    assert run.tasks[0].metrics[0].estimate.n == 3
    assert "none of the summaries" in about(run)["notes"][0]


def test_a_judge_that_gave_no_score(tmp_path: Path) -> None:
    Model().write(tmp_path / "output", lines_of([0.9, None, 0.1]))
    run = one(tmp_path / "output", tmp_path / "runs")
    (task,) = run.tasks
    assert task.failures == {"not judged": 1}
    assert (task.metrics[0].estimate.value, task.metrics[0].estimate.n) == (0.5, 2)
    assert three(one(tmp_path / "output", tmp_path / "p", scoring="published"))[0] == 66.7


def test_nothing_valid_is_no_number(tmp_path: Path) -> None:
    Model().write(tmp_path / "output", [Line(1, REFUSAL, 0.9), Line(2, REFUSAL, 0.9)])
    for scoring in ("corrected", "published"):
        run = one(tmp_path / "output", tmp_path / scoring, scoring=scoring)
        assert math.isnan(run.tasks[0].metrics[0].estimate.value)
        assert three(run) == (None, 0.0, None)


# -- lost rows and the data set -----------------------------------------------------------------------------------------


def test_lost_rows_are_said_and_pair_with_nothing(tmp_path: Path) -> None:
    tree = tmp_path / "output"
    for name, lines in (
        ("a", lines_of([0.9] * 10)),
        ("b", lines_of([0.9, 0.1] * 4)),
        ("c", lines_of([0.1] * 10)),
    ):
        folder = Model(f"acme/{name}").write(tree, lines)
        (folder / "summaries.jsonl").unlink()
    a, b, c = import_hhem(tree, tmp_path / "runs").runs
    assert [about(run)["lost"] for run in (a, b, c)] == [0, 2, 0]
    assert (shown(b)["answer-rate"], shown(b)["answer-rate-of-dataset"]) == (100.0, 80.0)
    assert b.tasks[0].failures == {"row lost": 2}
    assert "longest of 3 runs" in about(b)["dataset"]["known_from"]
    assert about(b)["notes"][0].startswith("2 of the data set's 10 rows are lost")
    assert compare_runs(a, c).tasks[0].paired.n == 10
    with pytest.raises(RunError, match="no item in common"):
        compare_runs(a, b)
    alone = one(tree / "acme" / "b", tmp_path / "runs")
    assert alone.folder == b.folder
    assert about(alone)["lost"] == 0
    assert "nothing tells" in about(alone)["dataset"]["known_from"]


def articles_csv(path: Path, n: int) -> Path:
    kinds = ("law", "news")
    rows = [f'{place},"A text, with\na line",{kinds[place % 2]},standard_text' for place in range(1, n + 1)]
    path.write_text("\n".join(["article_id,text,category,text_type", *rows]) + "\n", encoding="utf-8-sig")
    return path


@pytest.mark.parametrize("scoring", ["corrected", "published"])
@pytest.mark.parametrize("summaries", [True, False])
def test_slices_by_the_articles(tmp_path: Path, scoring: str, summaries: bool) -> None:
    folder = Model().write(tmp_path / "output", lines_of([0.9, 0.1, 0.9, 0.1, 0.9]))
    if not summaries:
        (folder / "summaries.jsonl").unlink()
    csv = articles_csv(tmp_path / "articles.csv", 5)
    run = one(folder, tmp_path / "runs", articles=csv, scoring=scoring)
    (task,) = run.tasks
    assert list(task.slices) == ["category"]
    rates = {value: metrics[0].estimate.value for value, metrics in task.slices["category"].items()}
    assert rates == {"law": 1.0, "news": 0.0}
    assert next(run.rows())["metadata"]["category"] == "news"
    assert [row["id"] for row in run.rows()] == ["1", "2", "3", "4", "5"]
    assert "A text" not in (run.folder / "samples.jsonl").read_text()


def test_articles_without_a_row_are_lost_in_their_slice(tmp_path: Path) -> None:
    folder = Model().write(tmp_path / "output", [line for line in lines_of([0.9] * 6) if line.article != 3])
    run = one(folder, tmp_path / "runs", articles=articles_csv(tmp_path / "articles.csv", 6))
    assert about(run)["lost"] == 1
    (task,) = run.tasks
    of = {value: {m.label: m.estimate for m in metrics} for value, metrics in task.slices["category"].items()}
    assert of["news"]["answer-rate-of-dataset"].value == pytest.approx(2 / 3)
    assert of["law"]["answer-rate-of-dataset"].value == 1.0
    again = one(folder, tmp_path / "runs")
    assert again.folder == run.folder and about(again)["lost"] == 0
    (folder / "summaries.jsonl").unlink()
    (folder / "stats.jsonl").unlink()
    run = one(folder, tmp_path / "again", articles=tmp_path / "articles.csv")
    assert run.tasks[0].slices == {}
    assert "no slices" in " ".join(about(run)["notes"])


def test_rows_in_another_order_pair_with_nothing(tmp_path: Path) -> None:
    """Hard articles are hard for every model; one run of five went through them in another order."""
    tree = tmp_path / "output"
    dice = random.Random(4)
    hard = [dice.random() for _ in range(600)]
    for model in range(5):
        order = list(range(600))
        if model == 3:
            dice.shuffle(order)
        scores = [(hard[article] + 2 * dice.random()) / 3 for article in order]
        folder = Model(f"acme/m{model}").write(tree, lines_of(scores))
        (folder / "summaries.jsonl").unlink()
    runs = import_hhem(tree, tmp_path / "runs").runs
    ids = [{row["id"] for row in run.rows()} for run in runs]
    assert ids[0] == ids[1] == ids[2] == ids[4]
    assert not ids[3] & ids[0]
    assert "another order" in about(runs[3])["pairing"]
    assert any("another order" in note for note in about(runs[3])["notes"])


# -- older names, hostile names, broken files ---------------------------------------------------------------------------


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
        runs = {run.model: run for run in import_hhem(tmp_path / "output", tmp_path / str(summaries)).runs}
        assert {name: three(run) for name, run in runs.items()} == {
            "acme/dummy-llm-061024": (50.0, 66.7, 11.5),
            "acme/dummy-llm-061025": (0.0, 100.0, 20.0),
        }
        assert all(about(run)["differences"] == [] for run in runs.values())
        first = list(runs["acme/dummy-llm-061024"].rows())
        assert [row["id"] for row in first] == ["0", "1", "2"]
        assert first[2]["scores"]["answered"]["label"] == ("thinking never closed" if summaries else "failed")


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
    write(folder / "summaries.jsonl", [{**row, "model_key": "s3cret-6"} for row in rows])
    run = one(folder, tmp_path / "runs")
    for file in run.folder.iterdir():
        assert "s3cret" not in file.read_text(encoding="utf-8")
    assert about(run)["settings"]["temperature"] == 0.5
    assert about(run)["fields_left_out"] == ["API_KEY", "azure_endpoint", "headers", "model_key"]


@pytest.mark.parametrize(
    "name",
    ["nova-pro-v1:0", "...", "..x", "a b", "<script>", "-rf", "ä" * 60, "語" * 80, "x\x1b[31m", "a\nb"],
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


def test_a_model_that_names_another_folder(tmp_path: Path) -> None:
    folder = Model(date_code="../../../x").write(tmp_path / "output", lines_of([0.9]))
    found = one(tmp_path / "output", tmp_path / "runs")
    assert found.folder.parent == tmp_path / "runs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output", "runs"]
    assert folder.is_dir()


def test_runs_that_would_have_one_name(tmp_path: Path) -> None:
    tree = tmp_path / "output"
    for name, rate in (("acme/v1:0", 0.9), ("acme/v1-0", 0.1), ("acme/V1-0", 0.1)):
        folder = Model(name).write(tree, lines_of([rate]))
        (folder / "summaries.jsonl").unlink()
    runs = import_hhem(tree, tmp_path / "runs").runs
    assert len({run.folder.name.lower() for run in runs}) == 3
    assert len({run.model for run in runs}) == 3
    again = import_hhem(tree, tmp_path / "runs").runs
    assert [run.id for run in again] == [run.id for run in runs]
    assert len(import_hhem(tree, tmp_path / "runs", name="mine").runs) == 3


def test_another_run_is_not_overwritten(tmp_path: Path) -> None:
    folder = Model().write(tmp_path / "output", lines_of([0.9, 0.1]))
    before = one(folder, tmp_path / "runs", name="mine")
    with pytest.raises(RunError, match="holds another run"):
        import_hhem(folder, tmp_path / "runs", "mine", scoring="published")
    Model(judgment_date="2026-01-02").write(tmp_path / "output", lines_of([0.1, 0.1]))
    with pytest.raises(RunError, match="holds another run"):
        import_hhem(folder, tmp_path / "runs", "mine")
    before.verify()


@pytest.mark.parametrize(
    ("file", "line", "says"),
    [
        ("judgments.jsonl", '{"summary_uid": "a", "hhem', "is not valid JSON"),
        ("judgments.jsonl", "[1, 2]", "is not a record"),
        ("judgments.jsonl", "{}", "no 'summary_uid'"),
        ("judgments.jsonl", '{"summary_uid": "a", "is_valid": "yes"}', "'is_valid' must be"),
        ("judgments.jsonl", '{"summary_uid": "a", "is_valid": true, "word_count": -1}', "'word_count' must be"),
        ("judgments.jsonl", '{"summary_uid": "a", "is_valid": true, "word_count": 9, "hhem_score": 2}', "0 to 1"),
        ("judgments.jsonl", '{"summary_uid": "a", "is_valid": true, "word_count": 9, "hhem_score": Infinity}', "0 to 1"),
        ("judgments.jsonl", "[" * 100_000, "is not valid JSON"),
        ("summaries.jsonl", '{"summary_uid": "a"}', "'article_id' must name"),
        ("summaries.jsonl", '{"article_id": 1}', "no 'summary_uid'"),
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
        text = (folder / file).read_text().replace("\n", "\r\n\r\n").replace("The article", "\\ud800 article")
        (folder / file).write_bytes(b"\xef\xbb\xbf" + text.encode())
    run = one(folder, tmp_path / "runs")
    assert three(run)[0] == 50.0
    assert next(run.samples()).answer is not None


def test_nothing_to_import_is_a_sentence(tmp_path: Path) -> None:
    tree = tmp_path / "output"
    Model().write(tree, lines_of([0.9]))
    with pytest.raises(RunError, match=r"'.*outputs' does not exist\. Did you mean '.*output'\?"):
        import_hhem(tmp_path / "outputs", tmp_path / "runs")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(RunError, match=r"holds no results .* It is empty\."):
        import_hhem(empty, tmp_path / "runs")
    (empty / "judgment.jsonl").write_text("")
    with pytest.raises(RunError, match=r"The closest is '.*judgment\.jsonl'"):
        import_hhem(empty, tmp_path / "runs")
    with pytest.raises(RunError, match="is no folder"):
        import_hhem(empty / "judgment.jsonl", tmp_path / "runs")
    never = tree / "acme" / "never"
    never.mkdir()
    write(never / "summaries.jsonl", read(tree / "acme" / "one" / "summaries.jsonl"))
    with pytest.raises(RunError, match="never judged"):
        import_hhem(never, tmp_path / "runs")
    found = import_hhem(tree, tmp_path / "runs")
    assert (len(found.runs), len(found.left_out)) == (1, 1)
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
        import_hhem(tmp_path / "output", tmp_path / "runs", articles=tmp_path / "none.csv")


def test_a_large_tree_is_read_twice_to_the_same_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "output"
    for name in ("acme/one", "acme/two"):
        Model(name).write(tree, mixed())
    kept = import_hhem(tree, tmp_path / "kept").runs
    monkeypatch.setattr("evalwright.runs.formats.hhem_import._KEPT", 0)
    again = import_hhem(tree, tmp_path / "again").runs
    for left, right in zip(kept, again, strict=True):
        for file in ("run.json", "samples.jsonl"):
            assert (left.folder / file).read_bytes() == (right.folder / file).read_bytes()
