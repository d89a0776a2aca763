"""Joins a model's judgments and summaries, and splits them into the groups that the engine reports.

The engine joins on `summary_uid`, which is not a key: equal summaries of different articles may
share one, so a uid with k judgments and m summaries counts k * m times. Here the k-th judgment of a
uid belongs to its k-th summary, in the order in which the judge went through the articles; `joined`
keeps the engine's own join.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalwright.compat.hhem import engine_files
from evalwright.compat.hhem.engine_files import Folder, Judgment, Published, Summary


@dataclass(frozen=True, slots=True)
class Row:
    """One article of a group, with its judgment, its summary, or both."""

    judgment: Judgment | None
    summary: Summary | None

    @property
    def article(self) -> str:
        """The article's id, "" if no file has it."""
        if self.summary is not None:
            return self.summary.article
        return self.judgment.article if self.judgment else ""


@dataclass(frozen=True, slots=True)
class Group:
    """One line of the engine's report: a model and date code, judged on one day by one judge.

    summary_date: "" if unknown. rows: each judgment once, then summaries that were never judged.
    joined: each judgment with the number of times that the engine counts it. older: number of the
    model's groups that are left out.
    """

    folder: Folder
    model: str
    date_code: str
    summary_date: str
    judgment_date: str
    version: str
    rows: tuple[Row, ...]
    joined: tuple[tuple[Judgment, int], ...]
    published: Published | None
    notes: tuple[str, ...] = ()
    older: int = 0

    @property
    def name(self) -> str:
        """`company/model-datecode`, as on the engine's leaderboard."""
        code = f"-{self.date_code}" if self.date_code else ""
        model = self.model or self.folder.name
        return f"{self.folder.company}/{model}" + (
            "" if code and model.endswith(code) else code
        )

    @property
    def articles(self) -> list[str] | None:
        """The rows' article ids; None if any row has none."""
        ids = [row.article for row in self.rows]
        return ids if all(ids) else None


DateKey = tuple[str, str]
"""Date code and summary date."""


def split_groups(folder: Folder, *, every: bool = False) -> list[Group]:
    """A model's groups: for each date code the last judged one, or all of them.

    This matches the engine's leaderboard, except that the engine loses date codes which its
    configuration does not name.
    """
    batches: dict[tuple[str, str], list[Judgment]] = {}
    for judgment in engine_files.read_judgments(folder):
        batches.setdefault((judgment.date, judgment.version), []).append(judgment)
    summaries = engine_files.read_summaries(folder)
    published = engine_files.read_published(folder)
    groups: list[Group] = []
    for batch in batches.values():
        uids = {summary.uid for summary in summaries or ()}
        if summaries and any(judgment.uid in uids for judgment in batch):
            groups += _with_summaries(folder, batch, summaries, published)
        else:
            groups += _without_summaries(folder, batch, bool(summaries), published)
    return groups if every else _select_latest(groups)


def _select_latest(groups: Sequence[Group]) -> list[Group]:
    by_code: dict[str, list[Group]] = {}
    for group in groups:
        by_code.setdefault(group.date_code, []).append(group)
    latest = []
    for code_groups in by_code.values():
        last = max(
            code_groups,
            key=lambda group: (
                group.judgment_date,
                group.summary_date,
                len(group.rows),
            ),
        )
        latest.append(replace(last, older=len(code_groups) - 1))
    return latest


# -- with summaries --------------------------------------------------------------------


def _with_summaries(
    folder: Folder,
    batch: Sequence[Judgment],
    summaries: Sequence[Summary],
    published: Sequence[Published],
) -> list[Group]:
    # The summaries as the judge went through them: as they are, or by article.
    in_order = summaries
    if [summary.uid for summary in summaries] != [judgment.uid for judgment in batch]:
        in_order = sorted(
            summaries, key=lambda summary: (len(summary.article), summary.article)
        )
    rows, orphans, unjudged = _link_summaries(batch, in_order)
    sizes = Counter((summary.date_code, summary.date) for summary in summaries)
    copies = Counter(
        (summary.uid, summary.date_code, summary.date) for summary in summaries
    )
    models = {(summary.date_code, summary.date): summary.model for summary in summaries}
    largest = max(rows, key=lambda date_key: sizes[date_key])
    groups = []
    for date_key in rows:
        notes = []
        together = list(rows[date_key])
        if date_key == largest and orphans:
            together += [Row(judgment, None) for judgment in orphans]
            problem = (
                "judgments of summaries that are not in the file, without an article"
            )
            notes.append(f"{problem}: {len(orphans)}")
        if unjudged_summaries := unjudged.get(date_key):
            together += [Row(None, summary) for summary in unjudged_summaries]
            notes.append(f"summaries that were never judged: {len(unjudged_summaries)}")
        published_line = _find_published(published, batch[0], *date_key)
        if published and published_line is None:
            notes.append(
                "the engine published nothing for this date code and these dates"
            )
        elif not published:
            notes.append("the engine published nothing for this model")
        joined = [
            (judgment, copies[judgment.uid, *date_key])
            for judgment in batch
            if copies[judgment.uid, *date_key]
        ]
        model = (published_line.model if published_line else "") or models[date_key]
        dates = *date_key, batch[0].date, batch[0].version
        groups.append(
            Group(
                folder,
                model,
                *dates,
                tuple(together),
                tuple(joined),
                published_line,
                tuple(notes),
            )
        )
    return groups


def _link_summaries(
    batch: Sequence[Judgment], summaries: Sequence[Summary]
) -> tuple[dict[DateKey, list[Row]], list[Judgment], dict[DateKey, list[Summary]]]:
    """Rows by date, judgments without a summary, and summaries without a judgment by date."""
    waiting: dict[str, list[Summary]] = {}
    for summary in summaries:
        waiting.setdefault(summary.uid, []).append(summary)
    n_used: Counter[str] = Counter()
    rows: dict[DateKey, list[Row]] = {}
    orphans = []
    for judgment in batch:
        same_uid = waiting.get(judgment.uid)
        if same_uid is None:
            orphans.append(judgment)
            continue
        # A summary that was judged more often than it was written is judged again.
        summary = same_uid[min(n_used[judgment.uid], len(same_uid) - 1)]
        n_used[judgment.uid] += 1
        rows.setdefault((summary.date_code, summary.date), []).append(
            Row(judgment, summary)
        )
    unjudged: dict[DateKey, list[Summary]] = {}
    for uid, same_uid in waiting.items():
        for summary in same_uid[n_used[uid] :]:
            unjudged.setdefault((summary.date_code, summary.date), []).append(summary)
    return rows, orphans, unjudged


# -- without ---------------------------------------------------------------------------


def _without_summaries(
    folder: Folder,
    batch: Sequence[Judgment],
    summaries: bool,
    published: Sequence[Published],
) -> list[Group]:
    """Split a batch by the date codes of its judgments, which only old files have.

    summaries: whether the file has summaries, of other judgments.
    """
    codes: dict[str | None, list[Judgment]] = {}
    for judgment in batch:
        codes.setdefault(judgment.date_code, []).append(judgment)
    groups = []
    for code, judgments in codes.items():
        notes = (
            ["none of the summaries in the file is one of those judged"]
            if summaries
            else []
        )
        first = judgments[0]
        matching_lines = [
            line
            for line in published
            if line.judgment_date == first.date and code in (None, line.date_code)
        ]
        matching_lines = [
            line for line in matching_lines if line.version == first.version
        ] or matching_lines
        published_line = matching_lines[0] if len(matching_lines) == 1 else None
        if len(matching_lines) > 1:
            problem = "summaries of several dates were judged on one day"
            notes.append(
                f"{problem}, and without the summaries a judgment's date is unknown"
            )
        elif not matching_lines:
            notes.append("the engine published nothing for this judgment")
        any_line = published_line or next(iter(matching_lines or published), None)
        count = Counter(judgment.uid for judgment in judgments)
        # The engine's join, as it would be with summaries of the same uids.
        joined = [(judgment, count[judgment.uid]) for judgment in judgments]
        date_code = code
        if date_code is None:
            date_code = any_line.date_code if any_line else ""
        dates = (
            date_code,
            published_line.summary_date if published_line else "",
            first.date,
            first.version,
        )
        rows = tuple(Row(judgment, None) for judgment in judgments)
        model = any_line.model if any_line else ""
        groups.append(
            Group(
                folder, model, *dates, rows, tuple(joined), published_line, tuple(notes)
            )
        )
    return groups


def _find_published(
    published: Sequence[Published],
    judgment: Judgment,
    date_code: str,
    summary_date: str,
) -> Published | None:
    dates = (date_code, summary_date, judgment.date)
    lines = [
        line
        for line in published
        if (line.date_code, line.summary_date, line.judgment_date) == dates
    ]
    return next(
        (line for line in lines if line.version == judgment.version),
        lines[0] if lines else None,
    )


# -- the data set ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DataSet:
    """The number of articles in the data set, and how it is known.

    articles: slices by article id, if a CSV has them.
    """

    size: int
    size_source: str
    articles: Mapping[str, Mapping[str, str]] | None = None


def measure_dataset(
    group: Group,
    lengths: Sequence[int],
    articles: Mapping[str, Mapping[str, str]] | None,
) -> DataSet:
    """Determine the data set of a group. lengths: number of articles in each group of its tree."""
    if articles is not None:
        return DataSet(len(articles), "the articles' CSV", articles)
    if len(lengths) > 1:
        return DataSet(max(lengths), f"the longest of {len(lengths)} runs in the tree")
    return DataSet(
        count_articles(group), "this run alone, so lost rows cannot be counted"
    )


def count_articles(group: Group) -> int:
    """The number of distinct articles in a group, or of rows if articles are unknown."""
    articles = group.articles
    return len(set(articles)) if articles else len(group.rows)
