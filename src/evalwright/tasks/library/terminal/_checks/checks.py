"""What the checks of the terminal tasks share.

A check never imports what the model wrote: it runs it in a process of its own and looks at what
that prints, so that no `exit` in there passes a check.
"""

import json
import os
import subprocess
import sys
import unittest

WORK = "/work"
SECONDS = 30

_CALLS = """
import json, sys
sys.path.insert(0, sys.argv[1])
module, function = sys.argv[2:4]
outcomes = []
for arguments in json.load(sys.stdin):
    try:
        outcomes.append(getattr(__import__(module), function)(*arguments))
    except Exception as error:
        outcomes.append("raised " + type(error).__name__)
print()
print(json.dumps(outcomes))
"""


def run(command, stdin="", folder=WORK, environment=None):
    """Run a command to its end; its output is text."""
    return subprocess.run(
        command,
        input=stdin,
        cwd=folder,
        env=environment or as_usual(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=SECONDS,
    )


def as_usual():
    """Return the variables of programs that the model wrote: their folder is on their path."""
    return {name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"}


def output(command, stdin="", folder=WORK):
    """Return what a command prints; it must end with the exit code 0."""
    process = run(command, stdin, folder)
    if process.returncode:
        raise AssertionError(f"{command} ended with {process.returncode}: {process.stderr[-500:]}")
    return process.stdout


def calls(module, function, cases, folder=WORK):
    """Call a function of the model's once for each list of arguments, in a new process.

    Returns what it returned, as JSON has it; "raised NAME" where it raised.
    """
    command = [sys.executable, "-B", "-c", _CALLS, folder, module, function]
    return last_line(output(command, json.dumps(cases)))


def program(code, *arguments, folder=WORK):
    """Run Python code that prints JSON as its last line, with /work on its path."""
    code = f"import sys\nsys.path.insert(0, {folder!r})\n{code}"
    return last_line(output([sys.executable, "-B", "-c", code, *arguments]))


def last_line(text):
    """Return the JSON in the last line of an output."""
    lines = text.strip().splitlines()
    if not lines:
        raise AssertionError("The program printed nothing.")
    return json.loads(lines[-1])


def main():
    """Run the checks of the file that calls this."""
    unittest.main(module="__main__", argv=["check"])
