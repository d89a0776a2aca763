"""Formulas: the same in value however they are written, and never run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.scorers.text.mathematics import same
from scorers.scoring import CORRECT, INCORRECT, label_of
from support.bounds import ends


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
        ("1939-1945", "1940-1946", None),
        ("10 m^2", "10", True),
        ("9^9^9^9", "1", False),
        (r"\begin{pmatrix}7&2\\3&1\end{pmatrix}", r"\begin{bmatrix} 7 & 2 \\ 3 & 1 \end{bmatrix}", True),
        (r"\begin{pmatrix}7&2\\3&1\end{pmatrix}", r"\begin{pmatrix} 7 & 3 \\ 2 & 1 \end{pmatrix}", False),
        ("7.07", r"5\sqrt{2}", None),
        ("28.27", r"9\pi", None),
        ("7.5", r"5\sqrt{2}", False),
        ("__import__('os')", "1", None),
    ],
)
def test_equality_of_value(one: str, other: str, equal: bool | None) -> None:
    assert same(one, other) is equal
    assert same(other, one) is equal


@given(st.text(alphabet="0123456789x+-*/^()√π±{}\\frac.,=<% ", max_size=40))
def test_no_text_breaks_it(text: str) -> None:
    assert same(text, "x+1") in (True, False, None)


@pytest.mark.parametrize("piece", ["(", "9^", "√", "\\frac{", "x+", "-", "sin ", "{,}", "1,"])
def test_long_formulas_are_bounded(piece: str) -> None:
    with ends():
        same(piece * (100_000 // len(piece)), "1")


@pytest.mark.parametrize(
    ("target", "reply", "question", "label"),
    [
        ("x = -3", "2x = -6, so x = -3.", "Solve 2x + 6 = 0.", CORRECT),
        ("x = -3", "x = 3", "Solve 2x + 6 = 0.", INCORRECT),
        ("9π", "The area is 9π (about 28.27).", "What is the area?", CORRECT),
        ("3:4", "It is 3 : 4.", "What is the ratio?", CORRECT),
        ("2, 3 and 5", "5, 3, 2", "Which primes divide 30?", CORRECT),
        ("9π", "28.27", "What is the area?", "undecided"),
        ("5\\sqrt{2}", "\\sqrt{50}", "Simplify \\sqrt{50}.", "undecided"),
    ],
)
def test_the_formula_that_a_reply_gives(target: str, reply: str, question: str, label: str) -> None:
    assert label_of(target, reply, question) == label
