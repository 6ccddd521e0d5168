package duties

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

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

// Sizes of what is verified at once. Tests have smaller ones.
var (
	together    = 2000 // records of one chain
	apart       = 500  // records of no chain
	mostSources = 8000 // further records of the chain, from which these copy
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
		report, err := v.part(ctx, f, part)
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

func (v *Verifier) part(ctx context.Context, f *Facts, part []ref) (*verify.Report, error) {
	at := make([]int64, len(part))
	for i, r := range part {
		at[i] = r.index
	}
	records, err := v.read(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := v.addSources(ctx, f, records, f.bodies[part[0].chain]); err != nil {
		return nil, err
	}
	var sorted []*evidence.Record
	for _, index := range slices.Sorted(maps.Keys(records)) {
		sorted = append(sorted, records[index])
	}
	bundle, err := v.Ledger.Prove(ctx, sorted...)
	if err != nil {
		return nil, err
	}
	return verify.Bundle(bundle, v.Options), nil
}

// addSources adds the records from whose bodies others copy, and those from which these copy: the bytes of a call rest on them. It goes back in the chain as
// far as something is needed.
func (v *Verifier) addSources(ctx context.Context, f *Facts, records map[int64]*evidence.Record, chain []holder) error {
	first, last := slices.Min(slices.Collect(maps.Keys(records))), slices.Max(slices.Collect(maps.Keys(records)))
	needed, added := map[evidence.Digest]bool{}, 0
	for _, h := range slices.Backward(chain) {
		r := records[h.index]
		switch {
		case h.index > last || r == nil && !needed[h.request] && !needed[h.response]:
			if h.index < first && len(needed) == 0 {
				return nil
			}
			continue
		case r == nil && added == mostSources:
			f.cut = true
			return nil
		case r == nil:
			one, err := v.read(ctx, []int64{h.index})
			if err != nil {
				return err
			}
			if r, added = one[h.index], added+1; r == nil {
				continue // it has expired meanwhile
			}
			records[h.index] = r
		}
		delete(needed, h.request)
		delete(needed, h.response)
		copied(r, "/request_body", r.Payload.RequestBody, needed)
		copied(r, "/response_body", r.Payload.ResponseBody, needed)
	}
	return nil
}

// copied notes from which bodies a body copies. Of one that is not there, or in no form, nothing is known.
func copied(r *evidence.Record, pointer string, value jsontext.Value, from map[evidence.Digest]bool) {
	body, withheld := r.Said(pointer, value)
	if withheld || len(body) == 0 {
		return
	}
	pieces, err := evidence.ParseBody(body)
	if err != nil {
		return // the verifier says so
	}
	for _, p := range pieces {
		if !p.From.IsZero() {
			from[p.From] = true
		}
	}
}

// read returns records by their place in the log, with what was sealed apart.
func (v *Verifier) read(ctx context.Context, at []int64) (map[int64]*evidence.Record, error) {
	found := map[int64]*evidence.Record{}
	for page := range slices.Chunk(at, 100) {
		rows, err := v.Ledger.RowsAt(ctx, page)
		if err != nil {
			return nil, err
		}
		records := make([]*evidence.Record, len(rows))
		for i := range rows {
			if records[i], err = rows[i].Record(); err != nil {
				return nil, fmt.Errorf("reading record %d of the log: %w", rows[i].Index, err)
			}
		}
		if v.Disclose != nil {
			if records, err = v.Disclose(ctx, records); err != nil {
				return nil, err
			}
		}
		for i := range rows {
			found[rows[i].Index] = records[i]
		}
	}
	return found, nil
}
