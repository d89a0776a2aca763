import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, output

REPO = "/work/repo"


def git(*arguments):
    return output(["git", "-c", "core.fsmonitor=false", *arguments], folder=REPO).strip()


class Check(unittest.TestCase):
    def test_history(self):
        self.assertEqual(git("rev-parse", "--abbrev-ref", "HEAD"), "main")
        subjects = [
            git("log", "-1", "--format=%s", parent)
            for parent in git("log", "-1", "--format=%P", "main").split()
        ]
        self.assertEqual(
            subjects,
            [
                "Norway costs 550; each started kilogram costs 120",
                "Denmark and Finland, and 1500 for all other countries",
            ],
        )
        self.assertEqual(git("status", "--porcelain"), "")
        self.assertNotIn("<<<<", Path(REPO, "shipping.py").read_text())
        self.assertFalse(Path(REPO, ".git/MERGE_HEAD").exists())

    def test_prices(self):
        bases = {"NO": 550, "SE": 600, "DK": 650, "FI": 700, "JP": 1500}
        for country, base in bases.items():
            for grams in (0, 1, 999, 1000, 1001, 2500):
                price = int(
                    output([sys.executable, "-B", "shipping.py", country, str(grams)], folder=REPO)
                )
                self.assertEqual(price, base + 120 * ((grams + 999) // 1000), (country, grams))


main()
