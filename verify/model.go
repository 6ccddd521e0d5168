package verify

// IsModel reports whether the model that a provider reported is the model that was asked for: the same name or a
// snapshot of it.
func IsModel(reported, asked string) bool { return isModel(reported, asked) }
