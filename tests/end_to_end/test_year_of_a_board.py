"""A year of a leaderboard, on the steps of its own workflows: what it says happened, did happen.

Models and judges are servers on loopback with known behaviours, which count what they are asked.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from evalwright.analysis.submission import submission_file
from support.board_year import N_ITEMS, N_REPEATS, Adder, BoardYear

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or shutil.which("bash") is None,
    reason="no git or bash on this machine",
)
MOST_MEGABYTES = 10
N_MODELS_OF_THE_YEAR = 30
POISON = {
    "entries/gold.yaml": (
        "model: openai/https://evil.example/v1\nlabel: $(touch pwned)\n"
        "base_url: https://evil.example/v1\nprice: 0/0\nby: mallory\n"
    ),
    "results/gold/2025-03-05-00000000/run.json": '{"metrics": [{"value": 1.0}]}',
    ".github/workflows/publish.yml": "on: push\n",
}


@pytest.fixture
def year(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    n_models = request.param
    names = ["nova", "carol", "dave", *(f"model{n:02}" for n in range(n_models - 3))]
    models = [Adder(name, wrong=1 + n % 4) for n, name in enumerate(names)]
    with ExitStack() as stack:
        board_year = BoardYear(tmp_path, stack, models)
        start(board_year)
        yield board_year


def start(year: BoardYear) -> None:
    """Set the repository up as its first maintainer does."""
    code, output = year.command("init", "--leaderboard", "blank", ".")
    assert code == 0, output
    (year.main / "entries" / "example.yaml").unlink()
    year.write_board("judge-a")
    code, output = year.command("init", "--leaderboard", "blank", ".", "--replace")
    assert code == 0, output
    year.commit("A leaderboard")


def add_entries(year: BoardYear, names: list[str], down: str = "") -> None:
    """Merge entries and publish; the server of one may be down after its trial."""
    year.accept(names)
    n_before = len(year.github.gh_calls)
    if down:
        year.models[down].is_down = True
    year.publish()
    issues = [call for call in year.github.gh_calls[n_before:] if call["body"]]
    if not down:
        assert issues == [], issues
        return
    (issue,) = issues
    assert issue["arguments"][:2] == ["issue", "create"]
    assert "1 entry did not end" in issue["body"] and down in issue["body"]
    shown = year.board()
    assert down.capitalize() not in shown
    assert {name.capitalize() for name in names if name != down} <= shown.keys()
    year.models[down].is_down = False


def refuse_poison(year: BoardYear) -> None:
    """A hostile pull request: a clear answer, nothing is sent, nothing of it is published."""
    number, commit = year.propose(POISON)
    n_requests = count_requests(year)
    head = year.published("site/board.json")
    output = year.check(number, commit)
    assert year.github.results == {"check": "failure"}
    for file in POISON:
        assert f"{file}:1: " in output or f"file={file}" in output, output
    assert "Nothing was run." in output and "Traceback" not in output
    year.try_out(number, commit)
    assert year.github.results["trial"] == "skipped"
    assert count_requests(year) == n_requests
    assert year.published("site/board.json") == head
    assert not list(year.folder.rglob("pwned*"))


def refuse_submission(year: BoardYear, name: str) -> None:
    """Somebody sends a run as a file, with better answers than the model's: it is refused."""
    (run,) = year.runs(name)
    honest, altered = year.folder / "honest.json", year.folder / "altered.json"
    sealed = year.folder / "sealed.json"
    make = ("runs", "submit", "make", str(run), "--into", str(honest))
    code, output = year.command(*make)
    assert code == 0, output
    document = json.loads(honest.read_text())
    for row in document["samples"]:
        row["answer"] = f"{name} says {2 * int(row['id'][1:])}"
        row["responses"][0]["text"] = row["answer"]
        row["scores"]["judge-correct"] = {"value": 1.0, "label": "correct"}
    altered.write_text(json.dumps(document))
    document["sha256"] = submission_file._content_hash(document)
    sealed.write_text(json.dumps(document))
    n_requests = count_requests(year)
    board = year.folder / "board-of-submissions"
    sentences = {
        altered: "it was changed after it was written",
        # Whoever computes the hash again as well meets a judge's verdicts, which nobody can check.
        sealed: "its scores cannot be checked here",
    }
    for file, sentence in sentences.items():
        for command in (("verify", str(file)), ("add", str(file), "--to", str(board))):
            submit = ("runs", "submit", *command, "--task", "sums.yaml")
            code, output = year.command(*submit)
            assert code == 1 and sentence in output, output
            assert "Traceback" not in output
    assert count_requests(year) == n_requests and not board.exists()
    assert not year.status(), "nothing of it is in the repository"


def merge_judge(year: BoardYear, judge: str, n_results: int) -> None:
    """Merge a judge and nothing else: the workflow has old answers scored, and asks no model."""
    year.write_board(judge)
    n_models = count_requests(year)
    n_before = sum(year.judges[judge].received.values())
    year.commit(f"Judge: {judge}")
    year.publish()
    assert count_requests(year) == n_models, year.log
    n_judged = sum(year.judges[judge].received.values()) - n_before
    # As many as it said before; the same answer to the same question has one verdict.
    printed = year.github.output_of("run", "Run")
    price = f"{n_results} results scored again, {n_judged:,} requests"
    assert price in printed, year.log
    assert (n_results - 1) * N_ITEMS < n_judged <= n_results * N_ITEMS
    year.publish()
    assert sum(year.judges[judge].received.values()) == n_before + n_judged, year.log


def merge_bad_entry(year: BoardYear) -> None:
    """A maintainer merges a bad entry past the check: it is named, and the others are published."""
    file = year.main / "entries" / "bad.yaml"
    file.write_text(
        "model: openai/bad\nbase_url: https://evil.example/v1\nprice: 0/0\n"
    )
    year.commit("A bad entry")
    n_before = len(year.github.gh_calls)
    year.publish()
    (issue,) = [call for call in year.github.gh_calls[n_before:] if call["body"]]
    assert "bad" in issue["body"] and "Unknown key" in issue["body"], issue
    file.unlink()
    year.commit("Without it")


def change_judge(year: BoardYear, judge: str) -> int:
    """Have all results scored by another judge: the price first; the number of requests."""
    year.write_board(judge)
    home = year.folder / f"home-{judge}"
    # Where the maintainer has the samples from: what the workflow keeps.
    shutil.copytree(year.github.folder / "cache" / "board", home)
    command = (
        *("entries", "rejudge", "--judge", f"openai/{judge}", "--home", str(home)),
        *("-R", f"judge.base_url={year.judges[judge].url}"),
        *("--trust-file", "board.yaml", "--json"),
    )
    code, output = year.command(*command, "--plan")
    assert code == 0, output
    price = json.loads(output[output.index("{") :])
    n_before = sum(year.judges[judge].received.values())
    n_models = count_requests(year)
    code, output = year.command(*command)
    assert code == 0, output
    n_judged = sum(year.judges[judge].received.values()) - n_before
    assert n_judged == price["requests"]
    year.commit(f"Judge: {judge}")
    year.publish()
    # Nothing was asked or judged again by the workflow.
    assert count_requests(year) == n_models, year.log
    assert sum(year.judges[judge].received.values()) == n_before + n_judged, year.log
    return int(price["requests"])


def count_requests(year: BoardYear) -> int:
    """How many requests the models got, all together."""
    return sum(model.n_requests for model in year.models.values())


def check_history(year: BoardYear, label: str, dates: list[str], **known: Any) -> None:
    """What board.json and the page say of a model's results."""
    model = year.board()[label]
    history = model["history"]
    assert [entry["date"] for entry in history] == dates
    page = year.published(f"site/{model['page']}")
    for date in dates:
        assert date in page
    for key, value in known.items():
        assert history[-1][key] == value, history[-1]


def check_published(year: BoardYear) -> None:
    """All that is published says the same, and says it of everybody."""
    shown = year.board()
    assert shown.keys() == {name.capitalize() for name in year.models}
    readme = year.published("README.md")
    index = year.published("site/index.html")
    for label in shown:
        assert label in readme and label in index
    # A clone without anything else publishes the same bytes.
    files = {path: (year.main / path).read_bytes() for path in published_files(year)}
    clone = year.folder / "clone"
    shutil.copytree(year.main, clone, ignore=shutil.ignore_patterns(".git"))
    shutil.rmtree(clone / "site")
    code, output = year.command("entries", "publish", folder=clone)
    assert code == 0, output
    for path, content in files.items():
        assert (clone / path).read_bytes() == content, path


def published_files(year: BoardYear) -> list[str]:
    site = year.main / "site"
    pages = [file for file in site.rglob("*") if file.is_file()]
    return ["README.md", *(str(file.relative_to(year.main)) for file in pages)]


def feed_titles(year: BoardYear) -> list[tuple[str, str]]:
    """The day and the title of each news."""
    feed = ElementTree.fromstring(year.published("site/feed.xml"))
    atom = "{http://www.w3.org/2005/Atom}"
    return [
        (entry.findtext(f"{atom}updated", "")[:10], entry.findtext(f"{atom}title", ""))
        for entry in feed.iter(f"{atom}entry")
    ]


def check_paid_once(
    year: BoardYear, n_rounds: Counter[str], again: tuple[str, ...] = ()
) -> None:
    """What each model was asked: its run, its rounds, and nothing twice, not even by its trial."""
    for name, model in year.models.items():
        n_runs = 1 + again.count(name)
        n_expected = N_ITEMS * (n_runs + N_REPEATS * n_rounds[name])
        assert sum(model.server.completed.values()) == n_expected, name


@pytest.mark.slow
@pytest.mark.parametrize("year", [3], indirect=True)
def test_a_few_months_of_a_board(year: BoardYear) -> None:
    add_entries(year, ["nova", "carol"], down="carol")
    refuse_poison(year)
    refuse_submission(year, "nova")
    year.day = "2025-02-05"
    add_entries(year, ["dave"])
    assert "Carol" in year.board()
    merge_bad_entry(year)

    year.day = "2025-03-05"
    merge_judge(year, "judge-b", n_results=3)
    judged = {"judge": "openai/judge-b", "scored": "2025-03-05"}
    check_history(year, "Nova", ["2025-01-05"], **judged)
    check_history(year, "Carol", ["2025-02-05"], **judged)
    (earlier,) = year.board()["Nova"]["history"][0]["earlier_verdicts"]
    assert earlier["judge"] == "openai/judge-a"
    check_paid_once(year, Counter())
    check_published(year)
    titles = feed_titles(year)
    assert any(day == "2025-01-05" and "Nova" in title for day, title in titles)
    assert any(day == "2025-03-05" and "Nova" in title for day, title in titles)
    assert year.git_megabytes() < MOST_MEGABYTES


@pytest.mark.slow
@pytest.mark.parametrize("year", [N_MODELS_OF_THE_YEAR], indirect=True)
def test_a_year_of_a_board(year: BoardYear) -> None:
    waiting = [name for name in year.models if name not in ("nova", "carol", "dave")]
    failing = {1: "carol", 5: "dave", 8: waiting[-1]}
    new_judges = {2: "judge-b", 11: "judge-c"}
    n_each_month = -(-len(waiting[:-1]) // 9)
    n_rounds: Counter[str] = Counter()
    present: list[str] = []
    issues: dict[int, str] = {}
    added: dict[str, str] = {}
    for month in range(1, 13):
        year.day = f"2025-{month:02}-05"
        if month == 3:
            refuse_poison(year)
            refuse_submission(year, "nova")
        if month == 4:
            merge_bad_entry(year)
        if month in new_judges:
            year.publish()
            note_added(year, added)
            year.day = f"2025-{month:02}-10"
            if month == 2:
                change_judge(year, new_judges[month])
            else:
                n_results = len(added) + 1  # Nova was asked twice
                merge_judge(year, new_judges[month], n_results)
        if month == 10:
            year.publish(again="nova")
        if month == 7:
            year.models["nova"].wrong += 4  # nobody is told

        new = waiting[:-1][n_each_month * (month - 1) : n_each_month * month]
        new += ["nova"] if month == 1 else []
        down = failing.get(month, "")
        if new or down:
            add_entries(year, [*new, *filter(None, [down])], down=down)
        else:
            year.publish()
        note_added(year, added)
        present += [*new, *filter(None, [down])]
        year.day = f"2025-{month:02}-20"
        issues[month] = year.drift()
        n_rounds.update(present)
        check_month(year, month, issues[month])

    # The silent change in July: it takes three rounds, and the alarm names the round from which on the model was another one.
    alarmed = [month for month, issue in issues.items() if "Nova" in issue]
    assert alarmed and alarmed[0] == 9, issues
    assert "2025-07" in issues[alarmed[0]]
    assert not any(issue for month, issue in issues.items() if month < 7), issues
    check_paid_once(year, n_rounds, again=("nova",))
    for name, day in added.items():
        if name != "nova":
            judged = {"judge": "openai/judge-c"}
            check_history(year, name.capitalize(), [day], **judged)
    for month, name in failing.items():
        assert added[name] == f"2025-{month + 1:02}-05"
    check_history(year, "Nova", ["2025-01-05", "2025-10-05"], judge="openai/judge-c")
    newest = year.board()["Nova"]["history"][-1]
    assert newest["score_change"]["difference"] < 0
    check_published(year)
    titles = feed_titles(year)
    for name, day in added.items():
        assert (day, name.capitalize()) in [
            (date, re.split(r"[: ]", title)[0]) for date, title in titles
        ], titles
    megabytes = year.git_megabytes()
    print(f"{megabytes:.1f} MB in git after the year")
    assert megabytes < MOST_MEGABYTES


def note_added(year: BoardYear, added: dict[str, str]) -> None:
    """Note the day on which models came onto the board."""
    shown = year.board()
    for name in year.models:
        if name.capitalize() in shown:
            added.setdefault(name, year.day)


def check_month(year: BoardYear, month: int, issue: str) -> None:
    """What the board says of the silent change, month by month."""
    shown = year.board()
    marked = {label for label, model in shown.items() if model.get("drift")}
    if month < 7 or month >= 10:
        assert marked == set(), marked
    elif "Nova" in issue:
        assert marked == {"Nova"}
        mark = shown["Nova"]["drift"]
        assert mark["since"] == "2025-07-20" and mark["of"] == "model"
        page = year.published("site/index.html")
        assert "Nova has changed since 2025-07-20" in page
