import ast
import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import calls, main


def base(zones):
    return 240 if zones <= 2 else 240 + (zones - 2) * 90 if zones <= 5 else 510 + (zones - 5) * 60


def adult(zones, night, card):
    fare = base(zones) + (150 if night else 0)
    return fare * 75 // 100 if card else fare


def child(zones, night, card):
    fare = base(zones) // 2 + (150 if night else 0)
    return min(fare * 75 // 100 if card else fare, 300)


def senior(zones, night, card):
    return (base(zones) + (100 if night else 0)) * 70 // 100 - (20 if card else 0)


class Check(unittest.TestCase):
    def test_fares(self):
        for name, fare in (("adult_fare", adult), ("child_fare", child), ("senior_fare", senior)):
            cases = [
                [zones, night, card]
                for zones in range(-2, 13)
                for night in (False, True)
                for card in (False, True)
            ]
            expected = [fare(*case) if 1 <= case[0] <= 9 else "raised ValueError" for case in cases]
            self.assertEqual(calls("fares", name, cases), expected)

    def test_shape(self):
        text = Path("/work/fares.py").read_text()
        lines = text.splitlines()
        self.assertLessEqual(len(lines), 45)
        long_lines = [line.strip() for line in lines if len(line.strip()) >= 20]
        self.assertEqual(len(long_lines), len(set(long_lines)))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                self.assertLessEqual(node.end_lineno - node.lineno + 1, 14, node.name)


main()
