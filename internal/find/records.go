package find

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"jurat/evidence"
	"jurat/internal/ledger"
)

// A FieldError says which parameter of a search is wrong, and why.
type FieldError struct{ Field, Reason string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

func wrong(field, format string, args ...any) error {
	return &FieldError{field, fmt.Sprintf(format, args...)}
}

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

// A Parameter is a parameter of a search.
type Parameter struct{ Name, About string }

// ReadRecords reads a search from its parameters, which get returns by name, "" if a parameter is not given. Its errors
// are FieldErrors.
func ReadRecords(get func(name string) string) (*Records, error) {
	if err := sane(get, RecordParameters()); err != nil {
		return nil, err
	}
	q := &Records{Actor: get("actor"), Action: evidence.ActionType(get("action")), Chain: get("chain"), Record: get("record"), After: get("after")}
	var err error
	if q.Text, err = readText(get("text")); err != nil {
		return nil, err
	}
	if q.Said, err = readBool("said", get("said")); err != nil {
		return nil, err
	}
	if q.Said && q.Text == "" {
		return nil, wrong("said", "it needs text")
	}
	if q.From, q.To, err = readTimes(get); err != nil {
		return nil, err
	}
	if q.Limit, err = readLimit(get("limit")); err != nil {
		return nil, err
	}
	switch get("sort") {
	case "", string(Newest):
	case string(Oldest):
		q.Oldest = true
	default:
		return nil, wrong("sort", "%q: want newest or oldest", get("sort"))
	}
	if q.after, err = readCursor(q.After); err != nil {
		return nil, err
	}
	return q, nil
}

// readCursor reads the place at which the page before ended; "": -1.
func readCursor(text string) (place int64, err error) {
	if text == "" {
		return -1, nil
	}
	if place, err = strconv.ParseInt(text, 10, 64); err != nil || place < 0 {
		return 0, wrong("after", "%q is not a cursor of this search", text)
	}
	return place, nil
}

// sane refuses parameters that are too long or no text.
func sane(get func(string) string, known []Parameter) error {
	for _, p := range known {
		value, most := get(p.Name), maxName
		if p.Name == "text" {
			most = maxText
		}
		if len(value) > 4*most || utf8.RuneCountInString(value) > most {
			return wrong(p.Name, "has more than %d characters", most)
		}
		if !utf8.ValidString(value) {
			return wrong(p.Name, "is not UTF-8")
		}
	}
	return nil
}

func readText(text string) (string, error) {
	folded := Fold(text)
	if text != "" && folded == "" {
		return "", wrong("text", "has only white space and control characters")
	}
	some := false
	pieces(folded, func(piece) { some = true })
	if folded != "" && !some {
		return "", wrong("text", "%q is too short: want at least three letters, or two characters of a script without spaces", text)
	}
	return folded, nil
}

func readBool(name, text string) (bool, error) {
	switch text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, wrong(name, "%q: want true or false", text)
}

func readLimit(text string) (int, error) {
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, wrong("limit", "want 1 to %d", maxLimit)
	}
	return n, nil
}

// readTimes reads from and to. A date as to includes its day.
func readTimes(get func(string) string) (from, to time.Time, err error) {
	if from, _, err = readTime("from", get("from")); err != nil {
		return from, to, err
	}
	to, day, err := readTime("to", get("to"))
	if err == nil && day {
		to = to.AddDate(0, 0, 1)
	}
	if err == nil && !to.IsZero() && !from.Before(to) {
		err = wrong("to", "is not after from")
	}
	return from, to, err
}

func readTime(name, text string) (at time.Time, day bool, err error) {
	if text == "" {
		return at, false, nil
	}
	if at, err = time.Parse(time.DateOnly, text); err == nil {
		return at, true, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		return at, false, wrong(name, "%q: want a date such as 2026-01-31, or an RFC 3339 time such as 2026-01-31T16:15:00Z", text)
	}
	return at, false, nil
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
	s := &searching{Index: x, q: q, found: &Found{Hits: []Hit{}}, may: may, since: time.Now()}
	if s.q.Limit == 0 {
		s.q.Limit = usual
	}
	if q.After == "" {
		s.q.after = -1
	}
	if err := s.run(ctx, &in); err != nil {
		return nil, fmt.Errorf("searching the log: %w", err)
	}
	return s.found, nil
}

// searching is one search for records.
type searching struct {
	*Index
	q     *Records
	found *Found
	may   func(*evidence.Record) (bool, error)
	looks int
	since time.Time
}

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
	var places []int64
	for more := true; more; {
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
		if len(places) == lookAtOnce || !more {
			if done, err := s.lookAll(ctx, places); done || err != nil {
				return err
			}
			places = places[:0]
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
	q, at := s.q, "place"
	terms, where := s.piecesOf(q.Text), []string{"1"}
	add := func(condition string, values ...any) { where, args = append(where, condition), append(args, values...) }
	if q.Actor != "" {
		terms = append(terms, s.term(nameOf, q.Actor))
		add("(actor = ? OR agent = ?)", q.Actor, q.Actor)
	}
	if q.Action != "" {
		terms = append(terms, s.term(actionOf, string(q.Action)))
		add("action = ?", string(q.Action))
	}
	if q.Chain != "" {
		terms = append(terms, s.term(chainOf, q.Chain))
		add("chain = ?", q.Chain)
	}
	if !q.From.IsZero() {
		add("at >= ?", q.From.UnixMilli())
	}
	if !q.To.IsZero() {
		add("at < ?", q.To.UnixMilli())
	}
	if q.Record != "" {
		b, err := s.ledger.Briefs().ByID(ctx, q.Record)
		if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrExpired) {
			return "", nil, nil
		}
		if err != nil {
			return "", nil, err
		}
		add("place = ?", b.Index)
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
	from := "records"
	if len(terms) > 0 {
		from, at = "words CROSS JOIN records ON place = words.rowid", "words.rowid"
		add("words MATCH ?", with(terms...))
	}
	order := " DESC"
	if q.Oldest {
		order = ""
	}
	switch {
	case q.after >= 0 && q.Oldest:
		add(at+" > ?", q.after)
	case q.after >= 0:
		add(at+" < ?", q.after)
	}
	return "SELECT place, chain, role, actor FROM " + from + " WHERE " + strings.Join(where, " AND ") + " ORDER BY " + at + order, args, nil
}

// lookAtOnce is how many candidates are read together. Each can be as large as a record may be.
const lookAtOnce = 4

// lookAll opens candidates in their order, and reports whether the page is full.
func (s *searching) lookAll(ctx context.Context, places []int64) (done bool, err error) {
	if len(places) == 0 {
		return false, nil
	}
	records, err := s.open(ctx, places)
	if err != nil {
		return false, err
	}
	for i, record := range records {
		if done, err := s.look(places[i], record); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// look takes a candidate, nil if it cannot be read, and reports whether the page is full.
func (s *searching) look(place int64, record *evidence.Record) (done bool, err error) {
	hit, err := s.check(place, record)
	if err != nil {
		return false, err
	}
	if hit != nil {
		s.found.Hits = append(s.found.Hits, *hit)
	}
	s.looks++
	if len(s.found.Hits) < s.q.Limit && s.looks < maxLooks && time.Since(s.since) < lookTime {
		return false, nil
	}
	s.found.Next = strconv.FormatInt(place, 10)
	return true, nil
}

// check returns a hit if the record has what is looked for, and nil otherwise.
func (s *searching) check(place int64, record *evidence.Record) (*Hit, error) {
	if record == nil {
		return nil, nil
	}
	hit := &Hit{Place: place, Record: record}
	if s.q.Text != "" {
		has := false
		for _, p := range Passages(&record.Payload) {
			if s.q.Said && !p.Said() {
				continue
			}
			if hit.Excerpt, has = Excerpt(p.Text, s.q.Text); has {
				hit.Passage = p
				break
			}
		}
		if !has {
			return nil, nil
		}
	}
	if s.may != nil {
		if ok, err := s.may(record); !ok || err != nil {
			return nil, err
		}
	}
	return hit, nil
}

// open reads the records at these places. A record is nil if it has expired.
func (x *Index) open(ctx context.Context, places []int64) ([]*evidence.Record, error) {
	rows, err := x.ledger.RowsAt(ctx, places)
	if err != nil {
		return nil, err
	}
	records := make([]*evidence.Record, len(places))
	for i := range rows {
		record, err := rows[i].Record()
		switch {
		case err == nil:
			records[slices.Index(places, rows[i].Index)] = record
		case !errors.Is(err, ledger.ErrExpired):
			return nil, err
		}
	}
	return records, nil
}
