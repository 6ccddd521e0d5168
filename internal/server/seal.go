package server

import (
	"fmt"
	"net/http"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/acts"
)

// order returns the act that a request asks for.
func order(r *http.Request, c *Caller) acts.Order {
	return acts.Order{By: c, Key: r.Header.Get(api.IdempotencyKey)}
}

// postRecord seals what an agent said or a reviewer decided, or accepts a record that they have signed themselves.
func (s *Server) postRecord(w http.ResponseWriter, r *http.Request, c *Caller) error {
	doc, err := readBody(r, "application/json")
	if err != nil {
		return err
	}
	done, err := s.sealOrAccept(r, c, doc)
	return s.created(w, r, done, err)
}

func (s *Server) sealOrAccept(r *http.Request, c *Caller, doc []byte) (*acts.Done, error) {
	if evidence.BeginsAsRecord(doc) {
		signed, _, err := evidence.Read(doc)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
		}
		return s.acts.Accept(r.Context(), c, signed)
	}
	draft, err := evidence.ParseDraft(doc)
	if err != nil {
		return nil, err
	}
	return s.acts.Seal(r.Context(), order(r, c), draft)
}

// count adds a sealed record to the metrics.
func (s *Server) count(done *acts.Done, err error) (*acts.Done, error) {
	if err == nil && !done.Before {
		s.metrics.Sealed(done.Record.Payload.ActionType)
	}
	return done, err
}

// created answers with a record that is in the log, or returns the error of the act.
func (s *Server) created(w http.ResponseWriter, r *http.Request, done *acts.Done, err error) error {
	if done, err = s.count(done, err); err != nil {
		return err
	}
	proved, err := s.config.Installation.Ledger.ProveOne(r.Context(), done.Record)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/records/"+done.Record.Payload.RecordID)
	w.Header().Set("Cache-Control", "no-store")
	return writeFile(w, r, http.StatusCreated, proved)
}
