"""Token F1 against numbers worked out by hand."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from evalwright.core.errors import ConfigurationError, MissingExtra, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import bind
from evalwright.scorers.text import segmentation
from evalwright.scorers.token_f1 import token_f1


@pytest.mark.parametrize(
    ("text", "targets", "value"),
    [
        ("The red house.", ("red house",), 1.0),
        ("a red house by a lake", ("red house",), 2 * 0.5 * 1 / 1.5),
        ("house house", ("house",), 2 * 0.5 * 1 / 1.5),
        ("blue", ("red", "blue"), 1.0),
        ("well-known", ("well known",), 1.0),
        ("green", ("red",), 0.0),
        ("", ("red",), 0.0),
    ],
)
def test_values(text: str, targets: tuple[str, ...], value: float) -> None:
    assert token_f1(Sample("s", targets=targets), Answer(text)).value == pytest.approx(
        value, abs=1e-12
    )


def test_labels_and_parts() -> None:
    found = token_f1(Sample("s", targets=("red house",)), Answer("red barn"))
    assert (found.label, found.parts) == ("partial", {"precision": 0.5, "recall": 0.5})


def test_no_target_is_an_error() -> None:
    with pytest.raises(ScoringError, match="no target"):
        token_f1(Sample("s"), Answer("x"))


# What MLQA's and SQuAD's published normalisation makes of each, worked out by hand: articles,
# punctuation, characters of Chinese.
BY_LANGUAGE = [
    ("de", "Die Zugspitze, der höchste Berg", "die zugspitze ist ein Berg", ["zugspitze", "höchste", "berg"], ["zugspitze", "ist", "berg"]),
    ("es", "El río Amazonas", "¿un río?", ["río", "amazonas"], ["río"]),
    ("vi", "những quyển sách của tôi", "quyển sách", ["quyển", "sách", "tôi"], ["quyển", "sách"]),
    ("ar", "البيت الكبير", "بيت كبير", ["بيت", "كبير"], ["بيت", "كبير"]),
    ("fr", "L’eau de la mer", "l'eau", ["eau", "de", "mer"], ["eau"]),
    ("it", "l'acqua del mare", "un'acqua", ["acqua", "del", "mare"], ["acqua"]),
    ("zh-Hans", "北京大学 1898年", "北京。", ["北", "京", "大", "学", "1898", "年"], ["北", "京"]),
    ("tr", "a the ev", "ev", ["a", "the", "ev"], ["ev"]),
    ("hi", "एक किताब।", "किताब", ["एक", "किताब"], ["किताब"]),
]  # fmt: skip


@pytest.mark.parametrize(("language", "target", "text", "wanted", "given"), BY_LANGUAGE)
def test_words_go_by_the_language(
    language: str, target: str, text: str, wanted: list[str], given: list[str]
) -> None:
    sample = Sample("a", targets=(target,), metadata={"language": language})
    found = bind("token-f1").function(sample, Answer(text))
    assert isinstance(found, Score)
    shared = sum(min(wanted.count(word), given.count(word)) for word in set(wanted))
    assert (found.parts["precision"], found.parts["recall"]) == (
        shared / len(given),
        shared / len(wanted),
    )
    again = bind("token-f1", {"language": language}).function(
        Sample("a", targets=(target,)), Answer(text)
    )
    assert again == found


@pytest.mark.skipif(not find_spec("icu"), reason="needs PyICU")
def test_thai_is_segmented_and_chinese_where_it_is_wanted() -> None:
    thai = Sample("a", targets=("แมวกินปลา",), metadata={"language": "th"})
    found = bind("token-f1").function(thai, Answer("แมวกินข้าว"))
    assert isinstance(found, Score)
    assert found.value == pytest.approx(2 / 3)
    chinese = bind("token-f1", {"language": "zh", "unit": "words"})
    found = chinese.function(Sample("a", targets=("我们去学校。",)), Answer("学校"))
    assert isinstance(found, Score)
    assert found.parts == {"precision": 1.0, "recall": 1 / 3}


def test_what_cannot_be_used_is_said_when_it_is_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigurationError, match="characters or words"):
        bind("token-f1", {"unit": "letters"})
    monkeypatch.setattr(segmentation, "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtra,
        match=r"'km'.*'PyICU'",
    ):
        bind("token-f1", {"language": "km"})
    assert bind("token-f1", {"language": "zh"}).kind == "token-f1"


def test_exact_match_takes_the_articles_of_the_language() -> None:
    options = {"ignore_case": True, "ignore_articles": True, "ignore_punctuation": True}
    german = Sample("a", targets=("Die Zugspitze",), metadata={"language": "de"})
    for answer, language, value in (
        ("zugspitze.", None, 1.0),
        ("der Zugspitze", None, 1.0),
        ("zugspitze", "en", 0.0),
    ):
        found = bind("exact-match", {**options, "language": language}).function(
            german, Answer(answer)
        )
        assert isinstance(found, Score)
        assert found.value == value


def test_exact_matches_are_of_the_whole_answer() -> None:
    """Beside F1, whether the words are a target's, in their order; what follows counts too."""
    exact = bind("token-f1", {"exact": True, "language": "en"}).function
    sample = Sample("s", targets=("The red fox", "a fox"))
    for text, wanted in (
        ("the red fox!", 1.0),
        ("Fox", 1.0),
        ("fox red", 0.0),
        ("red fox\n\nor a hen", 0.0),
    ):
        score = exact(sample, Answer(text))
        assert isinstance(score, Score)
        assert score.parts["exact_match"] == wanted, text
    plain = bind("token-f1").function(sample, Answer("fox"))
    assert isinstance(plain, Score) and "exact_match" not in plain.parts
    with pytest.raises(ConfigurationError, match="exact"):
        bind("token-f1", {"exact": "yes"})
