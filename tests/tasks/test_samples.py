"""Rows that are wrong are named with file and row before anything is asked; rows that are right
become samples.
"""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import DatasetError
from evalwright.core.samples import Passage, Sample
from evalwright.tasks.samples import RowError, SampleMaker, content_id
from evalwright.tasks.schema import Sample as SampleKeys
from evalwright.tasks.yaml_files import Document
from tasks.conftest import Load, Write


def make(row: dict[str, Any], **keys: Any) -> Sample:
    document = Document({}, "test", Path())
    return SampleMaker(SampleKeys.model_validate(keys), document, ("sample",), {}, {})(
        row
    )


def test_columns_of_the_same_name_need_no_template() -> None:
    row = {
        "id": 7, "input": "q", "target": "a", "aliases": ["b", "a"], "cluster": 3,
        "passages": ["one", {"id": "x", "text": "two"}], "domain": "art", "created_at": "2026",
    }  # fmt: skip
    sample = make(row)
    assert sample == Sample(
        id="7",
        input="q",
        targets=("a", "b"),
        passages=(Passage("1", "one"), Passage("x", "two")),
        cluster="3",
        metadata={"domain": "art", "created_at": "2026"},
    )
    assert sample.row is row


@pytest.mark.parametrize(
    ("choices", "target", "gold"),
    [
        (["x", "y"], "B", (1,)), (["x", "y"], 1, (1,)), (["x", "y"], "y", (1,)),
        (["x", "y"], ["A", "y"], (0, 1)), (["x", "y"], [1, 1], (1,)), (["1", "2", "0"], "1", (0,)),
        ([1, 2, 0], "0", (2,)), (["A", "B"], "B", (1,)), (["no", "yes"], "no", (0,)),
        ([True, False], "True", (0,)), (["x", "x"], "B", (1,)),
    ],
)  # fmt: skip
def test_a_target_is_a_text_a_letter_or_a_position(
    choices: list[Any], target: Any, gold: tuple[int, ...]
) -> None:
    sample = make({"choices": choices, "target": target})
    assert sample.gold == gold
    assert sample.targets == tuple(str(choices[index]) for index in gold)


BAD_ROWS = [
    (
        {"choices": ["x", "y"], "target": "z"},
        "the target 'z' is not among the choices ('x', 'y')",
    ),
    ({"choices": ["x", "y"], "target": "C"}, "the target 'C' is not among the choices"),
    (
        {"choices": ["x", "y"], "target": 2},
        "the target 2 is not among the 2 choices, which count from 0",
    ),
    ({"choices": ["x", "y"], "target": -1}, "the target -1 is not among the 2 choices"),
    (
        {"choices": ["x", "y"], "target": "1"},
        "for a position counted from 0, write {{ column | int }}",
    ),
    (
        {"choices": ["x", "y"], "target": True},
        "the target 'True' is not among the choices",
    ),
    (
        {"choices": ["B", "A"], "target": "A"},
        "'A' is the letter of one choice and the text of another",
    ),
    (
        {"choices": ["x", "x"], "target": "x"},
        "'x' is the text of 2 choices; give its letter or position instead",
    ),
    (
        {"choices": ["x"], "target": "x"},
        "a question with choices needs at least two, but this one has 1",
    ),
    ({"choices": "xy", "target": "x"}, "`choices` must be a list, not text"),
    (
        {"choices": ["x", None], "target": "x"},
        "a choice must be text, not nothing (null)",
    ),
    ({"choices": ["x", ["y"]], "target": "x"}, "a choice must be text, not a list"),
    ({"target": []}, "the target is an empty list"),
    ({"target": {"a": 1}}, "a target must be text, not a mapping"),
    ({"aliases": {"a": 1}}, "`aliases` must be a list, not a mapping"),
    ({"passages": "text"}, "`passages` must be a list, not text"),
    (
        {"passages": [{"id": "1"}]},
        "passage 1 is neither text nor a mapping with `text`",
    ),
    ({"passages": ["a", {"id": "1", "text": "b"}]}, "two passages have the same id"),
    ({"input": ["a"]}, "the input must be text, not a list"),
    ({"id": {"a": 1}}, "the id must be text, not a mapping"),
]


@pytest.mark.parametrize(("row", "message"), BAD_ROWS)
def test_bad_rows(row: dict[str, Any], message: str) -> None:
    with pytest.raises(RowError) as caught:
        make(row)
    assert message in str(caught.value)


def test_a_row_without_an_id_is_named_by_its_content() -> None:
    assert (
        make({"input": "x", "b": 1}).id
        == make({"b": 1, "input": "x"}).id
        == content_id({"b": 1, "input": "x"})
    )
    assert make({"input": "x"}).id != make({"input": "y"}).id


def rows_with(number: int, line: str) -> str:
    """JSONL of 1,500 rows whose row `number` is `line`."""
    rows = [
        json.dumps({"id": index, "input": f"q{index}", "target": "a"})
        for index in range(1, 1501)
    ]
    rows[number - 1] = line
    return "\n".join(rows) + "\n"


FILE = 'task: t\ndataset: data.jsonl\nsample: {input: "{{ input }}", target: "{{ target }}"}\n'
BAD_LINES = [
    ('{"id": 1234, "input": "q"', "data.jsonl, row 1,234: this line is not JSON: expecting ',' delimiter at character 26."),
    ('["q", "a"]', "data.jsonl, row 1,234: a row must be an object of columns"),
    ('{"id": 1234, "target": "a"}', "data.jsonl, row 1,234: `sample.input` (task.yaml:3) cannot be rendered: there is no column 'input'. The columns are: id, target."),
    ('{"id": 1234, "inputs": "q", "target": "a"}', "there is no column 'input'; did you mean 'inputs'? The columns are: id, inputs, target."),
    ('{"id": 1234, "input": "q", "target": null}', "data.jsonl, row 1,234: the target is null."),
    ('{"id": 7, "input": "q", "target": "a"}', "data.jsonl, row 1,234: the id '7' is already that of data.jsonl, row 7; ids must differ."),
    ('{"id": 1234, "input": "\\ud800", "target": "a"}', "data.jsonl, row 1,234: the text has half of a surrogate pair"),
    ('{"id": ' + "9" * 5000 + "}", "data.jsonl, row 1,234: this line has a number or a nesting that is too large to read."),
    ("[" * 100000, "data.jsonl, row 1,234: this line"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
def test_a_bad_line_is_named(write: Write, load: Load, line: str, message: str) -> None:
    write("data.jsonl", rows_with(1234, line))
    with pytest.raises(DatasetError) as caught:
        load(FILE)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_named(write: Write, load: Load) -> None:
    write("data.jsonl", rows_with(1234, "X").encode().replace(b"X", b'{"id": "\xe9"}'))
    with pytest.raises(
        DatasetError,
        match=r"data.jsonl, row 1,234: byte 9 .*UTF-8",
    ):
        load(FILE)
    write("data.jsonl", '{"id": 1}\n'.encode("utf-16"))
    with pytest.raises(DatasetError, match="the file is UTF-16, not UTF-8"):
        load(FILE)


def test_a_prompt_that_cannot_be_rendered_is_found_before_anything_is_asked(
    write: Write, load: Load
) -> None:
    rows: list[dict[str, Any]] = [
        {"id": index, "input": "q", "target": "a", "hint": "h"} for index in range(2000)
    ]
    rows[1233]["hint"] = None
    write("data.jsonl", rows)
    with pytest.raises(
        DatasetError,
        match=r"data.jsonl, row 1,234: `prompt.user` \(task.yaml:4\) .*null",
    ):
        load(FILE + 'prompt: {user: "{{ input }} ({{ hint }})"}\n')
    with pytest.raises(
        DatasetError,
        match=r"row 1: `prompt.user` \(task.yaml:4\) .*'hnt'; did you mean 'hint'",
    ):
        load(FILE + 'prompt: {user: "{{ hnt }}"}\n')


@pytest.mark.parametrize(
    ("mode", "row", "message"),
    [
        ("letter", {"target": "A"}, "the row has no choices, which the mode letter needs"),
        ("likelihood", {"choices": ["a", "b"]}, "the row has no target, so no choice is right"),
        ("letter", {"choices": list("abcdefghijklmnopqrstuvwxyz0"), "target": 0}, "the row has 27 choices, and there are 26 letters"),
        ("continuation", {"input": "x", "target": ""}, "the row has no target to compute the likelihood of"),
    ],
)  # fmt: skip
def test_modes_find_rows_that_they_cannot_use(
    write: Write, load: Load, mode: str, row: dict[str, Any], message: str
) -> None:
    write(
        "data.jsonl",
        [{"id": 0, "choices": ["a", "b"], "target": "A"}, {"id": 1, **row}],
    )
    with pytest.raises(DatasetError, match=f"row 2: {message}"):
        load(f"task: t\ndataset: data.jsonl\nanswer: {{mode: {mode}}}\n")


def test_equal_rows_can_be_dropped(write: Write, load: Load) -> None:
    rows = [
        {"input": "a"},
        {"input": "b"},
        {"input": "a"},
        {"input": "c"},
        {"input": "b"},
    ]
    write("data.jsonl", rows)
    with pytest.raises(
        DatasetError,
        match=r"row 3: .*'\w+'.*data.jsonl, row 1; .*equal",
    ):
        load("task: t\ndataset: data.jsonl\n")
    task = load("task: t\ndataset: {path: data.jsonl, duplicates: drop}\n")
    assert [sample.input for sample in task.samples] == ["a", "b", "c"]
    write("more.jsonl", [{"input": "c"}, {"input": "d"}])
    task = load(
        "task: t\ndataset: {path: [data.jsonl, more.jsonl], duplicates: drop}\n"
    )
    assert [sample.input for sample in task.samples] == ["a", "b", "c", "d"]
    write("data.jsonl", [{"id": 1, "input": "a"}, {"id": 1, "input": "b"}])
    with pytest.raises(DatasetError, match="ids must differ"):
        load("task: t\ndataset: {path: data.jsonl, duplicates: drop}\n")


def test_the_hash_is_of_the_content(write: Write, load: Load) -> None:
    def content_hash(rows: list[dict[str, Any]], extra: str = "") -> str:
        write("data.jsonl", rows)
        return load("task: t\ndataset: data.jsonl\n" + extra).samples.content_hash

    rows = [{"id": 1, "input": "a"}, {"id": 2, "input": "b"}]
    first = content_hash(rows)
    assert content_hash(rows) == first
    assert content_hash(rows[::-1]) != first
    assert content_hash([*rows, {"id": 3, "input": "c"}]) != first
    # another recipe
    assert content_hash([*rows, {"id": 3, "input": "c"}], "where: id < 3\n") != first
    assert content_hash(rows, 'sample: {input: "{{ input }}!"}\n') != first
    assert content_hash(
        [*rows, {"id": 3, "input": "c"}], "where: {id: [1, 2]}\n"
    ) == content_hash([*rows, {"id": 4, "input": "d"}], "where: {id: [1, 2]}\n")


def test_a_file_that_changes_under_a_run_is_noticed(write: Write, load: Load) -> None:
    write("data.jsonl", [{"id": index, "input": "x" * 50} for index in range(5)])
    samples = load("task: t\ndataset: data.jsonl\n").samples
    write("data.jsonl", [{"id": 1, "input": "y"}])
    with pytest.raises(DatasetError, match="the file changed during the run"):
        samples[4]


TWO_SHOTS = "task: t\ndataset: data.jsonl\nprompt: {few_shot: {count: 2}}\n"


def test_rows_are_not_kept_in_memory(write: Write, load: Load) -> None:
    """What is held of a row of 1 kB, with every row checked and many rendered;
    benchmarks/overhead.py measures the whole process.
    """
    rows = [
        {"id": index, "input": f"{index} " + "x" * 1000, "target": "a"}
        for index in range(2_000)
    ]
    write("data.jsonl", rows)
    load(TWO_SHOTS)  # once before: modules and caches
    tracemalloc.start()
    task = load(TWO_SHOTS)
    for index in range(0, len(task.samples), 7):
        task.strategy.render(task.samples[index])  # type: ignore[attr-defined]
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(task.samples) == 2_000
    assert held / 2_000 < 200


@given(
    st.lists(
        st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=20
    ),
    st.sampled_from(["\n", "\r\n", "\n\n  \n"]),
)
def test_every_row_comes_back_whatever_its_text(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], newline: str
) -> None:
    from evalwright.tasks.loading import load_task

    folder = tmp_path_factory.mktemp("rows")
    lines = [
        json.dumps({"id": index, "input": text}, ensure_ascii=False)
        for index, text in enumerate(texts)
    ]
    (folder / "d.jsonl").write_bytes(b"\xef\xbb\xbf" + newline.join(lines).encode())
    (folder / "t.yaml").write_text("task: t\ndataset: d.jsonl\n")
    samples = load_task(folder / "t.yaml").samples
    assert [sample.input for sample in samples] == texts
    assert samples[len(texts) - 1].input == texts[-1]


def test_shuffled_choices_keep_the_right_one_and_favour_no_place(load: Load) -> None:
    rows = [
        {
            "id": str(n),
            "input": "?",
            "choices": [f"right {n}", "b", "c", "d"],
            "target": 0,
        }
        for n in range(400)
    ]
    text = f"task: t\nanswer: {{mode: letter}}\nsample: {{shuffle: true}}\ndataset: {{rows: {rows}}}"
    samples = list(load(text).samples)
    places = [0] * 4
    for number, sample in enumerate(samples):
        assert sorted(sample.choices) == ["b", "c", "d", f"right {number}"]
        assert sample.choices[sample.gold[0]] == sample.target == f"right {number}"
        places[sample.gold[0]] += 1
    # 100 expected, standard deviation 8.7.
    assert all(60 < count < 140 for count in places)
    assert [sample.gold for sample in load(text).samples] == [
        sample.gold for sample in samples
    ]
