package main

import (
	"fmt"
	"os"

	"jurat/internal/incident"
	"jurat/internal/server"
	"jurat/internal/words"
	"jurat/verify"
)

// langFlag says in which language a statement is written.
type langFlag struct {
	Lang string `help:"The statement's language: ${enum}." default:"en" enum:"en,ja,ru"`
}

type explainCmd struct {
	File string `arg:"" help:"A record file or a case file."`
	readerFlags
	langFlag
	Origin  string  `help:"The public address of the server that keeps the record, such as https://jurat.example: the statement names the record's page there." placeholder:"URL" env:"JURAT_ORIGIN"`
	WhoSaid *string `help:"Instead, find the record that introduced this text." placeholder:"TEXT"`
}

// Run prints the statement.
func (c *explainCmd) Run(io stdio) error {
	if c.Origin != "" {
		var err error
		if c.Origin, err = server.ParseOrigin(c.Origin); err != nil {
			return fmt.Errorf("--origin %w", err)
		}
	}
	doc, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	r, err := verify.File(doc, o)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	records, err := openRecords(doc)
	if err != nil {
		return hint(fmt.Errorf("%s: %w", c.File, err), "the file is damaged, so nothing can be stated from it; 'jurat verify' says more")
	}
	if o.Trust == nil {
		defer fmt.Fprintln(io.err, "jurat: hint: nothing can be stated as proved without --trust FILE")
	}
	p := newPrinter(io.out)
	if c.WhoSaid != nil {
		return p.whoSaid(records, r.Answers(), *c.WhoSaid)
	}
	for _, paragraph := range incident.Site(c.Origin).Statement(records, r, words.Lang(c.Lang)) {
		p.text("", paragraph)
		p.line("")
	}
	apart := new(apartTexts)
	for _, r := range records {
		apart.see(r)
	}
	p.apart("", apart, len(records) > 1)
	p.timeline(records, r)
	return p.err
}
