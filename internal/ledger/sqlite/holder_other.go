//go:build !linux

package sqlite

// holder is not known on this system.
func (s *Store) holder() string { return "" }
