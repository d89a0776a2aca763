#!/bin/sh
# What a paper shows of these runs: sh paper.sh. No request is sent.
set -e

# Names of runs, or their folders. Results of other programs become runs: evalwright import --help
set -- @RUNS@

# Is the difference real? Quote the last sentence.
evalwright compare "$@" --flips 10 --json-file comparison.json

# A table for LaTeX (booktabs; \input{table}), and the same as CSV.
evalwright leaderboard "$@" --title Results --latex table.tex --csv table.csv

# Figures, also as .png or .pdf. They need the extra plot.
evalwright runs plot scores "$@" --into scores.svg
evalwright runs plot differences "$@" --into differences.svg
