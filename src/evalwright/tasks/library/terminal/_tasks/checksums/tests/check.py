import hashlib
import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main

REPORT = {
    "good": ["a.txt", "data/raw/d.bin", "empty"],
    "changed": ["b c.txt", "data/E.txt"],
    "missing": ["data/gone.txt"],
    "extra": ["Z", "data/.new"],
}
CONTENTS = {
    "Z": "z\n",
    "a.txt": "one\n",
    "b c.txt": "changed\n",
    "data/.new": "new\n",
    "data/E.txt": "four\n",
    "data/raw/d.bin": "three\n",
    "empty": "",
}


class Check(unittest.TestCase):
    def test_report(self):
        self.assertEqual(json.loads(Path("/work/report.json").read_text()), REPORT)

    def test_new_sums(self):
        lines = [
            f"{hashlib.sha256(content.encode()).hexdigest()}  {name}\n"
            for name, content in CONTENTS.items()
        ]
        self.assertEqual(Path("/work/NEWSUMS").read_text().replace(" *", "  "), "".join(lines))


main()
