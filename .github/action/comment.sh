#!/usr/bin/env bash
# Posts the comparison as a comment of the pull request; a comment of an earlier run is replaced,
# also where the evaluation stopped, so that no earlier verdict stands for this change. Reads GH_TOKEN, REPOSITORY and NUMBER.
set -euo pipefail

mark="<!-- evalwright -->"
body=$(mktemp)
comment=evalwright-action/comment.md
{
  echo "$mark"
  if [ -f "$comment" ]; then
    # GitHub takes 65,536 characters.
    head -c 60000 "$comment"
  else
    echo "## Evaluation of this change: stopped"
    echo
    echo "It stopped before anything was evaluated, or was cancelled: the job's log says why."
  fi
} >"$body"
earlier=$(gh api "repos/$REPOSITORY/issues/$NUMBER/comments" --paginate \
  --jq ".[] | select(.user.type == \"Bot\" and (.body | startswith(\"$mark\"))) | .id" | head -n 1)
if [ -n "$earlier" ]; then
  gh api --method PATCH "repos/$REPOSITORY/issues/comments/$earlier" --field "body=@$body" >/dev/null
else
  gh api --method POST "repos/$REPOSITORY/issues/$NUMBER/comments" --field "body=@$body" >/dev/null
fi
