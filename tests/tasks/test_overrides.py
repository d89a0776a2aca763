"""Settings put over a task from outside: nested or dotted, scorers by name, files from where the person is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import TaskError, UnknownName, UsageError
from evalwright.tasks.loading import load_task, load_tasks
from tasks.conftest import Load, Write

TASK = """
task: t
dataset: rows.jsonl
scorers:
  - exact-match
  - {short-answer: {}}
  - {name: loose, use: exact-match, ignore_case: false}
metrics: [accuracy, {name: words, use: mean, scorer: loose}]
"""
ROWS = [{"id": "a", "input": "q", "target": "t"}]


def test_scorers_and_metrics_by_name(load: Load, write: Write) -> None:
    write("rows.jsonl", ROWS)
    task = load(
        TASK,
        overrides={
            "scorers.loose.ignore_case": True,
            "scorers": {"exact-match": {"ignore_punctuation": True}},
            "metrics.accuracy.level": 0.9,
            "metrics.words.options.level": 0.8,
        },
    )
    assert [dict(scorer.options) for scorer in task.scorers] == [
        {"ignore_punctuation": True},
        {},
        {"ignore_case": True},
    ]
    assert [(spec.label, dict(spec.options)) for spec in task.metrics] == [
        ("accuracy", {"level": 0.9}),
        ("words", {"level": 0.8}),
    ]
    replaced = load(TASK, overrides={"scorers": ["numeric"], "metrics": ["accuracy"]})
    assert [scorer.kind for scorer in replaced.scorers] == ["numeric"]


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        ({"scorers.lose.x": 1}, UnknownName, "Unknown scorer 'lose' of the task. Did you mean 'loose'?"),
        ({"metrics.acuracy.level": 0.9}, UnknownName, "Did you mean 'accuracy'"),
        ({"scorers.loose": 3}, TaskError, "takes options, such as scorers.loose.option=value"),
        ({"scorers.loose.ignore_cas": True}, UsageError, "Did you mean 'ignore_case'"),
        ({"anwser.max_tokens": 3}, TaskError, "did you mean `answer`"),
        ({"dataset.path": "none.jsonl"}, UsageError, "none.jsonl"),
    ],
)
def test_what_is_wrong_is_said(
    load: Load, write: Write, overrides: dict[str, Any], error: type[Exception], message: str
) -> None:
    write("rows.jsonl", ROWS)
    with pytest.raises(error) as caught:
        load(TASK, overrides=overrides)
    assert message in str(caught.value)


def test_files_start_from_where_the_person_is(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("tasks/rows.jsonl", ROWS)
    write("tasks/task.yaml", TASK)
    write("here/mine.csv", "id,input,target\nx,q,t\ny,q,t\n")
    write("here/rows.jsonl", [{"id": "other", "input": "q", "target": "t"}])
    monkeypatch.chdir(tmp_path / "here")
    path = tmp_path / "tasks" / "task.yaml"
    assert [sample.id for sample in load_task(path).samples] == ["a"]
    assert [sample.id for sample in load_task(path, overrides={"dataset": "mine.csv"}).samples] == ["x", "y"]
    assert [
        one.id for one in load_task(path, overrides={"dataset.path": ["mine.csv", "rows.jsonl"]}).samples
    ] == [
        "x",
        "y",
        "other",
    ]


def test_another_frameworks_tasks_have_their_own_settings() -> None:
    with pytest.raises(TaskError, match="cannot be overridden"):
        load_tasks("lm-eval:arc_easy", overrides={"version": "2"})


# -- articles -----------------------------------------------------------------------------------------------------------

LONG = "word " * 60_000


def test_articles_of_ones_own(write: Write) -> None:
    write("a.csv", f'article_id,text,category\n1,"First, a text.",news\n2,"{LONG.strip()}",\n')
    task = load_task("summary-faithfulness", overrides={"dataset.path": "a.csv"})
    first, second = task.samples
    assert (first.id, first.passages[0].text, first.metadata["category"]) == ("1", "First, a text.", "news")
    assert "category" not in second.metadata and "dataset" not in second.metadata
    assert second.passages[0].text == LONG.strip()
    rendered = task.strategy.render(first)  # type: ignore[attr-defined]
    assert "First, a text." in rendered


def test_another_source_for_the_judge_than_the_prompts(write: Write) -> None:
    write("a.jsonl", [{"article_id": 1, "text": "The prompt's text.", "original": "The judge's text."}])
    task = load_task(
        "summary-faithfulness", overrides={"dataset": "a.jsonl", "sample.passages": "{{ [original] }}"}
    )
    sample = task.samples[0]
    assert sample.passages[0].text == "The judge's text."
    rendered = task.strategy.render(sample)  # type: ignore[attr-defined]
    assert "The prompt's text." in rendered and "The judge's" not in rendered


def test_own_rows_in_place_of_the_hub(write: Write) -> None:
    """What says where the task's own rows are gives way; how they are taken stays."""
    write("mine/II.jsonl", [{"question": "1 + 1 = ?", "answer": 2}])
    for name in ("mine/II.jsonl", "mine/*.jsonl"):
        task = load_task("aime-2025-korean", overrides={"dataset.path": name})
        assert [(one.metadata["domain"], one.targets) for one in task.samples] == [("II", ("2",))]
        assert set(task.definition["dataset"]) == {"path", "subset", "duplicates", "samples", "content_hash"}
    write("dev.jsonl", [{"question": f"{n}?", "subject": "x", "choices": ["1", "2", "3", "4"], "answer": 0} for n in range(6)])  # fmt: skip
    overrides = {"dataset": {"path": "dev.jsonl"}, "prompt": {"few_shot": {"dataset": {"path": "dev.jsonl"}}}}
    assert len(load_task("mmlu", overrides=overrides).samples) == 6
