package observe

import (
	"maps"
	"slices"
)

// Settings and ClosedWords are what the page on readings lists.
func Settings() []string    { return slices.Sorted(maps.Keys(settings)) }
func ClosedWords() []string { return slices.Sorted(maps.Keys(closedWords)) }
