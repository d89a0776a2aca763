"""The workflows of a leaderboard, step by step, on a repository with forks: honest and hostile."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright.cli import main
from evalwright.entries.template import KINDS, WORKFLOWS, board_text
from support.github import GitHub, git

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or shutil.which("bash") is None,
    reason="no git or bash on this machine",
)

KEY = "sk-a-key-of-the-board-1234567890"
SECRETS = {"trial": {"OPENAI_API_KEY": KEY}, "board": {"OPENAI_API_KEY": KEY}}
FAKES = {
    "entries try": """\
[ -n "$OPENAI_API_KEY" ] || exit 2
shift 2
echo "try $*"
while [ $# -gt 0 ]; do
  case "$1" in
    --page) echo "<html></html>" > "$2" ;;
    --comment) echo "Tried" > "$2" ;;
  esac
  shift
done
""",
    "entries run": """\
[ -n "$OPENAI_API_KEY" ] || exit 2
echo "run $*"
mkdir -p results/mini/first
echo '{}' > results/mini/first/run.json
echo "1 run did not end." > out/failed.md
exit 1
""",
    "entries publish": """\
[ -z "$OPENAI_API_KEY" ] || exit 2
echo "| mini | 0.5 |" >> README.md
""",
    "entries drift": """\
[ -n "$OPENAI_API_KEY" ] || exit 2
mkdir -p results/mini/second
echo '{}' > results/mini/second/run.json
echo "mini has changed" > out/drift.md
exit 1
""",
}
"""Stand-ins for the commands that send requests; `entries check` is the real one."""

MINI = "model: openai/gpt-4o-mini\nlabel: Mini\nby: mallory\n"


class Board:
    """A repository of a leaderboard on GitHub, and pull requests of forks to it."""

    def __init__(self, folder: Path, template: Path) -> None:
        shutil.copytree(template, folder, dirs_exist_ok=True, symlinks=True)
        self.folder = folder
        self.origin = folder / "origin.git"
        self.main = folder / "main"
        for clone in (self.main, folder / "fork-5"):
            settings = clone / ".git" / "config"
            text = settings.read_text()
            assert f"file://{template}/" in text
            settings.write_text(
                text.replace(f"file://{template}/", f"file://{folder}/")
            )
        self.github = GitHub(
            folder / "github",
            self.origin,
            SECRETS,
            FAKES,
            replies={
                "api repos/acme/board/pulls/5": "mallory",
                "issue list": "",
                "release view": None,
            },
        )

    def workflow(self, name: str) -> Path:
        return self.main / ".github" / "workflows" / name

    def propose(self, change: Callable[[Path], None], number: int = 5) -> str:
        """Commit a change in a fork and open a pull request; the commit."""
        fork = self.folder / f"fork-{number}"
        if not fork.exists():
            git(self.folder, "clone", "--quiet", f"file://{self.origin}", str(fork))
        change(fork)
        git(fork, "add", "--all")
        git(fork, "commit", "--quiet", "--allow-empty", "-m", "$(touch pwned) `id`")
        head = git(fork, "rev-parse", "HEAD")
        git(
            fork,
            "push",
            "--quiet",
            "--force",
            "origin",
            f"HEAD:refs/pull/{number}/head",
        )
        return head

    def check(self, commit: str, author: str = "mallory", number: int = 5) -> str:
        """Run entry.yml on a pull request; what its check printed."""
        event = {
            "pull_request": {
                "number": number,
                "base": {"ref": "main"},
                "head": {"sha": commit, "ref": "$(touch pwned)", "label": "x"},
                "title": "`touch pwned`",
                "body": "$(touch pwned)",
                "user": {"login": author},
            }
        }
        self.github.run(self.workflow("entry.yml"), event, sha=commit, is_fork=True)
        return self.github.output_of("check", "Check")

    def try_out(self, commit: str, number: str = "5", branch: str = "main") -> None:
        """Run trial.yml, as a maintainer starts it."""
        head = git(self.origin, "rev-parse", "main")
        self.github.run(
            self.workflow("trial.yml"),
            {},
            sha=head,
            ref_name=branch,
            inputs={"pull": number, "commit": commit},
        )

    def assert_nothing_leaked(self) -> None:
        """No step but those that send requests had a key, and none printed one."""
        senders = {("trial", "Try"), ("run", "Run"), ("run", "Ask again")}
        for step in self.github.steps:
            if (step.job, step.name) not in senders:
                assert KEY not in "".join(step.environment.values()), step
            assert KEY not in step.output
        assert KEY not in str(self.github.gh_calls)
        assert not list(self.folder.rglob("pwned*"))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with an entry of bob's, and alice as its maintainer."""
    folder = tmp_path_factory.mktemp("template")
    origin = folder / "origin.git"
    copy = folder / "main"
    git(folder, "init", "--bare", "--quiet", str(origin))
    git(folder, "clone", "--quiet", f"file://{origin}", str(copy))
    rules = board_text("blank").replace("anthropic, google, ", "")
    rules = rules.replace("maintainers: []", "maintainers: [alice]")
    (copy / "board.yaml").write_text(rules)
    assert main(["init", "--leaderboard", "blank", str(copy)]) == 0
    theirs = "model: openai/gpt-4o\nlabel: Theirs\nby: bob\n"
    (copy / "entries" / "theirs.yaml").write_text(theirs)
    git(copy, "checkout", "--quiet", "-B", "main")
    git(copy, "add", ".")
    git(copy, "commit", "--quiet", "-m", "A leaderboard")
    git(copy, "push", "--quiet", "origin", "main")
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(folder, "clone", "--quiet", f"file://{origin}", str(folder / "fork-5"))
    return folder


@pytest.fixture
def board(tmp_path: Path, template: Path) -> Board:
    return Board(tmp_path, template)


def entry(name: str, text: str = MINI) -> Callable[[Path], None]:
    def change(fork: Path) -> None:
        (fork / "entries" / f"{name}.yaml").write_text(text, encoding="utf-8")

    return change


def test_an_honest_entry_is_checked_tried_and_published(board: Board) -> None:
    commit = board.propose(entry("mini"))
    assert "1 entry is fine." in board.check(commit)
    assert board.github.results == {"check": "success"}
    assert (
        f"gh workflow run trial.yml -f pull=5 -f commit={commit}"
        in board.github.summary
    )
    assert board.github.gh_calls == []

    board.try_out(commit)
    assert set(board.github.results.values()) == {"success"}
    assert "try proposed/mini.yaml --trust-file board.yaml --page trial/mini.html" in (
        board.github.output_of("trial", "Try")
    )
    call = board.github.gh_calls[-1]
    assert call["arguments"][:3] == ["pr", "comment", "5"]
    assert call["body"].startswith("Tried\n") and commit in call["body"]

    git(board.main, "pull", "--quiet", f"file://{board.folder}/fork-5")
    git(board.main, "push", "--quiet", "origin", "main")
    head = git(board.origin, "rev-parse", "main")
    board.github.run(board.workflow("publish.yml"), {}, sha=head)
    assert set(board.github.results.values()) == {"success"}
    assert "| mini | 0.5 |" in git(board.origin, "show", "main:README.md")
    assert git(board.origin, "show", "main:results/mini/first/run.json") == "{}"
    call = board.github.gh_calls[-1]
    assert call["arguments"][:2] == ["issue", "create"]
    assert "1 run did not end." in call["body"] and "Log: https://" in call["body"]
    board.assert_nothing_leaked()


def test_an_open_issue_is_continued_and_drift_is_reported(board: Board) -> None:
    board.github.replies["issue list"] = "12"
    head = git(board.origin, "rev-parse", "main")
    board.github.run(board.workflow("drift.yml"), {}, sha=head)
    assert set(board.github.results.values()) == {"success"}
    call = board.github.gh_calls[-1]
    assert call["arguments"][:3] == ["issue", "comment", "12"]
    assert call["body"].startswith("mini has changed\n")
    assert git(board.origin, "show", "main:results/mini/second/run.json") == "{}"
    board.assert_nothing_leaked()


def test_a_run_that_stops_is_an_issue_too(board: Board) -> None:
    board.github.secrets = {"board": {}, "trial": {}}
    head = git(board.origin, "rev-parse", "main")
    for name in ("publish.yml", "drift.yml"):
        board.github.run(board.workflow(name), {}, sha=head)
        results = {"run": "failure", "publish": "skipped", "report": "success"}
        assert board.github.results == results
        body = board.github.gh_calls[-1]["body"]
        assert "The workflow stopped (run: failure, publish: skipped)." in body
    commit = board.propose(entry("mini"))
    board.try_out(commit)
    assert board.github.results["trial"] == "failure"
    assert "stopped before it had a result" in board.github.gh_calls[-1]["body"]


# -- hostile pull requests -----------------------------------------------------------------


def edit_workflow(fork: Path) -> None:
    file = fork / ".github" / "workflows" / "entry.yml"
    file.write_text(
        file.read_text().replace("entries check", "entries ok; touch pwned")
    )
    entry("mini")(fork)


def link(fork: Path) -> None:
    (fork / "entries" / "mini.yaml").symlink_to("../board.yaml")


def link_outside(fork: Path) -> None:
    (fork / "entries" / "mini.yaml").symlink_to("/etc/passwd")


def link_folder(fork: Path) -> None:
    shutil.rmtree(fork / "entries")
    (fork / "entries").symlink_to("/etc")


def submodule(fork: Path) -> None:
    inner = fork / "entries" / "mini.yaml"
    inner.mkdir()
    git(inner, "init", "--quiet")
    git(inner, "commit", "--quiet", "--allow-empty", "-m", "x")
    text = (
        '[submodule "x"]\n\tpath = entries/mini.yaml\n\turl = https://evil.example/x\n'
    )
    (fork / ".gitmodules").write_text(text)


def attributes(fork: Path) -> None:
    (fork / ".gitattributes").write_text("*.yaml filter=evil diff=evil\n")
    (fork / "entries" / ".gitattributes").write_text("* filter=evil\n")
    entry("mini")(fork)


def many(fork: Path) -> None:
    """As files of a commit, without writing each of them here."""
    entry("e0")(fork)
    blob = git(fork, "hash-object", "-w", "entries/e0.yaml")
    names = [f"entries/e{number}.yaml" for number in range(1, 10_000)]
    rows = "".join(f"100644 {blob}\t{name}\n" for name in names)
    git(fork, "update-index", "--index-info", text=rows)
    git(fork, "update-index", "--skip-worktree", "--stdin", text="\n".join(names))


def program(fork: Path) -> None:
    entry("mini", f"#!/bin/sh\n{MINI}")(fork)
    (fork / "entries" / "mini.yaml").chmod(0o755)


def other_case(fork: Path) -> None:
    entry("Theirs")(fork)


def replace_theirs(fork: Path) -> None:
    entry("theirs", MINI)(fork)


def delete_theirs(fork: Path) -> None:
    (fork / "entries" / "theirs.yaml").unlink()


def rename_theirs(fork: Path) -> None:
    (fork / "entries" / "theirs.yaml").rename(fork / "entries" / "mine.yaml")


def delete_all(fork: Path) -> None:
    shutil.rmtree(fork / "entries")


def code_beside(fork: Path) -> None:
    (fork / "evalwright.py").write_text("open('pwned', 'w')\n")
    (fork / "sitecustomize.py").write_text("open('pwned', 'w')\n")
    (fork / "setup.py").write_text("open('pwned', 'w')\n")
    entry("mini")(fork)


def odd_name(fork: Path) -> None:
    (fork / "entries" / "$(touch pwned).yaml").write_text(MINI)
    (fork / "entries" / "::error::x\n::add-mask::y.yaml").write_text(MINI)
    (fork / "entries" / "-x.yaml").write_text(MINI)


def large(fork: Path) -> None:
    entry("mini", MINI + "#" + "x" * 2**20)(fork)


def with_text(text: str | bytes) -> Callable[[Path], None]:
    def change(fork: Path) -> None:
        content = text if isinstance(text, bytes) else text.encode()
        (fork / "entries" / "mini.yaml").write_bytes(content)

    return change


BOMB = "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b]\n"
HOSTILE = {
    "an edited workflow": (edit_workflow, ".github/workflows/entry.yml:1: "),
    "a file of the board": (
        lambda fork: (fork / "board.yaml").write_text("title: mine\n"),
        "board.yaml:1: ",
    ),
    "a result": (
        lambda fork: (
            (fork / "results").mkdir(),
            (fork / "results" / "run.json").write_text("{}"),
        ),
        "is for its maintainers",
    ),
    "a link": (
        link,
        "entries/mini.yaml:1: An entry is an ordinary file, and this is a link",
    ),
    "a link outside": (link_outside, "this is a link to another file"),
    "a link of the folder": (link_folder, "nothing else"),
    "a submodule": (submodule, "this is a submodule"),
    "attributes": (attributes, ".gitattributes:1: "),
    "10,000 entries": (many, "more than 20 files, so it was not read"),
    "a program": (program, "this is a program"),
    "another case": (other_case, "cannot be an entry's"),
    "a replaced entry": (replace_theirs, "belongs to bob, who alone can change it"),
    "a deleted entry": (delete_theirs, "belongs to bob, who alone can delete it"),
    "a renamed entry": (rename_theirs, "belongs to bob, who alone can delete it"),
    "all entries deleted": (delete_all, "belongs to bob"),
    "code beside": (code_beside, "sitecustomize.py:1: "),
    "code in a name": (odd_name, '"entries/$(touch pwned).yaml":1: '),
    "a megabyte": (large, "entries/mini.yaml:1: "),
    "a bomb": (with_text(BOMB), "no anchors"),
    "a tag": (
        with_text("model: !!python/object/apply:os.system ['touch pwned']\n"),
        "no tags",
    ),
    "a zero": (with_text(f"{MINI}\x00"), "U+0000"),
    "another encoding": (with_text(MINI.encode("utf-16")), "not UTF-8"),
    "a base_url": (
        with_text(f"{MINI}base_url: https://evil.example/v1\n"),
        "entries/mini.yaml:4: The address",
    ),
    "a base_url in the name": (
        with_text("model: openai/https://evil.example/v1\nby: mallory\n"),
        "entries/mini.yaml:1: The model",
    ),
    "a price": (with_text(f"{MINI}price: 0/0\n"), "Unknown key 'price'"),
    "a model without a price": (
        with_text("model: openai/free-lunch\nby: mallory\n"),
        "The price of 'openai/free-lunch' is not known",
    ),
    "a function": (
        with_text("model: python/evil.py:f\nby: mallory\n"),
        "Models of 'python' are not on this board",
    ),
    "a key": (
        with_text(f"{MINI}arguments: {{api_key_env: GITHUB_TOKEN}}\n"),
        "cannot set 'api_key_env'",
    ),
    "an imitation": (
        with_text(MINI.replace("Mini", "Thеirs")),
        "mixes alphabets",
    ),
    "a double": (
        with_text(MINI.replace("gpt-4o-mini", "GPT-4o")),
        "The entry 'theirs' has the same model",
    ),
    "somebody else's name": (
        with_text(MINI.replace("mallory", "bob")),
        "Write `by: mallory`",
    ),
    "markup": (with_text(MINI.replace("Mini", "<img src=x>")), "has '<'"),
    "an expression": (
        with_text(MINI.replace("Mini", "${{ secrets.OPENAI_API_KEY }}")),
        "has '$'",
    ),
    "another folder": (
        lambda fork: (
            (fork / "entries" / "sub").mkdir(),
            (fork / "entries" / "sub" / "x.yaml").write_text(MINI),
        ),
        "nothing else",
    ),
}


def assert_clear_answer(output: str, words: str) -> None:
    """The answer names the problem, and has no command for the workflow but annotations."""
    assert words in output, output
    assert "Traceback" not in output and "this is a bug" not in output
    assert "Nothing was run." in output
    commands = re.findall(r"(?m)^\s*(::\S+|##\[.*)", output)
    assert all(command == "::error" for command in commands), commands


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_pull_request_gets_a_clear_answer_and_nothing_runs(
    board: Board,
    case: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change, words = HOSTILE[case]
    commit = board.propose(change)
    git(board.main, "fetch", "--quiet", "origin", "refs/pull/5/head")
    monkeypatch.chdir(board.main)
    before = git(board.main, "status", "--porcelain")
    arguments = ["--commit", commit, "--author", "mallory", "--into", "accepted"]
    assert main(["entries", "check", *arguments, "--github"]) == 2
    captured = capsys.readouterr()
    assert_clear_answer(captured.out + captured.err, words)
    # Nothing of the pull request has become a file.
    assert git(board.main, "status", "--porcelain") == before
    assert not (board.main / "accepted").exists()
    board.assert_nothing_leaked()


@pytest.mark.parametrize(
    "case", ["10,000 entries", "a megabyte", "code in a name", "an edited workflow"]
)
def test_the_workflow_gives_the_answer(board: Board, case: str) -> None:
    change, words = HOSTILE[case]
    output = board.check(board.propose(change))
    assert board.github.results == {"check": "failure"}
    assert_clear_answer(output, words)
    assert board.github.gh_calls == []
    board.assert_nothing_leaked()


@pytest.mark.parametrize("case", ["an edited workflow", "a base_url"])
def test_a_trial_that_is_started_nevertheless_stops_before_any_key(
    board: Board, case: str
) -> None:
    change, words = HOSTILE[case]
    board.try_out(board.propose(change))
    assert board.github.results["check"] == "failure"
    assert words in board.github.output_of("check", "Check")
    assert board.github.results["trial"] == "skipped"
    assert not any(step.job == "trial" for step in board.github.steps)
    board.assert_nothing_leaked()


def test_files_with_lines_of_windows_are_fine(board: Board) -> None:
    board.github.start_interpreters()
    text = b"\xef\xbb\xbf" + MINI.replace("\n", "\r\n").encode()
    assert "1 entry is fine." in board.check(board.propose(with_text(text)))


def test_an_owner_changes_their_entry_and_a_maintainer_everything(board: Board) -> None:
    commit = board.propose(entry("theirs", "model: openai/gpt-4o\nlabel: T\nby: bob\n"))
    assert "1 entry is fine." in board.check(commit, author="Bob")
    board.propose(edit_workflow, number=6)
    commit = git(board.origin, "rev-parse", "refs/pull/6/head")
    assert "1 entry is fine." in board.check(commit, author="alice", number=6)


def test_a_commit_after_the_reading_is_not_tried(board: Board) -> None:
    read = board.propose(entry("mini"))
    later = board.propose(entry("mini", MINI.replace("Mini", "Other")))
    board.try_out(read)
    assert board.github.results == {
        "check": "failure",
        "trial": "skipped",
        "comment": "skipped",
    }
    fetched = board.github.output_of("check", "Fetch the commits of the pull request")
    assert "read it again" in fetched
    board.try_out(later)
    assert board.github.results["trial"] == "success"


@pytest.mark.parametrize(
    ("number", "commit"),
    [("5; touch pwned", ""), ("../main", ""), ("5", "$(touch pwned)"), ("5", "main")],
)
def test_inputs_of_a_trial_are_not_commands(
    board: Board, number: str, commit: str
) -> None:
    board.propose(entry("mini"))
    board.try_out(commit, number=number)
    assert board.github.results["check"] == "failure"
    board.assert_nothing_leaked()


def test_a_trial_from_another_branch_does_nothing(board: Board) -> None:
    board.try_out(board.propose(entry("mini")), branch="feature")
    assert set(board.github.results.values()) == {"skipped"}


# -- their text ----------------------------------------------------------------------------


def test_rights_and_expressions(board: Board) -> None:
    for name in WORKFLOWS:
        text = board.workflow(name).read_text()
        definition = yaml.safe_load(text)
        assert definition["permissions"] == {"contents": "read"}
        assert "pull_request_target" not in text and "workflow_run" not in text
        assert "concurrency" in definition
        for job_name, job in definition["jobs"].items():
            assert job["timeout-minutes"]
            _check_steps(job, (name, job_name))
    entry_workflow = board.workflow("entry.yml").read_text()
    assert "secrets." not in entry_workflow and "environment:" not in entry_workflow


def _check_steps(job: dict[str, Any], where: tuple[str, str]) -> None:
    writes = "write" in job.get("permissions", {}).values()
    for step in job["steps"]:
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z/-]+@v\d+", step["uses"]), where
            continue
        assert "${{" not in step["run"], where
        keys = [key for key, text in step.get("env", {}).items() if "secrets." in text]
        if keys:
            # Keys and the right to write never meet.
            assert job["environment"] in ("trial", "board") and not writes, where
            assert "GH_TOKEN" not in step["env"], where


@pytest.mark.parametrize("kind", KINDS)
def test_boards_of_each_kind(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--leaderboard", kind, "board"]) == 0
    assert (tmp_path / "board" / "board.yaml").read_text() == board_text(kind)
    monkeypatch.chdir(tmp_path / "board")
    is_sea_helm = kind == "sea-helm"  # needs a clone of SEA-HELM
    assert main(["entries", "check"]) == (2 if is_sea_helm else 0)
    assert ("git submodule add" in capsys.readouterr().err) is is_sea_helm
    for name in WORKFLOWS:
        workflow = yaml.safe_load(Path(".github/workflows", name).read_text())
        for job in workflow["jobs"].values():
            for step in job["steps"]:
                if str(step.get("uses", "")).startswith("actions/checkout"):
                    assert step["with"].get("submodules", False) is is_sea_helm
    secrets = (tmp_path / "board" / ".github/workflows/publish.yml").read_text()
    assert "OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}" in secrets
    assert ("VECTARA_API_KEY" in secrets) is (kind == "hhem")


def test_what_is_there_stays_and_workflows_follow_the_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--leaderboard"]) == 0
    assert "evalwright entries check" in capsys.readouterr().out
    rules = Path("board.yaml").read_text()
    rules = rules.replace("openai, anthropic, google", "mistral")
    rules = rules.replace("samples: none", "samples: release").replace("week", "day")
    Path("board.yaml").write_text(rules)
    Path("README.md").write_text("Ours\n")
    Path("entries/example.yaml").unlink()
    Path("entries/a.yaml").write_text("model: demo/large\n")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["init", "--leaderboard"]) == 2
    assert "would be replaced" in capsys.readouterr().err
    assert main(["init", "--leaderboard", "--replace"]) == 0
    output = capsys.readouterr().out
    assert (
        "Kept: README.md" in output
        and "Replaced: .github/workflows/publish.yml" in output
    )
    assert Path("README.md").read_text() == "Ours\n"
    assert not Path("entries/example.yaml").exists()
    publish = Path(".github/workflows/publish.yml").read_text()
    assert "MISTRAL_API_KEY" in publish and "OPENAI_API_KEY" not in publish
    assert "gh release upload samples" in publish
    assert "--samples-into out/samples" in publish
    assert '"41 4 * * *"' in Path(".github/workflows/drift.yml").read_text()


def test_there_is_no_example_that_the_board_would_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rules = board_text("blank").replace(", demo]", "]")
    Path("board.yaml").write_text(rules)
    assert main(["init", "--leaderboard"]) == 0
    # Git keeps no empty folder, and nothing can be written into one that is not there.
    assert [file.name for file in Path("entries").iterdir()] == [".gitkeep"]
    assert main(["entries", "check"]) == 0
    Path("entries/.gitkeep").unlink()
    Path("entries").rmdir()
    assert main(["entries", "check"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--leaderboard", "hhemm"], "Did you mean 'hhem'"),
        (["--leaderboard", "hhem", "--model", "demo/small"], "--model has no effect"),
        (["--leaderboard", "hhem", "--no-workflow"], "--no-workflow has no effect"),
        (["folder"], "is for --leaderboard alone"),
    ],
)
def test_init_says_what_is_wrong(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
