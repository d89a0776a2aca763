import random
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import last_line, main, output


def summary(folder):
    return last_line(output([sys.executable, "-B", "summary.py", str(folder)]))


class Check(unittest.TestCase):
    def test_the_logs(self):
        self.assertEqual(
            summary("/work/logs"),
            {"requests": 6, "malformed": 1, "errors": 3, "worst": [["/a/b", 2], ["/search", 1]]},
        )

    def test_other_logs(self):
        draw = random.Random(3)
        paths = ["/", "/z", "/b", "/c/500", "/e/f"]
        with tempfile.TemporaryDirectory() as folder:
            counts = dict.fromkeys(paths, 0)
            n_requests = n_malformed = 0
            for number in range(4):
                lines = []
                for _ in range(200):
                    path = draw.choice(paths)
                    status = draw.choice([200, 204, 404, 499, 500, 503, 599, 600])
                    query = draw.choice(["", "?a=502", "?", "?u=/x?y"])
                    method = draw.choice(["GET", "PUT"])
                    line = f'2001:db8::{draw.randint(1, 9)} [2026-03-01T00:00:00Z] "{method} {path}{query} HTTP/1.1" {status} 500 0.5'
                    kind = draw.randint(1, 12)
                    if kind == 1:
                        line = draw.choice(
                            [
                                line[:-4],
                                line.replace('"', "'"),
                                line.replace("HTTP/1.1", "HTTP/9"),
                                line + " 17",
                                line.replace(" /", " "),
                                "500 " * 8,
                            ]
                        )
                        n_malformed += 1
                    elif kind == 2:
                        line = ""
                    else:
                        n_requests += 1
                        counts[path] += 500 <= status <= 599
                    lines.append(line)
                Path(folder, f"{number}.log").write_text("\n".join(lines) + "\n")
            Path(folder, "old.log.bak").write_text("nonsense\n")
            worst = sorted(
                ([p, n] for p, n in counts.items() if n), key=lambda pair: (-pair[1], pair[0])
            )[:3]
            self.assertEqual(
                summary(folder),
                {
                    "requests": n_requests,
                    "malformed": n_malformed,
                    "errors": sum(counts.values()),
                    "worst": worst,
                },
            )

    def test_an_empty_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(
                summary(folder), {"requests": 0, "malformed": 0, "errors": 0, "worst": []}
            )


main()
