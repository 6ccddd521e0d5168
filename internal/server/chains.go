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
	"jurat/internal/acts"
	"jurat/internal/ledger"
	"jurat/internal/ledger/brief"
	"jurat/internal/limits"
)

func (s *Server) chainRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/v1/chains/{chain_id}", Kind: API, Heavy: true, Who: Readers, Handle: s.getChain, Doc: Doc{
			Summary: "What belongs to a chain, a trial, or a record that is named by its id, as one bundle that can be verified offline.", Out: Bundle}},
		{Method: "GET", Pattern: "/v1/records", Kind: API, Heavy: true, Who: SignedIn, Handle: s.listRecords, Doc: Doc{
			Summary: "What is in the log, in its order, as far as the caller may read it. Pages can be short or empty; while there is a next cursor, there may be more.",
			Out:     api.Listing{}, Query: []Parameter{
				{"after", "the cursor that the page before gave"},
				{"limit", "how many records at most: 1 to 500, by default 100"},
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

// gather gathers what belongs to a chain or a record, as far as the caller may read it.
func (s *Server) gather(ctx context.Context, c *Caller, name string, from func(context.Context, string, brief.May) (*brief.Gathered, error)) (*brief.Gathered, error) {
	g, err := from(ctx, name, func(ctx context.Context, b *brief.Brief) (bool, error) {
		err := s.acts.MayRead(ctx, c, b)
		if errors.Is(err, api.ErrForbidden) || errors.Is(err, api.ErrSignIn) {
			return false, nil
		}
		return err == nil, err
	})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return nil, s.noSuchChain(c)
	case errors.Is(err, brief.ErrHidden) && c.Stranger():
		return nil, acts.NotPublic()
	case errors.Is(err, brief.ErrHidden):
		return nil, fmt.Errorf("%w: the chain is not one that %q may read as a whole", api.ErrForbidden, c.Name())
	}
	return g, err
}

// readableCase returns gathered records, with the texts that are sealed apart. They are counted as they are read.
func (s *Server) readableCase(ctx context.Context, c *Caller, g *brief.Gathered) (records []*evidence.Record, err error) {
	for placed, err := range s.config.Installation.Ledger.At(ctx, g.Indexes) {
		if err == nil {
			err = s.mayRead(ctx, c, placed.Record)
		}
		if err == nil {
			err = limits.AccountOf(ctx).Take(ctx, limits.RecordFactor*int64(len(placed.Canonical())))
		}
		var record *evidence.Record
		if err == nil {
			record, err = s.disclosedTo(ctx, c, placed.Record)
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
		if records[i], err = s.disclosedTo(ctx, c, record); err != nil {
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
			err = limits.AccountOf(ctx).Take(ctx, limits.RecordFactor*int64(len(record.Canonical())))
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
		return acts.NotPublic()
	}
	return noChain()
}

// cutHeader says of a bundle that more is linked to what was asked for than is in it, and why.
const cutHeader = "Jurat-Cut"

// sendCase answers with gathered records as one bundle, to be kept under a name if there is one. They are read twice, first to see that they may be
// sent and for their tag, and a few are held at a time, however many they are and however slow their reader.
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
	limits.AccountOf(r.Context()).Keep(32*largest + 1<<20) // however long its reader takes
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
	if !bytes.Equal(first.Sum(nil), second.Sum(nil)) { // a time stamp has come to one of its records
		return abort(errors.New("the records changed while they were sent"))
	}
	_ = out.Flush() // who has gone does not hear it
	return nil
}

// abort ends an answer that has begun, so that its reader does not take what it has for whole.
func abort(err error) error { return fmt.Errorf("%w: %w", http.ErrAbortHandler, err) }

// writeCase writes the bundle, and says how many bytes the largest payload in it has.
func (s *Server) writeCase(ctx context.Context, to io.Writer, c *Caller, file *ledger.CaseFile, may bool) (largest int64, err error) {
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

// disclosedTo is a record with the texts that are sealed apart, for whoever has a role; what is public is so without them.
func (s *Server) disclosedTo(ctx context.Context, c *Caller, record *evidence.Record) (*evidence.Record, error) {
	if c.Stranger() || len(record.Payload.SealedApart) == 0 {
		return record, nil
	}
	return s.config.Installation.Apart.Disclose(ctx, record, nil)
}

const (
	pageLimit    = 100
	maxPageLimit = 500
	scanLimit    = 2000 // records that are looked at for one page
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

// list reads on from a place in the log until the page is full or enough was looked at. No payload is read.
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
