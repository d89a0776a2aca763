"""A page for each model: linked both ways, complete, static, and harmless whatever names and
texts say.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from compat.hhem.hhem_trees import REFUSAL, Line, Model, text_of
from evalwright.analysis.board import make_board
from evalwright.analysis.board_tree import find_in
from evalwright.compat.hhem.importing import import_hhem
from evalwright.core.errors import ConfigurationError, Failure
from evalwright.core.samples import Score
from evalwright.reports.board_files import board_json
from evalwright.reports.documents.model_page import sample_texts
from evalwright.reports.model_pages import page_files, write_pages
from evalwright.reports.model_samples import read_samples
from evalwright.runs.reader import Run
from reports.test_examples import panel_run
from support.browser import Tab, chromium, in_new_tab
from support.hostile import ACTIVE, HOSTILE, as_task_name
from support.runs import make_run
from support.shown import board_html
from support.tagged_runs import make_tagged_run
from support.trajectory_runs import Acted, Reply, bash, fixing, trajectory_run


def _summaries(folder: Path) -> list[Run]:
    (folder / "articles.csv").write_text(
        "article_id,text,category,text_type\n"
        + "".join(f"{i},x,{'law' if i % 2 else 'sports'},{'standard_text' if i % 3 else 'intensive_text'}\n" for i in range(1, 61))
    )  # fmt: skip
    for name, wrong in (("acme/nova-pro-v1:0", 5), ("acme/small", 15)):
        lines = [
            Line(
                i,
                REFUSAL if i <= 6 else f"{text_of(i)} <b>bold</b>",
                i / 1000 if i > 60 - wrong else 0.9,
            )
            for i in range(1, 61)
        ]
        Model(name=name, more={"temperature": 0.5, "max_tokens": 999}).write(
            folder / "tree", lines
        )
    return import_hhem(
        folder / "tree", folder / "runs", articles=folder / "articles.csv"
    )[0]


def test_a_page_tells_all_that_is_recorded(tmp_path: Path) -> None:
    runs = _summaries(tmp_path)
    board = make_board(runs)
    first, second = write_pages(
        board,
        runs,
        tmp_path / "models",
        title="Board",
        board_page=tmp_path / "board.html",
        examples=2,
    )
    assert (first.name, second.name) == ("acme-nova-pro-v1-0.html", "acme-small.html")
    html = first.read_text(encoding="utf-8")
    assert '<a href="../board.html">' in html
    text = re.sub(r"<[^>]+>", " ", html.replace("<wbr>", ""))
    for wanted in (
        "Hallucination rate", "Average summary length", "16.00", "words",  # its numbers
        "answered", "54", "refused", "10.0%",  # outcomes
        "summary-faithfulness by category", "law", "sports", "intensive_text",  # slices
        # settings
        "temperature", "0.5", "max_tokens", "999", "Summarise: {article}", "HHEM-2.3-API",
        "Judged inconsistent with the source", "number 56 of it. &lt;b&gt;bold",  # examples
    ):  # fmt: skip
        assert wanted in re.sub(r"\s+", " ", text), wanted
    assert html.count("<dt>Answer</dt>") == 2
    assert "Tokens" in html and "Fingerprint" in html


def test_the_same_runs_give_the_same_pages_and_no_texts_where_none_are_wanted(
    tmp_path: Path,
) -> None:
    runs = _summaries(tmp_path)
    once = [
        file.read_bytes()
        for file in write_pages(make_board(runs), runs, tmp_path / "a", examples=0)
    ]
    back = runs[::-1]
    again = [
        file.read_bytes()
        for file in write_pages(make_board(back), back, tmp_path / "b", examples=0)
    ]
    assert once == again
    assert b"long walk" not in b"".join(once) and b"examples" not in b"".join(once)
    with pytest.raises(ConfigurationError, match="--examples"):
        write_pages(make_board(runs), runs, tmp_path / "c", examples=-1)


def test_runs_of_one_name_keep_their_own_samples(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path / "x", name="same", model="m", scores=[0.0] * 9, text="of x"),
        make_run(
            tmp_path / "y",
            name="same",
            model="m",
            scores=[0.0] * 8 + [1.0],
            text="of y",
        ),
    ]
    board = make_board(runs)
    for row, file in zip(
        board.rows, write_pages(board, runs, tmp_path / "pages"), strict=True
    ):
        other = "of y" if runs[row.run_index] is runs[0] else "of x"
        own = "of x" if runs[row.run_index] is runs[0] else "of y"
        html = file.read_text(encoding="utf-8")
        assert own in html and other not in html


@pytest.mark.parametrize(
    "name",
    [
        "../../evil",
        "..\\..\\evil",
        "/etc/passwd",
        "C:evil",
        "..",
        ".",
        "a/../../b",
        "\0",
    ],
)
def test_no_page_leaves_its_folder(tmp_path: Path, name: str) -> None:
    run = make_run(tmp_path / "runs", model=name or "x", name="run", scores=[1.0])
    (file,) = page_files(make_board([run]), tmp_path / "pages")
    assert file.resolve().parent == (tmp_path / "pages").resolve()
    assert re.fullmatch(r"[a-z0-9.-]+\.html", file.name)


def _hostile(folder: Path) -> tuple[list[Run], list[Path]]:
    failure = Failure(
        "<b onclick=x>", "provider", "<script>document.title='hacked'</script>"
    )
    runs = [
        make_run(
            folder / "runs", model=name or "x", label=name, name=f"run-{i}", text=name, failure=failure,
            scores={as_task_name(name): [1.0, 0.0, None, 0.0]}, domains=[name, "plain"], ids=name.replace("{", "{{").replace("}", "}}") + "-{}",
        )
        for i, name in enumerate(HOSTILE)
    ]  # fmt: skip
    files = []
    for run in runs:
        files += write_pages(
            make_board([run]), [run], folder / f"pages-{run.id}", title=run.label
        )
    return runs, files


def test_hostile_names_and_texts_are_text(tmp_path: Path) -> None:
    _, files = _hostile(tmp_path)
    for file in files:
        html = file.read_text(encoding="utf-8")
        assert not set(html) & set(ACTIVE)
        assert (
            html.count("<script") == 1
            and html.count("<style") == 1
            and "<img" not in html
        )
        assert not re.search(r"<[^>]*\son\w+=", re.sub(r'"[^"]*"', '""', html))


def _several_tasks(folder: Path, n_tasks: int = 3) -> list[Run]:
    unsure = Score(0.0, "incorrect", unsure="the reply names two years")
    scores: list[Score | float | str | None] = [1.0, 0.0, unsure, None, 1.0, 0.0] * 3
    tasks = {f"task-{i}": scores for i in range(n_tasks)}
    fewer = dict(list(tasks.items())[:-1])
    return [
        make_run(
            folder, name=name, model=f"x/{name}", scores=of_run, domains=["law", "art"]
        )
        for name, of_run in (("a", tasks), ("b", fewer), ("c", tasks))
    ]


def _text(html: str) -> str:
    plain = re.sub(r"<[^>]+>", " ", html.replace("<wbr>", ""))
    return re.sub(r"\s+", " ", plain)


@pytest.mark.parametrize("n_tasks", [1, 3, 5])
@pytest.mark.parametrize("by", [(), ("domain",)])
def test_every_node_of_a_board_has_one_anchor(
    tmp_path: Path, n_tasks: int, by: tuple[str, ...]
) -> None:
    runs = _several_tasks(tmp_path, n_tasks)
    if n_tasks == 1:
        runs = [runs[0], runs[2]]
    board = make_board(runs, by=by)
    nodes = list(find_in(board.tree))
    record = board_json(board, "T", runs=runs)
    assert [node["id"] for node in record["nodes"]] == [node.id for node in nodes]
    for file in write_pages(board, runs, tmp_path / "pages"):
        html = file.read_text(encoding="utf-8")
        anchors = re.findall(r'id="(n-\d+)"', html)
        assert sorted(anchors) == sorted(f"n-{i}" for i in range(len(nodes)))
        links = set(re.findall(r'href="#([ns]-[\d-]+)"', html))
        assert links <= set(re.findall(r'id="([ns]-[\d-]+)"', html))


def test_every_number_has_its_interval_and_n_or_says_why_not(tmp_path: Path) -> None:
    runs = _several_tasks(tmp_path)
    board = make_board(runs)
    files = write_pages(board, runs, tmp_path / "pages")
    row = next(i for i, row in enumerate(board.rows) if row.run == "b")
    text = _text(files[row].read_text(encoding="utf-8"))
    assert "the run does not have this task" in text
    assert "2 of 3 tasks; missing: task-2" in text
    estimate = board.rows[row].cells["task-0"].estimate
    low, high = f"{100 * estimate.low:.1f}", f"{100 * estimate.high:.1f}"
    assert f"[{low}, {high}], 15 items, 3 missing" in text


def test_unsure_samples_say_why_and_neighbours_are_linked(tmp_path: Path) -> None:
    runs = _several_tasks(tmp_path)
    board = make_board(runs)
    files = write_pages(board, runs, tmp_path / "pages")
    pages = [file.read_text(encoding="utf-8") for file in files]
    assert all("Unsure: the reply names two years" in page for page in pages)
    for i, page in enumerate(pages):
        nav = page.partition('<nav class="neighbours"')[2].partition("</nav>")[0]
        wanted = [files[j].name for j in (i - 1, i + 1) if 0 <= j < len(files)]
        assert re.findall(r'href="([^"]*)"', nav) == wanted


@pytest.mark.usefixtures("own_folder")
def test_judges_verdicts_are_beside_each_sample_and_disputes_counted() -> None:
    a = [0.9, 0.8, 0.2, 0.5, 0.1, 0.7]
    b = [0.8, 0.4, 0.3, 0.6, 0.2, 0.1]
    run = panel_run(a=a, b=b)
    (file,) = write_pages(make_board([run]), [run], Path("pages"))
    text = _text(file.read_text(encoding="utf-8"))
    assert (
        "The judges disagree on 2 of 6 answers that at least two of them read (33.3%)."
        in text
    )
    assert "judge-a (consistency): pass, 0.7 judge-b (consistency): fail, 0.1" in text
    assert "scored low, the judges disagree" in text


def test_what_is_known_of_a_model_is_on_its_page(tmp_path: Path) -> None:
    runs = _several_tasks(tmp_path)
    facts = [
        {"size": 8.0, "open": True, "licence": "MIT <b>", "context": None} for _ in runs
    ]
    board = make_board(runs, facts=facts)
    for file in write_pages(board, runs, tmp_path / "pages"):
        html = file.read_text(encoding="utf-8")
        text = _text(html)
        assert "Size 8" in text and "Open yes" in text and "Context" not in text
        assert "MIT &lt;b&gt;" in html


def test_without_examples_a_page_has_numbers_and_no_texts(tmp_path: Path) -> None:
    runs = _several_tasks(tmp_path, 5)
    for file in write_pages(make_board(runs), runs, tmp_path / "pages", examples=0):
        text = _text(file.read_text(encoding="utf-8"))
        assert "Task by task" in text and "Samples to look at" not in text
        assert "an answer" not in text and "two years" not in text


def test_samples_are_read_once_for_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = _several_tasks(tmp_path)
    board = make_board(runs, by=["domain"])
    reads: list[str] = []
    rows = Run.rows

    def counted(run: Run) -> object:
        reads.append(run.id)
        return rows(run)

    monkeypatch.setattr(Run, "rows", counted)
    write_pages(board, runs, tmp_path / "pages")
    assert sorted(reads) == ["a", "b", "c"]


def test_a_page_of_sixty_tasks_stays_small(tmp_path: Path) -> None:
    scores = [Score(0.0, "incorrect", "because", unsure="why")] * 20
    run = make_run(
        tmp_path,
        name="r",
        scores={f"task-{i}": scores for i in range(60)},
        text="a long answer " * 500,
    )
    (file,) = write_pages(make_board([run]), [run], tmp_path / "pages")
    assert file.stat().st_size < 1_500_000


def test_many_scores_fold_by_group_and_link_to_their_lowest_sample(
    tmp_path: Path,
) -> None:
    names = [f"{language}-{i}" for language in ("th", "id") for i in range(12)]
    run = make_tagged_run(
        tmp_path,
        {name: [Score(0.0, "incorrect", "because"), Score(1.0)] for name in names},
        {name: {"language": name[:2]} for name in names},
        name="r",
    )
    board = make_board([run], by=["language"])
    (file,) = write_pages(board, [run], tmp_path / "pages")
    html = file.read_text(encoding="utf-8")
    table, _, folds = html.partition("Scores, as the tasks are grouped")[2].partition(
        "</table>"
    )
    assert table.count("<tr>") == 1 + 3  # the head, the mean, two languages
    assert "Parts of Thai" in folds and "Parts of Indonesian" in folds
    links = re.findall(r'href="#(s-[\d-]+)"', table)
    assert len(links) == 3 and all(f'id="{link}"' in html for link in links)


@pytest.mark.browser
@pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine")
def test_in_a_browser_nothing_loads_and_nothing_acts(tmp_path: Path) -> None:
    _, files = _hostile(tmp_path)
    runs = _summaries(tmp_path)
    board = make_board(runs)
    board_page = tmp_path / "board.html"
    own = write_pages(
        board, runs, tmp_path / "models", title="Board", board_page=board_page
    )
    links = [f"models/{file.name}" for file in own]
    board_page.write_text(board_html(board, runs, links=links), encoding="utf-8")

    async def look(tab: Tab) -> None:
        await tab.open(board_page.as_uri())
        await tab.evaluate(
            "setTimeout(() => document.querySelector('#board tbody a').click()); 0"
        )
        for _ in range(600):
            there = await tab.evaluate(
                "document.readyState === 'complete' ? location.href : ''"
            )
            if "acme-nova" in there:
                break
            await asyncio.sleep(0.1)
        assert (
            await tab.evaluate("document.querySelector('h1').textContent")
            == "acme/nova-pro-v1:0"
        )
        assert (
            await tab.evaluate("document.querySelectorAll('ul.cards li').length") == 4
        )
        assert (
            await tab.evaluate("document.querySelector('.back a').href")
            == board_page.as_uri()
        )
        for file in files:
            tab.events.clear()
            await tab.open(file.as_uri())
            asked = [
                p["request"]["url"]
                for m, p in tab.events
                if m == "Network.requestWillBeSent"
            ]
            assert [url for url in asked if not url.startswith("data:")] == [
                file.as_uri()
            ]
            assert "hacked" not in await tab.evaluate("document.title.slice(0, 6)")
            told = {m for m, _ in tab.events} & {
                "Runtime.exceptionThrown",
                "Log.entryAdded",
                "Page.javascriptDialogOpening",
            }
            assert not told
        await tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=360,
            height=800,
            deviceScaleFactor=1,
            mobile=True,
        )
        await tab.open(own[0].as_uri())
        assert await tab.evaluate("document.documentElement.scrollWidth") <= 360

    in_new_tab(look)


@pytest.mark.browser
@pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine")
def test_in_a_browser_an_address_unfolds_the_samples_of_its_number(
    tmp_path: Path,
) -> None:
    runs = _several_tasks(tmp_path, 5)
    board = make_board(runs, by=["domain"])
    file = write_pages(board, runs, tmp_path / "pages")[0]
    nodes = list(find_in(board.tree))
    tasks = [i for i, node in enumerate(nodes) if node.kind == "task"]
    slices = [i for i, node in enumerate(nodes) if node.kind == "slice"]

    async def look(tab: Tab) -> None:
        for index in (0, *tasks, *slices):
            await tab.open("about:blank")
            await tab.open(f"{file.as_uri()}#n-{index}")
            top = await tab.evaluate(
                f"document.getElementById('n-{index}').getBoundingClientRect().top"
            )
            shown = await tab.evaluate(
                f"document.getElementById('n-{index}').checkVisibility()"
            )
            height = await tab.evaluate("innerHeight")
            assert shown and -1 <= top < height, nodes[index].id
        await tab.open("about:blank")
        await tab.open(file.as_uri())
        closed = await tab.evaluate(
            "[...document.querySelectorAll('details')].every(fold => !fold.open)"
        )
        assert closed
        for width in (390, 1280):
            await tab.send(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=900,
                deviceScaleFactor=1,
                mobile=width < 500,
            )
            await tab.open("about:blank")
            await tab.open(f"{file.as_uri()}#n-{tasks[-1]}")
            assert await tab.evaluate("document.documentElement.scrollWidth") <= width

    in_new_tab(look)


def test_a_sample_of_a_model_that_acted_says_how_it_went(tmp_path: Path) -> None:
    limited = Acted([Reply("", [bash("ls", "a")])] * 2, ended="messages", answer="x")
    run = trajectory_run(tmp_path, [limited, fixing()])
    [samples] = read_samples(run, 5).values()
    texts = dict(sample_texts(samples.samples[0]))
    assert texts["Steps"] == "2 steps, 2 calls of tools (bash), ended by messages"
