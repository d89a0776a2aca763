import os
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, output

ROOT = Path("/tmp/photos")


def put(name, content, time, mode=0o644):
    path = ROOT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    os.utime(path, (time, time))
    return path


class Check(unittest.TestCase):
    def test_groups(self):
        shutil.rmtree(ROOT, ignore_errors=True)
        big = b"x" * 3_000_000
        put("b/one.jpg", b"same", 2000)
        put("a/two.jpg", b"same", 1000)
        put("z three.jpg", b"same", 3000)
        put("private.jpg", b"same", 10, 0o600)
        put("e1", b"", 5)
        put("e2", b"", 5)
        put("big1", big + b"1", 7)
        put("big2", big + b"2", 7)
        put("big3", big + b"2", 7)
        put("linked", b"pair", 8)
        os.link(ROOT / "linked", ROOT / "linked2")
        put("l/third", b"pair", 9)
        put("q1", b"quiet", 1)
        os.link(ROOT / "q1", ROOT / "q2")
        Path("/tmp/elsewhere").write_bytes(b"same")
        (ROOT / "sym").symlink_to("/tmp/elsewhere")
        names = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*")}
        contents = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
        text = output([sys.executable, "-B", "dedupe.py", str(ROOT)])
        self.assertEqual(text, "3\t8\ta/two.jpg\n2\t3000001\tbig2\n3\t4\tl/third\n")
        self.assertEqual({str(path.relative_to(ROOT)) for path in ROOT.rglob("*")}, names)
        self.assertEqual({name: (ROOT / name).read_bytes() for name in contents}, contents)
        for group, time in (
            (["a/two.jpg", "b/one.jpg", "z three.jpg"], 1000),
            (["big2", "big3"], 7),
            (["linked", "linked2", "l/third"], 8),
        ):
            states = {
                ((ROOT / name).stat().st_ino, (ROOT / name).stat().st_mtime) for name in group
            }
            self.assertEqual(len(states), 1, group)
            self.assertEqual(states.pop()[1], time)
        for name in ("private.jpg", "e1", "e2", "big1"):
            self.assertEqual((ROOT / name).stat().st_nlink, 1, name)
        self.assertTrue((ROOT / "sym").is_symlink())
        self.assertEqual(Path("/tmp/elsewhere").stat().st_nlink, 1)
        self.assertEqual(output([sys.executable, "-B", "dedupe.py", str(ROOT)]), "")


main()
