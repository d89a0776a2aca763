"""Filters over metadata: what they keep, what they say where they find nothing, and that a run
records them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError
from evalwright.tasks.filtering import filtered, meets, read_conditions
from evalwright.tasks.loading import load_tasks
from support.typed import typed

ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "1?", "answer": "1", "domain": "science", "language": "en", "tags": ["x", "y"]},
    {"id": "b", "question": "2?", "answer": "2", "domain": "science", "language": "ko", "tags": ["x"]},
    {"id": "c", "question": "3?", "answer": "3", "domain": "history", "language": "ko", "tags": []},
    {"id": "d", "question": "4?", "answer": "4", "domain": "sport", "language": "en", "tags": ["z"], "year": 2020},
]  # fmt: skip


def write_task(
    folder: Path, name: str = "quiz", rows: list[dict[str, Any]] = ROWS
) -> Path:
    (folder / f"{name}.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    path = folder / f"{name}.yaml"
    path.write_text(
        f"task: {name}\ngroup: all\ndataset: {name}.jsonl\n"
        'sample: {input: "{{ question }}", target: "{{ answer }}", '
        'metadata: {tags: "{{ tags }}", year: "{{ year | default(none) }}"}}\n'
        'prompt: {user: "{{ input }}"}\nanswer: {mode: generate, max_tokens: 4}\nscorers: [exact-match]\n'
    )
    return path


def kept(*texts: str) -> list[str]:
    (task,) = filtered(
        load_tasks(str(write_task(Path.cwd()))), read_conditions(texts)
    ).tasks
    assert [task.samples[index].id for index in range(len(task.samples))] == [
        sample.id for sample in task.samples
    ]
    return [sample.id for sample in task.samples]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], "abcd"), (["domain=science", "domain=sport", "language!=ko"], "ad"), (["tags=x"], "ab"),
        (["tags!=x"], "cd"), (["year=2020"], "d"), (["year!=2020"], "abc"), ([" domain = science "], "ab"),
    ],
)  # fmt: skip
def test_what_is_kept(texts: list[str], expected: str) -> None:
    assert "".join(kept(*texts)) == expected


values = st.sampled_from(["p", "q", "r"])


@given(
    st.dictionaries(st.sampled_from(["k", "l"]), values),
    st.lists(st.tuples(st.sampled_from(["k", "l"]), st.booleans(), values), max_size=5),
)
def test_conditions_against_brute_force(
    metadata: dict[str, str], wanted: list[tuple[str, bool, str]]
) -> None:
    conditions = read_conditions(
        [f"{key}{'=' if equal else '!='}{value}" for key, equal, value in wanted]
    )
    expected = all(
        metadata.get(key) != value for key, equal, value in wanted if not equal
    )
    for key in ("k", "l"):
        allowed = {value for other, equal, value in wanted if equal and other == key}
        expected = expected and (not allowed or metadata.get(key) in allowed)
    assert meets(metadata, conditions) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("domain", "is not a filter"),
        ("=x", "is not a filter"),
        ("domain=", "is not a filter"),
        ("!=x", "is not a filter"),
        (
            "domian=science",
            r"Did you mean 'domain'\? There are \(with numbers of values\): .*domain \(3\)",
        ),
        (
            "domain=scence",
            r"Did you mean 'science'\? There are: science \(2\), history \(1\), sport \(1\)\.",
        ),
        ("domain!=scence", r"Did you mean 'science'\?"),
    ],
)
def test_what_is_not_there(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        kept(text)


def test_conditions_that_nothing_meets_together() -> None:
    with pytest.raises(
        ConfigurationError, match="matches domain=history and language=en together"
    ):
        kept("language=en", "domain=history")


def test_by_the_command_line() -> None:
    write_task(Path.cwd())
    write_task(Path.cwd(), "other", [{**ROWS[2], "id": "z"}])
    done = typed(
        *[
            "run", "quiz.yaml", "other.yaml", "--model", "scripted/echo", "--where", "domain=science",
            "--name", "r",
        ]
    )  # fmt: skip
    assert done.code == 0
    assert "Left out, because no sample matches domain=science: other." in done.err
    record = json.loads(Path("runs/r/run.json").read_text())
    assert record["configuration"]["where"] == ["domain=science"]
    (task,) = record["tasks"]
    assert task["definition"]["filter"] == {
        "where": ["domain=science"],
        "kept": 2,
        "of": 4,
    }
    assert task["n_samples"] == 2
    # The record is a configuration that makes the same run; another filter is another run.
    assert typed("run", "--config", "runs/r/run.json", "--quiet").code == 0
    done = typed(
        "run",
        "quiz.yaml",
        "--model",
        "scripted/echo",
        "--where",
        "domain!=sport",
        "--name",
        "r",
    )
    assert done.code == 2 and "from another configuration" in done.err
    done = typed(
        "run", "quiz.yaml", "--model", "scripted/echo", "--where", "domain=geography"
    )
    assert done.code == 2 and "There are: science (2)" in done.err


def test_a_tasks_own_metadata_filters_its_samples_and_is_a_slice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [dict(row, tags=None, language="") for row in ROWS]
    for name, tags in (("open", "[closed-book, facts]"), ("shut", "[grounded]")):
        path = write_task(tmp_path, name, rows)
        text = path.read_text() + f"metadata: {{tags: {tags}, language: th}}\n"
        path.write_text(text)
    command = ("run", "open.yaml", "shut.yaml", "--model", "scripted/echo")
    chosen = typed(*command, "--where", "tags=closed-book", "--name", "tagged")
    assert chosen.code == 0, chosen.text
    assert [task["name"] for task in record("tagged")["tasks"]] == ["open"]
    unknown = typed(*command, "--where", "tags=closed-boo")
    assert unknown.code == 2
    assert "Did you mean 'closed-book'?" in unknown.err

    for name in ("first", "second"):
        assert typed(*command, "--name", name).code == 0
    searched = typed("runs", "samples", "first", "--where", "tags=grounded", "--json")
    tasks = {sample["record"]["task"] for sample in json.loads(searched.out)["samples"]}
    assert tasks == {"shut"}
    compared = typed("compare", "first", "second", "--slice", "tags", "--all-slices")
    assert compared.code == 0, compared.text
    assert "closed-book, facts" in compared.out


def record(run: str) -> dict[str, Any]:
    run_record: dict[str, Any] = json.loads(Path(f"runs/{run}/run.json").read_text())
    return run_record
