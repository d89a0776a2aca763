import sys
import unittest

sys.path.insert(0, "/checks")
from checks import calls, main

UNITS = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"]
TENS = ["", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"]
HUNDREDS = ["", "C", "CC", "CCC", "CD", "D", "DC", "DCC", "DCCC", "CM"]


def numeral(n):
    return "M" * (n // 1000) + HUNDREDS[n // 100 % 10] + TENS[n // 10 % 10] + UNITS[n % 10]


class Check(unittest.TestCase):
    def test_all_numbers(self):
        numbers = list(range(1, 4000))
        numerals = [numeral(n) for n in numbers]
        self.assertEqual(calls("roman", "to_roman", [[n] for n in numbers]), numerals)
        self.assertEqual(calls("roman", "from_roman", [[t] for t in numerals]), numbers)

    def test_what_is_refused(self):
        wrong = [
            "",
            "IIII",
            "VX",
            "IC",
            "VV",
            "MMMM",
            "iv",
            "XIVI",
            "IXI",
            " X",
            "X ",
            "LC",
            "12",
            "CMC",
        ]
        for outcome in calls("roman", "from_roman", [[t] for t in wrong]):
            self.assertEqual(outcome, "raised ValueError")
        for outcome in calls("roman", "to_roman", [[0], [-1], [4000]]):
            self.assertEqual(outcome, "raised ValueError")


main()
