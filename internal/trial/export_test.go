package trial

import "jurat/evidence"

// Folds reports whether a View uses records of this type, and if not, why not.
func Folds(action evidence.ActionType) (folds bool, ignoredBecause string) {
	_, folds = taken[action]
	return folds, ignored[action]
}
