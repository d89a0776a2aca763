import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main

EXPECTED = {
    "a.py": b"x = 1\ny = 2\n\n",
    "b.bat": b"echo 1\r\necho 2\r\n\r\n@rem\r\n",
    "deep er/old.txt": b"one\ntwo\n\nthree  \n",
    "deep er/logo.png": b"\x89PNG\r\n\x1a\n\x00\r\n",
    "empty.txt": b"",
    "run.sh": b"#!/bin/sh\necho hi\n",
    "mixed.csv": b"a,b\n1,2\n3,4\n5,6\n\n",
    "data": b"\n\n\n",
    "deep er/go.BAT.txt": b"x\n",
    "ok.txt": b"fine\n",
}


class Check(unittest.TestCase):
    def test_bytes(self):
        root = Path("/work/project")
        names = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        self.assertEqual(names, set(EXPECTED))
        for name, content in EXPECTED.items():
            self.assertEqual((root / name).read_bytes(), content, name)
        self.assertEqual((root / "run.sh").stat().st_mode & 0o777, 0o755)


main()
