package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/court/trial"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/plural"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/lock"
)

type logCmd struct {
	Checkpoint logCheckpointCmd `cmd:"" help:"Print the signed checkpoint of the log, a proof that it has only grown since another, or its entries."`
	Prove      logProveCmd      `cmd:"" help:"Print a record, a chain or a trial, with the proof of its place in the log."`
	Monitor    logMonitorCmd    `cmd:"" help:"Watch another operator's log: has it only grown?"`
	Witness    logWitnessCmd    `cmd:"" help:"List those who cosign this log's checkpoints; add, remove or ask them."`
	Stamp      logStampCmd      `cmd:"" help:"Ask authorities for the time stamps that records or the log's checkpoint lack."`
	Expire     logExpireCmd     `cmd:"" help:"Remove the content of old records; their hashes and every proof stay."`
	Fsck       logFsckCmd       `cmd:"" help:"Examine the log: rows, hashes, signatures, time stamps, checkpoint."`
}

// cosign asks the witnesses to cosign what the command is about to print. A witness that does not answer does not stop the command.
func cosign(ctx context.Context, i *installation.Installation, std stdio) {
	c, err := i.Witnesses.Cosign(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		std.tell("%v", err)
	case c != nil && !c.Met():
		std.tell("%d of the %d witnesses that are demanded have cosigned the checkpoint over %s", c.Cosigned(), c.Quorum, plural.Of(c.Size, "record"))
	}
}

type logProveCmd struct {
	Name   string   `arg:"" help:"A trial's id, a chain_id, or a record's id or digest; with --log a record's id or file."`
	Linked bool     `help:"Of a record: add all records that are linked with it."`
	With   []string `placeholder:"RECORD" sep:"none" help:"Add this record too, by its id or digest. May be repeated."`
	withholdFlag
	logFlags
}

func (c *logProveCmd) Run(ctx context.Context, a *app, std stdio) error {
	if c.Log != "" {
		return c.elsewhere(ctx, std)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		cosign(ctx, i, std)
		chain, err := i.Ledger.HasChain(ctx, c.Name)
		if err != nil {
			return err
		}
		alone := !chain && !c.Linked && c.With == nil
		records, err := c.records(ctx, i, std, alone)
		if err == nil {
			records, err = c.disclose(ctx, i, records...)
		}
		switch {
		case err != nil:
			return err
		case alone:
			return std.print(i.Ledger.ProveOne(ctx, records[0]))
		}
		return std.print(i.Ledger.Prove(ctx, records...))
	})
}

func (c *logProveCmd) records(ctx context.Context, i *installation.Installation, std stdio, alone bool) ([]*evidence.Record, error) {
	if alone {
		r, err := recordOf(ctx, i.Ledger, c.Name)
		return []*evidence.Record{r}, c.unknown(err)
	}
	records, cut, err := i.Ledger.Linked(ctx, c.Name)
	if err != nil {
		return nil, c.unknown(err)
	}
	std.tellIf(cut != nil, "%v", cut)
	for _, name := range c.With {
		one, err := recordOf(ctx, i.Ledger, name)
		if err != nil {
			return nil, fmt.Errorf("--with: %w", err)
		}
		records = append(records, one)
	}
	return records, nil
}

func (c *logProveCmd) unknown(err error) error {
	if errors.Is(err, ledger.ErrNotFound) {
		err = fmt.Errorf("the log has no chain and no record of this name: %w", err)
	}
	fault.While(&err, "%q", c.Name)
	return err
}

func (c *logProveCmd) elsewhere(ctx context.Context, std stdio) error {
	if len(c.Withhold)+len(c.With) > 0 || c.Linked {
		return errors.New("--withhold, --with and --linked are for the log of an installation here, and not for --log")
	}
	remote, err := openRemote(c.Log, c.Trust, c.tokenFlag)
	if err != nil {
		return err
	}
	record, err := remote.record(ctx, c.Name)
	if err != nil {
		return err
	}
	return std.print(record, remote.prove(ctx, record))
}

func recordOf(ctx context.Context, l *ledger.Ledger, name string) (*evidence.Record, error) {
	var digest evidence.Digest
	if digest.UnmarshalText([]byte(name)) == nil {
		return l.RecordByDigest(ctx, digest)
	}
	return l.Record(ctx, name)
}

type logFsckCmd struct {
	Reindex bool `help:"In place of this, make the index of records again, which lists and searches use."`
	jsonFlag
}

func reindex(ctx context.Context, a *app, std stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		err := i.Ledger.Briefs().Reindex(ctx, progress(std, "records indexed"))
		size, failed := i.Ledger.Size(ctx)
		return std.lineUnless(cmp.Or(err, failed), "indexed: %d records", size)
	})
}

type examined struct {
	Records int64         `json:"records"`
	Whole   bool          `json:"whole"` // what is harmless does not count
	Damages []namedDamage `json:"damages"`
}

type namedDamage struct {
	Kind     string `json:"kind"`
	Meaning  string `json:"meaning"`
	Detail   string `json:"detail"`
	Harmless bool   `json:"harmless"`
	Index    *int64 `json:"index,omitzero"` // not there: it is not about one record
	RecordID string `json:"record_id,omitzero"`
}

func nameDamages(damages []fsck.Damage, size int64) (e examined) {
	e = examined{Records: size, Whole: true, Damages: []namedDamage{}}
	for _, d := range damages {
		n := namedDamage{Kind: d.Kind.String(), Meaning: d.Kind.Meaning(), Detail: d.Detail, Harmless: d.Kind.Harmless(), RecordID: d.RecordID}
		if d.Index >= 0 {
			n.Index = &d.Index
		}
		e.Damages, e.Whole = append(e.Damages, n), e.Whole && n.Harmless
	}
	return e
}

func (c *logFsckCmd) Run(ctx context.Context, a *app, std stdio) error {
	if c.Reindex && c.JSON {
		return errors.New("--json does not go with --reindex")
	}
	if c.Reindex {
		return reindex(ctx, a, std)
	}
	damages, size, err := installation.Fsck(ctx, a.config(), progress(std, "examined"))
	if err != nil {
		return err
	}
	std.tellIf(slices.ContainsFunc(damages, func(d fsck.Damage) bool { return d.Kind == fsck.DamageBehind || d.Kind == fsck.DamageCut }), "hint: %s", whenBehind)
	named := nameDamages(damages, size)
	return closing(when(!named.Whole, exitBad), c.answer(std, named, nil, func(p *printer) {
		for _, d := range damages {
			p.line("%s", d)
		}
		if named.Whole {
			p.line("the log is whole: %s", plural.Of(size, "record"))
			return
		}
		harmful := slices.DeleteFunc(named.Damages, func(d namedDamage) bool { return d.Harmless })
		std.tell("%s in a log of %s", plural.Of(len(harmful), "damage"), plural.Of(size, "record"))
	}))
}

type logCheckpointCmd struct {
	Since   *string `placeholder:"OLD" help:"Prove that the log begins with OLD, a checkpoint file or a number of entries. With --entries: print those after it."`
	To      *string `placeholder:"NEW" help:"With --since or --entries: the log as it was later, likewise. Default: its last checkpoint, made now if need be."`
	Entries bool    `help:"Print what the log hashed for each record, to count by."`
	logFlags
}

func (c *logCheckpointCmd) Run(ctx context.Context, a *app, std stdio) error {
	switch {
	case c.To != nil && c.Since == nil && !c.Entries:
		return errors.New("--to goes with --since or --entries")
	case c.Log != "" && (c.Entries || c.Since == nil):
		return errors.New("--log goes with --since, and not with --entries")
	case c.Log != "":
		return c.elsewhere(ctx, std)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		switch {
		case c.Entries:
			return c.entries(ctx, i.Ledger, std)
		case c.Since != nil:
			return c.consistency(ctx, i.Ledger, std)
		}
		cosign(ctx, i, std)
		checkpoint, err := i.Ledger.Checkpoint(ctx)
		return std.document([]byte(checkpoint), err)
	})
}

func (c *logCheckpointCmd) consistency(ctx context.Context, l *ledger.Ledger, std stdio) error {
	from, to, err := c.sizes(ctx, l)
	if err != nil {
		return err
	}
	return std.print(l.Consistency(ctx, min(from, to), max(from, to)))
}

func (c *logCheckpointCmd) elsewhere(ctx context.Context, std stdio) error {
	remote, err := openRemote(c.Log, c.Trust, c.tokenFlag)
	if err != nil {
		return err
	}
	return std.print(remote.consistency(ctx, *c.Since, c.To))
}

func (c *logCheckpointCmd) entries(ctx context.Context, l *ledger.Ledger, std stdio) error {
	from, to, err := c.sizes(ctx, l)
	if err != nil {
		return err
	}
	out, tell := bufio.NewWriter(std.documents()), progress(std, "entries")
	for entry, err := range l.Entries(ctx, from, to) {
		if err != nil {
			return err
		}
		out.Write(entry)
		if err := out.WriteByte('\n'); err != nil { // which a bufio.Writer repeats once it has failed
			return err
		}
		from++
		tell(from, to)
	}
	return out.Flush()
}

// sizes are how many entries the log had when --since says, and has, or had when --to says.
func (c *logCheckpointCmd) sizes(ctx context.Context, l *ledger.Ledger) (from, to int64, err error) {
	if c.Since != nil {
		if from, err = sizeOf(ctx, l, *c.Since); err != nil {
			return 0, 0, err
		}
	}
	if c.To != nil {
		to, err = sizeOf(ctx, l, *c.To)
		return from, to, err
	}
	signed, err := l.Checkpoint(ctx)
	if err == nil {
		to, err = l.SizeAt(ctx, signed)
	}
	return from, to, err
}

// sizeOf reads a number of entries, or the file of a checkpoint, which must be one that the log has not gone back on.
func sizeOf(ctx context.Context, l *ledger.Ledger, text string) (int64, error) {
	if size, ok := wholeNumber(text); ok {
		return size, nil
	}
	return parsed(text, func(signed []byte) (int64, error) { return l.SizeAt(ctx, string(signed)) })
}

func wholeNumber(text string) (int64, bool) {
	size, err := strconv.ParseInt(text, 10, 64)
	return size, err == nil
}

type decidedFlags struct {
	Reason string  `required:"" help:"Why, for the act that says so. It stays in the log for ever, so do not name a person in it." placeholder:"TEXT"`
	By     newName `required:"" help:"Which person decided it." placeholder:"WHO"`
}

type logExpireCmd struct {
	Before time.Time `required:"" placeholder:"DATE" format:"2006-01-02" help:"Records that time stamps prove to have been sealed before this day (UTC)."`
	decidedFlags
	Except []string `sep:"none" placeholder:"CHAIN" help:"Leave this chain or trial. May be repeated."`
	DryRun bool     `name:"dry-run" help:"Only count."`
	jsonFlag
}

func (c *logExpireCmd) Run(ctx context.Context, a *app, std stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		for _, chain := range c.Except {
			if there, err := i.Ledger.HasChain(ctx, chain); err != nil || !there {
				return errors.Join(err, hint(fmt.Errorf("--except: %q: %w", chain, ledger.ErrNotFound), "no chain has this id"))
			}
		}
		done, err := i.Expire(ctx, installation.ExpiryOrder{Before: c.Before, Except: c.Except, Reason: c.Reason, By: string(c.By), DryRun: c.DryRun,
			Stays: func(ctx context.Context) (*installation.ExpiryStaying, error) { return stays(ctx, i.Ledger) }, Progress: steps(std, "")})
		switch {
		case errors.Is(err, installation.ErrTooYoung):
			return hint(err, "the least is %d days. If nothing was sealed lately, seal something: time counts up to the log's newest stamp", operator.MinRetention)
		case errors.Is(err, lock.ErrTaken):
			return hint(err, "run it again when that is over")
		case err != nil && done.Act != "":
			return hint(err, "what an act says is gone is removed by the next run")
		case err != nil:
			return err
		}
		if !c.DryRun {
			if err := a.forgetExpired(ctx, std, i); err != nil {
				return err
			}
		}
		return c.tell(std, done)
	})
}

// stays returns what is still needed: trials that are open or wait for a person, and the records that they are about.
func stays(ctx context.Context, l *ledger.Ledger) (*installation.ExpiryStaying, error) {
	x := trial.NewIndex(l, nil)
	if err := x.Follow(ctx); err != nil {
		return nil, err
	}
	s := &installation.ExpiryStaying{Chains: map[string]bool{}, Records: map[evidence.Digest]bool{}}
	for _, t := range x.List(func(t *trial.Summary) bool { return !t.Over || t.NeedsPerson() }) {
		s.Chains[t.ID] = true
		acts, err := l.Chain(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		for _, act := range acts {
			for _, saw := range act.Payload.Saw {
				s.Records[saw] = true
			}
		}
	}
	return s, nil
}

// forgetExpired removes what files made of the log say of expired records: case files of trials, and what the index of words has of them.
func (a *app) forgetExpired(ctx context.Context, std stdio, i *installation.Installation) error {
	files, err := os.ReadDir(filepath.Dir(i.CaseFile("")))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, f := range files {
		id := strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))
		if _, err := i.Ledger.Briefs().FirstOfChain(ctx, id); !errors.Is(err, ledger.ErrExpired) {
			continue // a file of no trial of this log stays
		}
		if err := os.Remove(i.CaseFile(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(a.Data, indexFile)); err != nil {
		return nil //nolint:nilerr // there is no index of words
	}
	k, err := a.words(ctx, std, i)
	if err != nil {
		return err
	}
	return k.Close()
}

func steps(std stdio, what string) func(name string, done, total int64) {
	of := map[string]func(done, total int64){}
	return func(name string, done, total int64) {
		if of[name] == nil {
			of[name] = progress(std, what+name)
		}
		of[name](done, total)
	}
}

func (c *logExpireCmd) tell(std stdio, done *installation.ExpiryDone) error {
	return c.answer(std, done, nil, func(p *printer) {
		p.lineIf(done.Finished > 0, "finished an interrupted run: %s", plural.Of(done.Finished, "record"))
		if c.DryRun {
			p.line("would remove the content of %s", plural.Of(done.Records, "record"))
		} else {
			p.line("removed the content of %s; the log keeps their ids and hashes", plural.Of(done.Records, "record"))
		}
		p.lineIf(done.Act != "", "act: %s", done.Act)
		for _, kept := range []struct {
			n   int64
			why string
		}{{done.Excepted, "of excepted chains"}, {done.Needed, "that a trial or a person needs"}, {done.Waiting, "that wait for a time stamp"},
			{done.Unproved, "of which it is not proved when they were sealed"}} {
			p.lineIf(kept.n > 0, "left %s %s", plural.Of(kept.n, "record"), kept.why)
		}
	})
}
