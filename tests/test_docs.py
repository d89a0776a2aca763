"""Every command and example in README and docs is run, page by page, in an empty folder.

A page is a script: a fenced block whose first line is `# file: NAME` (or `<!-- file: NAME -->`)
becomes that file; `bash` blocks are run line by line and must end with 0, or with N where the line
ends with `# exits N`; `python` blocks are run as programs. A block after the comment `<!-- not run:
reason -->` is not run. A plain `evalwright` command runs in this process, and the bundled tasks are
run on some of their samples. A page in Korean has the commands, code spans and tables of its
English page; what the English page runs is not run twice.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.typed import typed

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KOREAN = [page for page in PAGES if page.parent.name == "ko"]
FENCE = re.compile(
    r"^(?P<skip><!-- not run: [^\n]+ -->\n+)?```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"^(?:#|<!--|//) file: (?P<name>[\w./-]+)(?: -->)?\n")
EXITS = re.compile(r"\s+# exits (\d+)$")
CODE = re.compile(r"`[^`]+`")
HEADING = re.compile(r"^#+ ", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)#\s]+)(?:#[^)]*)?\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text and line."""

    language: str
    body: str
    line: int
    skipped: bool


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        line = text[: found.start()].count("\n") + 1
        yield Block(found["language"], found["body"], line, bool(found["skip"]))


def environment(folder: Path) -> dict[str, str]:
    """The person's environment: our command on the path, no keys, no network needed."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("EVALWRIGHT_", "OPENAI_"))
    }
    place = folder / ".bin"
    place.mkdir()
    commands = {
        "evalwright": "-m evalwright",
        "hhem-leaderboard": "-c 'import sys; from evalwright.cli.foreign import hhem_leaderboard as main; sys.exit(main())'",
        "python": "",
    }
    for name, module in commands.items():
        script = place / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        script.chmod(0o755)
    return {
        **kept,
        "PATH": f"{place}:{kept['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "HF_HUB_OFFLINE": "1",
    }


WHOLE = re.compile(r"run factual[\w -]*--(?!.*--limit)")
SAMPLES = {"compare.md": 150}
"""So many of each task where 40 are too few for what the page says."""
SHELL = re.compile(r"[|<>&;$`~]|--plugin|\bPATH=")


def evalwright(
    command: str, folder: Path, env: dict[str, str], where: str, wanted: int
) -> None:
    """A command of ours without a need of a shell or of a process of its own."""
    words = [
        name
        for word in shlex.split(command, comments=True)
        for name in names_of(word, command, folder)
    ]
    done = typed(*words[1:], folder=folder, extra={"PATH": env["PATH"]})
    assert done.code == wanted, f"{where}: {command}\nexit {done.code}\n{done.text}"


def names_of(word: str, command: str, folder: Path) -> list[str]:
    """The files that a pattern stands for, as a shell has it; else the word as it is."""
    quoted = f"'{word}'" in command or f'"{word}"' in command
    files = sorted(folder.glob(word)) if "*" in word and not quoted else []
    return [str(file.relative_to(folder)) for file in files] or [word]


def run(
    command: list[str], folder: Path, env: dict[str, str], where: str, wanted: int = 0
) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == wanted, (
        f"{where}: {shlex.join(command)}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}"
    )


def commands(body: str) -> Iterator[tuple[str, int]]:
    for line in re.sub(r"\\\n\s*", "", body).splitlines():
        found = EXITS.search(line)
        text = EXITS.sub("", line).strip()
        if text and not text.startswith("#"):
            yield text, int(found.group(1)) if found else 0


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
    env = environment(tmp_path) if todo else {}
    for block in todo:
        where = f"{page.name}:{block.line}"
        named = FILE.match(block.body)
        if named:
            path = tmp_path / named["name"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(FILE.sub("", block.body), encoding="utf-8")
        elif block.language == "bash":
            for command, wanted in commands(block.body):
                if WHOLE.search(command):
                    command += f" --limit {SAMPLES.get(page.name, 40)}"
                if command.startswith("make "):
                    quickstart(command, tmp_path, env, where)
                elif command.startswith("evalwright ") and not SHELL.search(command):
                    evalwright(command, tmp_path, env, where, wanted)
                else:
                    run(["sh", "-c", command], tmp_path, env, where, wanted)
        elif block.language == "python":
            run([sys.executable, "-W", "error", "-c", block.body], tmp_path, env, where)


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


def quickstart(command: str, folder: Path, env: dict[str, str], where: str) -> None:
    """What `make quickstart` does after its set-up; `make test` is what runs this."""
    if command != "make quickstart":
        assert command in {
            "make test",
            "make lint",
            "make types",
            "make format",
            "make demo-models",
            "make site",
            "make wheel",
            "make explorer",
        }, command
        return
    dry = subprocess.run(
        ["make", "--no-print-directory", "-n", "-B", "quickstart"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = re.sub(r"\\\n\s*", "", dry.stdout).splitlines()
    ours = [
        line.replace(".venv/bin/", "", 1)
        for line in lines
        if line.startswith(".venv/bin/evalwright")
    ]
    assert ours, "make quickstart runs no evalwright command"
    for line in ours:
        command = line + " --limit 40" * bool(WHOLE.search(line))
        if SHELL.search(command):
            run(["sh", "-c", command], folder, env, where)
        else:
            evalwright(command, folder, env, where, 0)

    page = "runs/explorer.html"
    assert (folder / page).exists() and page in lines[-1], "it ends with a page to open"


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for found in LINK.finditer(text):
            target = found["target"]
            if not target.startswith(("http://", "https://", "mailto:")):
                assert (page.parent / target).exists(), (
                    f"{page.name} links to {target}, which does not exist"
                )
