import os
import stat
import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main

MODES = {
    ".": 0o755,
    "bin": 0o755,
    "bin/deep": 0o755,
    "private": 0o700,
    "private/old": 0o755,
    "img": 0o755,
    "img/a b": 0o755,
    "start": 0o755,
    "bin/lib.sh": 0o755,
    "bin/deep/data": 0o644,
    "bin/host.key": 0o600,
    ".env": 0o600,
    "private/a.key": 0o600,
    "private/old/note.txt": 0o644,
    "index.html": 0o644,
    "img/a b/empty.png": 0o644,
    "img/not-a-script": 0o644,
    "private/.env": 0o600,
    "my.env": 0o644,
    "bin/.env": 0o600,
}
CONTENTS = {
    "start": "#!/bin/sh\necho hi\n",
    "bin/lib.sh": "echo lib\n",
    ".env": "A=1\n",
    "my.env": "x\n",
    "bin/.env": "x",
    "img/not-a-script": " #!/bin/sh\n",
}


class Check(unittest.TestCase):
    def test_modes(self):
        root = Path("/work/site")
        for name, mode in MODES.items():
            self.assertEqual(stat.S_IMODE((root / name).lstat().st_mode), mode, name)
        for name, content in CONTENTS.items():
            self.assertEqual((root / name).read_text(), content)
        self.assertEqual(os.readlink(root / "link"), "../outside/shared")
        self.assertEqual(os.readlink(root / "begin"), "start")
        self.assertEqual(stat.S_IMODE(Path("/work/outside/shared").stat().st_mode), 0o640)
        there = {str(path.relative_to(root)) for path in root.rglob("*")}
        self.assertEqual(there, set(MODES) - {"."} | {"link", "begin"})


main()
