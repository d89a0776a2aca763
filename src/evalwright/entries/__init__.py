"""A leaderboard by pull requests: what a maintainer decides, and what a contributor may propose.

`board.yaml` belongs to the maintainers. A file in `entries/` comes from anybody and is data: it is
read strictly, checked against the board, and never run.
"""
