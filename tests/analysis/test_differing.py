"""What differs between two runs: old and new value, shortened, and never a secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.analysis.differing import configuration_differences
from evalwright.runs.reader import open_run
from support.runs import make_run


def lines(folder: Path, change: Any) -> list[str]:
    a = make_run(folder, scores=[1, 0], name="a", model="demo/m")
    b = make_run(folder, scores=[1, 0], name="b", model="demo/m")
    data = json.loads((b.folder / "run.json").read_text())
    change(data)
    (b.folder / "run.json").write_text(json.dumps(data))
    return list(configuration_differences(a, open_run(b.folder)))


def task(data: Any) -> Any:
    return data["tasks"][0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["configuration"].update(seed=7), "seed: 0 against 7"),
        (lambda d: task(d).update(version="2"), "factual: version: 1 against 2"),
        (
            lambda d: task(d).update(content_hash="x" * len(task(d)["content_hash"])),
            "factual: the data differ (",
        ),
        (
            lambda d: task(d)["definition"]["prompt"].update(user="Why?"),
            "factual: prompt.user: {{ question }} against Why?",
        ),
        (
            lambda d: task(d)["definition"].update(few_shot=5),
            "factual: few_shot: not set against 5",
        ),
        (
            lambda d: task(d)["scorers"][0].update(name="judge"),
            "factual: the scorers differ, as one of the runs was scored again (score against judge)",
        ),
        (
            lambda d: d["configuration"]["models"][0].update(
                arguments={"temperature": 1}
            ),
            "model argument temperature: not set against 1",
        ),
        (lambda d: d["model"].update(fingerprint="f00"), "model: fingerprint: "),
        (
            lambda d: d["roles"].update(judge={"name": "x/y"}),
            'role judge: not set against {"name": "x/y"}',
        ),
        (lambda d: d.update(evalwright="0.9"), "evalwright: 0.1.0 against 0.9"),
        (
            lambda d: d["environment"]["libraries"].update(numpy="2.5.0"),
            "environment: libraries.numpy: 2.4.0 against 2.5.0",
        ),
    ],
)
def test_one_line_each(tmp_path: Path, change: Any, said: str) -> None:
    (line,) = lines(tmp_path, change)
    assert line.startswith(said)


def test_long_values_are_cut_to_where_they_differ(tmp_path: Path) -> None:
    def change(data: Any) -> None:
        task(data)["definition"]["prompt"]["user"] = "x" * 500 + "tail" + "y" * 500

    (line,) = lines(tmp_path, change)
    assert len(line) < 180
    a = make_run(tmp_path / "l", scores=[1], name="a")
    data = json.loads((a.folder / "run.json").read_text())
    for run, end in (("one", "cats?"), ("two", "dogs?")):
        task(data)["definition"]["prompt"]["user"] = "Same beginning. " * 40 + end
        (tmp_path / run).mkdir()
        (tmp_path / run / "run.json").write_text(json.dumps(data))
    (line,) = configuration_differences(
        open_run(tmp_path / "one"), open_run(tmp_path / "two")
    )
    assert "cats?" in line and "dogs?" in line
    assert len(line) < 180


SECRET = "Zx81-very-private-value"


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["configuration"]["models"][0].update(arguments={"api_key": SECRET}),
        lambda d: d["configuration"]["models"][0].update(
            arguments={"headers": {"Authorization": SECRET}}
        ),
        lambda d: d["roles"].update(judge={"name": "x/y", "token": SECRET}),
        lambda d: d["roles"].update(
            judge={"name": "x/y", "password": {"value": SECRET}}
        ),
        lambda d: task(d)["definition"].update(hub={"access_token": SECRET}),
        lambda d: task(d)["definition"].update(list=[{"secret": SECRET}]),
        lambda d: task(d)["definition"].update(
            url=f"https://user:{SECRET}@example.org/x"
        ),
    ],
)
def test_secrets_are_never_shown(tmp_path: Path, change: Any) -> None:
    found = lines(tmp_path, change)
    assert found
    assert SECRET not in "\n".join(found)
    assert "[key]" in "\n".join(found)


def test_numbers_of_tokens_are_no_secrets(tmp_path: Path) -> None:
    found = lines(
        tmp_path, lambda d: task(d)["definition"].update(max_tokens=20, pad_token_id=3)
    )
    assert found == [
        "factual: max_tokens: not set against 20",
        "factual: pad_token_id: not set against 3",
    ]
