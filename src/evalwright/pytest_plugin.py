"""Evaluations in pytest: a fixture whose thresholds take the uncertainty of scores into account.

The fixture `evalwright_gate` fails a test when a run breaks rules, those of `compare --fail-if`::

    from evalwright import evaluate

    def test_the_prompt_is_good_enough(evalwright_gate):
        run = evaluate("tasks/support.yaml", "openai/gpt-4.1-mini", limit=200)
        evalwright_gate(run, "accuracy is below 80%")
        evalwright_gate(run, "accuracy drops by more than 3 points", against="released")

pytest loads this module in every session, so that nothing heavy is imported before a gate is used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from evalwright.analysis.gate import Gate
    from evalwright.runs.reader import Run

MODES = ("shown", "not-ruled-out")
_SENTENCES = pytest.StashKey[list[str]]()
"""What the gates of the session said, for the summary."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plug-in."""
    group = parser.getgroup("evalwright", "evaluations of language models")
    group.addoption(
        "--evalwright-gate",
        choices=MODES,
        default=MODES[0],
        help="Whether a rule fails if the data show it, or unless the data rule it out."
        " Default: shown.",
    )
    group.addoption(
        "--evalwright-runs",
        metavar="DIR",
        default="runs",
        help="Where runs given by name are. Default: runs.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin the list of what gates say."""
    config.stash[_SENTENCES] = []


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show what the gates said, also those that passed."""
    sentences = config.stash[_SENTENCES]
    if not sentences:
        return
    terminalreporter.section("evalwright")
    for sentence in sentences:
        terminalreporter.line(sentence)


@pytest.fixture
def evalwright_gate(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Callable[..., Gate]:
    """A function that fails the test when a run breaks rules.

    It takes the run (a Run, its folder or name), rules such as "accuracy is below 80%", and by
    keyword:

    Args:
        against: the run that rules such as "accuracy drops by more than 2 points" compare with.
        mode: "shown" or "not-ruled-out", in place of the option --evalwright-gate.

    Returns:
        The gate, where every rule passed.
    """

    def check(
        run: Run | str | Path,
        *rules: str,
        against: Run | str | Path | None = None,
        mode: str | None = None,
    ) -> Gate:
        __tracebackhide__ = True
        from evalwright.core.errors import UsageError

        try:
            gate = _judge(request.config, run, rules, against, mode)
        except UsageError as error:
            pytest.fail(str(error), pytrace=False)
        for outcome in gate.outcomes:
            verdict = "failed" if outcome.failed else "passed"
            sentence = (
                f"{request.node.name}: {verdict}: {outcome.rule}. {outcome.sentence}"
            )
            request.config.stash[_SENTENCES].append(sentence)
            record_property("evalwright", sentence)
        if gate.failed:
            failed = [
                f"{outcome.rule}: {outcome.sentence}"
                for outcome in gate.outcomes
                if outcome.failed
            ]
            pytest.fail("\n".join(failed), pytrace=False)
        return gate

    return check


def _judge(
    config: pytest.Config,
    run: Run | str | Path,
    rules: tuple[str, ...],
    against: Run | str | Path | None,
    mode: str | None,
) -> Gate:
    from evalwright.analysis.gate import judge, parse_gate_rule
    from evalwright.api import open_run
    from evalwright.core.errors import ConfigurationError, check_known

    chosen_mode: Any = mode or config.getoption("--evalwright-gate")
    check_known("mode of a gate", [chosen_mode], MODES)
    parsed = [parse_gate_rule(rule) for rule in rules]
    if not parsed:
        raise ConfigurationError(
            "evalwright_gate takes at least one rule, for example 'accuracy is below 80%'."
        )
    comparing = [
        rule.text
        for rule in parsed
        if not rule.counts_missing and rule.verb not in ("below", "above")
    ]
    if comparing and against is None:
        raise ConfigurationError(
            f"The rule '{comparing[0]}' compares two runs: name the other one with against=."
        )
    runs_folder = config.getoption("--evalwright-runs")
    candidate = open_run(run, runs_folder)
    reference = candidate if against is None else open_run(against, runs_folder)
    return judge(reference, candidate, parsed, mode=chosen_mode)
