package continuous

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/subject"
	"jurat/internal/subject/sealed"
	"jurat/verify"
)

// maxEvidence is how many bytes of records are put before the jury beside the one that is tried.
const maxEvidence = 4 << 20

// caseOf makes the case of a record: what precedes it in its chain and what follows, so that the jury sees what the agent was asked and what
// became of it, as the log has it. What is sealed apart stays so: in the evidence of a trial it could never be erased.
func (s *Service) caseOf(ctx context.Context, of *evidence.Record) (*subject.Case, error) {
	records, err := s.around(ctx, of)
	if err != nil {
		return nil, err
	}
	bundle, err := s.config.Ledger.Prove(ctx, records...)
	if err != nil {
		return nil, err
	}
	file, err := bundle.Marshal()
	if err != nil {
		return nil, err
	}
	trust, err := s.config.Trust(ctx)
	if err != nil {
		return nil, err
	}
	on, _, err := sealed.Read(bytes.NewReader(file), verify.Options{Trust: trust}, nil)
	return on, err
}

// around returns a record with those around it in its chain, in the log's order, as many as the settings allow: up to half of them follow
// it, and the rest precede it.
func (s *Service) around(ctx context.Context, of *evidence.Record) ([]*evidence.Record, error) {
	others := s.config.Settings.MaxRecords() - 1
	if of.Payload.ChainID == "" || others == 0 {
		return []*evidence.Record{of}, nil
	}
	var before, after []*evidence.Record
	found := false
	for r, err := range s.config.Ledger.ChainRecords(ctx, of.Payload.ChainID) {
		if errors.Is(err, ledger.ErrExpired) {
			return []*evidence.Record{of}, nil // the chain's beginning is gone, and with it what this record rests on
		}
		if err != nil {
			return nil, err
		}
		switch {
		case r.Digest == of.Digest:
			found = true
		case !found:
			if before = append(before, r); len(before) > 2*others {
				before = slices.Clone(before[others:]) // so that the earlier ones can be freed
			}
		default:
			after = append(after, r)
		}
		if found && len(after) >= others/2 {
			break
		}
	}
	before = before[max(0, len(before)-(others-len(after))):]
	before, after = fit(before, after)
	return forOne(slices.Concat(before, []*evidence.Record{of}, after), of), nil
}

// fit takes away what is farthest from the record until the rest has a size that a jury can read.
func fit(before, after []*evidence.Record) (_, _ []*evidence.Record) {
	size := 0
	for _, r := range slices.Concat(before, after) {
		size += len(r.Canonical())
	}
	for size > maxEvidence {
		if len(before) >= len(after) {
			size -= len(before[0].Canonical())
			before = before[1:]
		} else {
			size -= len(after[len(after)-1].Canonical())
			after = after[:len(after)-1]
		}
	}
	return before, after
}

// forOne takes away what other agents did before this one's first record: a trial judges the agent whose record comes first.
func forOne(records []*evidence.Record, of *evidence.Record) []*evidence.Record {
	own := slices.IndexFunc(records, func(r *evidence.Record) bool {
		return r.Payload.Role() == evidence.RoleAgent && r.Payload.Actor() == of.Payload.Actor()
	})
	kept := slices.DeleteFunc(slices.Clone(records[:own]), func(r *evidence.Record) bool { return r.Payload.Role() == evidence.RoleAgent })
	return append(kept, records[own:]...)
}
