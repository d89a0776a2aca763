"""Completion in shells: what the shell is told, and a real bash that asks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from evalwright.cli.completion import SHELLS
from support.command import with_command
from support.runs import make_run
from support.typed import typed


@pytest.fixture(autouse=True)
def place(folder: Path) -> Path:
    """A folder with two runs, one of which has a name that acts on a terminal, and some files."""
    make_run(
        folder / "runs",
        name="board-demo-small",
        scores=[1.0, 0.0],
        domains=["art", "law"],
    )
    make_run(folder / "runs", name="evil", scores=[1.0])
    (folder / "runs" / "evil").rename(folder / "runs" / "board\x1b[2J\nplain,rm")
    make_run(folder / "elsewhere", name="far-run", scores=[1.0])
    return folder


def asked(shell: str, typed_line: str) -> list[str]:
    """What the shell is told may follow a line; its last word is the one that is being typed."""
    words = typed_line.split(" ")
    extra = {
        "_EVALWRIGHT_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": typed_line.strip(),
    }
    extra["COMP_CWORD"] = words[-1] if shell == "fish" else str(len(words) - 1)
    done = typed(*words[1:], folder=Path(), extra=extra)
    assert done.code == 0 and not done.err
    fields = done.out.splitlines()
    if shell == "bash":
        return [line.partition(",")[2] for line in fields if line.startswith("plain,")]
    if shell == "fish":
        return [
            line.partition(",")[2].partition("\t")[0]
            for line in fields
            if line.startswith("plain,")
        ]
    return [
        fields[at + 1].replace("\\:", ":")
        for at in range(0, len(fields), 3)
        if fields[at] == "plain"
    ]


LINES: list[tuple[str, list[str], list[str]]] = [
    ("evalwright ", ["init", "run", "completion"], []),
    ("evalwright ru", ["run", "runs"], ["init"]),
    ("evalwright runs sh", ["show"], ["samples"]),
    (
        "evalwright run factual-ch",
        ["factual-choice", "factual-choice-names"],
        ["factual"],
    ),
    ("evalwright run gsm8k quest", ["questions.yaml", "questions.jsonl"], ["gsm8k"]),
    ("evalwright tasks check belebele-tha", ["belebele-tha-thai"], []),
    ("evalwright run gsm8k --model dem", ["demo/"], ["demo/small"]),
    ("evalwright run gsm8k --model demo/", ["demo/large", "demo/small"], ["demo/"]),
    (
        "evalwright run gsm8k --judge openai/gpt-4.1-m",
        ["openai/gpt-4.1-mini"],
        ["openai/gpt-4.1"],
    ),
    ("evalwright models check anthr", ["anthropic/"], []),
    ("evalwright runs show bo", ["board-demo-small"], []),
    ("evalwright compare board-demo-small b", ["board-demo-small"], []),
    ("evalwright runs samples x --flipped-against b", ["board-demo-small"], []),
    ("evalwright runs show --out elsewhere f", ["far-run"], ["board-demo-small"]),
    (
        "evalwright runs plot ",
        ["scores", "differences", "agreement"],
        ["board-demo-small"],
    ),
    ("evalwright runs plot ca", ["calibration"], ["cost"]),
    ("evalwright runs plot cost bo", ["board-demo-small"], ["cost"]),
    (
        "evalwright runs samples board-demo-small i",
        ["item-0", "item-1"],
        ["board-demo-small"],
    ),
    ("evalwright runs samples --out elsewhere far-run ", ["item-0"], ["item-1"]),
    ("evalwright runs samples board-demo-small --where l", ["label="], ["score="]),
    ("evalwright runs samples board-demo-small --where d", ["domain=", "draw="], []),
    ("evalwright run factual-choice-names --where do", ["domain="], ["language="]),
    ("evalwright run --li", ["--limit"], ["--seed"]),
    ("evalwright run --config quest", ["questions.yaml"], ["questions.jsonl"]),
]
"""What was typed, some of what may follow, and what may not."""


def test_what_may_follow() -> None:
    for shell in SHELLS:
        for line, some, none in LINES:
            found = asked(shell, line)
            assert set(some) <= set(found), (shell, line, found)
            assert not set(none) & set(found), (shell, line, found)
            assert all(name.isprintable() and name != "rm" for name in found), (
                shell,
                line,
            )


@pytest.mark.parametrize("line", ["evalwright nothing x", "evalwright runs show zz"])
def test_where_nothing_follows_nothing_is_said_of_it(line: str) -> None:
    extra = {
        "_EVALWRIGHT_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    done = typed(folder=Path(), extra=extra)
    assert "plain," not in done.out and not done.err


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_bash_completes(place: Path) -> None:
    script = """
        eval "$(evalwright completion bash)"
        compopt() { echo "option $2"; }
        complete -p evalwright
        ask() { COMPREPLY=(); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _evalwright_completion evalwright; echo "${COMPREPLY[@]}"; }
        ask evalwright run gsm8k --model dem
        ask evalwright runs show bo
    """
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", script],
        env=with_command(place),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "" and done.returncode == 0
    assert done.stdout.splitlines() == [
        "complete -o nosort -F _evalwright_completion evalwright",
        "option nospace",  # a model's name follows
        "demo/",
        "board-demo-small",
    ]


def test_scripts_of_the_other_shells() -> None:
    assert "compdef _evalwright_completion evalwright" in typed("completion", "zsh").out
    assert "compadd -U -S ''" in typed("completion", "zsh").out
    assert "complete --no-files --command evalwright" in typed("completion", "fish").out
    assert typed("completion", "tcsh").code == 2
