package main

import (
	"errors"
	"time"

	"jurat/verify"
)

// readerFlags are what whoever verifies brings along, since nothing of it may come from what is verified.
type readerFlags struct {
	Trust string     `help:"Your trust file. Without one nothing can be proved." placeholder:"FILE"`
	At    *time.Time `help:"The moment of checking (RFC 3339), by which it is judged what is still to come and what is out of date. Left out: now." placeholder:"TIME"`
}

func (f *readerFlags) options() (verify.Options, error) {
	o := verify.Options{At: time.Now()}
	if f.At != nil {
		if o.At = *f.At; o.At.IsZero() {
			return o, errors.New("--at: nothing was checked before the year 1")
		}
	}
	var err error
	o.Trust, err = readTrust(f.Trust)
	return o, err
}
