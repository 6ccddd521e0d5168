package find

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

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
