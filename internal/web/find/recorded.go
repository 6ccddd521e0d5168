package find

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
	"jurat/internal/tap/convo"
)

// A Sight sums up what recorders saw in a chain.
type Sight struct {
	Agents    []string           `json:"agents"`    // whose acts they saw
	Recorders []string           `json:"recorders"` // who saw them
	Models    []string           `json:"models"`    // those that answered, by the providers' word; otherwise those that were asked
	Protocols []string           `json:"protocols"`
	Vantages  []evidence.Vantage `json:"vantages"`

	First int64 `json:"first"` // when the first act began, in milliseconds
	Last  int64 `json:"last"`  // when the last act ended

	Acts    int64 `json:"acts"`
	Calls   int64 `json:"calls"`            // of models, among the acts
	Broken  int64 `json:"broken,omitzero"`  // acts that did not come to their end
	Lost    int64 `json:"lost,omitzero"`    // of these, those during which the recorder died
	Input   int64 `json:"input,omitzero"`   // tokens read, by the providers' count
	Output  int64 `json:"output,omitzero"`  // tokens written
	Counted int64 `json:"counted,omitzero"` // calls whose tokens are known
}

// mostNamed bounds each list of a Sight. A chain in which more names occur is not listed with all of them.
const mostNamed = 20

func (s *Sight) plus(o *Sight) {
	s.Agents, s.Recorders, s.Models = some(s.Agents, o.Agents), some(s.Recorders, o.Recorders), some(s.Models, o.Models)
	s.Protocols, s.Vantages = some(s.Protocols, o.Protocols), some(s.Vantages, o.Vantages)
	s.First, s.Last = min(s.First, o.First), max(s.Last, o.Last)
	s.Acts, s.Calls, s.Broken, s.Lost = s.Acts+o.Acts, s.Calls+o.Calls, s.Broken+o.Broken, s.Lost+o.Lost
	s.Input, s.Output, s.Counted = s.Input+o.Input, s.Output+o.Output, s.Counted+o.Counted
}

func some[T cmp.Ordered](a, b []T) []T {
	all := union(a, b)
	return all[:min(len(all), mostNamed)]
}

func union[T cmp.Ordered](a, b []T) []T {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Kinds of notes.
const (
	missedNote = "missed"
	eventNote  = "event"
	triedNote  = "tried"
	erasedNote = "erased"
)

// note takes from a record what the index has of the work of recorders, and of erasures. What cannot be read is left out: others say what
// is wrong with it.
func (d *doc) note(p *evidence.Payload) {
	switch {
	case p.Observed != nil:
		d.agent = p.Observed.Agent
		if p.ChainID != "" {
			d.Sight = sightOf(p)
		}
	case p.ActionType == evidence.RecorderEvent:
		d.noteEvent(p)
	case p.ActionType == evidence.Submission:
		for _, chain := range chainsIn(p) {
			d.notes = append(d.notes, note{kind: triedNote, name: chain, value: p.ChainID})
		}
	case p.ActionType == evidence.Erasure:
		if e, err := operator.Read[operator.ErasureBody](p); err == nil {
			for _, pointer := range e.Pointers {
				d.notes = append(d.notes, note{kind: erasedNote, name: e.Record.String(), value: pointer})
			}
		}
	}
}

// noteEvent notes an event that is more than a sign of life, and what the recorder missed by it.
func (d *doc) noteEvent(p *evidence.Payload) {
	missed := func(agent, began string, calls int64) {
		if at, err := evidence.ParseTime(began); err == nil {
			d.notes = append(d.notes, note{missedNote, agent, at.UnixMilli(), strconv.FormatInt(calls, 10)})
		}
	}
	e, err := observed.ParseEvent(p.Response)
	if err != nil || e.Event != observed.Heartbeat {
		d.notes = append(d.notes, note{kind: eventNote, name: d.actor})
	}
	switch {
	case err != nil:
	case e.Event == observed.LostInCrash:
		missed(e.Agent, e.Began, 1)
	default:
		for _, m := range e.Missed {
			missed(m.Agent, m.Minute, m.Calls)
		}
	}
}

func sightOf(p *evidence.Payload) *Sight {
	o := p.Observed
	s := &Sight{Agents: []string{o.Agent}, Recorders: []string{p.Actor()}, Protocols: []string{o.Protocol}, Vantages: []evidence.Vantage{o.Vantage}, Acts: 1}
	if model := cmp.Or(p.ModelVersion, p.Model); model != "" {
		s.Models = []string{model}
	}
	began, err := evidence.ParseTime(o.Began)
	if err != nil {
		began = p.Time()
	}
	s.First = began.UnixMilli()
	if s.Last = s.First; o.EndedMS != nil {
		s.Last += *o.EndedMS
	}
	if p.ActionType == evidence.ObservedCall {
		s.Calls = 1
	}
	if o.Ended != evidence.Complete {
		s.Broken = 1
	}
	if o.Ended == evidence.LostInCrash {
		s.Lost = 1
	}
	if used, known := convo.ReadUsage(o.Usage); known {
		s.Input, s.Output, s.Counted = used.Input, used.Output, 1
	}
	return s
}

// chainsIn lists the chains of the records that are the evidence of a trial.
func chainsIn(p *evidence.Payload) (chains []string) {
	if slices.Contains(p.SealedApart, "/response") {
		return nil
	}
	var on struct {
		Records []struct {
			Payload struct {
				ChainID  string    `json:"chain_id"`
				Observed *struct{} `json:"observed"`
			} `json:"payload"`
		} `json:"records"`
	}
	if json.Unmarshal(p.Response, &on) != nil {
		return nil
	}
	for _, r := range on.Records {
		if r.Payload.Observed != nil && r.Payload.ChainID != "" {
			chains = append(chains, r.Payload.ChainID)
		}
	}
	slices.Sort(chains)
	return slices.Compact(chains)
}

// Recordings selects chains in which recorders saw something.
type Recordings struct {
	Agent    string    // a part of an agent's name, folded
	Text     string    // folded, in any record of the chain; "": any
	From, To time.Time // chains with acts in this time; To is excluded; zero: without limit
	After    string    // cursor of the page before
	Limit    int       // of chains; 0: 100

	after int64
}

// RecordingParameters are the names of the parameters that ReadRecordings takes.
func RecordingParameters() []Parameter {
	return []Parameter{
		{"agent", "chains of agents with this in their name, in any letter case"},
		{"text", "chains in which this text occurs, in any letter case: at least three letters, or two characters of a script without spaces; what was sealed apart is not found"},
		{"from", "chains with acts from this time on, by the recorder's clock: a date (2026-01-31, in UTC) or an RFC 3339 time"},
		{"to", "chains with acts up to this day, or before this time"},
		{"after", "the cursor of the previous page"},
		{"limit", "the largest number of chains: 1 to 500, by default 100"},
	}
}

// ReadRecordings reads a search from its parameters, which get returns by name, "" if a parameter is not given. Its errors are FieldErrors.
func ReadRecordings(get func(name string) string) (*Recordings, error) {
	r := read(get, RecordingParameters())
	q := &Recordings{Agent: r.folded("agent"), Text: r.text(), After: get("after"), Limit: r.limit(), after: r.place()}
	q.From, q.To = r.times()
	return q, r.err
}

// A Recording is a chain in which recorders saw something.
type Recording struct {
	Chain string
	Sight
	Records int64    // in the chain, of every kind
	Missed  int64    // calls of its agents that passed without a record in its time, by the word of recorders
	Trials  []string // that judged records of it, the oldest first
	Place   int64    // of its last record in the log
}

// FoundRecordings is a page of chains.
type FoundRecordings struct {
	Recordings []Recording
	Next       string // cursor of the next page; "": this is the last one
}

// maxSummed is how many chains one search looks at, and atOnce how many of them together.
const (
	maxSummed = 5_000
	atOnce    = 128
)

// Recordings returns a page of the chains that a search finds, the one with the newest record first. A page can be short or empty: as long
// as it has a cursor, there may be more. Its errors are those of the file and of the log.
func (x *Index) Recordings(ctx context.Context, q *Recordings) (found *FoundRecordings, err error) {
	defer fault.While(&err, "searching what recorders saw")
	found = &FoundRecordings{Recordings: []Recording{}}
	var places map[string][]int64
	if q.Text != "" {
		if places, err = x.withText(ctx, recordedTerm, q.Text); len(places) == 0 || err != nil {
			return found, err
		}
	}
	before := q.after
	if before < 0 || q.After == "" {
		before = math.MaxInt64
	}
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if !q.From.IsZero() {
		from = q.From.UnixMilli()
	}
	if !q.To.IsZero() {
		to = q.To.UnixMilli()
	}
	limit, looks, since := cmp.Or(q.Limit, usual), 0, time.Now()
	for {
		chains, err := x.chains(ctx, "last < ? AND instr(agents, ?) AND latest >= ? AND earliest < ? ORDER BY last DESC LIMIT ?",
			before, q.Agent, from, to, atOnce)
		if len(chains) == 0 || err != nil {
			return found, err
		}
		for i := range chains {
			r := &chains[i]
			if before = r.Place; q.Text != "" && len(places[r.Chain]) == 0 {
				continue
			}
			has := q.Text == ""
			if !has {
				has, err = x.anyHas(ctx, places[r.Chain], q.Text)
			}
			if has && err == nil {
				err = x.complete(ctx, r)
				found.Recordings = append(found.Recordings, *r)
			}
			if err != nil {
				return nil, err
			}
			if looks++; len(found.Recordings) == limit || looks == maxSummed || time.Since(since) > lookTime {
				found.Next = strconv.FormatInt(before, 10)
				return found, nil
			}
		}
	}
}

// Recording returns what recorders saw in a chain; nil: nothing. Its errors are those of the file.
func (x *Index) Recording(ctx context.Context, chain string) (_ *Recording, err error) {
	defer fault.While(&err, "looking for what recorders saw in chain %q", chain)
	chains, err := x.chains(ctx, "chain = ? AND last IS NOT NULL", chain)
	if len(chains) == 0 || err != nil {
		return nil, err
	}
	return &chains[0], x.complete(ctx, &chains[0])
}

// chains returns chains in which recorders saw something, without what complete adds.
func (x *Index) chains(ctx context.Context, where string, args ...any) ([]Recording, error) {
	type row struct{ chain, sum string }
	rows, err := list(ctx, x.db, func(r *row) []any { return []any{&r.chain, &r.sum} }, "SELECT chain, sum FROM chains WHERE "+where, args...)
	if err != nil {
		return nil, err
	}
	found := make([]Recording, len(rows))
	for i, row := range rows {
		s, err := readSum(row.sum)
		if err != nil {
			return nil, err
		}
		found[i] = Recording{Chain: row.chain, Sight: *s.Sight, Place: s.Last}
	}
	return found, nil
}

// minute is how long the time is of which recorders count what they missed, in milliseconds.
const minute = 60_000

// complete adds what is not in the sum of the chain.
func (x *Index) complete(ctx context.Context, r *Recording) (err error) {
	r.Trials, err = list(ctx, x.db, one[string], "SELECT value FROM notes WHERE kind = ? AND name = ? ORDER BY place", triedNote, r.Chain)
	if err != nil {
		return err
	}
	if err := x.db.QueryRowContext(ctx, "SELECT count(*) FROM records WHERE chain = ? AND chain <> ''", r.Chain).Scan(&r.Records); err != nil {
		return err
	}
	args := []any{missedNote, r.First - minute, r.Last} // a minute that began before counts
	for _, agent := range r.Agents {
		args = append(args, agent)
	}
	return x.db.QueryRowContext(ctx, "SELECT coalesce(sum(CAST(value AS INTEGER)), 0) FROM notes WHERE kind = ? AND at > ? AND at <= ? AND name IN ("+
		marks(len(r.Agents))+")", args...).Scan(&r.Missed)
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

// Erased returns what was erased of records: the pointers, by the record's digest. Its errors are those of the file.
func (x *Index) Erased(ctx context.Context, records []evidence.Digest) (map[evidence.Digest][]string, error) {
	erased := map[evidence.Digest][]string{}
	for _, digest := range records {
		pointers, err := list(ctx, x.db, one[string], "SELECT value FROM notes WHERE kind = ? AND name = ? ORDER BY place, value", erasedNote, digest.String())
		if err != nil {
			return nil, fmt.Errorf("looking for what was erased: %w", err)
		}
		if len(pointers) > 0 {
			erased[digest] = pointers
		}
	}
	return erased, nil
}

// Events returns the places of what recorders say of themselves while they see a part of a chain, apart from their signs of life: at most so
// many, the earliest ones. The part is from the record with one number in the chain to before that with another; 0: all that follows. If the
// index does not have these yet, there are no events. Its errors are those of the file.
func (x *Index) Events(ctx context.Context, r *Recording, from, to int64, most int) (places []int64, err error) {
	defer fault.While(&err, "looking for events of recorders")
	const placeOf = "(SELECT place FROM records WHERE chain = ? AND chain <> '' ORDER BY place LIMIT 1 OFFSET ? - 1)"
	where, args := "", []any{eventNote, r.Chain, from}
	if to > 0 {
		where, args = " AND place < "+placeOf, append(args, r.Chain, to)
	}
	for _, name := range r.Recorders {
		args = append(args, name)
	}
	return list(ctx, x.db, one[int64], "SELECT place FROM notes WHERE kind = ? AND at = 0 AND place >= "+placeOf+where+" AND name IN ("+
		marks(len(r.Recorders))+") ORDER BY place LIMIT ?", append(args, most)...)
}

// LastOfInterest returns the place of the newest record of a recorder or of a trial, and -1 if there is none. Its errors are those of the
// file.
func (x *Index) LastOfInterest(ctx context.Context) (place int64, err error) {
	defer fault.While(&err, "looking for the newest record of a recorder or of a trial")
	err = x.db.QueryRowContext(ctx, "SELECT coalesce((SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 1), -1)",
		trialTerm+" OR "+recorderTerm).Scan(&place)
	return place, err
}
