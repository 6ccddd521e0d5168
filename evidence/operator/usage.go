package operator

import (
	"cmp"
	"errors"
	"fmt"

	"jurat/evidence"
)

// MaxUsageFindings is how many differences one act lists. Differences counts all of them.
const MaxUsageFindings = 100

// maxUsageText bounds what a difference says, in bytes.
const maxUsageText = 1000

// UsageComparisonBody is the response of a usage_comparison: the operator compared the calls to models that recorders had sealed with a
// provider's own account of usage. The log's side can be recomputed from the records; the provider's side is the operator's word.
type UsageComparisonBody struct {
	By          string           `json:"by"`
	Calls       UsageCalls       `json:"calls"` // the log's side
	Differences UsageDifferences `json:"differences"`
	File        UsageFile        `json:"file"`               // the provider's account
	Findings    []UsageFinding   `json:"findings,omitempty"` // the first MaxUsageFindings differences
	KeyHeld     bool             `json:"key_held,omitzero"`  // the operator states that agents had no key of the provider's
	Provider    UsageCount       `json:"provider"`           // the provider's side
	Scope       UsageScope       `json:"scope"`
	Skipped     int64            `json:"skipped,omitzero"` // buckets of the file that are not wholly in the time
}

// A UsageScope says which calls were compared: those of the log's first Size records that began before To and had not ended before From.
type UsageScope struct {
	Agent   string `json:"agent,omitzero"` // "": every agent
	From    string `json:"from"`
	Origin  string `json:"origin,omitzero"` // "": every address
	Size    int64  `json:"size"`
	SlackMS int64  `json:"slack_ms"` // how far clocks may differ. A call that was sealed further before From is not looked at
	To      string `json:"to"`
	Vendor  string `json:"vendor,omitzero"` // "anthropic", "gemini" or "openai"; "": all of them
}

// UsageCalls is what the log has of a scope.
type UsageCalls struct {
	Count   int64           `json:"count"`
	Digest  evidence.Digest `json:"digest"` // of the digests of the records, 32 bytes each, in the order of the log
	Failed  int64           `json:"failed"` // answered by an error, without usage
	Input   int64           `json:"input"`  // tokens
	Output  int64           `json:"output"`
	Unknown int64           `json:"unknown"` // the answer says no usage
}

// UsageCount is what a provider counts.
type UsageCount struct {
	Input    int64  `json:"input"`
	Output   int64  `json:"output"`
	Requests *int64 `json:"requests,omitzero"` // nil: it does not count them
}

// UsageDifferences counts the differences by their kind.
type UsageDifferences struct {
	Around    int64 `json:"around"`    // the provider counts what the log has not
	Differs   int64 `json:"differs"`   // both have a call, with other tokens
	Unclaimed int64 `json:"unclaimed"` // the log has what the provider does not count
	Undecided int64 `json:"undecided"` // nothing can be said
}

// All returns how many there are.
func (d *UsageDifferences) All() int64 { return d.Around + d.Differs + d.Unclaimed + d.Undecided }

// UsageFile names the provider's account. Its text may stand in the context of the act, sealed apart.
type UsageFile struct {
	Bytes  int64           `json:"bytes"`
	Digest evidence.Digest `json:"digest"`
	Format string          `json:"format"`
}

// A UsageFinding is one difference.
type UsageFinding struct {
	From   string          `json:"from,omitzero"`
	Kind   string          `json:"kind"`
	Line   int64           `json:"line,omitzero"` // of the file
	Model  string          `json:"model,omitzero"`
	Record evidence.Digest `json:"record,omitzero"` // of a call
	To     string          `json:"to,omitzero"`
	What   string          `json:"what"`
}

// ReadUsageComparison reads a usage_comparison. It returns an error if the act stands in a chain or breaks a rule.
func ReadUsageComparison(p *evidence.Payload) (*UsageComparisonBody, error) {
	if p.ActionType != evidence.UsageComparison || p.ChainID != "" {
		return nil, fmt.Errorf("%s in chain %q is not a %s, which is in no chain", p.ActionType, p.ChainID, evidence.UsageComparison)
	}
	body, err := Read[UsageComparisonBody](p)
	if err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
	}
	return body, nil
}

func (b *UsageComparisonBody) check() error {
	d, c := &b.Differences, &b.Calls
	err := b.Scope.check()
	counts := []int64{c.Count, c.Failed, c.Input, c.Output, c.Unknown, d.Around, d.Differs, d.Unclaimed, d.Undecided, b.File.Bytes, b.Provider.Input, b.Provider.Output, b.Skipped}
	if b.Provider.Requests != nil {
		counts = append(counts, *b.Provider.Requests)
	}
	for _, n := range counts {
		if n < 0 || n > MaxEntries {
			err = cmp.Or(err, fmt.Errorf("a count is %d, want 0 to %d", n, int64(MaxEntries)))
		}
	}
	switch {
	case err != nil:
		return err
	case b.By == "":
		return errors.New("by is empty")
	case b.File.Digest.IsZero() || c.Digest.IsZero():
		return errors.New("file or calls has no digest")
	case c.Failed > c.Count || c.Unknown > c.Count-c.Failed:
		return errors.New("calls: more failed or unknown than there are")
	case c.Count > b.Scope.Size:
		return errors.New("calls: more than the log had records")
	case int64(len(b.Findings)) > MaxUsageFindings || int64(len(b.Findings)) > d.All():
		return fmt.Errorf("findings: %d, want at most %d, and no more than differences says", len(b.Findings), MaxUsageFindings)
	}
	if err := evidence.CheckName(b.File.Format); err != nil {
		return fmt.Errorf("file: format: %w", err)
	}
	for i := range b.Findings {
		if err := b.Findings[i].check(); err != nil {
			return fmt.Errorf("findings: element %d: %w", i, err)
		}
	}
	return nil
}

func (s *UsageScope) check() error {
	from, err := evidence.ParseTime(s.From)
	if err != nil {
		return fmt.Errorf("scope: from: %w", err)
	}
	to, err := evidence.ParseTime(s.To)
	if err != nil {
		return fmt.Errorf("scope: to: %w", err)
	}
	for _, name := range []string{s.Agent, s.Origin} {
		if name != "" {
			err = cmp.Or(err, evidence.CheckName(name))
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("scope: agent or origin: %w", err)
	case !from.Before(to):
		return errors.New("scope: to is not after from")
	case s.Size < 1 || s.Size > MaxEntries:
		return fmt.Errorf("scope: size: %d, want 1 to %d", s.Size, int64(MaxEntries))
	case s.SlackMS < 0 || s.SlackMS > maxSlackMS:
		return fmt.Errorf("scope: slack_ms: %d, want 0 to %d", s.SlackMS, maxSlackMS)
	case s.Vendor != "" && s.Vendor != "anthropic" && s.Vendor != "gemini" && s.Vendor != "openai":
		return fmt.Errorf("scope: vendor: unknown %q", evidence.Abbreviate(s.Vendor))
	}
	return nil
}

// maxSlackMS is how far clocks may differ at most: a day.
const maxSlackMS = 24 * 60 * 60 * 1000

func (f *UsageFinding) check() error {
	for _, at := range []string{f.From, f.To} {
		if _, err := evidence.ParseTime(at); at != "" && err != nil {
			return fmt.Errorf("from or to: %w", err)
		}
	}
	if err := evidence.CheckName(f.Model); f.Model != "" && err != nil {
		return fmt.Errorf("model: %w", err)
	}
	switch {
	case f.Kind != "around" && f.Kind != "differs" && f.Kind != "unclaimed" && f.Kind != "undecided":
		return fmt.Errorf("kind: unknown %q", evidence.Abbreviate(f.Kind))
	case f.Line < 0 || f.Line > MaxEntries:
		return fmt.Errorf("line: %d", f.Line)
	case f.What == "" || len(f.What) > maxUsageText:
		return fmt.Errorf("what: %d bytes, want 1 to %d", len(f.What), maxUsageText)
	}
	return nil
}
