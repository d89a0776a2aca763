"""The history on a model's page and in board.json, and the feed of a board."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.reports.board_files import board_schema
from evalwright.reports.feed import MOST_ENTRIES, check_feed_address
from support.browser import Tab, chromium, in_new_tab
from support.hostile import ACTIVE, HOSTILE
from support.monthly_runs import month_run, monthly_scores, rescored, year_of_nova
from support.typed import typed

ATOM = "{http://www.w3.org/2005/Atom}"
OPTIONS = ("--pages", "site/models", "--json-file", "site/board.json")


@pytest.fixture(autouse=True)
def _year(folder: Path) -> None:
    runs = year_of_nova(folder / "runs")
    for month in (2, 8):
        month_run(folder / "runs", month, label="Vega", model="acme/vega", ability=0.5)
    rescored(
        runs[4],
        "openai/judge-b",
        monthly_scores(0.75, 5),
        day="2025-07-20T00:00:00+00:00",
    )


def board(*options: str) -> dict[str, Any]:
    runs = [str(run) for run in sorted(Path("runs").iterdir())]
    done = typed("leaderboard", *runs, *options)
    assert done.code == 0, done.err
    file = Path("site/board.json")
    return json.loads(file.read_text()) if file.exists() else {}


def test_without_the_option_the_board_is_as_it_was() -> None:
    record = board(*OPTIONS)
    assert len(record["models"]) == 15
    assert not any("history" in model for model in record["models"])
    assert "History" not in Path("site/models/nova-nova-12.html").read_text()


def test_the_history_in_board_json_is_as_its_schema_says() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    record = board("--newest", *OPTIONS)
    jsonschema.Draft202012Validator(board_schema()).validate(record)
    assert record["settings"] == {"newest": True}
    nova, vega = record["models"]
    assert (nova["label"], len(nova["history"])) == ("Nova", 12)
    assert [entry["date"] for entry in vega["history"]] == ["2025-02-05", "2025-08-05"]
    by_run = {entry["run"]: entry for entry in nova["history"]}
    assert by_run["Nova-04"]["of_the_model"]
    assert not by_run["Nova-10"]["of_the_model"]
    again = by_run["Nova-05.rescored"]
    assert again["scored"] == "2025-07-20"
    assert [old["run"] for old in again["earlier_verdicts"]] == ["Nova-05"]
    assert len(json.dumps(nova["history"])) < 8_000
    check = typed("leaderboard", *map(str, Path("runs").iterdir()), "--check", "site/board.json")  # fmt: skip
    assert check.code == 0, check.out + check.err


def test_ranks_are_among_the_models_of_the_date() -> None:
    record = board("--as-of", "2025-01-31", *OPTIONS)
    assert [model["run"] for model in record["models"]] == ["Nova-01"]
    assert any("14 later runs left out" in note for note in record["notes"])
    record = board("--since", "2025-08-01", "--as-of", "2025-08-31", *OPTIONS)
    assert {model["run"] for model in record["models"]} == {"Nova-08", "Vega-08"}
    assert "changed: Nova and Vega" in " ".join(record["notes"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--as-of", "2025-13-01"), "takes a date"),
        (("--as-of", "2999-01-01"), "in the future"),
        (("--as-of", "1999-01-01"), "the first is of 2025-01-05"),
        (("--since", "last week"), "takes a date"),
        (("--since", "runs/Nova-01/run.json"), "is not a board"),
        (("--since", "2025-06-01", "--as-of", "2025-05-01"), "before that of --as-of"),
        (("--feed", "feed.txt"), "FILE.xml"),
        (("--feed", "f.xml", "--url", "javascript:alert(1)"), "--url takes"),
        (("--url", "https://example.org"), "--feed"),
    ],
)
def test_what_cannot_be_says_what_to_do(options: tuple[str, ...], message: str) -> None:
    runs = [str(run) for run in sorted(Path("runs").iterdir())]
    done = typed("leaderboard", *runs, *options)
    assert done.code == 2 and message in " ".join(done.err.split()), done.err
    assert not Path("f.xml").exists()


def test_nothing_new_is_said_and_is_no_error() -> None:
    board("--newest", *OPTIONS)
    runs = [str(run) for run in sorted(Path("runs").iterdir())]
    done = typed("leaderboard", *runs, "--since", "site/board.json")
    assert done.code == 0 and "nothing new" in done.err
    assert "the board of 2025-12-05" in done.err


def test_a_page_shows_the_history_with_its_changes() -> None:
    board("--newest", *OPTIONS)
    page = Path("site/models/nova.html").read_text()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page.replace("<wbr>", "")))
    for wanted in (
        "12 results from 2025-01-05 to 2025-12-05. Between them changed: model, judge and data.",
        "2025-04-05: model: the name in its replies from nova-2025-01 to nova-2025-04",
        "not a change of the model alone (data)",
        "the same answers, as scored on 2025-05-05",
    ):
        assert wanted in text, wanted
    chart = page[page.index('<figure class="history">') : page.index("</figure>")]
    assert chart.count('<circle class="point"') == 13
    assert chart.count('<line class="mark"') == 4
    assert "<script" not in chart and "style=" not in chart
    assert "History" in Path("site/models/vega.html").read_text()
    again = page
    board("--newest", *OPTIONS)
    assert Path("site/models/nova.html").read_text() == again


@pytest.mark.browser
@pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine")
def test_the_chart_fits_on_a_phone_and_its_texts_do_not_overlap(
    tmp_path: Path,
) -> None:
    board("--newest", *OPTIONS)

    page = Path("site/models/nova.html").resolve()

    async def look(tab: Tab) -> None:
        await tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=390, height=800, deviceScaleFactor=1, mobile=True,
        )  # fmt: skip
        await tab.open(page.as_uri())
        assert await tab.evaluate("document.documentElement.scrollWidth") <= 390
        boxes = await tab.evaluate(
            "[...document.querySelectorAll('.history svg text')].map(text => {"
            " const box = text.getBoundingClientRect();"
            " return [box.left, box.right, box.top, box.bottom]; })"
        )
        assert len(boxes) >= 10
        for index, (left, right, top, bottom) in enumerate(boxes):
            assert left >= 0 and right <= 390
            for beside in boxes[:index]:
                apart = left >= beside[1] or right <= beside[0]
                assert apart or top >= beside[3] or bottom <= beside[2], (index, boxes)

    in_new_tab(look)


def feed(*options: str) -> ElementTree.Element:
    board("--feed", "site/feed.xml", *options)
    return ElementTree.parse("site/feed.xml").getroot()


def test_the_feed_is_atom_and_its_bytes_are_those_of_the_runs() -> None:
    root = feed("--newest", "--url", "https://example.org/board", "--title", "Facts & more")  # fmt: skip
    first_bytes = Path("site/feed.xml").read_bytes()
    for element in (root, *root.findall(f"{ATOM}entry")):
        for name in ("id", "title", "updated"):
            assert element.find(f"{ATOM}{name}") is not None
    entries = root.findall(f"{ATOM}entry")
    assert len(entries) == 15
    ids = [entry.findtext(f"{ATOM}id") for entry in entries]
    assert len({*ids}) == 15 and all(str(one).startswith("urn:uuid:") for one in ids)
    dates = [str(entry.findtext(f"{ATOM}updated")) for entry in entries]
    assert dates == sorted(dates, reverse=True)
    assert root.findtext(f"{ATOM}updated") == dates[0] == "2025-12-05T00:00:00Z"
    assert root.findtext(f"{ATOM}title") == "Facts & more"
    titles = " | ".join(str(entry.findtext(f"{ATOM}title")) for entry in entries)
    assert "Nova: new on the board, 65.0" in titles
    assert "Nova: scored again by openai/judge-b" in titles
    feed("--url", "https://example.org/board", "--title", "Facts & more")
    assert Path("site/feed.xml").read_bytes() == first_bytes


def test_an_entry_keeps_its_id_when_news_come() -> None:
    early = feed("--as-of", "2025-06-30")
    late = feed("--newest")
    ids = [
        {str(entry.findtext(f"{ATOM}id")) for entry in root.findall(f"{ATOM}entry")}
        for root in (early, late)
    ]
    assert len(ids[0]) == 7 and ids[0] < ids[1]


def test_a_feed_links_to_the_pages() -> None:
    root = feed("--newest", "--pages", "site/models", "--url", "https://example.org/b/")
    links = {
        link.get("href")
        for entry in root.findall(f"{ATOM}entry")
        for link in entry.findall(f"{ATOM}link")
    }
    assert links == {
        "https://example.org/b/models/nova.html",
        "https://example.org/b/models/vega.html",
    }


def test_a_reader_of_feeds_takes_it() -> None:
    feedparser = pytest.importorskip("feedparser")
    feed("--newest", "--url", "https://example.org/board")
    parsed = feedparser.parse(Path("site/feed.xml").read_bytes())
    assert not parsed.bozo and parsed.version == "atom10"
    assert len(parsed.entries) == 15


@pytest.mark.parametrize("label", HOSTILE)
def test_names_from_anybody_are_texts_in_a_feed_and_on_a_page(label: str) -> None:
    for month in (1, 2):
        month_run(Path("runs"), month, label="X", model="x/y")
        file = Path(f"runs/X-{month:02d}/run.json")
        record = json.loads(file.read_text())
        record["model"]["label"] = label
        record["roles"] = {
            "judge": {"name": label, "abilities": [], "fingerprint": str(month)}
        }
        record["tasks"][0]["scorers"][0]["kind"] = "judge-correct"
        file.write_text(json.dumps(record))
    done = typed("leaderboard", "X-01", "X-02", "--newest", "--feed", "f.xml", *OPTIONS)
    if done.code == 2:
        assert "control characters" in done.err or "label" in done.err, done.err
        return
    assert done.code == 0, done.err
    root = ElementTree.fromstring(Path("f.xml").read_bytes())
    assert len(root.findall(f"{ATOM}entry")) == 2
    assert not any(
        child.tag.removeprefix(ATOM) not in (
            "title", "id", "updated", "author", "generator", "entry", "published", "content", "name", "link",
        )
        for child in root.iter() if child is not root
    )  # fmt: skip
    for page in Path("site/models").glob("*.html"):
        html = page.read_text()
        assert not set(html) & set(ACTIVE)
        assert html.count("<script") == 1 and html.count("<style") == 1
        assert "<img" not in html
        assert not re.search(r"<[^>]*\son\w+=", re.sub(r'"[^"]*"', '""', html))


def test_a_feed_is_bounded() -> None:
    for month in range(1, 13):
        for number in range(9):
            month_run(
                Path("runs"), month, label=f"M{number}", model=f"m/{number}",
                scores=[1.0, 0.0] * 3,
            )  # fmt: skip
    root = feed("--newest")
    assert len(root.findall(f"{ATOM}entry")) == MOST_ENTRIES


def test_addresses_of_feeds() -> None:
    check_feed_address("https://example.org/a/b")
    for wrong in ("ftp://x.org", "https://", "https://u:p@x.org/", "https://x.org/<a>", "x"):  # fmt: skip
        with pytest.raises(ConfigurationError):
            check_feed_address(wrong)


def test_reading_dates_loads_no_engine() -> None:
    code = (
        "import sys, evalwright.analysis.history, evalwright.reports.feed;"
        "print([m for m in sys.modules if m.startswith('evalwright.engine')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
