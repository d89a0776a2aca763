"""Pages of the documentation as scripts: their blocks, run in order in an empty folder.

A fenced block whose first line is `# file: NAME` (or `<!-- file: NAME -->`) becomes that file;
`bash` blocks are run line by line and must end with 0, or with N where the line ends with
`# exits N`; `python` blocks are run as programs. A block after the comment `<!-- not run:
reason -->` is not run. A block of the language `output` directly below one that is run holds what
that one prints.
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

from support.forked import forked_as_one, write_command
from support.typed import typed

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"^(?P<skip><!-- not run: [^\n]+ -->\n+)?```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"^(?:#|<!--|//) file: (?P<name>[\w./-]+)(?: -->)?\n")
EXITS = re.compile(r"\s+# exits (\d+)$")
WHOLE = re.compile(r"run factual[\w -]*--(?!.*--limit)")
"""Runs of whole bundled tasks, which the tests run on some of their samples."""
SHELL = re.compile(r"[|<>&;$`~]|--plugin|\bPATH=")
"""Commands that need a shell, or a process of their own."""
SAMPLES = {"budgets.md": 400, "compare.md": 150, "gates.md": 400}
"""Samples of each task, for pages that say what `DEFAULT_SAMPLES` are too few for."""
DEFAULT_SAMPLES = 40
REAL = {"README.md", "CONTRIBUTING.md"}
"""Pages whose programs, and commands that need a shell, have an interpreter that starts; those of
other pages are forked from one that has imported what they import.
"""
MAKE_TARGETS = {
    "make test",
    "make lint",
    "make types",
    "make format",
    "make demo-models",
    "make site",
    "make wheel",
    "make explorer",
}
"""Targets that pages name, and that something else than a page tests."""
COLUMNS = 100
"""The width of the terminal, in cells."""
TIMEOUT_SECONDS = 1800

PROGRESS = re.compile(
    r"^(?:.+: [\d,]+ (?:answers|samples|of [\d,]+)\b.*(?:\bsent\b|from the store|/s\b)"
    r"|.*: scores looked up on this machine, where they were computed earlier .*$).*\n",
    re.MULTILINE,
)
"""The lines that a run writes while it goes on and at its end (how many answers, how fast), and that
of a board that was read faster than the first time."""
MAX_OUTPUT_LINES = 12
MAX_OUTPUT_COLUMNS = 110

SHOWN_FOLDER = "/home/you/evals"
SHOWN_ROOT = "/home/you/evalwright"


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        line: The line of the page on which it begins.
        skipped: Whether the page says that it is not run.
        start, end: Where it stands in the page's text, in characters.
        output: The `output` block directly below it, or None.
    """

    language: str
    body: str
    line: int
    skipped: bool
    start: int = 0
    end: int = 0
    output: Block | None = None

    @property
    def is_run(self) -> bool:
        """Whether the test runs it, so that something may be printed."""
        return (
            not self.skipped
            and self.language in {"bash", "python"}
            and not FILE.match(self.body)
        )


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, those with outputs among them, in order."""
    return blocks_of_text(page.read_text(encoding="utf-8"))


def blocks_of_text(text: str) -> Iterator[Block]:
    """As `blocks`, of a page's text."""
    below: Block | None = None
    in_order: list[Block] = []
    for fence in reversed(list(FENCE.finditer(text))):
        is_directly_above = (
            below is not None and not text[fence.end() : below.start].strip()
        )
        block = Block(
            language=fence["language"],
            body=fence["body"],
            line=text[: fence.start()].count("\n") + 1,
            skipped=bool(fence["skip"]),
            start=fence.start(),
            end=fence.end(),
            output=below if is_directly_above else None,
        )
        below = block if block.language == "output" else None
        in_order.append(block)
    return reversed(in_order)


def environment(page: Path, folder: Path) -> dict[str, str]:
    """A reader's environment: our commands on the path, no keys, no network needed."""
    inherited = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("EVALWRIGHT_", "OPENAI_"))
    }
    scripts = folder / ".bin"
    scripts.mkdir()
    commands_by_name = {
        "evalwright": ["-m", "evalwright"],
        "hhem-leaderboard": [
            "-c",
            "import sys; from evalwright.cli.foreign import hhem_leaderboard as main;"
            " sys.exit(main())",
        ],
        "python": [],
    }
    for name, words in commands_by_name.items():
        script = scripts / name
        if page.name in REAL:
            line = shlex.join([sys.executable, *words])
            script.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
            script.chmod(0o755)
        else:
            write_command(script, *words)
    return {
        **inherited,
        "PATH": f"{scripts}:{inherited['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": str(COLUMNS),
    }


def commands(body: str) -> Iterator[tuple[str, int]]:
    """The commands of a `bash` block, each with the exit code that it must end with."""
    for line in re.sub(r"\\\n\s*", "", body).splitlines():
        exits = EXITS.search(line)
        command = EXITS.sub("", line).strip()
        if command and not command.startswith("#"):
            yield command, int(exits.group(1)) if exits else 0


@dataclass(frozen=True)
class PageRunner:
    """Runs the blocks of a page.

    Attributes:
        page: The page.
        folder: The empty folder in which they run.
        variables: Environment variables.
        whole: Run the bundled tasks whole, as a reader does, and not on some samples.
    """

    page: Path
    folder: Path
    variables: dict[str, str]
    whole: bool = False

    def run(self, block: Block) -> str:
        """Run a block.

        Returns:
            What it printed, as `shown_text` has it.

        Raises:
            AssertionError: a command ended otherwise than the page says.
        """
        where = f"{self.page.name}:{block.line}"
        named = FILE.match(block.body)
        if named:
            path = self.folder / named["name"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(FILE.sub("", block.body), encoding="utf-8")
            return ""
        if block.language == "python":
            return self._shown(self._run_program(block.body, where))
        if block.language != "bash":
            return ""
        printed = [
            self._run_command(command, where, exit_code)
            for command, exit_code in commands(block.body)
        ]
        return self._shown("".join(printed))

    def _run_program(self, text: str, where: str) -> str:
        words = ["-W", "error", "-c", text]
        if self.page.name in REAL:
            program = [sys.executable, *words]
            return run(program, self.folder, self.variables, where)
        code, printed = forked_as_one(words, self.folder, self.variables)
        assert code == 0, f"{where}: exit {code}\n{printed}"
        return printed

    def _shown(self, printed: str) -> str:
        return shown_text(printed, self.folder)

    def _run_command(self, command: str, where: str, exit_code: int) -> str:
        if command.startswith("make "):
            return self._quickstart(command, where)
        if WHOLE.search(command) and not self.whole:
            command += f" --limit {SAMPLES.get(self.page.name, DEFAULT_SAMPLES)}"
        if command.startswith("evalwright ") and not SHELL.search(command):
            return evalwright(command, self.folder, self.variables, where, exit_code)
        shell = ["sh", "-c", command]
        return run(shell, self.folder, self.variables, where, exit_code)

    def _quickstart(self, command: str, where: str) -> str:
        """What `make quickstart` does after its set-up; `make test` is what runs this."""
        if command != "make quickstart":
            assert command in MAKE_TARGETS, command
            return ""
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
        printed = "".join(self._run_command(line, where, 0) for line in ours)
        explorer = "runs/explorer.html"
        assert (self.folder / explorer).exists(), "it ends with a page to open"
        assert explorer in lines[-1], "it ends with a page to open"
        return printed + shlex.split(lines[-1])[-1] + "\n"


def evalwright(
    command: str, folder: Path, env: dict[str, str], where: str, expected_code: int
) -> str:
    """Run a command of ours in this process; what it printed."""
    words = [
        name
        for word in shlex.split(command, comments=True)
        for name in names_of(word, command, folder)
    ]
    variables = {"PATH": env["PATH"], "COLUMNS": env["COLUMNS"]}
    done = typed(*words[1:], folder=folder, extra=variables)
    assert done.code == expected_code, (
        f"{where}: {command}\nexit {done.code}\n{done.text}"
    )
    return done.interleaved


def names_of(word: str, command: str, folder: Path) -> list[str]:
    """The files that a pattern stands for, as a shell has it; else the word as it is."""
    quoted = f"'{word}'" in command or f'"{word}"' in command
    files = sorted(folder.glob(word)) if "*" in word and not quoted else []
    return [str(file.relative_to(folder)) for file in files] or [word]


def run(
    command: list[str],
    folder: Path,
    env: dict[str, str],
    where: str,
    expected_code: int = 0,
) -> str:
    """Run a program; what it printed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == expected_code, (
        f"{where}: {shlex.join(command)}\nexit {done.returncode}\n{done.stdout}"
    )
    return done.stdout


def shown_text(printed: str, folder: Path) -> str:
    """What a page shows of what was printed: no progress, and no folder of this machine."""
    text = PROGRESS.sub("", printed)
    for path, page_path in ((folder, SHOWN_FOLDER), (ROOT, SHOWN_ROOT)):
        text = text.replace(str(path), page_path)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


ELLIPSIS = "…"
_HASH = re.compile(
    r"\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])|(?=[a-f]*\d)[0-9a-f]{8,}\b)"
)
_NUMBER = re.compile(r"\d(?:[\d,.:]*\d)?")
_DURATION = re.compile(r"#[ ]?(?:µs|ms|s|min|h|d|seconds?|minutes?|hours?)\b")
_PADDED = re.compile(r"([\[(]) +#")
_RULE = re.compile(r"([─━═-])\1+")


def missing_lines(output: str, printed: str) -> list[str]:
    """The lines of an output block that are not in what was printed.

    Digits count as `#`, runs of blanks as one, and the ends of lines as blanks, so that times,
    costs and noise fail nothing. Of a line that ends with ` …` its beginning counts; another line
    with `…` does not.
    """
    text = comparable(printed)
    missing = []
    for line in output.splitlines():
        beginning = line.removesuffix(f" {ELLIPSIS}")
        if ELLIPSIS not in beginning and comparable(beginning) not in text:
            missing.append(line)
    return missing


def renewed_output(output: str, printed: str) -> str:
    """An output block with the numbers of what was printed now; what was cut by hand stays cut."""
    remaining = printed.splitlines()
    lines = []
    for line in output.splitlines():
        places = [i for i, new in enumerate(remaining) if new == line]
        if not places:
            unnumbered = comparable(line)
            places = [
                i for i, new in enumerate(remaining) if comparable(new) == unnumbered
            ]
        if places and line != ELLIPSIS:
            line = remaining[places[0]]
            del remaining[: places[0] + 1]
        lines.append(line)
    return "\n".join(lines)


def comparable(text: str) -> str:
    """A text without what changes from one machine, or one day, to the next."""
    text = _NUMBER.sub("#", _HASH.sub("#", text))
    text = _RULE.sub(r"\1", _DURATION.sub("# s", text))
    text = re.sub(r"[-−+]#", "#", text)
    return " ".join(_PADDED.sub(r"\1#", text).split())
