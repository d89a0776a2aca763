"""The commands whose numbers are recorded: evaluations, and what is computed from finished runs.

Adapt them here where a command changes.

The name of an entry is what its numbers are compared by, so a command may change as long as its
name stays.
"""

from __future__ import annotations

import json

from recorded_inputs import GENERATED


def _rows(test: str, shots: str = "") -> str:
    """A bundled task's rows from files, in place of the hub's."""
    hub = dict.fromkeys(("hub", "revision", "config", "split"))
    text, more = (
        json.dumps({"path": f"inputs/{file}", **hub}) for file in (test, shots)
    )
    return f"-T 'dataset={text}'" + (
        f" -T 'prompt.few_shot.dataset={more}'" if shots else ""
    )


_ECHO = (
    "--model 'openai/{url}#echo' -M interface=completions -M echo=true -M 'bos=<s>' "
)
_SUMMED = "--model scripted/lead --model 'openai/{url}#sum' --limit 40 "
_DIALECT = (
    "lm-eval:d_arc lm-eval:d_cola lm-eval:d_mmlu lm-eval:d_gsm8k lm-eval:d_lambada"
    " lm-eval:d_wikitext --task-root inputs/dialect --trust inputs "
)
_OWN = (
    "inputs/letter.yaml inputs/likelihood.yaml inputs/continuation.yaml"
    " inputs/perplexity.yaml "
)

EVALUATIONS: dict[str, str] = {
    "demo": "run factual --model demo/small --model demo/large",
    "gold": "run factual --model oracle/gold -M share=0.7",
    "told": "run factual --model replay/inputs/replies.jsonl",
    "chat": "run factual factual-grounded-injected --model 'openai/{url}#chat'",
    "chat-again": (
        "run factual-closed-book factual-stress --model 'openai/{url}#other' -M"
        " temperature=0.5 --seed 3 --limit 50"
    ),
    "passages": (
        "run factual-grounded factual-grounded-closed-book factual-grounded-judged"
        " --model replay/inputs/replies.jsonl --role judge=scripted/hash"
    ),
    "lexical": (
        "run factual-grounded-judged --model demo/small --role judge=baseline/lexical"
        " --limit 30"
    ),
    "words": (
        "run inputs/words.yaml --model replay/inputs/replies.jsonl --model"
        " 'openai/{url}#words' --role 'embedder=openai/{url}#vectors' -R"
        " embedder.interface=embeddings"
    ),
    "sums": "run inputs/sums.yaml --model 'openai/{url}#sums' --model scripted/hash",
    "own": (
        f"run {_OWN} --model scripted/hash --model demo/small --model hf/inputs/tiny"
    ),
    "own-echo": f"run {_OWN} {_ECHO}",
    "tiny-writes": (
        "run factual-closed-book --model hf/inputs/tiny -M max_tokens=8 -T"
        " prompt.few_shot.count=0 --limit 12"
    ),
    "mmlu": (
        "run global-mmlu-lite-en --model scripted/hash --model demo/small"
        f" {_rows('en_test.jsonl', 'en_dev.jsonl')} --limit 40"
    ),
    "arc": (
        "run arc-challenge --model scripted/hash --model demo/small --model"
        f" hf/inputs/tiny {_rows('rows/arc/test.jsonl')}"
    ),
    "hellaswag": (
        "run hellaswag --model scripted/hash --model demo/small"
        f" {_rows('rows/hellaswag/validation.jsonl')}"
    ),
    "lambada": (
        "run lambada --model scripted/hash --model demo/small"
        f" {_rows('rows/lambada/test.jsonl')}"
    ),
    "wikitext": (
        "run wikitext --model scripted/hash --model hf/inputs/tiny"
        f" {_rows('rows/wikitext/test.jsonl')}"
    ),
    "gsm": (
        "run gsm8k --model 'openai/{url}#gsm'"
        f" {_rows('rows/gsm8k/test.jsonl', 'rows/gsm8k/train.jsonl')}"
    ),
    **{f"case-{task}": f"run --config inputs/case-{task}.yaml" for task in GENERATED},
    "summaries": f"run summary-faithfulness {_SUMMED} --role judge=baseline/lexical",
    "summaries-hash": (
        f"run summary-faithfulness {_SUMMED} --role judge=scripted/hash -T"
        " scorers.consistency.sentences=true"
    ),
    "summaries-judged": (
        f"run summary-faithfulness {_SUMMED} --role 'judge=openai/{{url}}#judge'"
    ),
    "experiments": (
        "run summary-faithfulness-experiments --model scripted/lead --role"
        " judge=scripted/hash --limit 8"
    ),
    "judges": (
        "run judge-consistency --model baseline/lexical --model scripted/hash"
        " --limit 150"
    ),
    "dialect": (
        f"run {_DIALECT} --model scripted/hash --model demo/small --num-fewshot 2"
    ),
    "dialect-echo": f"run {_DIALECT} {_ECHO}",
    "dialect-published": f"run {_DIALECT} --model scripted/hash --scoring published",
    "until": (
        "run factual-closed-book --model demo/small --model demo/large --until 'A beats"
        " B' --until 'accuracy +-0.05'"
    ),
    "where": (
        "run factual-closed-book --model demo/small --where domain=geography --seed 4"
        " --limit 15 --format text"
    ),
}
"""Run name: command.

Each is given --name, and several models a suffix. {url} is the loopback server's.
"""

_HHEM = "--out runs --json"
ANALYSES: dict[str, str] = {
    "compare-two": "compare demo-demo-small demo-demo-large --slice domain --json",
    "compare-three": "compare demo-demo-small demo-demo-large told chat --json",
    "compare-baseline": (
        "compare demo-demo-small demo-demo-large told --baseline told --json"
    ),
    "compare-words": "compare words-* --json",
    "compare-draws": "compare sums-* --json",
    "compare-own": "compare own-scripted-hash own-demo-small own-hf-inputs-tiny --json",
    "compare-dialect": "compare dialect-scripted-hash dialect-published --json",
    "compare-summaries": "compare summaries-scripted* summaries-openai* --json",
    "equivalent": "compare demo-demo-small demo-demo-large --equivalent 0.05 --json",
    "gate": (
        "compare demo-demo-small demo-demo-large told --fail-if 'accuracy drops"
        " by more than 0.02' --json --junit files/gate.xml"
    ),
    "gate-strict": (
        "compare told demo-demo-small --fail-if 'accuracy drops by more than"
        " 0.02' --gate not-ruled-out --json"
    ),
    "board": (
        "leaderboard demo-demo-small demo-demo-large told chat --json"
        " --markdown files/board.md --csv files/board.csv --json-file"
        " files/board.json"
    ),
    "board-case": "leaderboard case-gsm8k-* --json",
    "board-own": (
        "leaderboard own-scripted-hash own-demo-small own-hf-inputs-tiny --json"
        " --csv files/own.csv"
    ),
    "board-words": "leaderboard words-* --json",
    "board-summaries": (
        "leaderboard summaries-scripted* summaries-openai*"
        " --allow-baseline-judge --json --markdown files/summaries.md"
    ),
    "board-judges": "leaderboard judges-* --json",
    "board-simulated": "leaderboard gold demo-demo-small --with-simulations --json",
    "calibration": "calibration mmlu-scripted-hash mmlu-demo-small --json",
    "calibration-stated": "calibration sums-openai* --json",
    "contamination": (
        "contamination demo-demo-small told --cut-off 2000 --date-key"
        " known_since --corpus inputs/corpus.txt --ngram 5 --json"
    ),
    "judges-agree": (
        "judge agreement summaries-hash-scripted* summaries-judged-scripted* --json"
    ),
    "draw": (
        "judge sample summaries-judged-scripted* --n 30 --seed 2 --to"
        " files/labels.csv --json"
    ),
    "judge": "judge calibrate summaries-judged-scripted* --labels files/labels.csv --json",
    "draw-two": (
        "judge sample demo-demo-small demo-demo-large --task"
        " factual-closed-book --n 40 --design stratified --to files/two.csv"
        " --json"
    ),
    "judge-two": (
        "judge calibrate demo-demo-small demo-demo-large --labels files/two.csv --json"
    ),
    "plan": (
        "plan factual-closed-book --model demo/small --model demo/large"
        " --difference 0.05 --json"
    ),
    "plan-assumed": (
        "plan factual --model demo/small --assume accuracy=0.7,discordant=0.2 --json"
    ),
    "plan-from": (
        "plan factual-closed-book --from demo-demo-small --from demo-demo-large --json"
    ),
    "show-task": "tasks show factual-grounded --json",
    "preview": "tasks preview inputs/letter.yaml --json",
    "preview-dialect": (
        "tasks preview lm-eval:d_arc --task-root inputs/dialect --trust inputs"
        " --num-fewshot 2 --json"
    ),
    "check-tasks": "tasks check factual inputs/letter.yaml inputs/sums.yaml --json",
    "aggregate": (
        "aggregate demo-demo-small --slice domain --slice answer_type --level"
        " 0.9 --metric accuracy --metric given=accuracy-given-attempted --name"
        " aggregate --json"
    ),
    "score-own": "score words-replay* --scorer short-answer --name score-own --json",
    "score-others": (
        "score demo-demo-large --scorer exact-match -S"
        " exact-match.ignore_case=true --scorer token-f1 --name score-others"
        " --json"
    ),
    "score-similar": (
        "score told --scorer similarity -S similarity.role=embedder --role"
        " embedder=scripted/hash --name score-similar --json"
    ),
    "score-judged": (
        "score summaries-scripted* --scorer consistency --role"
        " judge=scripted/hash -R judge.seed=4 --name score-judged --json"
    ),
    "score-passages": "score passages --scorer grounding --name score-passages --json",
    "score-dialect": (
        "score dialect-scripted-hash --task-root inputs/dialect --trust inputs"
        " --name score-dialect --json"
    ),
    "submission": "submit make where --into files/where.json",
    "verified": "submit verify files/where.json --json",
    "lm-eval-out": "export lm-eval dialect-scripted-hash --out files/lm-eval",
    "lm-eval-own": "export lm-eval own-scripted-hash --out files/lm-eval-own",
    "lm-eval-in": "import lm-eval files/lm-eval --name lm-eval-in --json",
    "hf-results": "export hf-results summaries-scripted* --out files/hf",
    "eval-results": (
        "export eval-results demo-demo-small --dataset a/b --task-id c --task"
        " factual-closed-book --out files/eval"
    ),
    "bench": (
        "import open-factual-bench inputs/bench --tasks"
        " inputs/bench-tasks.jsonl --name bench --json"
    ),
    "bench-published": (
        "import open-factual-bench inputs/bench --scoring published --name"
        " bench-published --json"
    ),
    "hhem-v1": f"import hhem {{shared}}/data/hhem/v1 --name v1 {_HHEM}",
    "hhem-v2": f"import hhem {{shared}}/data/hhem/v2 --name v2 {_HHEM}",
    "hhem-v2-published": (
        f"import hhem {{shared}}/data/hhem/v2 --scoring published --name p2 {_HHEM}"
    ),
    "board-v1": "leaderboard v1-* --json --csv files/v1.csv",
    "board-v2": "leaderboard v2-* --json --csv files/v2.csv --markdown files/v2.md",
    "board-v2-published": "leaderboard p2-* --json",
    "compare-v2": "compare v2-openai-gpt-4.1* v2-google-gemma* --json",
}
"""Name: command over finished runs, in this order (some read what an earlier one wrote).

Runs may be globs over `runs/`.
"""

RENAMED: dict[str, str] = {"lean": "excess", "yes_lean": "acquiescence"}
"""Names of keys in JSON and of outputs that the new code has in place of old ones: old -> new."""
