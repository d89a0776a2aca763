"""What boards group tasks by: the key `board`, which decides no number, and what the bundled tasks
say in it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.core.errors import TaskError
from evalwright.evaluation.resolving import run_identity
from evalwright.metrics.dimension_titles import key_title, value_title
from evalwright.tasks.definitions import expand, with_includes
from evalwright.tasks.index import TaskIndex
from evalwright.tasks.loading import load_task
from evalwright.tasks.validation import validated
from evalwright.tasks.yaml_files import plain, read_document

Facts = dict[str, dict[str, str]]

CAPITALS = """\
task: capitals
dataset: {rows: [{input: a, target: b}]}
metadata: {language: en, licence: CC0}
"""


@pytest.fixture(scope="module")
def bundled() -> Facts:
    """Metadata and board keys by task."""
    facts = {}
    for entry in TaskIndex().files():
        if "/library/" not in entry.path:
            continue
        for definition in expand(with_includes(read_document(Path(entry.path)))):
            file = validated(definition.document)
            facts[definition.name] = {**plain(file.metadata), **file.board}
    return facts


SET_OF_SEA_HELM = {
    "id": "sentiment qa metaphor toxicity translation-en-id translation-id-en summary causal nli syntax-judged minimal-pairs pragmatics ifeval global-mmlu-lite",
    "vi": "sentiment qa toxicity translation-en-vi translation-vi-en summary causal nli ifeval global-mmlu-lite",
    "th": "sentiment qa toxicity translation-en-th translation-th-en summary causal nli ifeval",
    "ta": "sentiment qa translation-en-ta translation-ta-en summary causal nli ifeval minimal-pairs pragmatics",
    "tl": "sentiment belebele toxicity translation-en-tl translation-tl-en summary causal nli ifeval kalahi kalahi-judged global-mmlu-lite",
    "ms": "sentiment belebele toxicity translation-en-ms translation-ms-en ifeval global-mmlu-lite",
    "my": "sentiment belebele toxicity translation-en-my translation-my-en summary causal nli ifeval global-mmlu-lite",
}  # fmt: skip
"""Its set `seahelm`, by our names, without `mt-bench-judge`, whose criteria belong to turns."""


def test_board_keys_are_metadata_that_move_neither_hash_nor_identity(
    tmp_path: Path,
) -> None:
    file = tmp_path / "capitals.yaml"
    file.write_text(CAPITALS)
    plain_task = load_task(str(file), chat=True)
    file.write_text(CAPITALS + "board: {language: id, category: Geography, year: 3}\n")
    task = load_task(str(file), chat=True)

    assert task.metadata == {
        "language": "id", "licence": "CC0", "category": "Geography", "year": "3",
    }  # fmt: skip
    assert task.samples[0].metadata == plain_task.samples[0].metadata
    assert task.samples.content_hash == plain_task.samples.content_hash
    assert task.definition == plain_task.definition
    identities = {
        run_identity("model", {}, [each], None, 0) for each in (task, plain_task)
    }
    assert len(identities) == 1


def test_a_wrong_board_key_says_where(tmp_path: Path) -> None:
    file = tmp_path / "capitals.yaml"
    file.write_text(CAPITALS + "board: {category: [a, b]}\n")
    with pytest.raises(
        TaskError, match=r"capitals.yaml:4: `board.category` must be text"
    ):
        load_task(str(file), chat=True)


def test_every_bundled_task_says_its_language(bundled: Facts) -> None:
    assert len(bundled) > 1000
    assert [name for name, facts in bundled.items() if not facts.get("language")] == []
    untitled = {
        facts["language"]
        for name, facts in bundled.items()
        if value_title("language", facts["language"]) == facts["language"]
    }
    # Belebele names a language with its script, in codes of three letters.
    assert {code for code in untitled if "_" not in code} == set()


def test_tasks_of_southeast_asia_say_their_competency(bundled: Facts) -> None:
    names = [name for name in bundled if name.startswith(("sea-", "thai-exam"))]
    assert len(names) > 480
    untitled = [
        name
        for name in names
        if value_title("competency", bundled[name].get("competency", ""))
        in ("", bundled[name].get("competency"))
    ]
    assert untitled == []


@pytest.mark.parametrize("language", list(SET_OF_SEA_HELM))
def test_the_main_set_of_sea_helm_is_there_in_its_language(
    language: str, bundled: Facts
) -> None:
    families = SET_OF_SEA_HELM[language].split()
    names = [
        f"sea-{family}"
        if family.startswith("translation")
        else f"sea-{family}-{language}"
        for family in families
    ]
    assert {bundled[name]["language"] for name in names} == {language}


def test_a_translation_counts_for_the_language_that_is_not_english(
    bundled: Facts,
) -> None:
    languages = {
        name: bundled[f"sea-translation-{name}"]["language"]
        for name in ("en-id", "id-en", "zh-en", "id-jv", "su-id", "metricx-my-en")
    }
    assert languages == {
        "en-id": "id", "id-en": "id", "zh-en": "zh", "id-jv": "jv", "su-id": "su", "metricx-my-en": "my",
    }  # fmt: skip


def test_korean_tasks_say_their_category(bundled: Facts) -> None:
    korean = [
        name
        for entry in TaskIndex().files()
        if "/korean/" in entry.path
        for name in entry.members
    ]
    assert {bundled[name].get("category") for name in korean} == {
        "Knowledge", "Language and culture", "Mathematics", "Reasoning", "Law", "Medicine", "Judging",
    }  # fmt: skip


def test_keys_and_values_have_titles() -> None:
    assert key_title("language") == "Language"
    assert key_title("grade_level") == "Grade level"
    assert value_title("language", "th") == "Thai"
    assert value_title("language", "pt-BR") == "Portuguese"
    assert value_title("language", "zh_t") == "Chinese (traditional)"
    assert value_title("language", "xx") == "xx"
    assert value_title("competency", "nlu") == "Understanding"
    assert value_title("category", "Law") == "Law"
