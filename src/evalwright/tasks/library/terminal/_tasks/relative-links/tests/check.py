import os
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main

LINKS = {
    "current": "v2",
    "previous": "v1",
    "run": "current/bin/app",
    "v2/log": "../shared/log",
    "v2/bin/next": "../../v 3/bin/app",
    "v2/bin/last": "../../v1/bin/app",
    "v2/host": "/etc/hostname",
    "v1/gone": "../shared/gone",
    "v2/cache/app": "../bin/app",
    "v1/other": "/srv/app/releases2/app",
    "v 3/top": "..",
    "v1/dots": "../v2/bin/app",
}


class Check(unittest.TestCase):
    def test_links(self):
        root = Path("/work/releases")
        links = {
            str(path.relative_to(root)): os.readlink(path)
            for path in root.rglob("*")
            if path.is_symlink()
        }
        self.assertEqual(links, LINKS)

    def test_moved(self):
        shutil.copytree("/work/releases", "/tmp/moved", symlinks=True)
        for name, content in (
            ("run", "two\n"),
            ("previous/bin/app", "one\n"),
            ("v2/bin/next", "three\n"),
            ("v2/log/app.log", "log\n"),
        ):
            path = Path("/tmp/moved", name)
            self.assertTrue(str(path.resolve()).startswith("/tmp/moved/"))
            self.assertEqual(path.read_text(), content)


main()
