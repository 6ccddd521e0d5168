package main

import "jurat/internal/names"

// A newName is the name of a person or an agent that a command line brings in. One that would deceive readers is refused before anything is
// opened or made.
type newName string

// UnmarshalText reads a name.
func (n *newName) UnmarshalText(text []byte) error {
	if err := names.Check(string(text)); err != nil {
		return err
	}
	*n = newName(text)
	return nil
}
