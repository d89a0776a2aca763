import unittest

from roman import from_roman, to_roman


class Roman(unittest.TestCase):
    def test_to_roman(self):
        for number, numeral in [(1, "I"), (4, "IV"), (90, "XC"), (1994, "MCMXCIV")]:
            self.assertEqual(to_roman(number), numeral)

    def test_from_roman(self):
        self.assertEqual(from_roman("XIV"), 14)

    def test_no_numerals(self):
        for text in ["", "ABC"]:
            with self.assertRaises(ValueError):
                from_roman(text)


if __name__ == "__main__":
    unittest.main()
