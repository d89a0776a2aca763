import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, output


class Check(unittest.TestCase):
    def test_the_letters(self):
        expected = {
            "a.txt": "Größe: 5 µm\n".encode(),
            "b.txt": "Prix : 12 €\r\nmerci\r\n".encode(),
            "north/c.txt": "Smörgås\n".encode(),
            "north/d.txt": "naïve\n".encode(),
            "e.bin": b"\xff\xfe\x00\x80",
        }
        for name, content in expected.items():
            self.assertEqual(Path("/work/letters", name).read_bytes(), content)

    def test_another_folder(self):
        folder = Path("/tmp/other")
        (folder / "x" / "y").mkdir(parents=True)
        texts = {
            "one.txt": ("déjà\r\rvu\n".encode("cp1252"), "déjà\r\rvu\n"),
            "x/two.txt": (b"even bytes \xe9\x81", "even bytes é\ufffd"),
            "x/y/three.txt": ("\ufeff日本\n".encode("utf-16-be"), "日本\n"),
            "x/y/four.txt": ("\ufeff日本\r\n".encode("utf-16-le"), "日本\r\n"),
            "five.txt": (b"", ""),
            "six.txt": ("\ufeff".encode(), ""),
            "seven.txt": ("ça va\n".encode("cp1252"), "ça va\n"),
        }
        for name, (content, _) in texts.items():
            (folder / name).write_bytes(content)
        (folder / "right.txt").write_bytes("schön\n".encode())
        os.utime(folder / "right.txt", (1_000_000_000, 1_000_000_000))
        (folder / "note.md").write_bytes("é".encode("cp1252"))
        Path("/tmp/outside.txt").write_bytes("é".encode("cp1252"))
        (folder / "link.txt").symlink_to("/tmp/outside.txt")
        output([sys.executable, "-B", "convert.py", str(folder)])
        for name, (_, text) in texts.items():
            self.assertEqual((folder / name).read_bytes(), text.encode(), name)
        self.assertEqual((folder / "right.txt").read_bytes(), "schön\n".encode())
        self.assertEqual((folder / "right.txt").stat().st_mtime, 1_000_000_000)
        self.assertEqual((folder / "note.md").read_bytes(), b"\xe9")
        self.assertEqual(Path("/tmp/outside.txt").read_bytes(), b"\xe9")
        self.assertTrue((folder / "link.txt").is_symlink())


main()
