#!/usr/bin/env bash
# Posts the comparison as a comment of the pull request; a comment of an earlier run is replaced.
# Reads GH_TOKEN, REPOSITORY and NUMBER.
set -euo pipefail

mark="<!-- evalwright -->"
body=$(mktemp)
# GitHub takes 65,536 characters.
{ echo "$mark"; head -c 60000 evalwright-action/comment.md; } >"$body"
earlier=$(gh api "repos/$REPOSITORY/issues/$NUMBER/comments" --paginate \
  --jq ".[] | select(.user.type == \"Bot\" and (.body | startswith(\"$mark\"))) | .id" | head -n 1)
if [ -n "$earlier" ]; then
  gh api --method PATCH "repos/$REPOSITORY/issues/comments/$earlier" --field "body=@$body" >/dev/null
else
  gh api --method POST "repos/$REPOSITORY/issues/$NUMBER/comments" --field "body=@$body" >/dev/null
fi
