package main

import (
	"errors"
	"fmt"
	"os"

	"jurat/evidence"
	"jurat/verify"
)

// knownLogFlags name what a reader knows of a log from elsewhere.
type knownLogFlags struct {
	Checkpoint  string `help:"A checkpoint of the log that you got elsewhere: is the file's log the same, and whole?" placeholder:"FILE"`
	Consistency string `help:"The proof that your checkpoint and the file's are of one history." placeholder:"FILE"`
	Entries     string `help:"All entries that your checkpoint covers (without one, the file's): is anything of the file's chains missing?" placeholder:"FILE"`
}

// read puts into the options what the flags name. The entries are read while files are verified, and closed by the function
// that it returns.
func (f *knownLogFlags) read(o *verify.Options) (func(), error) {
	if f.Consistency != "" && f.Checkpoint == "" {
		return nil, errors.New("--consistency: a proof between two checkpoints, and --checkpoint does not say which the other one is")
	}
	if f.Checkpoint != "" {
		doc, err := os.ReadFile(f.Checkpoint)
		if err != nil {
			return nil, err
		}
		if o.Checkpoint = string(doc); len(doc) == 0 {
			return nil, fmt.Errorf("%s: an empty file is no checkpoint", f.Checkpoint)
		}
	}
	if f.Consistency != "" {
		doc, err := os.ReadFile(f.Consistency)
		if err != nil {
			return nil, err
		}
		if o.Consistency, err = evidence.ParseConsistency(doc); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Consistency, err)
		}
	}
	if f.Entries == "" {
		return func() {}, nil
	}
	file, err := os.Open(f.Entries)
	if err != nil {
		return nil, err
	}
	o.Entries = file
	return func() { file.Close() }, nil
}
