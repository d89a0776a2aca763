import sys
import unittest

sys.path.insert(0, "/checks")
from checks import calls, main, program

COUNTED = """
import json
from unique import unique

class Counted:
    n = 0
    def __init__(self, number):
        self.number = number
    def __eq__(self, other):
        Counted.n += 1
        return isinstance(other, Counted) and self.number == other.number
    def __hash__(self):
        return hash(self.number)

records = [{"kind": Counted(0), "number": Counted(n)} for n in range(1, 2001)]
kept = unique(records + [dict(record) for record in records])
same = all(a is b for a, b in zip(kept, records))
print(json.dumps([len(kept), same, Counted.n <= 80_000]))
"""


class Check(unittest.TestCase):
    def test_order_and_equality(self):
        cases = [
            [[{"a": 1}, {"a": 2}, {"a": 1.0}, {"a": "1"}]],
            [[{"a": "x", "b": "y"}, {"b": "y", "a": "x"}, {"a": "x"}]],
            [[{"a": [1, "2"]}, {"a": [1, 2]}, {"a": [1.0, "2"]}, {"a": ["2", 1]}]],
            [[]],
            [[{}, {}, {"a": []}, {"a": ""}]],
            [[{"a": [[1], [2]]}, {"a": [[1, 2]]}, {"a": [[1.0], [2]]}]],
        ]
        expected = [
            [{"a": 1}, {"a": 2}, {"a": "1"}],
            [{"a": "x", "b": "y"}, {"a": "x"}],
            [{"a": [1, "2"]}, {"a": [1, 2]}, {"a": ["2", 1]}],
            [],
            [{}, {"a": []}, {"a": ""}],
            [{"a": [[1], [2]]}, {"a": [[1, 2]]}],
        ]
        self.assertEqual(calls("unique", "unique", cases), expected)

    def test_number_of_comparisons(self):
        self.assertEqual(program(COUNTED), [2000, True, True])


main()
