//go:build !linux

package sqlite

// holder returns "": this system does not tell who holds a lock.
func (s *Store) holder() string { return "" }
