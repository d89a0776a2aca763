import io
import json
import shutil
import stat
import sys
import tarfile
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, run

ROOT = Path("/tmp/unpacking")


def member(name, content=b"", mode=0o644, kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.type, info.linkname = len(content), mode, kind, link
    return info, content


def archive(members, compression=""):
    path = ROOT / "a.tar"
    with tarfile.open(path, f"w:{compression}", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return path


class Check(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(ROOT, ignore_errors=True)
        ROOT.mkdir()

    def unpacked(self, path):
        process = run([sys.executable, "-B", "/work/unpack.py", str(path), "out"], folder=ROOT)
        files = {
            str(p.relative_to(ROOT / "out")): p.read_bytes()
            for p in (ROOT / "out").rglob("*")
            if p.is_file()
        }
        return process, files

    def lines(self, pairs):
        return "".join(
            f"{'unpacked' if is_there else 'skipped'} {json.dumps(name)}\n"
            for name, is_there in pairs
        )

    def test_strange_members(self):
        outside = ROOT / "outside"
        members = [
            (member("a.txt", b"1"), True),
            (member("./sub//b.sh", b"2", 0o4711), True),
            (member("/etc/evil", b"x"), False),
            (member("../evil", b"x"), False),
            (member("sub/../../evil", b"x"), False),
            (member("two words\nü.txt", b"3"), True),
            (member("out", kind=tarfile.SYMTYPE, link=str(ROOT)), False),
            (member("out/evil", b"in"), True),
            (member("hard", kind=tarfile.LNKTYPE, link="a.txt"), False),
            (member("pipe", kind=tarfile.FIFOTYPE), False),
            (member("null", kind=tarfile.CHRTYPE), False),
            (member("dir", mode=0o000, kind=tarfile.DIRTYPE), True),
            (member("dir/c", b"4", 0o000), True),
            (member("a.txt/d", b"x"), False),
            (member("dir", b"x"), False),
            (member("a.txt", mode=0o755, kind=tarfile.DIRTYPE), False),
            (member("a.txt", b"later"), True),
            (member("..data", b"5"), True),
            (member("a..b/c", b"6"), True),
        ]
        for compression in ("", "gz"):
            self.setUp()
            process, files = self.unpacked(archive([pair for pair, _ in members], compression))
            self.assertEqual(process.returncode, 0, process.stderr)
            self.assertEqual(
                process.stdout, self.lines((info.name, ok) for (info, _), ok in members)
            )
            self.assertEqual(
                files,
                {
                    "a.txt": b"later",
                    "sub/b.sh": b"2",
                    "two words\nü.txt": b"3",
                    "out/evil": b"in",
                    "dir/c": b"4",
                    "..data": b"5",
                    "a..b/c": b"6",
                },
            )
            modes = {
                name: stat.S_IMODE((ROOT / "out" / name).stat().st_mode)
                for name in ("a.txt", "sub/b.sh", "dir", "dir/c", "sub")
            }
            self.assertEqual(
                modes,
                {"a.txt": 0o644, "sub/b.sh": 0o755, "dir": 0o755, "dir/c": 0o644, "sub": 0o755},
            )
            self.assertEqual(sorted(path.name for path in ROOT.iterdir()), ["a.tar", "out"])
            self.assertFalse(outside.exists() or any(path.is_symlink() for path in ROOT.rglob("*")))

    def test_limit(self):
        members = [
            member("a", b"a" * 600_000),
            member("b", b"b" * 400_001),
            member("c", b"c" * 400_000),
            member("a", b"a"),
            member("d", b"d" * 599_999),
            member("e", b"e"),
        ]
        process, files = self.unpacked(archive(members, "gz"))
        self.assertEqual(
            process.stdout, self.lines(zip("abcade", (True, False, True, True, True, False)))
        )
        self.assertEqual(
            {name: len(content) for name, content in files.items()},
            {"a": 1, "c": 400_000, "d": 599_999},
        )

    def test_damage_and_use(self):
        path = archive([member("a", b"1"), member("b", b"2" * 2000)])
        path.write_bytes(path.read_bytes()[:1700])
        process, files = self.unpacked(path)
        self.assertEqual((process.returncode, files.get("a")), (1, b"1"))
        self.assertEqual(process.stdout.splitlines()[0], 'unpacked "a"')
        (ROOT / "there").mkdir()
        self.assertEqual(
            run(
                [sys.executable, "-B", "/work/unpack.py", str(path), "there"], folder=ROOT
            ).returncode,
            2,
        )
        self.assertEqual(list((ROOT / "there").iterdir()), [])


main()
