"""Every command and example in README and docs is run, page by page, in an empty folder.

How a page is a script, `support.pages` says. A plain `evalwright` command runs in this process, and
the bundled tasks are run on some of their samples. A block of outputs holds what is printed,
numbers apart. A page in Korean has the commands, outputs, code spans and tables of its English
page; what the English page runs is not run twice.
"""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from support.pages import (
    FENCE,
    MAX_OUTPUT_COLUMNS,
    MAX_OUTPUT_LINES,
    ROOT,
    PageRunner,
    blocks,
    blocks_of_text,
    environment,
    missing_lines,
    renewed_output,
    shown_text,
)

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KOREAN = [page for page in PAGES if page.parent.name == "ko"]
CODE = re.compile(r"`[^`]+`")
HEADING = re.compile(r"^#+ ", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)#\s]+)(?:#[^)]*)?\)")


def in_english(page: Path) -> Path:
    """The English page of a Korean one."""
    if page.name == "index.md":
        return ROOT / "README.md"
    below_docs = ROOT / "docs" / page.name
    return below_docs if below_docs.exists() else ROOT / "docs/reference" / page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_works(page: Path, tmp_path: Path) -> None:
    elsewhere = (
        {block.body for block in blocks(in_english(page))} if page in KOREAN else set()
    )
    todo = [
        block
        for block in blocks(page)
        if not block.skipped and block.body not in elsewhere
    ]
    runner = PageRunner(page, tmp_path, environment(page, tmp_path) if todo else {})
    for block in todo:
        printed = runner.run(block)
        if block.output is not None:
            where = f"{page.name}:{block.output.line}"
            missing = missing_lines(block.output.body, printed)
            assert not missing, (
                f"{where}: these lines are not printed (python -m scripts.page_outputs"
                f" {page.relative_to(ROOT)} writes them anew): {missing}\n{printed}"
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_outputs_stand_below_what_prints_them_and_are_short(page: Path) -> None:
    page_blocks = list(blocks(page))
    below = [
        block.output.line for block in page_blocks if block.output and block.is_run
    ]
    for block in page_blocks:
        if block.language == "output":
            where = f"{page.name}:{block.line}"
            assert block.line in below, f"{where} is not below a block that is run"
            lines = block.body.splitlines()
            assert len(lines) <= MAX_OUTPUT_LINES, where
            assert max(map(len, lines)) <= MAX_OUTPUT_COLUMNS, where


@pytest.mark.parametrize(
    "page",
    [page for page in KOREAN if page.name != "index.md"],
    ids=lambda page: page.name,
)
def test_a_korean_page_says_what_the_english_one_says(page: Path) -> None:
    def told(
        page: Path,
    ) -> tuple[list[tuple[str, str, bool]], set[str], list[set[str]], int]:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        rows = [
            set(CODE.findall(line))
            for line in text.splitlines()
            if line.startswith("|")
        ]
        found = [(block.language, block.body, block.skipped) for block in blocks(page)]
        return found, set(CODE.findall(text)), rows, len(HEADING.findall(text))

    ours = told(page)
    theirs = told(in_english(page))
    for korean, english in zip(ours, theirs, strict=True):
        assert korean == english


PAGE_TEXT = """\
```bash
evalwright tasks
```

```output
Tasks    items
a.yaml      12
…
```

Words.

```output
not below a command
```
"""


def test_an_output_is_the_block_directly_below() -> None:
    command, output, apart = blocks_of_text(PAGE_TEXT)
    assert command.output == output
    assert output.body.startswith("Tasks")
    assert output.output is None
    assert not output.is_run
    assert apart.line == 13


@pytest.mark.parametrize(
    ("printed", "output", "missing"),
    [
        ("12 answers in 0.57 s\n", "9 answers in 1 min\n", []),
        ("run-1f0b337c: 7\n", "run-337c243e: 8\n", []),
        (
            "34c4f296-519d-48c5-928a-5dbe990eb667.json\n",
            "852751fa-333c-402c-90ba-db781d4296ae.json\n",
            [],
        ),
        ("a    1.5\n------\nb\n", "a  12.25\n---\n…\n", []),
        ("a line that goes\non\n", "a line that goes on\n", []),
        ("a line that goes on\n", "a line that …\n", []),
        ("a line that goes on\n", "a line of …\n", ["a line of …"]),
        ("2 runs differ\n", "2 runs are equal\n", ["2 runs are equal"]),
        ("-3.1 points\n", "0.4 points\n", []),
        ("[ 5.5, 26.1]\n", "[15.0, 31.8]\n", []),
    ],
)
def test_outputs_are_compared_without_what_changes(
    printed: str, output: str, missing: list[str]
) -> None:
    assert missing_lines(output, printed) == missing


def test_numbers_are_renewed_and_what_was_cut_by_hand_stays_cut() -> None:
    printed = (
        "Models\nsmall  15.0 [11.6, 19.3]\nlarge  31.8 [27.0, 37.0]\nThe end is here\n"
    )
    output = "…\nlarge  30.1 [ 5.0, 41.0]\nThe end …\n"
    assert renewed_output(output, printed) == "…\nlarge  31.8 [27.0, 37.0]\nThe end …"


STALE_PAGE = """\
```bash
echo three sheep
```

```bash
printf 'one 1\\ntwo 2\\nthree 3\\n'
```

```output
…
two 99
```

```bash
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do echo line $i; done
```

```output
what was printed once
```
"""


def test_the_script_adds_rewrites_and_renews_outputs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(STALE_PAGE)
    write_outputs = load_page_outputs().write_outputs
    assert write_outputs(page, add=False, renew=False) == [14]
    long, stale = list(blocks(page))[-2:]
    assert long.output == stale
    lines = stale.body.splitlines()
    assert len(lines) == 12
    assert lines[0] == "line 1"
    assert lines[6] == "…"
    assert lines[-1] == "line 13"

    assert write_outputs(page, add=True, renew=True) == [1, 5]
    added, renewed = [block.output for block in blocks(page) if block.output][:2]
    assert added is not None
    assert added.body == "three sheep\n"
    assert renewed is not None
    assert renewed.body == "…\ntwo 2\n"
    assert write_outputs(page, add=True, renew=True) == []


def load_page_outputs() -> ModuleType:
    """`scripts/page_outputs.py`, which is not part of the package."""
    script = ROOT / "scripts" / "page_outputs.py"
    spec = spec_from_file_location("page_outputs", script)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_folder_of_this_machine_is_shown(tmp_path: Path) -> None:
    printed = (
        "demo/small: 194 answers in 0.57 s, 776 sent\n"
        "The larger one: 540 of 645, 53.4/s, 2.0 s left, 645 sent, 0 from the store\n"
        f"Written: {tmp_path}/report.html  \n"
    )
    assert shown_text(printed, tmp_path) == "Written: /home/you/evals/report.html"


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for found in LINK.finditer(text):
            target = found["target"]
            if not target.startswith(("http://", "https://", "mailto:")):
                assert (page.parent / target).exists(), (
                    f"{page.name} links to {target}, which does not exist"
                )
