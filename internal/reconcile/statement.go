package reconcile

import (
	"strings"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// Statement is what an operator's act says of a comparison: everything but by whom, of which calls, and what the log has of them.
func (r *Report) Statement(e *Export, bytes int) operator.UsageComparisonBody {
	b := operator.UsageComparisonBody{File: operator.UsageFile{Bytes: int64(bytes), Digest: e.SHA256, Format: e.Format}, Skipped: int64(r.Skipped),
		Provider: operator.UsageCount{Input: r.Counted.Input, Output: r.Counted.Output, Requests: r.Counted.Requests}}
	kinds := map[Kind]*int64{Around: &b.Differences.Around, Differs: &b.Differences.Differs, Unclaimed: &b.Differences.Unclaimed, Undecided: &b.Differences.Undecided}
	for i := range r.Findings {
		f := &r.Findings[i]
		*kinds[f.Kind]++
		if len(b.Findings) < operator.MaxUsageFindings {
			b.Findings = append(b.Findings, stated(f))
		}
	}
	b.Scope.From, b.Scope.To, b.Scope.Vendor = Moment(r.From), Moment(r.To), e.Vendor
	return b
}

func stated(f *Finding) operator.UsageFinding {
	s := operator.UsageFinding{Kind: string(f.Kind), Line: int64(f.Line), Record: f.Record, What: f.What}
	if f.ID != "" {
		s.What += " (" + f.ID + ")"
	}
	s.What = shortened(s.What)
	if evidence.CheckName(f.Model) == nil {
		s.Model = f.Model
	}
	if !f.From.IsZero() {
		s.From = Moment(f.From)
	}
	if !f.To.IsZero() {
		s.To = Moment(f.To)
	}
	return s
}

// shortened returns a text that an act may have: valid UTF-8 of at most 1000 bytes.
func shortened(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > 1000 {
		text = strings.ToValidUTF8(text[:1000], "") // a character that was cut is left out
	}
	return text
}

// Moment writes a time to the nanosecond, as acts have it.
func Moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999999Z") }
