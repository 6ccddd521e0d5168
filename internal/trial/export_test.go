package trial

import "jurat/evidence"

// Folds reports whether a View takes in records of this type, and why it does not.
func Folds(action evidence.ActionType) (folds bool, ignoredBecause string) {
	_, folds = taken[action]
	return folds, ignored[action]
}
