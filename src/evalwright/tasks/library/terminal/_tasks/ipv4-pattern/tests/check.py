import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, run

OTHER = [
    "",
    "1.2.3",
    "1.2.3.4.5",
    "1.2.3.4/",
    "1.2.3.4/33",
    "1.2.3.4/08",
    "1.2.3.4/00",
    "00.1.2.3",
    "1.2.3.04",
    "256.0.0.1",
    "1.2.3.999",
    " 1.2.3.4",
    "1.2.3.4 ",
    "1,2,3,4",
    "a.b.c.d",
    "1.2.3.4/3a",
    "1.2.3.4/-1",
    "1..2.3",
    "1.2.3.4.",
    "1x2x3x4",
    "1.2.3.4/320",
]


class Check(unittest.TestCase):
    def test_lines(self):
        draw = random.Random(2)
        right = [".".join(str(draw.randint(0, 255)) for _ in range(4)) for _ in range(200)]
        right += [f"{n}.{n}.{n}.{n}" for n in range(256)] + [f"10.0.0.0/{n}" for n in range(33)]
        wrong = (
            OTHER
            + [f"1.1.1.{n}" for n in range(256, 1000)]
            + [f"1.1.1.1/{n}" for n in range(33, 100)]
        )
        wrong += [f"0{n}.1.1.1" for n in range(100)]
        lines = [*right, *wrong]
        draw.shuffle(lines)
        self.assertEqual(len(Path("/work/pattern.txt").read_text().splitlines()), 1)
        process = run(
            ["grep", "-E", "-x", "-f", "pattern.txt"], "".join(f"{line}\n" for line in lines)
        )
        self.assertEqual(sorted(process.stdout.splitlines()), sorted(right))


main()
