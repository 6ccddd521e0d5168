package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
)

// A Call is one call to a model, as a recorder sealed it.
type Call struct {
	Record     evidence.Digest
	Began      time.Time
	Ended      time.Time
	Model      string   // as the caller named it
	Version    string   // as the provider reported it; "": it did not
	RequestIDs []string // the provider's: of the call, and of the answer
	Usage      *Tokens  // nil: the provider did not report it
	Status     int      // of HTTP; 0: there was no answer
	Lost       bool     // the recorder died before the end, and does not know whether the call was forwarded
}

// failed reports whether the provider answered that it did nothing. It may count the request, and no tokens.
func (c *Call) failed() bool { return c.Usage == nil && c.Status >= 400 }

// is reports whether a provider's name of a model is the call's.
func (c *Call) is(model string) bool { return model == "" || c.Version == model || c.Model == model }

// under is the model under which a file that names these models counts the call.
func (c *Call) under(named map[string]bool) string {
	for _, name := range []string{c.Version, c.Model} {
		if named[name] {
			return name
		}
	}
	return cmp.Or(c.Version, c.Model, "unknown")
}

// A Kind says what a finding is about.
type Kind string

// The kinds.
const (
	Around    Kind = "around"    // the provider counts what the log has not
	Unclaimed Kind = "unclaimed" // the log has what the provider does not count
	Differs   Kind = "differs"   // both have the call, with other tokens
	Undecided Kind = "undecided" // on an edge, or without usage: nothing can be said
)

// A Finding names a difference.
type Finding struct {
	Kind   Kind              `json:"kind"`
	Line   int               `json:"line,omitzero"` // of the file
	ID     string            `json:"request_id,omitzero"`
	Record evidence.Digest   `json:"record,omitzero"`
	From   time.Time         `json:"from,omitzero"`
	To     time.Time         `json:"to,omitzero"`
	Model  string            `json:"model,omitzero"`
	Said   *Count            `json:"provider,omitzero"` // what the provider counts
	Log    *Range            `json:"log,omitzero"`      // what the log has
	What   string            `json:"what"`
	Edge   []evidence.Digest `json:"undecided_records,omitzero"` // the calls that may stand in the bucket or not
}

// A Count is requests and tokens.
type Count struct {
	Requests *int64 `json:"requests,omitzero"` // nil: the provider does not count them
	Tokens
}

// A Range is what the log has at least and at most.
type Range struct {
	Requests [2]int64 `json:"requests"`
	Input    [2]int64 `json:"input"`
	Output   [2]int64 `json:"output"`
	Silent   int      `json:"without_usage"` // calls whose usage is unknown: the upper ends do not count their tokens
}

// A Report is what a comparison found.
type Report struct {
	From     time.Time `json:"from"` // the time that was compared
	To       time.Time `json:"to"`
	Calls    int       `json:"calls"`         // of the log in that time
	Silent   int       `json:"without_usage"` // of these
	Failed   int       `json:"failed"`        // of these: the provider answered with an error
	Counted  Count     `json:"provider"`      // all that the provider counts
	Sealed   Tokens    `json:"log"`           // all that the log has, as far as answers say it
	Findings []Finding `json:"findings"`
	Skipped  int       `json:"buckets_skipped,omitzero"` // buckets that are not wholly in the time that was asked for
}

// Worst returns the worst kind that was found: a difference, Undecided, or "" if all agrees.
func (r *Report) Worst() Kind {
	worst := Kind("")
	for _, f := range r.Findings {
		if f.Kind != Undecided {
			return f.Kind
		}
		worst = Undecided
	}
	return worst
}

// An Order says what is compared.
type Order struct {
	From, To time.Time     // zero: all that the file counts
	Slack    time.Duration // how far clocks may differ
}

// Window returns the time for which calls are needed.
func (e *Export) Window(o Order) (from, to time.Time) {
	for _, b := range e.Buckets {
		from, to = wider(from, to, b.From, b.To)
	}
	for _, r := range e.Rows {
		from, to = wider(from, to, r.Time, r.Time.Add(time.Nanosecond))
	}
	if o.From.After(from) || len(e.Rows) > 0 && !o.From.IsZero() {
		from = o.From
	}
	if !o.To.IsZero() && (o.To.Before(to) || len(e.Rows) > 0) {
		to = o.To
	}
	return from, to
}

func wider(from, to, start, end time.Time) (time.Time, time.Time) {
	if from.IsZero() || start.Before(from) {
		from = start
	}
	if end.After(to) {
		to = end
	}
	return from, to
}

// Compare compares an export with the calls of the log that may be in its time.
func Compare(e *Export, calls []Call, o Order) *Report {
	r := &Report{Findings: []Finding{}}
	r.From, r.To = e.Window(o)
	for i := range calls {
		if r.add(&calls[i]) {
			r.Calls++
		}
	}
	if len(e.Rows) > 0 {
		r.rows(e, calls, o)
	} else {
		r.buckets(e, calls, o)
	}
	return r
}

// add counts a call that is in the time compared.
func (r *Report) add(c *Call) bool {
	if !c.Began.Before(r.To) || c.Ended.Before(r.From) {
		return false
	}
	switch {
	case c.Usage != nil:
		r.Sealed = r.Sealed.plus(*c.Usage)
	case c.failed():
		r.Failed++
	default:
		r.Silent++
	}
	return true
}

func (r *Report) find(f Finding) { r.Findings = append(r.Findings, f) }

// rows compares calls one by one.
func (r *Report) rows(e *Export, calls []Call, o Order) {
	byID := map[string]*Call{}
	for i := range calls {
		for _, id := range calls[i].RequestIDs {
			byID[id] = &calls[i]
		}
	}
	claimed, requests := map[*Call]bool{}, int64(0)
	for _, row := range e.Rows {
		if row.Time.Before(r.From) || !row.Time.Before(r.To) {
			continue
		}
		requests++
		r.Counted.Tokens = r.Counted.Tokens.plus(row.Tokens)
		c := byID[row.ID]
		if c == nil {
			r.find(Finding{Kind: Around, Line: row.Line, ID: row.ID, From: row.Time, Model: row.Model, Said: &Count{Tokens: row.Tokens},
				What: "the provider counts this call, and the log has none with its id"})
			continue
		}
		claimed[c] = true
		r.claimed(row, c)
	}
	r.Counted.Requests = &requests
	for i := range calls {
		if c := &calls[i]; !claimed[c] {
			r.unclaimed(c, o.Slack)
		}
	}
}

// claimed compares a call that both have.
func (r *Report) claimed(row Row, c *Call) {
	f := Finding{Line: row.Line, ID: row.ID, Record: c.Record, From: c.Began, Model: row.Model, Said: &Count{Tokens: row.Tokens}}
	switch {
	case !c.is(row.Model):
		f.Kind, f.What = Differs, fmt.Sprintf("the provider counts it for the model %q, the log says %q", evidence.Abbreviate(row.Model), cmp.Or(c.Version, c.Model))
	case c.Usage == nil:
		f.Kind, f.What = Undecided, "the answer that was sealed reports no usage, so the tokens cannot be compared"
	case *c.Usage != row.Tokens:
		f.Kind, f.What = Differs, fmt.Sprintf("the answer that was sealed reports %d tokens in and %d out", c.Usage.Input, c.Usage.Output)
	default:
		return
	}
	r.find(f)
}

// unclaimed judges a call that the provider does not list.
func (r *Report) unclaimed(c *Call, slack time.Duration) {
	if !c.Began.Before(r.To) || c.Ended.Before(r.From) || c.failed() {
		return
	}
	f := Finding{Kind: Unclaimed, Record: c.Record, ID: strings.Join(c.RequestIDs, " "), From: c.Began, Model: cmp.Or(c.Version, c.Model), What: "the log has this call, and the provider does not list it"}
	switch {
	case len(c.RequestIDs) == 0:
		f.Kind, f.What = Undecided, "the call has no id of the provider's, so it cannot be looked for: its answer was lost, or has none"
	case c.Began.Before(r.From.Add(slack)) || c.Ended.After(r.To.Add(-slack)):
		f.Kind, f.What = Undecided, "the call lies at the edge of the time that the file covers"
	}
	r.find(f)
}

// A span is an interval, or several that follow each other.
type span struct {
	from, to time.Time
	buckets  []Bucket
}

// buckets compares sums.
func (r *Report) buckets(e *Export, calls []Call, o Order) {
	var single []span
	for _, b := range e.Buckets {
		if b.From.Before(r.From) || b.To.After(r.To) {
			r.Skipped++
			continue
		}
		r.Counted.Tokens = r.Counted.Tokens.plus(b.Tokens)
		if b.Requests != nil {
			r.Counted.Requests = new(*b.Requests + valueOf(r.Counted.Requests))
		}
		if n := len(single); n == 0 || !single[n-1].from.Equal(b.From) {
			single = append(single, span{from: b.From, to: b.To})
		}
		last := &single[len(single)-1]
		last.buckets = append(last.buckets, b)
	}
	named := map[string]bool{}
	for _, b := range e.Buckets {
		if !b.Empty {
			named[b.Model] = true
		}
	}
	for _, whole := range joined(single) {
		for _, model := range models(whole, named, calls) {
			r.span(whole, single, model, named, calls, o.Slack)
		}
	}
}

func valueOf(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// joined joins intervals that follow each other.
func joined(single []span) (list []span) {
	for _, s := range single {
		if n := len(list); n > 0 && list[n-1].to.Equal(s.from) {
			list[n-1].to, list[n-1].buckets = s.to, append(list[n-1].buckets, s.buckets...)
			continue
		}
		s.buckets = slices.Clone(s.buckets) // which grow, and those of the interval do not
		list = append(list, s)
	}
	return list
}

// models lists by what a span is divided: the models that the file names in it, and those of calls in it. "" stands for all models together.
func models(s span, named map[string]bool, calls []Call) []string {
	if named[""] {
		return []string{""} // the file does not divide
	}
	there := map[string]bool{}
	for _, b := range s.buckets {
		if !b.Empty {
			there[b.Model] = true
		}
	}
	for i := range calls {
		if c := &calls[i]; s.place(c, 0) != outside && !c.failed() {
			there[c.under(named)] = true
		}
	}
	return slices.Sorted(maps.Keys(there))
}

// A place is where a call lies to a span.
type place int

const (
	outside place = iota
	edge
	inside
)

func (s *span) place(c *Call, slack time.Duration) place {
	switch {
	case c.Ended.Before(s.from.Add(-slack)) || !c.Began.Before(s.to.Add(slack)):
		return outside
	case !c.Began.Before(s.from.Add(slack)) && c.Ended.Before(s.to.Add(-slack)):
		return inside
	}
	return edge
}

// span compares what a provider counts for a model with what the log has: all intervals together, and each by itself where that says more.
func (r *Report) span(whole span, single []span, model string, named map[string]bool, calls []Call, slack time.Duration) {
	mine := func(c *Call) bool { return model == "" || c.under(named) == model }
	differ := 0
	for _, s := range single {
		if s.from.Before(whole.from) || s.to.After(whole.to) {
			continue
		}
		if f := s.compare(model, mine, calls, slack); f.Kind != "" && f.Kind != Undecided {
			r.find(f)
			differ++
		}
	}
	if differ > 0 {
		return
	}
	if f := whole.compare(model, mine, calls, slack); f.Kind != "" { // edges between the intervals do not matter for the sum
		r.find(f)
	}
}

// compare compares one span. The finding has no kind if all agrees.
func (s span) compare(model string, mine func(*Call) bool, calls []Call, slack time.Duration) Finding {
	said, line := s.said(model)
	log := &Range{}
	f := Finding{Line: line, From: s.from, To: s.to, Model: model, Said: &said, Log: log}
	for i := range calls {
		c := &calls[i]
		at := s.place(c, slack)
		if at == outside || !mine(c) {
			continue
		}
		if log.add(c, at == inside); at == edge && !c.failed() {
			f.Edge = append(f.Edge, c.Record)
		}
	}
	f.Kind, f.What = log.judge(&said, len(f.Edge))
	return f
}

// said sums up what the provider counts for a model, and returns the line of the first such bucket.
func (s span) said(model string) (sum Count, line int) {
	for _, b := range s.buckets {
		if line == 0 {
			line = b.Line
		}
		if b.Requests != nil && sum.Requests == nil {
			sum.Requests = new(int64(0))
		}
		if b.Empty || model != "" && b.Model != model {
			continue
		}
		sum.Tokens = sum.Tokens.plus(b.Tokens)
		if b.Requests != nil {
			*sum.Requests += *b.Requests
		}
	}
	return sum, line
}

// add takes in a call. sure says that it is in the span.
func (l *Range) add(c *Call, sure bool) {
	if l.Requests[1]++; sure && !c.failed() && !c.Lost {
		l.Requests[0]++
	}
	switch {
	case c.Usage != nil:
		l.Input[1] += c.Usage.Input
		l.Output[1] += c.Usage.Output
		if sure {
			l.Input[0] += c.Usage.Input
			l.Output[0] += c.Usage.Output
		}
	case !c.failed():
		l.Silent++
	}
}

// judge says what follows from what both count. edges is how many calls lie on an edge.
func (l *Range) judge(said *Count, edges int) (Kind, string) {
	why := func() string {
		var parts []string
		if edges > 0 {
			parts = append(parts, fmt.Sprintf("%d calls lie on an edge of the time", edges))
		}
		if l.Silent > 0 {
			parts = append(parts, fmt.Sprintf("%d calls say no usage", l.Silent))
		}
		return strings.Join(parts, ", ")
	}
	switch {
	case said.Requests != nil && *said.Requests > l.Requests[1]:
		return Around, fmt.Sprintf("the provider counts %d requests, and the log has %s", *said.Requests, between(l.Requests))
	case l.Silent == 0 && (said.Input > l.Input[1] || said.Output > l.Output[1]):
		return Around, fmt.Sprintf("the provider counts %d tokens in and %d out, and the log has %s in and %s out", said.Input, said.Output, between(l.Input), between(l.Output))
	case said.Requests != nil && *said.Requests < l.Requests[0]:
		return Unclaimed, fmt.Sprintf("the log has %s requests, and the provider counts %d", between(l.Requests), *said.Requests)
	case said.Input < l.Input[0] || said.Output < l.Output[0]:
		return Unclaimed, fmt.Sprintf("the log has %s tokens in and %s out, and the provider counts %d in and %d out", between(l.Input), between(l.Output), said.Input, said.Output)
	case l.agrees(said, 0) || l.Silent == 0 && l.agrees(said, 1):
		return "", ""
	}
	return Undecided, "the sums may agree or not: " + why()
}

// agrees reports whether the provider counts what the log has, with none (0) or all (1) of the calls on edges.
func (l *Range) agrees(said *Count, end int) bool {
	return said.Input == l.Input[end] && said.Output == l.Output[end] && (said.Requests == nil || *said.Requests >= l.Requests[0] && *said.Requests <= l.Requests[1])
}

func between(n [2]int64) string {
	if n[0] == n[1] {
		return fmt.Sprint(n[0])
	}
	return fmt.Sprintf("%d to %d", n[0], n[1])
}
