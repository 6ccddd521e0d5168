package storage

import "fmt"

// Known returns an error if the tables of a log have another version than the one that this program knows.
func Known(has, want string) error {
	if has == want {
		return nil
	}
	return fmt.Errorf("the tables have version %q, and this program knows version %s alone: no program with another was released; the log of one from before is read by that of commit 4f6f114d", has, want)
}
