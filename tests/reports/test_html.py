from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from evalwright.analysis.board import make_board
from evalwright.core.errors import Failure
from evalwright.reports.documents import board
from support.hostile import ACTIVE, HOSTILE, as_task_name
from support.runs import make_run
from support.shown import board_html

VOID = {"meta", "link", "br", "wbr", "img", "hr", "input"}


class Tree(HTMLParser):
    """Tags, attributes and text of a page; fails on tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(html)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.stack[-1] if self.stack else "", []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page(folder: Path, *, title: str = "Leaderboard") -> str:
    strong = [1.0] * 36 + [0.0] * 4
    weak = [1.0] * 4 + [0.0] * 35 + [None]
    runs = [
        make_run(
            folder,
            model="demo/small",
            name="a",
            scores={"factual": weak, "other": weak},
            domains=["x", "y"],
        ),
        make_run(
            folder,
            model="demo/large",
            name="b",
            label="Large",
            scores={"factual": strong, "other": strong},
            cost=0.5,
        ),
    ]
    return board_html(make_board(runs), runs, title=title)


def test_the_page_says_what_the_board_says(tmp_path: Path) -> None:
    html = page(tmp_path, title="Our board")
    tree = Tree(html)
    text = " ".join(
        "".join(part for parts in tree.texts.values() for part in parts).split()
    )
    assert "".join(tree.texts["title"]) == "Our board"
    for part in (
        "90.0", "[76.9, 96.0]", "10.3", "demo/small", "HTTP 429: slow down.", "1 missing", "left out of the scores", "Fingerprint", "2026-11-20 09:30", "evalwright 0.1.0", "$0.50", "78 sent", "Questions of factual.",
    ):  # fmt: skip
        assert part in text
    folds = [fold.get("id") for fold in tree.all("details")]
    assert folds == ["run-1", "run-2", None]  # the models', and how to cite the board


def test_tables_have_captions_and_scoped_heads(tmp_path: Path) -> None:
    html = page(tmp_path)
    tree = Tree(html)
    assert html.count("<table") == html.count("<caption") >= 4
    assert all(
        attributes.get("scope") in ("row", "col") for attributes in tree.all("th")
    )
    assert sum("aria-sort" in attributes for attributes in tree.all("th")) == 1
    assert all(
        attributes.get("aria-hidden") == "true" for attributes in tree.all("svg")
    )
    assert tree.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in tree.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and all(
        after - before <= 1 for before, after in pairwise(levels)
    )


def test_the_policy_allows_exactly_what_the_page_carries(tmp_path: Path) -> None:
    html = page(tmp_path)
    (policy,) = re.findall(
        r'http-equiv="Content-Security-Policy" content="([^"]*)"', html
    )
    assert policy.startswith("default-src 'none';")
    for tag in ("style", "script"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        assert (
            f"{tag}-src 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
            in policy
        )
    assert "unsafe" not in policy


def test_nothing_points_outside(tmp_path: Path) -> None:
    html = page(tmp_path)
    # The citation has addresses that are only text, and scripts have comments.
    rest = re.sub(
        r'<pre class="bibtex">.*?</pre>|<script>.*?</script>', "", html, flags=re.DOTALL
    )
    assert "evalwright" in rest and len(rest) > 10_000
    assert not re.search(r"https?:|//\w|url\(|@import|\ssrc=|style=|\son\w+=", rest)
    assert all(
        str(attributes["href"]).startswith(("#", "data:,"))
        for _, attributes in Tree(html).tags
        if "href" in attributes
    )


def test_hostile_text_is_text_everywhere(tmp_path: Path) -> None:
    def made(folder: str, text: str) -> tuple[Tree, list[str]]:
        run = make_run(
            tmp_path / folder,
            model=text or "x",
            label=text,
            name="run",
            scores={as_task_name(text): [1.0, 0.0, None]},
            domains=[text or "x", "z"],
            failure=Failure(text or "x", "provider", text),
            version=text,
        )
        tree = Tree(board_html(make_board([run]), [run], title=text))
        return tree, [tag for tag, _ in tree.tags if tag not in ("wbr", "span", "code")]

    _, plain = made("plain", "plain")
    for i, name in enumerate(HOSTILE):
        found, tags = made(f"hostile{i}", name)
        assert tags == plain or not name.strip(), name
        keys = {key for _, attributes in found.tags for key in attributes}
        assert not any(key.startswith("on") or key == "style" for key in keys), name
        assert not {
            *"".join(part for parts in found.texts.values() for part in parts)
        } & set(ACTIVE), name


def test_slices_are_cut_where_a_page_would_be_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    domains = [f"d{i}" for i in range(20)]
    runs = [
        make_run(tmp_path, name=f"r{i}", scores=[1.0, 0.0] * 60, domains=domains)
        for i in range(2)
    ]
    counts = []
    for most in (3000, 20, 8):
        monkeypatch.setattr(board, "MOST_SLICE_ROWS", most)
        html = board_html(make_board(runs), runs)
        counts.append(
            (
                len(re.findall(r"<bdi>d\d", html)),
                "with the most items, of 20" in html,
                "run.json has them" in html,
            )
        )
    assert counts == [(40, False, False), (20, True, False), (0, False, True)]
