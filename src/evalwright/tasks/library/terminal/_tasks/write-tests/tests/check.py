import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, run

RIGHT = """import unicodedata


def slug(title, most=40):
    if most < 1:
        raise ValueError("most is at least 1")
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = "".join(sign if sign.isalnum() else " " for sign in plain).split()
    return "-".join(words)[:most].rstrip("-") or "untitled"
"""
CHANGES = [
    (".lower()", ""),
    ('unicodedata.normalize("NFKD", title)', "title"),
    ('"-".join(words)[:most].rstrip("-")', '"-".join(words)[:most]'),
    ('"-".join(words)[:most]', '"-".join(words)'),
    ("most=40", "most=60"),
    (' or "untitled"', ""),
    ("if most < 1", "if most < 0"),
    ('    if most < 1:\n        raise ValueError("most is at least 1")\n', ""),
    ("sign.isalnum()", "sign.isalpha()"),
    ('"-".join(words)', '"_".join(words)'),
    ('return "-".join(words)', 'return re.sub("[^a-z0-9]", "-", plain)'),
]


def outcome(source):
    """Run the tests in a new folder with this slug.py; returns the exit code and how many ran."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "slug.py").write_text(source)
        shutil.copy("/work/test_slug.py", folder)
        process = run([sys.executable, "-B", "-m", "unittest", "test_slug"], folder=folder)
    n_ran = re.search(r"^Ran (\d+) test", process.stderr, re.MULTILINE)
    return process.returncode, int(n_ran.group(1)) if n_ran else 0


class Check(unittest.TestCase):
    def test_the_right_one_passes(self):
        code, n_ran = outcome(RIGHT)
        self.assertEqual(code, 0)
        self.assertGreaterEqual(n_ran, 4)

    def test_each_change_is_noticed(self):
        outcome(RIGHT)
        for before, after in CHANGES:
            self.assertIn(before, RIGHT)
            source = "import re\n" + RIGHT.replace(before, after)
            self.assertNotEqual(outcome(source)[0], 0, (before, after))


main()
