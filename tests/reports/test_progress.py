from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalwright.core.responses import Usage
from evalwright.engine.counts import Counts
from evalwright.models import replicas
from evalwright.models.replicas import Replica
from evalwright.reports.progress import Pace, TerminalProgress, plain_line
from evalwright.runs.progress import Progress
from support.hostile import ACTIVE, HOSTILE
from support.shown import in_a_terminal


def state_of(**more: Any) -> Progress:
    return Progress(
        **{
            "run": "r",
            "label": "demo/small",
            "total": 2400,
            "done": 0,
            "failed": 0,
            "seconds": 0.0,
            "counts": Counts(),
            **more,
        }
    )


def test_plain_lines_come_at_most_every_ten_seconds_and_once_at_the_end() -> None:
    out = io.StringIO()
    with TerminalProgress(out) as progress:
        for tick in range(101):
            counts = Counts(sent=2400, asked=tick * 12, failed=0)
            progress.update(state_of(done=tick * 24, seconds=tick / 4, counts=counts))
        progress.update(
            state_of(
                done=2400,
                failed=2,
                seconds=25.5,
                counts=Counts(sent=2000, stored=400),
                finished=True,
            )
        )
        progress.update(state_of(done=2400, seconds=25.6, finished=True))
    assert out.getvalue().splitlines() == [
        "demo/small: 960 of 2,400, 96.0/s, 15 s left, 480 requests answered, 0 from the store",
        "demo/small: 1,920 of 2,400, 96.0/s, 5.0 s left, 960 requests answered, 0 from the store",
        "demo/small: 2,398 of 2,400 completed in 26 s, 2 failed, 2,000 sent, 400 from the store",
    ]


def test_an_interrupted_run_says_where_it_stopped() -> None:
    out = io.StringIO()
    with TerminalProgress(out) as progress:
        progress.update(state_of(done=12, seconds=2.0, finished=True))
    assert (
        out.getvalue()
        == "demo/small: stopped after 12 of 2,400, 0 sent, 0 from the store\n"
    )


def test_the_pace_is_the_recent_one() -> None:
    pace = Pace()
    assert pace.per_second is None and pace.left(5) is None
    for second in range(1, 11):
        pace.add(float(second), second * 1000)  # answers from the store
    for second in range(11, 61):
        pace.add(float(second), 10_000 + second - 10)
    assert pace.per_second == pytest.approx(1.0)
    assert pace.left(60) == pytest.approx(60.0)


def test_stored_responses_count_in_no_rate_and_the_clock_starts_when_the_first_request_is_sent() -> (
    None
):
    pace = Pace()
    for second in range(30):
        pace.take(
            state_of(
                seconds=second, done=second * 50, counts=Counts(stored=second * 50)
            )
        )
    assert not pace.per_second and pace.left(100) is None
    for second in range(6):
        counts = Counts(stored=1500, sent=200, asked=2 * second)
        pace.take(state_of(seconds=30 + second, done=1500 + 2 * second, counts=counts))
    assert pace.per_second == pytest.approx(2.0, rel=0.2)
    assert pace.left(100) == pytest.approx(50, rel=0.2)


def test_of_what_is_left_as_much_is_taken_to_be_stored_as_lately() -> None:
    """A resumed run of 8,800 whose stored answers lie among the others: 3 new ones and 97 stored
    ones a second.
    """
    pace = Pace()
    for second in range(1, 11):
        counts = Counts(stored=97 * second, sent=3 * second, asked=3 * second)
        pace.take(state_of(seconds=second, done=100 * second, counts=counts))
    assert pace.per_second == pytest.approx(3.0)
    assert pace.left(7800) == pytest.approx(78)


def test_stored_answers_at_the_beginning_say_nothing_of_what_is_left() -> None:
    pace = Pace()
    for second in range(1, 40):
        sent = max(0, 4 * (second - 5))
        counts = Counts(stored=5000, sent=sent, asked=sent)
        pace.take(state_of(seconds=second, done=5000 + sent, counts=counts))
    assert pace.left(100) == pytest.approx(25, rel=0.05)


def test_slow_samples_are_measured_over_a_longer_time() -> None:
    pace = Pace()
    for quarter in range(1, 1600):
        second = quarter / 4
        done = int(second / 20)
        pace.take(
            state_of(
                seconds=second, done=done, counts=Counts(sent=done + 1, asked=done)
            )
        )
        left = pace.left(30 - done)
        if done < 10:
            assert left is None
        elif left is not None:
            assert left == pytest.approx(20 * (30 - done), rel=0.15)
    assert pace.left(8) is not None


def test_the_last_few_have_an_estimate_although_few_are_done() -> None:
    pace = Pace()
    for second in range(1, 51):
        done = second // 10
        pace.take(
            state_of(
                total=8, seconds=second, done=done, counts=Counts(sent=8, asked=done)
            )
        )
    assert pace.left(3) == pytest.approx(30)


def test_tries_of_a_replica_that_others_made_good_are_called_tries() -> None:
    replica = Replica("b")
    replica.begin(130)
    replica.end(128, failed=True)
    assert replicas.summarise_replicas([replica]).endswith(" (128 tries failed)")
    replica.failures = 1
    assert replicas.summarise_replicas([replica]).endswith(" (1 try failed)")


def test_time_to_load_a_model_is_in_no_rate() -> None:
    pace = Pace()
    for second in range(30):
        pace.take(
            state_of(
                seconds=second, counts=Counts(sent=100), loading=("hf/x", float(second))
            )
        )
    for second in range(5):
        pace.take(
            state_of(
                seconds=30 + second,
                done=3 * second,
                counts=Counts(sent=100, asked=3 * second),
            )
        )
    assert pace.per_second == pytest.approx(3.0, rel=0.3)


def test_a_model_that_is_being_loaded_is_named_with_its_seconds() -> None:
    state = state_of(loading=("hf/Qwen/Qwen3-0.6B", 12.2), counts=Counts(sent=8))
    assert plain_line(state, Pace()) == "Loading hf/Qwen/Qwen3-0.6B, 12 s"
    judge = state_of(
        loading=("hf/judge", 3.0), done=4, seconds=5.0, counts=Counts(sent=4, asked=4)
    )
    assert plain_line(judge, Pace()).startswith(
        "demo/small: 4 of 2,400, Loading hf/judge, 3.0 s"
    )


def test_nothing_hostile_reaches_the_terminal() -> None:
    counts = Counts(cost=1.5, usage=Usage(10**6))
    for label in HOSTILE:
        state = state_of(
            label=label, state=label, done=1000, failed=3, seconds=10.0, counts=counts
        )
        line = plain_line(state, Pace())
        assert not set(line) & {*ACTIVE, "\n"} and "1,000 of 2,400" in line, label


def test_sentences_are_made_inert() -> None:
    out = io.StringIO()
    with TerminalProgress(out) as progress:
        progress.say("waiting\x1b[2J\nfor it")
    assert out.getvalue() == "waiting\\x1b[2J\\nfor it\n"


SCRIPT = """
import sys, time
from types import SimpleNamespace
from evalwright.engine.counts import Counts
from evalwright.models import replicas
from evalwright.models.replicas import Replica
from evalwright.reports.progress import TerminalProgress
with TerminalProgress() as progress:
    for i in range(4):
        for run in ("one", "two"):
            progress.update(SimpleNamespace(run=run, label=f"model/{run}", total=100, done=i * 10, failed=0, seconds=i * 0.3,
                                            counts=Counts(sent=i * 10), finished=False, state="", loading=None))
        if i == 2:
            progress.say("[bold]slow down[/bold]")
            progress.update(SimpleNamespace(run="two", label="model/two", total=100, done=100, failed=0, seconds=0.9,
                                            counts=Counts(sent=100), finished=True, state="", loading=None))
        time.sleep(0.3)
    print("to stdout")
    raise KeyboardInterrupt
"""


def test_a_terminal_is_put_back_even_when_interrupted() -> None:
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "COLUMNS": "100",
    }
    _, text, other = in_a_terminal(SCRIPT, stream="stderr", environment=environment)
    assert other == "to stdout\n"
    assert "model/one" in text and "━" in text
    assert "[bold]slow down[/bold]" in text
    assert "model/two: 100 answers in 0.90 s" in text
    assert text.rindex("\x1b[?25h") > text.rindex(
        "\x1b[?25l"
    )  # the cursor is visible again
    assert text.rindex("\x1b[?25h") < text.index("Traceback")


def test_a_notebook_shows_a_line_where_nobody_asked_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from evalwright import ScriptedModel, evaluate

    monkeypatch.chdir(tmp_path)
    Path("one.csv").write_text("question,target\nf,1\n", encoding="utf-8")
    evaluate("one.csv", ScriptedModel("1", name="ones"))
    assert capsys.readouterr().out == ""
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(
        sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell)
    )
    evaluate("one.csv", ScriptedModel("1", name="ones"), name="again")
    assert capsys.readouterr().out.splitlines()[-1].startswith("ones: 1 answer in ")
