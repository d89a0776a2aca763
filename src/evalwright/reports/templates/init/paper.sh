#!/bin/sh
# What a paper shows of these runs: sh paper.sh. No request is sent.
set -e

# Names of runs, or their folders. Results of other programs become runs: evalwright import --help
set -- @RUNS@

# Is the difference real? Quote the last sentence. Tables for LaTeX and spreadsheets.
evalwright compare "$@" --json-file comparison.json --latex comparison.tex --csv comparison.csv

# Scores and ranks for LaTeX (booktabs, graphicx; \input{table}), and as CSV with all tasks.
evalwright leaderboard "$@" --title Results --latex table.tex --csv table.csv

# What the methods section has to say: models, tasks, prompts, settings, statistics, citations.
evalwright export methods "$@" --into methods.txt

# Figures, also as .png or .pdf. They need the extra plot.
evalwright runs plot scores "$@" --into scores.svg
evalwright runs plot differences "$@" --into differences.svg
