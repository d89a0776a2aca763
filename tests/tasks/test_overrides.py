"""Settings put over a task from outside: nested or dotted, scorers by name, files from where the
person is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import evalwright.tasks
from evalwright.core.errors import OutOfReach, TaskError, UnknownName, UsageError
from evalwright.core.tasks import Task
from evalwright.tasks.definitions import Definition, merged
from evalwright.tasks.loading import find_definitions, load_task, load_tasks
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
        (
            {"scorers.lose.x": 1},
            UnknownName,
            "Unknown scorer 'lose' of the task. Did you mean 'loose'?",
        ),
        ({"metrics.acuracy.level": 0.9}, UnknownName, "Did you mean 'accuracy'"),
        (
            {"scorers.loose": 3},
            TaskError,
            "takes options, such as scorers.loose.option=value",
        ),
        ({"scorers.loose.ignore_cas": True}, UsageError, "Did you mean 'ignore_case'"),
        ({"anwser.max_tokens": 3}, TaskError, "did you mean `answer`"),
        ({"dataset.path": "none.jsonl"}, UsageError, "none.jsonl"),
    ],
)
def test_what_is_wrong_is_said(
    load: Load,
    write: Write,
    overrides: dict[str, Any],
    error: type[Exception],
    message: str,
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
    assert [
        sample.id
        for sample in load_task(path, overrides={"dataset": "mine.csv"}).samples
    ] == ["x", "y"]
    assert [
        sample.id
        for sample in load_task(
            path, overrides={"dataset.path": ["mine.csv", "rows.jsonl"]}
        ).samples
    ] == [
        "x",
        "y",
        "other",
    ]


def test_another_frameworks_tasks_have_their_own_settings() -> None:
    with pytest.raises(TaskError, match="cannot be overridden"):
        load_tasks("lm-eval:arc_easy", overrides={"version": "2"})


# -- articles
# -----------------------------------------------------------------------------------------------------------

LONG = "word " * 60_000


def test_articles_of_ones_own(write: Write) -> None:
    write(
        "a.csv",
        f'article_id,text,category\n1,"First, a text.",news\n2,"{LONG.strip()}",\n',
    )
    task = load_task("summary-faithfulness", overrides={"dataset.path": "a.csv"})
    first, second = task.samples
    assert (first.id, first.passages[0].text, first.metadata["category"]) == (
        "1",
        "First, a text.",
        "news",
    )
    assert "category" not in second.metadata and "dataset" not in second.metadata
    assert second.passages[0].text == LONG.strip()
    rendered = task.strategy.render(first)  # type: ignore[attr-defined]
    assert "First, a text." in rendered


def test_another_source_for_the_judge_than_the_prompts(write: Write) -> None:
    write(
        "a.jsonl",
        [
            {
                "article_id": 1,
                "text": "The prompt's text.",
                "original": "The judge's text.",
            }
        ],
    )
    task = load_task(
        "summary-faithfulness",
        overrides={"dataset": "a.jsonl", "sample.passages": "{{ [original] }}"},
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
        assert [
            (sample.metadata["domain"], sample.targets) for sample in task.samples
        ] == [("II", ("2",))]
        assert set(task.definition["dataset"]) == {
            "path",
            "subset",
            "duplicates",
            "samples",
            "content_hash",
        }
    write("dev.jsonl", [{"question": f"{n}?", "subject": "x", "choices": ["1", "2", "3", "4"], "answer": 0} for n in range(6)])  # fmt: skip
    overrides = {
        "dataset": {"path": "dev.jsonl"},
        "prompt": {"few_shot": {"dataset": {"path": "dev.jsonl"}}},
    }
    assert len(load_task("mmlu", overrides=overrides).samples) == 6


FORMS = """
for_each:
  - {form: "", mode: letter}
  - {form: -generate, mode: generate}
task: "t{{ form }}"
dataset: rows.jsonl
sample: {choices: ["a", "b"], target: 0}
answer: "{{ {'mode': mode, 'text': {'max_tokens': 7}, 'chat': {'max_tokens': 9}} if mode == 'generate' else {'mode': mode} }}"
scorers: ["{{ {'use': 'choice', 'name': 'chosen'} if mode == 'generate' else 'choice' }}"]
"""


def settings_of(task: Task) -> Mapping[str, Any]:
    """How the task's answer is drawn, as its record has it."""
    return dict(task.definition["answer"])


@pytest.mark.parametrize("chat", [False, True])
def test_a_value_below_a_template_changes_alone(write: Write, chat: bool) -> None:
    write("rows.jsonl", [{"id": "a", "input": "q"}])
    file = write("task.yaml", FORMS)
    plain = load_task(f"{file}:t-generate", chat=chat)
    warm = load_task(
        f"{file}:t-generate", chat=chat, overrides={"answer.temperature": 0.5}
    )
    assert settings_of(plain)["max_tokens"] == (9 if chat else 7)
    assert settings_of(warm) == {**settings_of(plain), "temperature": 0.5}

    by_likelihood = load_task(f"{file}:t", overrides={"prompt.system": "S"})
    assert settings_of(by_likelihood) == settings_of(load_task(f"{file}:t"))
    with pytest.raises(
        TaskError,
        match=r"'answer.max_tokens' \(-T\): .*mode letter",
    ):
        load_task(f"{file}:t", overrides={"answer.max_tokens": 20})


def test_a_setting_of_the_wrong_form_names_the_twin_that_takes_it(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    rows = own_folder / "rows.jsonl"
    rows.write_text(
        '{"question": "q", "A": "a", "B": "b", "C": "c", "D": "d", "answer": 1}\n',
        encoding="utf-8",
    )
    given = {"dataset.path": str(rows)}
    with pytest.raises(TaskError, match=r"mode letter.*'kmmlu-generate'"):
        load_task("kmmlu", overrides={**given, "answer.max_tokens": 20})
    with pytest.raises(TaskError, match=r"mode letter.*'kmmlu'"):
        load_task("kmmlu-generate", overrides={**given, "answer.mode": "letter"})


@pytest.mark.parametrize(
    ("task", "overrides", "advice"),
    [
        ("kmmlu-generate", {}, "with the same columns: -T dataset.path=FILE."),
        ("mmlu", {}, "-T dataset.path=FILE -T prompt.few_shot.dataset.path=FILE."),
        (
            "mmlu",
            {"dataset.path": "rows.jsonl"},
            "with the same columns: -T prompt.few_shot.dataset.path=FILE.",
        ),
    ],
)
def test_data_that_are_out_of_reach_may_be_given_as_a_file(
    task: str,
    overrides: dict[str, Any],
    advice: str,
    own_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (own_folder / "rows.jsonl").write_text('{"input": "q"}\n', encoding="utf-8")
    with pytest.raises(OutOfReach) as raised:
        load_task(task, overrides=overrides)
    assert str(raised.value).endswith(advice)


def test_a_scorer_that_is_a_template_has_its_name(write: Write) -> None:
    write("rows.jsonl", [{"id": "a", "input": "q"}])
    file = write("task.yaml", FORMS)
    task = load_task(
        f"{file}:t-generate", overrides={"scorers.chosen.unsure": "judge-correct"}
    )
    assert [(scorer.name, scorer.options.get("unsure")) for scorer in task.scorers] == [
        ("chosen", "judge-correct")
    ]
    with pytest.raises(UnknownName, match=r"'chosen'.*It has: choice"):
        load_task(f"{file}:t", overrides={"scorers.chosen.unsure": "judge-correct"})


def test_a_setting_from_outside_wins_over_that_of_a_form(
    load: Load, write: Write
) -> None:
    write("rows.jsonl", ROWS)
    text = "task: t\ndataset: rows.jsonl\nanswer: {text: {max_tokens: 512, temperature: 1, stop: [x]}, chat: {max_tokens: 900}}\nscorers: [exact-match]"
    short = load(text, overrides={"answer.max_tokens": 20, "answer.temperature": 0})
    assert (
        settings_of(short)["max_tokens"] == 20
        and settings_of(short)["temperature"] == 0
    )
    assert settings_of(short)["stop"] == ["x"]
    named = load(
        text, overrides={"answer.max_tokens": 20, "answer.text.max_tokens": 30}
    )
    assert settings_of(named)["max_tokens"] == 30


def test_a_key_beside_the_file_of_a_data_set(load: Load, write: Write) -> None:
    write("rows.txt", '{"id": "a", "input": "q", "target": "t"}\n')
    task = load(
        TASK.replace("rows.jsonl", "rows.txt"), overrides={"dataset.format": "jsonl"}
    )
    assert [sample.input for sample in task.samples] == ["q"]


def test_templates_in_overrides_have_the_variables_of_the_file(write: Write) -> None:
    write("rows.jsonl", [{"id": "a", "input": "q"}])
    file = write("task.yaml", FORMS)
    (found,) = find_definitions(
        f"{file}:t-generate", overrides={"metadata.form": "{{ mode }} of {{ form }}"}
    )
    assert isinstance(found, Definition)
    assert found.document.value["metadata"] == {"form": "generate of -generate"}


LIBRARY = sorted(
    path
    for path in (Path(evalwright.tasks.__file__).parent / "library").rglob("*.yaml")
    if not path.name.startswith("_")
)
CHANGES = {
    "answer": {"top_logprobs": 3},
    "prompt": {"system": "S"},
    "metadata": {"note": 1},
}


@pytest.mark.parametrize("file", LIBRARY, ids=lambda path: path.stem)
def test_every_bundled_task_keeps_what_an_override_does_not_name(file: Path) -> None:
    if "dataset" not in file.read_text(encoding="utf-8"):
        pytest.skip("no task of its own")
    for before, after in zip(
        find_definitions(file), find_definitions(file, overrides=CHANGES), strict=True
    ):
        assert isinstance(before, Definition) and isinstance(after, Definition)
        assert after.document.value == merged(before.document.value, CHANGES)
