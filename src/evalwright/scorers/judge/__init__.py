"""Judges that write: models that are asked for a verdict on an answer.

`forms` holds what a verdict looks like, `asking` how it is asked for, `opinions` what several
judges or turns come to; a file for each kind: `rubric`, `rating`, `correct`, `pair`.
"""
