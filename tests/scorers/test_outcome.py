"""Outcome classes: told by the response and its text, in seventeen languages, with the evidence,
and in both directions.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.scorers.outcome import OUTCOMES, outcome, outcome_of, refusal_in, words
from evalwright.scorers.registry import bind
from evalwright.scorers.text.declining import MOST_WORDS
from evalwright.strategies.sampling import answer_from
from scorers.text.test_declining import CASES, texts
from support.bounds import ends

SAMPLE = Sample("s")
SUMMARY = (
    "The swing bridge reopened on Tuesday after repairs that cost 3.1 million crowns."
)


def drawn(text: str, finish: str = "stop", reasoning: str = "") -> Answer:
    """The answer that the strategy makes of a response."""
    return answer_from(
        "prompt", (Response(text, reasoning=reasoning, finish_reason=finish),)
    )


def test_refusals_and_summaries_are_told_apart() -> None:
    for case in CASES["refusal of a summary"]:
        found = outcome(SAMPLE, drawn(case["text"]))
        assert (found.label, found.value, found.parts) == (
            "refused",
            0.0,
            {"refused": 1.0},
        ), case
        assert f"({case['language']})" in found.explanation
        assert words(SAMPLE, drawn(case["text"])) == NoScore("refused")
    for text in texts("a summary"):
        found = outcome(SAMPLE, drawn(text))
        assert (found.label, found.value, found.parts) == (
            "answered",
            1.0,
            {"answered": 1.0},
        ), text


def test_a_refusal_that_a_summary_follows_is_an_answer() -> None:
    follows = "Acme bought Beta for five million dollars in March 2019, and its chief executive resigned in June."
    for text in texts("refusal of a summary"):
        assert outcome_of(drawn(f"{text}\n\n{follows}")).label == "answered", text


@pytest.mark.parametrize(
    ("answer", "label", "why"),
    [
        (drawn(SUMMARY), "answered", "13 words"),
        (drawn(""), "empty", "no text (finish reason stop)"),
        (drawn("  \n "), "empty", "no text"),
        (Answer(""), "empty", "no text"),
        (drawn("Five words are too few."), "too short", "5 words"),
        (drawn("Bridge."), "too short", "1 word"),
        (drawn("Now there are six words here."), "answered", "6 words"),
        (drawn(SUMMARY, finish="length"), "truncated", "cut off"),
        (drawn("<think>First I read it."), "thinking never closed", "no end"),
        (drawn("<think>First I read it.", finish="length"), "thinking never closed", "no end"),
        (drawn("", finish="length", reasoning="First I read"), "thinking never closed", "still reasoning"),
        (drawn("", finish="length"), "truncated", "before any text"),
        (drawn("", reasoning="First I read it."), "truncated", "after its reasoning"),
        (drawn("", finish="tool_calls"), "tool call", "no text (finish reason tool_calls)"),
        (drawn("", finish="too_long"), "too long", "no text"),
        (drawn("", finish="unfinished"), "unfinished", "no text"),
        (drawn("", finish="empty"), "empty", "no text"),
        (drawn("<|channel|>analysis<|message|>I read it"), "thinking never closed", "no end"),
        (drawn(f"<think>Let me see.</think>{SUMMARY}"), "answered", "13 words"),
        (drawn(f"Let me see.</think>{SUMMARY}"), "answered", "13 words"),
        (drawn("<think>I cannot summarize this.</think>" + SUMMARY), "answered", "13 words"),
        (drawn("<think>Easy.</think>I am unable to summarize this passage."), "refused", "unable"),
        (drawn("The bridge", finish="content_filter"), "refused", "filter"),
        (drawn("I cannot summarize this passage", finish="length"), "refused", "cannot"),
        (drawn("桥梁在周二重新开放，维修费用为三百一十万克朗。"), "answered", "words"),
        (drawn("桥已开放。"), "too short", "words"),
    ],
)  # fmt: skip
def test_classes(answer: Answer, label: str, why: str) -> None:
    outcome = outcome_of(answer)
    assert outcome.label == label
    assert why in outcome.why


RECORDED = Path(__file__).resolve().parents[3] / "shared" / "data" / "hhem" / "v1"


@pytest.mark.skipif(
    not RECORDED.is_dir(),
    reason="the recorded summaries of the public leaderboard are not here",
)
@pytest.mark.parametrize(
    "model",
    [
        "openai/gpt-4.1",
        "qwen/Qwen3-8B",
        "google/gemini-1.5-pro",
        "meta-llama/Llama-3.2-1B-Instruct",
    ],
)
def test_recorded_summaries(model: str) -> None:
    lines = (
        (RECORDED / model / "summaries.jsonl").read_text(encoding="utf-8").splitlines()
    )
    found = [
        (text, outcome_of(drawn(text)))
        for text in (json.loads(line)["summary"] for line in lines)
    ]
    refused = [text for text, one in found if one.label == "refused"]
    if not model.startswith("meta-llama"):
        assert refused == []
        assert {one.label for _, one in found} <= {"answered", "empty", "too short"}
        return
    # The engine counts these as summaries, and its judge scores them.
    asking = [
        text
        for text in refused
        if text.startswith("There is no passage provided. Please ")
    ]
    assert len(asking) == 153
    assert set(refused) - set(asking) <= {
        text for text in refused if "I cannot provide a concise summary" in text
    }
    assert not any(
        text.startswith("There is no passage provided")
        for text, one in found
        if one.label == "answered"
    )


def test_words_count_as_the_boards_do() -> None:
    score = words(SAMPLE, drawn("A well-known bridge -- opened in 1990 -- is shut."))
    assert isinstance(score, Score)
    assert score.value == len(
        ["A", "well-known", "bridge", "--", "opened", "in", "1990", "--", "is", "shut."]
    )


def test_the_prompts_own_sentence_may_be_anything() -> None:
    own = "Nada que ver aquí, siga usted adelante hoy."
    assert outcome_of(drawn(own)).label == "answered"
    assert outcome_of(drawn(f'"{own[:-1].upper()}"'), refusals=[own]).label == "refused"
    assert outcome_of(drawn(f"{own} {SUMMARY}"), refusals=[own]).label == "answered"


def test_least_words_is_an_option() -> None:
    assert outcome_of(drawn("Four words are here."), least_words=4).label == "answered"


@pytest.mark.parametrize("refusals", ["one sentence", [""], [3]])
def test_options_that_are_none(refusals: object) -> None:
    with pytest.raises(ConfigurationError, match="'refusals' is a list of sentences"):
        bind("outcome", {"refusals": refusals})
    with pytest.raises(
        ConfigurationError, match="'least_words' must be a whole number"
    ):
        bind("words", {"least_words": 0})


@pytest.mark.parametrize(
    "text",
    [
        "I am unable to summarize this text",
        "'I am unable to summarize this passage.'",
        "> I am unable to summarize this passage.",
        "_I am unable to summarize this passage_",
        "i am unable to summarise this passage…",
        "I AM UNABLE TO SUMMARIZE THIS PASSAGE.",
        "  I am\nunable to summarize this passage.  ",
    ],
)
def test_a_refusal_stays_one_however_it_is_written(text: str) -> None:
    # The engine of the hallucination leaderboard takes each of these for a summary.
    assert outcome_of(drawn(text)).label == "refused"


@given(st.text(max_size=400), st.sampled_from(["stop", "length", ""]))
def test_every_text_has_exactly_one_class(text: str, finish: str) -> None:
    score = outcome(SAMPLE, drawn(text, finish))
    assert score.label in OUTCOMES
    assert score.value == (score.label == "answered")
    counted = words(SAMPLE, drawn(text, finish))
    assert isinstance(counted, Score) == (score.label == "answered")


def test_hostile_repetition_takes_no_time() -> None:
    parts = [
        word for text in texts("refusal of a summary")[::7] for word in text.split()
    ]
    with ends():
        for start in range(0, len(parts), 4):
            refusal_in((" ".join(parts[start : start + 4]) + " ") * 29)
            refusal_in("".join(parts[start : start + 4]) * 100)


@given(
    st.lists(st.sampled_from(SUMMARY.split()), min_size=MOST_WORDS + 1, max_size=300)
)
def test_a_long_text_is_no_refusal(found: list[str]) -> None:
    assert refusal_in(f"I cannot summarize this passage. {' '.join(found)}") == ""
