"""Checks whether a task is fit for use, before money is spent: rows, prompts, shots and scorers.

material: a task read once, with samples, questions as rendered, and requests exactly as they
would be sent. asking: runs the strategy on scripted replies, to score the gold answer, or an
answer that ignores the question. gold, ignorance, texts, labels, shots, prompts, metadata: one
subject each, from Material to findings. extraction: with a run, whether answers can be read.
acting: tasks with a sandbox. examining: all checks in order.
"""
