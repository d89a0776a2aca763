import sys
import unittest

sys.path.insert(0, "/checks")
from checks import main, run

CASES = [
    (
        "# a small build\napp: main.o util.o   # link\nmain.o: main.c util.h\nutil.o: util.c util.h\ntest: app\n",
        "main.c util.c util.h main.o util.o app test",
    ),
    ("b: a\nc:\n", "a b c"),
    ("z: \na: z\nm:\n", "m z a"),
    ("", ""),
    ("a: b\na: c\nb: c\n", "c b a"),
    ("B: a\nb:\n_x: B\n", "a B _x b"),
    ("x : y  z\n", "y z x"),
    ("d: c c\n", "c d"),
]
CIRCLES = ["a: b\nb: c\nc: a\nd: a\n", "a: a\n", "e: f\nf: g h\nh: e\ng:\n", "p: q\nq: r\nr: q\n"]


def order(text):
    return run([sys.executable, "-B", "order.py"], text)


class Check(unittest.TestCase):
    def test_orders(self):
        for text, names in CASES:
            process = order(text)
            self.assertEqual((process.returncode, process.stdout.split()), (0, names.split()), text)

    def test_a_long_chain(self):
        n_steps = 20_000
        text = "".join(f"s{n}: s{n + 1}\n" for n in range(n_steps))
        process = order(text)
        self.assertEqual(process.returncode, 0, process.stderr[-300:])
        self.assertEqual(process.stdout.split(), [f"s{n}" for n in range(n_steps, -1, -1)])
        process = order(text + f"s{n_steps}: s0\n")
        self.assertEqual(process.returncode, 1)
        self.assertEqual(len(process.stdout.split(" -> ")), n_steps + 2)

    def test_circles(self):
        for text in CIRCLES:
            needs = {line.split(":")[0]: line.split(":")[1].split() for line in text.splitlines()}
            process = order(text)
            self.assertEqual(process.returncode, 1)
            self.assertRegex(process.stdout, r"\Acycle: .*\n\Z")
            names = process.stdout.removeprefix("cycle: ").strip().split(" -> ")
            self.assertEqual(names[0], names[-1])
            self.assertGreaterEqual(len(names), 2)
            self.assertEqual(len(set(names[1:])), len(names) - 1)
            for name, need in zip(names, names[1:]):
                self.assertIn(need, needs[name])

    def test_wrong_lines(self):
        for text, number in (
            ("a: b\nnonsense\n", "2"),
            ("a: b\n\n: x\n", "3"),
            ("a b: c\n", "1"),
            ("a: b: c\n", "1"),
            ("ä: b\n", "1"),
        ):
            process = order(text)
            self.assertEqual(process.returncode, 2, text)
            self.assertIn(number, process.stderr)
            self.assertEqual(process.stdout, "")


main()
