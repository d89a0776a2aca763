#!/bin/sh
# What a paper shows of this run: sh paper.sh. No request is sent.
set -e

# The name of a run, or its folder.
set -- @RUNS@

# Every metric with its interval, the number of items, and what is missing or unsure.
evalwright runs show "$@" --details

# A table for LaTeX (booktabs, graphicx; \input{table}), and the same as CSV.
evalwright leaderboard "$@" --title Results --latex table.tex --csv table.csv

# What the methods section has to say: models, tasks, prompts, settings, statistics, citations.
evalwright export methods "$@" --into methods.txt

# A figure, also as .png or .pdf. It needs the extra plot.
evalwright runs plot scores "$@" --into scores.svg
