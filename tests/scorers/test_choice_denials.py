"""Choices in replies that deny other options: the letter that a reply opens with, "not B but A",
what comes second, an option's place.
"""

from __future__ import annotations

import pytest

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers import choice as module

FRUITS = {
    "en": ("Which is a fruit?", "apple", ("desk", "chair", "pencil")),
    "fr": ("Lequel est un fruit ?", "pomme", ("table", "chaise", "stylo")),
    "es": ("¿Cuál es una fruta?", "manzana", ("mesa", "silla", "lápiz")),
    "de": ("Was ist eine Frucht?", "Apfel", ("Tisch", "Stuhl", "Stift")),
    "pt": ("Qual é uma fruta?", "maçã", ("mesa", "cadeira", "lápis")),
    "id": ("Manakah yang merupakan buah?", "apel", ("meja", "kursi", "pensil")),
    "vi": ("Cái nào là trái cây?", "táo", ("bàn", "ghế", "bút")),
    "ko": ("다음 중 과일은?", "사과", ("책상", "의자", "연필")),
    "ja": ("果物はどれですか。", "りんご", ("机", "椅子", "鉛筆")),
    "zh": ("哪个是水果？", "苹果", ("桌子", "椅子", "铅笔")),
}
"""A question, its right option and three wrong ones, by language."""

CLAIM_AND_REASON = [
    ("en", "{right}. A {text} is not a fruit."), ("en", "Answer: {right}. The {text} isn't a fruit."), ("en", "({right}) A {text} cannot be a fruit."),
    ("en", "The answer is {right} because a {text} is not a fruit."), ("en", "{right} — the {text} is not a fruit at all."),
    ("fr", "{right}. Une {text} n'est pas un fruit."), ("fr", "Réponse : {right}. La {text} n'est pas un fruit."),
    ("es", "{right}. La {text} no es una fruta."), ("es", "Respuesta: {right}) Una {text} no es una fruta."),
    ("de", "{right}. Ein {text} ist keine Frucht."), ("de", "Antwort: {right}. Der {text} ist nicht essbar."), ("de", "Die Antwort ist {right}, weil ein {text} keine Frucht ist."),
    ("pt", "{right}. A {text} não é uma fruta."), ("pt", "Resposta: {right}. Uma {text} não é fruta."),
    ("id", "{right}. {text} bukan buah."), ("id", "Jawaban: {right}. {text} tidak bisa dimakan."), ("id", "Jawabannya adalah {right} karena {text} bukan buah."),
    ("vi", "{right}. {text} không phải là trái cây."), ("vi", "Đáp án là {right} vì {text} không phải là trái cây."),
    ("ko", "{right}. {text}은 과일이 아닙니다."), ("ko", "정답: {right}. {text}은 먹을 수 없으므로 과일이 아닙니다."),
    ("ja", "{right}。{text}は果物ではありません。"), ("ja", "答え：{right}。{text}は果物ではない。"),
    ("zh", "{right}。{text}不是水果。"), ("zh", "答案：{right}。{text}并不是水果。"),
]  # fmt: skip
NOT_ONE_BUT_THE_OTHER = [
    ("en", "Not {wrong} but {right}."), ("en", "The answer is not {wrong} but {right}."), ("en", "Not {wrong}, but rather {right}."), ("en", "Not {wrong}. {right}."),
    ("en", "It cannot be {wrong}, so it is {right}."),
    ("fr", "Ce n'est pas {wrong}, c'est {right}."), ("fr", "La réponse n'est pas {wrong} mais {right}."), ("es", "No es {wrong}, es {right}."), ("es", "No es {wrong} sino {right}."),
    ("de", "Nicht {wrong}, sondern {right}."), ("de", "Die Antwort ist nicht {wrong}, sondern {right}."), ("pt", "Não é {wrong}, mas {right}."),
    ("id", "Bukan {wrong}, melainkan {right}."), ("id", "Jawabannya bukan {wrong} tetapi {right}."), ("vi", "Không phải {wrong} mà là {right}."),
    ("ko", "{wrong}가 아니라 {right}입니다."), ("ko", "{wrong}가 아닙니다. {right}입니다."), ("ko", "정답은 {wrong}가 아니라 {right}입니다."),
    ("ja", "{wrong}ではありません。{right}です。"), ("ja", "{wrong}ではなく{right}です。"), ("ja", "正解は{wrong}ではなく{right}です。"),
    ("zh", "不是{wrong}，是{right}。"), ("zh", "答案不是{wrong}，而是{right}。"), ("zh", "不选{wrong}，选{right}。"),
]  # fmt: skip
PLACES = [
    ("en", ["Option one", "Option two", "Option three", "Option four"]), ("en", ["The first option.", "The second option.", "The third option.", "The fourth option."]),
    ("en", ["The answer is option one.", "The answer is option two.", "The answer is option three.", "The answer is option four."]),
    ("de", ["Option eins", "Option zwei", "Option drei", "Option vier"]), ("de", ["Die erste Option.", "Die zweite Option.", "Die dritte Option.", "Die vierte Option."]),
    ("fr", ["Option un", "Option deux", "Option trois", "Option quatre"]), ("fr", ["La première option.", "La deuxième option.", "La troisième option.", "La quatrième option."]),
    ("es", ["Opción uno", "Opción dos", "Opción tres", "Opción cuatro"]), ("es", ["La primera opción.", "La segunda opción.", "La tercera opción.", "La cuarta opción."]),
    ("pt", ["Opção um", "Opção dois", "Opção três", "Opção quatro"]), ("id", ["Pilihan satu", "Pilihan dua", "Pilihan tiga", "Pilihan empat"]),
    ("id", ["Pilihan pertama.", "Pilihan kedua.", "Pilihan ketiga.", "Pilihan keempat."]), ("vi", ["Phương án một", "Phương án hai", "Phương án ba", "Phương án bốn"]),
    ("ko", ["첫 번째 보기입니다.", "두 번째 보기입니다.", "세 번째 보기입니다.", "네 번째 보기입니다."]), ("ko", ["보기 일", "보기 이", "보기 삼", "보기 사"]),
    ("ja", ["一番目の選択肢です。", "二番目の選択肢です。", "三番目の選択肢です。", "四番目の選択肢です。"]), ("ja", ["選択肢一", "選択肢二", "選択肢三", "選択肢四"]),
    ("zh", ["选项一", "选项二", "选项三", "选项四"]), ("zh", ["第一个选项。", "第二个选项。", "第三个选项。", "第四个选项。"]),
]  # fmt: skip
"""Replies that name the first to the fourth option by its place."""
LETTERS = "ABCD"


def read(
    language: str, reply: str, gold: int, setting: str = "", *, listed: bool = True
) -> Score:
    """The score of a reply where the right option stands at a place; setting: the language that
    the metadata says.
    """
    question, right, wrong = FRUITS[language]
    choices = (*wrong[:gold], right, *wrong[gold:])
    if listed:
        options = "\n".join(
            f"{letter}. {text}" for letter, text in zip(LETTERS, choices, strict=True)
        )
        question = f"{question}\n{options}"
    sample = Sample(
        "s",
        question,
        choices=choices,
        gold=(gold,),
        metadata={"language": setting or language},
    )
    return module.choice(sample, Answer(reply))


@pytest.mark.parametrize("gold", range(4))
@pytest.mark.parametrize(("language", "form"), CLAIM_AND_REASON)
def test_denial_behind_the_letter_is_its_reason(
    language: str, form: str, gold: int
) -> None:
    for distractor in FRUITS[language][2]:
        reply = form.format(right=LETTERS[gold], text=distractor)
        assert read(language, reply, gold).value == 1.0, reply


@pytest.mark.parametrize("setting", ["", "en"])
@pytest.mark.parametrize("gold", range(4))
@pytest.mark.parametrize(("language", "form"), NOT_ONE_BUT_THE_OTHER)
def test_not_one_but_the_other(
    language: str, form: str, gold: int, setting: str
) -> None:
    for wrong in LETTERS.replace(LETTERS[gold], ""):
        reply = form.format(right=LETTERS[gold], wrong=wrong)
        assert read(language, reply, gold, setting).value == 1.0, reply
        assert read(language, reply, gold, setting, listed=False).value == 1.0, reply
        # The option that is denied is never the one that is read, nor is any reading of it sure.
        assert read(language, reply, LETTERS.index(wrong), setting).value == 0.0, reply


@pytest.mark.parametrize("gold", range(4))
@pytest.mark.parametrize(("language", "replies"), PLACES)
def test_place_in_words(language: str, replies: list[str], gold: int) -> None:
    assert read(language, replies[gold], gold).value == 1.0


@pytest.mark.parametrize(
    ("choices", "reply", "gold"),
    [
        (("True", "False"), "B. It is not True.", 1), (("No", "Yes"), "A. No", 0), (("No", "Yes"), "(A) No.", 0), (("False", "True"), "A. False", 0),
        (("Not correct", "Correct"), "A) Not correct", 0), (("increases", "decreases"), "B. It decreases and does not increase.", 1),
        (("apple", "desk", "pen"), "B. Not A.", 1), (("apple", "desk", "pen"), "B (not A)", 1), (("apple", "desk", "pen"), "A rather than B", 0), (("apple", "desk", "pen"), "La respuesta es A. No es B.", 0),
        (("apples", "desk", "chair"), "(C) Apples are not furniture.", 2), (("desk", "apple", "pen"), "A. Not a fruit.\nB. A fruit.\nC. Not a fruit.", 1),
        (("desk", "apple", "pen"), "A) is wrong. The answer is B.", 1), (("desk", "apple"), "A. Wrong, it is the other one.", 1),
        (("Earth", "Mars", "Venus"), "A) Earth is wrong, C) Venus is wrong.", 1), (("Ceres", "Earth", "Mars", "Jupiter"), "Der größte ist der Mars (C), gefolgt von Jupiter (D).", 2),
        (("Ceres", "Earth", "Mars", "Jupiter"), "The largest is Mars (C), followed by Jupiter (D) and Earth (B).", 2),
        (("Ceres", "Earth", "Mars", "Jupiter"), "Le plus grand est Mars (C), suivi de Jupiter (D).", 2), (("Ceres", "Earth", "Mars", "Jupiter"), "El mayor es Marte (C), seguido de Júpiter (D).", 2),
    ],
)  # fmt: skip
def test_other_denials(choices: tuple[str, ...], reply: str, gold: int) -> None:
    assert (
        module.choice(
            Sample("s", "Which?", choices=choices, gold=(gold,)), Answer(reply)
        ).value
        == 1.0
    )


def test_letter_that_is_only_denied_is_not_chosen() -> None:
    sample = Sample("s", "Which?", choices=("desk", "apple", "chair", "pen"), gold=(0,))
    for reply in ("(A) no. ", "(A) no. " * 12, "(A) no. " * 12_000):
        score = module.choice(sample, Answer(reply))
        assert score.value == 0.0 or score.unsure


def test_place_that_is_denied_is_not_chosen() -> None:
    sample = Sample("s", "Which?", choices=("desk", "apple", "chair", "pen"), gold=(2,))
    assert module.choice(sample, Answer("It is not the third option.")).value == 0.0
