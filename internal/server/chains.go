package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/acts"
	"jurat/internal/ledger"
	"jurat/internal/ledger/brief"
)

func (s *Server) chainRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/v1/chains/{chain_id}", Kind: API, Shared: true, Heavy: true, Who: Readers, Handle: s.getChain, Doc: Doc{
			Summary: "All records that belong to a chain, to a trial, or to a record with this id, as one bundle that can be verified offline.", Out: Bundle}},
		{Method: "GET", Pattern: "/v1/records", Kind: API, Heavy: true, Who: SignedIn, Handle: inJSON(s.listRecords), Doc: Doc{
			Summary: "The records of the log that the caller may read, in log order. A page can be short or empty; as long as it has a next cursor, there may be more.",
			Out:     api.Listing{}, Query: []Parameter{
				{"after", "the cursor of the previous page"},
				{"limit", "the largest number of records: 1 to 500, by default 100"},
				{"chain", "only records of this chain"}}}},
	}
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

// readableCase returns gathered records with their disclosures.
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

// unnamed returns the same error for a missing chain and for one that the caller may not read, because names can be
// guessed.
func unnamed(err error) error {
	if errors.Is(err, api.ErrForbidden) {
		return noChain()
	}
	return err
}

// readableChain returns a chain, with its disclosures if they are asked for, if the caller may read all of it. An incomplete
// chain would not verify.
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

// disclosedTo adds a record's disclosures for callers who read it by a right of their own. Who reads it only because it is public gets it
// without them.
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

// listRecords lists a part of the log. A cursor is an index in it.
func (s *Server) listRecords(r *http.Request, c *Caller) (listing api.Listing, err error) {
	from, err := cursorOf(r)
	if err != nil {
		return listing, err
	}
	limit, err := number(r, "limit", pageLimit, maxPageLimit)
	if err != nil {
		return listing, err
	}
	return s.list(r.Context(), c, r.URL.Query().Get("chain"), from, int(limit))
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

// list reads from an index of the log until the page is full or the scan limit is reached. It reads no payload.
func (s *Server) list(ctx context.Context, c *Caller, chain string, from int64, limit int) (api.Listing, error) {
	listing, looked := api.Listing{Records: []api.Entry{}}, 0
	for b, err := range s.config.Installation.Ledger.Briefs().List(ctx, brief.Listing{From: from, Chain: chain}) {
		if err != nil {
			return listing, err
		}
		if len(listing.Records) == limit || looked == scanLimit {
			listing.Next = strconv.FormatInt(b.Index, 10)
			break
		}
		looked++
		switch err := s.acts.MayRead(ctx, c, b); {
		case err == nil:
			listing.Records = append(listing.Records, entryOf(b))
		case !errors.Is(err, api.ErrForbidden):
			return listing, err
		}
	}
	return listing, nil
}

func entryOf(b *brief.Brief) api.Entry {
	return api.Entry{Index: b.Index, RecordID: b.RecordID, Digest: b.Digest.String(), ActionType: string(b.Action), Role: string(b.Role()),
		Actor: b.Actor, Timestamp: b.Timestamp, ChainID: b.ChainID, RequestID: b.RequestID}
}

// inTrial reports whether a chain is a trial's.
func inTrial(chain string) bool { return strings.HasPrefix(chain, evidence.TrialPrefix) }
