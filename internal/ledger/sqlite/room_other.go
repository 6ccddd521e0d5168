//go:build !linux && !darwin

package sqlite

// freeBytes is not known on this system: that there is no room shows when a record does not fit.
func freeBytes(string) (free uint64, known bool, err error) { return 0, false, nil }

// writable is not known on this system before it is tried.
func writable(string) error { return nil }
