"""What to cite: every bundled task has an entry, a licence and LaTeX that compiles; a stranger's
entry runs nothing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from evalwright import ScriptedModel, evaluate, load_task
from evalwright.tasks.citations import (
    all_entries,
    bib_text,
    cited,
    entries_of,
    escape,
    library_entries,
    tex_document,
)
from evalwright.tasks.index import LIBRARY, TaskIndex
from support.typed import typed
from tasks.conftest import Write, read_definitions

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    Path(entry.path)
    for entry in TaskIndex().files()
    if entry.path.startswith(str(LIBRARY))
]
CUSTOM = '@misc{mine, title = {M{\\"u}nch \\& co}, author = {A, B}, year = {2020}}'


def first_definitions() -> list[tuple[str, dict[str, object]]]:
    found = []
    for path in FILES:
        one = read_definitions(path)[0]
        found.append((one.name, one.document.value["metadata"]))
    return found


def test_every_bundled_task_has_an_entry_and_a_licence() -> None:
    named = set()
    for name, metadata in first_definitions():
        row = cited(name, metadata)
        assert row.entries and row.licence, (name, row.why)
        named |= set(row.entries)
    others = {path.parent.name for path in FILES}
    assert "korean" in others
    from evalwright.tasks.citations import benchmarks

    named |= {str(benchmark["bibtex"]) for benchmark in benchmarks().values()} | {
        "lee2025hret"
    }
    assert named == set(library_entries()), (
        "entries that nothing cites, or the other way round"
    )


def test_the_page_of_licences_says_what_the_tasks_say() -> None:
    page = (ROOT / "docs" / "reference" / "licences.md").read_text(encoding="utf-8")
    listed = {
        (licence, name)
        for licence, names in re.findall(
            r"^\| [^|`]+ \| ([^|]+) \| (`[^|]+`) \|$", page, re.MULTILINE
        )
        for name in re.findall(r"`([^`]+)`", names)
    }
    in_library = {
        (str(one.document.value["metadata"]["licence"]), entry.name)
        for entry in TaskIndex().files()
        if entry.path.startswith(str(LIBRARY))
        for one in read_definitions(Path(entry.path))
    }
    assert listed == in_library


def test_entries_are_whole() -> None:
    for key, entry in library_entries().items():
        assert re.match(
            r"@(misc|article|inproceedings)\{" + re.escape(key) + ",\n", entry
        )
        fields = set(re.findall(r"^  (\w+) = \{", entry, re.MULTILINE))
        assert {"title", "author"} <= fields, key
        assert "year" in fields or "howpublished" in fields, key
        assert entry.isascii(), key
        arxiv = set(re.findall(r"\d{4}\.\d{5}", entry))
        assert len(arxiv) <= 1, key


@pytest.mark.skipif(
    not (shutil.which("pdflatex") and shutil.which("bibtex")), reason="needs LaTeX"
)
def test_the_document_of_all_tasks_compiles(tmp_path: Path) -> None:
    rows = [cited(name, metadata) for name, metadata in first_definitions()]
    rows += [
        cited("wörk_100% {a} \\input{x} 서울", {"licence": "A & B"}),
        cited("own", {"bibtex": CUSTOM}, samples=3),
    ]
    (tmp_path / "all.tex").write_text(tex_document(rows, "all"), encoding="utf-8")
    latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all"]
    for command in (latex, ["bibtex", "all"], latex, latex):
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "all.log").read_text(encoding="latin-1")
    assert "undefined" not in log
    assert "error message" not in done.stdout
    listed = re.findall(
        r"\\bibitem\{(.*?)\}", (tmp_path / "all.bbl").read_text(encoding="utf-8")
    )
    assert set(listed) == set(all_entries(rows))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            r"@misc{a, title = {\input{/etc/passwd}}}",
            r"the entry 'a' uses the TeX command \input",
        ),
        ("@misc{a, title = {\\write18{rm}}}", r"uses the TeX command \write"),
        (
            "@misc{a, title = {x}}\n@misc{a, title = {y}}",
            "two entries have the key 'a'",
        ),
        (
            "@misc{A, title = {x}}\n@misc{a, title = {y}}",
            "two entries have the key 'a'",
        ),
        ("@misc{a, title = {x\x1b[31m}}", "control characters"),
        ("@misc{a, title = {x\ud800}}", "control characters"),
        ("@misc{a, title = {\\{}}", "the braces of an entry are not closed"),
        ("@misc{a, title = {x}", "the braces of an entry are not closed"),
        ("@misc{a\\b, title = {x}}", "there is no entry"),
        ('@preamble{a, "\\input x"}', "there is no entry"),
        ("@misc{a,\n title = {\\end{filecontents*}}}", r"uses the TeX command \end"),
        ("@misc{a, title = {^^5cinput x}}", "has '^^'"),
        (
            "@misc{a, url = {x_y}, title = {A & B}}",
            "the field 'title' of the entry 'a' has a bare '&'",
        ),
        ('@misc{a, url = {x_y}, title = "50% {of} all"}', "has a bare '%'"),
        ("@" * 300_000, "longer than 200,000 characters"),
        ("@misc{" * 30_000, "there is no entry"),
    ],
)
def test_an_entry_of_a_stranger_runs_nothing(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        entries_of(text)
    row = cited("t", {"bibtex": "@" + text if not text.startswith("@") else text})
    assert not row.entries and why in row.why
    document = tex_document([row])
    assert (
        r"t &  & citation missing \\" in document
        and "passwd" not in document.split(r"\begin{document}")[1]
    )


def test_names_and_licences_are_text() -> None:
    assert (
        escape("a_b & 50% $x$ {y} ~^ \\input")
        == r"a\_b \& 50\% \$x\$ \{y\} \textasciitilde{}\textasciicircum{} \textbackslash{}input"
    )
    assert escape("é 서\n울") == "e U+C11C  U+C6B8"
    assert "%\n" not in bib_text([cited("x\n@misc{evil,", {"bibtex": "no-such-key"})])


def test_the_command_takes_tasks_files_and_runs(write: Write, tmp_path: Path) -> None:
    write("own.yaml", "task: own_task\ndataset: {rows: [{input: q, target: t}]}\n")
    done = typed(
        "export",
        "citations",
        "gsm8k",
        "mmlu",
        "own.yaml",
        "--into",
        "cite.tex",
        folder=tmp_path,
    )
    assert done.code == 0, done.text
    text = (tmp_path / "cite.tex").read_text(encoding="utf-8")
    assert "Written: cite.tex (3 tasks, 1 without a citation)" in done.text
    assert r"gsm8k & MIT & \cite{cobbe2021training} \\" in text
    assert r"own\_task &  & citation missing \\" in text
    assert "\\begin{filecontents*}[overwrite]{cite-citations.bib}" in text and text.count("@inproceedings{hendrycks2021measuring,") == 1  # fmt: skip
    done = typed("export", "citations", "gsm8k", "--into", "c.bib", folder=tmp_path)
    assert list(entries_of((tmp_path / "c.bib").read_text())) == [
        "evalwright",
        "cobbe2021training",
    ]
    for wrong in ((), ("no-such-task",), ("gsm8k", "--into", "c.pdf")):
        assert typed("export", "citations", *wrong, folder=tmp_path).code == 2


def test_a_run_on_benchhub_cites_each_benchmark(write: Write, tmp_path: Path) -> None:
    row = {"context": None, "options": ["가", "나"], "answer": "가", "problem_type": "MCQA", "task_type": "knowledge", "target_type": "General", "subject_type": []}  # fmt: skip
    write("b.jsonl", [{**row, "prompt": str(n), "benchmark_name": name} for n, name in enumerate(["KMMLU", "KMMLU", "Nobody's"])])  # fmt: skip
    task = load_task("benchhub-ko-generate", overrides={"dataset.path": "b.jsonl"})
    evaluate(task, ScriptedModel(lambda prompt: "정답: A"), name="bench")
    done = typed("export", "citations", "--run", "bench", folder=tmp_path)
    assert done.code == 0
    assert r"KMMLU & 2 & cc-by-nd-4.0 & \cite{son-etal-2025-kmmlu} \\" in done.text
    assert r"Nobody's & 1 &  & citation missing \\" in done.text
    assert (
        r"benchhub-ko-generate & 3 & see the benchmarks' own & \cite{kim2025benchhub} \\"
        in done.text
    )
