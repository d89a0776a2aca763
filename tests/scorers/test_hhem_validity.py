"""`validity: hhem`: what the engine of the HHEM leaderboard takes for a summary, against its
recorded verdicts.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.core.errors import UnknownName
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.scorers.hhem_validity import OWN_SENTENCES, is_summary
from evalwright.scorers.outcome import outcome, outcome_of, words
from evalwright.scorers.registry import bind
from evalwright.strategies.sampling import answer_from
from evalwright.tasks.loading import load_task

SAMPLE = Sample("s")
RECORDED = Path(__file__).resolve().parents[3] / "shared" / "data" / "hhem"


def drawn(text: str, finish: str = "stop") -> Answer:
    return answer_from("prompt", (Response(text, finish_reason=finish),))


@pytest.mark.parametrize(
    ("answer", "label", "by_rules"),
    [
        (drawn("I am unable to summarize this passage."), "refused", "refused"),
        (drawn(" I am unable to summarize this passage.\n"), "refused", "refused"),
        # Every other refusal is a summary there, and is judged.
        (drawn("I am unable to summarize this passage"), "answered", "refused"),
        (drawn("I'm sorry, but I cannot summarize this text."), "answered", "refused"),
        (drawn("One two three four five."), "too short", "too short"),
        (drawn("One two three four five six."), "answered", "answered"),
        (drawn("桥梁在周二重新开放，维修费用为三百一十万克朗。"), "too short", "answered"),
        (drawn("A summary that was cut off at the", finish="length"), "answered", "truncated"),
        (drawn(""), "empty", "empty"),
        (drawn("<think>First I read it, all of it."), "thinking never closed", "thinking never closed"),
    ],
)  # fmt: skip
def test_the_engines_rule_beside_ours(
    answer: Answer, label: str, by_rules: str
) -> None:
    assert outcome_of(answer, validity="hhem").label == label
    assert outcome_of(answer).label == by_rules
    assert outcome(SAMPLE, answer, validity="hhem").value == float(label == "answered")
    assert isinstance(
        words(SAMPLE, answer, validity="hhem"),
        Score if label == "answered" else NoScore,
    )


def test_words_are_those_between_spaces() -> None:
    score = words(SAMPLE, drawn("桥梁在周二 重新开放 a b c d e"), validity="hhem")
    assert isinstance(score, Score) and score.value == 7


def test_a_prompts_own_refusal_is_the_whole_sentence() -> None:
    own = "There is nothing in it to sum up."
    assert outcome_of(drawn(own), validity="hhem", refusals=[own]).label == "refused"
    assert (
        outcome_of(drawn(own.upper()), validity="hhem", refusals=[own]).label
        == "answered"
    )


def test_another_rule_is_an_error() -> None:
    for scorer in ("outcome", "words", "consistency"):
        with pytest.raises(UnknownName, match="Did you mean 'hhem'"):
            bind(scorer, {"validity": "hhm"})


def test_a_tasks_scorers_share_what_an_answer_is() -> None:
    task = load_task(
        "summary-faithfulness",
        overrides={"scorers.answered.validity": "hhem", "scorers.answered.refusals": ["No."], "scorers.words.refusals": ["Nope."]},
    )  # fmt: skip
    options = {scorer.name: dict(scorer.options) for scorer in task.scorers}
    assert options["consistency"] == {"validity": "hhem", "refusals": ["No."]}
    assert options["words"] == {"validity": "hhem", "refusals": ["Nope."]}
    assert all(
        not scorer.options for scorer in load_task("summary-faithfulness").scorers
    )


def test_the_engines_own_sentences_are_no_summaries() -> None:
    assert len(OWN_SENTENCES) == 7
    assert not any(map(is_summary, OWN_SENTENCES))


@pytest.mark.skipif(
    not RECORDED.is_dir(),
    reason="the recorded summaries of the public leaderboard are not here",
)
def test_recorded_verdicts() -> None:
    n_summaries = 0
    differing = set()
    for summaries in sorted(RECORDED.glob("*/*/*/summaries.jsonl")):
        judgments = next(iter(summaries.parent.glob("judg*ments.jsonl")), None)
        if judgments is None:
            continue
        valid = {}
        for line in judgments.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            valid[row["summary_uid"]] = row.get("is_valid", row.get("valid"))
        for line in summaries.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["summary_uid"] in valid and isinstance(row["summary"], str):
                n_summaries += 1
                answered = (
                    outcome_of(Answer(row["summary"]), validity="hhem").label
                    == "answered"
                )
                if answered != valid[row["summary_uid"]]:
                    differing.add(row["summary"].strip())
    assert n_summaries > 3000
    # Runs of before knew another sentence of refusal.
    assert differing <= {"I am unable to summarize this text."}
