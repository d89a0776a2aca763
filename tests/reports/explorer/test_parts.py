"""Parts of the explorer: what is packed is what was recorded, in columns and blocks of bounded
size.
"""

from __future__ import annotations

import json
import math
import zlib
from array import array
from typing import Any

import pytest

from evalwright.core.errors import RunError
from evalwright.reports.explorer import parts
from evalwright.reports.explorer.parts import (
    CHUNK_ROWS,
    Samples,
    block_line,
    block_part,
    compact,
)

Row = dict[str, Any]


def row(number: int = 0, **more: Any) -> Row:
    made = {
        "task": "t",
        "index": number,
        "id": f"q{number}",
        "draw": 0,
        "outcome": "answered",
        "input": "Why?",
    }
    return {
        **made,
        "targets": [],
        "answer": "Because.",
        "scores": {"s": {"value": 1.0}},
        **more,
    }


def inflate(part: bytes) -> bytes:
    return zlib.decompress(part, -15)


def read_columns(part: bytes) -> tuple[list[str], dict[str, list[float]]]:
    """As web/src/data/parts.ts does."""
    data = inflate(part)
    end = data.index(b"\n")
    head = json.loads(data[:end])
    at = end + 1
    assert at % 8 == 0
    found = []
    for kind, length in head["arrays"]:
        numbers = array("d" if kind == "f8" else "i")
        numbers.frombytes(data[at : at + length * numbers.itemsize])
        at += -(-length * numbers.itemsize // 8) * 8
        found.append(list(numbers))
    return head["ids"], dict(zip(["draw", *head["columns"]], found, strict=True))


def pack(rows: list[Row]) -> tuple[dict[str, bytes], dict[str, Any]]:
    made: dict[str, bytes] = {}
    samples = Samples(made.__setitem__, {"t": "s"}, prefix="run/0/")
    for row in rows:
        samples.add(json.dumps(row).encode(), row)
    samples.finish()
    return made, json.loads(inflate(made["run/0/index"]))


def test_a_column_that_comes_late_has_no_values_before() -> None:
    rows = [row(n) for n in range(CHUNK_ROWS + 3)]
    rows[CHUNK_ROWS + 1]["metadata"] = {"language": "ko", "year": 1999}
    rows[1]["timing"] = {"latency": [0.5, 0.25]}
    made, index = pack(rows)
    columns = {column["name"]: column for column in index["columns"]}
    assert columns["language"] == {
        "name": "language",
        "title": "language",
        "kind": "category",
        "names": ["ko"],
    }
    assert columns["year"]["kind"] == "number"
    first, second = (read_columns(made[f"run/0/columns/{n}"]) for n in (0, 1))
    assert first[0] == [f"q{n}" for n in range(CHUNK_ROWS)]
    assert "language" not in first[1]
    assert second[1]["language"] == [-1, 0, -1]
    assert first[1]["latency"][1] == 0.75
    assert math.isnan(first[1]["latency"][2])
    assert index["size"] == CHUNK_ROWS + 3


def test_a_key_with_too_many_values_is_no_column() -> None:
    _, index = pack(
        [
            row(n, metadata={"name": f"n{n}", "task": "x"})
            for n in range(parts.MOST_NAMES + 1)
        ]
    )
    names = {column["name"] for column in index["columns"]}
    assert "name" not in names
    assert "metadata.task" in names, (
        "a key that is called like a column of ours keeps apart from it"
    )


def test_the_tools_of_a_trajectory_are_sets() -> None:
    def acting(*names: str) -> dict[str, Any]:
        calls = [
            {"name": name, "is_error": name == "bash", "seconds": 0.1} for name in names
        ]
        return {"name": "agent", "steps": 2, "ended": "submit", "tool_calls": calls}

    rows = [
        row(0, strategy=acting("submit", "bash", "bash")),
        row(1, strategy=acting("bash")),
        row(2, strategy=acting()),
        row(3),
    ]
    made, index = pack(rows)
    columns = {column["name"]: column for column in index["columns"]}
    assert columns["tools"]["names"] == ["bash, submit", "bash"]
    assert columns["tools"]["sets"] == {
        "members": ["bash", "submit"],
        "of": [[0, 1], [0]],
    }
    assert columns["failed_tools"]["names"] == ["bash"]
    assert "sets" not in columns["ended"]
    found = read_columns(made["run/0/columns/0"])[1]
    assert found["tools"] == [0, 1, -1, -1]
    assert found["tool_calls"][:3] == [3, 1, 0]
    assert math.isnan(found["tool_calls"][3])


def test_unsure_missing_and_judged() -> None:
    judge = {"kind": "rate limited", "party": "judge", "message": ""}
    rows = [
        row(
            0, scores={"s": {"value": 0.0, "label": "incorrect", "unsure": "two names"}}
        ),
        row(1, scores={}, score_failures={"s": judge}),
        row(2, scores={"s": {"value": 0.5, "label": "incorrect"}}),
    ]
    made, index = pack(rows)
    names = {column["name"]: column.get("names") for column in index["columns"]}
    found = read_columns(made["run/0/columns/0"])[1]
    assert [
        names["label"][int(code)] if code >= 0 else "" for code in found["label"]
    ] == [
        "incorrect",
        "",
        "incorrect",
    ]
    assert [
        names["unsure"][int(code)] if code >= 0 else "" for code in found["unsure"]
    ] == ["unsure", "", ""]
    assert names["failure"] == ["judge: rate limited"]
    assert found["score"][2] == 0.5


def test_blocks_end_by_rows_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BLOCK_ROWS", 10)
    monkeypatch.setattr(parts, "BLOCK_BYTES", 5000)
    made, index = pack(
        [row(n, answer="x" * (3000 if n in (4, 5) else 10)) for n in range(20)]
    )
    assert index["blocks"] == [0, 6, 16]
    lines = inflate(made["run/0/block/1"]).split(b"\n")
    order = json.loads(lines[0])
    assert sorted(order) == list(range(10))
    assert [
        json.loads(lines[1 + place])["index"] for place in map(order.index, range(10))
    ] == list(range(6, 16))


def test_a_text_that_stands_several_times_is_packed_once() -> None:
    question = "What? " * 20
    answer = "It is so. " * 20
    one = row(
        0,
        input=question,
        answer=answer,
        prompt=[["user", f"Question: {question}\nAnswer:"]],
        responses=[{"text": answer}],
    )
    made = compact(one)
    assert made["input"] == question
    assert made["responses"][0]["text"] == "\x011"
    assert made["prompt"][0][1] == "\x01tQuestion: \x010\x01t\nAnswer:"


def test_numbers_and_texts_are_never_taken_for_each_other() -> None:
    question = "0 apples and 1 pear are what? " * 3
    answer = "a" * 40
    one = compact(
        row(
            0,
            input=question,
            answer=answer,
            reasoning=answer + question + answer,
            cluster="\x01tricky",
        )
    )
    assert one["reasoning"] == "\x011\x010\x011"
    assert one["cluster"] == "\x01e\x01tricky"


def test_an_overlong_record_is_shown_with_its_texts_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts, "LONGEST_LINE_BYTES", 1000)
    monkeypatch.setattr(parts, "LONGEST_TEXT_CHARS", 100)
    made, _ = pack([row(0, answer="a" * 5000)])
    shown = json.loads(inflate(made["run/0/block/0"]).split(b"\n")[1])["answer"]
    assert shown == "a" * 100 + " ... [4,900 more characters in samples.jsonl]"


@pytest.mark.parametrize(
    "more",
    [
        {"draw": "x"},
        {"scores": [1]},
        {"scores": {"s": 3}},
        {"metadata": [1]},
        {"responses": [3]},
        {"draw": 1e400},
        {"timing": 3},
    ],
)
def test_what_is_no_sample_is_said(more: Row) -> None:
    with pytest.raises(RunError, match="Record 1 is not that of a sample"):
        pack([row(0, **more)])


def test_rows_of_one_script_stand_together() -> None:
    texts = ["english words here", "中文文字在这里的", "ข้อความภาษาไทย"] * 3
    order = json.loads(
        inflate(
            block_part(
                [block_line(b"", row(n, answer=text)) for n, text in enumerate(texts)]
            )
        ).split(b"\n")[0]
    )
    assert [place % 3 for place in order] in (
        [0, 0, 0, 2, 2, 2, 1, 1, 1],
        [0, 0, 0, 1, 1, 1, 2, 2, 2],
    )
