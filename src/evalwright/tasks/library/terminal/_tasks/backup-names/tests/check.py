import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, run

ROOT = Path("/tmp/backup")
NAMES = [
    "plain.txt",
    "two words.txt",
    "line\nbreak.txt",
    "-n.txt",
    "*.txt",
    "a'b\"c.txt",
    "back\\slash.txt",
    " lead.txt",
    ".hidden.txt",
    "-dir/-f.txt",
    "d d/e\ne/x.txt",
    ".git/y.txt",
    "tail /z.txt",
]


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


class Check(unittest.TestCase):
    def copied(self, source, target, n_before=0):
        shutil.rmtree(ROOT, ignore_errors=True)
        (ROOT / source).mkdir(parents=True)
        for name in NAMES:
            path = ROOT / source / name
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(f"content of {name}")
        (ROOT / source / "no.md").write_text("no")
        (ROOT / source / "link.txt").symlink_to("plain.txt")
        process = run(["bash", "/work/backup.sh", source, target], folder=ROOT)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual(process.stdout.splitlines()[-1], str(len(NAMES)))
        self.assertEqual(files(ROOT / target), {name: f"content of {name}" for name in NAMES})
        return process

    def test_names(self):
        self.copied("src", "target")
        self.copied("-my src", "-my/new target")
        self.copied("line\nsource", "to\nthere ")
        self.copied("s", str(ROOT / "absolute"))

    def test_target_below_source(self):
        self.copied("src", "src/old copies")
        process = run(["bash", "/work/backup.sh", "src", "src/old copies"], folder=ROOT)
        self.assertEqual(process.stdout.splitlines()[-1], str(len(NAMES)))
        self.assertEqual(
            files(ROOT / "src/old copies"), {name: f"content of {name}" for name in NAMES}
        )

    def test_no_source(self):
        shutil.rmtree(ROOT, ignore_errors=True)
        ROOT.mkdir()
        self.assertEqual(
            run(["bash", "/work/backup.sh", "none", "target"], folder=ROOT).returncode, 2
        )
        self.assertFalse((ROOT / "target").exists())


main()
