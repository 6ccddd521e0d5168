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
// became of it, as the log has it. What is sealed apart stays so: in the evidence of a trial it could never be erased. Of acts that recorders saw it is
// disclosed, because nothing of them would be left to judge: these are tried only if the configuration says so.
func (s *Service) caseOf(ctx context.Context, of *evidence.Record) (*subject.Case, error) {
	choose := s.around
	if of.Payload.Observed != nil {
		choose = s.session
	}
	chosen, err := choose(ctx, of)
	if err != nil {
		return nil, err
	}
	file, err := s.file(ctx, of, chosen)
	if err != nil {
		return nil, err
	}
	trust, err := s.config.Trust(ctx)
	if err != nil {
		return nil, err
	}
	shown := map[evidence.Digest]bool{}
	for _, r := range chosen {
		shown[r.Digest] = true
	}
	on, _, err := sealed.ReadPart(bytes.NewReader(file), verify.Options{Trust: trust}, nil, func(r *evidence.Record) bool { return shown[r.Digest] })
	return on, err
}

// file makes the file in which records are verified: the chain from its beginning to the last of them, because a verifier refutes a chain from which the log's count
// shows that records are left out. Of a chain whose beginning is gone the record stands alone.
func (s *Service) file(ctx context.Context, of *evidence.Record, chosen []*evidence.Record) ([]byte, error) {
	whole, err := s.upTo(ctx, of.Payload.ChainID, chosen)
	if errors.Is(err, ledger.ErrExpired) && len(chosen) == 1 {
		alone, err := s.config.Ledger.ProveOne(ctx, chosen[0])
		if err != nil {
			return nil, err
		}
		return alone.Marshal()
	}
	if err != nil {
		return nil, err
	}
	bundle, err := s.config.Ledger.Prove(ctx, whole...)
	if err != nil {
		return nil, err
	}
	return bundle.Marshal()
}

// upTo returns the records of a chain up to the last of some, and these as they are given.
func (s *Service) upTo(ctx context.Context, chain string, chosen []*evidence.Record) ([]*evidence.Record, error) {
	if chain == "" {
		return chosen, nil
	}
	given := map[evidence.Digest]*evidence.Record{}
	for _, r := range chosen {
		given[r.Digest] = r
	}
	var whole []*evidence.Record
	size := 0
	for r, err := range s.config.Ledger.ChainRecords(ctx, chain) {
		if err != nil {
			return nil, err
		}
		if one := given[r.Digest]; one != nil {
			r = one
			delete(given, r.Digest)
		}
		if size += sizeOf(r); size > maxSession || len(whole) == subject.MaxRecords {
			return nil, sealed.ErrTooMuch
		}
		if whole = append(whole, r); len(given) == 0 {
			break
		}
	}
	return whole, nil
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
