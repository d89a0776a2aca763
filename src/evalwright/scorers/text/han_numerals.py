"""Numbers in Chinese, Japanese and Korean characters: "二千零八", "삼백"."""

from __future__ import annotations

from evalwright.scorers.text.tokens import word_list

DIGITS = {
    char: digit
    for digit, chars in enumerate(
        word_list(
            "零〇영공 一壹일 二贰兩两이 三叁삼 四肆사 五伍오 六陆륙육 七柒칠 八捌팔 九玖구"
        )
    )
    for char in chars
}

PLACES = {
    char: 10**power
    for power, chars in enumerate(("十拾십", "百佰백", "千仟천"), 1)
    for char in chars
}

MYRIADS = {
    char: 10 ** (4 * power)
    for power, chars in enumerate(("万萬만", "亿億억", "兆조"), 1)
    for char in chars
}


def read_numerals(run: str) -> int:
    """Return the number that East Asian characters spell, digit by digit or with place values."""
    if len(run) > 1 and all(char in DIGITS for char in run):
        return int("".join(str(DIGITS[char]) for char in run))  # "一九四七"
    total = below_myriad = digit = 0
    for char in run.replace(" ", ""):
        if char in DIGITS:
            digit = DIGITS[char]
        elif char in PLACES:
            below_myriad = below_myriad + (digit or 1) * PLACES[char]
            digit = 0
        else:
            total = total + (below_myriad + digit or 1) * MYRIADS[char]
            below_myriad = 0
            digit = 0
    return total + below_myriad + digit
