"""`evalwright doctor`: does it work here, with the real providers, the hub and the devices?"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.options import (
    AS_JSON,
    PLUGINS,
    flag,
    only_with,
    option,
    repeatable_option,
)
from evalwright.cli.output import echo, print_json

if TYPE_CHECKING:
    from evalwright.engine.budget import Limits
    from evalwright.evaluation.doctor.checks import Check
    from evalwright.evaluation.doctor.providers import PlannedRequest

AREAS = ("providers", "hub", "devices")


@click.command()
@flag(
    "--live",
    "Also send requests to providers, fetch from the hub and compute on the devices.",
)
@repeatable_option(
    "--only",
    "PART",
    "With --live: of providers, hub and devices, only this.",
    type=click.Choice(AREAS),
)
@repeatable_option(
    "--model models",
    "MODEL",
    "With --live: this model, in place of an example of each provider with a key.",
)
@option("--budget", "SUM", "With --live: send no more than this. Default: 0.05 USD.")
@flag(
    "--unpriced",
    "With --live: also models whose price is not known, which a sum of dollars cannot"
    " hold.",
)
@flag("--yes", "With --live: do not ask before sending.")
@option(
    "--out",
    "FILE",
    "With --live: where the report goes, as JSON. Default: doctor.json.",
)
@PLUGINS
@AS_JSON
def doctor(live: bool, as_json: bool, **params: Any) -> int:
    """Say what works here: versions, libraries, store, keys and devices; with --live real
    providers, hub and devices.

    Without --live nothing is sent. With it, what is sent and the most that it can cost are shown
    first. The report names no key. Exit code 1 where something fails.
    """
    from evalwright.cli.arguments import load_plugins
    from evalwright.evaluation.doctor.checks import Report
    from evalwright.evaluation.doctor.here import check_here

    only_with(
        only="live",
        models="live",
        budget="live",
        unpriced="live",
        yes="live",
        out="live",
    )
    load_plugins(params["plugins"])
    if live:
        _check_can_be_written(Path(params["out"] or "doctor.json"))
    started = datetime.now(UTC).isoformat(timespec="seconds")
    show = (lambda check: None) if as_json else _show
    checks = _show_each(check_here(), show)
    ceiling: dict[str, float] = {}
    spent: dict[str, float] = {}
    if live:
        live_checks, ceiling, spent = _run_live_checks(params, as_json, show)
        checks += live_checks
    report = Report(started, checks, ceiling, spent)
    record = report.as_dict()
    if live:
        _write(Path(params["out"] or "doctor.json"), record)
    if as_json:
        print_json(record)
    else:
        echo(
            ", ".join(
                f"{number} {outcome}"
                for outcome, number in report.counts().items()
                if number
            )
        )
        if live:
            echo(f"Report: {params['out'] or 'doctor.json'} (no keys in it)")
    return int(report.has_failures)


def _run_live_checks(
    params: dict[str, Any], as_json: bool, show: Callable[[Check], None]
) -> tuple[list[Check], dict[str, float], dict[str, float]]:
    """Run the live checks; return them, the ceiling, and what was spent."""
    from evalwright.evaluation.budgets import parse_budget
    from evalwright.evaluation.doctor.devices import check_devices
    from evalwright.evaluation.doctor.hub import check_hub
    from evalwright.evaluation.doctor.providers import (
        DEFAULT_CEILING,
        plan_requests,
        send_requests,
    )

    areas = params["only"] or AREAS
    if params["models"] and "providers" not in areas:
        raise click.UsageError(
            "--model has no effect without the part 'providers': leave one of them out."
        )
    limits = parse_budget([params["budget"] or DEFAULT_CEILING])
    checks: list[Check] = []
    spent: dict[str, float] = {}
    if "providers" in areas:
        planned, skipped = plan_requests(params["models"], unpriced=params["unpriced"])
        checks += _show_each(skipped, show)
        if planned and _confirm_sending(planned, limits, params["yes"]):
            sent_checks, budget = send_requests(
                planned, limits, lambda sentence: echo(sentence, error=True)
            )
            checks += _show_each(sent_checks, show)
            spent = budget.spent.as_dict()
            if not as_json:
                echo(f"Spent: {_format_sums(spent)}")
        elif planned:
            checks += _show_each(_skip_declined(planned), show)
        elif not skipped and not as_json:
            echo("No provider's key is set, so nothing is sent to providers.")
    if "hub" in areas:
        checks += _show_each(check_hub(), show)
    if "devices" in areas:
        checks += _show_each(check_devices(), show)
    return checks, limits.as_dict(), spent


def _confirm_sending(
    planned: Sequence[PlannedRequest], limits: Limits, yes: bool
) -> bool:
    """Show what is to be sent and the ceiling, and ask whether to continue.

    Raises:
        UsageError: there is no terminal to ask on.
    """
    dollars = sum(request.dollars or 0.0 for request in planned)
    subjects = list(dict.fromkeys(request.subject for request in planned))
    unpriced = list(
        dict.fromkeys(request.subject for request in planned if request.dollars is None)
    )
    echo(f"To be sent: {len(planned)} requests to {', '.join(subjects)}.", error=True)
    echo(
        f"They cost ${dollars:.4f} at the most, and no more than"
        f" {_format_sums(limits.as_dict())} is spent.",
        error=True,
    )
    if unpriced:
        tokens = sum(request.tokens for request in planned if request.dollars is None)
        echo(
            f"Of unknown price, at most {tokens:,} tokens: {', '.join(unpriced)}.",
            error=True,
        )
    if yes:
        return True
    try:
        interactive = sys.stdin.isatty()
    except (AttributeError, ValueError):
        interactive = False
    if not interactive:
        raise click.UsageError(
            "Nobody can be asked whether to send this, because there is no terminal:"
            " add --yes."
        )
    with suppress(click.Abort):
        return click.confirm("Send them?", err=True)
    return False


def _skip_declined(planned: Sequence[PlannedRequest]) -> list[Check]:
    from evalwright.evaluation.doctor.checks import Check

    return [
        Check("provider", request.subject, request.name, "skipped", "you said no")
        for request in planned
    ]


def _show_each(checks: Any, show: Callable[[Check], None]) -> list[Check]:
    """Collect the checks, and show each as soon as it is done."""
    checks_shown = []
    for check in checks:
        show(check)
        checks_shown.append(check)
    return checks_shown


def _show(check: Check) -> None:
    echo(
        f" {check.subject}: {check.name}{f'; {check.why}' if check.why else ''}",
        before=f"{check.outcome:<8}",
        bold=True,
    )


def _format_sums(sums: dict[str, float]) -> str:
    words = {
        "dollars": "${:,.4f}",
        "requests": "{:,.0f} requests",
        "tokens": "{:,.0f} tokens",
    }
    return (
        ", ".join(words[name].format(number) for name, number in sums.items())
        or "nothing"
    )


def _check_can_be_written(file: Path) -> None:
    """Raise ConfigurationError, before anything is sent, if the report cannot be written."""
    from evalwright.core.errors import ConfigurationError

    folder = next(parent for parent in file.absolute().parents if parent.exists())
    can_write = folder.is_dir() and os.access(folder, os.W_OK)
    why = ""
    if file.is_dir():
        why = "it is a folder"
    elif not can_write:
        why = f"{folder} cannot be written"
    if why:
        raise ConfigurationError(
            f"The report cannot be written to '{file}': {why}. Name another file with"
            " --out."
        )


def _write(file: Path, report: dict[str, Any]) -> None:
    from evalwright.core.errors import ConfigurationError
    from evalwright.tasks.safe_files import write_text

    try:
        write_text(
            file.resolve(), json.dumps(report, indent=1, ensure_ascii=False) + "\n"
        )
    except OSError as error:
        raise ConfigurationError(
            f"The report cannot be written to '{file}': {error.strerror}. Name another"
            " file with --out."
        ) from None
