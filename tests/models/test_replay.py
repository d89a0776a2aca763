"""A recording answers what was recorded, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError, Failure
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Message,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.models.registry import open_model
from evalwright.models.replay import ReplayModel
from evalwright.runs.records import record_row

SYSTEM = Message("system", "Be brief.")
USER = Message("user", "What is 2 + 2?")
TURNS = (SYSTEM, USER)


def write(path: Path, *rows: Mapping[str, Any]) -> Path:
    # In ASCII, so that half surrogate pairs may stand in it.
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def record(
    answer: Answer | None,
    *,
    draw: int = 0,
    failure: Failure | None = None,
    **sample: Any,
) -> dict[str, Any]:
    """A line of samples.jsonl, made by the record type itself."""
    scores = {} if answer is None else {"exact": Score(1.0)}
    sample_record = SampleRecord(
        "task", 0, draw, Sample("s1", **sample), answer, scores, failure
    )
    found: dict[str, Any] = json.loads(json.dumps(record_row(sample_record)))
    return found


def ask(model: ReplayModel, *requests: Request) -> Any:
    """The answers in order; one request gives one answer."""
    model.load()
    found = dict(model.answer_batch(requests))
    model.unload()
    answers = [found[index] for index in range(len(requests))]
    return answers[0] if len(requests) == 1 else answers


def opened(path: Path) -> ReplayModel:
    model = open_model(f"replay/{path}")
    assert isinstance(model, ReplayModel)
    return model


def test_a_run_answers_as_it_did(tmp_path: Path) -> None:
    response = Response(
        "<think>4?</think>4", "hm", "stop", usage=Usage(5, 2), latency=0.5, model="m"
    )
    write(
        tmp_path / "samples.jsonl",
        record(Answer("4", prompt=TURNS, responses=(response,))),
        record(None, failure=Failure("timed out", "provider", "No answer.")),
        record(Answer("five", prompt="plain", responses=(Response("five"),)), draw=1),
    )
    for path in (tmp_path, tmp_path / "samples.jsonl"):
        model = opened(path)
        assert model.abilities == {"generate", "chat"}
        found = ask(model, Generate(TURNS, max_tokens=9, temperature=0.3))
        assert (found.text, found.reasoning, found.usage) == (
            response.text,
            response.reasoning,
            response.usage,
        )
        assert ask(model, Generate("plain", draw=1)).text == "five"
        assert isinstance(ask(model, Generate("plain")), Failure)


def test_choices_are_found_by_text_and_by_letter(tmp_path: Path) -> None:
    answers = tuple(
        Response(log_likelihood=value, tokens_scored=1) for value in (-3.0, -1.0)
    )
    answer = Answer(
        "Rome",
        choice=1,
        log_likelihoods=(-3.0, -1.0),
        prompt="Capital?",
        responses=answers,
    )
    write(
        tmp_path / "samples.jsonl", record(answer, choices=("Paris", "Rome"), gold=(1,))
    )
    model = opened(tmp_path)
    assert model.abilities == {"log-likelihood"}
    requests = [
        LogLikelihood("Capital?", f" {option}")
        for option in ("Paris", "Rome", "A", "B")
    ]
    assert [found.log_likelihood for found in ask(model, *requests)] == [
        -3.0,
        -1.0,
        -3.0,
        -1.0,
    ]
    missing = ask(model, LogLikelihood("Capital?", " Oslo"))
    assert missing.kind == "request rejected"
    assert "'Oslo' after the prompt that ends 'Capital?'" in missing.message


def test_continuations_and_whole_texts(tmp_path: Path) -> None:
    answer = Answer(
        "Paris",
        log_likelihoods=(-1.5,),
        prompt="Capital:",
        responses=(Response(log_likelihood=-1.5),),
    )
    two = Answer(
        "A text.",
        log_likelihoods=(-9.5,),
        responses=(Response(log_likelihood=-9.5, tokens_scored=3),),
    )
    write(tmp_path / "samples.jsonl", record(answer, targets=("Paris",)), record(two))
    model = opened(tmp_path)
    assert model.abilities == {"log-likelihood", "rolling"}
    assert ask(model, LogLikelihood("Capital:", " Paris")).log_likelihood == -1.5
    whole = ask(model, RollingLogLikelihood("A text."))
    assert (whole.log_likelihood, whole.tokens_scored) == (-9.5, 3)


def test_conversations_and_several_draws(tmp_path: Path) -> None:
    first = Response("<think>.</think>4")
    second = Response("8")
    messages = (USER, Message("assistant", "4"), Message("user", "And twice that?"))
    talk = Answer("8", prompt=messages, responses=(first, second))
    votes = Answer(
        "b", prompt="vote", responses=(Response("a"), Response("b"), Response("b"))
    )
    write(tmp_path / "samples.jsonl", record(talk), record(votes))
    model = opened(tmp_path)
    assert [
        found.text for found in ask(model, Generate((USER,)), Generate(messages))
    ] == [first.text, "8"]
    drawn = ask(
        model, *(Generate("vote", temperature=1.0, draw=draw) for draw in range(3))
    )
    assert [found.text for found in drawn] == ["a", "b", "b"]


def test_plain_rows(tmp_path: Path) -> None:
    file = write(
        tmp_path / "answers.jsonl",
        {"prompt": "one", "response": "1"},
        {"prompt": "one", "response": "uno"},
        {"prompt": "one", "response": "eins"},
        {
            "prompt": [{"role": "user", "content": "two"}],
            "response": {"text": "2", "finish_reason": "length"},
        },
        {"input": "What is the capital of France?", "response": "Paris"},
        {"prompt": "a", "continuation": "b", "log_likelihood": -2, "is_greedy": True},
        {"text": "whole", "log_likelihood": -5.5},
    )
    model = opened(file)
    assert model.abilities == {"generate", "chat", "log-likelihood", "rolling"}
    assert [ask(model, Generate("one", draw=draw)).text for draw in range(3)] == [
        "1",
        "uno",
        "eins",
    ]
    assert isinstance(ask(model, Generate("one", draw=3)), Failure)
    # A single user message and plain text are the same question.
    assert ask(model, Generate((Message("user", "one"),))).text == "1"
    assert ask(model, Generate("two")).finish_reason == "length"
    assert isinstance(ask(model, Generate(TURNS)), Failure)
    pair = ask(model, LogLikelihood("a", " b"))
    assert (pair.log_likelihood, pair.is_greedy) == (-2.0, True)
    assert ask(model, RollingLogLikelihood("whole")).log_likelihood == -5.5


@pytest.mark.parametrize(
    "prompt",
    [
        "What is the capital of France?",
        "Answer briefly.\n\nQuestion: What is the capital of France?\nAnswer:",
        (
            Message("user", "Question: 1 + 1?"),
            Message("assistant", "2"),
            Message("user", "What is the capital of France?"),
        ),
        (
            SYSTEM,
            Message("user", "Question: What is the capital of France?\n"),
            Message("assistant", "It is"),
        ),
    ],
)
def test_an_input_is_found_in_its_prompt(tmp_path: Path, prompt: Any) -> None:
    rows = [
        {"input": "What is the capital of France?", "response": "Paris"},
        {"input": "1 + 1?", "response": "2"},
    ]
    assert (
        ask(opened(write(tmp_path / "a.jsonl", *rows)), Generate(prompt)).text
        == "Paris"
    )


def test_an_input_of_several_lines_is_found_too(tmp_path: Path) -> None:
    """Articles have paragraphs, and the prompt goes on behind them for many lines."""
    articles = {
        "first": "A title:  \nThe bridge reopened.\n\nLorries wait.",
        "second": "A title:  \nThe bridge reopened.\n\nLorries wait.\nUntil March.",
        "third": "One line only.",
    }
    rows = [{"input": text, "response": name} for name, text in articles.items()]
    model = opened(write(tmp_path / "a.jsonl", *rows))
    rules = "\n".join(f"- Rule {number}" for number in range(100))
    for text in articles.values():
        for prompt in (
            f"Article:\n{text}\n\nTask: summarise it.\nSummary:",
            f"Rules:\n{rules}\nArticle: {text}",
            f"Article: {text}\n{rules[:300]}",
        ):
            asked = ask(model, Generate((Message("user", prompt),)))
            assert articles[asked.text] == text
    other = Generate("Article:\nA title:\nAnother bridge.\n\nSummary:")
    assert isinstance(ask(model, other), Failure)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "has no responses"),
        ('{"prompt": "a", "response": "b"}\n{"prompt": ', "row 2 is not valid JSON"),
        ('{"prompt": "a"}', "row 1 is not a recorded response: it has no 'response'"),
        ('{"id": "7", "response": "b"}', "neither 'prompt' nor 'input'"),
        ('{"prompt": 7, "response": "b"}', "must be text or a list of messages"),
        ('{"prompt": ["a"], "response": "b"}', "row 1 is not a recorded response"),
        ('{"prompt": "a", "response": 7}', "'response' must be text"),
        (
            '{"prompt": "a", "response": {"texts": "b"}}',
            "row 1 is not a recorded response",
        ),
        ('{"prompt": "a", "log_likelihood": -1}', "'prompt' and 'continuation'"),
        ('{"text": "a", "log_likelihood": "low"}', "finite number"),
        ('{"text": "a", "log_likelihood": NaN}', "finite number"),
        ("[1]", "not a JSON object"),
        (b"\xff\xfe{}", "not valid JSON"),
    ],
)
def test_files_that_are_no_recording(
    tmp_path: Path, content: str | bytes, words: str
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigurationError, match=words):
        opened(file)


def test_files_that_are_not_there_and_odd_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(ConfigurationError, match="There is no recording at"):
            opened(path)
    write(tmp_path / "run@2.jsonl", {"prompt": "a", "response": "b"})
    assert ask(opened(tmp_path / "run@2.jsonl"), Generate("a")).text == "b"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ask(ReplayModel("~/run@2.jsonl"), Generate("a")).text == "b"


def test_the_fingerprint_is_the_content(tmp_path: Path) -> None:
    rows = [{"prompt": "a", "response": "b"}]
    one, copy = (
        opened(write(tmp_path / name, *rows)) for name in ("one.jsonl", "copy.jsonl")
    )
    other = opened(write(tmp_path / "other.jsonl", {"prompt": "a", "response": "c"}))
    assert one.fingerprint == copy.fingerprint != other.fingerprint
    described = json.loads(json.dumps(one.describe()))
    assert (described["file"], described["rows"], described["note"]) == (
        "one.jsonl",
        1,
        "recorded responses",
    )


def test_a_file_that_changes_under_way_is_noticed(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.jsonl",
        {"prompt": "a", "response": "b"},
        {"prompt": "c", "response": "d"},
    )
    model = opened(file)
    write(file, {"prompt": "x", "response": "y"}, {"prompt": "c", "response": "d"})
    found = ask(model, Generate("a"), Generate("c"))
    assert [type(answer) for answer in found] == [Failure, Failure]
    assert "has changed" in found[0].message
    file.write_text("")
    assert isinstance(ask(model, Generate("c")), Failure)


PROMPTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.lists(
        st.tuples(st.sampled_from(["system", "user"]), st.text(max_size=9)),
        min_size=1,
        max_size=3,
    ),
)


@given(st.lists(st.tuples(PROMPTS, st.text(max_size=20)), min_size=1, max_size=8))
def test_every_recorded_prompt_is_answered(
    tmp_path: Path, pairs: list[tuple[Any, str]]
) -> None:
    rows = [{"prompt": prompt, "response": text} for prompt, text in pairs]
    model = opened(write(tmp_path / "a.jsonl", *rows))
    seen: dict[str, int] = {}
    for prompt, text in pairs:
        draw = seen.setdefault(repr(prompt), 0)
        seen[repr(prompt)] += 1
        form = (
            prompt
            if isinstance(prompt, str)
            else tuple(Message(role, content) for role, content in prompt)
        )
        assert ask(model, Generate(form, draw=draw)).text == text
