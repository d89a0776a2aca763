# An open issue of this title is continued, so that a failure of every week is one issue.
number=$(gh issue list --repo "$GITHUB_REPOSITORY" --state open --search "in:title \"$TITLE\"" --json number --jq '.[0].number // empty')
if [ -n "$number" ]; then
  gh issue comment "$number" --repo "$GITHUB_REPOSITORY" --body-file issue.md
else
  gh issue create --repo "$GITHUB_REPOSITORY" --title "$TITLE" --body-file issue.md
fi
