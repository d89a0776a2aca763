"""Bad task files: one sentence each, with file and line, and the closest key."""

from __future__ import annotations

import pytest

from evalwright.core.errors import TaskError
from tasks.conftest import Load, Write

GOOD = """\
task: t
dataset:
  rows: [{input: q, target: a}]
"""

CASES = [
    (GOOD + "promt: {}\n", "task.yaml:4: unknown key `promt`; did you mean `prompt`?"),
    (
        GOOD + "prompt:\n  few_shot:\n    counts: 1\n",
        "task.yaml:6: unknown key `counts` in `prompt.few_shot`; did you mean `count`?",
    ),
    (
        GOOD + "few_shot: {count: 1}\n",
        "task.yaml:4: unknown key `few_shot`; it belongs in `prompt`.",
    ),
    (
        GOOD + "output_type: x\n",
        "task.yaml:4: unknown key `output_type`. Known: task, version, description,",
    ),
    ("dataset: x.jsonl\n", "task.yaml:1: the key `task` is missing."),
    (
        GOOD.replace("task: t", "task: a/b"),
        "task.yaml:1: 'a/b' cannot be a name: letters, digits and . _ + - only",
    ),
    (
        GOOD + "answer: {mode: likelyhood}\n",
        "task.yaml:4: `answer.mode` must be generate, likelihood, letter, continuation, perplexity, classify or given, not 'likelyhood'. Did you mean likelihood?",
    ),
    (
        GOOD + "answer:\n  max_tokens: many\n",
        "task.yaml:5: `answer.max_tokens` must be a whole number, not text.",
    ),
    (
        GOOD + "answer: {max_tokens: 0}\n",
        "task.yaml:4: `answer.max_tokens` must be greater than or equal to 1, not 0.",
    ),
    (
        GOOD + "description: true\n",
        "task.yaml:4: `description` must be text, not true or false (put quotes around it to make it text).",
    ),
    (
        "task: t\ndataset:\n",
        "task.yaml:2: `dataset` must be a mapping, not nothing (null).",
    ),
    (
        "task: t\ndataset: {path: a.jsonl, hub: o/n}\n",
        "task.yaml:2: a dataset has exactly one of `path`, `hub`, `rows`, `needles` and `common_words`; it has path and hub.",
    ),
    (
        "task: t\ndataset:\n  hub: o/n\n",
        "a dataset from the hub needs a `revision` (a commit), so that it stays the same.",
    ),
    (
        "task: t\ndataset: {path: a.jsonl, revision: x}\n",
        "task.yaml:2: `revision` can only be used with `hub`, not with `path`.",
    ),
    (
        "task: t\ndataset: {rows: [{a: b}], format: csv}\n",
        "`format` and `key` can only be used with `path`, not with `rows`.",
    ),
    (
        "task: t\ndataset:\n  rows:\n    - a: b\n    - c\n",
        "task.yaml:5: `dataset.rows[1]` must be a mapping, not text.",
    ),
    (
        GOOD + "prompt: {few_shot: {seed: 1}}\n",
        "task.yaml:4: the key `prompt.few_shot.count` is missing.",
    ),
    (
        GOOD + "answer: {stop: ['']}\n",
        "an empty stop string would end every answer immediately.",
    ),
    (GOOD + "prompt: {user: []}\n", "a conversation needs at least one user turn."),
    (
        GOOD + "scorers:\n  - {exact-match: {}, choice: {}}\n",
        "task.yaml:5: a scorer with a label is written {name: label, use: scorer, ...options}.",
    ),
    (
        GOOD + "scorers: [5]\n",
        "a scorer is a name, or a mapping of a name to its options, not a whole number.",
    ),
    (
        GOOD + "metrics: [{accuracy: high}]\n",
        "the options of the metric 'accuracy' are a mapping, not text.",
    ),
    (
        GOOD + "task: u\n",
        "task.yaml:4: the key 'task' is given twice (first in line 1).",
    ),
]


@pytest.mark.parametrize(("text", "message"), CASES)
def test_bad_files(load: Load, text: str, message: str) -> None:
    with pytest.raises(TaskError) as caught:
        load(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("task.yaml:")


def test_the_good_file_is_good(load: Load) -> None:
    assert load(GOOD).name == "t"


def test_an_included_file_is_named_where_the_mistake_is_in_it(
    write: Write, load: Load
) -> None:
    write("base.yaml", "version: 1\nanswer:\n  temprature: 1\n")
    with pytest.raises(
        TaskError,
        match=r"^base.yaml:3: .*`temprature` in `answer`.*`temperature`",
    ):
        load("include: base.yaml\n" + GOOD)


def test_numbers_are_taken_as_text_the_way_they_were_written(load: Load) -> None:
    assert load(GOOD + "version: 1.10\n").version == "1.10"
    assert load(GOOD + "version: 2\n").version == "2"
