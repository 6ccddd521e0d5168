package verify

// IsModel reports whether a model that a provider reported is the one that was asked for, as the guarantee of the configuration has it.
func IsModel(reported, asked string) bool { return isModel(reported, asked) }
