"""Is a task fit to be asked?

What can be known of it before money is spent, as verdicts: rows, prompts, shots and scorers.

material    a task read once: samples, questions as rendered, requests exactly as they would be sent
asking      the strategy answered by a script: what the gold answer, or an answer that knows
nothing, is worth gold, ignorance, texts, labels, shots, prompts, metadata      a subject each, from
Material to findings extraction  with a run: could answers be read examining   all of it in order
"""
