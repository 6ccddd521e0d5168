//go:build !linux && !darwin

package sqlite

// freeBytes is unknown on this system: a full disk shows when a record does not fit.
func freeBytes(string) (free uint64, known bool, err error) { return 0, false, nil }

// writable returns nil: this system tells only when a write fails.
func writable(string) error { return nil }
