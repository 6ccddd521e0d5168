package reconcile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
)

// Tokens are what calls took, as the provider counts. Input includes what a cache had.
type Tokens struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

func (t Tokens) plus(o Tokens) Tokens { return Tokens{t.Input + o.Input, t.Output + o.Output} }

// A Bucket is what a provider counts in an interval. To is the first moment after it.
type Bucket struct {
	From, To time.Time
	Model    string // "": the file does not divide by models
	Requests *int64 // nil: the provider does not count them
	Tokens
	Empty bool // the provider counts nothing in the whole interval
	Line  int
}

// A Row is one call, as a provider counts it.
type Row struct {
	ID    string
	Time  time.Time
	Model string
	Tokens
	Line int
}

// An Export is a provider's account of usage: of buckets, or of single calls.
type Export struct {
	Format  string // for people
	Vendor  string // whose protocols it counts: "openai", "anthropic", or "" for any
	SHA256  evidence.Digest
	Buckets []Bucket
	Rows    []Row
}

// mostLines bounds the lines or buckets of a file.
const mostLines = 1_000_000

// mostCounted bounds one count, so that no sum of mostLines of them overflows.
const mostCounted = 1 << 40

// What Google has. Cloud Billing's export has amounts by SKU, whose unit and model its documentation does not state, and corrections in later lines; the datasets of AI Studio's logs have at
// most 1,000 calls, in columns that it does not state.
const (
	googleCalls   = "Of Gemini make a list of calls, with the answer's responseId as request_id, promptTokenCount and toolUsePromptTokenCount as input_tokens, candidatesTokenCount and thoughtsTokenCount as output_tokens"
	googleBilling = "it is an export of Google's Cloud Billing: it has amounts by SKU, and no stated count of tokens by model, so it cannot be compared. " + googleCalls
)

// A Fault is what is wrong with a file, and where.
type Fault struct {
	Line   int
	Field  string // "": the line as a whole
	Reason string
}

func (f *Fault) Error() string {
	if f.Field == "" {
		return fmt.Sprintf("line %d: %s", f.Line, f.Reason)
	}
	return fmt.Sprintf("line %d, field %s: %s", f.Line, f.Field, f.Reason)
}

func fault(line int, field, format string, args ...any) error {
	return &Fault{line, field, fmt.Sprintf(format, args...)}
}

// Parse reads a file. zone is where times without a zone are from; nil: such times are refused. Its errors are a *Fault, but for a file that nobody knows.
func Parse(file []byte, zone *time.Location) (*Export, error) {
	e := &Export{SHA256: evidence.DigestOf(file)}
	text := bytes.TrimPrefix(file, []byte("\xef\xbb\xbf"))
	var err error
	switch trimmed := bytes.TrimLeft(text, " \t\r\n"); {
	case len(trimmed) == 0:
		return nil, errors.New("the file is empty")
	case trimmed[0] == '{' || trimmed[0] == '[':
		err = e.parseJSON(text, zone)
	default:
		err = e.parseCSV(text, zone)
	}
	if err != nil {
		return nil, err
	}
	return e, e.check()
}

// check refuses what no comparison can be made of.
func (e *Export) check() error {
	if len(e.Buckets)+len(e.Rows) == 0 {
		return errors.New("the file counts nothing: it has no line but the first, or no bucket")
	}
	seen := map[string]int{}
	for _, r := range e.Rows {
		if before, is := seen[r.ID]; is {
			return fault(r.Line, "request_id", "%q stands in line %d already", evidence.Abbreviate(r.ID), before)
		}
		seen[r.ID] = r.Line
	}
	slices.SortStableFunc(e.Buckets, func(a, b Bucket) int { return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To)) })
	for i, b := range e.Buckets {
		if !b.From.Before(b.To) {
			return fault(b.Line, "", "the bucket ends before it begins")
		}
		for _, o := range e.Buckets[max(0, i-1):i] {
			if b.From.Before(o.To) && o.From.Before(b.To) && !(b.From.Equal(o.From) && b.To.Equal(o.To)) {
				return fault(b.Line, "", "the bucket overlaps the one in line %d: give one file for each width of buckets", o.Line)
			}
		}
	}
	return nil
}
