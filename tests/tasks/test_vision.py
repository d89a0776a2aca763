"""Tasks with pictures on rows of the shape that their data sets have: what is sent in which
order, what is right, wrong and undecided.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import DatasetError
from evalwright.core.tasks import Task
from evalwright.tasks.datasets import copies
from evalwright.tasks.index import TaskIndex
from evalwright.tasks.loading import load_task
from support.openai_server import OpenAIServer, serving
from support.typed import typed
from support.written_judge import judge, read_question

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ENTRIES = [entry for entry in TaskIndex().files() if "/vision/" in entry.path]


def png(shade: int) -> bytes:
    """A whole picture of eight by eight pixels in one grey."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + header
        + chunk(b"IDAT", zlib.compress((b"\0" + bytes([shade]) * 8) * 8))
        + chunk(b"IEND", b"")
    )


def column(shade: int) -> dict[str, Any]:
    """A picture as a column of the hub has it."""
    return {"bytes": png(shade), "path": f"{shade}.png"}


PRO: dict[str, Any] = {
    "id": "test_Biology_321", "question": "Which of <image 2> and <image 4> is older than <image 1>?", "answer": "C",
    "options": "['<image 4>', \"it's <image 2>\", 'A', 'B', 'all', 'none']", "explanation": "?", "img_type": "['Trees']",
    "topic_difficulty": "Hard", "subject": "Biology", **{f"image_{place}": None for place in range(1, 8)},
    "image_1": column(1), "image_2": column(2), "image_4": column(4),
}  # fmt: skip
PICTURED = {"id": "test_Art_1", "image": column(1), "options": "['red', 'blue', 'both']", "answer": "B", "subject": "Art"}  # fmt: skip
STAR = {
    "index": 7, "question": "What is on the table?\nOptions: A: a cup, B: a hat, C: a cat, D: nothing", "image": column(1), "answer": "C",
    "category": "coarse perception", "l2_category": "image scene and topic",
    "meta_info": {"source": "x", "split": "val", "image_path": "images/7.jpg"},
}  # fmt: skip
ROBOT = {
    "question_id": "ERQA_1", "question_type": "State Estimation", "answer": "D", "images": [column(2), column(1)],
    "question": "What moved between them? Choices: A. The cup. B. The arm. C. Both. D. Nothing. Please answer directly with only the letter of the "
    "correct option and nothing else.",
}  # fmt: skip
CHART = {
    "category": "VS", "subcategory": "chart", "visual_input": "1", "set_id": "3", "figure_id": "1", "sample_note": "import",
    "question_id": "2", "question": "Is 2019 the largest?", "gt_answer_details": "It is.", "gt_answer": "1", "filename": "./VS/chart/3_1.png",
    "image": column(1),
}  # fmt: skip
BABY = {
    "taskId": 445, "type": "Fine-grained Discrimination", "subtype": "Find the different", "ansType": "choice",
    "options": ["1", "2", "3"], "choiceAns": 2, "blankAns": None, "image": column(1), "question": "Which one is different?", "coT": "",
}  # fmt: skip
PLACE = {
    **BABY, "ansType": "blank", "options": [], "choiceAns": None, "blankAns": "(4,7)", "question": "Where is it? The answer format is (x,y).",
}  # fmt: skip
CASES: dict[str, tuple[dict[str, Any], str, str, list[int]]] = {
    "mmmu-pro-10-options": (PRO, "Answer: C", "Answer: A", [1, 2, 4]),
    "mmmu-pro-4-options": (PRO, "So it is A.\nAnswer: C", "Answer: D", [1, 2, 4]),
    "mmmu-pro-vision": (PICTURED, "Answer: B", "Answer: C", [1]),
    "mmstar": (STAR, "Answer: C", "Answer: B", [1]),
    "erqa": (ROBOT, "Answer: D", "Answer: A", [2, 1]),
    "hallusionbench-image": (CHART, "Answer: Yes", "Answer: No", [1]),
    "hallusionbench-text": (
        {**CHART, "image": None, "gt_answer": "0"},
        "Answer: No",
        "Answer: Yes",
        [],
    ),
    "babyvision-choice": (BABY, "Answer: C", "Answer: B", [1]),
    "babyvision-blank": (PLACE, "Answer: (4, 7)", "Answer: (7,4)", [1]),
}
"""A row, a right and a wrong reply, and which pictures are sent in which order."""
CHANCE = {
    "mmmu-pro-10-options": 0.128, "mmmu-pro-4-options": 0.25, "mmmu-pro-vision": 0.128, "mmstar": 0.25, "erqa": 0.25,
    "hallusionbench-image": 0.5, "hallusionbench-text": 0.5,
}  # fmt: skip


@pytest.fixture
def hub(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[list[dict[str, Any]]]:
    """The rows that every data set of the hub has."""
    rows: list[dict[str, Any]] = []
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TEST_KEY", "sk-x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        copies,
        "_hub_rows",
        lambda *named: ((f"row {n}", row) for n, row in enumerate(rows, 1)),
    )
    monkeypatch.setattr(
        "evalwright.tasks.compiling.first_fetched", lambda repository: COMMIT
    )
    yield rows


def run(
    server: OpenAIServer, task: str, *more: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the server was sent by a run from the command line, and the run's records."""
    where = ("-M", f"base_url={server.url}", "-M", "api_key_env=TEST_KEY")
    done = typed(
        "run",
        task,
        "--model",
        "openai/m",
        *where,
        "--out",
        "runs",
        "--name",
        "it",
        "--quiet",
        *more,
    )
    assert done.code == 0, done.text
    (records,) = Path("runs").rglob("samples.jsonl")
    sent = [
        entry["body"]["messages"][-1]["content"]
        for entry in server.log or ()
        if "body" in entry
    ]
    return sent, [
        json.loads(line) for line in records.read_text(encoding="utf-8").splitlines()
    ]


def parts_of(content: Any) -> list[str | bytes]:
    """The texts and pictures of a message, in their order."""
    if isinstance(content, str):
        return [content]
    return [
        one["text"]
        if one["type"] == "text"
        else base64.b64decode(one["image_url"]["url"].partition(",")[2])
        for one in content
    ]


def value_of(record: dict[str, Any]) -> float:
    (score,) = record["scores"].values()
    return float(score["value"])


@pytest.mark.parametrize(
    ("reply", "worth"), [(1, 1.0), (2, 0.0)], ids=["right", "wrong"]
)
@pytest.mark.parametrize("name", CASES)
def test_a_row_is_sent_with_its_pictures_in_order_and_its_answer_is_read(
    name: str, reply: int, worth: float, hub: list[dict[str, Any]]
) -> None:
    row, *_, shades = CASES[name]
    hub.append(row)
    with serving(answer=lambda prompt: str(CASES[name][reply])) as server:
        (content,), (record,) = run(server, name)
    parts = parts_of(content)
    assert [one for one in parts if isinstance(one, bytes)] == [
        png(shade) for shade in shades
    ]
    text = "[]".join(one for one in parts if isinstance(one, str))
    assert (
        "{{" not in text
        and "\n\n\n" not in text
        and "Please answer directly" not in text
    )
    assert row.get("question", "The picture shows")[:12] in text
    assert value_of(record) == worth, record


def test_pictures_stand_under_the_names_that_questions_and_options_have_for_them(
    hub: list[dict[str, Any]],
) -> None:
    hub.append(PRO)
    with serving(answer=lambda prompt: "Answer: C") as server:
        (content,), _ = run(server, "mmmu-pro-10-options")
    head = parts_of(content)[:-1]
    assert [one.strip() if isinstance(one, str) else one for one in head] == [
        "<image 1>", png(1), "<image 2>", png(2), "<image 4>", png(4),
    ]  # fmt: skip
    text = parts_of(content)[-1]
    assert isinstance(text, str)
    assert text.strip().startswith(
        "Which of <image 2> and <image 4> is older than <image 1>?\nA. <image 4>\nB. it's <image 2>\nC. A\nD. B\nE. all\nF. none\n\n"
    )


@pytest.mark.parametrize("name", ["mmmu-pro-10-options", "mmmu-pro-vision"])
def test_options_are_lists_as_python_writes_them_nested_or_lists(
    name: str,
    hub: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    row, *_ = CASES[name]
    for number, (options, count) in enumerate(
        [
            ("[['A', 'B', 'Not enough information']]", 3),
            (["x", "y"], 2),
            (repr([str(n) for n in range(12)]), 12),
        ]
    ):
        monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / f"home{number}"))
        hub[:] = [{**row, "options": options, "answer": "B"}]
        sample = load_task(name, chat=True).samples[0]
        assert (sample.choices, sample.gold) == (tuple("ABCDEFGHIJKL"[:count]), (1,))
        assert name == "mmmu-pro-vision" or sample.input.count("\n") == count
    for number, options in enumerate(
        ["['x', open('y')]", "[" * 5000, "x, y", "['\\d', "]
    ):
        monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / f"wrong{number}"))
        hub[:] = [{**row, "options": options, "answer": "B"}]
        with pytest.raises(DatasetError, match=r"row 1.*no list as Python writes it"):
            load_task(name, chat=True)


def test_chance_is_stated_and_is_what_guessing_gives(hub: list[dict[str, Any]]) -> None:
    for name, chance in CHANCE.items():
        hub[:] = [CASES[name][0]]
        task = load_task(name, chat=True)
        (metric,) = [
            metric for metric in task.metrics if metric.kind == "chance-normalised"
        ]
        assert metric.options["chance"] == task.metadata["chance"] == chance, name
        if "mmmu" not in name:  # whose questions have two to twelve options
            assert chance == 1 / len(task.samples[0].choices)


def test_questions_of_one_set_are_a_cluster_with_and_without_their_picture(
    hub: list[dict[str, Any]],
) -> None:
    hub[:] = [{**CHART, "question_id": "0"}, {**CHART, "figure_id": "0"}]
    tasks: list[Task] = [
        load_task(f"hallusionbench-{part}", chat=True) for part in ("image", "text")
    ]
    assert {sample.cluster for task in tasks for sample in task.samples} == {
        "VS-chart-3"
    }
    assert {sample.id for sample in tasks[0].samples} == {
        "VS-chart-3-1-0",
        "VS-chart-3-0-2",
    }
    assert [task.metadata["competency"] for task in tasks] == [
        "vision",
        "hallucinations",
    ]


def test_an_answer_that_rules_are_unsure_of_goes_to_the_judge(
    hub: list[dict[str, Any]],
) -> None:
    hub.append(PLACE)

    def answer(prompt: str) -> str:
        if "mark=" not in prompt:
            return "Row 4, column 7."
        assert read_question(prompt).material["reference"].startswith("(4,7)")
        return judge(lambda asked: {"reason": "the same place", "class": "correct"})(
            prompt
        )

    with serving(answer=answer) as server:
        where = (
            "--judge",
            "openai/j",
            "-R",
            f"judge.base_url={server.url}",
            "-R",
            "judge.api_key_env=TEST_KEY",
        )
        sent, (record,) = run(server, "babyvision-blank", *where)
    assert value_of(record) == 1, record
    assert len(sent) == 2 and all(png(1) in parts_of(content) for content in sent)


def test_every_file_has_a_case_and_says_what_it_is() -> None:
    for entry in ENTRIES:
        assert not entry.problem
        assert entry.description and "{{" not in entry.description
        if "/math" not in entry.path:
            assert set(entry.members) <= set(CASES), entry.path


def test_the_page_counts_the_tasks_that_it_does_not_name() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md").read_text(
        encoding="utf-8"
    )
    names = [name for entry in TaskIndex().files() for name in entry.members]
    counted = re.findall(
        r"`((?!factual)[\w-]+-)\.\.\.`(?:\]\([^)]*\))? \((\d+)\)", page
    )
    assert len(counted) >= 6
    for prefix, count in counted:
        assert sum(name.startswith(prefix) for name in names) == int(count), prefix
    assert set(CASES) <= set(re.findall(r"`([\w-]+)`", page))


# -- pictures that are files of a data set
# ------------------------------------------------------------------------------

DISH = {
    "qa_id": 407, "lang": "th", "food_id": 949, "prompt_id": 23, "prompt_type": 4, "image_url": "https://example.org/a.jpg", "task": "large_task1",
    "lang_status": "mixed", "image_path": "images/949_1.jpg", "question": "อาหารนี้ชื่ออะไร", "answer": "ข้าวซอย",
    "options": ["ผัดไทย", "ข้าวซอย", "ต้มยำ", "ส้มตำ", "ลาบ"], "mcq_answer_index": 1,
}  # fmt: skip
CUISINE = "datasets--worldcuisines--vqa-v1.1"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the data set's commit in the cache of the hub's library, with one picture
    unpacked in it.
    """
    library = pytest.importorskip(
        "huggingface_hub", reason="the extra `hub` is not installed"
    )
    snapshot = tmp_path / "cache" / CUISINE / "snapshots" / COMMIT
    (snapshot / "images").mkdir(parents=True)
    (snapshot / "images" / "949_1.jpg").write_bytes(png(9))
    (tmp_path / "secret.png").write_bytes(png(1))
    monkeypatch.setattr(library.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(library.constants, "HF_HUB_OFFLINE", True)
    return snapshot


@pytest.mark.parametrize("part", ["dish", "place"])
def test_pictures_are_found_where_the_archive_of_the_data_set_was_unpacked(
    part: str, hub: list[dict[str, Any]], cache: Path
) -> None:
    kind = 4 if part == "dish" else 2
    hub[:] = [
        {**DISH, "prompt_type": kind},
        {**DISH, "lang": "id_casual", "qa_id": 408},
        {**DISH, "lang": "id_formal"},
    ]
    with serving(answer=lambda prompt: "คำตอบ: B") as server:
        (content,), (record,) = run(server, f"sea-world-cuisine-{part}-th")
    picture, text = parts_of(content)
    assert (
        picture == png(9)
        and isinstance(text, str)
        and text.endswith("A. ผัดไทย\nB. ข้าวซอย\nC. ต้มยำ\nD. ส้มตำ\nE. ลาบ")
    )
    assert value_of(record) == 1
    assert record["metadata"]["hint"] == ("misleading" if part == "dish" else "none")
    assert "images/949_1.jpg" in json.dumps(
        record["prompt"]
    ) and COMMIT not in json.dumps(record)
    task = load_task(f"sea-world-cuisine-{part}-id", chat=True)
    assert [(sample.id, sample.cluster) for sample in task.samples] == [
        ("407", "dish 949")
    ]
    assert task.metrics[0].options["chance"] == 1 / len(task.samples[0].choices)


def test_a_picture_that_is_not_there_says_how_to_get_it(
    hub: list[dict[str, Any]], cache: Path
) -> None:
    hub.append({**DISH, "image_path": "images/other.jpg"})
    with pytest.raises(
        DatasetError,
        match=r"'images/other.jpg'.*images\.tar\.gz",
    ):
        load_task("sea-world-cuisine-dish-th", chat=True)
    own = {"prompt.images": "{{ image_url }}"}
    with pytest.raises(DatasetError, match="--image-urls"):
        load_task("sea-world-cuisine-dish-th", chat=True, overrides=own)


@pytest.mark.parametrize(
    "named",
    [
        "../../../../secret.png",
        "images/link.png",
        "/etc/hostname",
        "images/../../x\0",
        "",
    ],
)
def test_rows_of_the_hub_name_nothing_outside_the_data_set(
    named: str, hub: list[dict[str, Any]], cache: Path, tmp_path: Path
) -> None:
    (cache / "images" / "link.png").symlink_to(tmp_path / "secret.png")
    hub.append({**DISH, "image_path": named})
    if not named:  # no picture
        assert load_task("sea-world-cuisine-dish-th", chat=True).samples[0].gold == (1,)
        return
    with pytest.raises(DatasetError, match=r"cannot be fetched|outside"):
        load_task("sea-world-cuisine-dish-th", chat=True)


def test_files_of_the_hub_that_are_links_to_its_blobs_are_read(
    hub: list[dict[str, Any]], cache: Path
) -> None:
    blob = cache.parents[1] / "blobs" / "abc"
    blob.parent.mkdir()
    blob.write_bytes(png(5))
    (cache / "images" / "blob.jpg").symlink_to(blob)
    hub.append({**DISH, "image_path": "images/blob.jpg"})
    assert (
        load_task("sea-world-cuisine-dish-th", chat=True).samples[0].row["image_path"]
        == "images/blob.jpg"
    )


def test_a_copy_of_the_rows_has_its_pictures_in_the_working_folder(
    hub: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "949_1.jpg").write_bytes(png(3))
    (tmp_path / "rows.jsonl").write_text(json.dumps(DISH) + "\n", encoding="utf-8")
    with serving(answer=lambda prompt: "คำตอบ: A") as server:
        (content,), (record,) = run(
            server, "sea-world-cuisine-dish-th", "-T", "dataset.path=rows.jsonl"
        )
    assert parts_of(content)[0] == png(3) and value_of(record) == 0
