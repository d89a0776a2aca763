"""Puts a model's judgments and summaries together, and apart again by what the engine reports as
one line.

The engine joins both on `summary_uid`, which is no key: equal summaries of different articles may
share one, so a row counted k times here and m times there counts k * m times. Here the k-th
judgment of a uid belongs to its k-th summary, in the order in which the judge went through the
articles; `joined` keeps what the engine's own join makes of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalwright.compat.hhem import files
from evalwright.compat.hhem.files import Folder, Judgment, Published, Summary


@dataclass(frozen=True, slots=True)
class Row:
    """One article of a group: its judgment, its summary, or both."""

    judgment: Judgment | None
    summary: Summary | None

    @property
    def article(self) -> str:
        """The article's id, "" where no file tells it."""
        if self.summary is not None:
            return self.summary.article
        return self.judgment.article if self.judgment else ""


@dataclass(frozen=True, slots=True)
class Group:
    """What the engine reports as one line: one model and date code, judged on one day by one judge.

    summary_date: "" where nothing tells it. rows: each judgment once, then summaries that were
    never judged. joined: judgments as the engine counts them, each with how often. older: groups of
    the model that are left out.
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
        """`company/model-datecode`, as the engine's board has it."""
        code = f"-{self.date_code}" if self.date_code else ""
        model = self.model or self.folder.name
        return f"{self.folder.company}/{model}" + (
            "" if code and model.endswith(code) else code
        )

    @property
    def articles(self) -> list[str] | None:
        """The rows' article ids, None where not every row has one."""
        found = [row.article for row in self.rows]
        return found if all(found) else None


Part = tuple[str, str]
"""Date code and summary date."""


def groups_of(folder: Folder, *, every: bool = False) -> list[Group]:
    """A model's groups: of each date code the one judged last, or all of them.

    That is what the engine's board shows, but for date codes that its configuration did not name:
    those it loses.
    """
    batches: dict[tuple[str, str], list[Judgment]] = {}
    for judgment in files.read_judgments(folder):
        batches.setdefault((judgment.date, judgment.version), []).append(judgment)
    summaries = files.read_summaries(folder)
    published = files.read_published(folder)
    groups: list[Group] = []
    for batch in batches.values():
        uids = {summary.uid for summary in summaries or ()}
        if summaries and any(judgment.uid in uids for judgment in batch):
            groups += _with_summaries(folder, batch, summaries, published)
        else:
            groups += _without_summaries(folder, batch, bool(summaries), published)
    return groups if every else _latest(groups)


def _latest(groups: Sequence[Group]) -> list[Group]:
    by_code: dict[str, list[Group]] = {}
    for group in groups:
        by_code.setdefault(group.date_code, []).append(group)
    out = []
    for several in by_code.values():
        last = max(
            several,
            key=lambda one: (one.judgment_date, one.summary_date, len(one.rows)),
        )
        out.append(replace(last, older=len(several) - 1))
    return out


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
        in_order = sorted(summaries, key=lambda one: (len(one.article), one.article))
    rows, orphans, unjudged = _linked(batch, in_order)
    sizes = Counter((summary.date_code, summary.date) for summary in summaries)
    copies = Counter((one.uid, one.date_code, one.date) for one in summaries)
    models = {(one.date_code, one.date): one.model for one in summaries}
    largest = max(rows, key=lambda part: sizes[part])
    out = []
    for part in rows:
        notes = []
        together = list(rows[part])
        if part == largest and orphans:
            together += [Row(judgment, None) for judgment in orphans]
            what = "judgments of summaries that are not in the file, without an article"
            notes.append(f"{what}: {len(orphans)}")
        if left := unjudged.get(part):
            together += [Row(None, summary) for summary in left]
            notes.append(f"summaries that were never judged: {len(left)}")
        said = _said(published, batch[0], *part)
        if published and said is None:
            notes.append(
                "the engine published nothing for this date code and these dates"
            )
        elif not published:
            notes.append("the engine published nothing for this model")
        joined = [
            (one, copies[one.uid, *part]) for one in batch if copies[one.uid, *part]
        ]
        model = (said.model if said else "") or models[part]
        when = *part, batch[0].date, batch[0].version
        out.append(
            Group(
                folder, model, *when, tuple(together), tuple(joined), said, tuple(notes)
            )
        )
    return out


def _linked(
    batch: Sequence[Judgment], summaries: Sequence[Summary]
) -> tuple[dict[Part, list[Row]], list[Judgment], dict[Part, list[Summary]]]:
    """Rows by part, judgments without a summary, and summaries without a judgment by part."""
    waiting: dict[str, list[Summary]] = {}
    for summary in summaries:
        waiting.setdefault(summary.uid, []).append(summary)
    taken: Counter[str] = Counter()
    rows: dict[Part, list[Row]] = {}
    orphans = []
    for judgment in batch:
        several = waiting.get(judgment.uid)
        if several is None:
            orphans.append(judgment)
            continue
        # A summary that was judged more often than it was written is judged again.
        summary = several[min(taken[judgment.uid], len(several) - 1)]
        taken[judgment.uid] += 1
        rows.setdefault((summary.date_code, summary.date), []).append(
            Row(judgment, summary)
        )
    unjudged: dict[Part, list[Summary]] = {}
    for uid, several in waiting.items():
        for summary in several[taken[uid] :]:
            unjudged.setdefault((summary.date_code, summary.date), []).append(summary)
    return rows, orphans, unjudged


# -- without ---------------------------------------------------------------------------


def _without_summaries(
    folder: Folder,
    batch: Sequence[Judgment],
    summaries: bool,
    published: Sequence[Published],
) -> list[Group]:
    """The batch by the date codes of its judgments, which only old files have. summaries: whether
    there are, of others.
    """
    codes: dict[str | None, list[Judgment]] = {}
    for judgment in batch:
        codes.setdefault(judgment.date_code, []).append(judgment)
    out = []
    for code, part in codes.items():
        notes = (
            ["none of the summaries in the file is one of those judged"]
            if summaries
            else []
        )
        first = part[0]
        fits = [
            one
            for one in published
            if one.judgment_date == first.date and code in (None, one.date_code)
        ]
        fits = [one for one in fits if one.version == first.version] or fits
        said = fits[0] if len(fits) == 1 else None
        if len(fits) > 1:
            what = "summaries of several dates were judged on one day"
            notes.append(
                f"{what}, and without the summaries a judgment's date is unknown"
            )
        elif not fits:
            notes.append("the engine published nothing for this judgment")
        any_one = said or next(iter(fits or published), None)
        count = Counter(judgment.uid for judgment in part)
        # The engine's join, as it would be with summaries of the same uids.
        joined = [(judgment, count[judgment.uid]) for judgment in part]
        of = code if code is not None else any_one.date_code if any_one else ""
        when = of, said.summary_date if said else "", first.date, first.version
        rows = tuple(Row(judgment, None) for judgment in part)
        model = any_one.model if any_one else ""
        out.append(Group(folder, model, *when, rows, tuple(joined), said, tuple(notes)))
    return out


def _said(
    published: Sequence[Published],
    judgment: Judgment,
    date_code: str,
    summary_date: str,
) -> Published | None:
    wanted = (date_code, summary_date, judgment.date)
    fits = [
        one
        for one in published
        if (one.date_code, one.summary_date, one.judgment_date) == wanted
    ]
    return next(
        (one for one in fits if one.version == judgment.version),
        fits[0] if fits else None,
    )


# -- the data set ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DataSet:
    """How many articles were to be summarised, and how that is known. articles: their slices by id,
    where a CSV has them.
    """

    size: int
    known: str
    articles: Mapping[str, Mapping[str, str]] | None = None


def data_set(
    group: Group,
    lengths: Sequence[int],
    articles: Mapping[str, Mapping[str, str]] | None,
) -> DataSet:
    """The data set of a group. lengths: distinct rows of all groups in its tree."""
    if articles is not None:
        return DataSet(len(articles), "the articles' CSV", articles)
    if len(lengths) > 1:
        return DataSet(max(lengths), f"the longest of {len(lengths)} runs in the tree")
    return DataSet(length(group), "this run alone, so lost rows cannot be counted")


def length(group: Group) -> int:
    """Articles of a group, each once; rows where nothing tells articles."""
    found = group.articles
    return len(set(found)) if found else len(group.rows)
