"""English names of languages, by ISO 639 code."""

from __future__ import annotations

_NAMES = """
af Afrikaans
am Amharic
ar Arabic
as Assamese
az Azerbaijani
be Belarusian
bg Bulgarian
bn Bengali
bo Tibetan
bs Bosnian
ca Catalan
ceb Cebuano
cs Czech
cy Welsh
da Danish
de German
el Greek
en English
es Spanish
et Estonian
eu Basque
fa Persian
fi Finnish
fil Filipino
fr French
ga Irish
gl Galician
gu Gujarati
ha Hausa
he Hebrew
hi Hindi
hr Croatian
hu Hungarian
hy Armenian
id Indonesian
ig Igbo
is Icelandic
it Italian
ja Japanese
jv Javanese
ka Georgian
kk Kazakh
km Khmer
kn Kannada
ko Korean
ky Kyrgyz
lo Lao
lt Lithuanian
lv Latvian
mg Malagasy
mk Macedonian
ml Malayalam
mn Mongolian
mr Marathi
ms Malay
mt Maltese
my Burmese
ne Nepali
nl Dutch
no Norwegian
ny Chichewa
or Odia
pa Punjabi
pl Polish
ps Pashto
pt Portuguese
ro Romanian
ru Russian
rw Kinyarwanda
sd Sindhi
si Sinhala
sk Slovak
sl Slovenian
sn Shona
so Somali
sq Albanian
sr Serbian
su Sundanese
sv Swedish
sw Swahili
ta Tamil
te Telugu
tg Tajik
th Thai
tl Tagalog
tr Turkish
uk Ukrainian
ur Urdu
uz Uzbek
vi Vietnamese
xh Xhosa
yo Yoruba
yue Cantonese
zh Chinese
zu Zulu
"""

LANGUAGE_NAMES = dict(line.split(maxsplit=1) for line in _NAMES.split("\n") if line)


def language_name(code: str) -> str:
    """Return the English name of a language, or the code itself where it is not known."""
    return LANGUAGE_NAMES.get(code, code)
