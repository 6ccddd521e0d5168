package main

import (
	"fmt"
	"os"

	"jurat/internal/incident"
	"jurat/verify"
)

type explainCmd struct {
	File  string `arg:"" help:"A record file or a case file."`
	Trust string `help:"Your trust file: only what it lets jurat prove is stated as a fact."`
	Lang  string `help:"The language: en." default:"en" enum:"en"`
}

// Help is shown by 'jurat explain --help'.
func (*explainCmd) Help() string {
	return `Writes the paragraph that answers "what happened?": who said it, with which model and configuration, when, how it was
sealed, and what is not proved by all that. Facts come from verified fields alone; what is not proved is said to be so.

    jurat explain record.json --trust trust.json`
}

// Run prints the statement.
func (c *explainCmd) Run(io stdio) error {
	doc, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	trust, err := readTrust(c.Trust)
	if err != nil {
		return err
	}
	r, err := verify.File(doc, verify.Options{Trust: trust})
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	records, err := openRecords(doc)
	if err != nil {
		return hint(fmt.Errorf("%s: %w", c.File, err), "the file is damaged, so nothing can be stated from it; 'jurat verify' says more")
	}
	p := newPage(io.out)
	for _, paragraph := range incident.Statement(records, r) {
		p.text("", paragraph)
		p.line("")
	}
	if trust == nil {
		fmt.Fprintln(io.err, "jurat: hint: without --trust FILE nothing can be stated as proved")
	}
	return p.err
}
