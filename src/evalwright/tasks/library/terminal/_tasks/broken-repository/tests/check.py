import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, output, run


def git(*arguments):
    return output(["git", "-c", "core.fsmonitor=false", *arguments], folder="/work/repo").strip()


class Check(unittest.TestCase):
    def test_repository(self):
        process = run(["git", "fsck", "--full"], folder="/work/repo")
        self.assertEqual(process.returncode, 0, process.stderr)
        for word in ("missing", "broken", "error", "invalid"):
            self.assertNotIn(word, process.stdout + process.stderr)
        self.assertEqual(git("symbolic-ref", "HEAD"), "refs/heads/main")
        self.assertEqual(
            git("log", "--format=%s", "main").splitlines(),
            [f"Release {n}" for n in (5, 4, 3, 2, 1)],
        )
        self.assertEqual(git("log", "-1", "--format=%s", "v1"), "Release 2")
        self.assertEqual(git("status", "--porcelain"), "")
        self.assertEqual(Path("/work/repo/version.txt").read_text(), "version 5\n")

    def test_contents(self):
        for n in range(1, 6):
            commit = f"main~{5 - n}"
            self.assertEqual(git("show", f"{commit}:version.txt"), f"version {n}")
            self.assertEqual(git("show", f"{commit}:notes-{n}.txt"), f"notes of {n}")
            self.assertEqual(len(git("ls-tree", "--name-only", commit).split()), n + 1)


main()
