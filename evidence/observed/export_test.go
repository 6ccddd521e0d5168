package observed

import (
	"maps"
	"slices"
)

// Settings and ClosedWords are what docs/facts.md lists.
func Settings() []string    { return slices.Sorted(maps.Keys(settings)) }
func ClosedWords() []string { return slices.Sorted(maps.Keys(closedWords)) }
