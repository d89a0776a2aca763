"""Quizbox, a small system that was invented for this example: quizzes in TOML, results in JSON.

quizzes.py  its quizzes as tasks: `quizbox:capitals` is `capitals.quiz.toml`
results.py  its results as runs, and runs as its results
"""
