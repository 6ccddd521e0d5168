package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
)

const (
	// leastText is the least number of characters of a text that is searched for. Shorter texts occur everywhere.
	leastText = 8
	// leastQuote is the least number of characters of a string that counts as a quotation if it is part of the text.
	leastQuote = 16
)

// A Quote is a place where the text that is to be erased, or a part of it, also stands, and that the erasure does not reach.
type Quote struct {
	RecordID string
	Action   evidence.ActionType
	Role     evidence.Role
	Actor    string
	Member   string // pointer to the member of the payload
	Part     bool   // it is only a part of the text
	Reason   string // why the search could not read the place; "": the text stands there
}

// A search searches the log for the texts that are to be erased, and for acts that say that they were erased.
type search struct {
	texts    *Store
	ledger   *ledger.Ledger
	record   *evidence.Record
	pointers []string
	wanted   []string          // trimmed
	erased   map[string]string // the record's erased pointers, and the act that erased each
	quotes   []Quote
}

func (e *Eraser) newSearch(r *evidence.Record, pointers []string) *search {
	return &search{texts: e.Texts, ledger: e.Ledger, record: r, pointers: pointers, erased: map[string]string{}}
}

// values reads the texts to search for. Texts that are already destroyed are skipped.
func (s *search) values(ctx context.Context, done *Erased) error {
	for _, pointer := range s.pointers {
		d, err := s.texts.Open(ctx, s.record.Digest, pointer)
		switch {
		case errors.Is(err, ErrNone):
			continue
		case errors.Is(err, ErrDamaged):
			s.add(s.record, Quote{Member: pointer, Reason: fmt.Sprintf("the text cannot be read, so it cannot be looked for anywhere: %v", err)})
			continue
		case err != nil:
			return fmt.Errorf("field %s: %w", pointer, err)
		}
		before := len(s.wanted)
		for text := range stringsIn(d.Value) {
			if text = strings.TrimSpace(text); utf8.RuneCountInString(text) >= leastText && !slices.Contains(s.wanted, text) {
				s.wanted = append(s.wanted, text)
			}
		}
		if len(s.wanted) == before {
			done.TooShort = append(done.TooShort, pointer)
		}
	}
	return nil
}

// log searches the log from an index on, and returns the index after the last record.
func (s *search) log(ctx context.Context, from int64, progress func(done, total int64)) (int64, error) {
	total, err := s.ledger.Size(ctx)
	if err != nil {
		return 0, err
	}
	at := from
	for r, err := range s.ledger.Records(ctx, from) {
		if err != nil {
			return at, err
		}
		if err := s.look(ctx, r.Record); err != nil {
			return at, err
		}
		if at = r.Index + 1; progress != nil {
			progress(at, max(at, total))
		}
	}
	return at, nil
}

func (s *search) look(ctx context.Context, r *evidence.Record) error {
	if r.Payload.ActionType == evidence.Erasure {
		body, err := operator.ReadErasure(&r.Payload)
		if err != nil {
			return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		for _, pointer := range body.Pointers {
			if body.Record == s.record.Digest && s.erased[pointer] == "" {
				s.erased[pointer] = r.Payload.RecordID
			}
		}
	}
	if len(s.wanted) == 0 {
		return nil
	}
	members, err := r.Members()
	if err != nil {
		return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
	}
	for name, value := range members {
		s.member(r, "/"+name, value, said(name))
	}
	for _, pointer := range r.Payload.SealedApart {
		if r.Digest == s.record.Digest && slices.Contains(s.pointers, pointer) {
			continue
		}
		d, err := s.texts.Open(ctx, r.Digest, pointer)
		switch {
		case err == nil:
			s.member(r, pointer, d.Value, true)
		case !errors.Is(err, ErrNone) && !errors.Is(err, ErrElsewhere):
			s.add(r, Quote{Member: pointer, Reason: err.Error()})
		}
	}
	return nil
}

// said reports whether a member holds what an actor said. Only there do parts of a text count as quotations. Other members hold names,
// which occur in every text about their bearers.
func said(name string) bool {
	return slices.Contains([]string{"prompt", "context", "response", "tools_used", "metadata", "modified_response", "changes"}, name)
}

func (s *search) member(r *evidence.Record, pointer string, value jsontext.Value, parts bool) {
	part := false
	for text := range stringsIn(value) {
		if s.holds(text) {
			s.add(r, Quote{Member: pointer})
			return
		}
		part = part || parts && s.isPart(text)
	}
	if part {
		s.add(r, Quote{Member: pointer, Part: true})
	}
}

// holds reports whether a text contains one of the wanted texts.
func (s *search) holds(text string) bool {
	return slices.ContainsFunc(s.wanted, func(t string) bool { return strings.Contains(text, t) })
}

// isPart reports whether a text is a part of one of the wanted texts.
func (s *search) isPart(text string) bool {
	text = strings.TrimSpace(text)
	return utf8.RuneCountInString(text) >= leastQuote &&
		slices.ContainsFunc(s.wanted, func(t string) bool { return strings.Contains(t, text) })
}

func (s *search) add(r *evidence.Record, q Quote) {
	p := &r.Payload
	q.RecordID, q.Action, q.Role, q.Actor = p.RecordID, p.ActionType, p.Role(), p.Actor()
	if !slices.Contains(s.quotes, q) {
		s.quotes = append(s.quotes, q)
	}
}

// stringsIn iterates over the unescaped strings of a JSON value, member names included.
func stringsIn(value jsontext.Value) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		dec := jsontext.NewDecoder(strings.NewReader(string(value)))
		for {
			token, err := dec.ReadToken()
			if err != nil {
				return // the end; the values of a record are well-formed
			}
			if token.Kind() == '"' && !yield(token.String()) {
				return
			}
		}
	}
}
