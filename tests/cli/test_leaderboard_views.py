"""`evalwright leaderboard` at any node of its tree: --by, --rank-by, --pivot, --where, and suites
whose tree is made from metadata.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright import leaderboard
from support.runs import edited
from support.tagged_runs import language_metadata, make_tagged_run
from support.typed import typed


@pytest.fixture(autouse=True)
def runs(folder: Path) -> None:
    """Runs `a`, good at Thai, and `b`, good at Vietnamese."""
    for name, thai, vietnamese in (("a", 18, 2), ("b", 3, 19)):
        scores = {
            "th-reading": [1] * thai + [0] * (20 - thai),
            "th-safety": [1] * thai + [0] * (20 - thai),
            "vi-reading": [1] * vietnamese + [0] * (20 - vietnamese),
        }
        make_tagged_run(
            folder / "runs",
            scores,
            language_metadata(scores),
            name=name,
            model=f"x/{name}",
            domains=["law", "logic"],
        )


def test_by_metadata(folder: Path) -> None:
    done = typed("leaderboard", "a", "b", "--by", "language,competency")
    assert done.code == 0, done.err
    assert "Thai" in done.out and "Vietnamese" in done.out
    assert "th-reading" not in done.out
    record = json.loads(
        typed("leaderboard", "a", "b", "--by", "language", "--json").out
    )
    assert record["by"] == ["language"]
    assert record["groups"] == ["Thai", "Vietnamese"]


@pytest.mark.parametrize(
    ("node", "first"),
    [
        ("Thai", "x/a"),
        ("language=vi", "x/b"),
        ("overall/Vietnamese", "x/b"),
        ("th-safety", "x/a"),
        ("domain=law", "x/a"),
    ],
)
def test_rank_by_a_node(folder: Path, node: str, first: str) -> None:
    arguments = ("leaderboard", "a", "b", "--by", "language", "--rank-by", node)
    done = typed(*arguments, "--csv", "b.csv", "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert record["rows"][0]["model"] == first
    assert record["rank_by"]
    header, line, *_ = (folder / "b.csv").read_text().splitlines()
    assert first in line and "th-reading" in header


def test_files_of_a_board_that_is_ranked_elsewhere(folder: Path) -> None:
    done = typed(
        *("leaderboard", "a", "b", "--by", "language", "--rank-by", "Thai"),
        *("--markdown", "b.md", "--html", "b.html", "--into", "README.md"),
        *("--latex", "b.tex", "--pages", "models", "--json-file", "b.json"),
    )
    assert done.code == 0, done.err
    head = (folder / "b.md").read_text().splitlines()[0]
    assert head.startswith("| Rank | Model | Thai ")
    assert "Thai" in (folder / "b.html").read_text()
    columns = json.loads((folder / "b.json").read_text())["columns"]
    assert columns[0]["name"] == "overall/Thai"
    assert {"overall", "tree.Vietnamese", "th-safety"} <= {
        column["name"] for column in columns
    }


def test_a_pivot_in_every_form(folder: Path) -> None:
    done = typed(
        *("leaderboard", "a", "b", "--pivot", "language,competency", "--model", "x/b"),
        *("--csv", "p.csv", "--markdown", "p.md"),
    )
    assert done.code == 0, done.err
    assert "Leaderboard: language by competency" in done.out
    assert "x/a" not in done.out
    assert (folder / "p.csv").read_text().startswith("model,language,competency,value,")
    assert "| Language | All |" in (folder / "p.md").read_text()
    record = json.loads(
        typed("leaderboard", "a", "b", "--pivot", "domain,model", "--json").out
    )
    assert (record["rows"], record["columns"]) == ("domain", "model")
    assert len(record["scores"]) == 4


def test_the_page_of_a_pivot_has_all_averages(folder: Path) -> None:
    """Its row "All" has each competency over all languages, as --rank-by computes it."""
    options = ("--by", "language,competency", "--pivot", "language,competency")
    written = ("--html", "b.html", "--json-file", "b.json")
    done = typed("leaderboard", "a", "b", *options, *written)
    assert done.code == 0, done.err
    nodes = json.loads((folder / "b.json").read_text())["nodes"]
    (reading,) = [node for node in nodes if node["keys"] == {"competency": "reading"}]
    assert sorted(reading["value"]) == pytest.approx([(18 + 2) / 40, (3 + 19) / 40])


def test_prices_among_the_facts_give_costs(folder: Path) -> None:
    for name, n_in in (("a", 2_000_000), ("b", 500_000)):
        with edited(folder / "runs" / name) as record:
            answers = {"input_tokens": n_in, "output_tokens": 1_000_000}
            record["usage"] = {"cost": None, "answers": answers}
    (folder / "facts.yaml").write_text(
        "x/a: {size: 4B, price_in: 1, price_out: 2}\nx/b: {size: 4B, price_in: 1}\n"
    )
    facts = ("--facts", "facts.yaml")
    done = typed("leaderboard", "a", "b", *facts, "--json-file", "b.json")
    assert done.code == 0 and "Cost" in done.out and "$4.00" in done.out
    assert "The cost of x/a is that of the tokens" in " ".join(done.out.split())
    record = json.loads((folder / "b.json").read_text())
    assert {model["label"]: model["cost"] for model in record["models"]} == {
        "x/a": 4.0,
        "x/b": None,
    }
    done = typed("leaderboard", "a", "b", *facts, "--where", "cost<5", "--pages", "m")
    assert done.code == 0 and [page.name for page in (folder / "m").iterdir()] == [
        "x-a.html"
    ]
    page = (folder / "m" / "x-a.html").read_text()
    assert "<bdi>4B</bdi>" in page and "<bdi>$2</bdi>" in page


def test_models_are_selected_by_facts(folder: Path) -> None:
    done = typed("leaderboard", "a", "b", "--where", "model=x/b", "--pages", "models")
    assert done.code == 0, done.err
    assert "1 of 2; ranks are among them" in done.out
    assert [page.name for page in (folder / "models").iterdir()] == ["x-b.html"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--by", "langauge"), "Did you mean 'language'?"),
        (("--by", ""), "--by takes metadata keys"),
        (("--by", "language,"), "--by takes metadata keys"),
        (("--by", "language,language"), "each once"),
        (("--rank-by", "Thay"), "Unknown node to rank by 'Thay'."),
        (("--rank-by", "reading", "--by", "language,competency"), "2 nodes"),
        (("--pivot", "language"), "--pivot takes two keys"),
        (("--pivot", "language,nothing"), "Unknown metadata key 'nothing'."),
        (("--model", "x/a"), "--model can only be used with --pivot"),
        (("--pivot", "domain,model", "--model", "x/a"), "--model has no effect"),
        (("--where", "size<=8"), "Unknown fact 'size' in --where."),
        (("--where", "size"), "--where takes KEY=VALUE"),
        (("--where", "model=x/c"), "No model matches --where model=x/c."),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], words: str) -> None:
    done = typed("leaderboard", "a", "b", *arguments)
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err


def test_from_python(folder: Path) -> None:
    board = leaderboard(["a", "b"], by="language", rank_by="Thai", where="model!=x/c")
    assert board.headline.title == "Thai"
    assert board.rows[0].model == "x/a"
    facts = [{"size": 70}, {"size": 8}]
    (row,) = leaderboard(["a", "b"], facts=facts, where=["size<=8"]).rows
    assert (row.model, row.facts["size"]) == ("x/b", 8)


SUITE = """
tasks: [th.yaml, vi.yaml, vi-maths.yaml, plain.yaml]
tree:
  name: Asia
  by: [language, competency]
  parts:
    - {name: rest, parts: [plain]}
"""


def _write_task(folder: Path, name: str, metadata: str) -> None:
    (folder / f"{name}.yaml").write_text(
        f"task: {name}\n"
        f"metadata: {metadata}\n"
        "dataset:\n"
        "  rows:\n"
        f"    - {{input: 'Is {name} one?', target: 'yes'}}\n"
        f"    - {{input: 'Is {name} two?', target: 'no'}}\n"
    )


def test_a_suite_by_metadata(folder: Path) -> None:
    _write_task(folder, "th", "{language: th, competency: reading}")
    _write_task(folder, "vi", "{language: vi, competency: reading}")
    _write_task(folder, "vi-maths", "{language: vi, competency: maths}")
    _write_task(folder, "plain", "{}")
    (folder / "suite.yaml").write_text(SUITE)
    for text in ("yes", "no"):
        done = typed(
            *("run", "--config", "suite.yaml", "--model", "scripted/constant"),
            *("-M", f"text={text}", "--name", text),
        )
        assert done.code == 0, done.err
    record = json.loads((folder / "runs" / "yes" / "run.json").read_text())
    assert [(group["name"], group["parts"]) for group in record["groups"]] == [
        ("Thai/reading", ["th"]),
        ("Thai", ["Thai/reading"]),
        ("Vietnamese/reading", ["vi"]),
        ("Vietnamese/maths", ["vi-maths"]),
        ("Vietnamese", ["Vietnamese/reading", "Vietnamese/maths"]),
        ("rest", ["plain"]),
        ("Asia", ["Thai", "Vietnamese", "rest"]),
    ]
    assert record["configuration"]["tree"]["by"] == ["language", "competency"]
    assert typed("runs", "show", "yes").code == 0
    assert typed("runs", "check", "yes").code == 0
    done = typed("leaderboard", "yes", "no", "--rank-by", "Asia/Vietnamese", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["rank_by"] == "Asia/Vietnamese"
    gate = typed(
        "compare", "yes", "no", "--fail-if", "tree.Thai drops by more than 99 points"
    )
    assert "tree.Thai" in gate.out


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ("{by: langauge}", "Unknown metadata key 'langauge' in tree."),
        ("{by: []}", "'by' must be a metadata key or a list"),
        ("{by: [language, language]}", "'by' has the key 'language' twice"),
        ("{by: [{key: language, averge: macro}]}", "Did you mean 'average'?"),
        ("{by: [{key: language, average: most}]}", "Unknown average 'most'."),
        ("{parts: [{name: x, by: language, parts: [th]}]}", "Unknown key 'by'"),
    ],
)
def test_a_tree_that_cannot_be_made(folder: Path, tree: str, words: str) -> None:
    _write_task(folder, "th", "{language: th}")
    (folder / "suite.yaml").write_text(f"tasks: [th.yaml]\ntree: {tree}\n")
    done = typed("run", "--config", "suite.yaml", "--model", "demo/small")
    assert done.code == 2
    assert words in done.err
