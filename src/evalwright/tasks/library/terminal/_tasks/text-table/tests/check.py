import sys
import unittest

sys.path.insert(0, "/checks")
from checks import main, output

SAMPLE = "name\tcity\tcents\nAda\tÅrhus\t1200\n李明\t東京\t-35.5\nBo\t\t7\n"
TABLE = "name  city   cents\n----  -----  -----\nAda   Århus   1200\n李明  東京   -35.5\nBo               7\n"
CASES = [
    (SAMPLE, TABLE),
    ("", ""),
    ("a\tb\n", "a  b\n-  -\n"),
    ("n\tempty\n1\n22\n", " n  empty\n--  -----\n 1\n22\n"),
    ("v\n1.5\n1.\n", "v\n---\n1.5\n1.\n"),
    ("v\tw\n-1\t+1\n10\t2\n", " v  w\n--  --\n-1  +1\n10  2\n"),
    ("e\u0301x\ty\n1234\t5\n", "  e\u0301x  y\n----  -\n1234  5\n"),
    ("a\tb\n１\tx\n２２\ty\n", "a     b\n----  -\n１    x\n２２  y\n"),
    ("x\n\n7\n", "x\n-\n\n7\n"),
    ("only\tone\tmore\nthis\n", "only  one  more\n----  ---  ----\nthis\n"),
]


class Check(unittest.TestCase):
    def test_tables(self):
        for text, table in CASES:
            self.assertEqual(output([sys.executable, "-B", "table.py"], text), table)


main()
