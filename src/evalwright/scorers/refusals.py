"""What refusing to summarise sounds like, as a table by language. The rules that read it are in `outcome.py`.

Patterns are regular expressions over text in lower case, with straight apostrophes, without outer quotation marks and
without the last mark. `refusing` is looked for once leading apologies (`openers`) are gone, and says itself whether it
stands at the beginning (^) or the end ($): "The company said it was unable to summarise its losses" is no refusal.
`texts` and `lacks` together mark a sentence that says what is wrong with the text ("the passage is only a placeholder"),
`offers` one that speaks to the reader ("please send the article"); neither alone makes a refusal.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """The phrases of one language. but: words after which something else may follow."""

    code: str
    openers: tuple[str, ...]
    refusing: tuple[str, ...]
    texts: tuple[str, ...]
    lacks: tuple[str, ...]
    offers: tuple[str, ...]
    but: tuple[str, ...]


_DO = (
    r"(?:summari[sz]e|sum up|condense|paraphrase|provide|create|generate|produce|write|give|offer|make|fulfil|fulfill|complete"
    r"|help(?! but)|assist|comply|answer|respond|process|read|access|see|view|open|extract|continue|carry out|perform|proceed"
    r"|predict|engage|do (?:that|this|so|it)\b|identify|find|determine|discern|form|derive|accurately|reliably|meaningfully)"
)
_TEXT = r"(?:passage|text|article|document|input|content|contents|excerpt|material|page|message|source|paragraph|snippet)"
_THE = rf"(?:the|this|that|your|above)(?: \w+){{0,3}}? {_TEXT}"
_ENOUGH = r"(?:enough|sufficient|any|much|adequate|meaningful|substantive|actual|real)"
_FACTS = r"(?:content|information|text|material|details?|context|substance|facts|data|meaning)"

ENGLISH = Language(
    "en",
    (
        r"(?:i'm|i am|we are|we're|so|very)? ?(?:very |truly |really )?sorry,?(?: but)?",
        r"(?:i|we) apologi[sz]e,?(?: but)?", r"(?:my )?apologies,?(?: but)?", r"unfortunately,?", r"regrettably,?",
        r"i regret(?: to (?:say|inform you))?(?: that)?,?(?: but)?", r"i'm afraid(?: that)?", r"i am afraid(?: that)?",
        r"as an? (?:ai|artificial|large|language)[^,]{0,60},", r"(?:answer|summary|response|note|output)\s*:", r"no,",
        r"n/a", r"thank you[^,.]{0,40}[,.]? (?:but|however)?", r"however,",
        r"(?:therefore|thus|hence|consequently|as such|as a result|for this reason|in this case|so),", r"based on the (?:provided |given )?\w+,", r"here,",
    ),
    (
        rf"^(?:i|we)(?: am|'m| are|'re|'ll be| will be)(?: \w+)? (?:unable|not able|not allowed|not permitted) to {_DO}",
        rf"^(?:i|we)(?: \w+)? (?:cannot|can't|can not|could not|couldn't|won't|will not|would not|may not|must not) (?:\w+ly )?{_DO}",
        rf"^(?:i|we) (?:must|have to|need to|will|would) (?:respectfully )?(?:decline|refuse)(?: to {_DO}|$|,)",
        r"^(?:i|we) (?:decline|refuse) to (?:summari|provide|write|answer|help|do)",
        rf"^i(?:'m| am) not (?:comfortable|able|in a position|going) (?:to |with )?(?:{_DO}|summari|providing)",
        r"^i (?:do not|don't) feel comfortable",
        rf"^i (?:do not|don't|did not|didn't) (?:\w+ )?(?:have|see|find|receive)(?: \w+){{0,4}}? (?:access|{_TEXT}|information|context|ability)(?: to| for| in| here|$|,)",
        rf"^(?:unable|not able) to {_DO}",
        r"^(?:sorry )?(?:cannot|can't|can not|could not) (?:be )?(?:summari|provide|give|create|comply|help|assist|answer|do)",
        rf"^(?:it is|it's|it would be|it isn't) (?:not (?:\w+ )?possible|impossible|possible|not feasible) to {_DO}(?<!it is possible to summarise)(?<!it is possible to summarize)",
        r"^(?:summari[sz]ing|a summary of|summari[sz]ation of) (?:this|the|that)(?: \w+){0,3} (?:is|isn't|cannot|can't)(?: be)? (?:not )?(?:possible|impossible|provided|given|made)",
        rf"^(?:there is|there's|there are|there was|there isn't|there is not|i find|i see)(?: simply| really)? (?:nothing|anything|(?:no|not enough|enough|any|insufficient|too little)(?: \w+)? {_FACTS})(?: [\w]+){{0,4}}? (?:to|for)(?: be| me to)? (?:summari|condense|a summary|sum up|provide|create|write)",
        rf"^(?:there is|there's|there was) (?:nothing|no|not enough|insufficient)(?: \w+)? (?:{_FACTS}|article|passage)?(?: (?:provided|given|here|available|in the {_TEXT}))?$",
        r"^nothing (?:to|can be|could be|here to|that can be) (?:be )?summari",
        r"^(?:not enough|insufficient|too little|no)(?: \w+){0,2} (?:information|content|text|material|context|details?)(?: \w+){0,3}? (?:to|for) (?:be )?(?:summari|a summary|me|create|provide|write|condense)",
        r"^(?:insufficient|not enough) (?:information|content|text|context)$",
        rf"^no (?:\w+ )?(?:summary|{_TEXT})(?: \w+)? ?(?:can be|could be|is|was|were|has been|have been|available|possible|provided)(?: \w+){{0,2}}(?: to (?:be )?summari\w+| for \w+)?$",
        rf"^{_THE}(?: \w+){{0,4}}? (?:does not|doesn't|did not|do not) (?:\w+ )?(?:contain|include|provide|have|give|offer|present)(?: \w+){{0,2}}? ?(?:anything|{_ENOUGH}(?: \w+){{0,3}}? {_FACTS})(?: to summari\w+| for| that (?:can|could)| to|$)",
        r"^(?:the|this|that|your)(?: \w+){0,4} (?:contains?|has|have|holds?|includes?|provides?) (?:nothing|no (?:\w+ ){0,3}(?:content|information|text|material|details?|substance|facts))(?: (?:to|for|that can|which can)(?: be)? (?:summari|me|a summary)| at all|$)",
        rf"^{_THE}(?: \w+){{0,3}}? (?:cannot|can't|could not|can not) be (?:\w+ly )?summari",
        rf"^(?:the|this|your|there)(?: \w+){{0,3}}? {_TEXT}(?: \w+){{0,4}}? (?:is|was|are|appears|seems)(?: to be)?(?: \w+)? (?:(?:too (?:short|brief|vague)|empty|blank|incomplete|missing|placeholder)\b|not (?:provided|included|available|present)(?:$| here| to me| in (?:the|your)))",
        rf"^(?:please|could you(?: please)?|can you|would you) (?:\w+ )?(?:provide|share|paste|send|supply|upload|enter)(?: \w+){{0,6}}? {_TEXT}",
        r"^it (?:looks|seems|appears)(?: like| that| as if| as though)? (?:you|there|the|no|your)(?: [\w']+){0,8} (?:\w+n't|not|no|empty|missing|blank|placeholder|forgot)\b",
        rf"^you (?:have not|haven't|did not|didn't) (?:\w+ )?(?:provided?|included?|shared?|pasted?|attached?)(?: \w+){{0,4}} {_TEXT}",
    ),
    (_TEXT, "it (?:is|only|contains|appears|seems)", "information"),
    (r"\bno\b", r"\bnot\b", "n't", r"\bonly\b", "lack", "without", r"\bjust\b", "merely", "placeholder", "dummy", "empty",
     "too short", "incomplete", "insufficient", r"\blittle\b", "nothing", "missing", "violat", "harmful"),
    ("please", "let me know", "feel free", "happy to", "glad to", r"if you(?: would|'d| could| can| have| share| provide| want| need| like)",
     "could you", "would you like", "once you", "try again", "how can i", "sorry", "apologi", "as an ai", "language model",
     "guidelines", "policy", "policies", "copyright"),
    ("but", "however", "nevertheless", "nonetheless", "still,", "here is", "here's"),
)  # fmt: skip

GERMAN = Language(
    "de",
    ("es tut mir (?:sehr )?leid,?(?: aber| dass)?", "tut mir leid,?(?: aber)?", "leider", "entschuldigung,?(?: aber)?",
     "entschuldigen sie,?(?: aber)?", "ich bedaure,?(?: aber| dass)?", "ich entschuldige mich,?(?: aber)?", "als (?:ki|sprachmodell)[^,]{0,40},?"),
    (
        r"^(?:ich|wir) (?:kann|können|könnte|konnte|darf|werde)\b.{0,60}?\b(?:nicht|keine?n?)\b.{0,60}?(?:zusammenfass|zusammenzufass|erstell|geben|helfen|bereitstell|liefern|beantwort|anfertig|verfass)",
        r"^(?:dazu |daraus |hierzu |davon |daher |deshalb )?(?:kann|darf|können|könnte) ich\b.{0,60}?\b(?:nicht|keine?)\b.{0,60}?(?:zusammenfass|erstell|geben|helfen|bereitstell|liefern|beantwort|anfertig|verfass)",
        r"^(?:ich|wir) (?:bin|sind|sehe mich)\b.{0,30}?nicht (?:in der lage|imstande|fähig|befugt)",
        r"^bin ich nicht in der lage",
        r"^es ist (?:mir )?(?:leider )?(?:nicht möglich|unmöglich)\b.{0,60}?(?:zusammen|zu erstell|zu geb)",
        r"^(?:ist es )?(?:mir )?nicht möglich,? (?:diese|den|eine)",
        r"^(?:dieser|der|diese|die|dieses|das)(?: \w+){0,2}? (?:text|artikel|abschnitt|passage|textabschnitt|dokument|inhalt)\w*\b.{0,30}? (?:kann|lässt sich)\b.{0,20}?nicht zusammen",
        r"^(?:dieser|der|diese|die|dieses|das)(?: \w+){0,2}? (?:text|artikel|abschnitt|passage|textabschnitt|dokument)\w*\b.{0,30}? (?:enthält|bietet|hat|liefert) (?:keine?n?|nicht genug|nicht genügend|zu wenig)(?: \w+){0,3}? (?:inhalte?|informationen|text|angaben)(?: (?:zum|für|um|die|zur)\b.{0,50}zusammenfass.{0,15}|,? (?:um|die|den)\b.{0,40}zusammen.{0,30})?$",
        r"^(?:es gibt|hier gibt es|da ist) (?:nichts|keine?n? \w+)\b.{0,20}zusammen",
        r"^(?:nichts|kein inhalt|keine informationen|zu wenig \w+)\b.{0,20}zusammen",
        r"^(?:eine )?zusammenfassung (?:des textes |dieses textes )?(?:ist )?(?:leider )?nicht möglich|^keine zusammenfassung möglich",
        r"^(?:dieser|der|diese|die|dieses|das)(?: \w+)? ?(?:text|artikel|abschnitt|passage|dokument)\w* (?:enthält|bietet) (?:nichts|keine?n? \w+),? (?:was|das|die|den)\b.{0,40}zusammen",
        r"^ich (?:weigere mich|lehne es ab)\b.{0,40}zusammen",
        r"^bitte (?:geben|stellen|senden|teilen|fügen)\b.{0,60}?(?:text|artikel|abschnitt|passage)",
        r"^(?:es wurde|mir wurde|sie haben)\b.{0,20}?kein(?:e|en)? (?:text|artikel|passage|abschnitt)",
    ),
    ("text", "artikel", "abschnitt", "passage", "inhalt", "dokument", "information"),
    ("kein", "nicht", "nur", "leer", "platzhalter", "zu kurz", "unvollständig", "ohne", "lediglich", "fehlt"),
    ("bitte", "gerne", "wenn sie", "falls sie", "lassen sie mich", "leid", "entschuldig", "sprachmodell", "könnten sie"),
    ("aber", "jedoch", "dennoch", "allerdings", "hier ist"),
)  # fmt: skip

FRENCH = Language(
    "fr",
    ("(?:je suis |je me )?(?:vraiment )?désolée?,?(?: mais)?", "malheureusement,?", "je regrette,?(?: mais)?", "excusez-moi,?(?: mais)?",
     "je m'excuse,?(?: mais)?", "toutes mes excuses,?(?: mais)?", "en tant qu[e'] ?(?:ia|intelligence|modèle|assistant)[^,]{0,40},?", "pardon,?(?: mais)?"),
    (
        r"^(?:je|nous) (?:ne |n')(?:peux|puis|pouvons|pourrai|suis|sommes|saurais|parviens)(?: malheureusement)?(?: pas)?(?: en mesure de| capable de| à)?(?: \w+ment)?(?: vous| y)? ?(?:résumer|fournir|faire|donner|produire|créer|rédiger|répondre|aider|établir|générer|proposer|traiter|accéder)",
        r"^je suis (?:incapable|dans l'impossibilité) de (?:résumer|fournir|faire|répondre|vous)", r"^il (?:m'est|est|ne m'est|n'est)(?: malheureusement)? (?:pas possible|impossible)(?: pour moi)? de (?:résumer|fournir|faire|donner|produire|vous|répondre|créer|rédiger)", r"^je refuse de (?:résumer|répondre|fournir)",
        r"^impossible de (?:résumer|fournir|faire|produire)",
        r"^(?:ce|cet|cette|le|la|l')\s?(?:passage|texte|article|document|extrait|contenu)\b.{0,30}? ne (?:peut|pourrait) (?:pas )?être résumé",
        r"^(?:ce|cet|cette|le|la|l')\s?(?:passage|texte|article|document|extrait)\b.{0,30}? ne (?:contient|comporte|fournit|contenait|présente) rien (?:à|qui|que)\b.{0,20}résum",
        r"^(?:ce|cet|cette|le|la|l')\s?(?:passage|texte|article|document|extrait)\b.{0,30}? ne (?:contient|comporte|fournit|contenait|présente) (?:pas|aucune?)\b(?: \w+){0,3}? (?:d'informations?|informations?|de contenu|contenu|de texte|d'éléments|éléments?|de matière)(?: (?:à|pour|permettant|qui|suffisant\w*)\b.{0,40})?$",
        r"^il n'y a (?:rien|aucun(?:e)?(?: \w+)?|pas (?:assez|suffisamment) d\S+(?: \w+)?)\b.{0,15}? (?:à|pour) (?:résumer|faire)",
        r"^(?:rien à résumer|aucun (?:contenu|texte|article)(?: \w+)? à résumer|pas assez d\S+ pour résumer)",
        r"^aucun (?:texte|article|passage|contenu) n'(?:a été|est) (?:fourni|disponible)",
        r"^(?:veuillez|merci de|pourriez-vous|pouvez-vous)\b.{0,20}? (?:fournir|partager|envoyer|coller|transmettre)\b.{0,30}?(?:texte|article|passage)",
    ),
    ("passage", "texte", "article", "document", "contenu", "information", "extrait"),
    (r"\bne\b", r"\bn'", r"\bpas\b", "aucun", "seulement", "uniquement", "vide", "trop court", "incomplet", "sans", "manque"),
    ("veuillez", "merci de", "si vous", "n'hésitez", "pourriez-vous", "désolé", "excuse", "modèle de langage", "s'il vous plaît"),
    ("mais", "cependant", "toutefois", "néanmoins", "voici"),
)  # fmt: skip

SPANISH = Language(
    "es",
    ("(?:lo siento|lo lamento)(?: mucho)?,?(?: pero)?", "lamento(?: informarle| decir)?(?: que)?,?(?: pero)?", "lamentablemente,?", "desafortunadamente,?", "por desgracia,?",
     "disculpe?,?(?: pero)?", "perdón,?(?: pero)?", "me temo que", "como (?:modelo|ia|inteligencia|asistente)[^,]{0,40},?"),
    (
        r"^(?:yo )?no (?:puedo|podemos|podré|podría|logro|soy capaz de|estoy en condiciones de|me es posible|es posible)(?: \w+)?(?: (?:resumir|proporcionar|ofrecer|hacer|crear|generar|dar|ayudar\w*|responder|elaborar|realizar|cumplir|escribir|acceder|resumirlo|ayudarte|ayudarle))",
        r"^no (?:tengo|dispongo de|cuento con)(?: \w+){0,2}? ?(?:acceso (?:a|al)|información|contexto|datos|texto)(?: \w+)? ?(?:para|a|al|$)",
        r"^(?:es|resulta|me es|me resulta) imposible (?:resumir|hacer|proporcionar)",
        r"^(?:imposible|no es posible|no se puede|no puede) (?:ser )?(?:resumir|resumirse|resumido|hacer un resumen|proporcionar)",
        r"^(?:este|el|esta|la|dicho)(?: \w+)? ?(?:pasaje|texto|artículo|documento|fragmento|contenido)\b.{0,25}? no (?:se puede resumir|puede (?:ser )?resumi)",
        r"^(?:este|el|esta|la)(?: \w+)? ?(?:pasaje|texto|artículo|documento|fragmento)\b.{0,25}? no (?:contiene|tiene|incluye|proporciona|ofrece)(?: \w+){0,3}? ?(?:información|contenido|texto|datos|nada|material)(?: \w+)?(?: (?:para|que|por)\b.{0,40}resum\w+.{0,10})?$",
        r"^no hay (?:nada|(?:suficiente )?(?:información|contenido|texto)(?: \w+)?|ning\w+ \w+)\b.{0,12}? (?:que|para|por) (?:pueda |se pueda )?resum",
        r"^(?:nada que resumir|sin contenido (?:que|para) resumir|información insuficiente)",
        r"^no se (?:ha|me ha|han) (?:proporcionado|facilitado|incluido)\b.{0,15}?(?:texto|artículo|pasaje|contenido)",
        r"^(?:por favor,?|podrías?|puedes?|podría usted)\b.{0,20}? (?:proporciona|comparte|comparta|proporcione|envía|envíe|pega|proporcionar|compartir|enviar)\w*\b.{0,30}?(?:texto|artículo|pasaje)",
    ),
    ("pasaje", "texto", "artículo", "documento", "contenido", "información", "fragmento"),
    (r"\bno\b", "solo", "sólo", "únicamente", "vacío", "demasiado corto", "incompleto", "sin ", "falta", "ningun", "ningún"),
    ("por favor", "si me", "si desea", "si quieres", "podría", "lo siento", "lamento", "disculp", "modelo de lenguaje", "con gusto"),
    ("pero", "sin embargo", "no obstante", "aquí está", "aquí tienes"),
)  # fmt: skip

PORTUGUESE = Language(
    "pt",
    ("(?:me )?desculpe?,?(?: mas)?", "peço desculpas?,?(?: mas)?", "sinto muito,?(?: mas)?", "lamento,?(?: mas)?", "infelizmente,?", "lamentavelmente,?",
     "como (?:modelo|ia|inteligência|assistente)[^,]{0,40},?"),
    (
        r"^(?:eu )?não (?:posso|podemos|consigo|poderei|sou capaz de|estou apto a|tenho como|me é possível|é possível|tenho acesso)(?: \w+)? ?(?:resumir|fornecer|oferecer|fazer|criar|gerar|dar|ajudar|responder|elaborar|escrever|produzir|acessar|ao|a esse|um resumo)",
        r"^(?:é|torna-se) impossível (?:resumir|fazer|fornecer)",
        r"^(?:impossível|não é possível|não dá para|não há como) (?:resumir|fazer|fornecer)",
        r"^(?:este|o|esta|a|esse|essa)(?: \w+)? ?(?:passagem|texto|artigo|documento|trecho|conteúdo)\b.{0,25}? não (?:pode ser resumid|permite (?:um )?resum)",
        r"^(?:este|o|esta|a|esse|essa)(?: \w+)? ?(?:passagem|texto|artigo|documento|trecho)\b.{0,25}? não (?:contém|tem|inclui|fornece|possui|apresenta)(?: \w+){0,3}? ?(?:informaç\w+|conteúdo|texto|dados|nada|material)(?: \w+)?(?: (?:para|que|a)\b.{0,40}resum\w+.{0,10})?$",
        r"^não há (?:nada|(?:\w+ )?(?:informaç\w+|conteúdo|texto)(?: \w+)?)\b.{0,12}? (?:que|para|a) (?:possa ser |ser )?resum",
        r"^(?:nada (?:para|a) resumir|sem conteúdo para resumir|informações insuficientes)",
        r"^(?:nenhum texto|nenhum artigo|nenhuma passagem) foi", r"^não foi (?:fornecid|disponibilizad|enviad|incluíd)[oa] (?:nenhum|qualquer)",
        r"^(?:eu )?não (?:tenho|disponho de|possuo)(?: \w+){0,2}? ?(?:informaç\w+|contexto|dados|texto)(?: \w+)? ?(?:para|$)",
        r"^(?:por favor,?|poderia|pode)\b.{0,20}? (?:forne|compartilh|envi|col)\w+\b.{0,30}?(?:texto|artigo|passagem)",
    ),
    ("passagem", "texto", "artigo", "documento", "conteúdo", "informaç", "trecho"),
    ("não", "apenas", "somente", "vazio", "curto demais", "muito curto", "incompleto", "sem ", "falta", "nenhum"),
    ("por favor", "se você", "se quiser", "poderia", "desculp", "sinto muito", "modelo de linguagem", "ficarei feliz"),
    ("mas", "porém", "no entanto", "contudo", "aqui está"),
)  # fmt: skip

ITALIAN = Language(
    "it",
    ("mi (?:di)?spiace,?(?: ma)?", "mi scuso,?(?: ma)?", "scusa(?:te|mi)?,?(?: ma)?", "purtroppo,?", "sfortunatamente,?", "sono spiacente,?(?: ma)?", "spiacente,?(?: ma)?",
     "in quanto (?:ia|modello|intelligenza|assistente)[^,]{0,40},?"),
    (
        r"^(?:io )?non (?:posso|possiamo|riesco a|sono in grado di|mi è possibile|è possibile|sono capace di|ho accesso)(?: \w+)? ?(?:riassumere|fornire|creare|fare|dare|generare|aiutar|rispondere|produrre|scrivere|sintetizzare|redigere|al|a questo|un riassunto)",
        r"^(?:è|mi è) impossibile (?:riassumere|fornire|fare|sintetizzare)",
        r"^impossibile (?:riassumere|fornire|sintetizzare)",
        r"^(?:questo|il|la|l'|questa)\s?(?:\w+ )?(?:passaggio|testo|articolo|documento|brano|contenuto)\b.{0,25}? non può essere riassunt",
        r"^(?:questo|il|la|l'|questa)\s?(?:\w+ )?(?:passaggio|testo|articolo|documento|brano)\b.{0,25}? non (?:contiene|ha|fornisce|include|presenta)(?: \w+){0,3}? ?(?:informazion\w|contenut\w|testo|dati|nulla|niente|materiale)(?: \w+)?(?: (?:da|per|che)\b.{0,40}(?:riassum|sintetizz|riassunto)\w*.{0,10})?$",
        r"^non c'è (?:nulla|niente|(?:\w+ )?(?:contenuto|testo))\b.{0,12}? da riassumere|^non ci sono (?:\w+ )?informazioni\b.{0,15}? (?:da|per) riassum",
        r"^(?:nulla|niente) da riassumere", r"^non è stato (?:fornito|incluso|inserito) (?:alcun|nessun)",
        r"^non (?:ho|dispongo di)(?: \w+){0,2}? ?(?:informazioni|contesto|dati)(?: \w+)? ?(?:per|$)",
        r"^(?:per favore|ti prego di|si prega di|potresti|può)\b.{0,20}? (?:forni|condivid|invi|incoll)\w*\b.{0,30}?(?:testo|articolo|passaggio|brano)",
    ),
    ("passaggio", "testo", "articolo", "documento", "contenut", "informazion", "brano"),
    (r"\bnon\b", "solo", "soltanto", "vuoto", "troppo breve", "incompleto", "senza", "manca", "nessun"),
    ("per favore", "se vuoi", "se mi", "fammi sapere", "mi dispiace", "scus", "modello linguistico", "sarò felice"),
    (r"ma\b", "tuttavia", "però", "comunque", "ecco"),
)  # fmt: skip

DUTCH = Language(
    "nl",
    ("het spijt me,?(?: maar)?", "sorry,?(?: maar)?", "helaas,?", "excuses,?(?: maar)?", "mijn excuses,?(?: maar)?", "als (?:ai|taalmodel)[^,]{0,40},?"),
    (
        r"^(?:ik|we|wij) (?:kan|kunnen|mag|zal)\b.{0,60}?\b(?:niet|geen)\b.{0,60}?(?:samenvat|geven|maken|helpen|leveren|opstellen|schrijven|beantwoord|verstrekken|bieden)",
        r"^kan ik\b.{0,60}?\b(?:niet|geen)\b.{0,40}?(?:samenvat|geven|maken|helpen|leveren|schrijven)",
        r"^(?:ik ben|ben ik) niet in staat",
        r"^het is (?:helaas )?(?:niet mogelijk|onmogelijk)\b.{0,60}?(?:samen|te maken|te geven)",
        r"^(?:deze|de|dit|het)(?: \w+)? ?(?:passage|tekst|artikel|document|fragment)\b.{0,25}? kan niet\b.{0,10} samengevat",
        r"^(?:deze|de|dit|het)(?: \w+)? ?(?:passage|tekst|artikel|document|fragment)\b.{0,25}? (?:bevat|biedt|heeft) niets\b.{0,20}samen",
        r"^(?:deze|de|dit|het)(?: \w+)? ?(?:passage|tekst|artikel|document|fragment)\b.{0,25}? (?:bevat|biedt|heeft) (?:geen|niet genoeg|onvoldoende|te weinig)(?: \w+){0,3}? ?(?:inhoud|informatie|tekst|gegevens)(?:,? (?:om|voor|die)\b.{0,40}samen\w*.{0,15})?$",
        r"^er is (?:niets|geen \w+|onvoldoende \w+|niet genoeg \w+)\b.{0,12}? (?:om|voor)\b.{0,10}samen",
        r"^(?:niets om samen te vatten|geen samenvatting mogelijk|samenvatten is niet mogelijk)",
        r"^er is geen (?:tekst|artikel|passage)\b.{0,15}(?:gegeven|verstrekt|aangeleverd)?$",
        r"^(?:geef|stuur|deel|kunt u|kun je)\b.{0,30}?(?:tekst|artikel|passage)\b.{0,40}(?:samen|delen|sturen|geven)",
    ),
    ("passage", "tekst", "artikel", "document", "inhoud", "informatie", "fragment"),
    ("niet", "geen", "alleen", "slechts", "leeg", "te kort", "onvolledig", "zonder", "ontbreekt"),
    ("alstublieft", "als je", "als u", "laat me weten", "graag", "spijt", "sorry", "taalmodel"),
    ("maar", "echter", "toch", "hier is"),
)  # fmt: skip

RUSSIAN = Language(
    "ru",
    ("извините,?(?: но)?", "простите,?(?: но)?", "к сожалению,?", "мне жаль,?(?: но)?", "приношу (?:свои )?извинения,?(?: но)?", "увы,?",
     "как (?:ии|языковая модель|искусственный)[^,]{0,40},?"),
    (
        r"^(?:я|мы) (?:\w+ )?не (?:могу|можем|смогу|смог|в состоянии|имею (?:возможности|доступа)|способ\w+)\b.{0,40}?(?:обобщ|резюм|кратк|изложи|пересказ|предостав|созда|сдела|напис|помо|ответ|состав|доступ|выполн|подвести|дать)",
        r"^не (?:могу|можем|смогу|в состоянии)\b.{0,40}?(?:обобщ|резюм|кратк|изложи|пересказ|предостав|созда|сдела|напис|помо|ответ|состав|выполн|дать)",
        r"^(?:невозможно|не представляется возможным|нельзя)\b.{0,30}?(?:обобщ|резюм|кратк|изложи|пересказ|состав|подвести)",
        r"^(?:этот|данный|предоставленный|этот|в (?:этом|данном))\b.{0,20}?(?:текст|отрыв|стать|документ|фрагмент)\w*\b.{0,20}? (?:невозможно|нельзя) (?:обобщ|резюм|кратко|переска)",
        r"^(?:этот |данный |предоставленный )?(?:текст|отрывок|документ|фрагмент|статья) не содерж\w+\b(?: \w+){0,3}? ?(?:информаци\w|содержани\w|данных|текста|ничего)(?:,? (?:для|котор|что|чтобы)\b.{0,60})?$",
        r"^в (?:этом |данном |предоставленном )?(?:тексте|отрывке|документе|статье) (?:нет|недостаточно)\b(?: \w+){0,3}? ?(?:информации|содержания|данных|текста)(?:,? (?:для|котор|что|чтобы)\b.{0,60})?$",
        r"^(?:в (?:этом |данном )?(?:тексте|отрывке|документе|статье) |здесь )?нет ничего,? что\b.{0,30}(?:обобщ|резюм|переска|излож)", r"^(?:здесь )?(?:нечего|нет информации для|недостаточно информации для)\b.{0,15}?(?:обобщ|резюм|переска|кратк|изложения|составления|создания)",
        r"^(?:текст|статья|отрывок) не (?:был|была|предоставлен)",
        r"^пожалуйста,? (?:предостав|пришл|отправ|поделит|встав)\w*\b.{0,30}?(?:текст|стать|отрыв)",
    ),
    ("текст", "отрыв", "стать", "документ", "содержани", "информац", "фрагмент"),
    (r"\bне\b", r"\bнет\b", "только", "лишь", "пуст", "слишком корот", "неполн", r"\bбез\b", "заглушк", "отсутств"),
    ("пожалуйста", "если вы", "если хотите", "извин", "языковая модель", "буду рад"),
    ("но", "однако", "тем не менее", "вот краткое"),
)  # fmt: skip

CHINESE = Language(
    "zh",
    ("(?:非常|很|真的)?(?:抱歉|遗憾|遺憾)[,，。]?", "(?:对|對)不起[,，。]?", "不好意思[,，。]?", "作(?:为|為)(?:一个|一個|一名)?(?:ai|人工智能|人工智慧|语言模型|語言模型)[^,，]{0,10}[,，]?",
     "但是?", "不过[,，]?"),
    (
        r"^(?:我们?|我們)?(?:目前|暂时|确实|實在|实在)?(?:无法|無法|不能|不可以|没有办法|沒有辦法|没法|难以|難以|不便|拒绝|拒絕).{0,12}?(?:总结|總結|概括|概述|摘要|归纳|歸納|提供|生成|回答|完成|帮助|幫助|协助|协助|处理|處理|满足|访问|讀取|读取)",
        r"^(?:这|這|此|该|該|上述|所提供的|提供的|本)(?:篇|段|个|個|份)?(?:文章|文本|段落|内容|內容|文字|文档|文件|材料).{0,8}?(?:无法|無法|不能|难以|難以)(?:被)?(?:进行|進行)?(?:总结|總結|概括|摘要|归纳|歸納)",
        r"^(?:这|這|此|该|該|上述|所提供的|提供的|本)?(?:篇|段|个|個|份)?(?:文章|文本|段落|内容|內容|文字|文档|材料|原文)(?:中)?(?:并|並)?(?:没有|沒有|不包含|未包含|缺乏|不含)(?:任何|足够的?|足夠的?|实质性?的?|實質性?的?|有效的?|可供|可以)*.{0,6}?(?:内容|內容|信息|資訊|资讯|文字|总结|總結|摘要).{0,14}?$",
        r"^(?:没有|沒有|缺乏|无|無).{0,10}?(?:内容|內容|信息|資訊|文本|文章).{0,6}?(?:可供|可以|可|供|来|來)?(?:总结|總結|概括|摘要|归纳|歸納)",
        r"^(?:信息|内容|資訊|內容)不足.{0,12}$",
        r"^请(?:您|你)?(?:先)?(?:提供|发送|粘贴|分享).{0,12}?(?:文章|文本|段落|内容|原文)|^請(?:您|你)?(?:提供|發送|貼上).{0,12}?(?:文章|文本|段落|內容)",
        r"^(?:您|你)(?:没有|沒有|未|并未).{0,4}?提供.{0,10}?(?:文章|文本|段落|内容|內容)",
    ),
    ("文章", "文本", "段落", "内容", "內容", "文字", "材料", "信息", "資訊"),
    ("没有", "沒有", "不", "仅", "僅", "只", "空", "太短", "无", "無", "缺"),
    ("请", "請", "如果您", "如果你", "如有", "抱歉", "对不起", "乐意", "樂意", "很高兴"),
    ("但", "但是", "不过", "不過", "然而", "以下是"),
)  # fmt: skip

JAPANESE = Language(
    "ja",
    ("(?:大変|誠に)?申し訳(?:ありません|ございません|ない)(?:が|ですが|けど)?[、,。]?", "すみません(?:が)?[、,。]?", "ごめんなさい[、,。]?", "残念ながら[、,]?", "恐れ入りますが[、,]?",
     "(?:ai|人工知能|言語モデル)(?:として|なので)[^、]{0,10}[、,]?"),
    (
        r"(?:要約|まとめ|概要を作成|概要を提供|お手伝い|お答え|回答|対応|提供|作成|ご要望にお応え|生成)(?:する(?:こと)?|ること)?(?:は|が|を)?(?:お)?(?:でき(?:ません|かねます|ない(?:です)?)|出来(?:ません|ない)|いたしかねます|不可能です|困難です|お断り(?:します|いたします))(?:でした)?$",
        r"(?:要約|まとめ)(?:できる|すべき|するため?の|に必要な|するのに十分な|るべき|の対象となる)(?:十分な)?(?:内容|情報|文章|本文|テキスト|もの|点)(?:が|は)?.{0,6}?(?:ありません|ございません|ないです|ない|含まれていません|不足しています|見当たりません)$",
        r"^(?:この|その|提供された|与えられた|ご提供の)?(?:文章|本文|記事|テキスト|パッセージ|文書|段落)(?:に|には|は).{0,12}?(?:内容|情報).{0,8}?(?:ありません|含まれていません|ございません|空です|不足しています)$",
        r"^(?:この|その|提供された)?(?:文章|本文|記事|テキスト|パッセージ)(?:が|は)(?:空|提供されていません|見当たりません|短すぎ)",
        r"(?:文章|本文|記事|テキスト|パッセージ)を(?:ご)?(?:提供|共有|送付|お送り|貼り付け)(?:して)?(?:ください|いただけ)",
    ),
    ("文章", "本文", "記事", "テキスト", "パッセージ", "内容", "情報"),
    ("ない", "ません", "のみ", "だけ", "空", "短すぎ", "不足", "ダミー"),
    ("ください", "いただけ", "よろしければ", "申し訳", "すみません", "お手伝い"),
    ("しかし", "ただし", "ですが、"),
)  # fmt: skip

KOREAN = Language(
    "ko",
    ("(?:정말 |대단히 )?죄송(?:합니다만|하지만|합니다)[,.]?", "미안(?:하지만|합니다만|합니다)[,.]?", "안타깝게도[,]?", "유감스럽게도[,]?", "아쉽게도[,]?", "(?:ai|인공지능|언어 모델)(?:로서|이므로|이기 때문에)[^,]{0,12},?"),
    (
        r"(?:요약|정리|제공|작성|답변|도움|도와|생성|수행|응답)\S{0,6}? ?(?:을|를|은|는)? ?(?:드릴|할|해 드릴|제공할|작성할|해드릴|드리기|하기|될|줄)?(?: 수(?:가)?| 수는)? ?(?:없습니다|없어요|없음|없다|불가능합니다|어렵습니다|불가합니다|없을 것 같습니다)$",
        r"(?:요약할|요약하기에|요약에 필요한|요약할 만한)(?: \S+)? ?(?:내용|정보|텍스트|본문|것)\S{0,2} (?:없습니다|부족합니다|없어요|충분하지 않습니다|포함되어 있지 않습니다)$",
        r"^(?:이|해당|제공된|주어진|본)? ?(?:글|지문|텍스트|기사|문서|본문|단락|구절)\S{0,3} (?:\S+ ){0,3}?(?:내용|정보)\S{0,2} (?:\S+ )?(?:없습니다|부족합니다|포함되어 있지 않습니다|담고 있지 않습니다)$",
        r"(?:글|지문|텍스트|기사|문서|본문|단락)\S{0,2} (?:\S+ )?(?:제공해|공유해|보내|붙여)\S{0,3} ?(?:주세요|주시|주십시오)",
        r"^(?:글|지문|텍스트|기사|문서|본문)\S{0,2} 제공되지 않았습니다$",
        r"(?:요약하|요약을 (?:하|제공하|작성하))는 것은? (?:불가능합니다|어렵습니다|불가합니다)$",
    ),
    ("글", "지문", "텍스트", "기사", "문서", "본문", "내용", "정보"),
    ("없", "않", "만 ", "뿐", "비어", "너무 짧", "부족", "불완전"),
    ("주세요", "주시면", "원하시면", "죄송", "미안", "기꺼이"),
    ("하지만", "그러나", "다만", "다음은"),
)  # fmt: skip

ARABIC = Language(
    "ar",
    ("(?:أنا )?(?:آسف|آسفة|أسف)[،,]?(?: ولكن(?:ني)?| لكن(?:ني)?)?", "عذر[اًا]*[،,]?(?: ولكن(?:ني)?| لكن(?:ني)?)?", "للأسف[،,]?", "أعتذر[،,]?(?: ولكن(?:ني)?| لكن(?:ني)?)?", "معذرة[،,]?(?: ولكن| لكن)?", "مع الأسف[،,]?",
     "(?:بصفتي|كوني|كنموذج)[^،,]{0,30}[،,]?"),
    (
        r"^(?:أنا )?(?:لا|لن|لم) (?:أستطيع|يمكنني|أتمكن من|أقدر على|استطيع|نستطيع|يمكننا)\b.{0,20}?(?:تلخيص|تقديم|إنشاء|كتابة|توفير|مساعد|الإجابة|إعطاء|القيام|الوصول|تلبية|استخلاص)",
        r"^(?:أنا )?(?:غير قادر|غير قادرة|لست قادرا|لست قادراً|عاجز) (?:على|عن)\b.{0,12}?(?:تلخيص|تقديم|إنشاء|كتابة|مساعد|الإجابة)",
        r"^(?:لا يمكن|من غير الممكن|يتعذر|من المستحيل|لا يمكنني|تعذر)(?: علي)?\b.{0,12}?(?:تلخيص|تقديم ملخص|إنشاء)",
        r"^(?:هذا |هذه )?(?:النص|المقطع|المقال|المقالة|الفقرة|المستند)(?: \w+)? لا (?:يحتوي|تحتوي|يتضمن|تتضمن|يقدم)(?: \w+){0,3}? ?(?:معلومات|محتوى|المعلومات|المحتوى|نص)(?: \w+)?(?: (?:ل|كي|يمكن|من أجل|للتلخيص|لتلخيص\w*).{0,40})?$",
        r"^(?:لا يوجد|لا توجد|ليس هناك|ليس هنالك)(?: \w+){0,3}? ?(?:للتلخيص|لتلخيصه|لتلخيصها|يمكن تلخيصه|يمكن تلخيصها)",
        r"^(?:لا يوجد|لا توجد|لم يتم تقديم|لم يقدم)(?: أي)? (?:نص|مقال|محتوى|معلومات كافية)(?: \w+){0,3}$",
        r"^(?:يرجى|من فضلك|الرجاء)[،,]? (?:تقديم|تزويدي|إرسال|مشاركة|زودني)\b.{0,30}?(?:نص|النص|المقال|المقطع|بالنص|بالمقال)",
    ),
    ("النص", "المقطع", "المقال", "الفقرة", "محتوى", "معلومات"),
    (r"\bلا\b", r"\bلم\b", "ليس", "فقط", "فارغ", "قصير جد", "بدون", "غير"),
    ("يرجى", "من فضلك", "إذا كنت", "إذا أردت", "آسف", "عذر", "أعتذر", "يسعدني"),
    ("لكن", "ولكن", "ومع ذلك", "إليك"),
)  # fmt: skip

HINDI = Language(
    "hi",
    ("(?:मुझे )?(?:खेद|अफ़?सोस|अफ़सोस) है(?: कि)?,?(?: लेकिन| परंतु)?", "क्षमा (?:करें|कीजिए|चाहता हूँ|चाहती हूँ),?(?: लेकिन)?", "मा[फ़फ]़? (?:करें|कीजिए|कीजिएगा),?(?: लेकिन)?", "दुर्भाग्य से,?", "दुर्भाग्यवश,?",
     "एक (?:एआई|भाषा मॉडल)[^,]{0,30},?"),
    (
        r"(?:सारांश|संक्षेप|सारांशित|मदद|सहायता|उत्तर|जवाब)\S*(?: \S+){0,4}? (?:नहीं|असमर्थ|अक्षम)(?: \S+){0,3}? ?(?:सकता|सकती|सकते|दे|कर|हूँ|हूं|बना|पाऊँगा|पाऊंगा|है)\S*(?: (?:हूँ|हूं|हैं|है))?$",
        r"^(?:मैं|हम)\b.{0,60}?(?:सारांश|संक्षेप|सारांशित)\S*\b.{0,25}?(?:असमर्थ|अक्षम|सक्षम नहीं) ?(?:हूँ|हूं|हैं)?$",
        r"^(?:इस|यह|दिए गए|प्रदान किए गए)(?: \S+)? ?(?:पाठ|लेख|अनुच्छेद|गद्यांश|दस्तावेज़|दस्तावेज)\S*(?: का| को)? .{0,20}?(?:सारांश|सारांशित).{0,10}?(?:नहीं|असंभव|संभव नहीं)",
        r"^(?:इस|दिए गए|प्रदान किए गए|यहाँ|यहां)?\s?(?:पाठ|लेख|अनुच्छेद|गद्यांश|दस्तावेज़)?(?: में)? ?(?:सारांश|सारांशित)\S*(?: \S+){0,4}? ?(?:लिए|करने)(?: \S+){0,4}? (?:नहीं|कुछ नहीं) (?:है|हैं)$",
        r"^(?:इस|दिए गए)? ?(?:पाठ|लेख|अनुच्छेद|गद्यांश|दस्तावेज़) में (?:\S+ ){0,4}?(?:जानकारी|सामग्री) नहीं (?:है|हैं)$",
        r"^(?:मैं|हम) (?:\S+ ){0,2}?(?:अनुरोध|काम|कार्य)(?: \S+){0,3}? नहीं (?:कर|दे) (?:सकता|सकती|सकते)(?: (?:हूँ|हूं|हैं))?$", r"^कृपया(?: \S+){0,5}? (?:पाठ|लेख|अनुच्छेद|गद्यांश)(?: \S+){0,4}? (?:प्रदान|साझा|भेज|दें)",
    ),
    ("पाठ", "लेख", "अनुच्छेद", "गद्यांश", "सामग्री", "जानकारी", "दस्तावेज"),
    ("नहीं", "केवल", "सिर्फ", "खाली", "बहुत छोटा", "अधूरा", "बिना"),
    ("कृपया", "यदि आप", "अगर आप", "क्षमा", "खेद"),
    ("लेकिन", "परंतु", "हालांकि", "फिर भी", "किंतु"),
)  # fmt: skip

INDONESIAN = Language(
    "id",
    ("(?:mohon )?maaf,?(?: tetapi| tapi| namun)?", "saya (?:minta|mohon) maaf,?(?: tetapi| tapi| namun)?", "sayangnya,?", "dengan menyesal,?", "sebagai (?:ai|model bahasa)[^,]{0,40},?"),
    (
        r"^(?:saya|kami) (?:\w+ )?(?:tidak (?:dapat|bisa|mampu|sanggup)|belum (?:dapat|bisa))(?: \w+)? ?(?:merangkum|meringkas|memberikan|membuat|menyediakan|membantu|menjawab|menyusun|menulis|mengakses|memenuhi)",
        r"^(?:tidak (?:dapat|bisa|mungkin)|mustahil)(?: untuk)? (?:merangkum|meringkas|dirangkum|diringkas|memberikan ringkasan|membuat ringkasan)",
        r"^(?:teks|bagian|artikel|dokumen|bacaan|paragraf)(?: \w+){0,3}? (?:tidak (?:dapat|bisa)) (?:dirangkum|diringkas)",
        r"^(?:teks|bagian|artikel|dokumen|bacaan|paragraf)(?: \w+){0,3}? tidak (?:berisi|mengandung|memuat|memiliki|menyediakan)(?: \w+){0,3}? ?(?:informasi|konten|isi|teks|apa pun)(?: yang (?:cukup|memadai))?(?: \w+)?(?: (?:untuk|yang)\b.{0,40}(?:rangkum|ringkas)\w*.{0,10})?$",
        r"^tidak ada (?:\w+ ){0,3}?(?:untuk|yang (?:dapat|bisa)) (?:dirangkum|diringkas|merangkum)",
        r"^tidak ada (?:teks|artikel|konten|bacaan)(?: yang)? (?:diberikan|disediakan)",
        r"^(?:silakan|mohon|tolong)(?: \w+)? (?:berikan|kirim|bagikan|sediakan|tempel)\w*\b.{0,25}?(?:teks|artikel|bacaan)",
    ),
    ("teks", "artikel", "bacaan", "dokumen", "konten", "informasi", "paragraf"),
    ("tidak", "hanya", "kosong", "terlalu pendek", "tanpa", "belum", "kurang"),
    ("silakan", "mohon", "tolong", "jika anda", "maaf", "model bahasa"),
    ("tetapi", "namun", "tapi", "akan tetapi", "berikut"),
)  # fmt: skip

VIETNAMESE = Language(
    "vi",
    ("(?:tôi )?(?:rất |thành thật )?xin lỗi,?(?: nhưng)?", "rất tiếc,?(?: nhưng)?", "tiếc (?:là|rằng),?", "thật không may,?", "tôi rất tiếc,?(?: nhưng)?", "với tư cách là[^,]{0,40},?"),
    (
        r"^(?:tôi|chúng tôi|mình|em) (?:\w+ )?(?:không thể|không có khả năng|chưa thể|không đủ khả năng)(?: \w+)? ?(?:tóm tắt|cung cấp|tạo|viết|đưa ra|giúp|trả lời|hỗ trợ|thực hiện|truy cập)",
        r"^(?:không thể|không có cách nào để) (?:tóm tắt|được tóm tắt|cung cấp bản tóm tắt)",
        r"^(?:đoạn văn|văn bản|bài viết|bài báo|tài liệu|đoạn trích|nội dung)(?: \w+){0,3}? không thể (?:được )?tóm tắt",
        r"^(?:đoạn văn|văn bản|bài viết|bài báo|tài liệu|đoạn trích)(?: \w+){0,3}? không (?:chứa|có|bao gồm|cung cấp)(?: \w+){0,4}? ?(?:thông tin|nội dung)(?: \w+){0,3}?(?: (?:để|cho|nào)\b.{0,30})?$",
        r"^không có (?:\w+ ){0,4}?(?:để|nào để|cần) tóm tắt",
        r"^(?:vui lòng|xin hãy|xin|hãy)(?: \w+)? (?:cung cấp|gửi|chia sẻ|dán)\b.{0,25}?(?:văn bản|bài viết|đoạn văn|nội dung)",
    ),
    ("đoạn văn", "văn bản", "bài viết", "bài báo", "tài liệu", "nội dung", "thông tin"),
    ("không", "chỉ", "trống", "quá ngắn", "thiếu"),
    ("vui lòng", "nếu bạn", "xin lỗi", "hãy cho tôi", "sẵn lòng"),
    ("nhưng", "tuy nhiên", "dưới đây", "sau đây"),
)  # fmt: skip

THAI = Language(
    "th",
    ("(?:ต้อง)?ขออภัย(?:ด้วย)?(?:ค่ะ|ครับ)?[, ]*(?:แต่)?", "(?:ต้อง)?ขอโทษ(?:ด้วย)?(?:ค่ะ|ครับ)?[, ]*(?:แต่)?", "เสียใจด้วย(?:ค่ะ|ครับ)?[, ]*(?:แต่)?", "น่าเสียดายที่", "น่าเสียดาย"),
    (
        r"^(?:ฉัน|ผม|ดิฉัน|เรา|ข้าพเจ้า)?\s?(?:ไม่สามารถ|ไม่อาจ|ไม่ได้รับอนุญาตให้).{0,25}?(?:สรุป|ให้ข้อมูล|สร้าง|ช่วย|ตอบ|เขียน|จัดทำ|ให้บทสรุป|เข้าถึง)",
        r"^(?:บทความ|ข้อความ|เนื้อหา|เอกสาร|ข้อความที่ให้มา|บทความที่ให้มา)(?:นี้)?\s?(?:ไม่สามารถสรุป|สรุปไม่ได้)",
        r"^(?:บทความ|ข้อความ|เนื้อหา|เอกสาร)(?:นี้|ที่ให้มา)?\s?(?:ไม่มี|ไม่ได้มี).{0,20}?(?:เนื้อหา|ข้อมูล|สาระ).{0,20}$",
        r"^(?:ไม่มี).{0,20}?(?:ให้|ที่จะ|สำหรับ|พอ).{0,8}?สรุป",
        r"^(?:โปรด|กรุณา)(?:ส่ง|ให้|ระบุ|แบ่งปัน|วาง).{0,15}?(?:ข้อความ|บทความ|เนื้อหา)",
    ),
    ("บทความ", "ข้อความ", "เนื้อหา", "เอกสาร", "ข้อมูล"),
    ("ไม่", "เพียง", "เท่านั้น", "ว่าง", "สั้นเกินไป"),
    ("โปรด", "กรุณา", "หากคุณ", "ถ้าคุณ", "ขออภัย", "ขอโทษ"),
    ("แต่", "อย่างไรก็ตาม"),
)  # fmt: skip

TURKISH = Language(
    "tr",
    ("(?:çok )?üzgünüm,?(?: ama| ancak| fakat)?", "maalesef,?", "ne yazık ki,?", "kusura bakma(?:yın)?,?(?: ama| ancak)?", "özür dilerim,?(?: ama| ancak| fakat)?", "bir (?:yapay zeka|dil modeli)[^,]{0,40},?"),
    (
        r"(?:özetle\w*|özet\w*|yardımcı|yardım|cevap|yanıt|oluştur\w*|sağla\w*)(?: \w+){0,2}? ?(?:yapamam|yapamıyorum|edemem|edemiyorum|olamam|olamıyorum|veremem|veremiyorum|sunamam|sunamıyorum|çıkaramam|çıkaramıyorum|hazırlayamam|hazırlayamıyorum|sağlayamam|sağlayamıyorum|mümkün değil(?:dir)?|yazamam)$",
        r"(?:özetleyemem|özetleyemiyorum|özetlenemez|özetlenemiyor|özetleyemeyiz|özetleyemeyeceğim)$",
        r"^(?:bu|verilen|sağlanan) (?:metin|makale|parça|pasaj|belge)\w*(?: \w+){0,3}? (?:özetlenecek|özetlemek için|özet için)(?: \w+){0,4}? ?(?:içermiyor|yok|içermemektedir|yoktur|bulunmuyor|yetersiz)$",
        r"^(?:bu |verilen )?(?:metinde|makalede|parçada|pasajda|belgede)(?: \w+){0,3}? ?(?:bilgi|içerik)(?: \w+)? ?(?:yok|yoktur|bulunmuyor|bulunmamaktadır)$",
        r"^özetlenecek(?: \w+){0,3}? (?:yok|yoktur|bulunmuyor)$",
        r"^(?:bu |maalesef )?(?:isteği|talebi|isteğinizi|talebinizi)(?: \w+){0,2}? (?:getiremem|karşılayamam|gerçekleştiremem|getiremiyorum)$", r"^lütfen(?: \w+){0,4}? (?:metni|metin|makaleyi|parçayı)(?: \w+){0,3}? (?:paylaş|gönder|sağla|ekle|yapıştır)\w*",
    ),
    ("metin", "metni", "makale", "parça", "pasaj", "belge", "içerik", "bilgi"),
    ("değil", "yok", "yalnızca", "sadece", "boş", "çok kısa", "eksik", "miyor", "mıyor", "içermiyor"),
    ("lütfen", "eğer", "isterseniz", "üzgünüm", "özür", "memnuniyet"),
    ("ama", "ancak", "fakat", "yine de", "işte"),
)  # fmt: skip

LANGUAGES: tuple[Language, ...] = (
    ENGLISH, GERMAN, FRENCH, SPANISH, PORTUGUESE, ITALIAN, DUTCH, RUSSIAN, CHINESE, JAPANESE, KOREAN, ARABIC, HINDI,
    INDONESIAN, VIETNAMESE, THAI, TURKISH,
)  # fmt: skip
