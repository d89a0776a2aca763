import random
import sys
import unittest

sys.path.insert(0, "/checks")
from checks import calls, main


class Check(unittest.TestCase):
    def test_parse(self):
        pairs = [
            ("1h30m", 5400),
            ("90m", 5400),
            ("2d 4h", 187200),
            ("-5s", -5),
            ("  1m  ", 60),
            ("1d1h1m1s", 90061),
            ("0s", 0),
            ("-1h 1s", -3601),
            ("007s", 7),
            ("100d", 8640000),
            ("1d 1s", 86401),
        ]
        self.assertEqual(
            calls("durations", "parse", [[text] for text, _ in pairs]), [n for _, n in pairs]
        )

    def test_no_durations(self):
        wrong = [
            "",
            " ",
            "-",
            "5",
            "h",
            "1x",
            "1m1h",
            "1h1h",
            "1H",
            "1 h",
            "1.5h",
            "+1h",
            "1h-1m",
            "1h,1m",
            "--1s",
            "٣s",
            "1h\n",
            "abc 1h",
            "1hm",
        ]
        for text, outcome in zip(wrong, calls("durations", "parse", [[text] for text in wrong])):
            self.assertEqual(outcome, "raised ValueError", text)

    def test_show(self):
        pairs = [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3600, "1h"),
            (86400, "1d"),
            (90061, "1d1h1m1s"),
            (-61, "-1m1s"),
            (86399, "23h59m59s"),
            (864001, "10d1s"),
        ]
        self.assertEqual(
            calls("durations", "show", [[n] for n, _ in pairs]), [text for _, text in pairs]
        )

    def test_back_and_forth(self):
        numbers = [random.Random(n).randint(-(10**7), 10**7) for n in range(300)]
        texts = calls("durations", "show", [[n] for n in numbers])
        self.assertEqual(calls("durations", "parse", [[text] for text in texts]), numbers)


main()
