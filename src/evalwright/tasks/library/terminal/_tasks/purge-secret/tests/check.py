import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, output


def git(*arguments):
    return output(["git", "-c", "core.fsmonitor=false", *arguments], folder="/work/repo").strip()


class Check(unittest.TestCase):
    def test_the_secret_is_gone(self):
        self.assertNotIn("tok-5f1c-93ab-77de", git("cat-file", "--batch-all-objects", "--batch"))
        for path in Path("/work/repo").rglob("*"):
            if path.is_file():
                self.assertNotIn(b"tok-5f1c-93ab-77de", path.read_bytes(), path)

    def test_the_rest_is_there(self):
        form = "--format=%s|%an|%aI"
        dates = [f"Step {n}|Ada|2026-02-0{n}T10:00:00" for n in (1, 2, 3, 4, 5)]

        def log(ref):
            return [
                line[:30].replace("+00:00", "").rstrip("Z")
                for line in git("log", form, ref).splitlines()
            ]

        self.assertEqual(log("main"), [dates[4], dates[2], dates[1], dates[0]])
        self.assertEqual(log("release"), [dates[3], dates[2], dates[1], dates[0]])
        self.assertEqual(git("cat-file", "-t", "v1"), "tag")
        self.assertEqual(git("tag", "-l", "--format=%(contents:subject)", "v1"), "First version")
        self.assertEqual(git("rev-parse", "v1^{commit}"), git("rev-parse", "main~1"))
        self.assertEqual(git("rev-parse", "release~1"), git("rev-parse", "main~1"))
        trees = {
            "main": ["app.txt", "lib/a.txt"],
            "main~1": ["app.txt", "lib/a.txt"],
            "main~2": ["app.txt"],
            "main~3": ["app.txt"],
            "release": ["app.txt", "fix.txt", "lib/a.txt"],
        }
        for commit, names in trees.items():
            self.assertEqual(git("ls-tree", "-r", "--name-only", commit).split(), names)
        words = [git("show", f"main~{n}:app.txt") for n in range(4)]
        self.assertEqual(words, ["four", "three", "two", "one"])
        self.assertEqual(git("rev-parse", "--abbrev-ref", "HEAD"), "main")
        self.assertEqual(git("status", "--porcelain"), "")
        self.assertEqual(git("branch", "--format=%(refname:short)").split(), ["main", "release"])


main()
