import subprocess
import sys
import unittest

sys.path.insert(0, "/checks")
from checks import main

PAIRS = [
    ("Write to ada.king@example.org. Bye", "Write to [mail]. Bye"),
    ("<a+b_c%d@x-y.example.co.uk>,z@q.io;", "<[mail]>,[mail];"),
    ("no@host, @x.org, a@.org, a@-x.org, .a@x.org", "no@host, @x.org, a@.org, a@-x.org, .a@x.org"),
    ("a@b.c1 and a@b.c and é", "a@b.c1 and a@b.c and é"),
    ("mail:x@y.com2", "mail:x@y.com2"),
    ("4111 1111 1111 1111", "[card 1111]"),
    ("4111-1111-1111-1111.", "[card 1111]."),
    ("4111111111111111", "[card 1111]"),
    ("378282246310005 and 6011000990139424", "[card 0005] and [card 9424]"),
    ("4111 1111 1111 1112", "4111 1111 1111 1112"),
    ("14111111111111111", "14111111111111111"),
    ("4111  1111 1111 1111", "4111  1111 1111 1111"),
    ("5 4111 1111 1111 1111", "5 4111 1111 1111 1111"),
    ("x4222222222222y", "x[card 2222]y"),
    ("123456789012", "123456789012"),
    ("tab\t and \r\n line\r", "tab\t and \r\n line\r"),
    ("me@example.org 4111111111111111 me@example.org", "[mail] [card 1111] [mail]"),
    ("", ""),
]


def redacted(content):
    process = subprocess.run(
        [sys.executable, "-B", "redact.py"],
        input=content,
        cwd="/work",
        capture_output=True,
        timeout=30,
    )
    assert process.returncode == 0, process.stderr[-300:]
    return process.stdout


class Check(unittest.TestCase):
    def test_texts(self):
        for text, expected in PAIRS:
            self.assertEqual(redacted(text.encode()).decode(), expected, text)

    def test_bytes_stay(self):
        content = b"\xff\xfe a@b.org \x00 \x80\n"
        self.assertEqual(redacted(content), b"\xff\xfe [mail] \x00 \x80\n")

    def test_long_lines(self):
        for text in ("a." * 100_000, "1-" * 100_000, "a@" * 100_000, "a@" + "b-" * 99_999):
            self.assertEqual(redacted(text.encode()).decode(), text)


main()
