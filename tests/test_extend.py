"""Helpers of `evalwright.extend` say where a fault is, and nothing that their caller did not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.extend import (
    RunError,
    TaskError,
    UnknownName,
    check_known,
    parse_json,
    reraise_as,
)


def test_an_unknown_name_says_in_which_file_it_is() -> None:
    keys = ("question", "answer")
    with pytest.raises(UnknownName) as raised:
        check_known("key", ["anwser"], keys, where="quiz.json, line 3")
    message = str(raised.value)
    assert message.startswith("quiz.json, line 3: Unknown key 'anwser'.")
    assert "'answer'" in message
    with pytest.raises(UnknownName, match=r"^Unknown key 'anwser'"):
        check_known("key", ["anwser"], keys)


def test_an_error_of_a_block_says_in_which_file_it_is(tmp_path: Path) -> None:
    with (
        pytest.raises(
            TaskError, match=r"^quiz\.json, line 3: The date cannot be read: "
        ),
        reraise_as(
            TaskError, "The date cannot be read", ValueError, where="quiz.json, line 3"
        ),
    ):
        int("May")
    with (
        pytest.raises(TaskError, match=r"^The quiz cannot be read: No such file"),
        reraise_as(TaskError, "The quiz cannot be read"),
    ):
        (tmp_path / "quiz.json").read_text()


def test_broken_json_is_named_and_no_import_is_spoken_of() -> None:
    """A dialect reads its files in a run too, where nothing is imported."""
    with pytest.raises(RunError, match=r"^quiz\.json is not valid JSON") as raised:
        parse_json('{"question": ', "quiz.json")
    assert "import" not in str(raised.value)
