package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/eutrust"
	"jurat/trustlist"
	"jurat/verify/trust"
)

type trustEUCmd struct {
	OJ    string `name:"oj" placeholder:"FILE" help:"The certificates that the Official Journal publishes, in PEM, or their SHA-256, one a line. Get them from the Journal itself."`
	Lists string `required:"" placeholder:"DIR" help:"The folder of trusted lists, which keeps each version of a list."`
	Fetch bool   `xor:"what" help:"Fetch the lists into the folder first."`
	From  string `placeholder:"URL" help:"With --fetch: where the list of the lists is, if not where the EU publishes it."`

	Territory    []string   `placeholder:"XX" help:"Take services of this territory alone, such as BE. May be given several times."`
	GrantedSince *time.Time `placeholder:"TIME" help:"Take only services that were qualified then or later (RFC 3339). Left out: all that ever were."`
	With         string     `placeholder:"FILE" help:"Print this trust file with what the lists say. What was taken from lists before is replaced."`
	Check        string     `xor:"what" placeholder:"FILE" help:"Print nothing: compare this trust file with the lists."`
}

// Run derives authorities, or checks those that were derived.
func (c *trustEUCmd) Run(ctx context.Context, io stdio) error {
	if c.Check != "" {
		return c.check(io)
	}
	if c.OJ == "" {
		return errors.New("--oj: no file has the certificates of the Official Journal")
	}
	file := &trust.Trust{Format: trust.Format, Keys: []trust.Key{}, Authorities: []trust.Authority{}, Logs: []string{}}
	if c.With != "" {
		var err error
		if file, err = readTrust("--with", c.With); err != nil {
			return err
		}
	}
	journal, err := readJournal(c.OJ)
	if err != nil {
		return err
	}
	if c.Fetch {
		if err := c.fetch(ctx, io, journal); err != nil {
			return err
		}
	}
	options := eutrust.Options{Journal: journal, Territories: c.Territory}
	if c.GrantedSince != nil {
		options.GrantedSince = c.GrantedSince.UTC()
	}
	derived, err := c.derive(options, io)
	if err != nil {
		return err
	}
	derived.Into(file)
	return printTrust(file, io)
}

// derive reads the folder, and says on stderr what was left out and which lists are out of date.
func (c *trustEUCmd) derive(options eutrust.Options, io stdio) (*eutrust.Derived, error) {
	files, err := eutrust.Read(os.DirFS(c.Lists))
	if err != nil {
		return nil, err
	}
	derived, err := files.Derive(options)
	if err != nil {
		return nil, err
	}
	derived.Notes = append(derived.Notes, derived.Overdue(time.Now())...)
	for _, note := range derived.Notes {
		if _, err := fmt.Fprintf(io.err, "jurat: %s\n", oneLine(errors.New(note))); err != nil {
			return nil, err
		}
	}
	return derived, nil
}

// check derives again what a trust file says that it was derived from.
func (c *trustEUCmd) check(io stdio) error {
	file, err := readTrust("--check", c.Check)
	if err != nil {
		return err
	}
	if file.Lists == nil {
		return fmt.Errorf("%s: nothing in it was taken from trusted lists", c.Check)
	}
	options := eutrust.Options{Territories: file.Lists.Territories, GrantedSince: file.Lists.GrantedSince}
	for _, digest := range file.Lists.Journal {
		options.Journal = append(options.Journal, digest)
	}
	if err := c.sameJournal(file.Lists.Journal); err != nil {
		return err
	}
	derived, err := c.derive(options, io)
	if err != nil {
		return err
	}
	if differences := derived.Check(file); len(differences) > 0 {
		return listsDiffer(io, c.Check, differences)
	}
	return io.line("%s: the lists say the same", c.Check)
}

func listsDiffer(io stdio, file string, differences []string) error {
	for _, d := range differences {
		if _, err := fmt.Fprintf(io.err, "jurat: %s: %s\n", file, oneLine(errors.New(d))); err != nil {
			return err
		}
	}
	return exitCode(exitBad)
}

// sameJournal compares the certificates that the trust file began with to those that the reader has, if any.
func (c *trustEUCmd) sameJournal(said []evidence.Digest) error {
	if c.OJ == "" {
		return nil
	}
	journal, err := readJournal(c.OJ)
	if err != nil {
		return err
	}
	for _, digest := range said {
		if !slices.Contains(journal, [sha256.Size]byte(digest)) {
			return fmt.Errorf("%s begins with a certificate that is not in %s: %s", c.Check, c.OJ, digest)
		}
	}
	return nil
}

func readJournal(name string) (trustlist.Signers, error) {
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	journal, err := eutrust.Journal(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return journal, nil
}

// fetch fetches lists into the folder.
func (c *trustEUCmd) fetch(ctx context.Context, io stdio, journal [][sha256.Size]byte) error {
	fetcher := eutrust.Fetcher{Journal: journal, Folder: c.Lists, ListOfLists: c.From, Territories: c.Territory,
		Note: func(text string) { fmt.Fprintf(io.err, "jurat: %s\n", strings.ToValidUTF8(text, "?")) }}
	return fetcher.Fetch(ctx)
}
