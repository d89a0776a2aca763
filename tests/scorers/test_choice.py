"""Multiple choice: the strategy's choice, length-normalised choices, and choices read out of
text.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError, ScoringError, UsageError
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers import choice as module
from evalwright.scorers.answers.option_reader import NOT_EXTRACTED, extract_option
from evalwright.scorers.registry import bind
from support.bounds import assert_grows_linearly, repeated

CITIES = ("Berlin", "Paris", "Rome", "Madrid")
SAMPLE = Sample("s", choices=CITIES, gold=(1,))


def choice(sample: Sample, answer: Answer, normalise: str = "none") -> Score:
    """The scorer."""
    return module.choice(sample, answer, normalise=normalise)


CHOSEN = [
    ("B", 1), ("b", 1), ("(B)", 1), ("B.", 1), ("B)", 1), ("**B**", 1), ("B: Paris", 1), ("B) Paris", 1), ("(B) Paris", 1), ("[B]", 1),
    ("Answer: B", 1), ("The answer is B.", 1), ("The correct answer is (B).", 1), ("the answer is **B**", 1), ("Option B", 1),
    ("I choose B", 1), ("\\boxed{B}", 1), ("$\\boxed{\\text{B}}$", 1), ("B\n\nQuestion: next\nAnswer: C", 1), ("Paris", 1), ("paris.", 1),
    ("It is Paris.", 1), ("The capital is Paris, of course", 1), ("not Berlin but Paris", 1), ("I think B is right", 1), ("정답은 B", 1),
    ("答案是B", 1), ("A", 0), ("A. Berlin", 0), ("D", 3),
]  # fmt: skip
UNSURE = [("B) Rome", 1), ("Rome. Paris is larger.", 2)]
NOTHING = [
    ("", "not_attempted"),
    ("I don't know", "not_attempted"),
    ("E", "unreadable"),
    ("A and B", "incorrect"),
    ("None of the above.", "incorrect"),
    ("London", "unreadable"),
    ("A good question", "unreadable"),
    ("A) Berlin\nB) Paris\nC) Rome\nD) Madrid", "unreadable"),
]
OTHERS = [
    ("ru", "Ответ: С", 2), ("es", "La respuesta correcta es la **b)**.", 1), ("pt", "A alternativa correta é a letra D.", 3), ("zh", "选B。", 1),
    ("ko", "정답은 2번 파리입니다.", 1), ("fr", "Rome (C)", 2), ("it", "A Roma, anzi: Paris", 1),
    ("ko", "ㄴ", 1), ("ko", "나", 1), ("ko", "②", 1), ("th", "ข", 1), ("ru", "Б", 1), ("ja", "イ", 1), ("zh", "乙", 1), ("ar", "ب", 1), ("ja", "Ｂ", 1),
    ("fa", "گزینه ۲", 1), ("hi", "सही उत्तर ख।", 1), ("km", "ចម្លើយគឺ ខ។", 1),
]  # fmt: skip
NOT_A_BUT_B = [
    ("en", "It is not A, it is B."), ("en", "B, not A."), ("ja", "Aではありません。Bです。"), ("ko", "A가 아니라 B입니다."), ("zh", "不是A，是B。"), ("zh", "选A不对，应该选B。"),
    ("es", "No es A, sino B."), ("de", "Nicht A, sondern B."), ("fr", "Ce n'est pas A, c'est B."), ("pt", "Não é A, é B."), ("it", "Non è A, ma B."), ("ru", "Не А, а Б."),
    ("tr", "A değil, B."), ("th", "ไม่ใช่ ก แต่เป็น ข"), ("vi", "Không phải A mà là B."), ("id", "Bukan A, melainkan B."), ("hi", "A नहीं, B."), ("ar", "ليس أ بل ب"),
]  # fmt: skip
RUNS_ON = [
    "B\n\nQuestion: What is the capital of Chile?\nA. Lima\nB. Quito\nAnswer: C",
    "B. Paris\n2. What is the capital of Chile?\nA. Lima\nC. Santiago\nAnswer: C",
    "B\n문제: 칠레의 수도는?\n정답: C",
    "B\n题目：智利的首都是？\n答案：C",
    "Paris\nWhat is the capital of Chile?\nA. Lima\nB. Quito\nAnswer: A",
    "Ｂ\n\n問題：チリの首都はどこですか。\n答え：A",
]


def test_an_option_may_say_that_nothing_can_be_said() -> None:
    open_one = Sample("s", choices=("Yes", "No", "Cannot be determined"), gold=(2,))
    for text in ("Cannot be determined", "The answer is (C) Cannot be determined."):
        assert choice(open_one, Answer(text)).label == "correct"


def test_where_the_question_denies_the_option_that_is_denied_is_the_answer() -> None:
    primes = Sample(
        "s", "Which of these is not prime?", choices=("19", "21", "23"), gold=(1,)
    )
    for text in ("21 is not prime, as it is 3 times 7.", "B) 21"):
        assert choice(primes, Answer(text)).label == "correct"
    denied = choice(primes, Answer("21 is prime, 23 is not."))
    assert denied.label == "incorrect" and denied.unsure


@pytest.mark.parametrize(("text", "index"), CHOSEN)
def test_choices_in_text(text: str, index: int) -> None:
    assert extract_option(text, CITIES).option == index


@pytest.mark.parametrize(("language", "text", "index"), OTHERS)
def test_choices_in_other_languages(language: str, text: str, index: int) -> None:
    assert extract_option(text, CITIES, language).option == index


@pytest.mark.parametrize(("language", "text"), NOT_A_BUT_B)
def test_an_option_that_is_denied_is_not_chosen(language: str, text: str) -> None:
    assert extract_option(text, CITIES, language).option == 1


@pytest.mark.parametrize("text", RUNS_ON)
def test_only_the_answer_to_this_question_is_read(text: str) -> None:
    question = "What is the capital of France?\nA. Berlin\nB. Paris\nC. Rome\nD. Madrid\nAnswer:"
    assert extract_option(text, CITIES, question=question).option == 1


@pytest.mark.parametrize(("text", "index"), UNSURE)
def test_of_several_options_the_one_claimed_most_strongly_counts_and_is_unsure(
    text: str, index: int
) -> None:
    chosen = extract_option(text, CITIES)
    assert chosen.option == index
    assert chosen.unsure


@pytest.mark.parametrize("text", ["A or B", "Answer: A or B", "Paris or Rome"])
def test_two_options_offered_are_no_choice_that_is_sure(text: str) -> None:
    found = choice(Sample("s", choices=CITIES, gold=(3,)), Answer(text))
    assert (found.value, bool(found.unsure)) == (0.0, True)


def test_the_last_of_two_answers_counts() -> None:
    assert extract_option("A or B, but I'd go with A", CITIES).option == 0
    assert (
        extract_option(
            "Answer: A\n\nWait, that is in Germany. Answer: B", CITIES
        ).option
        == 1
    )


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("(B)", 1),
        ("왕건", 0),
        ("정답은 이성계입니다.", 1),
        ("견훤이 아니라 궁예입니다.", 2),
    ],
)
def test_options_whose_texts_stand_in_the_question_only(text: str, index: int) -> None:
    question = "조선을 건국한 인물은?\n(A) 왕건\n(B) 이성계\n(C) 궁예\n(D) 견훤"
    assert (
        extract_option(text, ("(A)", "(B)", "(C)", "(D)"), "ko", question).option
        == index
    )


def test_jamo_in_the_options_are_statements_and_no_letters() -> None:
    options = ("ㄱ", "ㄴ", "ㄱ, ㄷ", "ㄴ, ㄷ")
    assert extract_option("정답은 ③ ㄱ, ㄷ입니다.", options, "ko").option == 2


def test_a_random_reply_in_korean_is_scored() -> None:
    """Every answer counts: what names no option is wrong, and surely so."""
    fruit = Sample(
        "s",
        "다음 중 과일은?",
        choices=("배추", "사과", "감자", "쌀"),
        gold=(1,),
        metadata={"language": "ko"},
    )
    for text in ("저는 음악을 좋아합니다.", "7", "가나다라마바사", "????", "Z"):
        found = choice(fruit, Answer(text))
        assert (found.value, found.unsure, found.parts["predicted"]) == (0.0, "", -1)


@pytest.mark.parametrize(("text", "label"), NOTHING)
def test_a_text_that_surely_chooses_no_single_option(text: str, label: str) -> None:
    found = choice(SAMPLE, Answer(text))
    assert (found.value, found.label) == (0.0, label)
    assert found.parts == {"gold": 1.0, "predicted": NOT_EXTRACTED}


def test_options_inside_other_options() -> None:
    options = ("India", "Indiana", "Indian Ocean", "the Indian Ocean floor")
    assert extract_option("It is Indiana", options).option == 1
    assert extract_option("It is the Indian Ocean floor.", options).option == 3
    assert extract_option("It is the Indian Ocean.", options).option == 2
    assert extract_option("8.5", ("8", "8.5", "18", "5")).option == 1


def test_the_strategys_choice_is_taken() -> None:
    found = choice(SAMPLE, Answer("Rome", choice=1))
    assert (found.value, found.label) == (1.0, "correct")
    assert found.parts == {"gold": 1.0, "predicted": 1.0}


def test_several_right_options_have_no_gold_class() -> None:
    found = choice(Sample("s", choices=CITIES, gold=(1, 2)), Answer("", choice=2))
    assert found.value == 1.0
    assert "gold" not in found.parts


@pytest.mark.parametrize(
    ("normalise", "predicted"),
    [("none", 0), ("characters", 1), ("bytes", 2), ("tokens", 3)],
)
def test_normalised_choices(normalise: str, predicted: int) -> None:
    options = ("ab", "abcdefgh", "ééééééé", "abc")
    values = (-4.0, -8.0, -8.0, -6.0)
    counts = (1, 3, 3, 4)
    answer = Answer(
        choice=0,
        log_likelihoods=values,
        responses=tuple(Response(tokens_scored=count) for count in counts),
    )
    found = choice(
        Sample("s", choices=options, gold=(predicted,)), answer, normalise=normalise
    )
    assert found.parts["predicted"] == predicted
    assert found.value == 1.0


def test_what_cannot_be_normalised_is_a_failure_not_a_score() -> None:
    with pytest.raises(ScoringError, match="every option needs a log-likelihood"):
        choice(SAMPLE, Answer("B"), normalise="bytes")
    answer = Answer(log_likelihoods=(-1.0,) * 4, responses=(Response(),) * 4)
    with pytest.raises(ScoringError, match="how many tokens"):
        choice(SAMPLE, answer, normalise="tokens")
    with pytest.raises(UsageError, match="none, characters, bytes, tokens"):
        choice(SAMPLE, answer, normalise="length")
    with pytest.raises(ScoringError, match="no options"):
        choice(Sample("s"), Answer("B"))


@given(st.text(max_size=80), st.lists(st.text(max_size=10), min_size=2, max_size=6))
def test_no_text_breaks_the_extraction(text: str, options: list[str]) -> None:
    chosen = extract_option(text, tuple(options))
    assert NOT_EXTRACTED <= chosen.option < len(options)
    assert chosen.why


# -- one of a fixed set of labels in a response
# -------------------------------------------------------------------------


THAI = ("ปลอดภัย", "อันตราย")


@pytest.mark.parametrize(
    ("labels", "tag", "text", "read"),
    [
        (("Safe", "Harmful"), "Answer:", "It is harmful?\nAnswer: Safe.", "Safe"),
        (("Safe", "Harmful"), "Answer:", "Answer: Safer", "null"),
        (("Safe", "Harmful"), "Answer:", "Answer: Safe or Harmful", "null"),
        (("Safe", "Harmful"), "Answer:", "Answer: A", "null"),
        (("Safe", "Harmful"), "Answer:", "Answer: 1", "null"),
        (("False", "True"), "Answer:", "1", "null"),
        (("0", "1"), "Answer:", "<script>alert(1)</script>", "null"),
        (("0", "1"), "Answer:", "Answer: A", "null"),
        (("A", "B"), "Answer:", "(1) is an example.", "null"),
        (("A", "B"), "Answer:", "I would choose option B.", "B"),
        (("Safe", "Harmful"), "", "**harmful**", "Harmful"),
        (THAI, "คำตอบ:", "คำตอบ: อันตรายครับ", "อันตราย"),
        (THAI, "คำตอบ:", "คำตอบ：「ปลอดภัย」", "ปลอดภัย"),
        (("An toàn", "Có hại"), "Câu trả lời:", "câu trả lời: *có hại*", "Có hại"),
        (("Ya", "Tidak"), "Jawaban:", "Jawaban: ya, jawaban yang benar", "Ya"),
    ],
)
def test_reading(labels: tuple[str, ...], tag: str, text: str, read: str) -> None:
    scorer = bind("label", {"labels": list(labels), "tag": tag})
    score = scorer.function(Sample("s", targets=(labels[0],)), Answer(text))
    assert isinstance(score, Score) and score.label == read
    assert score.value == (read == labels[0])
    assert score.parts["predicted"] == (labels.index(read) if read in labels else -1)


@pytest.mark.parametrize("script", ["L{n}", "签{one}{other}"])
def test_thousands_of_options_take_the_time_of_their_number(script: str) -> None:
    def written(n: int) -> str:
        return script.format(n=n, one=chr(0x4E00 + n), other=chr(0x5000 + n // 7))

    def read(options: tuple[str, ...]) -> None:
        assert extract_option(f"The answer is {options[7]}", options).option == 7

    assert_grows_linearly(
        read, lambda n_options: tuple(map(written, range(n_options))), (600, 10_000)
    )


def test_options_of_one_endless_word_take_the_time_of_their_length() -> None:
    def read(length: int) -> None:
        long = "".join(chr(0x4E00 + n % 9973) for n in range(length))
        assert extract_option("北京" * length, (long, "上海")).option == NOT_EXTRACTED

    assert_grows_linearly(read, int, (3_000, 50_000))


@pytest.mark.parametrize(
    "piece",
    [
        "A. Berlin\n",
        "not B ",
        "Paris is ",
        "(A) or ",
        "Answer: B? ",
        "答案",
        "가 ",
        "Bではない",
        "**A** ",
        "\n\nA: ",
    ],
)
def test_long_replies_are_bounded(piece: str) -> None:
    assert_grows_linearly(lambda text: extract_option(text, CITIES), repeated(piece))


def test_errors() -> None:
    for options in (
        {"labels": ["A"]},
        {"labels": ["A", "A"]},
        {"labels": "AB"},
        {"labels": ["A", "B"], "tag": 3},
    ):
        with pytest.raises(ConfigurationError):
            bind("label", options)
    with pytest.raises(ScoringError, match="no label of the task"):
        bind("label", {"labels": ["A", "B"]}).function(
            Sample("s", targets=("C",)), Answer("A")
        )
