package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/limits"
	"jurat/internal/server/wire"
	"jurat/property"
	"jurat/property/proving"
)

// postProperty proves what a value is like, for a caller who may read the value.
//
// No other caller gets a proof, or a refusal that depends on the value. By asking for ranges and halving them, a caller would find the value in a
// few dozen requests. So each record is read with the caller's rights before anything is compared, and strangers, who get no disclosures, do
// not get here.
func (s *Server) postProperty(w http.ResponseWriter, r *http.Request, c *Caller) error {
	wanted, err := wire.ReadJSON[api.Property](r)
	if err != nil {
		return err
	}
	if len(wanted.Others) >= property.MaxMembers {
		return fmt.Errorf("%w: others: want at most %d", api.ErrInvalid, property.MaxMembers-1)
	}
	asked := append([]api.Member{{Record: r.PathValue("id"), Pointer: wanted.Pointer}}, wanted.Others...)
	members, sealed, err := s.openMembers(r.Context(), c, asked)
	if err != nil {
		return err
	}
	statement, err := statementOf(wanted)
	if err != nil {
		return err
	}
	proof, err := proving.Prove(statement, members, rand.Reader)
	switch {
	case errors.Is(err, evidence.ErrDisclosure), errors.Is(err, evidence.ErrProvable):
		return err // the server keeps another value than was sealed
	case errors.Is(err, proving.ErrWithheld):
		return fmt.Errorf("%w: %w: it was erased, or its owner keeps it", api.ErrInvalid, err)
	case err != nil:
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	bundle, err := s.config.Installation.Ledger.Prove(r.Context(), sealed...)
	if err != nil {
		return err
	}
	for _, record := range bundle.Records {
		if record.Digest == members[0].Record.Digest {
			err = proving.Add(record, proof)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	w.Header().Set("Cache-Control", "no-store")
	return wire.WriteFile(w, r, http.StatusOK, bundle)
}

// openMembers reads the records of members, if the caller may read all of them: with their values, and as they were sealed, each once.
func (s *Server) openMembers(ctx context.Context, c *Caller, asked []api.Member) (members []proving.Member, sealed []*evidence.Record, err error) {
	known := map[string]*evidence.Record{}
	for _, m := range asked {
		if known[m.Record] == nil {
			record, err := s.readable(ctx, c, m.Record)
			if err == nil {
				err = limits.AccountOf(ctx).Take(ctx, limits.RecordFactor*int64(len(record.Canonical())))
			}
			if err != nil {
				return nil, nil, err
			}
			sealed = append(sealed, record)
			if known[m.Record], err = s.disclosedTo(ctx, c, record); err != nil {
				return nil, nil, err
			}
		}
		members = append(members, proving.Member{Record: known[m.Record], Pointer: m.Pointer})
	}
	return members, sealed, nil
}

// statementOf returns the statement that is asked for, without its members.
func statementOf(p *api.Property) (s property.Statement, err error) {
	s = property.Statement{Form: property.Form(p.Form), Audience: p.Audience, At: p.At, Years: p.Years}
	canonical := func(field string, value []byte) jsontext.Value {
		doc, wrong := evidence.Canonical(value)
		if wrong != nil && err == nil {
			err = fmt.Errorf("%w: field %s: %w", api.ErrInvalid, field, wrong)
		}
		return doc
	}
	if p.Lo != nil {
		s.Lo = canonical("lo", p.Lo)
	}
	if p.Hi != nil {
		s.Hi = canonical("hi", p.Hi)
	}
	for i, value := range p.Set {
		s.Set = append(s.Set, canonical(fmt.Sprintf("set/%d", i), value))
	}
	return s, err
}
