package find

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"jurat/evidence"
	"jurat/internal/kit/inorder"
	"jurat/internal/log/ledger"
)

// A Scope limits a search to what its reader may read. Its zero value allows nothing.
type Scope struct {
	All    bool            // everything
	Trials map[string]bool // the trials with these ids
	Agent  string          // the records of this agent; "": of none
}

// Records selects records.
type Records struct {
	Text     string // folded; "": any
	Said     bool   // the actor said the text itself, and was not only given it
	Actor    string // the whole name: who acted, or whose act a recorder saw
	Action   evidence.ActionType
	Chain    string
	Record   string
	From, To time.Time // of what actors claim; To is excluded; zero: without limit
	Oldest   bool      // the oldest first, and not the newest
	After    string    // cursor of the page before
	Limit    int       // of hits; 0: 100

	after int64
}

// RecordParameters are the names of the parameters that ReadRecords takes.
func RecordParameters() []Parameter {
	return []Parameter{
		{"text", "records in which this text occurs, in any letter case: at least three letters, or two characters of a script without spaces"},
		{"said", "true: only where the actor said the text itself, and was not only given it"},
		{"actor", "the name of the agent, juror or person who acted, or of the agent whose act a recorder saw"},
		{"action", "the action type, such as recommendation"},
		{"chain", "only records of this chain"},
		{"record", "the record with this id"},
		{"from", "acts from this time on, as their actors claim it: a date (2026-01-31, in UTC) or an RFC 3339 time"},
		{"to", "acts up to this day, or before this time"},
		{"sort", "newest or oldest first; by default newest"},
		{"after", "the cursor of the previous page"},
		{"limit", "the largest number of hits: 1 to 500, by default 100"},
	}
}

// ReadRecords reads a search from its parameters, which get returns by name, "" if a parameter is not given. Its errors
// are FieldErrors.
func ReadRecords(get func(name string) string) (*Records, error) {
	r := read(get, RecordParameters())
	q := &Records{Text: r.text(), Said: r.oneOf("said", "true", "false") == "true", Actor: get("actor"), Action: evidence.ActionType(get("action")),
		Chain: get("chain"), Record: get("record"), Oldest: r.oneOf("sort", string(Newest), string(Oldest)) == string(Oldest),
		After: get("after"), Limit: r.limit(), after: r.place()}
	if q.From, q.To = r.times(); q.Said && q.Text == "" {
		r.wrong("said", "it needs text")
	}
	return q, r.err
}

// A Hit is a record that a search found.
type Hit struct {
	Place  int64
	Record *evidence.Record
	Passage
	Excerpt string // of the passage, around the text; "": the search has no text
}

// Found is a page of hits.
type Found struct {
	Hits []Hit
	Next string // cursor of the next page; "": there are no more hits
}

// Records returns a page of what a search finds in a scope. It finds what Follow has read. A page can be short or empty: as
// long as it has a cursor, there may be more. may returns an error if the reader may not read a record; it is asked about
// every hit. nil: all may be read. Its errors are those of the file, of the log and of may.
func (x *Index) Records(ctx context.Context, q *Records, in Scope, may func(*evidence.Record) (bool, error)) (*Found, error) {
	s := &searching{Index: x, q: q, limit: cmp.Or(q.Limit, usual), found: &Found{Hits: []Hit{}}, may: may, since: time.Now()}
	if err := s.run(ctx, &in); err != nil {
		return nil, fmt.Errorf("searching the log: %w", err)
	}
	return s.found, nil
}

type searching struct {
	*Index
	q     *Records
	limit int // of hits
	found *Found
	may   func(*evidence.Record) (bool, error)
	looks int
	since time.Time
}

const (
	lookAtOnce = 4  // candidates that are read together
	maxAhead   = 64 // candidates that are opened before it is known whether they are needed: each can be as large as a record may be
)

// run opens candidates on all cores: as many at a time as the page may need.
func (s *searching) run(ctx context.Context, in *Scope) error {
	query, args, err := s.candidates(ctx, in)
	if query == "" || err != nil {
		return err
	}
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for more := true; more; {
		var places []int64
		for more = true; more && len(places) < max(lookAtOnce, min(s.limit, maxAhead)); {
			if more = rows.Next(); more {
				var place int64
				var chain, role, actor string
				if err := rows.Scan(&place, &chain, &role, &actor); err != nil {
					return err
				}
				if in.allows(chain, evidence.Role(role), actor) {
					places = append(places, place)
				}
			}
		}
		open := func(places []int64) ([]look, error) { return s.open(ctx, places) }
		err := inorder.Each(slices.Collect(slices.Chunk(places, lookAtOnce)), open, s.take)
		if errors.Is(err, errMany) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *Scope) allows(chain string, role evidence.Role, actor string) bool {
	return s.All || s.Trials[chain] || s.Agent != "" && role == evidence.RoleAgent && actor == s.Agent
}

// candidates returns the query for all records that a search finds in a scope, and for some that it does not; "": it finds none. Terms
// lead to them, and the row of each record tells whether it has what the terms stand for. Whether it has the text shows when it is opened.
func (s *searching) candidates(ctx context.Context, in *Scope) (query string, args []any, err error) {
	q, from, at, order, after := s.q, "records", "place", " DESC", " < ?"
	terms, where := s.piecesOf(q.Text), []string{"1"}
	add := func(is bool, condition string, values ...any) {
		if is {
			where, args = append(where, condition), append(args, values...)
		}
	}
	for _, c := range []struct {
		kind         byte
		value, where string
	}{{nameOf, q.Actor, "? IN (actor, agent)"}, {actionOf, string(q.Action), "action = ?"}, {chainOf, q.Chain, "chain = ?"}} {
		if add(c.value != "", c.where, c.value); c.value != "" {
			terms = append(terms, s.term(c.kind, c.value))
		}
	}
	add(!q.From.IsZero(), "at >= ?", q.From.UnixMilli())
	add(!q.To.IsZero(), "at < ?", q.To.UnixMilli())
	if q.Record != "" {
		b, err := s.ledger.Briefs().ByID(ctx, q.Record)
		if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrExpired) {
			return "", nil, nil
		}
		if err != nil {
			return "", nil, err
		}
		add(true, "place = ?", b.Index)
	}
	switch {
	case in.All:
	case in.Agent != "":
		terms = append(terms, "("+trialTerm+" OR "+s.term(ownOf, in.Agent)+")")
	case len(in.Trials) == 0:
		return "", nil, nil
	default:
		terms = append(terms, trialTerm)
	}
	if len(terms) > 0 {
		from, at = "words CROSS JOIN records ON place = words.rowid", "words.rowid"
		add(true, "words MATCH ?", strings.Join(terms, " AND "))
	}
	if q.Oldest {
		order, after = "", " > ?"
	}
	add(q.After != "", at+after, q.after)
	return "SELECT place, chain, role, actor FROM " + from + " WHERE " + strings.Join(where, " AND ") + " ORDER BY " + at + order, args, nil
}

// A look is what came of opening a candidate.
type look struct {
	Hit
	has bool
}

// open opens candidates. One that has expired has nothing.
func (s *searching) open(ctx context.Context, places []int64) ([]look, error) {
	rows, err := s.ledger.RowsAt(ctx, places)
	if err != nil {
		return nil, err
	}
	looks := make([]look, len(places))
	for i := range rows {
		l := &looks[slices.Index(places, rows[i].Index)]
		l.Place = rows[i].Index
		if l.Record, err = rows[i].Record(); err != nil && !errors.Is(err, ledger.ErrExpired) {
			return nil, err
		}
		l.has = err == nil && (s.q.Text == "" || s.says(&l.Hit))
	}
	return looks, nil
}

// take takes candidates in their order. It returns errMany when the page is full.
func (s *searching) take(looks []look) (err error) {
	for _, l := range looks {
		if l.has && s.may != nil {
			if l.has, err = s.may(l.Record); err != nil {
				return err
			}
		}
		if l.has {
			s.found.Hits = append(s.found.Hits, l.Hit)
		}
		s.looks++
		if len(s.found.Hits) == s.limit || s.looks == maxLooks || time.Since(s.since) > lookTime {
			s.found.Next = strconv.FormatInt(l.Place, 10)
			return errMany
		}
	}
	return nil
}

func (s *searching) says(hit *Hit) (has bool) {
	for _, p := range Passages(&hit.Record.Payload) {
		if s.q.Said && !p.Said() {
			continue
		}
		if hit.Excerpt, has = Excerpt(p.Text, s.q.Text); has {
			hit.Passage = p
			return true
		}
	}
	return false
}

// A FieldError says which parameter of a search is wrong, and why.
type FieldError struct{ Field, Reason string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// Limits of a search.
const (
	maxText  = 2000 // characters of a text
	maxName  = 500  // characters of any other parameter
	maxLooks = 500  // records that one search opens; not less than maxLimit
	maxLimit = 500  // hits in a page
	usual    = 100  // hits in a page if nothing else is said
	maxQuery = 16   // pieces of a text that are looked up
	lookTime = 5 * time.Second
)

// A Parameter is a parameter of a search.
type Parameter struct{ Name, About string }

// A reader reads the parameters of a search, which get returns by name, "" if a parameter is not given. err is what was wrong first.
type reader struct {
	get func(name string) string
	err error
}

// read refuses parameters that are too long or no text.
func read(get func(string) string, known []Parameter) *reader {
	r := &reader{get: get}
	for _, p := range known {
		value, most := get(p.Name), maxName
		if p.Name == "text" {
			most = maxText
		}
		if utf8.RuneCountInString(value) > most {
			r.wrong(p.Name, "has more than %d characters", most)
		}
		if !utf8.ValidString(value) {
			r.wrong(p.Name, "is not UTF-8")
		}
	}
	return r
}

func (r *reader) wrong(field, format string, args ...any) {
	if r.err == nil {
		r.err = &FieldError{field, fmt.Sprintf(format, args...)}
	}
}

func (r *reader) folded(name string) string { return Fold(r.get(name)) }

// text reads a text that is looked for, folded.
func (r *reader) text() string {
	text, some := r.get("text"), false
	folded := Fold(text)
	pieces(folded, func(piece) { some = true })
	switch {
	case text != "" && folded == "":
		r.wrong("text", "has only white space and control characters")
	case text != "" && !some:
		r.wrong("text", "%q is too short: want at least three letters, or two characters of a script without spaces", text)
	}
	return folded
}

// oneOf reads one of some values; "": none is given.
func (r *reader) oneOf(name string, values ...string) string {
	value := r.get(name)
	want := "one of " + strings.Join(values, ", ")
	if len(values) == 2 {
		want = values[0] + " or " + values[1]
	}
	if value != "" && !slices.Contains(values, value) {
		r.wrong(name, "%q: want %s", value, want)
	}
	return value
}

func (r *reader) limit() int {
	text := r.get("limit")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		r.wrong("limit", "want 1 to %d", maxLimit)
	}
	return n
}

// place reads the cursor of a page: the place at which the page before ended; "": -1.
func (r *reader) place() int64 {
	text := r.get("after")
	if text == "" {
		return -1
	}
	place, err := strconv.ParseInt(text, 10, 64)
	if err != nil || place < 0 {
		r.wrong("after", "%q is not a cursor of this search", text)
	}
	return place
}

// times reads from and to. A date as to includes its day.
func (r *reader) times() (from, to time.Time) {
	from, _ = r.time("from")
	to, day := r.time("to")
	if day {
		to = to.AddDate(0, 0, 1)
	}
	if !to.IsZero() && !from.Before(to) {
		r.wrong("to", "is not after from")
	}
	return from, to
}

func (r *reader) time(name string) (at time.Time, day bool) {
	text := r.get(name)
	if text == "" {
		return at, false
	}
	if at, err := time.Parse(time.DateOnly, text); err == nil {
		return at, true
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		r.wrong(name, "%q: want a date such as 2026-01-31, or an RFC 3339 time such as 2026-01-31T16:15:00Z", text)
	}
	return at, false
}
