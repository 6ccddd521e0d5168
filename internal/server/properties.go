package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/evidence"
	"jurat/property"
	"jurat/property/proving"
)

// postProperty proves what a value is like, for a caller who may read the value.
//
// No other caller gets a proof, or a refusal that depends on the value. By asking for ranges and halving them, a caller would find the value in a
// few dozen requests. So the record is read with the caller's rights before anything is compared, and strangers, who get no disclosures, do
// not get here.
func (s *Server) postProperty(w http.ResponseWriter, r *http.Request, c *Caller) error {
	wanted, err := readJSON[api.Property](r)
	if err != nil {
		return err
	}
	sealed, err := s.readable(r.Context(), c, r.PathValue("id"))
	if err == nil {
		err = memoryAccountOf(r.Context()).Take(r.Context(), recordFactor*int64(len(sealed.Canonical())))
	}
	if err != nil {
		return err
	}
	disclosed, err := s.disclosedTo(r.Context(), c, sealed)
	if err != nil {
		return err
	}
	statement, err := statementOf(wanted)
	if err != nil {
		return err
	}
	proof, err := proving.Prove(statement, proving.Member{Record: disclosed, Pointer: wanted.Pointer}, rand.Reader)
	switch {
	case errors.Is(err, evidence.ErrDisclosure), errors.Is(err, evidence.ErrProvable):
		return err // the server keeps another value than was sealed
	case errors.Is(err, proving.ErrWithheld):
		return fmt.Errorf("%w: %w: it was erased, or its owner keeps it", api.ErrInvalid, err)
	case err != nil:
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	bundle, err := s.config.Installation.Ledger.Prove(r.Context(), sealed)
	if err != nil {
		return err
	}
	if err := proving.Add(bundle.Records[0], proof); err != nil {
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeFile(w, r, http.StatusOK, bundle)
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
