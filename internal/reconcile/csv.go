package reconcile

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"jurat/evidence"
)

// A sheet is a file of CSV that is being read.
type sheet struct {
	columns map[string]int
	cells   []string
	lines   map[[32]byte]int // where a line with the same cells stands
	line    int
	err     error // the first thing that is wrong in the line
}

// parseCSV reads a file of either provider's console, or of calls. Tabs may stand in the place of commas.
func (e *Export) parseCSV(text []byte, zone *time.Location) error {
	r := csv.NewReader(bytes.NewReader(text))
	if head, _, _ := bytes.Cut(text, []byte("\n")); !bytes.Contains(head, []byte(",")) && bytes.Contains(head, []byte("\t")) {
		r.Comma = '\t'
	}
	head, err := r.Read()
	if err != nil {
		return badCSV(err)
	}
	s := &sheet{columns: map[string]int{}, lines: map[[32]byte]int{}}
	for i, name := range head {
		s.columns[strings.ToLower(strings.TrimSpace(name))] = i
	}
	take, err := e.taker(s, zone)
	if err != nil {
		return err
	}
	for {
		s.cells, err = r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return badCSV(err)
		}
		s.line, _ = r.FieldPos(0)
		before := len(e.Buckets)
		if take(); s.err != nil {
			return s.err
		}
		if err := e.once(s, before); err != nil {
			return err
		}
		if len(e.Buckets)+len(e.Rows) > mostLines {
			return fault(s.line, "", "more than %d lines: cut the file by time", mostLines)
		}
	}
}

func badCSV(err error) error {
	if p, is := errors.AsType[*csv.ParseError](err); is {
		return fault(p.Line, "", "it is no CSV: %v", p.Err)
	}
	return fault(1, "", "it is no CSV: %v", err)
}

// once refuses a line that counts something and stands there already: it would be counted twice. before is how many buckets there were before it.
func (e *Export) once(s *sheet, before int) error {
	if len(e.Buckets) == before || e.Buckets[before].Empty {
		return nil
	}
	h := sha256.New()
	for _, cell := range s.cells {
		fmt.Fprintf(h, "%d:%s", len(cell), cell)
	}
	sum := [32]byte(h.Sum(nil))
	if first, is := s.lines[sum]; is {
		return fault(s.line, "", "the same line stands in line %d already: leave one of them out, or what it has would be counted twice", first)
	}
	s.lines[sum] = s.line
	return nil
}

// taker finds out what a file is by its columns, and returns what takes in a line.
func (e *Export) taker(s *sheet, zone *time.Location) (func(), error) {
	switch {
	case s.has("usage_date_utc", "model_version", "usage_output_tokens"):
		e.Format, e.Vendor = "Anthropic, Console", "anthropic"
		return func() { e.consoleDay(s) }, nil
	case s.has("start_time", "end_time", "input_tokens", "output_tokens"):
		e.Format, e.Vendor = "OpenAI, usage dashboard", "openai"
		return func() { e.dashboardBucket(s) }, nil
	case s.has("request_id", "time", "input_tokens", "output_tokens"):
		e.Format = "calls, CSV"
		return func() {
			e.Rows = append(e.Rows, Row{ID: s.text("request_id"), Time: s.time("time", zone), Model: s.cell("model"), Tokens: Tokens{s.number("input_tokens"), s.number("output_tokens")}, Line: s.line})
		}, nil
	case s.has("sku.description") || s.has("sku.id") || s.has("sku description") || s.has("sku id"):
		return nil, fault(1, "", "%s", googleBilling)
	case s.has("start_time", "end_time"):
		return nil, fault(1, "", "it has buckets without input_tokens and output_tokens: export the usage of completions, and choose a time in which there was some")
	}
	return nil, fault(1, "", "the columns are of no file that is known: OpenAI's usage dashboard has start_time and input_tokens, Anthropic's Console usage_date_utc and model_version, a list of calls request_id, time, model, input_tokens and output_tokens. %s", googleCalls)
}

// consoleDay takes in a line of Anthropic's Console: a day in UTC.
func (e *Export) consoleDay(s *sheet) {
	day, err := time.Parse(time.DateOnly, s.text("usage_date_utc"))
	if err != nil {
		s.wrong("usage_date_utc", "%q is no date like 2026-11-27", s.cell("usage_date_utc"))
	}
	b := Bucket{From: day, To: day.AddDate(0, 0, 1), Model: s.text("model_version"), Tokens: Tokens{Output: s.number("usage_output_tokens")}, Line: s.line}
	for _, kind := range []string{"usage_input_tokens_no_cache", "usage_input_tokens_cache_write_5m", "usage_input_tokens_cache_write_1h", "usage_input_tokens_cache_read"} {
		b.Input += s.number(kind)
	}
	e.Buckets = append(e.Buckets, b)
}

// dashboardBucket takes in a line of OpenAI's usage dashboard. A bucket in which nothing was used has a line without counts.
func (e *Export) dashboardBucket(s *sheet) {
	b := Bucket{From: time.Unix(s.number("start_time"), 0).UTC(), To: time.Unix(s.number("end_time"), 0).UTC(), Model: s.cell("model"), Line: s.line}
	if b.Model == "" && s.cell("input_tokens") == "" && s.cell("output_tokens") == "" {
		b.Empty = true
		e.Buckets = append(e.Buckets, b)
		return
	}
	b.Tokens = Tokens{s.number("input_tokens"), s.number("output_tokens")}
	if s.cell("num_model_requests") != "" {
		b.Requests = new(s.number("num_model_requests"))
	}
	e.Buckets = append(e.Buckets, b)
}

func (s *sheet) has(names ...string) bool {
	for _, name := range names {
		if _, is := s.columns[name]; !is {
			return false
		}
	}
	return true
}

func (s *sheet) wrong(field, format string, args ...any) {
	if s.err == nil {
		s.err = fault(s.line, field, format, args...)
	}
}

func (s *sheet) cell(name string) string {
	i, is := s.columns[name]
	if !is || i >= len(s.cells) {
		return ""
	}
	return strings.TrimSpace(s.cells[i])
}

func (s *sheet) text(name string) string {
	v := s.cell(name)
	if v == "" {
		s.wrong(name, "it is missing")
	}
	return v
}

// number reads a whole number from 0. OpenAI's dashboard writes counts of requests as 3.0.
func (s *sheet) number(name string) int64 {
	v := s.cell(name)
	n, err := strconv.ParseInt(strings.TrimSuffix(v, ".0"), 10, 64)
	if err != nil || n < 0 || n > mostCounted {
		s.wrong(name, "%q is no whole number", evidence.Abbreviate(v))
	}
	return n
}

func (s *sheet) time(name string, zone *time.Location) time.Time {
	at, err := timeOf(s.cell(name), zone)
	if err != nil {
		s.wrong(name, "%v", err)
	}
	return at
}

// timeOf reads a time: RFC 3339, or without a zone if the reader said which.
func timeOf(text string, zone *time.Location) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC(), nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", time.DateTime} {
		local, err := time.ParseInLocation(layout, text, time.UTC)
		switch {
		case err != nil:
		case zone == nil:
			return time.Time{}, fmt.Errorf("%q has no time zone: --zone says which, such as UTC or Europe/Berlin", evidence.Abbreviate(text))
		default:
			return time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), local.Nanosecond(), zone).UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time like 2026-11-27T14:30:00Z", evidence.Abbreviate(text))
}
