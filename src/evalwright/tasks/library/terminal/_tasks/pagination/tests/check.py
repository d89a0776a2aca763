import sys
import unittest

sys.path.insert(0, "/checks")
from checks import calls, main


class Check(unittest.TestCase):
    def test_pages(self):
        cases, expected = [], []
        for n_rows in range(0, 23):
            rows = [f"row {n}" for n in range(n_rows)]
            for size in (1, 2, 5, 10, 30):
                chunks = [rows[n : n + size] for n in range(0, n_rows, size)] or [[]]
                for number in range(-1, len(chunks) + 3):
                    cases.append([rows, number, size])
                    if not 1 <= number <= len(chunks):
                        expected.append("raised ValueError")
                        continue
                    expected.append(
                        {
                            "rows": chunks[number - 1],
                            "pages": len(chunks),
                            "previous": number - 1 if number > 1 else None,
                            "next": number + 1 if number < len(chunks) else None,
                        }
                    )
        self.assertEqual(calls("pages", "page", cases), expected)

    def test_sizes(self):
        self.assertEqual(
            calls("pages", "page", [[[1], 1, 0], [[1], 1, -3]]), ["raised ValueError"] * 2
        )


main()
