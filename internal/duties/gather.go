package duties

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/verify"
)

// Gather reads a log. progress is told how many records are read, and may be nil.
func Gather(ctx context.Context, l *ledger.Ledger, s Selection, progress func(done, total int64)) (*Facts, error) {
	size, err := l.Size(ctx)
	if err != nil {
		return nil, err
	}
	f := NewFacts(s)
	for r, err := range l.Records(ctx, 0) {
		if err != nil {
			return nil, err
		}
		f.Take(r.Index, r.Record)
		if progress != nil {
			progress(r.Index+1, size)
		}
	}
	f.settle()
	return f, nil
}

// Sizes of what is verified at once.
const (
	together = 2000 // records of one chain: what a recorder seals can rest on earlier bodies in the chain
	apart    = 500  // records of no chain
)

// A Verifier verifies records of a log as a stranger would.
type Verifier struct {
	Ledger   *ledger.Ledger
	Options  verify.Options
	Disclose func(ctx context.Context, records []*evidence.Record) ([]*evidence.Record, error) // adds what was sealed apart; nil: nothing is disclosed
	Progress func(done, total int64)                                                           // may be nil
}

// Verify verifies every record that the facts rest on.
func (v *Verifier) Verify(ctx context.Context, f *Facts) (Found, error) {
	type question struct {
		id string
		of verify.Guarantee
	}
	answers := map[question]verify.Status{}
	done := int64(0)
	for _, part := range f.parts() {
		report, err := v.part(ctx, part)
		if err != nil {
			return nil, err
		}
		found := report.Answers()
		for _, r := range part {
			for _, g := range observed {
				if status := found.For(g, r.id).Status; status != verify.NotProved {
					answers[question{r.id, g}] = status
				}
			}
		}
		if done += int64(len(part)); v.Progress != nil {
			v.Progress(done, int64(len(f.records)))
		}
	}
	return func(id string, g verify.Guarantee) verify.Status {
		if status, known := answers[question{id, g}]; known {
			return status
		}
		return verify.NotProved
	}, nil
}

// parts groups the records by chains, in log order.
func (f *Facts) parts() (list [][]ref) {
	chains := map[string][]ref{}
	for _, r := range f.records {
		chains[r.chain] = append(chains[r.chain], r)
	}
	for _, chain := range slices.Sorted(maps.Keys(chains)) {
		most := together
		if chain == "" {
			most = apart
		}
		list = slices.AppendSeq(list, slices.Chunk(chains[chain], most))
	}
	return list
}

func (v *Verifier) part(ctx context.Context, part []ref) (*verify.Report, error) {
	records, err := v.read(ctx, part)
	if err != nil {
		return nil, err
	}
	if v.Disclose != nil {
		if records, err = v.Disclose(ctx, records); err != nil {
			return nil, err
		}
	}
	bundle, err := v.Ledger.Prove(ctx, records...)
	if err != nil {
		return nil, err
	}
	return verify.Bundle(bundle, v.Options), nil
}

func (v *Verifier) read(ctx context.Context, part []ref) (records []*evidence.Record, err error) {
	for page := range slices.Chunk(part, 100) {
		at := make([]int64, len(page))
		for i, r := range page {
			at[i] = r.index
		}
		rows, err := v.Ledger.RowsAt(ctx, at)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			r, err := rows[i].Record()
			if err != nil {
				return nil, fmt.Errorf("reading record %d of the log: %w", rows[i].Index, err)
			}
			records = append(records, r)
		}
	}
	return records, nil
}
