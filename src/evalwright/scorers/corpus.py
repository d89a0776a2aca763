"""The scorers for BLEU, chrF, chrF++ and TER, counted by the library sacrebleu.

Each of these corpus metrics is a function of sums over the samples (Papineni et al. 2002; Popović
2015, 2017; Snover et al. 2006), so a score keeps the sample's counts as parts, and
`evalwright.metrics.corpus` computes the metric, its interval and comparisons from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from evalwright.core.errors import (
    ConfigurationError,
    MissingExtra,
    ScoringError,
    UnknownName,
)
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import checked
from evalwright.scorers.text.languages import check_language, language_of
from evalwright.scorers.text.segmentation import pieces_for_mecab

_ORDERS = range(1, 5)
_NGRAMS = [f"c{n}" for n in range(1, 7)]


def _of_ngrams(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        f"{side}_{name}" for name in names for side in ("answer", "target", "match")
    )


PARTS: Mapping[str, tuple[str, ...]] = {
    "bleu": (
        "answer_length",
        "target_length",
        *(f"correct_{n}" for n in _ORDERS),
        *(f"total_{n}" for n in _ORDERS),
    ),
    "chrf": _of_ngrams(_NGRAMS),
    "chrf++": _of_ngrams([*_NGRAMS, "w1", "w2"]),
    "ter": ("edits", "target_length"),
}
"""Names of the counts of each metric, in sacrebleu's order."""

TOKENIZERS = (
    "13a",
    "intl",
    "char",
    "zh",
    "ja-mecab",
    "ko-mecab",
    "flores200",
    "flores101",
    "none",
)
BY_LANGUAGE = {
    "zh": "zh",
    "ja": "ja-mecab",
    "ko": "ko-mecab",
    **dict.fromkeys(("bo", "dz", "km", "lo", "my", "th"), "char"),
}
"""BLEU's tokeniser by language, if it is not 13a.

Scripts without spaces and without a tokeniser of their own are tokenised by characters.
"""

_NEEDS = {
    "ja-mecab": ("MeCab", "ja", "mecab-python3"),
    "ko-mecab": ("mecab_ko", "ko", "mecab-ko"),
    "flores200": ("sentencepiece", "flores", "sentencepiece"),
    "flores101": ("sentencepiece", "flores", "sentencepiece"),
}
"""By tokeniser: the module that it needs, the extra that installs it, and the library."""


def tokenizer_of(
    sample: Sample, language: str | None = None, tokenize: str | None = None
) -> str:
    """Return BLEU's tokeniser for a sample: the named one, else that of the language, else 13a."""
    return tokenize or BY_LANGUAGE.get(language_of(sample, language), "13a")


def require(
    tokenize: str = "13a", what: str = "The scorer", extra: str = "translation"
) -> None:
    """Raise MissingExtra if sacrebleu, or what its tokeniser needs, is not installed."""
    if find_spec("sacrebleu") is None:
        raise MissingExtra(what, extra, "sacrebleu")
    module, extra_name, library = _NEEDS.get(tokenize, ("", "", ""))
    if module and find_spec(module) is None:
        raise MissingExtra(
            f"BLEU's tokeniser '{tokenize}'", f"translation-{extra_name}", library
        )


def _check(options: Mapping[str, Any]) -> None:
    check_language(options.get("language"))
    tokenize = options.get("tokenize")
    if tokenize is not None and tokenize not in TOKENIZERS:
        raise UnknownName(
            "tokeniser of BLEU",
            str(tokenize),
            TOKENIZERS,
            f"Known: {', '.join(TOKENIZERS)}.",
        )
    require(_tokenizer(Sample(""), options))


def _tokenizer(sample: Sample, options: Mapping[str, Any]) -> str:
    """Return the tokeniser of a metric; TER and chrF have one of their own, so it is not used."""
    if "tokenize" not in options and "language" not in options:
        return "13a"
    return tokenizer_of(sample, options.get("language"), options.get("tokenize"))


def check_bleu_sample(sample: Sample, options: Mapping[str, Any]) -> None:
    """Raise MissingExtra if the tokeniser of a sample's language is not installed.

    Called before any request is sent.
    """
    require(tokenizer_of(sample, options.get("language"), options.get("tokenize")))


@checked(_check)
def bleu(
    sample: Sample,
    answer: Answer,
    *,
    tokenize: str | None = None,
    language: str | None = None,
    lowercase: bool = False,
) -> Score:
    """Score sentence BLEU from 0 to 100, with the counts for the metric `bleu`.

    It uses the effective order and the smoothing "exp". Several targets are several references.

    Args:
        tokenize: one of sacrebleu's tokenisers; by default that of the language: zh, ja-mecab,
            ko-mecab, char for Thai, Lao, Khmer, Burmese and Tibetan, else 13a.
        language: the language; by default the sample's metadata `language`.
        lowercase: whether case does not count.
    """
    return _score(
        "bleu", sample, answer, tokenizer_of(sample, language, tokenize), lowercase
    )


vars(bleu)["check_sample"] = check_bleu_sample


@checked(_check)
def chrf(sample: Sample, answer: Answer, *, lowercase: bool = False) -> Score:
    """Score sentence chrF from 0 to 100, with the counts for the metric `chrf`.

    It compares runs of 1 to 6 characters with beta 2. The best reference counts.
    """
    return _score("chrf", sample, answer, "", lowercase)


@checked(_check)
def chrf_plus(sample: Sample, answer: Answer, *, lowercase: bool = False) -> Score:
    """Score sentence chrF++ from 0 to 100, with the counts for the metric `chrf++`.

    It is chrF with runs of 1 and 2 words in addition.
    """
    return _score("chrf++", sample, answer, "", lowercase)


@checked(_check)
def ter(sample: Sample, answer: Answer, *, lowercase: bool = True) -> Score:
    """Score minus the sentence's TER, with the counts for the metric `ter`.

    TER is in edits per 100 words; the sign makes more better.
    """
    return _score("ter", sample, answer, "", lowercase)


vars(ter)["long"] = 300
# sacrebleu's search for shifts takes a minute if 1,000 words come in another order.


def _score(
    kind: str, sample: Sample, answer: Answer, tokenize: str, lowercase: bool
) -> Score:
    if not sample.targets:
        raise ScoringError(f"The sample '{sample.id}' has no target.")
    counts = statistics(kind, answer.text, sample.targets, tokenize, lowercase)
    value = float(
        _metric(kind, tokenize, lowercase)._compute_score_from_stats(counts).score
    )
    explanation = f"{kind} {value:.1f}" + (
        f", tokeniser {tokenize}" if tokenize else ""
    )
    details = {"tokenizer": tokenize} if tokenize else None
    return Score(
        -value if kind == "ter" else value,
        "",
        explanation,
        dict(zip(PARTS[kind], counts, strict=True)),
        details,
    )


def statistics(
    kind: str,
    text: str,
    references: Sequence[str],
    tokenize: str = "13a",
    lowercase: bool | None = None,
) -> list[float]:
    """Count what a text adds to a corpus metric, as sacrebleu does.

    Args:
        kind: "bleu", "chrf", "chrf++" or "ter".
        text: the text.
        references: its references.
        tokenize: BLEU's tokeniser.
        lowercase: whether case is ignored; None for sacrebleu's default.

    Returns:
        The counts, in the order of `PARTS[kind]`; their sums over texts go into `corpus_score`.
    """
    lower = kind == "ter" if lowercase is None else lowercase
    metric = _metric(kind, tokenize, lower)
    if tokenize.endswith(
        "mecab"
    ):  # what MeCab refuses as a whole is tokenised in pieces
        cased = [
            text_or_reference.lower() if lower else text_or_reference
            for text_or_reference in (text, *references)
        ]
        text, *references = (
            " ".join(map(metric.tokenizer, pieces_for_mecab(cased_text.rstrip())))
            for cased_text in cased
        )
        metric = _metric(kind, "none", lower)
    counts = metric._extract_corpus_statistics(
        [text], [[reference] for reference in references]
    )
    return [float(count) for count in counts[0]]


@lru_cache(maxsize=32)
def _metric(kind: str, tokenize: str, lowercase: bool) -> Any:
    """Make sacrebleu's metric.

    Its counts do not depend on the effective order, which only the score of one sentence uses.
    """
    from sacrebleu.metrics import BLEU, CHRF, TER

    if kind == "bleu":
        try:
            return BLEU(
                lowercase=lowercase,
                tokenize=tokenize or "13a",
                effective_order=True,
                force=True,
            )
        except RuntimeError as error:
            raise ConfigurationError(
                f"BLEU's tokeniser '{tokenize}' cannot be used:"
                f" {' '.join(str(error).split())}"
            ) from None
    if kind == "ter":
        return TER(case_sensitive=not lowercase)
    return CHRF(word_order=2 if kind == "chrf++" else 0, lowercase=lowercase)
