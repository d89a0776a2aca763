"""Writes what the commands of documentation pages print below them.

    python -m scripts.page_outputs [--add] [--renew] PAGE...

A page is run as `tests/test_docs.py` runs it, except that bundled tasks are run whole. Blocks of
the language `output` that no longer hold what is printed are rewritten. In the others, `--renew`
writes the numbers of today; what was cut by hand stays cut. `--add` adds one below each block that
printed something and has none: keep of each what a reader looks for, and delete those that show
nothing new. At most 12 lines are kept, none wider than 110 columns.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.pages import (  # noqa: E402
    ELLIPSIS,
    MAX_OUTPUT_COLUMNS,
    MAX_OUTPUT_LINES,
    Block,
    PageRunner,
    blocks_of_text,
    environment,
    missing_lines,
    renewed_output,
)

BEGINNING_LINES = 6
"""Lines that are kept of the beginning of a long output."""


def write_outputs(page: Path, *, add: bool, renew: bool) -> list[int]:
    """Run a page and rewrite its outputs.

    Args:
        page: The page, a Markdown file.
        add: Add an output below each block that printed something and has none.
        renew: Write today's numbers into outputs that still hold.

    Returns:
        The lines of the blocks whose outputs were written.
    """
    text = page.read_text(encoding="utf-8")
    changes: list[tuple[Block, str]] = []
    with TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        runner = PageRunner(page, folder, environment(page, folder), whole=True)
        for block in blocks_of_text(text):
            printed = "" if block.skipped else runner.run(block)
            if not block.is_run:
                continue
            output = new_output(block, printed, add=add, renew=renew)
            if output is not None:
                changes.append((block, output))
    for block, output in reversed(changes):
        end = block.end if block.output is None else block.output.end
        fenced = f"\n\n```output\n{output}\n```"
        text = text[: block.end] + fenced + text[end:]
    page.write_text(text, encoding="utf-8")
    return [block.line for block, _ in changes]


def new_output(block: Block, printed: str, *, add: bool, renew: bool) -> str | None:
    """What the output below a block becomes; None where it stays as it is."""
    if not printed.strip():
        return None
    if block.output is None:
        return shortened(printed) if add else None
    body = block.output.body
    if missing_lines(body, printed):
        return shortened(printed)
    renewed = renewed_output(body, printed)
    return renewed if renew and renewed != body.rstrip("\n") else None


def shortened(printed: str) -> str:
    """An output that fits a page: few lines, none too wide, its end among them, where conclusions
    are.
    """
    lines = printed.strip("\n").splitlines()
    if len(lines) > MAX_OUTPUT_LINES:
        beginning = "\n".join(lines[:BEGINNING_LINES]).rstrip("\n")
        n_last = MAX_OUTPUT_LINES - BEGINNING_LINES - 1
        end = "\n".join(lines[-n_last:]).strip("\n")
        lines = [*beginning.splitlines(), ELLIPSIS, *end.splitlines()]
    return "\n".join(shortened_line(line) for line in lines)


def shortened_line(line: str) -> str:
    """A line that fits, cut between two words."""
    if len(line) <= MAX_OUTPUT_COLUMNS:
        return line
    beginning = line[: MAX_OUTPUT_COLUMNS - 2]
    return f"{beginning.rpartition(' ')[0].rstrip() or beginning} {ELLIPSIS}"


def main() -> None:
    """Rewrite the outputs of the pages on the command line."""
    parser = argparse.ArgumentParser(prog="python -m scripts.page_outputs")
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE")
    parser.add_argument("--add", action="store_true", help="add those that are missing")
    parser.add_argument("--renew", action="store_true", help="write today's numbers")
    arguments = parser.parse_args()
    for page in arguments.pages:
        lines = write_outputs(page.resolve(), add=arguments.add, renew=arguments.renew)
        print(f"{page}: {len(lines)} written", *lines)


if __name__ == "__main__":
    main()
