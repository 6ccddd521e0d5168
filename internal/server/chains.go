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
	"net/http"
	"strconv"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/ledger"
)

func (s *Server) chainRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/v1/chains/{chain_id}", Kind: API, Heavy: true, Who: Readers, Handle: s.getChain, Doc: Doc{
			Summary: "The records of a chain, or of a trial, as one bundle that can be verified offline.", Out: Bundle}},
		{Method: "GET", Pattern: "/v1/records", Kind: API, Heavy: true, Who: SignedIn, Handle: s.listRecords, Doc: Doc{
			Summary: "What is in the log, in its order, as far as the caller may read it. Pages can be short or empty; while there is a next cursor, there may be more.",
			Out:     api.Listing{}, Query: []Parameter{
				{"after", "the cursor that the page before gave"},
				{"limit", "how many records at most: 1 to 500, by default 100"},
				{"chain", "only records of this chain"}}}},
	}
}

func (s *Server) getChain(w http.ResponseWriter, r *http.Request, c *Caller) error {
	return unnamed(s.sendChain(w, r, c, r.PathValue("chain_id"), ""))
}

func noChain() error {
	return fmt.Errorf("%w: the log has no chain of this name that is the caller's to read", api.ErrNotFound)
}

// unnamed answers alike of a chain that is not there and of one that is not the caller's: names can be guessed.
func unnamed(err error) error {
	if errors.Is(err, api.ErrForbidden) {
		return noChain()
	}
	return err
}

// readableChain returns a chain, with the texts that are sealed apart, if the caller may read all of it: with parts left out it would
// not be verified as it is.
func (s *Server) readableChain(ctx context.Context, c *Caller, chain string) ([]*evidence.Record, error) {
	records, err := s.chainAsSealed(ctx, c, chain)
	if err != nil {
		return nil, err
	}
	for i, record := range records {
		if records[i], err = s.disclosedTo(c, record); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// chainAsSealed returns a chain without the texts that are sealed apart, if the caller may read all of it. It is counted as it is read.
func (s *Server) chainAsSealed(ctx context.Context, c *Caller, chain string) (records []*evidence.Record, err error) {
	for record, err := range s.config.Installation.Ledger.ChainRecords(ctx, chain) {
		if err == nil {
			err = s.mayRead(ctx, c, record)
		}
		if err == nil {
			err = accountOf(ctx).take(ctx, recordFactor*int64(len(record.Canonical())))
		}
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	if len(records) == 0 {
		return nil, s.noSuchChain(c)
	}
	return records, nil
}

func (s *Server) noSuchChain(c *Caller) error {
	if c.Stranger() {
		return notPublic()
	}
	return noChain()
}

// sendChain answers with a chain as one bundle, if the caller may read all of it, to be kept under a name if there is one. It is read twice, first to see that it may be sent and
// for its tag, and a few records of it are held at a time, however long it is and however slow its reader.
func (s *Server) sendChain(w http.ResponseWriter, r *http.Request, c *Caller, chain, name string) error {
	file, err := s.config.Installation.Ledger.ChainFile(r.Context(), chain)
	if errors.Is(err, ledger.ErrNotFound) {
		return s.noSuchChain(c)
	}
	if err != nil {
		return err
	}
	first := sha256.New()
	largest, err := s.writeChain(r.Context(), first, c, file, true)
	if err != nil {
		return err
	}
	accountOf(r.Context()).keep(32*largest + 1<<20) // however long its reader takes
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
	if _, err := s.writeChain(r.Context(), io.MultiWriter(out, second), c, file, false); err != nil {
		return abort(err)
	}
	if !bytes.Equal(first.Sum(nil), second.Sum(nil)) { // a time stamp has come to one of its records
		return abort(errors.New("the chain changed while it was sent"))
	}
	_ = out.Flush() // who has gone does not hear it
	return nil
}

// abort ends an answer that has begun, so that its reader does not take what it has for whole.
func abort(err error) error { return fmt.Errorf("%w: %w", http.ErrAbortHandler, err) }

// writeChain writes the bundle, and says how many bytes the largest payload in it has.
func (s *Server) writeChain(ctx context.Context, to io.Writer, c *Caller, file *ledger.ChainFile, may bool) (largest int64, err error) {
	bundle, err := evidence.NewBundleWriter(to, file.Checkpoint, file.Stamps)
	if err != nil {
		return 0, err
	}
	for record, err := range file.Records(ctx) {
		if err == nil && may {
			err = s.mayRead(ctx, c, record)
		}
		if err == nil {
			largest = max(largest, int64(len(record.Canonical())))
			record, err = s.disclosedTo(c, record)
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

// disclosedTo is a record with the texts that are sealed apart, for whoever has a role; what is public is so without them.
func (s *Server) disclosedTo(c *Caller, record *evidence.Record) (*evidence.Record, error) {
	if c.Stranger() || len(record.Payload.SealedApart) == 0 {
		return record, nil
	}
	return s.config.Installation.Disclose(record, nil)
}

const (
	pageLimit    = 100
	maxPageLimit = 500
	scanLimit    = 2000     // records that are looked at for one page
	scanBytes    = 64 << 20 // and about how many bytes of them
)

// listRecords lists a part of the log. A cursor is a place in it.
func (s *Server) listRecords(w http.ResponseWriter, r *http.Request, c *Caller) error {
	from, err := cursorOf(r)
	if err != nil {
		return err
	}
	limit, err := limitOf(r)
	if err != nil {
		return err
	}
	listing, err := s.list(r.Context(), c, r.URL.Query().Get("chain"), from, limit)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, listing)
}

func cursorOf(r *http.Request) (int64, error) {
	cursor := r.URL.Query().Get("after")
	if cursor == "" {
		return 0, nil
	}
	from, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || from < 0 {
		return 0, fmt.Errorf("%w: after: %q is no cursor of this server", api.ErrMalformed, cursor)
	}
	return from, nil
}

func limitOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return pageLimit, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxPageLimit {
		return 0, fmt.Errorf("%w: limit: want 1 to %d", api.ErrMalformed, maxPageLimit)
	}
	return limit, nil
}

// list reads on from a place in the log until the page is full or enough was looked at.
func (s *Server) list(ctx context.Context, c *Caller, chain string, from int64, limit int) (api.Listing, error) {
	listing, looked := api.Listing{Records: []api.Entry{}}, 0
	for record, err := range s.config.Installation.Ledger.Records(ctx, from) {
		if err != nil {
			return listing, err
		}
		if len(listing.Records) == limit || record.Index-from >= scanLimit || looked >= scanBytes {
			listing.Next = strconv.FormatInt(record.Index, 10)
			break
		}
		looked += len(record.Canonical())
		if chain != "" && record.Payload.ChainID != chain {
			continue
		}
		switch err := s.mayRead(ctx, c, record.Record); {
		case err == nil:
			listing.Records = append(listing.Records, entryOf(record.Record, record.Index))
		case !errors.Is(err, api.ErrForbidden):
			return listing, err
		}
	}
	return listing, nil
}

func entryOf(r *evidence.Record, index int64) api.Entry {
	p := &r.Payload
	return api.Entry{Index: index, RecordID: p.RecordID, Digest: r.Digest.String(), ActionType: string(p.ActionType), Role: string(p.Role()),
		Actor: p.Actor(), Timestamp: p.Timestamp, ChainID: p.ChainID, RequestID: p.RequestID}
}

// inTrial reports whether a chain is a trial's.
func inTrial(chain string) bool { return strings.HasPrefix(chain, evidence.TrialPrefix) }

// readsEverything reports whether somebody's role is to read, whoever said it.
func readsEverything(c *Caller) bool {
	return c.Has(access.Reviewer) || c.Has(access.Auditor) || c.Has(access.Operator)
}
