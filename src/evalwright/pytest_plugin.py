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

import ast
import inspect
import os
import sys
import textwrap
from collections.abc import Generator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from evalwright.analysis.gate import Gate
    from evalwright.core.tasks import Task
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
        help="Whether a rule fails when the data show that it is broken, or whenever they do not"
        " rule that out."
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


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Show wrong usage of `evaluate` and its like at the test's own line, without our frames."""
    outcome = yield
    if outcome.excinfo is None or item.config.getoption("fulltrace"):
        return
    if not hasattr(outcome, "force_exception"):
        return  # pluggy before 1.1: the traceback stays long
    error = outcome.excinfo[1]
    if not _is_usage_error(error):
        return
    # The first frames are pytest's: it leaves them out by itself.
    error.__traceback__ = _without_own_frames(error.__traceback__)
    error.__suppress_context__ = True
    outcome.force_exception(error)


def _is_usage_error(error: BaseException) -> bool:
    """Tell whether an error is a UsageError, without importing the package for it."""
    errors = sys.modules.get("evalwright.core.errors")
    return errors is not None and isinstance(error, errors.UsageError)


def _without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return the traceback up to the call of the package; all of it if nothing else is in it."""
    package = str(Path(__file__).parent)
    frames = list[TracebackType]()
    seen_tests = False
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        is_own = filename.startswith(package + os.sep)
        if is_own and seen_tests:
            break
        seen_tests = seen_tests or not (is_own or _is_of_pytest(filename))
        frames.append(traceback)
        traceback = traceback.tb_next
    kept: TracebackType | None = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _is_of_pytest(filename: str) -> bool:
    return any(name in Path(filename).parts for name in ("_pytest", "pluggy"))


class GateFixture:
    """What the fixture `evalwright_gate` is: call it with a run and its rules.

    Args:
        request: the request of the test.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    def __call__(
        self,
        run: Run | str | Path,
        *rules: str | Sequence[str],
        against: Run | str | Path | None = None,
        mode: str | None = None,
    ) -> Gate:
        """Fail the test if the run breaks a rule.

        Args:
            run: the run: a Run, its folder or its name.
            *rules: rules such as "accuracy is below 80%", one by one or as a list.
            against: the run that rules such as "accuracy drops by more than 2 points" compare
                with.
            mode: "shown" or "not-ruled-out", in place of the option --evalwright-gate.

        Returns:
            The gate, where every rule passed.
        """
        __tracebackhide__ = True
        from evalwright.core.errors import UsageError

        usage_message = ""
        try:
            gate = _judge(self._request.config, run, rules, against, mode)
        except UsageError as error:
            usage_message = str(error)
        if usage_message:
            pytest.fail(usage_message, pytrace=False)

        for outcome in gate.outcomes:
            sentence = (
                f"{self._request.node.name}: {outcome.verdict}: {outcome.rule}."
                f" {outcome.sentence}"
            )
            self._request.config.stash[_SENTENCES].append(sentence)
            # What record_property does, which warns of every report but the oldest kind.
            self._request.node.user_properties.append(("evalwright", sentence))
        if gate.failed:
            failed = [
                f"{outcome.rule}: {outcome.sentence}"
                for outcome in gate.outcomes
                if outcome.failed
            ]
            pytest.fail("\n".join(failed), pytrace=False)
        return gate

    def check_rules(self, *rules: str | Sequence[str], tasks: Any = ()) -> None:
        """Fail the test if a rule cannot be read or names what is no metric, before a run is paid.

        Args:
            *rules: the rules, as for the gate.
            tasks: names, files or Task objects, as for `evaluate`, whose metrics the rules may
                name; without them only the form of the rules is checked.
        """
        __tracebackhide__ = True
        from evalwright.core.errors import UsageError

        usage_message = ""
        try:
            _check_rules(rules, tasks)
        except UsageError as error:
            usage_message = str(error)
        if usage_message:
            pytest.fail(usage_message, pytrace=False)


@pytest.fixture
def evalwright_gate(request: pytest.FixtureRequest) -> GateFixture:
    """evalwright_gate(run, *rules, against=None, mode=None): fail the test if a run breaks a rule.

    run: a Run, its folder or its name. rules: such as "accuracy is below 80%", one by one or as a
    list. against: the run that rules such as "accuracy drops by more than 2 points" compare with.
    mode: "shown" or "not-ruled-out", in place of the option --evalwright-gate.
    It returns the gate, where every rule passed.

    evalwright_gate.check_rules(*rules, tasks=...) finds mistakes in rules before a run is paid.
    """
    _check_literal_rules(request)
    return GateFixture(request)


def _check_literal_rules(request: pytest.FixtureRequest) -> None:
    """Fail a test before it runs, and pays for answers, if a rule in its text cannot be read."""
    from evalwright.core.errors import UsageError

    usage_message = ""
    try:
        _parse_literal_rules(request.function)
    except UsageError as error:
        usage_message = str(error)
    if usage_message:
        pytest.fail(usage_message, pytrace=False)


def _parse_literal_rules(test: Any) -> None:
    """Parse the rules that a test's text passes to the gate; those of variables are not seen."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(test)))
    except (OSError, TypeError, SyntaxError):
        return  # there is no text, as in an interactive session: the gate itself will tell
    texts = [
        constant.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and _calls_the_gate(call)
        for argument in call.args[1:]
        for constant in _listed_nodes(argument)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    ]
    if not texts:
        return
    from evalwright.analysis.gate import parse_gate_rule

    for text in texts:
        parse_gate_rule(text)


def _calls_the_gate(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "evalwright_gate"


def _listed_nodes(argument: ast.expr) -> list[ast.expr]:
    """Return the elements of a list that is written out, or the argument itself."""
    if isinstance(argument, ast.List | ast.Tuple):
        return argument.elts
    return [argument]


def _rule_texts(rules: Sequence[str | Sequence[str]]) -> list[str]:
    """List the rules of a call, which may be lists themselves.

    Raises:
        ConfigurationError: there is none, or one is not a text.
    """
    from evalwright.core.errors import ConfigurationError
    from evalwright.tasks.yaml_files import kind_of

    texts = list[str]()
    for rule in rules:
        texts += [rule] if isinstance(rule, str) else _listed_rules(rule)
    for text in texts:
        if not isinstance(text, str):
            raise ConfigurationError(
                f"A rule is a text such as 'accuracy is below 80%', not {kind_of(text)}."
            )
    if not texts:
        raise ConfigurationError(
            "evalwright_gate takes at least one rule, for example 'accuracy is below 80%'."
        )
    return texts


def _listed_rules(rules: Any) -> list[Any]:
    """Return the rules of a list; what is no list stands for itself, to be named in a message."""
    return list(rules) if isinstance(rules, list | tuple) else [rules]


def _check_rules(rules: Sequence[str | Sequence[str]], tasks: Any) -> None:
    from evalwright.analysis.gate import check_rule_names, parse_gate_rule

    parsed = [parse_gate_rule(rule) for rule in _rule_texts(rules)]
    if tasks:
        check_rule_names(parsed, _load_tasks(tasks))


def _load_tasks(tasks: Any) -> list[Task]:
    """Load tasks that are named as in `evaluate`."""
    from evalwright.core.tasks import Task
    from evalwright.evaluation.settings import as_list
    from evalwright.tasks.loading import load_tasks, names_like

    loaded = list[Task]()
    for task in as_list(tasks):
        if isinstance(task, Task):
            loaded.append(task)
            continue
        for name in names_like(str(task), {}):
            loaded += load_tasks(name)
    return loaded


def _judge(
    config: pytest.Config,
    run: Run | str | Path,
    rules: Sequence[str | Sequence[str]],
    against: Run | str | Path | None,
    mode: str | None,
) -> Gate:
    from evalwright.analysis.gate import judge, parse_gate_rule
    from evalwright.api import open_run
    from evalwright.core.errors import ConfigurationError, check_known

    chosen_mode: Any = mode or config.getoption("--evalwright-gate")
    check_known("mode of a gate", [chosen_mode], MODES)
    parsed = [parse_gate_rule(rule) for rule in _rule_texts(rules)]
    comparing = [rule.text for rule in parsed if rule.compares]
    if comparing and against is None:
        raise ConfigurationError(
            f"The rule '{comparing[0]}' compares two runs: name the other one with against=."
            " A rule about this run alone: 'accuracy is below 80%'."
        )
    runs_folder = config.getoption("--evalwright-runs")
    candidate = open_run(run, runs_folder)
    reference = candidate if against is None else _open_reference(against, runs_folder)
    return judge(reference, candidate, parsed, mode=chosen_mode)


def _open_reference(against: Run | str | Path, runs_folder: str) -> Run:
    """Open the run to compare with; where there is none, say how a reference is made and kept."""
    from evalwright.analysis.gate import explain_reference
    from evalwright.api import open_run
    from evalwright.core.errors import UnknownName, UsageError

    try:
        return open_run(against, runs_folder)
    except UnknownName as error:
        message = f"{error} {explain_reference(str(against), runs_folder)}"
    raise UsageError(message)
