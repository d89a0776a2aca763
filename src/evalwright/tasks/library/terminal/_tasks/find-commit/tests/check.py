import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, output


def git(*arguments):
    return output(["git", "-c", "core.fsmonitor=false", *arguments], folder="/work/repo").strip()


class Check(unittest.TestCase):
    def test_answer(self):
        answer = Path("/work/answer.txt").read_text().strip()
        self.assertRegex(answer, r"\A[0-9a-f]{40,64}\Z")
        self.assertEqual(git("rev-parse", "main~15"), answer)

    def test_repository(self):
        self.assertEqual(
            git("log", "--format=%s", "main").splitlines(),
            [f"Revision {n}" for n in range(40, 0, -1)],
        )
        self.assertEqual(git("rev-parse", "--abbrev-ref", "HEAD"), "main")
        self.assertEqual(git("status", "--porcelain"), "")


main()
