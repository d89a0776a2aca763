"""One answer set against another, numbers with counters, and options by their place.

The rows were labelled before they were first run, but for "not only 3 but 5" and "5 is not ...",
which were added by what was seen.
"""

from __future__ import annotations

import pytest

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import bind
from scorers.scoring import score_of

CHOICE = bind("choice")
NUMERIC = bind("numeric")
HOW_MANY = "사과는 몇 개입니까?"
HOW_LONG = "며칠 걸렸나?"
WHAT_YEAR = "전쟁이 끝난 해는?"
CAPITAL = "대한민국의 수도는?"
AUTHOR = "소나기의 작가는?"

NUMBERS = [
    # language, question, target, reply, whether it is right
    ("ko", HOW_MANY, "5", "3개가 아니라 5개입니다.", True), ("ko", HOW_MANY, "3", "3개가 아니라 5개입니다.", False),
    ("ko", HOW_MANY, "5", "3개가 아닙니다. 5개입니다.", True), ("ko", HOW_MANY, "3", "3개가 아닙니다. 5개입니다.", False),
    ("ko", HOW_MANY, "5", "3 말고 5", True), ("ko", HOW_MANY, "3", "3 말고 5", False),
    ("ko", HOW_MANY, "5", "3개는 아니고 5개예요.", True), ("ko", HOW_MANY, "5", "3개 대신 5개입니다.", True),
    ("ko", HOW_MANY, "5", "3이라고 착각하기 쉽지만 5입니다.", True), ("ko", HOW_MANY, "3", "3이라고 착각하기 쉽지만 5입니다.", False),
    ("ko", HOW_MANY, "5", "5개라고 생각합니다.", True), ("ko", HOW_MANY, "5", "5개가 아닙니다.", False),
    ("ko", HOW_MANY, "5", "5개입니다. 3개가 아닙니다.", True), ("ko", HOW_MANY, "3", "5개입니다. 3개가 아닙니다.", False),
    ("ko", WHAT_YEAR, "1598", "1592년이 아니라 1598년입니다.", True), ("ko", WHAT_YEAR, "1592", "1592년이 아니라 1598년입니다.", False),
    ("ko", WHAT_YEAR, "1598년", "1592년이 아닌 1598년입니다.", True), ("ko", WHAT_YEAR, "1598년", "1592년 말고 1598년입니다.", True),
    ("ko", WHAT_YEAR, "1598년", "1598년이 아닙니다.", False),
    ("en", "Which year did the war end?", "1598", "Not in 1592 but in 1598.", True), ("en", "Which year did the war end?", "1592", "Not in 1592 but in 1598.", False),
    ("en", "Which year did the war end?", "1598", "It was not in 1592; it was in 1598.", True),
    ("en", "How many apples?", "5", "Not 3 but 5 apples.", True), ("en", "How many apples?", "3", "Not 3 but 5 apples.", False),
    ("en", "How many apples?", "5", "There are not 3 apples but 5.", True), ("en", "How many apples?", "5", "5, not 3.", True),
    ("en", "How many apples?", "5", "It is not 5.", False), ("en", "How many apples?", "3", "5 rather than 3.", False),
    ("en", "How many apples?", "5", "There were not only 3 but 5.", True), ("en", "How many apples?", "5", "5 is not the answer.", False), ("en", "How many apples?", "5", "5 is not even.", True),
    ("de", "Wie viele Äpfel?", "5", "Nicht 3, sondern 5 Äpfel.", True), ("de", "Wie viele Äpfel?", "3", "Nicht 3, sondern 5 Äpfel.", False),
    ("fr", "Combien de pommes ?", "5", "Pas 3 mais 5 pommes.", True), ("es", "¿Cuántas manzanas?", "5", "No 3 sino 5 manzanas.", True),
    ("es", "¿En qué año terminó?", "1598", "No en 1592 sino en 1598.", True), ("pt", "Quantas maçãs?", "5", "Não 3, mas 5 maçãs.", True),
    ("ja", "りんごは何個ですか。", "5", "3個ではなく5個です。", True), ("ja", "りんごは何個ですか。", "3", "3個ではなく5個です。", False),
    ("ja", "終わった年は？", "1598", "1592年ではなく1598年です。", True), ("ja", "終わった年は？", "1592", "1592年ではなく1598年です。", False),
    ("zh", "有几个苹果？", "5", "不是3个，而是5个。", True), ("zh", "有几个苹果？", "5", "不是3个而是5个。", True), ("zh", "有几个苹果？", "3", "不是3个而是5个。", False),
    ("id", "Berapa apel?", "5", "Bukan 3 melainkan 5 apel.", True), ("vi", "Có bao nhiêu quả táo?", "5", "Không phải 3 mà là 5 quả.", True),
    # what follows from what
    ("ko", HOW_MANY, "2", "3개에서 1개를 먹었으므로 2개가 남습니다.", True), ("ko", HOW_MANY, "3", "3개에서 1개를 먹었으므로 2개가 남습니다.", False),
    ("ko", HOW_MANY, "42", "따라서 답은 사십이이다.", True), ("ko", HOW_MANY, "40", "답은 사십이다.", True), ("ko", HOW_MANY, "40", "따라서 답은 사십이이다.", False),
]  # fmt: skip
COUNTED = [
    # target, reply, whether it is right; without a stated type
    ("12000원", "12000원", True), ("12000원", "12,000원이다", True), ("12,000원", "12000원입니다", True), ("12000원", "1만 2천 원입니다.", True),
    ("12000원", "만이천원", True), ("12000원", "₩12,000", True), ("12000원", "12000달러", False), ("12000원", "1만 2백 원", False), ("12000원", "1200원", False),
    ("5천만 명", "약 50,000,000명", True), ("5천만 명", "오천만 명", True), ("5천만 명", "5백만 명", False),
    ("3개", "삼 개", True), ("3개", "세 개입니다.", True), ("3개", "사과는 모두 셋입니다.", True), ("3개", "13개", False), ("3개", "30개", False), ("3개", "네 개", False),
    ("3개", "3개에서 1개를 먹었으므로 2개가 남습니다.", False), ("2개", "3개에서 1개를 먹었으므로 2개가 남습니다.", True), ("3개", "5개가 아니라 3개입니다.", True),
    ("21명", "스물 한 명", True), ("21명", "스물한 명입니다", True), ("스물한 명", "21명", True), ("스물한 명", "22명", False), ("21명", "이십일 명이에요.", True), ("21명", "스물두 명", False),
    ("2마리", "두 마리", True), ("두 마리", "2마리", True), ("두 마리", "세 마리입니다.", False), ("두 마리", "두 마리입니다.", True),
    ("17세", "17살", True), ("17세", "열일곱 살", True), ("17세", "16살", False), ("5권", "다섯 권입니다.", True), ("5층", "오층", True), ("30살", "서른 살입니다.", True),
    ("세 번째", "3번째입니다.", True), ("3번째", "세 번째", True), ("세 번째", "셋째", True), ("세 번째", "네 번째", False), ("첫 번째", "1번째", True), ("세 번째", "제3번째입니다", True),
    ("사흘", "3일입니다.", True), ("3일", "사흘", True), ("사흘", "4일입니다.", False), ("나흘", "4일", True), ("보름", "15일", True), ("열흘", "10일간", True), ("사흘", "사흘 걸렸습니다.", True),
]  # fmt: skip
COUNTED_ELSEWHERE = [
    # language, target, reply, whether it is right
    ("ja", "3個", "三個です", True), ("ja", "3個", "3つです", True), ("ja", "3個", "五個", False), ("ja", "2匹", "二匹です", True), ("ja", "3番目", "三番目です", True), ("ja", "3番目", "3つ目", True),
    ("ja", "5000円", "5,000円です", True), ("ja", "5000円", "5000ドル", False), ("ja", "14:30", "午後2時半", True),
    ("zh", "3个", "三个", True), ("zh", "5岁", "五岁", True), ("zh", "两个", "2个", True), ("zh", "3个", "4个", False),
    ("ko", "12000원", "１２，０００원", True), ("ko", "10월 9일", "시월 구일입니다.", True), ("ko", "14:30", "오후 두 시 반", True), ("ko", "14:30", "오전 두 시 반", False), ("ko", "0.5", "영점오", True),
    ("ko", "7/3", "2와 3분의 1", True), ("ko", "25%", "25%포인트", False), ("en", "25%", "25 percentage points", False), ("ko", "1시간 30분", "한 시간 반", True), ("ko", "100점", "백 점", True),
    ("ko", "3개", "3개 이상", False), ("ko", "5개", "5개 아니면 6개", False), ("ko", "3명", "사과 5개를 3명이 나눈다", True), ("ko", "3개", "첫째, 5개를 산다. 둘째, 2개를 먹는다. 따라서 3개.", True),
    ("ko", "5층석탑", "5층석탑", True), ("ko", "2호선", "2호선이 아니라 3호선", False), ("ko", "14세기", "14세기입니다", True), ("ko", "3권분립", "3권분립이다", True),
]  # fmt: skip
NOT_COUNTED_SURELY = [("3개", "3명"), ("3번째", "3개"), ("두 마리", "2kg")]
"""The target's number with another counter: not surely right."""
NAMES = [
    # language, question, target, reply, whether it is right
    ("ko", CAPITAL, "서울", "서울은 틀린 답이다. 부산이다.", False), ("ko", CAPITAL, "서울", "서울은 오답이다.", False), ("ko", CAPITAL, "서울", "서울 말고 부산이다.", False),
    ("ko", CAPITAL, "서울", "서울 대신 부산", False), ("ko", CAPITAL, "서울", "서울을 제외한 부산이 정답이다.", False), ("ko", CAPITAL, "서울", "정답은 서울이라고 볼 수 없습니다.", False),
    ("ko", CAPITAL, "서울", "서울이라고 하기는 어렵습니다.", False), ("ko", CAPITAL, "서울", "흔히 서울이라고 착각하지만 부산이 수도입니다.", False),
    ("ko", CAPITAL, "서울", "서울이라고 생각했는데 알고 보니 부산이었습니다.", False), ("ko", AUTHOR, "황순원", "황순원 작가의 작품이지만 실제 지은이는 김동리이다.", False),
    ("ko", CAPITAL, "서울", "서울이라는 말도 있지만 실제로는 세종입니다.", False), ("ko", CAPITAL, "서울", "서울이라고들 하지만 사실은 부산입니다.", False),
    ("en", "What is the capital of France?", "Paris", "Lyon instead of Paris", False), ("ko", "Capital of France?", "Paris", "Lyon instead of Paris", False),
    ("ja", "日本の首都は？", "東京", "東京と思われがちですが、実は大阪です。", False), ("ja", "日本の首都は？", "東京", "東京は間違いです。大阪です。", False),
    ("ja", "日本の首都は？", "東京", "東京と勘違いされますが、大阪です。", False), ("zh", "法国的首都是哪里？", "巴黎", "很多人误以为是巴黎，其实是里昂。", False),
    ("zh", "法国的首都是哪里？", "巴黎", "巴黎是错误的答案。", False), ("de", "Was ist die Hauptstadt von Frankreich?", "Paris", "Paris ist die falsche Antwort.", False),
    ("es", "¿Cuál es la capital de Francia?", "París", "París es la respuesta incorrecta.", False), ("fr", "Quelle est la capitale ?", "Paris", "Paris est la mauvaise réponse.", False),
    ("en", "What is the capital of France?", "Paris", "Many believe it is Paris, but actually it is Lyon.", False),
    # counter-examples
    ("ko", CAPITAL, "서울", "부산은 틀린 답이다. 서울이다.", True), ("ko", CAPITAL, "서울", "부산 말고 서울이다.", True), ("ko", CAPITAL, "서울", "부산 대신 서울입니다.", True),
    ("ko", CAPITAL, "서울", "흔히 부산이라고 착각하지만 서울이 수도입니다.", True), ("ko", CAPITAL, "서울", "부산이라고 생각했는데 알고 보니 서울이었습니다.", True),
    ("ko", CAPITAL, "서울", "서울이라고 생각합니다.", True), ("ko", CAPITAL, "서울", "서울이라고 할 수 있습니다.", True), ("ko", CAPITAL, "서울", "서울이라고 합니다.", True),
    ("ko", CAPITAL, "서울", "서울이라고 볼 수 있습니다.", True), ("ko", CAPITAL, "서울", "서울이 맞습니다. 부산은 오답입니다.", True),
    ("ko", CAPITAL, "서울", "부산을 제외하고 서울이 정답이다.", True), ("ja", "日本の首都は？", "東京", "大阪と思われがちですが、実は東京です。", True), ("ja", "日本の首都は？", "東京", "東京だと思います。", True),
    ("en", "What is the capital of France?", "Paris", "Paris instead of Lyon", True), ("en", "What is the capital of France?", "Paris", "Paris, not Lyon.", True),
    ("de", "Was ist die Hauptstadt von Frankreich?", "Paris", "Lyon ist die falsche Antwort. Es ist Paris.", True),
    # endings
    ("ko", CAPITAL, "서울", "서울이요", True), ("ko", CAPITAL, "서울", "서울임.", True), ("ko", CAPITAL, "서울", "서울인 것 같아요", True), ("ko", CAPITAL, "서울", "서울이잖아요.", True),
    ("ko", CAPITAL, "서울", "서울일걸요?", True), ("ko", CAPITAL, "서울", "서울일 거예요.", True), ("ko", CAPITAL, "부산", "서울이요", False), ("ko", CAPITAL, "서울", "서울인가요?", False),
    ("ko", "국적은?", "한국인", "한국인", True), ("ko", "무엇인가?", "게임", "게임", True), ("ko", "무엇인가?", "책임", "책", False), ("ko", "무엇인가?", "게임", "게임이요", True),
]  # fmt: skip
CITIES = ("서울", "부산", "대구", "인천")
COUNTS = ("3개", "5개", "7개", "9개")
CHOICES = [
    # options, right, reply, and whether it is surely right, surely not, or open (None)
    (CITIES, 1, "1번 아니면 2번", False), (CITIES, 0, "1번 아니면 2번", False), (CITIES, 1, "1번이 아니라 2번", True), (CITIES, 1, "1번 아니고 2번", True),
    (CITIES, 1, "서울 아니면 부산", False), (COUNTS, 2, "3", None), (COUNTS, 0, "3", None), (COUNTS, 0, "답은 3.", None), (COUNTS, 1, "정답은 5입니다.", True),
    (COUNTS, 1, "정답은 5번", False), (COUNTS, 1, "5번", False), (COUNTS, 1, "2번", True), (COUNTS, 1, "정답은 5개", True), (COUNTS, 2, "답은 3번.", True), (COUNTS, 2, "③", True),
    (CITIES, 1, "둘째 보기가 맞습니다", None), (CITIES, 0, "첫째", None), (CITIES, 2, "셋째 보기", None), (CITIES, 1, "오답: (A)이고, 정답은 (B)입니다.", True), (CITIES, 0, "오답: (A)이고, 정답은 (B)입니다.", False),
    (CITIES, 0, "오답: (A)", False), (CITIES, 1, "Wrong answer: A. Correct answer: B.", True), (CITIES, 0, "Wrong answer: A. Correct answer: B.", False),
    (CITIES, 1, "2", True), (("2", "3", "4", "5"), 1, "3", True),
]  # fmt: skip
PLACES_READ = [
    ("둘째 보기가 맞습니다", 1),
    ("첫째", 0),
    ("셋째 보기", 2),
    ("넷째입니다", 3),
]


@pytest.mark.parametrize(
    ("language", "question", "target", "reply", "is_right"), NUMBERS
)
def test_a_number_that_is_set_against_another_is_not_the_answer(
    language: str, question: str, target: str, reply: str, is_right: bool
) -> None:
    assert_reads(score_of(target, reply, question, language=language), is_right)
    if "년" not in target:
        sample = Sample("s", question, (target,), metadata={"language": language})
        assert_reads(NUMERIC.function(sample, Answer(reply)), is_right)


@pytest.mark.parametrize(("target", "reply", "is_right"), COUNTED)
def test_a_number_with_its_counter_is_read_in_every_writing(
    target: str, reply: str, is_right: bool
) -> None:
    assert_reads(score_of(target, reply, "얼마인가?", language="ko"), is_right)


@pytest.mark.parametrize(("language", "target", "reply", "is_right"), COUNTED_ELSEWHERE)
def test_counters_dates_and_times_in_words(
    language: str, target: str, reply: str, is_right: bool
) -> None:
    assert_reads(score_of(target, reply, "무엇인가?", language=language), is_right)


@pytest.mark.parametrize(
    ("reply", "target"),
    [
        ("서울은 오답이 아니다.", "서울"),
        ("서울이라고 해도 과언이 아닙니다.", "서울"),
        ("東京以外にありません。", "東京"),
    ],
)
def test_a_denial_of_a_denial_is_never_surely_wrong(reply: str, target: str) -> None:
    score = score_of(
        target, reply, CAPITAL, language="ja" if target == "東京" else "ko"
    )
    assert score.value == 1 or score.unsure


@pytest.mark.parametrize(("target", "reply"), NOT_COUNTED_SURELY)
def test_another_counter_is_never_surely_right(target: str, reply: str) -> None:
    score = score_of(target, reply, "얼마인가?", language="ko")
    assert score.value == 0 or score.unsure


def test_the_second_of_two_years_is_not_read_and_never_surely_wrong() -> None:
    assert score_of(
        "1598년", "1592년에 시작해 1598년에 끝났습니다.", WHAT_YEAR, language="ko"
    ).unsure


@pytest.mark.parametrize(("language", "question", "target", "reply", "is_right"), NAMES)
def test_a_name_that_is_rejected_is_not_the_answer(
    language: str, question: str, target: str, reply: str, is_right: bool
) -> None:
    assert_reads(score_of(target, reply, question, language=language), is_right)


@pytest.mark.parametrize(("options", "right", "reply", "is_right"), CHOICES)
def test_what_a_choice_denies_offers_or_leaves_open(
    options: tuple[str, ...], right: int, reply: str, is_right: bool | None
) -> None:
    score = chosen(options, right, reply)
    if is_right is None:
        assert score.unsure
    else:
        assert_reads(score, is_right)


@pytest.mark.parametrize(("reply", "place"), PLACES_READ)
def test_korean_places_in_one_word_name_options(reply: str, place: int) -> None:
    assert chosen(CITIES, place, reply).value == 1


def chosen(options: tuple[str, ...], right: int, reply: str) -> Score:
    """The score of a reply to a question with options."""
    sample = Sample(
        "s",
        "다음 중 무엇인가?",
        (options[right],),
        options,
        (right,),
        metadata={"language": "ko"},
    )
    score = CHOICE.function(sample, Answer(reply))
    assert isinstance(score, Score)
    return score


def assert_reads(score: object, is_right: bool) -> None:
    """The score is right where it should be; a wrong reply may never be surely right, nor the
    other way round.
    """
    assert isinstance(score, Score)
    assert (score.value == 1) is is_right, score
