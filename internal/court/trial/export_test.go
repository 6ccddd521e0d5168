package trial

import "jurat/evidence"

// Folds reports whether a View uses records of this type.
func Folds(action evidence.ActionType) bool { return taken[action] != nil }
