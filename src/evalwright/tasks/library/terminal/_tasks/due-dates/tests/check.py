import random
import sys
import unittest
from datetime import date, timedelta

sys.path.insert(0, "/checks")
from checks import calls, main

CASES = [
    (["2026-01-30", "net 1", []], "2026-01-30"),
    (["2026-01-31", "month 1", []], "2026-02-27"),
    (["2026-01-29", "net 2", []], "2026-01-30"),
    (["2026-05-01", "net 1", []], "2026-05-04"),
    (["2026-02-10", "0 eom", []], "2026-02-27"),
    (["2026-02-10", "30 eom", []], "2026-03-30"),
    (["2023-12-31", "month 2", []], "2024-02-29"),
    (["2024-02-29", "month 12", []], "2025-02-28"),
    (["2026-12-30", "2 workdays", ["2027-01-01"]], "2027-01-04"),
    (["2026-03-06", "1 workdays", []], "2026-03-09"),
    (["2026-03-07", "1 workdays", ["2026-03-09"]], "2026-03-10"),
    (["2026-04-29", "net 1", ["2026-04-30"]], "2026-04-29"),
    (["2026-07-04", "net 0", []], "2026-07-06"),
    (["2026-02-27", "month 0", ["2026-02-27", "2026-02-26"]], "2026-02-25"),
]
WRONG = [
    ["2026-02-30", "net 1", []],
    ["2026-02-03", "net -1", []],
    ["2026-02-03", "0 workdays", []],
    ["2026-02-03", "soon", []],
    ["20260203", "net 1", []],
    ["2026-02-03", "net 1 eom", []],
    ["2026-02-03", "NET 1", []],
    ["2026-02-03", "", []],
]


class Check(unittest.TestCase):
    def test_cases(self):
        for (case, expected), outcome in zip(
            CASES, calls("due", "due", [case for case, _ in CASES])
        ):
            self.assertEqual(outcome, expected, case)

    def test_wrong_terms(self):
        self.assertEqual(calls("due", "due", WRONG), ["raised ValueError"] * len(WRONG))

    def test_drawn(self):
        draw = random.Random(11)
        cases, expected = [], []
        for _ in range(400):
            start = date(2024, 1, 1) + timedelta(days=draw.randint(0, 1500))
            closed = [
                start + timedelta(days=draw.randint(0, 40)) for _ in range(draw.randint(0, 12))
            ]
            n = draw.randint(0, 35)
            target = later = start + timedelta(days=n)
            while later.weekday() > 4 or later in closed:
                later += timedelta(days=1)
            if later.month != target.month:
                later = target
                while later.weekday() > 4 or later in closed:
                    later -= timedelta(days=1)
            cases.append([start.isoformat(), f"net {n}", [day.isoformat() for day in closed]])
            expected.append(later.isoformat())
        self.assertEqual(calls("due", "due", cases), expected)


main()
