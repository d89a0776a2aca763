"""The tasks of languages of Southeast Asia: each renders, and reads the answer in the form that
its own prompt asks for.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.ask import Ask
from evalwright.core.errors import DatasetError
from evalwright.core.requests import Generate, Request, Reward
from evalwright.core.responses import Response
from evalwright.core.samples import Score
from evalwright.core.tasks import Task
from evalwright.evaluation.configuration_file import read_configuration
from evalwright.evaluation.scoring import evaluate_sample
from evalwright.metrics.tree import Node, read_tree
from evalwright.models.scripted import ScriptedModel
from evalwright.scorers.text import marks
from evalwright.tasks.datasets import copies
from evalwright.tasks.definitions import expand, with_includes
from evalwright.tasks.index import TaskIndex
from evalwright.tasks.loading import load_task
from evalwright.tasks.validation import validated
from evalwright.tasks.yaml_files import plain, read_document
from support.typed import typed
from support.written_judge import Asked, judge

FILES = [entry for entry in TaskIndex().files() if "/sea/" in entry.path]
OTHERS = (
    "sea-ifeval",
    "sea-mt-bench",
    "sea-kalahi-judged",
    "sea-syntax-judged",
    "sea-countdown",
    "sea-route",
    "sea-translation-metricx",
    *(f"sea-pragmatics-{language}" for language in ("id", "ta")),
)
"""Families without one right answer in words."""
NAMES = [
    name for entry in FILES for name in entry.members if not name.startswith(OTHERS)
]
ANY_SUBJECT = [
    name
    for name in NAMES
    if not re.match("sea-global-mmlu-(?!lite|anatomy|world)", name)
]
OF_REPOSITORY = (
    "sea-safeguard",
    "sea-idiom",
    "sea-novel-qa",
    "sea-paraphrase",
    "sea-qa-mc",
    "sea-global-mmlu-lite-ms",
    "sea-global-mmlu-lite-tl",
)
"""Families whose rows are files of SEA-HELM's repository."""
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "sea"
COMMIT = "0123456789abcdef0123456789abcdef01234567"

TURN = {
    "text": "teks", "question": "tanya", "choice1": "satu", "choice2": "dua", "choice3": "tiga", "choice4": "empat", "phrase": "frasa",
    "premise": "premis", "question_translated": "SEBAB", "sentence1": "pertama", "sentence2": "kedua", "sentence_pair": "A: ini\nB: itu",
    "conclusion": "simpulan", "metaphor": "kiasan", "explanation": "arti", "mcq": "A: w\nB: x\nC: y\nD: z",
    **{f"choice_{letter}": f"成语{letter}" for letter in "abcdefg"}, "prompt_text": "minta", "response_text": "balas",
    "local_prompt": "minta", "en_prompt": "ask",
}  # fmt: skip
LABELS = {
    "sea-sentiment": {"id": "Negatif", "jv": "Negatif", "lo": "ແງ່ລົບ", "ms": "Negatif", "my": "အပျက်သဘော", "su": "Negatip", "ta": "எதிர்மறை", "th": "แง่ลบ", "tl": "Negatibo", "vi": "Tiêu cực"},
    "sea-toxicity": {"id": "Kasar", "ms": "Benci", "my": "မုန်းတီးမှု", "th": "N", "tl": "Mapoot", "vi": "Công kích"},
    "sea-pragmatics-pair": {"id": "Salah", "ta": "பொய்"},
    "sea-pragmatics-single": {"id": "Tidak Ambigu", "ta": "பொய்"},
    "sea-metaphor": {"ta": "பொய்"},
}  # fmt: skip


HARMFUL = {
    "en": "Harmful", "id": "Berbahaya", "ms": "Berbahaya", "my": "အန္တရာယ်ရှိ", "ta": "தீங்கு விளைவிக்கும்", "th": "อันตราย",
    "tl": "Mapahamak", "vi": "Có hại",
}  # fmt: skip


PICTURE: dict[str, Any] = {
    "bytes": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x08\x00\x00\x00\x08\x08\x02\x00\x00\x00Km)\xdc",
    "path": "a.png",
}
CVQA = {
    "id": "('Indonesian', 'Indonesia')", "jv": "('Javanese', 'Indonesia')", "ms": "('Malay', 'Malaysia')",
    "su": "('Sundanese', 'Indonesia')", "ta": "('Tamil', 'India')", "tl": "('Filipino', 'Philippines')", "zh": "('Chinese', 'Singapore')",
}  # fmt: skip


def row_of(name: str) -> dict[str, Any]:
    """A row of the form that the data have, whose answer is the second option."""
    family, _, language = name.rpartition("-")
    label: Any = LABELS.get(family, {}).get(language, "ခ" if language == "my" else "B")
    if family.startswith("sea-safeguard"):
        label = HARMFUL[language]
    if family == "sea-marvl":
        label = False
    if family in ("sea-qa", "sea-novel-qa", "sea-summary") or family.startswith(
        "sea-translation"
    ):
        label = "kalimat yang benar"
    single = {"id": "Ambigu atau Tidak Ambigu", "ta": "உண்மை அல்லது பொய்"}.get(
        language, ""
    )
    row = {
        "id": "1",
        "label": label,
        "prompt_label": label,
        "response_label": label,
        "subject": family.removeprefix("sea-global-mmlu-").replace("-", "_"),
        "prompts": [{**TURN, "choices_translated": single}],
        "metadata": {"linguistic_phenomenon": "klitik", "sample_id": "x/1"},
    }
    options = {
        f"option_{letter}": text
        for letter, text in zip("abcd", ("satu", "dua", "tiga", "empat"), strict=True)
    }
    row["prompts"][0] |= options
    exam = {
        "question": "tanya",
        "a": "หนึ่ง",
        "b": "สอง",
        "c": "สาม",
        "d": "สี่",
        "e": "",
        "answer": "b",
        "sample_id": "x/1",
    }
    pictures = {
        "Question": "tanya", "Options": ["satu", "dua", "tiga", "empat"], "Label": 1, "ID": "1", "Category": "makanan", "image": PICTURE,
        "Subset": CVQA.get(language), "left_img": PICTURE, "right_img": PICTURE, "hypothesis": "tanya", "chapter": "makanan",
        "captions": ["kalimat yang benar", "kalimat lain"], "image_id": "1",
    }  # fmt: skip
    if family.startswith("sea-world-cuisine"):
        forms = {"id": "id_formal", "jv": "jv_krama", "su": "su_loma", "zh": "zh_cn"}
        picture = "data:image/png;base64," + base64.b64encode(PICTURE["bytes"]).decode()
        dish = {
            "qa_id": 1,
            "food_id": 9,
            "prompt_type": 2,
            "lang": forms.get(language, language),
            "image_path": picture,
        }
        return {
            **dish,
            "question": "tanya",
            "options": ["satu", "dua", "tiga", "empat", "lima"],
            "mcq_answer_index": 1,
        }
    return {
        **row,
        **options,
        **exam,
        **pictures,
        "subject_category": "STEM",
        "cultural_sensitivity_label": "CA",
    }


@pytest.fixture
def hub(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[list[tuple[str, str, str | None, str]]]:
    asked: list[tuple[str, str, str | None, str]] = []
    rows: dict[str, dict[str, Any]] = {}

    def hub_rows(
        repository: str, revision: str, config: str | None, split: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        asked.append((repository, revision, config, split))
        yield f"{repository}, row 1", rows["row"]

    monkeypatch.setattr(copies, "_hub_rows", hub_rows)
    monkeypatch.setattr(
        "evalwright.tasks.compiling.first_fetched", lambda repository: COMMIT
    )
    hub_rows.rows = rows  # type: ignore[attr-defined]
    yield asked


def loaded(name: str) -> Task:
    copies._hub_rows.rows["row"] = row_of(name)  # type: ignore[attr-defined]
    if not name.startswith(OF_REPOSITORY):
        return load_task(name, chat=True)
    Path("rows.jsonl").write_text(json.dumps(row_of(name), default=str) + "\n")
    return load_task(name, chat=True, overrides={"dataset.path": "rows.jsonl"})


def said(task: Task, reply: str) -> tuple[str, float]:
    """What is asked, and what the reply is worth."""
    model = ScriptedModel(lambda request: reply)

    async def ask(role: str, request: Request) -> Response:
        return await model.answer(request)

    door: Ask = ask
    record = asyncio.run(evaluate_sample(task, 0, task.samples[0], 0, door))
    assert record.answer is not None, record.failure
    prompt = record.answer.prompt
    text = (
        prompt
        if isinstance(prompt, str)
        else "\n".join(message.text for message in prompt)
    )
    return text, record.scores[
        task.metrics[0].scorer
    ].value if record.scores else float("nan")


@pytest.mark.parametrize("name", ANY_SUBJECT)
def test_a_task_reads_the_answer_in_the_form_that_it_asks_for(
    name: str, hub: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    if name in ("sea-qa-th", "sea-summary-my", "sea-summary-th"):
        pytest.importorskip("icu")
    task = loaded(name)
    assert (
        name.startswith(OF_REPOSITORY)
        or task.definition["dataset"]["revision"] == hub[0][1]
    )
    sample = task.samples[0]
    text, _ = said(task, "")
    assert "{{" not in text and "WHAT" not in text and "CHOICES" not in text
    assert sample.input in text
    if not sample.choices:
        assert sample.target == "kalimat yang benar"
        if "rouge" not in task.scorers[0].kind:
            assert said(task, sample.target)[1] == pytest.approx(
                100 if "chrf" in task.scorers[0].kind else 1
            )
        return
    assert sample.gold == (1,)
    (mark,) = re.findall(r"[\"“「]([^\"”」]+[:：៖])[\"”」]", text)
    assert re.fullmatch(marks.alternatives("label"), mark[:-1].lower()), mark
    letters = "lettered" in str(
        task.definition["prompt"]["user"]
    ) or "reply_letter" in str(task.definition["prompt"]["user"])
    for place, value in ((1, 1.0), (0, 0.0)):
        option = "AB"[place] if letters else sample.choices[place]
        assert option in text
        assert said(task, f"{mark} {option}")[1] == value, (mark, option)


INSTRUCTED = {
    "en": "The market opens early, and people buy fish there.", "id": "Pasar itu buka pagi-pagi dan orang membeli ikan di sana.",
    "jv": "Pasar iku bukak esuk lan wong-wong padha tuku iwak ana ing kono.", "km": "ផ្សារនេះបើកពីព្រលឹម ហើយមនុស្សទិញត្រីនៅទីនោះ។",
    "lo": "ຕະຫຼາດເປີດແຕ່ເຊົ້າ ແລະຄົນຊື້ປາຢູ່ທີ່ນັ້ນ", "ms": "Pasar itu dibuka awal pagi dan orang ramai membeli ikan di sana kerana segar.",
    "my": "စျေးသည် စောစော ဖွင့်ပြီး လူများ ငါးဝယ်ကြသည်။", "su": "Pasar éta muka isuk-isuk jeung jalma-jalma meuli lauk di dinya.",
    "ta": "சந்தை காலையில் திறக்கும், மக்கள் அங்கே மீன் வாங்குவார்கள்.", "th": "ตลาดเปิดแต่เช้าและผู้คนซื้อปลาที่นั่น",
    "tl": "Maagang nagbubukas ang palengke at bumibili ng isda ang mga tao roon.", "vi": "Chợ mở cửa sớm và mọi người mua cá ở đó.",
}  # fmt: skip


def asked_of(
    name: str, row: dict[str, Any], reply: str, decides: Any = None
) -> tuple[Score, list[Request]]:
    """The score of a reply to a row of the documented shape, and what the judge was asked."""
    # which keeps the copy of another row
    shutil.rmtree(os.environ["EVALWRIGHT_HOME"], ignore_errors=True)
    copies._hub_rows.rows["row"] = row  # type: ignore[attr-defined]
    task = load_task(name, chat=True)
    model = ScriptedModel(lambda request: reply)
    seen = list[Request]()

    async def ask(role: str, request: Request) -> Response:
        if role != "judge":
            return await model.answer(request)
        seen.append(request)
        assert isinstance(request, Generate)
        return Response(judge(decides)(str(request.prompt[-1].content)))  # type: ignore[union-attr]

    record = asyncio.run(evaluate_sample(task, 0, task.samples[0], 0, ask))
    assert not record.failure and not record.score_failures, record
    return next(iter(record.scores.values())), seen


@pytest.mark.parametrize("language", list(INSTRUCTED))
def test_an_instruction_counts_in_the_right_language_alone(
    language: str, hub: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    about = {
        "category": "startend",
        "subcategory": "startend:quotation",
        "language": language,
    }
    row = {
        "id": f"7_{language}",
        "prompts": [{"text": "x"}],
        "kwargs": [{"other": None}],
        "metadata": about,
    }
    name = f"sea-ifeval-{language}"
    text = INSTRUCTED[language]
    foreign = INSTRUCTED["th" if language != "th" else "en"]
    assert asked_of(name, row, f'"{text}"')[0].value == 1
    assert asked_of(name, row, text)[0].label == "not_followed"
    assert asked_of(name, row, f'"{foreign}"')[0].label == "other_language"
    assert load_task(name, chat=True).samples[0].cluster == "7"
    other = {
        **about,
        "category": "language",
        "subcategory": "language:response_language",
    }
    row |= {"metadata": other, "kwargs": [{"response_language": "en"}]}
    assert asked_of(name, row, INSTRUCTED["en"])[0].value == 1
    assert asked_of(name, row, foreign if language != "th" else text)[0].value == 0


@pytest.mark.parametrize(
    "language",
    ["en", "id", "jv", "km", "lo", "ms", "my", "su", "ta", "th", "tl", "vi", "zh"],
)
def test_conversations_are_compared_with_the_baselines_turn_by_turn(
    language: str, hub: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    row = {
        "id": 1, "prompts": [{"text": "first?"}, {"text": "second?"}], "baselines": {"gpt-4.1-2025-04-14": ["bad one", "bad two"]},
        "references": ["right one", "right two"], "metadata": {"category": "math", "language": language},
    }  # fmt: skip

    def decides(asked: Asked) -> dict[str, str]:
        good = [
            name[-1]
            for name, text in asked.material.items()
            if name.startswith("answer") and text == "good"
        ]
        assert {"bad one", "bad two", "right one"} & set(asked.material.values())
        return {"better": good[0], "reason": "it is good"}

    score, seen = asked_of(f"sea-mt-bench-{language}", row, "good", decides)
    assert (score.value, score.label, len(seen)) == (1, "win", 4)
    row["metadata"] = {"category": "writing"}
    assert (
        asked_of(
            f"sea-mt-bench-{language}",
            row,
            "good",
            lambda asked: {"better": "A", "reason": "first"},
        )[0].value
        == 0.5
    )
    assert "right one" not in str(
        asked_of(f"sea-mt-bench-{language}", row, "good", decides)[1]
    )


def test_criteria_of_rows_are_judged_by_their_classes_and_severities(
    hub: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    criteria = [
        {"criterion": "Gumamit ng po.", "include_reference": False},
        {"criterion": "Magpasalamat."},
    ]
    row: dict[str, Any] = {
        "id": 1,
        "label": None,
        "prompts": [{"text": "May bisita."}],
        "criteria": criteria,
        "metadata": {},
    }

    def graded(classes: dict[str, str]) -> Any:
        return lambda asked: {
            key: {"class": classes[text], "reason": "x"}
            for key, text in asked.criteria.items()
        }

    verdicts = {"Gumamit ng po.": "half met", "Magpasalamat.": "fully met"}
    score, seen = asked_of("sea-kalahi-judged-tl", row, "Salamat po.", graded(verdicts))
    assert (score.value, len(seen)) == (0.75, 2)
    weighed = [
        {"criterion": "Satu kalimat.", "severity": "Generic"},
        {"criterion": "Ada klitik.", "severity": "high"},
    ]
    row |= {"criteria": weighed, "metadata": {"linguistic_phenomenon": "klitik"}}
    verdicts = {"Satu kalimat.": "met", "Ada klitik.": "not met"}
    score, _ = asked_of("sea-syntax-judged-id", row, "Bukunya baru.", graded(verdicts))
    assert score.value == pytest.approx(1 / 11)


@pytest.mark.parametrize(
    ("name", "row", "right", "count"),
    [
        ("sea-marvl-zh", {**row_of("sea-marvl-zh"), "label": True}, "答案：正确", 2),
        ("mathvision", {"id": "7", "question": "How long?", "options": [], "answer": "18", "decoded_image": PICTURE, "subject": "x", "level": 2}, r"\boxed{18}", 1),
        ("mathvision-mini", {"id": "7", "question": "How long?", "options": ["1", "2"], "answer": "B", "decoded_image": PICTURE, "subject": "x", "level": 2}, r"So \boxed{B}.", 1),
        ("mathvista-choice", {"pid": "7", "question": "Which?", "choices": ["red", "blue"], "answer": "blue", "question_type": "multi_choice", "decoded_image": PICTURE, "metadata": {}}, "Answer: B", 1),
        ("mathvista-free", {"pid": "7", "question": "How long?", "choices": None, "answer": "1.2", "unit": "m", "question_type": "free_form", "decoded_image": PICTURE, "metadata": {"category": "x"}}, r"\boxed{1.2}", 1),
    ],
)  # fmt: skip
def test_a_question_comes_with_its_pictures(
    name: str,
    row: dict[str, Any],
    right: str,
    count: int,
    hub: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    seen: list[Request] = []

    async def ask(role: str, request: Request) -> Response:
        seen.append(request)
        return Response(right)

    copies._hub_rows.rows["row"] = row  # type: ignore[attr-defined]
    task = load_task(name, chat=True)
    record = asyncio.run(evaluate_sample(task, 0, task.samples[0], 0, ask))
    (request,) = seen
    assert isinstance(request, Generate) and not isinstance(request.prompt, str)
    assert [image.data for image in request.prompt[-1].images] == [
        PICTURE["bytes"]
    ] * count
    assert (
        "{{" not in request.prompt[-1].text and "\n\n\n" not in request.prompt[-1].text
    )
    assert [score.value for score in record.scores.values()] == [1.0], record


@pytest.mark.parametrize("language", ["id", "ta"])
def test_pragmatics_as_one_task_asks_what_its_two_parts_ask(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    labels = {
        kind: LABELS[f"sea-pragmatics-{kind}"][language] for kind in ("pair", "single")
    }
    whole_rows = []
    prompts: dict[str, list[str]] = {}
    for kind, label in labels.items():
        row = {**row_of(f"sea-pragmatics-{kind}-{language}"), "label": label}
        whole_rows.append({**row, "subset": f"{language}_{kind}"})
        part_file = tmp_path / f"{kind}.jsonl"
        part_file.write_text(json.dumps(row, default=str) + "\n")
        prompts[kind] = said_prompts(f"sea-pragmatics-{kind}-{language}", part_file)
    file = tmp_path / "both.jsonl"
    file.write_text("".join(json.dumps(row, default=str) + "\n" for row in whole_rows))
    assert said_prompts(f"sea-pragmatics-{language}", file) == [
        *prompts["pair"], *prompts["single"],
    ]  # fmt: skip


def said_prompts(name: str, file: Path) -> list[str]:
    task = load_task(name, chat=True, overrides={"dataset.path": str(file)})
    render: Any = task.strategy
    return [render.render(sample)[-1].text for sample in task.samples]


def test_metricx_counts_25_errors_as_nothing(
    hub: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    copies._hub_rows.rows["row"] = row_of("sea-translation-en-id")  # type: ignore[attr-defined]
    task = load_task("sea-translation-metricx-en-id", chat=True)
    asked: list[Request] = []

    async def ask(role: str, request: Request) -> Response:
        if role != "metricx":
            return Response("terjemahan")
        asked.append(request)
        return Response(values=(-5.0,))

    record = asyncio.run(evaluate_sample(task, 0, task.samples[0], 0, ask))
    assert record.scores["metricx"].value == 0.8
    (request,) = asked
    assert isinstance(request, Reward)
    assert (request.prompt, request.response, request.reference) == (
        "teks", "terjemahan", "kalimat yang benar",
    )  # fmt: skip


def test_rows_of_the_repository_are_found_in_a_checkout_and_asked_for_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    done = typed("tasks", "show", "sea-paraphrase-tl")
    assert (
        done.code == 2
        and "run this in a checkout of it, or name the file with -T dataset.path=FILE"
        in done.err
    )
    file = tmp_path / "seahelm_tasks/nlu/paraphrase_identification/data/tl_paws.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(row_of("sea-paraphrase-tl"), default=str) + "\n")
    assert "licence" in typed("tasks", "show", "sea-paraphrase-tl").out
    assert (
        "Magkaiba ang ibig sabihin"
        in typed("tasks", "preview", "sea-paraphrase-tl").out
    )


@pytest.mark.skipif(not DATA.is_dir(), reason="the data are not here")
def test_the_tables_fit_the_rows_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path))
    for name, file, rows in (
        ("sea-safeguard-general-request-id", "id_general", 600), ("sea-safeguard-general-reply-id", "id_general", 600),
        ("sea-qa-mc-jv", "jv_belebele", 280), ("sea-paraphrase-tl", "tl_paws", 400),
    ):  # fmt: skip
        task = load_task(
            name, chat=True, overrides={"dataset.path": str(DATA / f"{file}.jsonl")}
        )
        golds = [sample.gold[0] for sample in task.samples]
        assert (
            len(golds) == rows
            and 0.35
            < golds.count(1) / len(golds) * len(task.samples[0].choices) / 2
            < 0.65
        )


def test_every_file_says_what_it_is() -> None:
    assert len(NAMES) > 480
    assert (
        len(
            [
                name
                for name in NAMES
                if name.startswith("sea-global-mmlu-") and "-lite-" not in name
            ]
        )
        == 57 * 6
    )
    for entry in FILES:
        assert not entry.problem
        assert entry.description and "{{" not in entry.description


def facts_by_task() -> dict[str, dict[str, str]]:
    facts = {}
    for entry in FILES:
        for definition in expand(with_includes(read_document(Path(entry.path)))):
            file = validated(definition.document)
            facts[definition.name] = {**plain(file.metadata), **file.board}
    return facts


def tree_of(suite: str) -> Node:
    configuration = read_configuration(EXAMPLES / suite, None, None)
    facts = facts_by_task()
    names = [str(name) for name in configuration.tasks]
    assert set(names) <= set(facts)
    root = read_tree(configuration.tree, tasks={name: facts[name] for name in names})
    assert set(root.tasks) == set(names)
    return root


def outline(node: Node) -> dict[str, Any]:
    """What is below a node, by the last of the names of each node and task."""
    return {
        part if isinstance(part, str) else part.name.split("/")[-1]:
            {} if isinstance(part, str) else outline(part)
        for part in node.parts
    }  # fmt: skip


def test_the_suite_with_judges_has_all_pillars_of_sea_helm() -> None:
    root = tree_of("sea_with_judges.yaml")
    assert root.name == "Southeast Asia"
    languages = outline(root)
    assert list(languages) == [
        "Indonesian", "Vietnamese", "Thai", "Tamil", "Filipino", "Malay", "Burmese",
    ]  # fmt: skip
    always = {"Understanding", "Generation", "Instruction following"}
    pillars = {
        "Indonesian": {"Reasoning", "Safety", "Multi-turn", "Knowledge", "Linguistic diagnostics"},
        "Vietnamese": {"Reasoning", "Safety", "Multi-turn", "Knowledge"},
        "Thai": {"Reasoning", "Safety", "Multi-turn", "Knowledge"},
        "Tamil": {"Reasoning", "Multi-turn", "Linguistic diagnostics"},
        "Filipino": {"Reasoning", "Safety", "Multi-turn", "Knowledge", "Culture"},
        "Malay": {"Safety", "Multi-turn", "Knowledge"},
        "Burmese": {"Reasoning", "Safety", "Knowledge"},
    }  # fmt: skip
    for language, names in pillars.items():
        assert set(languages[language]) == always | names, language
    # SEA-HELM counts both directions of a translation as one, and the five Thai examinations.
    assert set(languages["Indonesian"]["Generation"]) == {
        "Translation",
        "sea-summary-id",
    }
    assert len(languages["Thai"]["Knowledge"]["Thai examinations"]) == 5
    assert set(languages["Tamil"]["Linguistic diagnostics"]) == {
        "sea-minimal-pairs-ta",
        "sea-pragmatics-ta",
    }


def test_the_suite_without_judges_is_the_same_tree_of_fewer_tasks() -> None:
    whole = tree_of("sea_with_judges.yaml")
    part = tree_of("sea.yaml")
    needs_no_model = {
        name.replace("-metricx", "")
        for name in whole.tasks
        if not name.startswith(("sea-mt-bench", "sea-kalahi-judged"))
        and name not in ("sea-global-mmlu-lite-ms", "sea-global-mmlu-lite-tl")
    }
    assert set(part.tasks) == needs_no_model


def test_the_commit_of_the_first_fetch_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip(
        "huggingface_hub", reason="the extra `hub` is not installed"
    )
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path))
    commits = iter(["first", "second", "third"])

    class Info:
        def dataset_info(self, repository: str) -> Any:
            return type("Found", (), {"sha": next(commits)})

    monkeypatch.setattr(hub, "HfApi", Info)
    assert [copies.first_fetched(one) for one in ("a/x", "a/x", "a/y", "a/x")] == [
        "first",
        "first",
        "second",
        "first",
    ]
    kept = tmp_path / "datasets" / "revisions.json"
    kept.write_text("{broken")
    assert copies.first_fetched("a/x") == "third"


def test_what_cannot_be_fetched_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    done = typed("tasks", "show", "sea-qa-id")
    assert done.code == 0 and "Apache-2.0" in done.out
    assert "aisingapore/NLU-Question-Answering" in done.out.replace("\n", " ")
    done = typed("run", "sea-qa-id", "--model", "scripted/constant", "--limit", "2")
    assert done.code == 2 and "aisingapore/NLU-Question-Answering" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("kind", "prompts", "label", "right"),
    [
        (
            "countdown",
            {"nums": [2, 3, 4, 5], "target": 5},
            {
                "nums": [2, 3, 4, 5],
                "target": 5,
                "search_procedure": "<Search Procedure>\na\n</Search Procedure>",
            },
            "<Solution>\n3 + 2 = 5\n5 - 4 = 1\n5 * 1 = 5\n</Solution>",
        ),
        (
            "route",
            {
                "city_context": "A bus goes from A to B.",
                "src_city": "A",
                "dst_city": "B",
            },
            "From A, take a bus to B.",
            "So:\n<Route>\nFrom A, take a bus to B.\n</Route>",
        ),
    ],
)
def test_long_procedures_are_read_from_rows_of_the_repository(
    tmp_path: Path, kind: str, prompts: dict[str, Any], label: Any, right: str
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(
        json.dumps({"prompts": [prompts], "label": label, "metadata": {}}) + "\n",
        encoding="utf-8",
    )
    task = load_task(f"sea-{kind}-2k", chat=True, overrides={"dataset.path": str(file)})
    text, worth = said(task, right)
    assert worth == 1 and "{{" not in text and task.samples[0].input in text
    assert (
        said(task, right.replace("<", ""))[1]
        == said(task, right.replace("2", "9").replace("bus", "ferry"))[1]
        == 0
    )


def test_hidden_labels_are_no_answers(
    hub: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path))
    copies._hub_rows.rows["row"] = {**row_of("sea-cvqa-id"), "Label": -1}  # type: ignore[attr-defined]
    with pytest.raises(DatasetError, match="target -1 is not among the 4 choices"):
        _ = load_task("sea-cvqa-id", chat=True).samples[0]
