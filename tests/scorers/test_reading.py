"""How answers are read for a vote: what is alike gets one writing, and nothing is compared with
a target.
"""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.core.errors import UsageError
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.core.tasks import Scorer
from evalwright.scorers.reading import reader, score_with_reading
from evalwright.scorers.registry import scorer
from support.bounds import assert_grows_linearly, ends, repeated

OPTIONS = Sample(
    "1", input="Which is the capital of France?", choices=("Lyon", "Paris", "Nice")
)
NUMBER = Sample("1", input="How far is it?", metadata={"unit": "km"})

ALIKE: list[tuple[str, dict[str, Any], Sample, str, list[str]]] = [
    ("choice", {}, OPTIONS, "B", ["B", "(B)", "The answer is B.", "Paris", "I think it is Paris."]),
    ("choice", {}, OPTIONS, "", ["", "I cannot say.", "A or B"]),
    ("final-answer", {"kind": "choice"}, OPTIONS, "C", ["Answer: (C)", "C. Nice"]),
    ("numeric", {}, Sample("1"), "42", ["42", "42.0", "It is forty-two.", "6 * 7 = 42", "Answer: $42", "\\boxed{42}"]),
    ("numeric", {}, Sample("1"), "1234", ["1,234", "Answer: 1234"]),
    ("numeric", {}, NUMBER, "5", ["5 km", "5000 m", "5"]),
    ("numeric", {}, Sample("1"), "", ["", "None of them."]),
    ("final-answer", {"kind": "number"}, Sample("1"), "1/2", ["Answer: 1/2", "So it is 0.5."]),
    ("final-answer", {"kind": "math"}, Sample("1"), "1/2", ["\\boxed{\\frac{1}{2}}", "Answer: 0.5", "\\boxed{x = 1/2}"]),
    ("final-answer", {"kind": "math"}, Sample("1"), "2\\sqrt{3}", ["\\boxed{2\\sqrt{3}}", "Answer: $2\\sqrt{3}$"]),
    ("final-answer", {}, Sample("1"), "paris", ["Answer: Paris.", "The answer is: paris", "\\boxed{Paris}"]),
    ("short-answer", {}, Sample("1"), "paris", ["Paris", "**Answer:** Paris", "\"paris\""]),
    ("short-answer", {}, Sample("1", metadata={"answer_type": "number"}), "7", ["seven", "It is 7."]),
    ("exact-match", {}, Sample("1"), "Paris", ["Paris", " Paris\n"]),
    ("exact-match", {"ignore_case": True}, Sample("1"), "paris", ["Paris", "PARIS"]),
    ("token-f1", {}, Sample("1"), "paris", ["Answer: Paris"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options", "sample", "read", "texts"), ALIKE)
def test_what_is_alike(
    kind: str, options: dict[str, Any], sample: Sample, read: str, texts: list[str]
) -> None:
    own = reader(kind, options)
    assert {text: own(sample, Answer(text)) for text in texts} == dict.fromkeys(
        texts, read
    )


@pytest.mark.parametrize(
    "kind", ["choice", "numeric", "math", "final-answer", "short-answer", "exact-match"]
)
@pytest.mark.parametrize("piece", ["9", "a = ", "\\boxed{", "1/"])
def test_reading_takes_the_time_of_what_was_written(kind: str, piece: str) -> None:
    own = reader("final-answer", {"kind": "math"}) if kind == "math" else reader(kind)
    assert_grows_linearly(lambda text: own(OPTIONS, Answer(text)), repeated(piece))
    assert len(own(OPTIONS, Answer(repeated(piece)(100_000)))) <= 500


@pytest.mark.parametrize(
    "kind", ["choice", "numeric", "math", "final-answer", "short-answer", "exact-match"]
)
@pytest.mark.parametrize("text", ["1e999999999", "10^99999999"])
def test_reading_a_number_without_measure_ends(kind: str, text: str) -> None:
    own = reader("final-answer", {"kind": "math"}) if kind == "math" else reader(kind)
    with ends():
        assert len(own(OPTIONS, Answer(text))) <= 500


def test_a_choice_of_the_strategy_is_read_as_it_is() -> None:
    assert reader("choice")(OPTIONS, Answer("Nice", choice=2)) == "C"


def test_what_has_no_reader_and_a_reader_of_ones_own() -> None:
    for kind, options in (
        ("stress", {}),
        ("choise", {}),
        ("choice", {"normalize": "x"}),
    ):
        with pytest.raises(UsageError):
            reader(kind, options)

    @scorer("first-word")
    def first_word(sample: Sample, answer: Answer, *, last: bool = False) -> Score:
        return Score(1.0)

    vars(first_word)["read"] = lambda sample, answer, *, last=False: (
        answer.text.split()[-1 if last else 0]
    )
    assert reader("first-word", {"last": True})(OPTIONS, Answer("a b c")) == "c"


def test_scores_say_what_was_read_by_a_code() -> None:
    def score(sample: Sample, answer: Answer) -> Score | NoScore:
        return Score(1.0, parts={"own": 2.0}) if answer.text else NoScore()

    made = score_with_reading(Scorer("n", "numeric", {}, score), "said")
    found = [
        made.function(NUMBER, Answer(text))
        for text in ("7", "It is 7.", "8", "nothing")
    ]
    codes = [one.parts["said"] for one in found if isinstance(one, Score)]
    assert codes[0] == codes[1] != codes[2] and codes[3] == -1.0
    assert all(code == int(code) < 2**48 for code in codes)
    assert isinstance(made.function(NUMBER, Answer("")), NoScore)
