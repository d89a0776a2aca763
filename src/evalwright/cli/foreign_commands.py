"""Commands of `evalwright` that stand for a foreign system's program: where each is, and what it does."""

FOREIGN_COMMANDS = {
    "lm-eval": (
        "evalwright.compat.lm_eval.harness.command:lm_eval",
        "Evaluate as lm-evaluation-harness does, with its flags.",
    ),
    "hret": (
        "evalwright.compat.hret.command:hret",
        "Evaluate as the HaeRae Evaluation Toolkit does, with its flags.",
    ),
}
