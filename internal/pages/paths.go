package pages

import (
	"net/url"

	"jurat/jury"
)

// Paths of pages. Identifiers in them come from records, and so from anybody.

func submissionPath(id string) string { return "/submissions/" + url.PathEscape(id) }

func recordPath(id string) string { return "/records/" + url.PathEscape(id) }

func chainPath(id string) string { return "/chains/" + url.PathEscape(id) }

// knownAxis reports whether an axis has a name of this program's own in every language.
func knownAxis(id string) bool {
	for _, a := range jury.DefaultRubric() {
		if a.ID == id {
			return true
		}
	}
	return false
}
