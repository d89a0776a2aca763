import gzip
import os
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, run

FOLDER = Path("/tmp/logs")


def rotate(*arguments):
    return run(["bash", "/work/rotate.sh", *arguments], folder=FOLDER).returncode


def content():
    found = {}
    for path in FOLDER.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            found[str(path.relative_to(FOLDER))] = (
                gzip.decompress(content) if path.suffix == ".gz" else content
            )
    return found


class Check(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()

    def test_many_times(self):
        for name in ("app.log", "my [a]* log", "-n.log", "sub dir/x.log"):
            self.setUp()
            path = FOLDER / name
            path.parent.mkdir(exist_ok=True)
            neighbour = f"{name}.10.gz.bak"
            (FOLDER / neighbour).write_bytes(b"bak")
            (FOLDER / f"{name}.old").write_bytes(b"old")
            for number in range(6):
                path.write_bytes(b"%d" % number)
                path.chmod(0o640)
                self.assertEqual(rotate(name, "4"), 0)
                self.assertEqual(path.stat().st_mode & 0o777, 0o640)
            rest = {neighbour: b"bak", f"{name}.old": b"old", name: b""}
            self.assertEqual(
                content(),
                {
                    **rest,
                    f"{name}.1": b"5",
                    f"{name}.2.gz": b"4",
                    f"{name}.3.gz": b"3",
                    f"{name}.4.gz": b"2",
                },
            )
            path.write_bytes(b"6")
            self.assertEqual(rotate(name, "2"), 0)
            self.assertEqual(content(), {**rest, f"{name}.1": b"6", f"{name}.2.gz": b"5"})
            path.write_bytes(b"7")
            self.assertEqual(rotate(name, "1"), 0)
            self.assertEqual(content(), {**rest, f"{name}.1": b"7"})

    def test_gaps(self):
        (FOLDER / "a").write_bytes(b"new")
        (FOLDER / "a.5.gz").write_bytes(gzip.compress(b"five"))
        self.assertEqual(rotate("a", "10"), 0)
        self.assertEqual(content(), {"a": b"", "a.1": b"new", "a.6.gz": b"five"})

    def test_nothing_to_do(self):
        self.assertEqual(rotate("none.log", "3"), 0)
        (FOLDER / "empty").touch()
        (FOLDER / "empty.1").write_bytes(b"x")
        self.assertEqual(rotate("empty", "3"), 0)
        self.assertEqual(content(), {"empty": b"", "empty.1": b"x"})

    def test_wrong_use(self):
        (FOLDER / "a").write_bytes(b"x")
        for arguments in (
            ["a", "0"],
            ["a", "-1"],
            ["a", "x"],
            ["a"],
            [],
            ["a", "2", "3"],
            ["a", "1.5"],
            ["a", ""],
        ):
            self.assertEqual(rotate(*arguments), 2, arguments)
        self.assertEqual(content(), {"a": b"x"})


os.umask(0o022)
main()
