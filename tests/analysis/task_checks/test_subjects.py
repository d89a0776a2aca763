"""The subjects of the check one by one: gold forms, chance, places, dates, scripts, and what may
look like a fault and is none.
"""

from __future__ import annotations

from typing import Any

import pytest
from scipy import stats

from evalwright import scorer
from evalwright.analysis.task_checks.examining import examine
from evalwright.analysis.task_checks.findings import Finding
from evalwright.analysis.task_checks.ignorance import measure_place_skew
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import Task
from evalwright.tasks.loading import task_from_definition

Rows = list[dict[str, Any]]


def a_task(rows: Rows, **more: Any) -> Task:
    rows = [{"id": f"s{number}", **row} for number, row in enumerate(rows)]
    return task_from_definition({"task": "t", "dataset": {"rows": rows}, **more})


def found(task: Task, verdict: str = "fault") -> list[Finding]:
    return [
        finding
        for part in examine([task])
        for finding in part.findings
        if finding.verdict == verdict
    ]


def texts(task: Task, verdict: str = "fault") -> str:
    return "\n".join(finding.text for finding in found(task, verdict))


# -- gold
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalise", ["none", "characters", "bytes", "tokens"])
def test_the_preferred_option_wins_however_likelihoods_are_divided(
    normalise: str,
) -> None:
    rows = [
        {
            "input": f"{n}?",
            "choices": [f"a{n}", f"a much longer option {n}"],
            "target": "AB"[n % 2],
        }
        for n in range(6)
    ]
    task = a_task(
        rows,
        answer={"mode": "likelihood"},
        scorers=[{"choice": {"normalise": normalise}}],
    )
    assert "choice: the gold option scores 1 on all samples, every other 0" in texts(
        task, "ok"
    )


# -- chance
# -------------------------------------------------------------------------------------------------------------


def test_labels_that_are_the_same_everywhere_may_be_uneven() -> None:
    def labelled(share: int) -> Task:
        rows = [
            {
                "input": f"Is {n} so?",
                "choices": ["no", "yes"],
                "target": int(n % 20 < share),
            }
            for n in range(200)
        ]
        return a_task(rows, answer={"mode": "letter"})

    assert found(labelled(10), "note") == found(labelled(10)) == []
    assert "always B ('yes'): 80%" in texts(labelled(16), "note")
    assert found(labelled(16)) == []
    assert "skewed towards B" in texts(labelled(19))


def test_an_answer_that_repeats_the_question_is_worth_nothing() -> None:
    @scorer("test-contains")
    def contains(sample: Sample, answer: Answer) -> Score:
        return Score(float(sample.target in answer.text))

    rows = [
        {"input": f"Number {n} or {n + 50}, which is less?", "target": str(n)}
        for n in range(10, 40)
    ]
    told = texts(a_task(rows, scorers=["test-contains"]))
    assert "the question itself: 100%" in told
    assert (
        "contain their gold answer" not in told
    )  # two characters may stand there by chance


# -- places
# -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "counts", [(30, 30, 20, 20), (40, 20, 20, 20), (26, 25, 25, 24), (9, 3, 2, 6)]
)
def test_the_test_of_places_agrees_with_the_chi_square_distribution(
    counts: tuple[int, ...],
) -> None:
    samples = [
        Sample(f"{place}-{n}", choices=("a", "b", "c", "d"), gold=(place,))
        for place, count in enumerate(counts)
        for n in range(count)
    ]
    p, seen, expected = measure_place_skew(samples)
    assert seen == list(counts)
    assert expected == [sum(counts) / 4] * 4
    assert p == pytest.approx(stats.chisquare(counts).pvalue, abs=0.03)


# -- texts
# --------------------------------------------------------------------------------------------------------------


def test_words_that_only_look_like_a_placeholder_are_none() -> None:
    rows = [
        {"input": "How many moons has Venus?", "target": "None"},
        {"input": "What is the symbol of sodium?", "target": "Na"},
        {"input": r"Simplify $x^{{ab}} + \frac{{a}}{{b}}$.", "target": "x"},
        {"input": "Which sign ends a question?", "target": "?"},
        {"input": "What does `print(None)` print", "target": "the word"},
    ]
    assert found(a_task(rows)) == []


# -- shots
# --------------------------------------------------------------------------------------------------------------


def test_a_shot_in_a_form_that_the_scorer_cannot_read() -> None:
    rows = [{"input": f"{n} + {n} = ?", "target": str(2 * n)} for n in range(2, 8)]
    pool = [{"input": "1 + 1 = ?", "target": "2", "words": "a pair"}]
    few_shot = {"count": 1, "dataset": {"rows": pool}}
    task = a_task(
        rows,
        prompt={"assistant": "{{ words }}", "few_shot": few_shot},
        scorers=[{"final-answer": {"kind": "number"}}],
    )
    (finding,) = [one for one in found(task) if one.check == "shots"]
    assert (
        "answers 'a pair', and final-answer gives it 0 by its own gold '2'"
        in finding.text
    )


def test_questions_that_differ_in_another_column_are_not_each_others_shots() -> None:
    rows = [
        {
            "input": "Is this so?",
            "claim": f"{n} is even",
            "target": ("yes", "no")[n % 2],
        }
        for n in range(10)
    ]
    pool = [{"input": "Is this so?", "claim": "100 is even", "target": "yes"}]
    prompt = {
        "user": "{{ claim }}. {{ input }}",
        "few_shot": {"count": 1, "dataset": {"rows": pool}},
    }
    assert found(a_task(rows, prompt=prompt)) == []
    pool[0]["claim"] = "4 is EVEN"
    told = texts(
        a_task(
            rows, prompt={**prompt, "few_shot": {"count": 1, "dataset": {"rows": pool}}}
        )
    )
    assert "the evaluated samples contain 1 of 1 shot: s4" in told


# -- metadata
# -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "text"),
    [("ja", "東京はどこにありますか"), ("ko", "서울은 어디에 있습니까"), ("el", "Πού είναι η Αθήνα;"), ("hi", "दिल्ली कहाँ है"), ("th", "กรุงเทพอยู่ที่ไหน")],
)  # fmt: skip
def test_languages_in_their_own_script_are_as_stated(language: str, text: str) -> None:
    rows = [
        {"input": f"{text} {n}", "target": f"x{n}", "language": language}
        for n in range(4)
    ]
    assert found(a_task(rows)) == []
    assert "of its script" in texts(a_task([{**row, "language": "ru"} for row in rows]))


def test_a_metric_over_letters_wants_one_number_of_options() -> None:
    rows = [
        {
            "input": f"{n}?",
            "choices": ["w", "x", "y", "z"][: 3 + (n == 0)],
            "target": "ABC"[n % 3],
        }
        for n in range(12)
    ]
    even = a_task(rows, answer={"mode": "letter"})
    assert "samples differ in their number of options (3 in 11, 4 in 1)" in texts(
        even, "note"
    )
    assert found(even) == []
    uneven = a_task(rows, answer={"mode": "letter"}, metrics=["macro-f1"])
    assert "and the metric macro-f1 treats letters as classes: s0" in texts(uneven)
