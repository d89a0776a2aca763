"""Includes merge, `for_each` expands, and both say where they fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.core.errors import DatasetError, TaskError
from evalwright.tasks.loading import load_task, load_tasks
from tasks.conftest import Load, Write, read_definitions


def test_this_file_wins_and_mappings_merge(write: Write) -> None:
    write(
        "a.yaml",
        "version: 1\nprompt: {system: A, user: A}\nanswer: {stop: [x, y]}\nmetadata: {tags: [a]}\n",
    )
    write("b.yaml", "prompt: {user: B, prefill: B}\n")
    path = write(
        "t.yaml",
        "include: [a.yaml, b.yaml]\ntask: t\nprompt: {prefill: T}\nanswer: {stop: [z]}\n",
    )
    (definition,) = read_definitions(path)
    assert definition.document.value == {
        "version": 1,
        "task": "t",
        "prompt": {"system": "A", "user": "B", "prefill": "T"},
        "answer": {"stop": ["z"]},
        "metadata": {"tags": ["a"]},
    }
    assert definition.document.at(("prompt", "user")) == "b.yaml:1"
    assert definition.document.at(("prompt", "prefill")) == "t.yaml:3"


def test_null_takes_an_included_key_away(write: Write, load: Load) -> None:
    write(
        "base.yaml",
        "dataset: {rows: [{input: a, target: b}]}\nprompt: {few_shot: {count: 5}}\n",
    )
    task = load("include: base.yaml\ntask: t\nprompt: {few_shot: null}\n")
    assert "few_shot" not in task.definition["prompt"]


def test_paths_start_from_the_file_that_says_them(write: Write) -> None:
    write("shared/base.yaml", "dataset: rows.jsonl\n")
    write("shared/rows.jsonl", [{"input": "a"}])
    write("tasks/own.jsonl", [{"input": "b"}])
    path = write("tasks/t.yaml", "include: ../shared/base.yaml\ntask: t\n")
    assert load_task(path).samples[0].input == "a"
    path = write(
        "tasks/t.yaml", "include: ../shared/base.yaml\ntask: t\ndataset: own.jsonl\n"
    )
    assert load_task(path).samples[0].input == "b"


def test_includes_nest_and_a_diamond_is_no_circle(write: Write, load: Load) -> None:
    write("root.yaml", "dataset: {rows: [{input: a, target: b}]}\n")
    write("left.yaml", "include: root.yaml\nversion: 3\n")
    write("right.yaml", "include: root.yaml\ndescription: d\n")
    task = load("include: [left.yaml, right.yaml]\ntask: t\n")
    assert (task.version, task.description) == ("3", "d")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"t.yaml": "task: t\ninclude: t.yaml\n"}, "t.yaml:2: 't.yaml' includes this file in turn"),
        (
            {"t.yaml": "include: a.yaml\n", "a.yaml": "x: 1\ninclude: t.yaml\n"},
            "a.yaml:2: 't.yaml' includes this file in turn; includes cannot be circular.",
        ),
        ({"t.yaml": "task: t\ninclude: [no.yaml]\n"}, "t.yaml:2: the file 'no.yaml' to include does not exist"),
        ({"t.yaml": "include: 5\n"}, "t.yaml:1: `include` is a file name or a list of them, not a whole number."),
        ({"t.yaml": "include: a.yaml\n", "a.yaml": "x: [\n"}, "a.yaml:2: this is not YAML"),
        ({"t.yaml": "task: t\nfor_each: []\n"}, "t.yaml:2: `for_each` is empty, so the file has no task."),
        ({"t.yaml": "task: t\nfor_each: {a: b}\n"}, "t.yaml:2: `for_each.a` is a list of values, not text."),
        ({"t.yaml": "task: t\nfor_each: 3\n"}, "t.yaml:2: `for_each` is a mapping of lists, or a list of mappings"),
        ({"t.yaml": "task: t\nfor_each:\n  - {a: 1}\n  - {b: 1}\n"}, "t.yaml:4: this entry of `for_each` does not have the same"),
        ({"t.yaml": "task: t\nfor_each: {a: [1, 2]}\n"}, "t.yaml:1: `for_each` gives the name 't' twice; put its variables"),
        (
            {"t.yaml": 'task: "t-{{ sbject }}"\nfor_each: {subject: [a]}\n'},
            "t.yaml:1: `for_each` has no variable 'sbject'; did you mean 'subject'? It has: subject.",
        ),
        ({"t.yaml": 'task: "t-{{ a"\nfor_each: {a: [1]}\n'}, "t.yaml:1: the template 't-{{ a' cannot be used"),
        (
            {"t.yaml": 'task: "{{ a }}"\nfor_each: {table: no.txt}\n'},
            "t.yaml:2: the table 'no.txt' must be a csv, tsv, json or jsonl file.",
        ),
        ({"t.yaml": 'task: "{{ a }}"\nfor_each: {a: [' + "1," * 200 + '], b: [' + "1," * 200 + "]}\n"}, "more than 20,000 tasks"),
    ],
)  # fmt: skip
def test_bad_definitions(write: Write, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        write(name, text)
    with pytest.raises(TaskError) as caught:
        read_definitions(Path("t.yaml"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_that_is_missing_is_named(write: Write) -> None:
    path = write("t.yaml", 'task: "{{ a }}"\nfor_each: {table: none.csv}\n')
    with pytest.raises(DatasetError, match=r"'none.csv'.*No such file"):
        read_definitions(path)


SUBJECTS = [f"subject_{number:02}" for number in range(57)]
MANY = """\
task: "many-{{ subject }}"
group: many
description: About {{ subject }}.
dataset: rows.jsonl
where: {subject: "{{ subject }}"}
sample: {input: "{{ question }}", choices: "{{ options }}", target: "{{ label }}"}
prompt:
  system: The following are questions about {{ subject | replace('_', ' ') }}.
  few_shot: {count: 2, dataset: dev.jsonl, where: {subject: "{{ subject }}"}}
answer: {mode: letter}
metadata: {domain: "{{ subject }}"}
for_each: %s
"""


@pytest.mark.parametrize("form", ["mapping", "list", "csv", "jsonl"])
def test_57_subjects_are_one_file(write: Write, form: str) -> None:
    def data(n: int) -> list[dict[str, object]]:
        return [
            {
                "subject": subject,
                "question": f"{subject} {number}?",
                "options": ["x", "y"],
                "label": "A",
            }
            for number in range(n)
            for subject in SUBJECTS
        ]

    write("rows.jsonl", data(4))
    write(
        "dev.jsonl", [{**row, "question": f"dev {row['question']}"} for row in data(3)]
    )
    write("subjects.csv", "subject\n" + "\n".join(SUBJECTS) + "\n")
    write("subjects.jsonl", [{"subject": subject} for subject in SUBJECTS])
    each = {
        "mapping": f"{{subject: [{', '.join(SUBJECTS)}]}}",
        "list": "["
        + ", ".join(f"{{subject: {subject}}}" for subject in SUBJECTS)
        + "]",
        "csv": "{table: subjects.csv}",
        "jsonl": "{table: subjects.jsonl}",
    }[form]
    path = write("many.yaml", MANY % each)
    tasks = load_tasks(path)
    assert [task.name for task in tasks] == [f"many-{subject}" for subject in SUBJECTS]
    for task, subject in zip(tasks, SUBJECTS, strict=True):
        assert len(task.samples) == 4
        assert {sample.row["subject"] for sample in task.samples} == {subject}
        assert task.description == f"About {subject}."
        assert task.samples[0].metadata["domain"] == subject
        strategy: object = task.strategy
        prompt = strategy.render(task.samples[1])  # type: ignore[attr-defined]
        assert prompt.startswith(
            f"The following are questions about {subject.replace('_', ' ')}.\n\ndev {subject} "
        )
        assert prompt.count("dev ") == 2
    assert load_task(f"{path}:many-subject_07").name == "many-subject_07"
    assert load_task(f"{path}:subject_07").name == "many-subject_07"


def test_templates_of_scorers_are_left_to_them(write: Write) -> None:
    path = write(
        "t.yaml",
        'task: "t-{{ a }}"\nfor_each: {a: [1]}\nscorers: [{judge: {prompt: "{{ answer }}", x: "{{ a }}"}}]\n',
    )
    (one,) = read_definitions(path)
    assert one.document.value["scorers"] == [
        {"judge": {"prompt": "{{ answer }}", "x": 1}}
    ]
