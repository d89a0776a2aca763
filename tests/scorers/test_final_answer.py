"""What a reply concludes with: found behind its mark, and compared as a number, a formula, an
option or words.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ScoringError, UsageError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.final_answer import final_answer


def score(text: str, target: str, kind: str, choices: tuple[str, ...] = ()) -> Score:
    gold = (choices.index(target),) if choices else ()
    found = final_answer(
        Sample("s", targets=(target,), choices=choices, gold=gold),
        Answer(text),
        kind=kind,
    )
    assert isinstance(found, Score)
    return found


@pytest.mark.parametrize(
    ("text", "target", "label"),
    [
        ("2 + 3 = 5 and 5 * 2 = 10\n#### 10", "10", "correct"),
        ("The answer is 1,234.", "1234", "correct"),
        ("The answer is $1,234.00.", "1234", "correct"),
        ("First I thought the answer is 4. No: the answer is 5.", "5", "correct"),
        ("The answer is 5. Then again the answer is 4.", "5", "incorrect"),
        ("**Answer:** 6 * 7 = 42 apples (not 41)", "42", "correct"),
        ("Answer:\n\n-3", "-3", "correct"),
        ("\\boxed{1{,}000}", "1000", "correct"),
        ("So there are 12 in 3 rows, 36", "36", "correct"),
        ("It is 0.5", "1/2", "correct"),
        ("The answer is none.", "0", "unreadable"),
        ("", "0", "not_attempted"),
        ("The answer is 1 / 0", "1", "incorrect"),
    ],
)  # fmt: skip
def test_numbers(text: str, target: str, label: str) -> None:
    assert score(text, target, "number").label == label


@pytest.mark.parametrize(
    ("text", "target", "right"),
    [
        ("\\boxed{\\frac{1}{2}}", "\\boxed{\\frac12}", True),
        ("\\boxed{0.5}", "\\frac{1}{2}", True),
        ("\\boxed{-\\frac{1}{2}}", "-\\dfrac{1}{2}", True),
        ("\\boxed{x = 5}", "5", True),
        ("\\boxed{10\\%}", "10", True),
        ("\\boxed{90^\\circ}", "90", True),
        (
            "The answer is $\\left( 3, \\frac{\\pi}{2} \\right)$.",
            "(3,\\frac{\\pi}{2})",
            True,
        ),
        ("\\boxed{\\text{even}}", "\\text{Even}", True),
        ("\\boxed{10{,}000}", "10,000", True),
        ("\\boxed{3\\sqrt2}", "3\\sqrt{2}", True),
        ("\\boxed{\\frac{2}{1}}", "\\frac{1}{2}", False),
        ("\\boxed{}", "0", False),
        ("\\boxed{\\frac{1}{0}}", "1", False),
    ],
)
def test_formulas(text: str, target: str, right: bool) -> None:
    assert score(text, target, "math").value == float(right)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Long thoughts on A and C.\nThe answer is B", "correct"),
        ("The answer is **(B)**.", "correct"),
        ("The correct option is B.", "correct"),
        ("Final answer: two", "correct"),
        ("\\boxed{B}", "correct"),
        ("\\boxed{\\text{B}}", "correct"),
        ("The answer is A", "incorrect"),
        ("The answer is Z", "unreadable"),
        ("The answer is B because option A is wrong.", "correct"),
        ("The answer is $\\mathbf{B}$, not A", "correct"),
        ("The answer is A or B", "incorrect"),
        ("Options A and B remain; I lean to neither", "incorrect"),
        ("", "not_attempted"),
    ],
)
def test_options(text: str, label: str) -> None:
    assert score(text, "two", "choice", ("one", "two", "three")).label == label


def test_an_option_that_begins_with_a_letter_goes_before_the_letter() -> None:
    choices = ("B minor", "A major", "A")
    assert score("The answer is A major.", "A major", "choice", choices).value == 1
    assert score("The answer is B", "A major", "choice", choices).value == 1


def test_words() -> None:
    assert score('The answer is "Fig  pear".', "fig pear", "text").value == 1
    assert score("fig\npear", "fig pear", "text").value == 0


@pytest.mark.parametrize("kind", ["number", "math", "text", "choice"])
@given(
    text=st.text(
        alphabet=st.sampled_from("\\boxed{}frac answeris:#1,2./-$ \nAB"), max_size=80
    )
)
def test_no_text_breaks_it(kind: str, text: str) -> None:
    choices = ("1", "2") if kind == "choice" else ()
    sample = Sample("s", targets=("1",), choices=choices, gold=(0,) if choices else ())
    found = final_answer(sample, Answer(text), kind=kind)
    assert found.value in (0.0, 1.0)


@given(st.integers(-(10**12), 10**12))
def test_an_integer_is_itself_however_it_is_written(number: int) -> None:
    for form in (
        f"#### {number}",
        f"The answer is {number:,}.",
        f"\\boxed{{{number}}}",
    ):
        assert score(form, str(number), "number").value == 1
        assert score(form, str(number + 1), "number").value == 0


def test_what_cannot_be_scored_is_an_error() -> None:
    with pytest.raises(UsageError, match="kind"):
        score("1", "1", "numbr")
    with pytest.raises(ScoringError, match="not a number"):
        score("1", "many", "number")
    with pytest.raises(ScoringError, match="no target"):
        final_answer(Sample("s"), Answer("x"))
    with pytest.raises(ScoringError, match="options"):
        score("1", "1", "choice")


def test_two_numbers_beside_one_are_another_answer() -> None:
    found = final_answer(
        Sample("s", targets=("12",)), Answer("\\boxed{1,2}"), kind="math"
    )
    assert found.value == 0
