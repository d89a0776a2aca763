"""Model judges: models that write a verdict on an answer.

`forms` defines what a verdict looks like, `judge_questions` requests it, and `opinions` combines
the verdicts of several judges or turns. Each kind of judge has its own file: `rubric`, `rating`,
`correct`, `pair`.
"""
