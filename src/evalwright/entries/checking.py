"""Every problem of entries against their board: nothing is sent, and nothing of them is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalwright.core.errors import EvalwrightError, closest
from evalwright.core.text import printable
from evalwright.entries.addresses import allowing_address, wrong_address
from evalwright.entries.board_file import LOCAL_PROVIDERS, BoardFile
from evalwright.entries.entry_file import Entry
from evalwright.entries.imitation import KnownEntries
from evalwright.entries.pricing import RunPrice, price_run
from evalwright.entries.problems import Problem, shown_file, shown_text


@dataclass(frozen=True, slots=True)
class CheckedEntries:
    """What a check says.

    Attributes:
        entries: the entries that were checked.
        problems: everything that is wrong with them, in order of file and line.
        prices: the price of a whole run, by the name of an entry without problems.
    """

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]
    prices: Mapping[str, RunPrice]


def check_entries(
    board: BoardFile,
    proposed: Sequence[Entry],
    present: Sequence[Entry] = (),
    file_problems: Sequence[Problem] = (),
) -> CheckedEntries:
    """Find every problem of entries.

    Args:
        board: the board.
        proposed: the entries to check.
        present: entries of the board beside them; of the same name, the proposed one counts.
        file_problems: what is wrong with their files already; such entries are not priced.
    """
    names = {entry.name for entry in proposed}
    known_entries = KnownEntries()
    for entry in present:
        if entry.name not in names:
            known_entries.add(entry)
    wrong_files = {problem.file for problem in file_problems}
    problems = [*file_problems]
    prices: dict[str, RunPrice] = {}
    for entry in proposed:
        own_problems = [
            *_check_model(board, entry),
            *_check_address(board, entry),
            *_check_arguments(board, entry),
            *_check_names(entry, known_entries),
        ]
        if not own_problems and entry.file not in wrong_files:
            price, own_problems = _check_price(board, entry)
            if price is not None and not own_problems:
                prices[entry.name] = price
        problems += own_problems
        known_entries.add(entry)
    return CheckedEntries(tuple(proposed), tuple(sorted(set(problems))), prices)


def find_left_out(
    board: BoardFile, entries: Sequence[Entry]
) -> dict[str, list[Problem]]:
    """Find the entries that the board cannot have, so that the others can be run without them.

    No model is looked up or opened, so prices are not among the problems.

    Args:
        board: the board.
        entries: its entries; of two that look alike, the later one is left out.

    Returns:
        The problems, by the name of an entry that has any.
    """
    known_entries = KnownEntries()
    left_out: dict[str, list[Problem]] = {}
    for entry in entries:
        problems = [
            *_check_model(board, entry),
            *_check_address(board, entry),
            *_check_arguments(board, entry),
            *_check_names(entry, known_entries),
        ]
        if problems:
            left_out[entry.name] = problems
        else:
            known_entries.add(entry)
    return left_out


def check_task_folder(board: BoardFile) -> list[Problem]:
    """Find out whether the folder of another framework's tasks is there, if the board has one."""
    name = board.suite.dialect.get("task_root")
    if not name or Path(name).is_dir():
        return []
    sentence = (
        f"The task folder {shown_text(name)} does not exist. It is a clone of the other"
        " framework's repository, such as: git submodule add"
        f" https://github.com/aisingapore/SEA-HELM {printable(str(name))} (and in a clone of"
        " the board: git submodule update --init)"
    )
    location = board.document.at(("suite", "dialect", "task_root"))
    line = location.rpartition(":")[2]
    number = int(line) if line.isdigit() else 1
    return [Problem(shown_file(board.path.name), number, sentence)]


def check_price(board: BoardFile, entry: Entry) -> list[Problem]:
    """Find what is wrong with the price of an entry's whole run; the rest was checked before."""
    return _check_price(board, entry)[1]


def _check_model(board: BoardFile, entry: Entry) -> Iterator[Problem]:
    if not entry.model:  # the file's own problem
        return
    provider, _, name = entry.model.partition("/")
    allowed_providers = board.entries.providers
    if provider not in allowed_providers:
        close_names = closest(provider, allowed_providers)
        suggestion = f" Did you mean '{close_names[0]}'?" if close_names else ""
        yield entry.problem(
            "model",
            f"Models of {shown_text(provider)} are not on this board.{suggestion} It has:"
            f" {', '.join(allowed_providers)}.",
        )
        return
    if provider not in LOCAL_PROVIDERS or provider == "demo":
        return
    repository = name.partition("@")[0]
    if repository.count("/") != 1:
        yield entry.problem(
            "model",
            f"A model of '{provider}' is a repository of the hub:"
            f" {provider}/organisation/name, or {provider}/organisation/name@revision.",
        )
    elif Path(repository).exists():
        yield entry.problem(
            "model",
            f"'{repository}' is a folder here, and an entry names no folder.",
        )


def _check_address(board: BoardFile, entry: Entry) -> Iterator[Problem]:
    address = entry.base_url
    if not address:
        return
    allowed_addresses = tuple(board.entries.base_urls)
    if problem := wrong_address(address):
        yield entry.problem("base_url", f"The address {shown_text(address)} {problem}")
    elif allowing_address(address, allowed_addresses) is None:
        words = (
            f"It allows: {', '.join(allowed_addresses)}."
            if allowed_addresses
            else "It allows none."
        )
        yield entry.problem(
            "base_url",
            f"The address {shown_text(address)} is not one that the board allows. {words}"
            " Only a maintainer can add one, to base_urls in board.yaml.",
        )


def _check_arguments(board: BoardFile, entry: Entry) -> Iterator[Problem]:
    rules = board.entries.arguments
    for name, scalar in entry.arguments.items():
        key = f"arguments.{name}"
        if name not in rules:
            close_names = closest(name, rules)
            suggestion = f" Did you mean '{close_names[0]}'?" if close_names else ""
            own_key = " Write it as a key of its own." if name == "base_url" else ""
            allowed_arguments = (
                f"It allows: {', '.join(rules)}." if rules else "It allows none."
            )
            yield entry.problem(
                key,
                f"Entries cannot set '{name}'.{suggestion}{own_key} {allowed_arguments}",
            )
        elif refusal := rules[name].refuses(scalar):
            yield entry.problem(key, f"'{key}' {refusal}, not {shown_text(scalar)}.")


def _check_names(entry: Entry, known_entries: KnownEntries) -> Iterator[Problem]:
    if not entry.model:
        return
    if twin := known_entries.doubled_by(entry):
        yield entry.problem(
            "model",
            f"The entry '{twin.name}' has the same model with the same settings.",
        )
        return
    key = "label" if entry.label else "model"
    if lookalike := known_entries.alike(entry):
        yield entry.problem(
            key,
            f"{shown_text(entry.shown_name)} looks like {shown_text(lookalike.shown_name)}"
            f" of the entry '{lookalike.name}': give it a label that tells them apart.",
        )
    elif labelled := known_entries.named_by_label_of(entry):
        yield entry.problem(
            key,
            f"The label {shown_text(entry.label)} names the model of the entry"
            f" '{labelled.name}', {shown_text(labelled.model)}, and this is another one.",
        )
    elif imitator := known_entries.labelled_as(entry):
        yield entry.problem(
            key,
            f"The entry '{imitator.name}' has this model's name as its label,"
            f" {shown_text(imitator.label)}: a maintainer has to look at both.",
        )


def _check_price(
    board: BoardFile, entry: Entry
) -> tuple[RunPrice | None, list[Problem]]:
    try:
        price = price_run(board, entry)
    except EvalwrightError as error:
        reason = " ".join(printable(line) for line in str(error).splitlines()[:3])
        sentence = f"The whole run cannot be planned: {reason}"
        return None, [entry.problem("model", sentence)]
    if price.high is None and price.unbounded:
        sentence = (
            f"Nothing limits how long an answer of {shown_text(entry.model)} may be, so nobody"
            " can say what a run costs at most. Write arguments: {max_tokens: N}; a maintainer"
            " can write max_tokens into the task."
        )
        return price, [entry.problem("model", sentence)]
    if price.high is None:
        sentence = (
            f"The price of {shown_text(entry.model)} is not known, so nobody can say what"
            " a run costs. A maintainer can write it into board.yaml, under prices:"
            f" {entry.model}: INPUT/OUTPUT (US dollars per million tokens)."
        )
        return price, [entry.problem("model", sentence)]
    most_dollars = board.entries.most_dollars
    if price.high > most_dollars:
        sentence = (
            f"The whole run may cost {price.as_text()}, and the board's limit is"
            f" ${most_dollars:,.2f} (most_dollars in board.yaml): allow shorter answers, as with"
            " max_tokens, or ask a maintainer."
        )
        return price, [entry.problem("model", sentence)]
    return price, []
