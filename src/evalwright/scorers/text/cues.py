"""Words that change what a mention means, by language: denials, alternatives, changes of mind, marks of an answer.

Tables and nothing else. They are used to see that a reply is *not* certain; a word that is missing here makes a reply undecided at
worst where it shares its sentence with other candidates, and a word too many makes it undecided too.
"""

from __future__ import annotations

import re
from functools import cache

from evalwright.scorers.text.wordlists import word_list

_NEGATIONS = """
en: doubt anything not never no nor neither none without except excluding unlike instead wrong false incorrect mistaken myth misconception wrongly contrary nobody hardly cannot isnt wasnt arent werent dont doesnt didnt cant wont rather isn wasn aren weren don doesn didn couldn wouldn shouldn avoid opposed fake
de: nicht kein keine keinen keiner nie niemals weder falsch statt ohne verwechseln
fr: ne n pas jamais ni non faux aucun aucune confondre plutot
es: no ni nunca jamas tampoco falso ningun confundir sino
it: non ne mai falso nessun confondere
pt: nao nem nunca jamais falso nenhum confundir
nl: niet geen nooit noch
ru: не ни нет никогда вместо
uk: не ні ніколи замість
pl: nie ani nigdy zamiast
tr: degil yok asla yerine
id: bukan tidak tak jangan bukanlah
ms: bukan tidak tak jangan
vi: không chẳng chưa chả khong
tl: hindi wala
sw: si siyo sio hapana
ar: ليس ليست لا لم لن غير ليسوا وليس وليست
hi: नहीं न मत नही
el: δεν οχι μην
"""
_CASELESS_NEGATIONS = word_list(
    "不 非 没 未 無 无 ではな じゃな でな ありません ない 違 아니 아닙 않 ไม่ இல்லை அல்ல 错"
)

_ALTERNATIVES = """
en: or either versus vs nor
de: oder entweder beziehungsweise
fr: ou soit
es: o u
it: o oppure
pt: ou
nl: of ofwel
ru: или либо
uk: або чи
pl: lub albo czy
tr: veya ya yoksa
id: atau
ms: atau
vi: hoặc hay hoac
tl: o
sw: au
ar: أو ام أم او
hi: या
el: ή
"""
_CASELESS_ALTERNATIVES = word_list("或 还是 還是 または もしくは あるいは 또는 아니면 혹은 이나 หรือ அல்லது")

_TURNS = """
en: but however although yet
de: sondern aber jedoch doch
fr: mais cependant toutefois
es: sino pero aunque
it: ma bensì però
pt: mas porém contudo
nl: maar echter
ru: но а однако зато
uk: але а однак проте
pl: ale lecz jednak natomiast a
tr: ama fakat ancak
id: tetapi tapi namun melainkan sedangkan
ms: tetapi tapi namun sebaliknya
vi: nhưng mà
tl: pero ngunit subalit
sw: lakini bali
ar: لكن بل ولكن أما
hi: लेकिन बल्कि परंतु मगर किंतु
el: αλλα ομως
"""

_REVISIONS = re.compile(
    r"(?:^|[.,;:!?…—–(\n]|\s--?)\s*(?:oh,? |hmm+,? |no,? )?(?:wait|actually|scratch that|correction|on second thought|on reflection|let me correct|i mean|hmm+|edit|my apologies|"
    r"apologies|hold on|oops|strike that|make that|i was wrong|my mistake|i misspoke|i take (?:it|that) back|that(?:'s| is| was) (?:not right|wrong|incorrect)|sorry|no,|no\.|nope|er,|or rather|"
    r"just kidding|i stand corrected|not quite|check(?:ing)? again|moment|quatsch|korrektur|besser gesagt|entschuldigung|nein|doch nicht|euh|pardon|"
    r"non,|en fait|attendez|je me trompe|espera|perd[oó]n|correcci[oó]n|mejor dicho|en realidad|digo|anzi|scusa|scusate|aspetta|ali[aá]s|desculpe|"
    r"corrigindo|quer dizer|wacht|sorry|nee,|точнее|вернее|подожди\w*|извини\w*|нет,|ой|то есть|вибач\w*|точніше|ні,|przepraszam|chwila|nie,|"
    r"a w[lł]a[sś]ciwie|hayır|pardon|dur|düzeltme|eh|maaf|tunggu|ralat|à không|xin lỗi|nhầm|عفوا|عذرا|بل|माफ़|नहीं,|रुकिए|samahani|hapana)(?!\w)"
    r"|不对|等等|更正|抱歉|いや|違う|訂正|待って|すみません|잠깐|정정|죄송|아니,",
    re.IGNORECASE,
)

_ASIDE = """
en: after before than like near until till formerly former previously originally once ago often sometimes usually commonly many some people others if unless would whether suppose imagine credited attributed confused assumed thought popular friend brother sister father mother son daughter wife husband rival neighbour neighbor successor predecessor student teacher colleague contemporary follower suburb outskirts near compared second besides despite via against replaced succeeded preceded followed beat defeated influenced inspired same similar called known renamed named nicknamed aka say said says claim claims claimed example format larger smaller bigger greater higher lower longer shorter older younger more less better both another while whereas mentre während mientras tandis enquanto terwijl invece hingegen
de: nach vor als wie früher ehemals freund bruder schwester vater mutter sohn tochter frau mann rivale früher oft manche viele
fr: après avant que comme ami frère sœur père mère fils fille femme mari rival souvent autrefois
es: después antes que como amigo hermano hermana padre madre hijo hija esposa esposo rival algunos antes
it: dopo prima di che come amico fratello padre madre figlio figlia moglie marito rivale mentre
pt: depois antes que como amigo irmão pai mãe filho filha esposa marido rival
nl: na voor dan als vriend broer vader moeder zoon dochter vrouw man rivaal hoger
pl: niż rywal przyjaciel
ru: чем друг брат сестра отец мать сын дочь жена муж
"""

_SURE = word_list(
    "so therefore thus hence conclusion answer correct final summary short also folglich daher somit antwort donc ainsi "
    "reponse luego respuesta entonces quindi dunque risposta portanto logo resposta dus antwoord итак значит ответ поэтому "
    "отже відповідь więc odpowiedź zatem cevap yani jadi jawaban vậy jibu kwa"
)

MARKS = (
    "final answer|short answer|correct answer|the answer|my answer|answer|response|final|conclusion|in conclusion|antwort|endgültige antwort|lösung|"
    "fazit|réponse finale|réponse|conclusion|respuesta final|respuesta correcta|respuesta|risposta finale|risposta|resposta final|resposta|antwoord|"
    "правильный ответ|ответ|відповідь|odpowiedź|doğru cevap|cevap|yanıt|jawaban|jawapan|đáp án|câu trả lời|trả lời|sagot|jibu|الإجابة الصحيحة|"
    "الإجابة|الجواب|सही उत्तर|उत्तर|जवाब|答案|答|最终答案|答え|回答|正解|정답|답변|답|คำตอบ|பதில்|விடை|απάντηση"
)
"""What stands before a colon and an answer, lower-cased alternatives of a pattern."""


def _rows(table: str) -> dict[str, frozenset[str]]:
    from evalwright.scorers.text.tokens import fold

    rows = (line.split(":", 1) for line in table.strip().splitlines())
    return {code: frozenset(fold(words).split()) for code, words in rows}


class Cues:
    """The words of one language, beside the English ones; folded as `Words.folded_tokens` are."""

    def __init__(self, language: str) -> None:
        def of(table: str, everywhere: bool = False) -> frozenset[str]:
            rows = _rows(table)
            if everywhere:
                return frozenset().union(*rows.values())
            return rows["en"] | rows.get(language, frozenset())

        self.negations = of(_NEGATIONS)
        self.alternatives = of(_ALTERNATIVES)
        self.turns = of(_TURNS)
        self.aside = of(_ASIDE)
        self.sure = frozenset(_SURE)

    def denies(self, tokens: list[str], text: str) -> bool:
        """Whether a stretch of text holds a negation."""
        return not self.negations.isdisjoint(tokens) or _has(_CASELESS_NEGATIONS, text)

    def offers(self, tokens: list[str], text: str) -> bool:
        """Whether it holds a word such as "or"."""
        return not self.alternatives.isdisjoint(tokens) or _has(_CASELESS_ALTERNATIVES, text)

    def turn_in(self, tokens: list[str]) -> int:
        """The place after the last "but" or the like, 0 where there is none."""
        return max((place + 1 for place, token in enumerate(tokens) if token in self.turns), default=0)


def _has(signs: list[str], text: str) -> bool:
    return not text.isascii() and any(sign in text for sign in signs)


@cache
def cues(language: str) -> Cues:
    """The cues of a language code such as "de" or "pt-BR"."""
    code = language.casefold().replace("_", "-").split("-")[0]
    return Cues({"fil": "tl"}.get(code, code))


def last_revision(text: str) -> tuple[int, int] | None:
    """Where the last change of mind stands ("no, wait"); None where there is none."""
    found = [
        match.span() for match in _REVISIONS.finditer(text) if any(map(str.isalnum, text[: match.start()]))
    ]
    return found[-1] if found else None
