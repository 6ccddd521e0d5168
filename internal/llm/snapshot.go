package llm

import "regexp"

// snapshotName is a model's name with what vendors put behind it for a snapshot: a date, whole or in part, or a revision.
//
//	2024-08-06 20251001 2025-09 09-2025 06-05 0613 2411 001
var snapshotName = regexp.MustCompile(`^([A-Za-z].*?)[-@](` +
	`20\d\d-?` + month + `-?` + day + `|20\d\d-` + month + `|` + month + `-20\d\d|` + month + `-?` + day + `|2\d` + month + `|00\d)$`)

const (
	month = `(?:0[1-9]|1[0-2])`
	day   = `(?:0[1-9]|[12]\d|3[01])`
)

// Snapshot takes apart what a provider reports of what answered: the name of the model, and the whole name if it is that of a
// snapshot of it; otherwise "".
func Snapshot(reported string) (model, snapshot string) {
	if m := snapshotName.FindStringSubmatch(reported); m != nil {
		return m[1], reported
	}
	return reported, ""
}

// Answers says whether what a provider reports is the model that was configured, or a snapshot of it. That one name begins with
// the other says nothing: gpt-4o-mini is not gpt-4o.
func Answers(reported, configured string) bool {
	model, _ := Snapshot(reported)
	return configured != "" && (reported == configured || model == configured)
}
