"""Formulas: the same in value however they are written, and never run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.samples import Answer, Sample
from evalwright.scorers.final_answer import final_answer
from evalwright.scorers.text.formulas import is_same_formula
from support.bounds import assert_grows_linearly, ends, repeated


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (r"\frac12", "0.5", True),
        ("37.5%", "3/8", True),
        ("5√2", r"\sqrt{50}", True),
        ("x^2+2x+1", "1 + 2x + x²", True),
        ("(a+b)(a-b)", "a^2-b^2", True),
        ("2 cos 2x", r"2\cos(2x)", True),
        ("cos(2x)", "2cos(2x)", False),
        ("x = ±3", r"\{-3, 3\}", True),
        ("2 ± √3", "2-√3, 2+√3", True),
        ("x = 3", r"x = \pm 3", False),
        (r"-2 \le x \le 2", "[-2, 2]", True),
        ("-2 < x ≤ 2", "[-2, 2]", False),
        ("x > 3", r"(3, \infty)", True),
        ("2^{64}", "18446744073709551617", False),
        (r"60\text{ km/h}", "60", True),
        ("10 m^2", "10", True),
        ("9^9^9^9", "1", False),
        (
            r"\begin{pmatrix}7&2\\3&1\end{pmatrix}",
            r"\begin{bmatrix} 7 & 2 \\ 3 & 1 \end{bmatrix}",
            True,
        ),
        (
            r"\begin{pmatrix}7&2\\3&1\end{pmatrix}",
            r"\begin{pmatrix} 7 & 3 \\ 2 & 1 \end{pmatrix}",
            False,
        ),
        ("7.07", r"5\sqrt{2}", False),
        ("28.27", r"9\pi", False),
        ("7.5", r"5\sqrt{2}", False),
        ("__import__('os')", "1", None),
    ],
)
def test_equality_of_value(one: str, other: str, equal: bool | None) -> None:
    assert is_same_formula(one, other) is equal
    assert is_same_formula(other, one) is equal


@given(st.text(alphabet="0123456789x+-*/^()√π±{}\\frac.,=<% ", max_size=40))
def test_no_text_breaks_it(text: str) -> None:
    assert is_same_formula(text, "x+1") in (True, False, None)


@pytest.mark.parametrize(
    "piece",
    ["(", ")", "9^", "√", "\\frac{", "x+", "-", "-(", "!", "=", "sin ", "{,}", "1,"],
)
def test_long_formulas_take_the_time_of_what_was_written(piece: str) -> None:
    assert_grows_linearly(lambda text: is_same_formula(text, "1"), repeated(piece))


@pytest.mark.parametrize(
    ("target", "reply", "question", "label", "sure"),
    [
        ("x = -3", "2x = -6, so x = -3.", "Solve 2x + 6 = 0.", "correct", True),
        ("x = -3", "x = 3", "Solve 2x + 6 = 0.", "incorrect", True),
        ("9π", "The area is 9π (about 28.27).", "What is the area?", "correct", True),
        ("3:4", "It is 3 : 4.", "What is the ratio?", "correct", True),
        ("2, 3 and 5", "5, 3, 2", "Which primes divide 30?", "correct", True),
        ("9π", "28.27", "What is the area?", "correct", False),
        ("5\\sqrt{2}", "\\sqrt{50}", "Simplify \\sqrt{50}.", "incorrect", False),
        ("5\\sqrt{2}", "\\sqrt{50}", "How long is the diagonal?", "correct", True),
        ("\\frac{2}{3}", "84/126 = 42/63", "Simplify 84/126.", "incorrect", False),
        (
            "2^2 \\cdot 3^2 \\cdot 5",
            "180 = 2 x 2 x 3 x 3 x 5",
            "Write the prime factorization of 180.",
            "correct",
            True,
        ),
        (
            "x = 7",
            "x = 7\nSolve 4x + 3 = 27.\nx = 6",
            "Solve 3x - 5 = 16.",
            "correct",
            True,
        ),
        (
            "x = 7",
            "So x = 7.\nCheck: 3*7 - 5 = 16",
            "Solve 3x - 5 = 16.",
            "correct",
            False,
        ),
        (
            "(-4; 4)",
            "x is in the interval from -4 to 4.",
            "Solve x² < 16.",
            "correct",
            False,
        ),
        ("(3, 2)", "3x = 9, x = 3, y = 2", "Solve the system.", "correct", True),
        ("12 km", "12 miles", "How far?", "incorrect", False),
        ("20 m/s", "72 km/h", "How fast?", "correct", True),
        ("\\frac{1}{2}", "x等于二分之一", "求 x。", "correct", True),
        ("7", "seven", "Solve for k.", "correct", True),
        ("7", "I like mathematics.", "Solve for k.", "unreadable", True),
    ],
)
def test_the_formula_that_a_reply_gives(
    target: str, reply: str, question: str, label: str, sure: bool
) -> None:
    sample = Sample(
        "s", question, (target,), metadata={"language": "zh" if "等" in reply else "en"}
    )
    score = final_answer(sample, Answer(reply), kind="math")
    assert (score.label, not score.unsure) == (label, sure)


FORMS = [
    ("y=2x+1", "2x - y + 1 = 0", True), ("x^2+C", "x² + C", True), ("3x^2\\sin x + x^3\\cos x", "x^2(3\\sin x + x\\cos x)", True), ("(3,2)", "x = 3, y = 2", True),
    ("\\{2,3\\}", "x = 2 or x = 3", True), ("(3,2)", "x=2, y=3", False), ("[1,\\infty)", "x ≥ 1", True), ("(-\\infty,1)\\cup(3,\\infty)", "x<1 or x>3", True),
    ("1,000,000", "10^6", True), ("9\\pi", "9π cm²", True), ("1\\frac12", "3/2", True), ("1 1/2", "1.5", True), ("\\log_2 8", "3", True), ("e^{-x}", "1/e^x", True),
    ("\\sqrt[3]{27}", "3", True), ("5!", "120", True), ("\\binom{5}{2}", "10", True), ("\\frac{-1+\\sqrt5}{2}", "(√5-1)/2", True), ("3:4", "6:8", True),
    ("\\sin^2 x", "(sin x)^2", True), ("x\\in\\{3,2\\}", "\\{2,3\\}", True), ("A(2;0)", "(2,0)", True), ("{x | x > 5}", "x>5", True), ("2x+6=20", "x=7", False),
    ("F(x) = 2x^3 + 2x + C", "2x^3+2x+C, C\\in\\mathbb{R}", True), ("]1;2[", "(1,2)", True), ("x_1=2, x_2=3", "\\{2,3\\}", True), ("2\\sqrt[3]{4}", "2∛4", True),
    ("\\frac{dy}{dx} = 2x", "2x", True), ("30^\\circ", "30°", True), ("(x-2)^2+(y+1)^2=9", "(x-2)²+(y+1)²=3²", True), ("4.5e-4", "4.5 \\times 10^{-4}", True),
    ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "[[1, 2], [3, 4]]", True), ("x = -1 ± √2", "\\{-1-\\sqrt2, -1+\\sqrt2\\}", True), ("i", "\\sqrt{-1}", True),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "equal"), FORMS)
def test_forms(one: str, other: str, equal: bool) -> None:
    assert is_same_formula(one, other) is equal
    assert is_same_formula(other, one) is equal


@pytest.mark.parametrize(
    ("one", "other", "language", "equal"),
    [
        ("0,35", "0.35", "pl", True),
        ("3.000", "3000", "de", True),
        ("1,5", "15", "fr", False),
        ("2; 3,5", "{2, 3.5}", "de", True),
    ],
)
def test_numbers_as_a_language_writes_them(
    one: str, other: str, language: str, equal: bool
) -> None:
    assert is_same_formula(one, other, language) is equal


CONCLUSIONS = [
    json.loads(line)
    for line in Path(__file__)
    .with_name("conclusions.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


@pytest.mark.parametrize(
    "row", CONCLUSIONS, ids=lambda row: f"{row['target']}: {row['reply']}"
)
def test_the_last_conclusion_decides(row: dict[str, Any]) -> None:
    """A step, a number that is denied, and other brackets than the target's are no answer."""
    sample = Sample(
        "s", row["question"], (row["target"],), metadata={"language": row["lang"]}
    )
    score = final_answer(sample, Answer(row["reply"]), kind="math")
    assert bool(score.value) is row["right"]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("[1,2]", "(1,2]", False),
        ("(1,2)", "[1,2]", False),
        ("(1,2)", r"\{1,2\}", False),
        (r"\{2,1\}", r"\{1,2\}", True),
        (r"\sqrt{x^2}", "x", False),
        (r"\sqrt{x}\sqrt{y}", r"\sqrt{xy}", True),
        (r"(\sqrt{x})^2", "x", True),
    ],
)
def test_brackets_and_signs_count(one: str, other: str, equal: bool) -> None:
    assert is_same_formula(one, other) is equal


def test_long_replies_of_steps_are_bounded() -> None:
    reply = "3+4=7, so 7*2=14. " * 5_000
    with ends():
        final_answer(Sample("s", "Compute.", ("7",)), Answer(reply), kind="math")
