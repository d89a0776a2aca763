"""The scorer `command`: do tests pass that are run on what the model left?"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Mapping
from typing import Any, Literal

from evalwright import bounded
from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.sandboxes.protocol import Executed, Sandbox, SandboxPathError
from evalwright.scorers.registry import checked, in_sandbox
from evalwright.scorers.sandbox.hidden_files import (
    CannotPut,
    HiddenFiles,
    check_hidden_files,
    put_hidden_files,
    read_hidden_files,
)
from evalwright.scorers.sandbox.state import BASH, environment

MOST_SECONDS = 86_400.0
SHOWN_OUTPUT_CHARS = 1_500
"""Characters of the end of an output that a record keeps."""
SHOWN_ERROR_CHARS = 700
SEARCHED_BYTES = 1 << 20
"""Bytes of the end of an output in which the score is looked for."""
PATTERN_SECONDS = 10.0
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?")
Reads = Literal["exit-code", "number"]


def _check_options(options: Mapping[str, Any]) -> None:
    run = options["run"]
    if not isinstance(run, str) or not run.strip():
        raise ConfigurationError(
            "The scorer 'command' needs `run`, a bash script that tests what the model left."
        )
    seconds = options["seconds"]
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= MOST_SECONDS:
        raise ConfigurationError(
            "The option 'seconds' of 'command' is a number above 0, at most"
            f" {MOST_SECONDS:,.0f}, not {seconds!r}."
        )
    check_hidden_files(options["files"] or {})
    if options["reads"] not in ("exit-code", "number"):
        raise ConfigurationError(
            "The option 'reads' of 'command' is exit-code or number, not"
            f" {options['reads']!r}."
        )
    pattern = options["score"]
    if not isinstance(pattern, str):
        raise ConfigurationError(
            f"The option 'score' of 'command' is a regular expression, not {pattern!r}."
        )
    if pattern and options["reads"] != "exit-code":
        raise ConfigurationError(
            "The scorer 'command' has both 'score' and 'reads': leave one out."
        )
    if pattern:
        _check_pattern(pattern)


def _check_pattern(pattern: str) -> None:
    try:
        n_groups = bounded.call(
            _count_groups, pattern, seconds=PATTERN_SECONDS, key=pattern
        )
    except (bounded.LimitExceeded, bounded.Raised) as error:
        raise ConfigurationError(
            f"The option 'score' of 'command' is no regular expression: {error}."
        ) from None
    if n_groups > 2:
        raise ConfigurationError(
            "The option 'score' of 'command' has at most two groups: the score, or what"
            f" passed and how many there are; not {n_groups}."
        )


@checked(_check_options)
@in_sandbox
async def command(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    sandbox: Sandbox,
    *,
    run: str = "",
    files: Mapping[str, Any] | None = None,
    seconds: float = 60.0,
    score: str = "",
    reads: Reads = "exit-code",
) -> Score:
    """Score 1.0 if a script ends with the exit code 0 on what the model left, else 0.0.

    It runs in a new sandbox, with the files that the model left and none of its processes, without
    network. Labels: "passed", "failed", "timed out", or the limit that it ran out of. Parts:
    `exit_code` and `seconds`.

    Args:
        run: the bash script. It starts in the sandbox's folder; `$HOME` is an empty folder.
        files: files that the model never saw: path -> text, or {from: FOLDER} beside the task file.
            What is at their place is removed first.
        seconds: most seconds of wall time.
        score: a regular expression over the output. Its last match is the score: a number as its
            group, or two groups, what passed and how many there are; 1 without groups.
        reads: "exit-code", or "number" for the number in the last line of the output.

    Raises:
        ScoringError: the output has no number where the task says so and the script succeeded.
    """
    hidden = read_hidden_files(files or {}, sandbox.settings.folder)
    try:
        await put_hidden_files(sandbox, hidden)
    except CannotPut as error:
        return Score(0.0, "failed", f"What the model left prevents the tests: {error}")
    executed = await sandbox.exec(
        [*BASH, run, "command"],
        seconds=float(seconds),
        environment=environment(sandbox, **await _places(sandbox, hidden)),
    )
    return _score_of(executed, score, reads)


async def _places(sandbox: Sandbox, hidden: HiddenFiles) -> dict[str, str]:
    """Return the variables that name folders: a new home, and where Python finds modules."""
    variables = {"PYTHONPATH": ":".join(hidden.import_folders)}
    home = f"/tmp/scorer-{secrets.token_hex(8)}"
    try:
        await sandbox.write(f"{home}/.keep", b"")
    except SandboxPathError:
        return variables
    return {**variables, "HOME": home}


def _score_of(executed: Executed, pattern: str, reads: Reads) -> Score:
    parts = {
        "exit_code": float(executed.exit_code),
        "seconds": round(executed.seconds, 3),
    }
    end = _end_of_output(executed)
    if executed.ended_by:
        label: str = (
            "timed out" if executed.ended_by == "seconds" else executed.ended_by
        )
        why = f"The limit of {executed.ended_by} ended the tests."
        return Score(0.0, label, f"{why} {end}", parts)
    if pattern:
        try:
            number = _matched_number(executed, pattern)
            why = "" if number is not None else "The output does not match `score`. "
        except bounded.LimitExceeded as error:
            number = None
            why = f"Looking for `score` in the output was given up: {error}. "
    elif reads == "number":
        number = _last_number(executed)
        why = "" if number is not None else "The last line has no number. "
    else:
        number = float(executed.exit_code == 0)
        why = ""
    if number is None and executed.exit_code == 0 and reads == "number":
        raise ScoringError(
            f"The tests succeeded, and their last line has no number. {end}"
        )
    worth = 0.0 if number is None else number
    verdict = "passed" if worth >= 1 else "failed"
    return Score(worth, verdict, f"{why}Exit code {executed.exit_code}. {end}", parts)


def _matched_number(executed: Executed, pattern: str) -> float | None:
    """Return the number of the last match, None if there is none.

    Raises:
        LimitExceeded: looking takes too long, which an output of the model's program can do.
    """
    output = (executed.stdout + b"\n" + executed.stderr)[-SEARCHED_BYTES:]
    text = _text(output)
    groups: list[str | None] | None = bounded.call(
        _last_match, pattern, text, seconds=PATTERN_SECONDS, key=pattern
    )
    if groups is None:
        return None
    if not groups:
        return 1.0
    numbers = [_as_number(group or "") for group in groups]
    passed = numbers[0]
    count = numbers[1] if len(numbers) > 1 else 1.0
    return None if passed is None or not count else passed / count


def _last_match(pattern: str, text: str) -> list[str | None] | None:
    """Return the groups of the last match; None if there is none."""
    last = None
    for match in re.finditer(pattern, text, re.MULTILINE):
        last = match
    return None if last is None else list(last.groups())


def _count_groups(pattern: str) -> int:
    return re.compile(pattern, re.MULTILINE).groups


def _last_number(executed: Executed) -> float | None:
    lines = _text(executed.stdout[-SEARCHED_BYTES:]).split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return _as_number(last.strip())


def _as_number(text: str) -> float | None:
    if len(text) > 100 or not _NUMBER.fullmatch(text.strip()):
        return None
    is_share = text.strip().endswith("%")
    number = float(text.strip().rstrip("%")) / (100 if is_share else 1)
    return number if math.isfinite(number) else None


def _end_of_output(executed: Executed) -> str:
    parts = [
        (
            _text(executed.stdout[-SEARCHED_BYTES:]).strip(),
            SHOWN_OUTPUT_CHARS,
            "Output",
        ),
        (_text(executed.stderr[-SEARCHED_BYTES:]).strip(), SHOWN_ERROR_CHARS, "Errors"),
    ]
    ends = [
        f"{name}{' end with' if len(text) > most else ''}: {text[-most:]}"
        for text, most, name in parts
        if text
    ]
    return " ".join(ends) or "No output."


def _text(content: bytes) -> str:
    text = content.decode("utf-8", "replace")
    return "".join(
        char if char.isprintable() or char in "\n\t" else "?" for char in text
    )
