package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/keyhistory"
	"jurat/internal/ledger"
	"jurat/internal/names"
	"jurat/internal/trial"
)

// postRecord seals what an agent said or a reviewer decided, or takes in what they have signed themselves.
func (s *Server) postRecord(w http.ResponseWriter, r *http.Request, c *Caller) error {
	doc, err := Body(r, "application/json")
	if err != nil {
		return err
	}
	if evidence.BeginsAsRecord(doc) {
		return s.accept(w, r, c, doc)
	}
	draft, err := evidence.ParseDraft(doc)
	if err != nil {
		return err
	}
	record, err := s.seal(r, c, draft, "record")
	if err != nil {
		return err
	}
	return s.created(w, r, record)
}

// created answers with a record that is in the log.
func (s *Server) created(w http.ResponseWriter, r *http.Request, record *evidence.Record) error {
	proved, err := s.config.Installation.Ledger.ProveOne(r.Context(), record)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/records/"+record.Payload.RecordID)
	w.Header().Set("Cache-Control", "no-store")
	return writeFile(w, r, http.StatusCreated, proved)
}

// seal has a draft sealed in the caller's name. With an idempotency key, what was sealed before under it is returned again.
func (s *Server) seal(r *http.Request, c *Caller, draft *evidence.Draft, what string) (*evidence.Record, error) {
	id, err := keyedID(r, c, what)
	if err != nil {
		return nil, err
	}
	if draft, err = withID(draft, id); err != nil {
		return nil, err
	}
	if draft, err = s.admissible(r, c, draft); err != nil {
		return nil, err
	}
	record, err := s.sealAs(r, draft)
	if err != nil {
		return s.already(r, draft, id != "", err)
	}
	s.meters.sealed(record.Payload.ActionType)
	return record, nil
}

// sealAs signs with the key of the actor that the draft names.
func (s *Server) sealAs(r *http.Request, draft *evidence.Draft) (*evidence.Record, error) {
	i := s.config.Installation
	apart, err := i.Apart(draft, nil)
	if err != nil {
		return nil, err
	}
	signers, err := i.Keys.Signers(draft.Role(), draft.Actor())
	if err != nil {
		return nil, err
	}
	return i.Ledger.Seal(r.Context(), draft, signers, apart)
}

// admissible refuses what is not the caller's to say, and binds what decides on a record to that record.
func (s *Server) admissible(r *http.Request, c *Caller, draft *evidence.Draft) (*evidence.Draft, error) {
	if err := mayAct(c, draft); err != nil {
		return nil, err
	}
	if draft.ActionType == evidence.HumanReview { // before the content is looked at, which says so of some, and not of who submitted
		if err := s.notOwnWork(r, c, draft.OriginalResponseID); err != nil {
			return nil, err
		}
	}
	bound, _, err := trial.Bind(r.Context(), s.config.Installation.Ledger, draft)
	return bound, err
}

// mayAct refuses acts under another name or in another role than the caller's.
func mayAct(c *Caller, draft *evidence.Draft) error {
	role := draft.Role()
	switch {
	case role != evidence.RoleAgent && role != evidence.RoleReviewer:
		return &evidence.FieldError{Field: "action_type", Reason: fmt.Sprintf("%s is an act of the %s, which nobody sends", draft.ActionType, role)}
	case !c.Has(access.Role(role)):
		return fmt.Errorf("%w: field action_type: %s is for the role %s", api.ErrForbidden, draft.ActionType, role)
	case role == evidence.RoleAgent && inTrial(draft.ChainID):
		return fmt.Errorf("%w: field chain_id: agents do not act in trials", api.ErrForbidden)
	case draft.Actor() != c.Name():
		return fmt.Errorf("%w: the token is that of %q, and the payload is one of %q", api.ErrForbidden, c.Name(), draft.Actor())
	}
	return nil
}

// notOwnWork refuses a decision on what the caller said or submitted. Of a record that is not here nobody knows whose it is.
func (s *Server) notOwnWork(r *http.Request, c *Caller, id string) error {
	original, err := s.config.Installation.Ledger.Record(r.Context(), id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	p := &original.Payload
	by := ""
	if inTrial(p.ChainID) {
		if by, err = s.submitterOf(r.Context(), p.ChainID); err != nil {
			return err
		}
	}
	if names.Same(c.Name(), by) || names.Same(c.Name(), p.Actor()) {
		return fmt.Errorf("%w: record %s is of %q, or of a trial of what %q submitted", api.ErrOwnWork, id, c.Name(), c.Name())
	}
	return nil
}

// accept takes in what its owner has signed where the key is.
func (s *Server) accept(w http.ResponseWriter, r *http.Request, c *Caller, doc []byte) error {
	signed, _, err := evidence.Read(doc)
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	if !keyhistory.MayOwn(signed.Payload.Role()) {
		return &evidence.FieldError{Field: "action_type", Reason: fmt.Sprintf("%s is an act of the %s, whose key is the operator's", signed.Payload.ActionType, signed.Payload.Role())}
	}
	draft, err := evidence.NewDraft(signed.Payload)
	if err != nil {
		return err
	}
	open, err := s.config.Installation.Apart(draft, nil)
	if err != nil {
		return err
	}
	if len(open) > 0 {
		return &evidence.FieldError{Field: strings.TrimPrefix(open[0], "/"), Reason: "is always to be sealed apart of this actor, and is signed as it is; its owner seals it apart before signing"}
	}
	if _, err := s.admissible(r, c, draft); err != nil {
		return err
	}
	record, err := s.config.Installation.Ledger.Accept(r.Context(), signed)
	if errors.Is(err, ledger.ErrDuplicate) {
		if record, err = s.acceptedBefore(r, signed, err); err != nil {
			return err
		}
	} else if err != nil {
		return acceptProblem(err)
	} else {
		s.meters.sealed(record.Payload.ActionType)
	}
	return s.created(w, r, record)
}

// acceptProblem tells what is wrong with a record that its owner signed.
func acceptProblem(err error) error {
	if errors.Is(err, ledger.ErrRefused) || errors.Is(err, keyhistory.ErrForeign) || errors.Is(err, keyhistory.ErrEnded) || errors.Is(err, keyhistory.ErrIncomplete) {
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	return err
}

// acceptedBefore returns the record that is there already, if it is this one.
func (s *Server) acceptedBefore(r *http.Request, signed *evidence.Record, cause error) (*evidence.Record, error) {
	record, err := s.config.Installation.Ledger.RecordByDigest(r.Context(), signed.Digest)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, cause
	}
	return record, err
}
