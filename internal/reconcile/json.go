package reconcile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A page is of either provider's usage API. Members that do not count tokens or requests are not read.
type page struct {
	Data    []wireBucket `json:"data"`
	HasMore bool         `json:"has_more"`
}

type wireBucket struct {
	StartTime  *int64       `json:"start_time"` // OpenAI: seconds
	EndTime    *int64       `json:"end_time"`
	StartingAt *time.Time   `json:"starting_at"` // Anthropic
	EndingAt   *time.Time   `json:"ending_at"`
	Results    []wireResult `json:"results"`
}

type wireResult struct {
	Model    *string `json:"model"` // null: not divided by models
	Output   int64   `json:"output_tokens"`
	Input    *int64  `json:"input_tokens"` // OpenAI: with what the cache had
	Requests *int64  `json:"num_model_requests"`

	Uncached      *int64 `json:"uncached_input_tokens"` // Anthropic counts each kind apart
	CacheRead     int64  `json:"cache_read_input_tokens"`
	CacheCreation struct {
		Hour    int64 `json:"ephemeral_1h_input_tokens"`
		Minutes int64 `json:"ephemeral_5m_input_tokens"`
	} `json:"cache_creation"`
}

// wireRow is one call, in a file of lines.
type wireRow struct {
	ID     string `json:"request_id"`
	Time   string `json:"time"`
	Model  string `json:"model"`
	Input  *int64 `json:"input_tokens"`
	Output *int64 `json:"output_tokens"`

	SKU jsontext.Value `json:"sku"` // of another file: Google's Cloud Billing
}

// parseJSON reads pages, one after the other or in an array, or lines.
func (e *Export) parseJSON(text []byte, zone *time.Location) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if d.PeekKind() == '[' {
		if _, err := d.ReadToken(); err != nil {
			return placed(err, text, 0)
		}
	}
	results := map[[32]byte]int{} // in which line a result of a page stands
	more := 0                     // the line of the last page, if others follow it
	counted, line := 0, 1         // the lines before a place are counted, and the line in which it is
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return placed(err, text, 0)
		}
		at := int(d.InputOffset()) - len(v)
		line, counted = line+bytes.Count(text[counted:at], []byte("\n")), at
		var shape struct {
			Data jsontext.Value `json:"data"`
		}
		if err := json.Unmarshal(v, &shape); err != nil {
			return placed(err, text, at)
		}
		if shape.Data == nil {
			err = e.row(v, text, at, line, zone)
		} else {
			more, err = e.page(v, text, at, line, results)
		}
		if err != nil {
			return err
		}
		if len(e.Buckets)+len(e.Rows) > mostLines {
			return fault(line, "", "more than %d buckets or calls: cut the file by time", mostLines)
		}
	}
	if more > 0 {
		return fault(more, "has_more", "the provider has more pages: fetch them with next_page, and put all pages into one file")
	}
	return nil
}

// placed turns an error of the JSON library into a Fault. The value began at an offset of the text.
func placed(err error, text []byte, began int) error {
	if s, is := errors.AsType[*json.SemanticError](err); is {
		reason := "it is no " + wanted(s)
		return fault(lineAt(text, began+int(s.ByteOffset)), string(s.JSONPointer), "%s", reason)
	}
	if s, is := errors.AsType[*jsontext.SyntacticError](err); is {
		return fault(lineAt(text, began+int(s.ByteOffset)), string(s.JSONPointer), "it is no JSON: %v", s.Err)
	}
	return fault(lineAt(text, began), "", "%v", err)
}

// wanted says in words what a member must be.
func wanted(s *json.SemanticError) string {
	switch {
	case s.GoType == nil:
		return "value that this member may have"
	case s.GoType.String() == "int64":
		return "whole number"
	case s.GoType.String() == "string":
		return "text"
	case s.GoType.String() == "time.Time":
		return "time like 2026-11-27T00:00:00Z"
	}
	return "value that this member may have"
}

func lineAt(text []byte, offset int) int {
	return 1 + bytes.Count(text[:min(offset, len(text))], []byte("\n"))
}

// page takes in a page of a usage API. It returns its line if there are more pages after it.
func (e *Export) page(v jsontext.Value, text []byte, at, line int, results map[[32]byte]int) (more int, err error) {
	var p page
	if err := json.Unmarshal(v, &p); err != nil {
		return 0, placed(err, text, at)
	}
	var plain struct {
		Data []struct {
			Results []jsontext.Value `json:"results"`
		} `json:"data"`
	}
	if err := json.Unmarshal(v, &plain); err != nil {
		return 0, placed(err, text, at)
	}
	for n, b := range p.Data {
		from, to, err := e.interval(&b, line)
		if err != nil {
			return 0, err
		}
		if len(b.Results) == 0 {
			e.Buckets = append(e.Buckets, Bucket{From: from, To: to, Empty: true, Line: line})
		}
		for m, r := range b.Results {
			if err := onlyOnce(results, from, to, plain.Data[n].Results[m], line); err != nil {
				return 0, err
			}
			one := Bucket{From: from, To: to, Requests: r.Requests, Tokens: Tokens{Output: r.Output}, Line: line}
			if r.Model != nil {
				one.Model = *r.Model
			}
			switch {
			case r.Input != nil:
				one.Input = *r.Input
			case r.Uncached != nil:
				one.Input = *r.Uncached + r.CacheRead + r.CacheCreation.Hour + r.CacheCreation.Minutes
			default:
				return 0, fault(line, "results", "it has neither input_tokens nor uncached_input_tokens: usage of completions or messages is needed, and not of costs or another endpoint")
			}
			for _, n := range []*int64{&r.Output, &r.CacheRead, &r.CacheCreation.Hour, &r.CacheCreation.Minutes, r.Input, r.Uncached, r.Requests} {
				if n != nil && (*n < 0 || *n > mostCounted) {
					return 0, fault(line, "results", "a count is %d: negative, or more than anybody can have used", *n)
				}
			}
			e.Buckets = append(e.Buckets, one)
		}
	}
	if p.HasMore {
		more = line
	}
	return more, nil
}

// onlyOnce refuses a result that stands in the same bucket already, as it does where a page is in the file twice.
func onlyOnce(results map[[32]byte]int, from, to time.Time, value jsontext.Value, line int) error {
	key := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", from.UnixNano(), to.UnixNano(), value))
	if first, is := results[key]; is {
		return fault(line, "results", "the same result of the same bucket stands in the page in line %d already: leave one of them out, or what it has would be counted twice", first)
	}
	results[key] = line
	return nil
}

// interval returns when a bucket begins and ends, and learns whose it is.
func (e *Export) interval(b *wireBucket, line int) (from, to time.Time, err error) {
	vendor := "openai"
	switch {
	case b.StartTime != nil && b.EndTime != nil:
		from, to = time.Unix(*b.StartTime, 0).UTC(), time.Unix(*b.EndTime, 0).UTC()
		e.Format = "OpenAI, usage API"
	case b.StartingAt != nil && b.EndingAt != nil:
		from, to = b.StartingAt.UTC(), b.EndingAt.UTC()
		e.Format, vendor = "Anthropic, usage report", "anthropic"
	default:
		return from, to, fault(line, "data", "a bucket has neither start_time and end_time (OpenAI) nor starting_at and ending_at (Anthropic)")
	}
	if e.Vendor != "" && e.Vendor != vendor {
		return from, to, fault(line, "data", "the file has pages of two providers")
	}
	e.Vendor = vendor
	return from, to, nil
}

// row takes in one call.
func (e *Export) row(v jsontext.Value, text []byte, at, line int, zone *time.Location) error {
	var w wireRow
	if err := json.Unmarshal(v, &w); err != nil {
		return placed(err, text, at)
	}
	when, err := timeOf(w.Time, zone)
	switch {
	case w.SKU != nil:
		return fault(line, "sku", "%s", googleBilling)
	case w.ID == "":
		return fault(line, "request_id", "it is missing: a line has request_id, time, model, input_tokens and output_tokens; a page of a usage API has data. %s", googleCalls)
	case err != nil:
		return fault(line, "time", "%v", err)
	case w.Input == nil || *w.Input < 0 || *w.Input > mostCounted:
		return fault(line, "input_tokens", "it is missing, negative, or more than anybody can have used")
	case w.Output == nil || *w.Output < 0 || *w.Output > mostCounted:
		return fault(line, "output_tokens", "it is missing, negative, or more than anybody can have used")
	}
	e.Format = "calls, JSON lines"
	e.Rows = append(e.Rows, Row{ID: w.ID, Time: when, Model: w.Model, Tokens: Tokens{*w.Input, *w.Output}, Line: line})
	return nil
}
