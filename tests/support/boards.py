"""A board's repository on this machine, with entries of servers on loopback."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.command import Done
from support.typed import typed

BOARD = """\
title: Sums
suite:
  tasks: [sums.yaml]
  accept_failures: {accepted}
entries:
  providers: [openai]
  base_urls: [{urls}]
  arguments: {{max_tokens: [1, 1000]}}
  most_dollars: 5
  prices: {{{prices}}}
trial: {{samples: 6, cases: 2, budget: 200 requests}}
publish: {{readme: README.md, site: site, samples: {samples}}}
"""
TASK = """\
task: sums
dataset: {path: sums.csv}
sample: {input: "{{ question }}", target: "{{ answer }}"}
prompt: {user: "{{ input }}"}
answer: {mode: generate, max_tokens: 20}
scorers: [exact-match]
"""


@dataclass(frozen=True)
class BoardFolder:
    """The folder of a board."""

    path: Path

    def add_entry(self, name: str, model: str, url: str, *more: str) -> None:
        """Write an entry's file."""
        lines = [f"model: openai/{model}", f"base_url: {url}", *more]
        text = "\n".join(lines) + "\n"
        (self.path / "entries" / f"{name}.yaml").write_text(text, encoding="utf-8")

    def entries(self, *arguments: str, extra: Mapping[str, str] | None = None) -> Done:
        """`evalwright entries ARGUMENTS`, here."""
        done = typed("entries", *arguments, folder=self.path, extra=extra)
        assert "bug in evalwright" not in done.text, done.text
        assert "Traceback" not in done.text, done.text
        return done

    def run(self, *arguments: str, extra: Mapping[str, str] | None = None) -> Done:
        """`evalwright entries run` with the board's permission."""
        return self.entries(
            "run", "--trust-file", "board.yaml", "--quiet", *arguments, extra=extra
        )

    def results(self, name: str) -> list[Path]:
        """The folders of an entry's results."""
        return sorted((self.path / "results" / name).glob("*"))

    def change(self, file: str, old: str, new: str) -> None:
        """Replace a text in a file."""
        text = (self.path / file).read_text(encoding="utf-8")
        assert old in text
        (self.path / file).write_text(text.replace(old, new), encoding="utf-8")


def make_board(
    folder: Path,
    urls: Mapping[str, str],
    *,
    n_items: int = 12,
    accepted: str = '""',
    samples: str = "none",
) -> BoardFolder:
    """Write a board of sums with an entry for each model.

    Args:
        folder: an empty folder.
        urls: by model, the address of its server.
        n_items: number of sums.
        accepted: what failures are accepted.
        samples: where samples go.
    """
    (folder / "entries").mkdir(parents=True)
    with (folder / "sums.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("question", "answer"))
        rows.writerows((f"What is {i} + {i}?", str(2 * i)) for i in range(n_items))
    (folder / "sums.yaml").write_text(TASK, encoding="utf-8")
    text = BOARD.format(
        urls=", ".join(f'"{url}"' for url in dict.fromkeys(urls.values())),
        prices=", ".join(f"openai/{model}: 1/2" for model in urls),
        samples=samples,
        accepted=accepted,
    )
    (folder / "board.yaml").write_text(text, encoding="utf-8")
    board = BoardFolder(folder)
    for model, url in urls.items():
        board.add_entry(model, model, url)
    return board


def add_up(prompt: str) -> str:
    """Answer a sum rightly."""
    numbers = [int(word) for word in prompt.replace("?", "").split() if word.isdigit()]
    return str(sum(numbers[:2]))
