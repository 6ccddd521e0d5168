package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/internal/court/acts"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/brief"
)

// disclosed returns a record with the disclosures that the caller may see.
func (s *Server) disclosed(ctx context.Context, c *Caller, id string) (*evidence.Record, error) {
	record, err := s.readable(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return s.disclosedTo(ctx, c, record)
}

// readable returns a record if the caller may read it. A stranger gets the same error for a missing and for a private record.
func (s *Server) readable(ctx context.Context, c *Caller, id string) (*evidence.Record, error) {
	record, err := s.config.Installation.Ledger.Record(ctx, id)
	return s.named(ctx, c, "id", record, err)
}

// named returns a record that was looked for by its id or its digest if the caller may read it.
func (s *Server) named(ctx context.Context, c *Caller, by string, record *evidence.Record, err error) (*evidence.Record, error) {
	switch {
	case errors.Is(err, ledger.ErrNotFound) && c.Stranger():
		return nil, acts.NotPublic()
	case errors.Is(err, ledger.ErrNotFound):
		return nil, fmt.Errorf("%w: the log has no record with this %s", api.ErrNotFound, by)
	case err == nil:
		err = s.mayRead(ctx, c, record)
	}
	if err != nil {
		return nil, err
	}
	return record, nil
}

func (s *Server) mayRead(ctx context.Context, c *Caller, record *evidence.Record) error {
	return s.acts.MayRead(ctx, c, briefOf(record))
}

// briefOf returns what decides who may read a record.
func briefOf(record *evidence.Record) *brief.Brief {
	p := &record.Payload
	return &brief.Brief{RecordID: p.RecordID, ChainID: p.ChainID, Action: p.ActionType, Actor: p.Actor(), Original: p.OriginalResponseID}
}

func (s *Server) postReview(r *http.Request, c *Caller, review *api.Review) (*acts.Done, error) {
	original, err := s.readable(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return s.acts.Review(r.Context(), order(r, c), original, *review)
}

func (s *Server) postDelivery(r *http.Request, c *Caller, delivery *api.Delivery) (*acts.Done, error) {
	original, err := s.readable(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return s.acts.Deliver(r.Context(), order(r, c), original, delivery.Review)
}

func order(r *http.Request, c *Caller) acts.Order {
	return acts.Order{By: c, Key: r.Header.Get(api.IdempotencyKey)}
}

// postRecord seals what an agent said or a reviewer decided, or accepts a record that they have signed themselves.
func (s *Server) postRecord(r *http.Request, c *Caller) (*acts.Done, error) {
	doc, err := readBody(r)
	if err != nil {
		return nil, err
	}
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

func (s *Server) count(done *acts.Done, err error) (*acts.Done, error) {
	if err == nil && !done.Before {
		s.metrics.Sealed(done.Record.Payload.ActionType)
	}
	return done, err
}

// sealing makes a Handler that answers with the record that do has put into the log.
func (s *Server) sealing(do func(*http.Request, *Caller) (*acts.Done, error)) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *Caller) error {
		done, err := s.count(do(r, c))
		if err != nil {
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
}

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
	proof, err := (&evidence.Member{Record: disclosed, Pointer: wanted.Pointer}).Prove(statement, rand.Reader)
	switch {
	case errors.Is(err, evidence.ErrDisclosure), errors.Is(err, evidence.ErrProvable):
		return err // the server keeps another value than was sealed
	case errors.Is(err, evidence.ErrWithheld):
		return fmt.Errorf("%w: %w: it was erased, or its owner keeps it", api.ErrInvalid, err)
	case err != nil:
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	bundle, err := s.config.Installation.Ledger.Prove(r.Context(), sealed)
	if err != nil {
		return err
	}
	if err := bundle.Records[0].AddProof(proof); err != nil {
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

func (s *Server) getChain(w http.ResponseWriter, r *http.Request, c *Caller) error {
	g, err := s.gather(r.Context(), c, r.PathValue("chain_id"), s.config.Installation.Ledger.Briefs().Gather)
	if err == nil {
		err = s.sendCase(w, r, c, g, "")
	}
	return unnamed(err)
}

// gather collects the records that belong to a chain or a record and that the caller may read.
func (s *Server) gather(ctx context.Context, c *Caller, name string, from func(context.Context, string, brief.May) (*brief.Gathered, error)) (*brief.Gathered, error) {
	g, err := from(ctx, name, func(ctx context.Context, b *brief.Brief) (bool, error) {
		return acts.Allows(s.acts.MayRead(ctx, c, b))
	})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return nil, s.noSuchChain(c)
	case errors.Is(err, brief.ErrHidden) && c.Stranger():
		return nil, acts.NotPublic()
	case errors.Is(err, brief.ErrHidden):
		return nil, fmt.Errorf("%w: %q may not read the whole chain", api.ErrForbidden, c.Name())
	}
	return g, err
}

func (s *Server) readableCase(ctx context.Context, c *Caller, g *brief.Gathered) ([]*evidence.Record, error) {
	return s.readAll(ctx, c, true, func(yield func(*evidence.Record, error) bool) {
		for placed, err := range s.config.Installation.Ledger.At(ctx, g.Indexes) {
			if !yield(placed.Record, err) {
				return
			}
		}
	})
}

// readAll collects records if the caller may read all of them. The request's account counts them as they are read.
func (s *Server) readAll(ctx context.Context, c *Caller, disclose bool, list iter.Seq2[*evidence.Record, error]) (records []*evidence.Record, err error) {
	for record, err := range list {
		if err == nil {
			err = s.mayRead(ctx, c, record)
		}
		if err == nil {
			err = memoryAccountOf(ctx).Take(ctx, recordFactor*int64(len(record.Canonical())))
		}
		if err == nil && disclose {
			record, err = s.disclosedTo(ctx, c, record)
		}
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

func noChain() error {
	return fmt.Errorf("%w: the log has no chain of this name that is the caller's to read", api.ErrNotFound)
}

// unnamed returns the same error for a missing chain and for one that the caller may not read, because names can be guessed.
func unnamed(err error) error {
	if errors.Is(err, api.ErrForbidden) {
		return noChain()
	}
	return err
}

// readableChain returns a chain if the caller may read all of it: an incomplete one would not verify.
func (s *Server) readableChain(ctx context.Context, c *Caller, chain string, disclose bool) ([]*evidence.Record, error) {
	records, err := s.readAll(ctx, c, disclose, s.config.Installation.Ledger.ChainRecords(ctx, chain))
	if err == nil && len(records) == 0 {
		return nil, s.noSuchChain(c)
	}
	return records, err
}

func (s *Server) noSuchChain(c *Caller) error {
	if c.Stranger() {
		return acts.NotPublic()
	}
	return noChain()
}

// cutHeader says that more records are linked to the requested ones than the bundle holds, and why.
const cutHeader = "Jurat-Cut"

// sendCase answers with gathered records as one bundle, under a file name if one is given. It reads them twice: first
// to check the caller's rights and to compute the tag, then to send them. It holds only a few at a time.
func (s *Server) sendCase(w http.ResponseWriter, r *http.Request, c *Caller, g *brief.Gathered, name string) error {
	file, err := s.config.Installation.Ledger.CaseFile(r.Context(), g.Indexes)
	if err != nil {
		return err
	}
	if g.Cut != nil {
		w.Header().Set(cutHeader, g.Cut.Error())
	}
	first := sha256.New()
	largest, err := s.writeCase(r.Context(), first, c, file, true)
	if err != nil {
		return err
	}
	memoryAccountOf(r.Context()).Keep(32*largest + 1<<20) // until the reader has it, however long that takes
	if name != "" {
		attach(w, name)
	}
	if tagged(w, r, hex.EncodeToString(first.Sum(nil))) {
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	second, out := sha256.New(), bufio.NewWriterSize(w, 64<<10)
	if _, err := s.writeCase(r.Context(), io.MultiWriter(out, second), c, file, false); err != nil {
		return abort(err)
	}
	if !bytes.Equal(first.Sum(nil), second.Sum(nil)) { // one of its records got a time stamp meanwhile
		return abort(errors.New("the records changed while they were sent"))
	}
	_ = out.Flush() // an error means that the caller has disconnected
	return nil
}

// abort ends an answer that has begun, so that its reader cannot take the part for the whole.
func abort(err error) error { return fmt.Errorf("%w: %w", http.ErrAbortHandler, err) }

// writeCase writes the bundle, and returns the size of its largest payload in bytes.
func (s *Server) writeCase(ctx context.Context, to io.Writer, c *Caller, file *ledger.CaseFile, may bool) (largest int64, err error) {
	bundle, err := evidence.NewBundleWriter(to, file.Checkpoint, file.Anchors)
	if err != nil {
		return 0, err
	}
	for record, err := range file.Records(ctx) {
		if err == nil && may {
			err = s.mayRead(ctx, c, record)
		}
		if err == nil {
			largest = max(largest, int64(len(record.Canonical())))
			record, err = s.disclosedTo(ctx, c, record)
		}
		if err == nil {
			err = bundle.Add(record)
		}
		if err != nil {
			return 0, err
		}
	}
	return largest, bundle.Close()
}

// disclosedTo adds a record's disclosures for callers who read it by a right of their own, and not only because it is public.
func (s *Server) disclosedTo(ctx context.Context, c *Caller, record *evidence.Record) (*evidence.Record, error) {
	if len(record.Payload.SealedApart) == 0 {
		return record, nil
	}
	if own, err := s.acts.Own(ctx, c, briefOf(record)); !own || err != nil {
		return record, err
	}
	return s.config.Installation.Apart.Disclose(ctx, record, nil)
}

const (
	pageLimit    = 100
	maxPageLimit = 500
	scanLimit    = 2000 // records to examine for one page
)

// listRecords lists a part of the log, until the page is full or the scan limit is reached. A cursor is an index in the log. It reads no payload.
func (s *Server) listRecords(r *http.Request, c *Caller) (listing api.Listing, err error) {
	from, err := cursorOf(r)
	if err != nil {
		return listing, err
	}
	limit, err := number(r, "limit", pageLimit, maxPageLimit)
	if err != nil {
		return listing, err
	}
	listing.Records = []api.Entry{}
	looked := 0
	for b, err := range s.config.Installation.Ledger.Briefs().List(r.Context(), from, r.URL.Query().Get("chain")) {
		if err != nil {
			return listing, err
		}
		if len(listing.Records) == int(limit) || looked == scanLimit {
			listing.Next = strconv.FormatInt(b.Index, 10)
			break
		}
		looked++
		switch err := s.acts.MayRead(r.Context(), c, b); {
		case err == nil:
			listing.Records = append(listing.Records, api.Entry{Index: b.Index, RecordID: b.RecordID, Digest: b.Digest.String(), ActionType: string(b.Action),
				Role: string(b.Role()), Actor: b.Actor, Timestamp: b.Timestamp, ChainID: b.ChainID, RequestID: b.RequestID})
		case !errors.Is(err, api.ErrForbidden):
			return listing, err
		}
	}
	return listing, nil
}

func cursorOf(r *http.Request) (int64, error) {
	cursor := r.URL.Query().Get("after")
	if cursor == "" {
		return 0, nil
	}
	from, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || from < 0 {
		return 0, fmt.Errorf("%w: after: %q is not a cursor of this server", api.ErrMalformed, cursor)
	}
	return from, nil
}

func inTrial(chain string) bool { return strings.HasPrefix(chain, evidence.TrialPrefix) }
