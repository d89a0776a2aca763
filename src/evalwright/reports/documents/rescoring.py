"""What scoring runs again costs, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from evalwright.analysis.words import listed
from evalwright.evaluation.rescoring_price import RescoringPrice
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.runs.reader import Run


def price_document(
    prices: Sequence[RescoringPrice], without_samples: Mapping[str, str]
) -> doc.Document:
    """Show what scoring runs again takes.

    Args:
        prices: by run.
        without_samples: by name, why a run cannot be scored again.
    """
    columns = [
        doc.Column("Run", folds=True, key=True),
        doc.Column("Requests", right=True),
        doc.Column("Stored", right=True),
        doc.Column("Tokens in", right=True),
        doc.Column("Tokens out", right=True),
        doc.Column("Cost", right=True),
        doc.Column("At most", right=True),
    ]
    rows: list[Sequence[doc.Content]] = [_price_row(price) for price in prices]
    if len(prices) > 1:
        rows.append(_total_row(prices))
    names = list(
        dict.fromkeys(name for price in prices for name in price.models.values())
    )
    blocks: list[doc.Block] = []
    if rows:
        blocks.append(doc.Table(columns, rows, "What scoring again takes"))
    if without_samples:
        blocks.append(doc.Notes(list(without_samples.values()), "warn"))
    blocks.append(doc.Notes(_notes(prices)))
    judges = f" by {listed(names, 4)}" if names else ""
    return doc.Document(
        f"Scoring {numbers.counted(len(prices), 'run')} again{judges}", blocks
    )


def _price_row(price: RescoringPrice) -> Sequence[doc.Content]:
    if price.done:
        return (
            doc.Cell(price.run, name=True),
            doc.Cell("done", "quiet"),
            "",
            "",
            "",
            "",
            "",
        )
    return (
        doc.Cell(price.run, name=True),
        numbers.count(price.requests),
        numbers.count(price.stored),
        numbers.tokens(price.input_tokens),
        numbers.tokens(price.output_tokens),
        _money(price.dollars),
        _money(price.most_dollars),
    )


def _total_row(prices: Sequence[RescoringPrice]) -> Sequence[doc.Content]:
    return (
        doc.Cell("all", "strong"),
        doc.Cell(numbers.count(sum(price.requests for price in prices)), "strong"),
        numbers.count(sum(price.stored for price in prices)),
        numbers.tokens(sum(price.input_tokens for price in prices)),
        numbers.tokens(sum(price.output_tokens for price in prices)),
        doc.Cell(_money(total(price.dollars for price in prices)), "strong"),
        _money(total(price.most_dollars for price in prices)),
    )


def total(amounts: Iterable[float | None]) -> float | None:
    """Add up amounts; None if one is not known."""
    listed_amounts = list(amounts)
    if any(amount is None for amount in listed_amounts):
        return None
    return sum(amount for amount in listed_amounts if amount is not None)


def _money(dollars: float | None) -> str:
    return "not known" if dollars is None else f"${dollars:,.4g}"


def _notes(prices: Sequence[RescoringPrice]) -> list[str]:
    notes = ["Nothing was sent. Equal requests of several runs are sent once."]
    n_requests = sum(price.requests for price in prices)
    n_measured = sum(price.n_measured for price in prices)
    if n_measured:
        notes.append(
            f"Tokens are those that earlier judges' replies report for"
            f" {numbers.count(n_measured)} of {numbers.counted(n_requests, 'request')};"
            " another tokenizer counts others."
        )
    if n_measured < n_requests:
        notes.append(
            "Where no judge replied to the same request before, tokens are guessed from its"
            " size, and requests that depend on a reply are not counted."
        )
    if any(price.dollars is None for price in prices):
        notes.append(
            "The price of a judge is not known: give it with --price IN/OUT, in US dollars"
            " per million tokens."
        )
    return notes


def rescored_document(
    new_runs: Sequence[Run], done: Sequence[Run], old_by_new: Mapping[str, Run]
) -> doc.Document:
    """Show the runs that were scored again beside the old ones.

    Args:
        new_runs: the new runs.
        done: new runs that were there already.
        old_by_new: the old runs, by the ids of the new ones.
    """
    columns = doc.columns("New run*", "Model", "Score", "Before", "Missing>", "Cost>")
    rows: list[Sequence[doc.Content]] = []
    for run in (*new_runs, *done):
        old = old_by_new[run.id]
        rows.append(
            (
                doc.Cell(run.id, name=True),
                doc.Cell(run.label, name=True),
                _main_number(run),
                _main_number(old),
                numbers.count(run.n_missing),
                "" if run in done else numbers.money(run.data["usage"].get("cost")),
            )
        )
    blocks: list[doc.Block] = [doc.Table(columns, rows, "Runs scored again")]
    if done:
        names = listed([run.id for run in done], 5)
        blocks.append(doc.Notes([f"Already there, and left as they are: {names}."]))
    n_runs = numbers.counted(len(new_runs), "run")
    return doc.Document(f"Scored again: {n_runs}", blocks)


def _main_number(run: Run) -> doc.Content:
    main = run.tasks[0].main if run.tasks else None
    if main is None:
        return ""
    return doc.Cell(doc.Number(main.estimate, numbers.unit_of(main.kind)))
