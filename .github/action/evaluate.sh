#!/usr/bin/env bash
# Runs the suite of this branch and that of the base branch, and compares them.
# Reads SUITE, RULES, GATE, OPTIONS, BASE_REF, LINK and GitHub's GITHUB_OUTPUT and GITHUB_STEP_SUMMARY.
set -euo pipefail

work=evalwright-action
mkdir -p "$work"
runs="$PWD/$work/runs"
home="$PWD/.evalwright"
# Missing answers end a run with 1; the comparison says what they mean.
run_suite() {
  local code=0
  # shellcheck disable=SC2086 # options are words
  evalwright run --config "$SUITE" --name "$1" --out "$runs" --home "$home" --replace --quiet ${OPTIONS:-} || code=$?
  [ "$code" -le 1 ] || exit "$code"
}

run_suite after
if [ -n "${BASE_REF:-}" ]; then
  git fetch --quiet --depth 1 origin "$BASE_REF"
  base=$(mktemp -d)
  git worktree add --quiet --detach "$base" FETCH_HEAD
  if [ -f "$base/$SUITE" ]; then
    (cd "$base" && run_suite before)
  fi
  git worktree remove --force "$base"
fi

page=""
failed=false
if compgen -G "$runs/before*" >/dev/null; then
  arguments=(before after --out "$runs" --gate "${GATE:-shown}" --markdown "$work/comment.md")
  rules=()
  while IFS= read -r rule; do
    [ -z "$rule" ] || rules+=(--fail-if "$rule")
  done <<<"${RULES:-}"
  [ "${#rules[@]}" -gt 0 ] || arguments=(before after --out "$runs" --markdown "$work/comment.md")
  code=0
  evalwright runs changes "${arguments[@]}" "${rules[@]}" ${LINK:+--link "$LINK"} || code=$?
  [ "$code" -le 1 ] || exit "$code"
  [ "$code" -eq 0 ] || failed=true
else
  { echo "## Evaluation of this change"; echo; echo "The base branch has no suite to compare with."; } >"$work/comment.md"
fi
page="$work/answers.html"
evalwright view "$runs"/* --html "$page"

cat "$work/comment.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
{ echo "failed=$failed"; echo "page=$page"; } >>"${GITHUB_OUTPUT:-/dev/null}"
