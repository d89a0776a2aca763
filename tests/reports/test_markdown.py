from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from evalwright.analysis.board import make_board
from evalwright.reports import document as doc
from evalwright.reports.html import to_html
from evalwright.reports.markdown import code, escape, to_markdown
from support.hostile import ACTIVE, HOSTILE, as_task_name
from support.runs import make_run
from support.shown import board_markdown


def rendered(markdown: str) -> str:
    return str(
        MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    )


def test_a_board(tmp_path: Path) -> None:
    strong = [1.0] * 36 + [0.0] * 4
    weak = [1.0] * 4 + [0.0] * 35 + [None]
    runs = [
        make_run(
            tmp_path,
            model="demo/small",
            name="a",
            scores={"factual": weak, "other": weak},
        ),
        make_run(
            tmp_path,
            model="demo/large",
            name="b",
            label="Large",
            scores={"factual": strong, "other": strong},
        ),
        make_run(tmp_path, model="demo/half", name="c", scores={"factual": strong}),
    ]
    lines = board_markdown(make_board(runs)).splitlines()
    assert lines[:5] == [
        "| Rank | Model | Overall | Simultaneous | `factual` | `other` | Items | Missing | Date |",
        "| --: | :-- | --: | --: | --: | --: | --: | --: | :-- |",
        "| 1 | `Large` | **90.0 [81.4, 95.1]** | [79.9, 95.6] | 90.0 [76.9, 96.0] | 90.0 [76.9, 96.0] "
        "| 80 | 0 | 2026-11-20 |",
        "| 2 | `demo/small` | 10.3 [5.1, 19.0] | [4.5, 20.6] | 10.3 [4.1, 23.6] | 10.3 [4.1, 23.6] "
        "| 78 of 80 | 2 | 2026-11-20 |",
        "| n/a | `demo/half` | n/a | n/a | 90.0 [76.9, 96.0] | n/a | 40 | 0 | 2026-11-20 |",
    ]
    assert lines[5] == "" and all(line.startswith("- ") for line in lines[6:])
    assert any("Missing answers are left out" in line for line in lines[6:])


def test_the_bytes_do_not_depend_on_the_order_of_the_runs(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, model=f"m/{i}", name=f"r{i}", scores=[1.0, 0.0, 1.0, 0.0])
        for i in range(4)
    ]
    assert board_markdown(make_board(runs)) == board_markdown(make_board(runs[::-1]))


def test_a_hostile_name_is_text_in_its_own_cell(tmp_path: Path) -> None:
    known = {"table", "thead", "tbody", "tr", "th", "td", "code", "ul", "li"}
    for i, name in enumerate(HOSTILE):
        scores = {as_task_name(name): [1.0, 0.0]}
        run = make_run(
            tmp_path, model=name or "x", label=name, name=f"run{i}", scores=scores
        )
        markdown = board_markdown(make_board([run]))
        assert not set(markdown) & set(ACTIVE), name
        # Header, rule, one row, an empty line, one note: no name began a line.
        assert len(markdown.splitlines()) == 5, name
        html = rendered(markdown)
        assert set(re.findall(r"</?([a-z0-9]+)", html)) <= known, name
        assert (
            "style=" not in re.sub(r'style="text-align:(left|right)"', "", html)
            or "style=" in name
        )
        assert html.count("<td") == html.count("<th ") == 6, name
        linked = rendered(
            board_markdown(make_board([run]), ["models/page%20%281%29.html"])
        )
        assert re.findall(r"<(?:a|img)\s[^>]*>", linked) == [
            '<a href="models/page%20%281%29.html">'
        ], name
        assert linked.count("<td") == linked.count("<th ") == 6, name


def test_what_a_reader_sees_is_the_name() -> None:
    for name in (name for name in HOSTILE if name.isprintable() and name.strip()):
        for form in (code(name), escape(name)):
            cell = re.search(
                r"<td>(.*)</td>", rendered(f"| h |\n| --- |\n| {form} |\n")
            )
            assert cell is not None
            assert unescape(re.sub("</?code>", "", cell[1])) == name.strip()


@pytest.mark.parametrize(
    ("sentence", "html"),
    [
        (
            "Run `evalwright runs show` <now>.",
            "Run <code>evalwright runs show</code> &lt;now&gt;.",
        ),
        ("`<b>&*x*` first", "<code>&lt;b&gt;&amp;*x*</code> first"),
        (
            "one ` alone, ``two``, `a|b` and `c``d`",
            "one ` alone, ``two``, `a|b` and `c``d`",
        ),
    ],
)
@pytest.mark.parametrize(
    "kind", [doc.Note, doc.Conclusion, lambda text: doc.Notes([text])]
)
def test_what_stands_between_backticks_is_code(
    sentence: str, html: str, kind: Callable[[str], doc.Block]
) -> None:
    document = doc.Document("Title", [kind(sentence)])
    assert html in rendered(to_markdown(document))
    assert html in to_html(document)
