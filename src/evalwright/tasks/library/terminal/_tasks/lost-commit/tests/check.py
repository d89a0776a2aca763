import sys
import unittest

sys.path.insert(0, "/checks")
from checks import main, output


def git(*arguments):
    return output(["git", "-c", "core.fsmonitor=false", *arguments], folder="/work/repo").strip()


class Check(unittest.TestCase):
    def test_rescued(self):
        subjects = git("log", "--format=%s", "rescued").splitlines()
        self.assertEqual(subjects, ["Export rows", "Begin the export", "Add the tool", "Begin"])
        self.assertEqual(git("show", "rescued:export.py"), "def rows(): return [1, 2, 3]")
        self.assertEqual(git("show", "rescued~1:export.py"), "def rows(): return []")
        self.assertEqual(
            git("ls-tree", "--name-only", "rescued").split(), ["README.md", "export.py", "tool.py"]
        )

    def test_main(self):
        self.assertEqual(
            git("log", "--format=%s", "main").splitlines(), ["Import sys", "Add the tool", "Begin"]
        )
        self.assertEqual(git("rev-parse", "--abbrev-ref", "HEAD"), "main")
        self.assertEqual(git("status", "--porcelain"), "")


main()
