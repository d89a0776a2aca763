#!/usr/bin/env bash
# Runs the suite of this branch and that of the base branch, and compares them.
# Reads SUITE, RULES, GATE, OPTIONS, BASE_REF, LINK and GitHub's GITHUB_OUTPUT and GITHUB_STEP_SUMMARY.
# Whatever happens, evalwright-action/comment.md and the summary say it.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work="$PWD/evalwright-action"
runs="$work/runs"
mkdir -p "$work"
# A runner that keeps its folder has runs and a verdict of an earlier commit.
rm -rf "$runs" "$work/comment.md"
home="$PWD/.evalwright"
errors="$work/errors.txt"
: >"$errors"
stage="starting"

finish() {
  local code=$?
  if [ "$code" -ne 0 ]; then
    python "$scripts/failure.py" "$stage" "$errors" "$work/comment.md" || code=2
  fi
  [ ! -f "$work/comment.md" ] || cat "$work/comment.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
  exit "$code"
}
trap finish EXIT

# Runs a command whose errors go to the log and, where it stops the evaluation, into the comment.
# Code 1 means missing answers or a gate that is not met: the comparison says which.
attempt() {
  local code=0
  "$@" 2>"$errors" || code=$?
  cat "$errors" >&2
  [ "$code" -le 1 ] || exit "$code"
  return "$code"
}

# Sets the array `options`.
split_options() {
  attempt python "$scripts/split_options.py" "$@" >"$work/options"
  options=()
  while IFS= read -r -d '' word; do
    options+=("$word")
  done <"$work/options"
}

# What a run prints is said again, and compared, by the comment.
evaluate() {
  evalwright run --config "$SUITE" --name "$1" --out "$runs" --home "$home" --replace --quiet \
    "${options[@]}" >/dev/null
}

run_suite() {
  split_options
  local code=0
  evaluate "$1" 2>"$errors" || code=$?
  # The suite of one side alone may need the permission that --trust-file gives.
  if [ "$code" -eq 2 ] && grep -q "proposes nothing that needs your permission" "$errors"; then
    split_options --without-trust-file
    attempt evaluate "$1" || true
    return
  fi
  cat "$errors" >&2
  [ "$code" -le 1 ] || exit "$code"
}

stage="reading the input 'options'"
split_options

stage="evaluating this branch"
run_suite after
has_base=false
if [ -n "${BASE_REF:-}" ]; then
  stage="fetching the base branch, $BASE_REF"
  attempt git fetch --quiet --depth 1 origin "$BASE_REF"
  base=$(mktemp -d)
  attempt git worktree add --quiet --detach "$base" FETCH_HEAD
  if [ -f "$base/$SUITE" ]; then
    has_base=true
    stage="evaluating the base branch, $BASE_REF, with its own suite and files"
    cd "$base"
    run_suite before
    cd "$OLDPWD"
  fi
  git worktree remove --force "$base"
fi

stage="comparing both branches"
arguments=(before after --out "$runs" --markdown "$work/comment.md")
rules=()
while IFS= read -r rule; do
  [ -z "$rule" ] || rules+=(--fail-if "$rule")
done <<<"${RULES:-}"
[ "${#rules[@]}" -eq 0 ] || rules+=(--gate "${GATE:-shown}")
[ "$has_base" = true ] || arguments+=(--before-optional)
failed=false
attempt evalwright runs changes "${arguments[@]}" "${rules[@]}" ${LINK:+--link "$LINK"} || failed=true

stage="writing the page with every answer"
page="evalwright-action/answers.html"
attempt evalwright view "$runs"/* --html "$page"

{ echo "failed=$failed"; echo "page=$page"; } >>"${GITHUB_OUTPUT:-/dev/null}"
