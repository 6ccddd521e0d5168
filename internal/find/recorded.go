package find

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/evidence/operator"
	"jurat/internal/convo"
)

// told is what the index takes from a record about the work of recorders. Most records have nothing of it.
type told struct {
	agent  string   // whose act a recorder saw
	sight  *Sight   // of an act that a recorder saw, in a chain
	event  bool     // a recorder says what became of itself, and not only that it is there
	missed []missed // of an event of a recorder: what it does not have
	tried  []string // of a submission: the chains of its records
	erased *operator.ErasureBody
}

type missed struct {
	agent  string
	minute int64 // in milliseconds
	calls  int64
}

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

// plus adds what was seen elsewhere in the chain.
func (s *Sight) plus(o *Sight) {
	s.Agents, s.Recorders, s.Models = union(s.Agents, o.Agents), union(s.Recorders, o.Recorders), union(s.Models, o.Models)
	s.Protocols, s.Vantages = union(s.Protocols, o.Protocols), union(s.Vantages, o.Vantages)
	s.First, s.Last = min(s.First, o.First), max(s.Last, o.Last)
	s.Acts, s.Calls, s.Broken, s.Lost = s.Acts+o.Acts, s.Calls+o.Calls, s.Broken+o.Broken, s.Lost+o.Lost
	s.Input, s.Output, s.Counted = s.Input+o.Input, s.Output+o.Output, s.Counted+o.Counted
}

func union[T cmp.Ordered](a, b []T) []T {
	all := slices.Concat(a, b)
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), mostNamed)]
}

// toldBy takes from a record what the index has of the work of recorders. What cannot be read is left out: others say what is wrong with it.
func toldBy(p *evidence.Payload) (t told) {
	switch {
	case p.Observed != nil:
		t.agent = p.Observed.Agent
		if p.ChainID != "" {
			t.sight = sightOf(p)
		}
	case p.ActionType == evidence.RecorderEvent:
		t.event, t.missed = eventOf(p)
	case p.ActionType == evidence.Submission:
		t.tried = chainsIn(p)
	case p.ActionType == evidence.Erasure:
		t.erased, _ = operator.Read[operator.ErasureBody](p)
	}
	return t
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

// eventOf reports whether an event is more than a sign of life, and what the recorder missed by it.
func eventOf(p *evidence.Payload) (more bool, list []missed) {
	e, err := observed.ParseEvent(p.Response)
	if err != nil {
		return true, nil
	}
	if e.Event == observed.LostInCrash {
		if at, err := evidence.ParseTime(e.Began); err == nil {
			return true, []missed{{e.Agent, at.UnixMilli(), 1}}
		}
	}
	for _, m := range e.Missed {
		if at, err := evidence.ParseTime(m.Minute); err == nil {
			list = append(list, missed{m.Agent, at.UnixMilli(), m.Calls})
		}
	}
	return e.Event != observed.Heartbeat, list
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

// writeTold stores what a stretch has of the work of recorders.
func writeTold(ctx context.Context, tx *sql.Tx, begin int64, docs []*doc) error {
	for chain, s := range sightsIn(docs) {
		doc, err := json.Marshal(s.Sight)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO recorded VALUES (?, ?, ?, ?, ?, ?, ?)", begin, chain, s.place, s.First, s.Last, foldedLines(s.Agents), string(doc)); err != nil {
			return err
		}
	}
	for _, d := range docs {
		if d.event {
			if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO events VALUES (?, ?)", d.place, d.actor); err != nil {
				return err
			}
		}
		for _, m := range d.missed {
			if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO missed VALUES (?, ?, ?, ?)", d.place, m.agent, m.minute, m.calls); err != nil {
				return err
			}
		}
		for _, chain := range d.tried {
			if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO tried VALUES (?, ?, ?)", begin, chain, d.chain); err != nil {
				return err
			}
		}
		if d.erased == nil {
			continue
		}
		for _, pointer := range d.erased.Pointers {
			if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO erased VALUES (?, ?, ?)", d.place, d.erased.Record[:], pointer); err != nil {
				return err
			}
		}
	}
	return nil
}

func foldedLines(names []string) string {
	folded := make([]string, len(names))
	for i, name := range names {
		folded[i] = Fold(name)
	}
	return strings.Join(folded, "\n")
}

// A placed Sight knows the place of its last record.
type placed struct {
	Sight
	place int64
}

// sightsIn sums up what recorders saw in each chain of some records, which are in log order.
func sightsIn(docs []*doc) map[string]*placed {
	all := map[string]*placed{}
	for _, d := range docs {
		switch s := all[d.chain]; {
		case d.sight == nil:
		case s == nil:
			all[d.chain] = &placed{*d.sight, d.place}
		default:
			s.plus(d.sight)
			s.place = d.place
		}
	}
	return all
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
	if err := sane(get, RecordingParameters()); err != nil {
		return nil, err
	}
	q := &Recordings{Agent: Fold(get("agent")), After: get("after")}
	var err error
	if q.Text, err = readText(get("text")); err != nil {
		return nil, err
	}
	if q.From, q.To, err = readTimes(get); err != nil {
		return nil, err
	}
	if q.Limit, err = readLimit(get("limit")); err != nil {
		return nil, err
	}
	if q.after, err = readCursor(q.After); err != nil {
		return nil, err
	}
	return q, nil
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

// maxSummed is how many chains one search sums up.
const maxSummed = 5_000

// Recordings returns a page of the chains that a search finds, the one with the newest record first. A page can be short or empty: as long
// as it has a cursor, there may be more. Its errors are those of the file and of the log.
func (x *Index) Recordings(ctx context.Context, q *Recordings) (*FoundRecordings, error) {
	found := &FoundRecordings{Recordings: []Recording{}}
	if err := x.recordings(ctx, q, found); err != nil {
		return nil, fmt.Errorf("searching what recorders saw: %w", err)
	}
	return found, nil
}

// recordedNow is what is in memory and not yet in the file.
type recordedNow struct {
	begin  int64 // its first place: the file is read up to there
	sights map[string]*placed
	length map[string]int64 // records by chain
	missed []missed
	tried  map[string][]string // trials by chain
}

func (x *Index) recordedNow() *recordedNow {
	x.mu.Lock()
	tail, begin := x.tail, x.tailBegin()
	x.mu.Unlock()
	now := &recordedNow{begin: begin, sights: sightsIn(tail), length: map[string]int64{}, tried: map[string][]string{}}
	for _, d := range tail {
		now.length[d.chain]++
		now.missed = append(now.missed, d.missed...)
		for _, chain := range d.tried {
			now.tried[chain] = append(now.tried[chain], d.chain)
		}
	}
	return now
}

// A lastPlace is the place of a chain's last record.
type lastPlace struct {
	chain string
	place int64
}

// atOnce is how many chains are looked at together.
const atOnce = 128

func (x *Index) recordings(ctx context.Context, q *Recordings, found *FoundRecordings) error {
	var places map[string][]int64
	if q.Text != "" {
		var err error
		if places, err = x.recordedWith(ctx, q.Text); err != nil {
			return err
		}
	}
	if q.Text != "" && len(places) == 0 {
		return nil
	}
	now := x.recordedNow()
	limit, looks, since := cmp.Or(q.Limit, usual), 0, time.Now()
	for before := q.after; ; {
		list, err := x.newestChains(ctx, q, now, before)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, at := range list {
			if before = at.place; q.Text != "" && len(places[at.chain]) == 0 {
				continue
			}
			r, err := x.looked(ctx, q, now, at, places)
			if err != nil {
				return err
			}
			if r != nil {
				found.Recordings = append(found.Recordings, *r)
			}
			if looks++; len(found.Recordings) == limit || looks == maxSummed || time.Since(since) > lookTime {
				found.Next = fmt.Sprint(before)
				return nil
			}
		}
	}
}

// looked returns a chain if it fulfils the conditions, and nil otherwise.
func (x *Index) looked(ctx context.Context, q *Recordings, now *recordedNow, at lastPlace, places map[string][]int64) (*Recording, error) {
	if q.Text != "" {
		if has, err := x.anyHas(ctx, places[at.chain], q.Text); !has || err != nil {
			return nil, err
		}
	}
	r, err := x.recording(ctx, at.chain, now)
	if err != nil || r == nil || !q.fits(r) {
		return nil, err
	}
	return r, nil
}

func (q *Recordings) fits(r *Recording) bool {
	return (q.Agent == "" || strings.Contains(foldedLines(r.Agents), q.Agent)) &&
		(q.From.IsZero() || r.Last >= q.From.UnixMilli()) && (q.To.IsZero() || r.First < q.To.UnixMilli())
}

// newestChains lists some chains whose last record stands before a place (-1: anywhere), the newest first.
func (x *Index) newestChains(ctx context.Context, q *Recordings, now *recordedNow, before int64) (list []lastPlace, err error) {
	for chain, s := range now.sights {
		if before < 0 || s.place < before {
			list = append(list, lastPlace{chain, s.place})
		}
	}
	if len(list) > 0 {
		slices.SortFunc(list, func(a, b lastPlace) int { return cmp.Compare(b.place, a.place) })
		return list, nil
	}
	end := now.begin
	if before >= 0 {
		end = min(end, before)
	}
	for len(list) == 0 {
		some, err := x.chainsIn(ctx, q, now.begin, end)
		if err != nil || len(some) == 0 {
			return nil, err
		}
		end = some[len(some)-1].place
		for _, at := range some {
			if now.sights[at.chain] == nil {
				list = append(list, at)
			}
		}
	}
	return list, nil
}

// chainsIn lists chains of the file whose last record stands before a place, the newest first. Stretches from begin on are left out.
func (x *Index) chainsIn(ctx context.Context, q *Recordings, begin, before int64) (list []lastPlace, err error) {
	const newer = "EXISTS (SELECT 1 FROM recorded n WHERE n.chain = r.chain AND n.last > r.last AND n.stretch < ?1)"
	where, args := "r.last < ?2 AND r.stretch < ?1 AND NOT "+newer, []any{begin, before}
	add := func(condition string, arg any) {
		args = append(args, arg)
		where += fmt.Sprintf(" AND EXISTS (SELECT 1 FROM recorded o WHERE o.chain = r.chain AND "+condition+")", len(args))
	}
	if q.Agent != "" {
		add("instr(o.agents, ?%d)", q.Agent)
	}
	if !q.From.IsZero() {
		add("o.latest >= ?%d", q.From.UnixMilli())
	}
	if !q.To.IsZero() {
		add("o.earliest < ?%d", q.To.UnixMilli())
	}
	rows, err := x.db.QueryContext(ctx, "SELECT chain, last FROM recorded r WHERE "+where+fmt.Sprintf(" ORDER BY last DESC LIMIT %d", atOnce), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var at lastPlace
		if err := rows.Scan(&at.chain, &at.place); err != nil {
			return nil, err
		}
		list = append(list, at)
	}
	return list, rows.Err()
}

// Recording returns what recorders saw in a chain; nil: nothing. Its errors are those of the file.
func (x *Index) Recording(ctx context.Context, chain string) (*Recording, error) {
	r, err := x.recording(ctx, chain, x.recordedNow())
	if err != nil {
		return nil, fmt.Errorf("looking for what recorders saw in chain %q: %w", chain, err)
	}
	return r, nil
}

func (x *Index) recording(ctx context.Context, chain string, now *recordedNow) (*Recording, error) {
	sum, err := x.sumOf(ctx, chain, now)
	if sum == nil || err != nil {
		return nil, err
	}
	r := &Recording{Chain: chain, Sight: sum.Sight, Place: sum.place}
	if r.Trials, err = x.trialsOf(ctx, chain, now); err != nil {
		return nil, err
	}
	if err = x.db.QueryRowContext(ctx, "SELECT count(*) FROM records WHERE chain = ? AND place < ?", chain, now.begin).Scan(&r.Records); err != nil {
		return nil, err
	}
	r.Records += now.length[chain]
	r.Missed, err = x.missedIn(ctx, &r.Sight, now)
	return r, err
}

// sumOf sums up all stretches of a chain.
func (x *Index) sumOf(ctx context.Context, chain string, now *recordedNow) (sum *placed, err error) {
	rows, err := x.db.QueryContext(ctx, "SELECT last, summary FROM recorded WHERE chain = ? AND stretch < ? ORDER BY last", chain, now.begin)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	plus := func(p *placed) {
		if sum == nil {
			sum = new(*p)
			return
		}
		sum.plus(&p.Sight)
		sum.place = p.place
	}
	for rows.Next() {
		var p placed
		var doc string
		if err := rows.Scan(&p.place, &doc); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(doc), &p.Sight); err != nil {
			return nil, fmt.Errorf("the index of words is damaged: %w", evidence.Steady(err))
		}
		plus(&p)
	}
	if p := now.sights[chain]; p != nil {
		plus(p)
	}
	return sum, rows.Err()
}

func (x *Index) trialsOf(ctx context.Context, chain string, now *recordedNow) (list []string, err error) {
	rows, err := x.db.QueryContext(ctx, "SELECT trial FROM tried WHERE chain = ? AND stretch < ? ORDER BY stretch, trial", chain, now.begin)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	return append(list, now.tried[chain]...), rows.Err()
}

// minute is how long the time is of which recorders count what they missed, in milliseconds.
const minute = 60_000

// missedIn counts the calls of the agents of a chain that passed without a record, in the time of the chain.
func (x *Index) missedIn(ctx context.Context, s *Sight, now *recordedNow) (n int64, err error) {
	from := s.First - minute // a minute that began before
	for _, m := range now.missed {
		if slices.Contains(s.Agents, m.agent) && m.minute > from && m.minute <= s.Last {
			n += m.calls
		}
	}
	args := []any{from, s.Last, now.begin}
	for _, agent := range s.Agents {
		args = append(args, agent)
	}
	var stored int64
	err = x.db.QueryRowContext(ctx, "SELECT coalesce(sum(calls), 0) FROM missed WHERE minute > ? AND minute <= ? AND place < ? AND agent IN ("+marks(len(s.Agents))+")", args...).Scan(&stored)
	return n + stored, err
}

// recordedWith returns the places of records with a text, by the chain in which recorders saw something.
func (x *Index) recordedWith(ctx context.Context, text string) (map[string][]int64, error) {
	m := x.matching(&Records{Text: text}, Scope{All: true})
	found := map[string][]int64{}
	for p := range x.parts(true) {
		for _, d := range p.tail {
			if d.sight != nil && d.has(text) {
				found[d.chain] = append(found[d.chain], d.place)
			}
		}
		if p.tail != nil {
			continue
		}
		s, err := m.offsets(ctx, x, p.stretch)
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		if err := x.chainsAt(ctx, s, p.stretch, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// chainsAt adds the places of a set at which recorders' acts stand.
func (x *Index) chainsAt(ctx context.Context, s *set, in stretch, found map[string][]int64) error {
	rows, err := x.db.QueryContext(ctx, "SELECT place, chain FROM records WHERE place >= ? AND place < ? AND agent <> '' AND chain <> ''", in.begin, in.after)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var place int64
		var chain string
		if err := rows.Scan(&place, &chain); err != nil {
			return err
		}
		if n := place - in.begin; n >= 0 && n < stretchRecords && s.has(int(n)) {
			found[chain] = append(found[chain], place)
		}
	}
	return rows.Err()
}

// Erased returns what was erased of records: the pointers, by the record's digest. Its errors are those of the file.
func (x *Index) Erased(ctx context.Context, records []evidence.Digest) (map[evidence.Digest][]string, error) {
	erased := map[evidence.Digest][]string{}
	x.mu.Lock()
	tail, begin := x.tail, x.tailBegin()
	x.mu.Unlock()
	for _, d := range tail {
		if d.erased != nil && slices.Contains(records, d.erased.Record) {
			erased[d.erased.Record] = append(erased[d.erased.Record], d.erased.Pointers...)
		}
	}
	for some := range slices.Chunk(records, atOnce) {
		args := []any{begin}
		for _, digest := range some {
			args = append(args, digest[:])
		}
		rows, err := x.db.QueryContext(ctx, "SELECT digest, pointer FROM erased WHERE place < ? AND digest IN ("+marks(len(some))+")", args...)
		if err == nil {
			err = scanErased(rows, erased)
		}
		if err != nil {
			return nil, fmt.Errorf("looking for what was erased: %w", err)
		}
	}
	return erased, nil
}

func scanErased(rows *sql.Rows, erased map[evidence.Digest][]string) error {
	defer rows.Close()
	for rows.Next() {
		var digest []byte
		var pointer string
		if err := rows.Scan(&digest, &pointer); err != nil {
			return err
		}
		if len(digest) != len(evidence.Digest{}) {
			return fmt.Errorf("a digest of %d bytes: the index of words is damaged", len(digest))
		}
		erased[evidence.Digest(digest)] = append(erased[evidence.Digest(digest)], pointer)
	}
	return rows.Err()
}

// Events returns the places of what recorders say of themselves between two places of the log, apart from their signs of life: at most so
// many, the earliest ones. Its errors are those of the file.
func (x *Index) Events(ctx context.Context, recorders []string, from, to int64, most int) (list []int64, err error) {
	x.mu.Lock()
	tail, begin := x.tail, x.tailBegin()
	x.mu.Unlock()
	args := []any{from, min(to, begin)}
	for _, name := range recorders {
		args = append(args, name)
	}
	rows, err := x.db.QueryContext(ctx, fmt.Sprintf("SELECT place FROM events WHERE place >= ? AND place < ? AND recorder IN (%s) ORDER BY place LIMIT %d", marks(len(recorders)), most), args...)
	if err != nil {
		return nil, fmt.Errorf("looking for events of recorders: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var place int64
		if err := rows.Scan(&place); err != nil {
			return nil, err
		}
		list = append(list, place)
	}
	for _, d := range tail {
		if len(list) < most && d.event && d.place >= from && d.place < to && slices.Contains(recorders, d.actor) {
			list = append(list, d.place)
		}
	}
	return list, rows.Err()
}

// Place returns the place in the log of a record of a chain, by its number in the chain, from 1; -1 if the index does not have it. Its errors are
// those of the file.
func (x *Index) Place(ctx context.Context, chain string, number int64) (place int64, err error) {
	x.mu.Lock()
	tail, begin := x.tail, x.tailBegin()
	x.mu.Unlock()
	err = x.db.QueryRowContext(ctx, "SELECT place FROM records WHERE chain = ? AND place < ? ORDER BY place LIMIT 1 OFFSET ?", chain, begin, number-1).Scan(&place)
	if err == nil {
		return place, nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("looking for record %d of chain %q: %w", number, chain, err)
	}
	var before int64
	if err := x.db.QueryRowContext(ctx, "SELECT count(*) FROM records WHERE chain = ? AND place < ?", chain, begin).Scan(&before); err != nil {
		return 0, fmt.Errorf("counting the records of chain %q: %w", chain, err)
	}
	for _, d := range tail {
		if d.chain != chain {
			continue
		}
		if before++; before == number {
			return d.place, nil
		}
	}
	return -1, nil
}

// LastOfInterest returns the place of the newest record of a recorder or of a trial, or one before the newest records in memory if none of these
// is one.
func (x *Index) LastOfInterest() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, d := range slices.Backward(x.tail) {
		if d.role == evidence.RoleRecorder || strings.HasPrefix(d.chain, evidence.TrialPrefix) {
			return d.place
		}
	}
	return x.tailBegin() - 1
}
