package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"jurat/internal/archive"
	"jurat/verify"
)

type verifyCmd struct {
	Files []string `arg:"" name:"file" help:"Record files, case files, envelopes around them (DSSE), checkpoints, evidence packages (.aep), and archive files (.jurat-archive)."`
	readerFlags
	Before *time.Time `help:"Also ask: did it exist before this time (RFC 3339)?"`
	JSON   bool       `name:"json" help:"Print reports as JSON, one after the other."`

	knownLogFlags
}

// Help is shown by 'jurat verify --help'.
func (*verifyCmd) Help() string {
	return `Answers, for each guarantee, whether it is proved, not proved or refuted, and why. It needs no network and no
installation: only the files, and the trust file that you got from somebody you believe ('jurat trust' writes one; compare
its fingerprint over another channel). Nothing is ever trusted because the file under verification says so.

Exit code 0: all is proved but, where the operator keeps the keys, non-repudiation. 1: something is refuted. 3: something
is not proved. 2: a file could not be read.

An evidence package (.aep) of the Aletheia AI project is checked as far as it can be: it passes if its text, its key and its
time are proved, and the report says that it is in no log and what in it was never signed. A DSSE envelope that 'jurat export'
wrote is checked with the records in it.

    jurat verify --trust trust.json case.jurat

An archive file is verified from end to end, as 'jurat archive verify' does it.

A trust file can also name CAs that certify actors' keys, and ask about the revocation of an authority's certificates. Then
their revocation lists have to be given, and be fresh at the moment of checking. To check again later what was checked once,
keep the lists and give that moment:

    jurat verify --trust trust.json --crl root.crl --crl issuing.crl --at 2026-02-01T00:00:00Z case.jurat

A file cannot show what was cut off its end, nor whether the log shows others another history. Who keeps a checkpoint of the
log, got earlier or later than the file ('jurat log checkpoint'), can ask: --checkpoint holds the file's log against it, by
the proof in --consistency ('jurat log consistency') where the two differ in size. With the log's --entries up to that
checkpoint ('jurat log entries'), it also shows whether records of the file's chains are missing. A checkpoint can itself be
the file:

    jurat verify --trust trust.json --checkpoint old.checkpoint --consistency proof.json new.checkpoint`
}

// Run verifies each file. Something refuted is worse than a file that cannot be read, and that than a missing proof.
func (c *verifyCmd) Run(ctx context.Context, io stdio) error {
	b := c.bring()
	defer b.close()
	b.bringKnownLog(&c.knownLogFlags)
	b.Before = c.Before
	o, err := b.options()
	if err != nil {
		return err
	}
	worst := exitCode(0)
	for _, file := range c.Files {
		code, err := c.one(ctx, io, file, o)
		if ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
		if err != nil {
			code = exitCode(report(io, err))
		}
		if severity(code) > severity(worst) {
			worst = code
		}
	}
	if o.Trust == nil && worst != exitCannot {
		fmt.Fprintln(io.err, "jurat: hint: without --trust FILE nothing can be proved; whoever made the records can give you one with 'jurat trust'")
	}
	if worst == 0 {
		return nil
	}
	return worst
}

// severity orders exit codes.
func severity(code exitCode) int {
	return map[exitCode]int{0: 0, exitUndecided: 1, exitCannot: 2, exitBad: 3}[code]
}

func (c *verifyCmd) one(ctx context.Context, io stdio, name string, o verify.Options) (exitCode, error) {
	if is, err := archive.Is(name); err != nil || is {
		return c.archive(ctx, io, name, o, err)
	}
	file, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	apart := new(apartTexts)
	o.Each = apart.see
	r, err := verify.Read(watch(ctx, io, file), o)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if err := c.print(io, name, r, apart); err != nil {
		return 0, err
	}
	switch r.Outcome {
	case verify.Proved:
		return 0, nil
	case verify.Refuted:
		return exitBad, nil
	}
	return exitUndecided, nil
}

// archive verifies an archive file, unless that cannot be told: what is asked of other files beside that would not be answered.
func (c *verifyCmd) archive(ctx context.Context, io stdio, name string, o verify.Options, err error) (exitCode, error) {
	if err == nil && (c.Before != nil || c.knownLogFlags != (knownLogFlags{})) {
		err = hint(fmt.Errorf("%s: --before, --checkpoint, --consistency and --entries ask about records, and this is an archive file of many", name),
			"'jurat archive read INDEX FILE' prints one of its records, about which they can ask")
	}
	if err != nil {
		return 0, err
	}
	verifies := archiveVerifyCmd{readerFlags: c.readerFlags, JSON: c.JSON}
	err = verifies.all(ctx, io, []string{name}, o, nil, nil)
	var code exitCode
	if errors.As(err, &code) {
		return code, nil
	}
	return 0, err
}

func (c *verifyCmd) print(io stdio, file string, r *verify.Report, apart *apartTexts) error {
	if c.JSON {
		doc, err := r.Marshal()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(io.out, "%s\n", doc)
		return err
	}
	p := newPage(io.out)
	p.line("%s: %s", p.bold(file), describe(r))
	if r.Log != nil && r.Kind != verify.OneCheckpoint {
		p.text("  ", fmt.Sprintf("cut from the log %s at %d entries", r.Log.Origin, r.Log.Size))
	}
	for _, f := range r.Guarantees {
		p.finding("  ", f, alike(r, f))
		p.others(r, f)
	}
	if r.Records > 0 { // otherwise it did not open
		p.apart("  ", apart, r.Records > 1)
	}
	p.text("  ", "None of this proves "+strings.Join(r.NotShown, ", or ")+".")
	p.line("  %s", p.statusIn(r.Outcome, strings.ToUpper(string(r.Outcome))))
	return p.err
}

// finding prints one answer, and how many more records it is the answer for.
func (p *page) finding(indent string, f verify.Finding, more int) {
	text := f.Reason
	if f.Record != "" {
		text = fmt.Sprintf("record %s: %s", f.Record, f.Reason)
	}
	if more > 0 {
		text += fmt.Sprintf(" (so for %d more; --json lists them)", more)
	}
	const column = 28 // after status and guarantee
	rows := wrap(inert(text), max(p.width-len(indent)-column, 40))
	for i, row := range rows {
		if i == 0 {
			p.line("%s%s %-16s %s", indent, p.status(f.Status), strings.ReplaceAll(string(f.Guarantee), "_", "-"), row)
			continue
		}
		p.line("%s%*s%s", indent, column, "", row)
	}
}

// others prints what else was found about a guarantee: the first of each kind.
func (p *page) others(r *verify.Report, main verify.Finding) {
	seen := map[string]bool{kindOf(main): true}
	for _, f := range r.Details {
		if f.Guarantee != main.Guarantee || seen[kindOf(f)] {
			continue
		}
		seen[kindOf(f)] = true
		p.finding("    ", f, alike(r, f))
	}
}

// kindOf is what findings have in common that say the same of different records.
func kindOf(f verify.Finding) string {
	return string(f.Guarantee) + "|" + string(f.Status) + "|" + f.Rule
}

// alike counts the other findings that say the same.
func alike(r *verify.Report, f verify.Finding) int {
	n := 0
	for _, other := range r.Details {
		if kindOf(other) == kindOf(f) && other != f {
			n++
		}
	}
	return n
}

func describe(r *verify.Report) string {
	if r.Kind == verify.Package {
		return "an evidence package of the Aletheia AI project"
	}
	if r.Kind == verify.Trial {
		return fmt.Sprintf("the case file of a trial, %d records", r.Records)
	}
	if r.Kind == verify.ManyRecords {
		return fmt.Sprintf("a bundle of %d records", r.Records)
	}
	if r.Kind == verify.OneCheckpoint {
		return "a checkpoint of a log"
	}
	return "one record"
}
