package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"jurat/internal/plural"
	"jurat/internal/subject"
	"jurat/verify"
)

// recordFlags go with sealed records as the case.
type recordFlags struct {
	readerFlags
	Card string `help:"With sealed records as CASE: the agent's card. Left out, the agent has none." placeholder:"FILE"`
}

// load reads a case: a folder, or a file with sealed records.
func (f *recordFlags) load(ctx context.Context, io stdio, name string) (*subject.Case, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("no such file or folder")
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return f.records(ctx, io, name)
	}
	if f.Trust != "" || f.Card != "" || f.CRL != nil || f.OCSP != nil || f.At != nil {
		return nil, fmt.Errorf("--trust, --at, --crl, --ocsp and --card go with sealed records as CASE, and %s is a folder", name)
	}
	return subject.Load(name)
}

// records verifies records and makes evidence of them.
func (f *recordFlags) records(ctx context.Context, io stdio, name string) (*subject.Case, error) {
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	card, err := f.card()
	if err != nil {
		return nil, err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c, report, err := subject.ReadRecords(watch(ctx, io, file), o, card)
	switch {
	case errors.Is(err, subject.ErrRefuted):
		return nil, hint(fmt.Errorf("%s: %w", name, err), "'jurat verify' says all that is wrong with it; nothing was recorded")
	case errors.Is(err, verify.ErrNotOurs):
		return nil, fmt.Errorf("%s: no folder with a case, and %w", name, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	tellDoubts(io, name, c, report)
	return c, nil
}

// card reads the card, up to the largest size that a card can have.
func (f *recordFlags) card() ([]byte, error) {
	if f.Card == "" {
		return nil, nil
	}
	file, err := os.Open(f.Card)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, subject.MaxFile+1))
}

// tellDoubts prints to stderr the doubts that the jurors are told.
func tellDoubts(io stdio, name string, c *subject.Case, r *verify.Report) {
	v := c.Recorded.Verification
	fmt.Fprintf(io.err, "jurat: %s: %s, proved: %s\n", name, plural.Of(c.Recorded.Records, "record"), strings.Join(v.Proved, ", "))
	for _, d := range v.NotProved {
		fmt.Fprintf(io.err, "jurat: %s: not proved, and the jurors are told: %s: %s\n", name, d.Guarantee, d.Reason)
	}
	if r.Trust == "" {
		fmt.Fprintln(io.err, "jurat: hint: nothing is proved of records without --trust FILE")
	}
}
