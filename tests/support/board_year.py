"""A board's repository over a year: its workflows, its pull requests, and a clock that is set.

Commands of the steps read the clock that `BoardYear.day` says: a `sitecustomize.py` on their path
moves `datetime.now` and `time.time` there, so runs, rounds, stores and feeds get their dates as
they always do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.github import GitHub, git
from support.openai_faults import Faults
from support.openai_server import OpenAIServer, serving
from support.written_judge import Asked, judge

KEY = "sk-a-key-of-the-board-1234567890"
N_ITEMS = 60
"""With 20, no change of a model can be told from chance in a year of monthly rounds."""
N_TRIAL_ITEMS = 4
N_REPEATS = 2
CLOCK = '''\
"""The clock of a simulated day."""
import datetime
import os
import time

real_datetime, real_time = datetime.datetime, time.time


def set_day(text):
    global day, started
    day = real_datetime.fromisoformat(text)
    started = real_time()


set_day(os.environ["SIMULATED_DAY"])


class _Instances(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, real_datetime)


class datetime_of_the_day(real_datetime, metaclass=_Instances):
    @classmethod
    def now(cls, tz=None):
        return day.astimezone(tz) + datetime.timedelta(seconds=real_time() - started)


datetime.datetime = datetime_of_the_day
time.time = lambda: day.timestamp() + real_time() - started
'''
BOARD = """\
title: Sums of the year
suite:
  tasks: [sums.yaml]
  roles: {{judge: {{model: openai/{judge}, arguments: {{base_url: "{judge_url}"}}}}}}
entries:
  providers: [openai]
  base_urls: [{urls}]
  arguments: {{max_tokens: [1, 1000]}}
  most_dollars: 5
  prices: {{{prices}}}
  maintainers: [alice]
trial: {{samples: {n_trial}, cases: 2, budget: 200 requests}}
publish: {{readme: README.md, site: site, samples: none}}
drift: {{every: month, items: {n_items}, repeats: {n_repeats}, budget: 50000 requests}}
"""
TASK = """\
task: sums
dataset: {path: sums.jsonl}
sample: {input: "{{ question }}", target: "{{ answer }}"}
prompt: {user: "{{ input }}"}
answer: {mode: generate, max_tokens: 20}
scorers: [judge-correct]
"""


@dataclass
class Adder:
    """A model that adds up, a tenth by one too much, and `wrong` of ten quite wrongly.

    Attributes:
        name: its name.
        wrong: how many of ten sums are quite wrong.
        is_down: whether its server refuses everything.
    """

    name: str
    wrong: int
    is_down: bool = False
    server: OpenAIServer = field(init=False)

    def answer(self, prompt: str) -> str:
        number = int(re.findall(r"\d+", prompt)[0])
        if number % 10 < self.wrong:
            return f"{self.name} says {5 * number + 7}"
        return f"{self.name} says {2 * number + (number % 10 == 9)}"

    def fault(self, body: Mapping[str, Any], n_before: int) -> str | None:
        return "401" if self.is_down else None

    @property
    def n_requests(self) -> int:
        """How many requests came."""
        return sum(self.server.received.values())


def judging(tolerance: int) -> Callable[[str], str]:
    """A judge that takes answers which are off by no more than this for correct."""

    def decide(question: Asked) -> dict[str, Any]:
        number = int(re.findall(r"\d+", question.material["question"])[0])
        sums = re.findall(r"says (\d+)", " ".join(question.material.values()))
        is_right = abs(int(sums[-1]) - 2 * number) <= tolerance
        return {"reason": "r", "class": "correct" if is_right else "incorrect"}

    return judge(decide)


class BoardYear:
    """The repository, its servers, and what happens to them.

    Attributes:
        models: by name.
        judges: by name, the server.
        day: the present day, as 2025-01-05.
        github: the runner of the workflows.
    """

    def __init__(self, folder: Path, stack: ExitStack, models: list[Adder]) -> None:
        self.folder = folder
        self.day = "2025-01-05"
        self.models = {model.name: model for model in models}
        self.judges: dict[str, OpenAIServer] = {}
        self.n_pulls = 0
        for model in models:
            faults = Faults(script=model.fault)
            model.server = stack.enter_context(serving(model.answer, faults=faults))
        for name, tolerance in (("judge-a", 1), ("judge-b", 0), ("judge-c", 1)):
            server = stack.enter_context(serving(judging(tolerance)))
            self.judges[name] = server
        self.origin = folder / "origin.git"
        self.main = folder / "main"
        git(folder, "init", "--bare", "--quiet", str(self.origin))
        git(folder, "clone", "--quiet", f"file://{self.origin}", str(self.main))
        clock = folder / "clock"
        clock.mkdir()
        (clock / "sitecustomize.py").write_text(CLOCK)
        git(self.origin, "config", "uploadpack.allowFilter", "true")
        secrets = {"OPENAI_API_KEY": KEY}
        self.github = GitHub(
            folder / "github",
            self.origin,
            {"trial": secrets, "board": secrets},
            replies={"api repos/acme/board/pulls/": "mallory", "issue list": ""},
            path=str(clock),
        )
        stack.enter_context(self.github.warm(self.today))

    # -- the repository --------------------------------------------------------------------

    def write_board(self, judge_name: str) -> None:
        """Write board.yaml with a judge, and the task."""
        rows = [
            {"id": f"q{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)}
            for n in range(100, 100 + N_ITEMS)
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.main / "sums.jsonl").write_text(text)
        (self.main / "sums.yaml").write_text(TASK)
        names = [*self.models, *self.judges]
        board = BOARD.format(
            judge=judge_name,
            judge_url=self.judges[judge_name].url,
            urls=", ".join(f'"{model.server.url}"' for model in self.models.values()),
            prices=", ".join(f"openai/{name}: 1/2" for name in names),
            n_trial=N_TRIAL_ITEMS,
            n_items=N_ITEMS,
            n_repeats=N_REPEATS,
        )
        (self.main / "board.yaml").write_text(board)

    def command(self, *arguments: str, folder: Path | None = None) -> tuple[int, str]:
        """A maintainer's command in a clone, on the present day."""
        return self.github.command(
            arguments, folder or self.main, {"OPENAI_API_KEY": KEY, **self.today}
        )

    def commit(self, message: str) -> None:
        """Commit and push what a maintainer changed."""
        git(self.main, "add", "--all")
        git(self.main, "commit", "--quiet", "-m", message)
        git(self.main, "push", "--quiet", "origin", "HEAD:main")

    def status(self) -> str:
        """What the clone has that is not committed."""
        return git(self.main, "status", "--porcelain")

    def runs(self, name: str) -> list[Path]:
        """The runs of an entry with their samples, as the workflow keeps them."""
        runs = self.github.folder / "cache" / "board" / "runs"
        return sorted(runs.glob(f"{name}--*"))

    def pull(self) -> None:
        """Fetch what the workflows committed."""
        git(self.main, "pull", "--quiet", "--rebase", "origin", "main")

    @property
    def today(self) -> dict[str, str]:
        """The clock, for commands."""
        moment = f"{self.day}T08:00:00+00:00"
        return {"SIMULATED_DAY": moment, "GIT_COMMITTER_DATE": moment}

    # -- pull requests -----------------------------------------------------------------------

    def entry_text(self, name: str, *more: str) -> str:
        """The file of an entry."""
        lines = [
            f"model: openai/{name}",
            f"label: {name.capitalize()}",
            f"base_url: {self.models[name].server.url}",
            "by: mallory",
        ]
        return "\n".join([*lines, *more]) + "\n"

    def propose(self, files: Mapping[str, str]) -> tuple[int, str]:
        """Open a pull request of a fork with these files; its number and commit."""
        self.n_pulls += 1
        fork = self.folder / f"fork-{self.n_pulls}"
        git(self.folder, "clone", "--quiet", f"file://{self.origin}", str(fork))
        for path, text in files.items():
            (fork / path).parent.mkdir(parents=True, exist_ok=True)
            (fork / path).write_text(text)
        git(fork, "add", "--all")
        git(fork, "commit", "--quiet", "-m", "Entries")
        ref = f"HEAD:refs/pull/{self.n_pulls}/head"
        git(fork, "push", "--quiet", "origin", ref)
        return self.n_pulls, git(fork, "rev-parse", "HEAD")

    def check(self, number: int, commit: str) -> str:
        """Run entry.yml; what its check printed."""
        event = {
            "pull_request": {
                "number": number,
                "base": {"ref": "main"},
                "head": {"sha": commit},
                "user": {"login": "mallory"},
            }
        }
        self._run("entry.yml", event, sha=commit, is_fork=True)
        return self.github.output_of("check", "Check")

    def try_out(self, number: int, commit: str) -> None:
        """Run trial.yml."""
        self._run("trial.yml", inputs={"pull": str(number), "commit": commit})

    def accept(self, names: list[str]) -> None:
        """Propose entries, check them, try them and merge them."""
        number, commit = self.propose(
            {f"entries/{name}.yaml": self.entry_text(name) for name in names}
        )
        output = self.check(number, commit)
        assert self.github.results == {"check": "success"}, output
        self.try_out(number, commit)
        assert set(self.github.results.values()) == {"success"}, self.log
        self.pull()
        git(self.main, "fetch", "--quiet", "origin", f"refs/pull/{number}/head")
        git(self.main, "merge", "--quiet", "--no-edit", "FETCH_HEAD")
        git(self.main, "push", "--quiet", "origin", "HEAD:main")

    # -- workflows -----------------------------------------------------------------------------

    def publish(self, again: str = "") -> None:
        """Run publish.yml."""
        self._run("publish.yml", inputs={"again": again} if again else {})
        assert set(self.github.results.values()) == {"success"}, self.log
        self.pull()

    def drift(self) -> str:
        """Run drift.yml; the text of its issue, "" for none."""
        n_before = len(self.github.gh_calls)
        self._run("drift.yml")
        assert set(self.github.results.values()) == {"success"}, self.log
        self.pull()
        calls = self.github.gh_calls[n_before:]
        return str(calls[-1]["body"]) if calls else ""

    def _run(
        self, name: str, event: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        self.github.extra = self.today
        options.setdefault("sha", git(self.origin, "rev-parse", "main"))
        workflow = self.main / ".github" / "workflows" / name
        self.github.run(workflow, event or {}, **options)

    @property
    def log(self) -> str:
        """What the steps of the last workflows printed."""
        return "\n".join(
            f"-- {step.job}: {step.name} ({step.code})\n{step.output}"
            for step in self.github.steps[-8:]
        )

    # -- what is published -----------------------------------------------------------------------

    def published(self, path: str) -> str:
        """A file of the branch that is published."""
        return git(self.origin, "show", f"main:{path}")

    def board(self) -> dict[str, dict[str, Any]]:
        """The models of board.json, by label."""
        record = json.loads(self.published("site/board.json"))
        return {model["label"]: model for model in record["models"]}

    def git_megabytes(self) -> float:
        """How large the repository is, packed."""
        git(self.origin, "gc", "--quiet", "--prune=now")
        sizes = [
            file.stat().st_size for file in self.origin.rglob("*") if file.is_file()
        ]
        return sum(sizes) / 1e6
