import random
import sys
import unittest
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, output

CASES = [
    ("2^3^2", "512"),
    ("-2^2", "-4"),
    ("2^-1", "1/2"),
    ("--3", "3"),
    ("7%-3", "-2"),
    ("-7 % 3", "2"),
    ("7/2%1", "1/2"),
    ("1-2-3", "-4"),
    ("100/10/2", "5"),
    ("2*-3", "-6"),
    ("(((7)))", "7"),
    ("\t8 ", "8"),
    ("1/0", "error"),
    ("0^-1", "error"),
    ("0^0", "1"),
    ("2^(1/2)", "error"),
    ("2^1001", "error"),
    ("1 2", "error"),
    ("", "error"),
    ("()", "error"),
    ("(1", "error"),
    ("1)", "error"),
    ("2**3", "error"),
    ("2//3", "error"),
    ("1.5", "error"),
    ("a", "error"),
    ("5 % 0", "error"),
    ("-(1/3)^2", "-1/9"),
    ("(-1/3)^-3", "-27"),
    ("2^-2^2", "1/16"),
    ("+ + 4", "4"),
    ("3 - -3", "6"),
    ("99999999999999999999*9", "899999999999999999991"),
    ("٣", "error"),
    ("1_000", "error"),
    ("0x10", "error"),
    ("10 % (7/3)", "2/3"),
    ("2^1000/2^999", "2"),
    ("-", "error"),
    ("1^", "error"),
    ("(" * 50 + "1" + ")" * 50, "1"),
    ("-6/4", "-3/2"),
    ("007", "7"),
]


def drawn(draw, depth):
    """Draw an expression; returns its text, fully in parentheses, and its value."""
    if depth == 0:
        number = draw.randint(0, 30)
        return str(number), Fraction(number)
    (left, a), (right, b) = drawn(draw, depth - 1), drawn(draw, draw.randint(0, depth - 1))
    operator = draw.choice("+-*/%")
    if operator in "/%" and b == 0:
        operator = "+"
    value = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: a / b,
        "%": lambda: a % b,
    }[operator]()
    return f"({left}) {operator} ({right})", value


class Check(unittest.TestCase):
    def test_cases(self):
        lines = output(
            [sys.executable, "-B", "calc.py"], "".join(f"{text}\n" for text, _ in CASES)
        ).splitlines()
        self.assertEqual(len(lines), len(CASES))
        for (text, expected), line in zip(CASES, lines):
            self.assertEqual(line, expected, text)

    def test_drawn(self):
        draw = random.Random(9)
        pairs = [drawn(draw, draw.randint(1, 5)) for _ in range(200)]
        lines = output(
            [sys.executable, "-B", "calc.py"], "".join(f"{text}\n" for text, _ in pairs)
        ).splitlines()
        self.assertEqual(lines, [str(value) for _, value in pairs])

    def test_it_is_a_parser(self):
        text = Path("/work/calc.py").read_text()
        for word in ("eval(", "exec(", "import ast", "from ast"):
            self.assertNotIn(word, text)


main()
