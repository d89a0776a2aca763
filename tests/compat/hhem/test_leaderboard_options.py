"""`hhem-leaderboard` with what a person's own board needs: plug-ins, prompts, articles that fail
for good, summaries alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.cli.foreign import hhem_leaderboard as main
from evalwright.models.scripted import lead
from support.openai_faults import Faults
from support.openai_server import OpenAIServer, serving
from support.typed import typed

REFUSAL = "Nothing here that anybody could ever sum up."
BROKEN = "Fog closed the harbour"
ARTICLES = [
    "The swing bridge reopened on Tuesday after eleven weeks. The repair cost 3.1 million crowns.",
    f"{BROKEN} on Sunday, and nobody was hurt. Two ferries waited until noon.",
    "The council put the sale of the old mill to a vote. Seven of the nine members voted against it.",
    "Rain closed the mountain road above Tarn. A ferry takes people across the lake for two crowns.",
]
PROMPT = f"Shorten this.\n{{{{ article }}}}\nIf there is nothing in it, say: {REFUSAL}"


def answer(prompt: str) -> str:
    """The first sentences of the article; the sentence of refusal for a text without content."""
    article = prompt.split("\n", 1)[1].rsplit("\nIf there is", 1)[0]
    return REFUSAL if "placeholder" in article else lead(article, 2)


def fail_broken(body: Mapping[str, Any], before: int) -> str | None:
    """One article that this provider never takes."""
    return "400" if BROKEN in json.dumps(body) else None


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with serving(answer, faults=Faults(script=fail_broken)) as server:
        yield server


def write_suite(server: OpenAIServer, more: str = "", models: str = "") -> None:
    rows = "".join(f'{number},"{text}"\n' for number, text in enumerate(ARTICLES, 1))
    Path("articles.csv").write_text(f"article_id,text\n{rows}")
    Path("mine.toml").write_text(f'[mine]\nbase_url = "{server.url}"\n')
    Path("prompt.txt").write_text(PROMPT)
    Path("leaderboard.yaml").write_text(
        f"""\
tasks: [summary-faithfulness]
plugins: mine.toml
overrides:
  dataset.path: articles.csv
  prompt.file: prompt.txt
  scorers.answered.refusals: ["{REFUSAL}"]
models:
  - {{model: mine/small, label: Small}}
  - {{model: scripted/lead, arguments: {{sentences: 1}}, label: Lead}}
{models}
roles: {{judge: baseline/lexical}}
{more}
suites: {{test: {{}}, live: {{}}}}
"""
    )


TRUSTED = ["--trust-file", "leaderboard.yaml"]
LIVE = ["--eval_name", "live", "--allow-baseline-judge", *TRUSTED]


def run_record(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((Path("runs") / name / "run.json").read_text())
    return record


def test_the_test_asks_as_the_suite_does_and_shows_the_answers(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write_suite(
        server,
        models="  - {model: openai/gpt-4o, label: Closed}\n  - {model: nobody/x, label: Unknown}",
    )
    assert main(TRUSTED) == 1
    shown = capsys.readouterr().out
    small = shown.partition("Small")[2].partition("Lead")[0]
    assert small.count("  pass  ") == 3, small
    assert REFUSAL in small and "The swing bridge" in small
    assert all("Shorten this." in json.dumps(entry) for entry in server.log or [])
    assert server.received.total() == 3
    # What cannot be opened stands between those that can, and stops none of them.
    assert (
        "fail  cannot be asked" in shown.partition("Closed")[2].partition("Unknown")[0]
    )
    assert "Unknown model provider 'nobody'" in shown.partition("Unknown")[2]


def test_a_plugin_of_the_command_line_is_there_for_the_test(
    server: OpenAIServer,
) -> None:
    write_suite(server)
    suite = Path("leaderboard.yaml").read_text().replace("plugins: mine.toml\n", "")
    Path("leaderboard.yaml").write_text(suite)
    assert main(["--plugin", "mine.toml"]) == 0
    assert main([*LIVE[:3], "--plugin", "mine.toml", "--accept-failures", "1"]) == 0


def test_where_no_model_can_be_asked_the_code_says_so(server: OpenAIServer) -> None:
    Path("leaderboard.yaml").write_text("models: [nobody/x]\nsuites: {test: {}}\n")
    assert main([]) == 2


@pytest.mark.parametrize(
    "options",
    [["--name", "x"], ["--replace"], ["--budget", "1 USD"], ["--no-judge"], ["--accept-failures", "2%"], ["--give-up", "3"]],
)  # fmt: skip
def test_what_is_about_runs_is_refused_for_the_test(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(options) == 2
    assert f"{options[0]} is about runs" in capsys.readouterr().err


def test_an_article_that_fails_for_good_is_accepted(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write_suite(server)
    assert main(LIVE) == 1
    assert "1 answer is missing" in capsys.readouterr().err
    assert main([*LIVE, "--accept-failures", "24%"]) == 1
    assert (
        "1 of 4 samples of summary-faithfulness missing (2): 1, where none may be"
        in capsys.readouterr().err
    )
    assert main([*LIVE, "--accept-failures", "25%", "--into", "README.md"]) == 0
    said = capsys.readouterr().err
    assert (
        "Small: 1 of 4 samples of summary-faithfulness missing, as accepted (2)."
        in said
    )
    note = "Samples given up after their requests failed, where up to 25% of a task are accepted: "
    for file in ("README.md", "output/leaderboard.html"):
        assert f"{note}Small 1 (2); Lead 0." in Path(file).read_text(), file
    assert note in json.dumps(
        json.loads(Path("output/leaderboard.json").read_text()), ensure_ascii=False
    )


@pytest.mark.parametrize("entries", [["2"], ["gone.txt"], ["1", "gone.txt"]])
def test_articles_given_up_may_be_missing(
    entries: list[str], server: OpenAIServer
) -> None:
    Path("gone.txt").write_text("# filtered by mine\n2\n")
    write_suite(server)
    assert main([*LIVE, *(f"--give-up={entry}" for entry in entries)]) == 0
    assert "2" in run_record("live-Small")["configuration"]["give_up"]
    assert main([*LIVE, "--give-up", "3"]) == 1


def test_a_board_for_the_data_file_is_refused_before_anything_is_sent(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write_suite(server)
    before = Path("articles.csv").read_bytes() if Path("articles.csv").exists() else b""
    assert main([*LIVE, "--into", "articles.csv"]) == 2
    assert "it is a file of data or settings" in capsys.readouterr().err
    assert not server.log
    assert (
        Path("articles.csv").read_bytes() if Path("articles.csv").exists() else b""
    ) == before


def test_an_id_that_no_article_has_is_not_given_up(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write_suite(server)
    assert main([*LIVE, "--give-up", "33"]) == 2
    said = capsys.readouterr().err
    assert (
        "There is no sample '33' to give up (--give-up). Did you mean '3'?" in said
    ), said


def test_a_budget_in_dollars_names_the_setting_of_the_suite(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write_suite(server)
    assert main([*LIVE, "--budget", "1 USD"]) == 2
    assert "as `price: IN/OUT` in the suite file" in " ".join(
        capsys.readouterr().err.split()
    )
    write_suite(server, "price: 0.15/0.60")
    assert main([*LIVE, "--budget", "1 USD"]) == 1


def test_a_suite_says_what_failures_it_accepts(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write_suite(server, "accept_failures: 1")
    assert main(LIVE) == 0
    write_suite(server, "give_up: [2, gone.txt]")
    assert main(LIVE) == 2 and "'gone.txt' does not exist" in capsys.readouterr().err
    Path("gone.txt").write_text("4\n")
    assert main(LIVE) == 0
    write_suite(server, "give_up: ../elsewhere.txt")
    assert main(LIVE) == 2 and "leaderboard.yaml:" in capsys.readouterr().err
    for wrong in ("2 USD", "-1", "100%", "1.5"):
        write_suite(server, f"accept_failures: {wrong}")
        assert main(LIVE) == 2
        assert "such as 2%, 0.02 or 3" in capsys.readouterr().err, wrong


def test_another_prompt_needs_another_name_or_replaces(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write_suite(server, "accept_failures: 1")
    assert main(LIVE) == 0
    before = run_record("live-Small")["identity"]
    Path("prompt.txt").write_text(PROMPT.replace("Shorten", "Sum up in a line"))
    assert main(LIVE) == 2 and "--replace" in capsys.readouterr().err
    assert main([*LIVE, "--name", "shorter"]) == 0
    assert (
        run_record("live-Small")["identity"]
        == before
        != run_record("shorter-Small")["identity"]
    )
    assert main([*LIVE, "--replace"]) == 0
    assert (
        run_record("live-Small")["identity"] == run_record("shorter-Small")["identity"]
    )


def test_a_budget_ends_the_run_and_is_said(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write_suite(server)
    assert main([*LIVE, "--budget", "3 requests"]) == 1
    assert "The budget of requests was spent" in capsys.readouterr().err


def test_summaries_alone_need_no_judge_and_are_not_sent_again(
    server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write_suite(server, "accept_failures: 1")
    live = ["--eval_name", "live", *TRUSTED]
    assert main([*live, "--no-judge"]) == 0
    record = run_record("live-summaries-Small")
    labels = [metric["label"] for metric in record["tasks"][0]["metrics"]]
    assert "answer-rate" in labels and "hallucination-rate" not in labels
    assert not record["roles"] and not Path("output").exists()
    sent = server.received.total()
    assert main(LIVE) == 0
    assert server.received.total() - sent <= 1  # the article that always fails
    assert main([*live, "--no-judge", "--into", "README.md"]) == 2
    assert "--no-judge makes none" in capsys.readouterr().err


def test_no_judge_is_an_error_beside_a_judge_and_where_nothing_is_left(
    own_folder: Path,
) -> None:
    task = [
        "run",
        "summary-faithfulness",
        "--model",
        "scripted/lead",
        "--no-judge",
        "--limit",
        "2",
    ]
    assert typed(*task).code == 0
    beside = typed(*task, "--role", "judge=baseline/lexical")
    assert beside.code == 2 and "--no-judge leaves every judge out" in beside.err
    alone = typed(*task, "-T", 'scorers=["consistency"]', "-T", 'metrics=["accuracy"]')
    assert (
        alone.code == 2
        and "No scorer of the task 'summary-faithfulness' works without a judge"
        in alone.err
    )
