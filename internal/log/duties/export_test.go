package duties

import "testing"

// Small makes less be verified at once, until the test ends.
func Small(t *testing.T, records, sources int) {
	before, sourcesBefore := together, mostSources
	together, mostSources = records, sources
	t.Cleanup(func() { together, mostSources = before, sourcesBefore })
}
