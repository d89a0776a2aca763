import csv
import io
import sys
import unittest

sys.path.insert(0, "/checks")
from checks import main, output


def written(rows):
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def join(left, right, mark=""):
    for path, text in (("/tmp/left.csv", left), ("/tmp/right.csv", right)):
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(mark + text)
    return output([sys.executable, "-B", "join.py", "/tmp/left.csv", "/tmp/right.csv"])


def content(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


class Check(unittest.TestCase):
    def test_the_files(self):
        self.assertEqual(
            join(content("/work/people.csv"), content("/work/cities.csv")),
            'name,city_id,note,city,note_2\n"Larsen, Mia",7,"says ""hi""",Bergen,rain\n'
            'Noor,9,"two\nlines","Bath, Somerset",\nOtto,99,,,\n',
        )

    def test_other_files(self):
        left = [
            ["city_id", "näme", "population"],
            [" 1 ", 'a "b"', "5"],
            ["2", "x\ny,z", ""],
            ["1", "", "7"],
            ["", "none", "1"],
        ]
        right = [
            ["population", "city", "city_id", "county"],
            ["100", "Ålesund, N", "1", "M\nR"],
            ["200", "B", "3", "C"],
            ["300", "Never", "1 ", "D"],
        ]
        expected = [["city_id", "näme", "population", "population_2", "city", "county"]]
        for row in left[1:]:
            expected.append(
                row + (["100", "Ålesund, N", "M\nR"] if row[0].strip() == "1" else [""] * 3)
            )
        for mark in ("", "\ufeff"):
            self.assertEqual(join(written(left), written(right), mark), written(expected))


main()
