"""A bundled task on a person's own rows, whose columns are not those of the task."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from support.typed import typed

LETTERS = "question,A,B,C,D,answer\n" + "".join(
    f"What is {number}+1?,1,2,{number}0,{number}1,A\n" for number in range(3, 10)
)
OWN_ROWS = (
    *("-T", "dataset.path=mine.csv", "-T", "prompt.few_shot.dataset.path=mine.csv"),
    *("--model", "demo/small", "--quiet"),
)


def test_all_missing_columns_are_named_and_the_advice_mends_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.csv").write_text(LETTERS, encoding="utf-8")
    refused = typed("run", "mmlu", *OWN_ROWS, folder=tmp_path)
    assert refused.code == 2
    assert (
        "mine.csv, row 1: there are no columns 'choices' (`sample.choices`) and"
        " 'subject' (`sample.metadata.domain`)" in refused.err
    )
    assert "The columns are: A, B, C, D, answer, question." in refused.err
    assert "The task reads: answer, choices, question, subject." in refused.err

    advice = refused.err.strip().removesuffix(".").partition("own columns: ")[2]
    assert "'sample.choices={{ [A, B, C, D] }}'" in advice
    done = typed("run", "mmlu", *OWN_ROWS, *shlex.split(advice), folder=tmp_path)
    assert done.code == 0, done.err


def test_columns_with_names_that_are_no_words(tmp_path: Path) -> None:
    rows = LETTERS.replace("A,B,C,D,answer", "option a,option b,option c,option d,key")
    (tmp_path / "mine.csv").write_text(rows, encoding="utf-8")
    refused = typed("run", "mmlu", *OWN_ROWS, folder=tmp_path)
    advice = refused.err.strip().removesuffix(".").partition("own columns: ")[2]
    settings = shlex.split(advice)
    assert "sample.target={{ COLUMN }}" in settings
    settings[settings.index("sample.target={{ COLUMN }}")] = "sample.target={{ key }}"
    done = typed("run", "mmlu", *OWN_ROWS, *settings, folder=tmp_path)
    assert done.code == 0, done.err


def test_a_column_of_equal_shots(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(LETTERS, encoding="utf-8")
    settings = (
        *("-T", "sample.choices={{ [A, B, C, D] }}"),
        *("-T", "sample.metadata.domain=sums"),
    )
    refused = typed("run", "mmlu", *OWN_ROWS, *settings, folder=tmp_path)
    assert re.search(r"no column 'subject'.*-T prompt.few_shot.same=", refused.err)


def test_a_column_that_only_a_later_row_lacks(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"q": "a", "t": "b"}\n{"t": "c"}\n')
    (tmp_path / "t.yaml").write_text(
        'task: t\ndataset: rows.jsonl\nsample: {input: "{{ q }}", target: "{{ t }}"}\n'
    )
    said = typed("run", "t.yaml", "--model", "demo/small", folder=tmp_path).err
    assert "rows.jsonl, row 2: `sample.input` (t.yaml:3)" in said
    assert "own columns" not in said


@pytest.mark.parametrize("command", ["preview", "run"])
def test_tasks_of_lm_eval_say_how_their_package_is_installed(
    command: str, tmp_path: Path
) -> None:
    words = ("tasks", "preview") if command == "preview" else ("run",)
    done = typed(*words, "lm-eval:mmlu", "--model", "demo/small", folder=tmp_path)
    if "not installed" not in done.err:
        pytest.skip("lm_eval is installed")
    assert done.code == 2
    assert "pip install 'evalwright[lm-eval]'" in done.err
    assert "--task-root" in done.err
