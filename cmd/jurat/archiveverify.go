package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/archive"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

type archiveVerifyCmd struct {
	Files []string `arg:"" optional:"" name:"file" help:"Archive files in any place. Without one: all files of this log."`
	readerFlags
	JSON bool `name:"json" help:"Print reports as JSON, one after the other."`
}

// Help is shown by 'jurat archive verify --help'.
func (*archiveVerifyCmd) Help() string {
	return `Reads files from end to end on all cores and names each damage with its place. It checks every block, record, signature and time stamp, and
that the log's key signed that these are its records, in this order. If you name a file, it needs only your trust file and no
installation. Without a file it verifies the archives that this log's database names, by --trust or by the installation's own keys. It
compares them with the database, and records that are missing with the log's acts of expiry. A file by itself contains no such act, so it
cannot prove that a missing record was deleted rightly.

    jurat archive verify --trust trust.json 000000000000-000000065536-5b1c0ffee123.jurat-archive

Exit code 0: all is proved. 1: something is damaged or refuted. 3: something is not proved. 2: a file could not be read.`
}

// maxDetails is how many reasons a report has.
const maxDetails = 20

// An archiveReport says what came of verifying a file.
type archiveReport struct {
	File      string          `json:"file"`
	Digest    evidence.Digest `json:"digest,omitzero"`
	Origin    string          `json:"origin"`
	From      int64           `json:"from"`
	To        int64           `json:"to"`
	Records   int64           `json:"records"`          // that are there
	Expired   int64           `json:"expired"`          // of which the hashes are left
	Damages   int64           `json:"damages"`          // places in the file that are not what they were
	Refuted   int64           `json:"refuted"`          // records, or the order of all
	NotProved int64           `json:"not_proved"`       // likewise, and records that are not there by no act that is known
	Skewed    int64           `json:"skewed,omitempty"` // records that claim a later time than what is proved: a clock was wrong, and nothing is damaged
	Details   []string        `json:"details"`          // the first of these
	Outcome   verify.Status   `json:"outcome"`
}

// Run verifies.
func (c *archiveVerifyCmd) Run(ctx context.Context, a *app, io stdio) error {
	if len(c.Files) > 0 {
		o, err := c.options()
		if err != nil {
			return err
		}
		if o.Trust == nil {
			fmt.Fprintln(io.err, "jurat: hint: nothing can be proved without --trust FILE; the operator who keeps the log writes one with 'jurat trust'")
		}
		return c.all(ctx, io, c.Files, o, nil, nil)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		o, err := c.options()
		if err != nil {
			return err
		}
		if o.Trust == nil {
			if o.Trust, err = i.Trust(ctx); err != nil {
				return err
			}
		}
		list, err := i.Ledger.Archives(ctx)
		if err != nil {
			return err
		}
		var files []string
		for _, f := range list {
			files = append(files, i.Archivist.Folder.Path(f.File))
		}
		if len(files) == 0 {
			return io.line("there are no archives")
		}
		book, err := actsOf(ctx, i, o)
		if err != nil {
			return err
		}
		return c.all(ctx, io, files, o, book, func(n int, f *archive.File) error {
			if f.Digest() != list[n].Digest {
				return fmt.Errorf("its digest is %v, the log's database says %v: it is another file", f.Digest(), list[n].Digest)
			}
			return i.Archivist.CheckRoots(ctx, f)
		})
	})
}

// actsOf reads what the log says on keeping records. Nothing is explained by acts of which one is not proved.
func actsOf(ctx context.Context, i *installation.Installation, o verify.Options) (*archive.Book, error) {
	acts, err := i.Ledger.Chain(ctx, operator.RetentionChain)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return nil, err
	}
	for _, act := range acts {
		if verify.Sealed(act, o).Status != verify.Proved {
			return nil, nil
		}
	}
	return archive.Read(acts)
}

// all verifies files, and returns the worst that came of it. book is what the log says on keeping records, or nil; belongs says what
// stands against a file's being the log's.
func (c *archiveVerifyCmd) all(ctx context.Context, io stdio, files []string, o verify.Options, book *archive.Book,
	belongs func(n int, f *archive.File) error) error {
	o.Memory = timestamp.NewMemory()
	worst := exitCode(0)
	for n, file := range files {
		v := &archiveVerification{report: &archiveReport{File: file, Details: []string{}}, options: o, book: book, byAct: map[string]int64{}}
		err := archive.OpenPath(file, func(f *archive.File) error {
			v.begin(f)
			if belongs != nil {
				if err := belongs(n, f); err != nil {
					v.damage("%v", err)
				}
			}
			return v.check(ctx, f, progress(io, "records verified"))
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, ledger.ErrArchive) {
			v.damage("%v", err)
			err = nil
		}
		if err != nil {
			return err
		}
		code, err := c.tell(io, v.end())
		if err != nil {
			return err
		}
		if severity(code) > severity(worst) {
			worst = code
		}
	}
	if worst == 0 {
		return nil
	}
	return worst
}

func (c *archiveVerifyCmd) tell(io stdio, r *archiveReport) (exitCode, error) {
	code := map[verify.Status]exitCode{verify.Proved: 0, verify.NotProved: exitUndecided, verify.Refuted: exitBad}[r.Outcome]
	if c.JSON {
		return code, io.json(r)
	}
	p := newPrinter(io.out)
	p.line("%s: %s", r.File, r.Outcome)
	p.line("  records %d to %d of the log %s: %d are there, %d have expired", r.From, r.To-1, r.Origin, r.Records, r.Expired)
	if r.Damages+r.Refuted+r.NotProved > 0 {
		p.line("  damages: %d; refuted: %d; not proved: %d", r.Damages, r.Refuted, r.NotProved)
	}
	if r.Skewed > 0 {
		p.line("  %d records claim a later time than what is proved: a clock was wrong when they were sealed, and they are whole", r.Skewed)
	}
	for _, d := range r.Details {
		p.line("  %s", d)
	}
	return code, p.err
}

// archiveVerification is one file under verification.
type archiveVerification struct {
	options verify.Options
	book    *archive.Book // nil: no acts are known

	mu          sync.Mutex // guards the fields below
	report      *archiveReport
	unexplained int64            // records that are not there, by no act that is known
	byAct       map[string]int64 // how many are not there
}

func (v *archiveVerification) detail(format string, args ...any) {
	if len(v.report.Details) < maxDetails {
		v.report.Details = append(v.report.Details, fmt.Sprintf(format, args...))
	}
}

func (v *archiveVerification) damage(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Damages++
	v.detail(format, args...)
}

// begin notes what the file says of itself, and asks whether the log's key has signed that it holds these records.
func (v *archiveVerification) begin(f *archive.File) {
	r := v.report
	r.Digest, r.Origin = f.Digest(), f.Origin()
	r.From, r.To = f.Range()
	var logs []string
	if v.options.Trust != nil {
		logs = v.options.Trust.Logs
	}
	switch err := f.CheckProofBy(logs); {
	case errors.Is(err, archive.ErrUntrusted):
		r.NotProved++
		v.detail("order: %v", err)
	case err != nil:
		r.Refuted++
		v.detail("order: %v", err)
	default:
		v.witnessed(f.Checkpoint())
	}
}

// witnessed asks whether as many have cosigned the file's checkpoint as the reader demands.
func (v *archiveVerification) witnessed(checkpoint string) {
	switch _, err := v.options.Trust.Witnessed(checkpoint, v.options.At); {
	case errors.Is(err, trust.ErrNotWitnessed):
		v.report.NotProved++
		v.detail("order: %v", err)
	case err != nil:
		v.report.Refuted++
		v.detail("order: %v", err)
	}
}

func (v *archiveVerification) check(ctx context.Context, f *archive.File, told func(done, total int64)) error {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // of each record nothing is kept: what is thrown away may lie for a while
	_, err := f.Check(ctx, archive.Examination{Progress: told, Found: func(d *archive.Damage) { v.damage("%v", d) },
		Each: func(row *storage.Row, record *evidence.Record) error {
			v.record(row, record)
			return nil
		}})
	return err
}

// record verifies one record alone. Its place is proved for the whole file.
func (v *archiveVerification) record(row *storage.Row, record *evidence.Record) {
	worst := verify.Finding{Status: verify.Proved}
	if record != nil {
		worst = verify.Sealed(record, v.options)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case record == nil:
		v.expired(row)
		return
	case worst.Status == verify.Refuted:
		v.report.Refuted++
	case worst.Status != verify.Proved:
		v.report.NotProved++
	case worst.Rule == verify.Skew:
		v.report.Skewed++
	}
	v.report.Records++
	if worst.Status != verify.Proved {
		v.detail("record %d (%s): %s %s: %s", row.Index, row.RecordID, worst.Guarantee, worst.Status, worst.Reason)
	}
}

// expired holds a record that is not there against the acts.
func (v *archiveVerification) expired(row *storage.Row) {
	v.report.Expired++
	if v.book == nil || v.book.Explains(row.Index, row.ExpiredBy) != nil {
		v.unexplained++
		return
	}
	v.byAct[row.ExpiredBy]++
}

// unexplain counts what more is not there than each act deleted.
func (v *archiveVerification) unexplain() {
	for act, gone := range v.byAct {
		i := slices.IndexFunc(v.book.Expiries, func(e archive.Expiry) bool { return e.ID == act })
		v.unexplained += max(0, gone-v.book.Expiries[i].Count)
	}
	if v.unexplained == 0 {
		return
	}
	v.report.NotProved += v.unexplained
	reason := "no proved act of the log explains it"
	if v.book == nil {
		reason = "the acts of the log that would explain it were not at hand, or are not proved; 'jurat log fsck' there checks them"
	}
	v.report.Details = append(v.report.Details, fmt.Sprintf("expired: %d records are not there, and %s", v.unexplained, reason))
}

func (v *archiveVerification) end() *archiveReport {
	r := v.report
	v.unexplain()
	switch {
	case r.Damages+r.Refuted > 0:
		r.Outcome = verify.Refuted
	case r.NotProved > 0:
		r.Outcome = verify.NotProved
	default:
		r.Outcome = verify.Proved
	}
	slices.Sort(r.Details) // found by many at once, in no order
	return r
}

type archiveReadCmd struct {
	Index int64  `arg:"" help:"The record's index in the log."`
	File  string `arg:"" help:"The archive file, in any place."`
}

// Help is shown by 'jurat archive read --help'.
func (*archiveReadCmd) Help() string {
	return `Prints one record of a file as it was archived. It needs no installation. To get the record from the log itself, with the proof of
its place and later time stamps, use 'jurat log prove' with the record's id.`
}

// Run prints a record.
func (c *archiveReadCmd) Run(io stdio) error {
	return archive.OpenPath(c.File, func(f *archive.File) error {
		r, err := f.Record(c.Index)
		if err != nil {
			return err
		}
		return io.print(r)
	})
}
