#!/usr/bin/env bash
# The step of action.yml that tries the cases. It reads the action's inputs from the environment, and ends with jurat's own exit code.
set -euo pipefail
shopt -s failglob

say() {
	printf '::error title=jurat::%s\n' "$*"
	exit 2
}

reports=${INPUT_REPORTS:-jurat-reports}
data="$RUNNER_TEMP/jurat-data-$RANDOM$RANDOM"
mkdir -p -- "$reports"
[ -z "$(ls -A -- "$reports")" ] || say "the folder for the reports, $reports, is not empty: old reports must not pass for new ones"
mkdir -- "$reports/case-files"
printf 'reports=%s\n' "$reports" >> "$GITHUB_OUTPUT"

cases=()
while IFS= read -r pattern || [ -n "$pattern" ]; do
	pattern=${pattern#"${pattern%%[![:space:]]*}"}
	pattern=${pattern%"${pattern##*[![:space:]]}"}
	[ -n "$pattern" ] || continue
	if [[ $pattern == *[*?[]* ]]; then
		mapfile -t found < <(compgen -G "$pattern" | LC_ALL=C sort)
		[ "${#found[@]}" -gt 0 ] || say "no case matches $pattern"
		cases+=("${found[@]}")
	else
		[ -e "$pattern" ] || say "there is no case $pattern"
		cases+=("$pattern")
	fi
done <<< "${INPUT_CASES:-}"
[ "${#cases[@]}" -gt 0 ] || say 'the input cases names none'

arguments=(--jurors "${INPUT_JURORS:-llm}" --fail-on "unsafe_fail${INPUT_FAIL_ON:+,$INPUT_FAIL_ON}" --out "$reports/case-files"
	--junit "$reports/jurat.xml" --sarif "$reports/jurat.sarif" --markdown "$reports/jurat.md")
[ -z "${INPUT_CONFIG:-}" ] || arguments+=(--config "$INPUT_CONFIG")
[ -z "${INPUT_BASELINE:-}" ] || arguments+=(--baseline "$INPUT_BASELINE")
if [ -n "${ACTION_REPOSITORY:-}" ] && [ -n "${ACTION_REF:-}" ]; then # not if the action is a folder of the workspace
	arguments+=(--sarif-help "${GITHUB_SERVER_URL:-https://github.com}/$ACTION_REPOSITORY/blob/$ACTION_REF/docs/rules.md")
fi
code=0
# What agents say is in the output: the runner takes no commands from it until it reads a word that no agent knows.
stopped=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
printf '::stop-commands::%s\n' "$stopped"
jurat --data "$data" trial "${arguments[@]}" -- "${cases[@]}" 2>&1 || code=$?
printf '\n::%s::\n' "$stopped"
printf 'exit-code=%s\n' "$code" >> "$GITHUB_OUTPUT"
if [ -s "$reports/jurat.md" ]; then
	cat -- "$reports/jurat.md" >> "$GITHUB_STEP_SUMMARY"
elif [ "$code" = 0 ]; then
	say 'there is no report, although jurat says that all is well'
fi
# Case files prove nothing without it. It is absent if no trial began.
if [ -d "$data" ]; then
	jurat --data "$data" trust > "$reports/trust.json"
fi
exit "$code"
