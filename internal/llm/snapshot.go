package llm

import "regexp"

// snapshotName matches a model's name and the suffix that vendors add for a snapshot: a full or partial date, or a
// revision.
//
//	2024-08-06 20251001 2025-09 09-2025 06-05 0613 2411 001
var snapshotName = regexp.MustCompile(`^([A-Za-z].*?)[-@](` +
	`20\d\d-?` + month + `-?` + day + `|20\d\d-` + month + `|` + month + `-20\d\d|` + month + `-?` + day + `|2\d` + month + `|00\d)$`)

const (
	month = `(?:0[1-9]|1[0-2])`
	day   = `(?:0[1-9]|[12]\d|3[01])`
)

// Snapshot splits the model name that a provider reports: the name without the suffix, and the full name if it is
// that of a snapshot, otherwise "".
func Snapshot(reported string) (model, snapshot string) {
	if m := snapshotName.FindStringSubmatch(reported); m != nil {
		return m[1], reported
	}
	return reported, ""
}

// Answers reports whether the model that a provider reports is the configured model or a snapshot of it. A common
// prefix is not enough: gpt-4o-mini is not gpt-4o.
func Answers(reported, configured string) bool {
	model, _ := Snapshot(reported)
	return configured != "" && (reported == configured || model == configured)
}
