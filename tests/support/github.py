"""GitHub Actions on this machine: jobs and steps of a workflow, run in clones of a repository.

Of the language of expressions, names, texts, `==`, `!=`, `&&` and `always()` are known; anything
else is an error. Actions of others are stood in for: checkout clones, caches and artifacts are
folders, and the command `gh` writes down how it was called. Secrets belong to an environment, and
a pull request of a fork has none, as on GitHub.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from support.forked import write_command
from support.warm_commands import warm_command

ROOT = Path(__file__).resolve().parents[2]
EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")

GH = '''\
#!{python} -IS
"""Stands in for the command gh: writes its arguments, and what it is given to send, to a file."""
import json, os, pathlib, sys
arguments = sys.argv[1:]
folder = pathlib.Path(os.environ["GH_STUB"])
body = ""
if "--body-file" in arguments:
    body = pathlib.Path(arguments[arguments.index("--body-file") + 1]).read_text()
call = {{"arguments": arguments, "body": body, "token": bool(os.environ.get("GH_TOKEN"))}}
with (folder / "calls.jsonl").open("a") as file:
    file.write(json.dumps(call) + "\\n")
replies = json.loads((folder / "replies.json").read_text())
for start, reply in replies.items():
    if " ".join(arguments).startswith(start):
        if reply is None:
            sys.exit(1)
        print(reply)
'''


def git(folder: Path, *arguments: str, text: str | None = None) -> str:
    """Run git, with a text to read, and return what it prints."""
    done = subprocess.run(
        [
            *("git", "-c", "user.name=A", "-c", "user.email=a@example.org"),
            *("-c", "init.defaultBranch=main", "-c", "init.templateDir=", *arguments),
        ],
        cwd=folder,
        check=True,
        input=text,
        capture_output=True,
        text=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"},
    )
    return done.stdout.strip()


@dataclass
class Step:
    """A step that ran: which, with what in its environment, and what it printed."""

    job: str
    name: str
    environment: dict[str, str]
    code: int
    output: str


@dataclass
class GitHub:
    """A repository with its runners.

    Attributes:
        folder: where all of it is.
        origin: the bare repository.
        secrets: by environment, the secrets.
        fakes: commands of `evalwright` that a script stands in for, by their first two words.
        steps: every step that was run with a shell.
        results: the result of each job of the last workflow.
        path: a folder that Python modules of the steps are taken from first.
        extra: variables of all steps.
    """

    folder: Path
    origin: Path
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    fakes: Mapping[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    replies: dict[str, str | None] = field(default_factory=dict)
    summary: str = ""
    path: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.commands = self.folder / "commands"
        self.commands.mkdir(parents=True)
        self._command("gh", GH.format(python=sys.executable))
        if self.path:  # its modules come before what is imported
            self.start_interpreters()
        else:
            write_command(self.commands / "run-evalwright", "-m", "evalwright")
        run = f'exec "{self.commands / "run-evalwright"}" "$@"'
        cases = "\n".join(
            f'  "{words}") exec bash "{self._fake(words, script)}" "$@" ;;'
            for words, script in self.fakes.items()
        )
        self._command(
            "evalwright", f'#!/bin/bash\ncase "$1 $2" in\n{cases}\nesac\n{run}\n'
        )
        self._is_warm = False
        # What is installed is what is tested here.
        self._command("python", '#!/bin/bash\necho "python $*"\n')

    def warm(self, environment: Mapping[str, str]) -> AbstractContextManager[None]:
        """Start `evalwright` from here on in copies of a process that has a simulated clock."""
        assert not self.fakes, "fakes have a script of their own"
        self._is_warm = True
        path = os.pathsep.join([self._python_path, str(ROOT / "tests")])
        variables = {"PATH": "/usr/bin:/bin", "PYTHONPATH": path, **environment}
        return warm_command(self.commands / "evalwright", variables)

    def start_interpreters(self) -> None:
        """Have an interpreter start for each command of `evalwright` from now on, as on GitHub."""
        python = f'exec "{sys.executable}" -m evalwright "$@"'
        self._command("run-evalwright", f"#!/bin/sh\n{python}\n")

    @property
    def gh_calls(self) -> list[dict[str, Any]]:
        """How `gh` was called."""
        file = self.folder / "calls.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line) for line in lines]

    def run(
        self,
        workflow: Path,
        event: Mapping[str, Any],
        *,
        sha: str,
        ref_name: str = "main",
        inputs: Mapping[str, str] | None = None,
        is_fork: bool = False,
    ) -> dict[str, str]:
        """Run a workflow.

        Args:
            workflow: its file.
            event: what GitHub says of the event.
            sha: the commit that `actions/checkout` takes by default.
            ref_name: the branch of the event.
            inputs: of `workflow_dispatch`.
            is_fork: whether a fork's pull request started it.

        Returns:
            The result of each job.
        """
        definition = yaml.safe_load(workflow.read_text(encoding="utf-8"))
        artifacts = self.folder / "artifacts"
        shutil.rmtree(artifacts, ignore_errors=True)
        (self.folder / "replies.json").write_text(json.dumps(self.replies))
        self.summary, self.results = "", {}
        repository = {"default_branch": "main"}
        context: dict[str, Any] = {
            "github": {
                "event": {**event, "repository": repository},
                "ref_name": ref_name,
                "repository": "acme/board",
                "run_attempt": "1",
                "run_id": "7",
                "server_url": "https://github.example",
                "token": "token-of-the-job",
                "sha": sha,
            },
            "inputs": dict(inputs or {}),
        }
        for name, job in definition["jobs"].items():
            needs = job.get("needs", [])
            needs = [needs] if isinstance(needs, str) else needs
            context["needs"] = {need: {"result": self.results[need]} for need in needs}
            condition = str(job.get("if", "success()"))
            ready = all(self.results[need] == "success" for need in needs)
            if not ("always()" in condition or ready) or not holds(condition, context):
                self.results[name] = "skipped"
                continue
            environment = job.get("environment", "")
            secrets = {} if is_fork or not environment else self.secrets[environment]
            fine = self._run_job(name, job, {**context, "secrets": secrets})
            self.results[name] = "success" if fine else "failure"
        return self.results

    def _run_job(
        self, name: str, job: Mapping[str, Any], context: dict[str, Any]
    ) -> bool:
        work = self.folder / "work" / name
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        fine = True
        for step in job["steps"]:
            if not fine and "always()" not in str(step.get("if", "")):
                continue
            if "uses" in step:
                passed = self._use(step, work, context)
            else:
                passed = self._shell(name, step, work, context)
            fine = fine and (passed or bool(step.get("continue-on-error")))
        return fine

    def _use(
        self, step: Mapping[str, Any], work: Path, context: dict[str, Any]
    ) -> bool:
        action = step["uses"].partition("@")[0]
        settings = {
            key: filled(str(setting), context)
            for key, setting in step.get("with", {}).items()
        }
        if action == "actions/setup-python":
            return True
        if action == "actions/checkout":
            git(work, "clone", "--quiet", f"file://{self.origin}", ".")
            ref = settings.get("ref") or context["github"]["sha"]
            git(work, "checkout", "--quiet", ref)
            return True
        path = work / settings["path"]
        if action in ("actions/cache/restore", "actions/cache/save"):
            store = self.folder / "cache" / settings["key"].partition("-")[0]
            pair = (store, path) if action.endswith("restore") else (path, store)
            if pair[0].exists():
                shutil.copytree(*pair, dirs_exist_ok=True)
            return True
        artifact = self.folder / "artifacts" / settings["name"]
        if action == "actions/upload-artifact":
            if path.exists():
                shutil.copytree(path, artifact, dirs_exist_ok=True)
                return True
            return settings.get("if-no-files-found") != "error"
        assert action == "actions/download-artifact", f"unknown action: {action}"
        if artifact.exists():
            shutil.copytree(artifact, path, dirs_exist_ok=True)
        return artifact.exists()

    def _shell(
        self, job: str, step: Mapping[str, Any], work: Path, context: dict[str, Any]
    ) -> bool:
        assert "${{" not in step["run"], "texts of others come by the environment"
        step_variables = {
            key: filled(str(setting), context)
            for key, setting in step.get("env", {}).items()
        }
        script = self.folder / "step.sh"
        script.write_text(step["run"])
        summary = self.folder / "summary.md"
        summary.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=work,
            env={
                "PATH": f"{self.commands}:/usr/bin:/bin",
                "HOME": str(self.folder / "home"),
                "PYTHONPATH": self._python_path,
                **self.extra,
                "GH_STUB": str(self.folder),
                "GITHUB_REPOSITORY": "acme/board",
                "GITHUB_STEP_SUMMARY": str(summary),
                **step_variables,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.summary += summary.read_text()
        name = step.get("name", "")
        self.steps.append(Step(job, name, step_variables, done.returncode, done.stdout))
        return done.returncode == 0

    @property
    def _python_path(self) -> str:
        return os.pathsep.join(filter(None, [self.path, str(ROOT / "src")]))

    def command(
        self, arguments: Sequence[str], folder: Path, extra: Mapping[str, str]
    ) -> tuple[int, str]:
        """Run `evalwright ARGUMENTS` in a folder, as its owner; its exit code and what it printed."""
        variables = {
            "PATH": f"{self.commands}:/usr/bin:/bin",
            "HOME": str(self.folder / "home"),
            "PYTHONPATH": self._python_path,
            **extra,
        }
        executable = (
            [str(self.commands / "evalwright")]
            if self._is_warm
            else [sys.executable, "-m", "evalwright"]
        )
        done = subprocess.run(
            [*executable, *arguments],
            cwd=folder,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    def output_of(self, job: str, name: str) -> str:
        """What the last step of that name printed."""
        return next(
            step.output
            for step in reversed(self.steps)
            if (step.job, step.name) == (job, name)
        )

    def _command(self, name: str, script: str) -> None:
        file = self.commands / name
        file.write_text(script)
        file.chmod(0o755)

    def _fake(self, words: str, script: str) -> Path:
        file = self.commands / f"fake-{words.replace(' ', '-')}.sh"
        file.write_text(script)
        return file


def filled(text: str, context: Mapping[str, Any]) -> str:
    """Fill in the expressions of a text."""
    return EXPRESSION.sub(lambda match: str(looked_up(match[1], context)), text)


def looked_up(name: str, context: Mapping[str, Any]) -> Any:
    """What a name with dots stands for; "" where there is nothing."""
    assert re.fullmatch(r"[\w.-]+", name), f"not a name: {name}"
    node: Any = context
    for key in name.split("."):
        node = node.get(key, "") if isinstance(node, Mapping) else ""
    return node


def holds(condition: str, context: Mapping[str, Any]) -> bool:
    """Whether a condition holds."""
    return all(_term_holds(term.strip(), context) for term in condition.split("&&"))


def _term_holds(term: str, context: Mapping[str, Any]) -> bool:
    if term in ("always()", "success()"):
        return True
    left, operator, right = re.fullmatch(r"(\S+) (==|!=) (\S+)", term).groups()  # type: ignore[union-attr]
    is_equal = _operand(left, context) == _operand(right, context)
    return is_equal if operator == "==" else not is_equal


def _operand(text: str, context: Mapping[str, Any]) -> Any:
    return text[1:-1] if text.startswith("'") else looked_up(text, context)
