package main

import (
	"context"
	"errors"
	"fmt"
)

type trustCmd struct{}

// Help is shown by 'jurat trust --help'.
func (*trustCmd) Help() string {
	return `Prints whose keys are whose, which time-stamping authority and which log are this installation's, and on stderr the
fingerprint of it all. Give the file to those who verify, and the fingerprint over another channel.

    jurat trust > trust.json`
}

// Run prints the trust file.
func (*trustCmd) Run(ctx context.Context, a *app, io stdio) (err error) {
	i, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	trust, err := i.Trust()
	if err != nil {
		return err
	}
	doc, err := trust.Marshal()
	if err != nil {
		return err
	}
	fingerprint, err := trust.Fingerprint()
	if err != nil {
		return err
	}
	if _, err := io.out.Write(doc); err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.err, "jurat: fingerprint %s\n", fingerprint)
	return err
}
