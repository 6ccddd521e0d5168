package docket

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/ledger"
	"jurat/internal/ledger/brief"
	"jurat/internal/ledger/storage"
	"jurat/verify"
)

// A Recorder is what a log says of one recorder, by the events that it sealed.
type Recorder struct {
	Name      string           `json:"name"`
	Started   string           `json:"started,omitzero"` // its last start; "": the log has none
	Mode      observed.Mode    `json:"mode,omitzero"`
	Vantage   evidence.Vantage `json:"vantage,omitzero"`
	Version   string           `json:"version,omitzero"`
	Stopped   string           `json:"stopped,omitzero"` // its end; "": it runs, or died
	Reason    string           `json:"reason,omitzero"`  // of the end
	Heartbeat string           `json:"heartbeat,omitzero"`
	Calls     int64            `json:"calls"`         // since the start, by its heartbeats and its end
	Counted   bool             `json:"calls_counted"` // Calls are all of them: the end says how many there were since the last heartbeat, and no other recorder of this name has counted meanwhile
	Missed    int64            `json:"missed"`        // calls that passed without a record, ever
	Gaps      int              `json:"gaps"`          // acts about these
	LastGap   string           `json:"last_gap,omitzero"`
	Lost      int64            `json:"lost"` // calls among its last records that were lost in a crash
	Of        int              `json:"lost_of"`

	runs map[string]run // that may go on, by the time of the last sign of life
}

// A run is a recorder from its start to its end. Several of one name may run at a time.
type run struct {
	began string
	calls int64
}

// NewestCalls is how many of a recorder's records are looked at for calls that were lost.
const NewestCalls = 1000

// Recorders returns what a log says of each recorder that sealed an event in it, by name. It looks at each record's entry in the index, and reads these acts. progress may be nil.
func Recorders(ctx context.Context, l *ledger.Ledger, progress func(done, total int64)) ([]Recorder, error) {
	size, err := l.Size(ctx)
	if err != nil {
		return nil, err
	}
	var events []int64
	for b, err := range l.Briefs().List(ctx, brief.Listing{}) {
		if err != nil {
			return nil, err
		}
		if progress != nil {
			progress(b.Index, size)
		}
		if b.Action == evidence.RecorderEvent {
			events = append(events, b.Index)
		}
	}
	known := map[string]*Recorder{}
	for page := range slices.Chunk(events, 100) {
		rows, err := l.RowsAt(ctx, page)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if err := take(known, &rows[i]); err != nil {
				return nil, fmt.Errorf("reading the recorder_event at index %d: %w", rows[i].Index, err)
			}
		}
	}
	list := []Recorder{}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if err := known[name].countLost(ctx, l); err != nil {
			return nil, err
		}
		list = append(list, *known[name])
	}
	return list, nil
}

// take takes in an event.
func take(known map[string]*Recorder, row *storage.Row) error {
	record, err := row.Record()
	if err != nil {
		return err
	}
	p := &record.Payload
	e, err := observed.ParseEvent(p.Response)
	if err != nil {
		return err
	}
	if known[p.AgentID] == nil {
		known[p.AgentID] = &Recorder{Name: p.AgentID, runs: map[string]run{}}
	}
	known[p.AgentID].take(e, p.Timestamp)
	return nil
}

// take takes in the recorder's next event.
func (r *Recorder) take(e *observed.Event, at string) {
	switch e.Event {
	case observed.Start:
		r.runs[at] = run{began: at}
		r.Started, r.Mode, r.Vantage, r.Version = at, e.Mode, e.Vantage, e.Version
		r.Stopped, r.Reason, r.Heartbeat, r.Calls, r.Counted = "", "", "", 0, false
	case observed.ModeChanged:
		r.Mode = e.Mode
	case observed.Stop:
		r.Stopped, r.Reason = at, e.Reason
		if e.Calls != nil {
			r.Calls += *e.Calls
			last := r.counts(e, "")
			r.Counted = last.began != "" && last.began == r.Started && last.calls == r.Calls
		}
	case observed.Heartbeat:
		r.Heartbeat = at
		r.Stopped, r.Reason, r.Counted = "", "", false // after an end, another of this name goes on
		r.Calls += *e.Calls
		r.counts(e, at)
	case observed.Gap:
		r.Gaps++
		r.LastGap = at
		for _, m := range e.Missed {
			r.Missed += m.Calls
		}
	}
}

// counts notes that a run goes on until a time, or ends if that is "", and returns what is known of it.
func (r *Recorder) counts(e *observed.Event, until string) run {
	one := r.runs[e.Since]
	delete(r.runs, e.Since)
	one.calls += *e.Calls
	if one.began != "" && until != "" {
		r.runs[until] = one
	}
	return one
}

// countLost counts the calls that were lost in a crash, among the recorder's last records.
func (r *Recorder) countLost(ctx context.Context, l *ledger.Ledger) error {
	last, err := l.LastOfActor(ctx, evidence.RoleRecorder, r.Name, NewestCalls)
	for _, c := range last {
		if c.Record == nil {
			continue // it has expired
		}
		if r.Of++; c.Record.Payload.Observed != nil && c.Record.Payload.Observed.Ended == evidence.LostInCrash {
			r.Lost++
		}
	}
	return err
}

// ErrNotRecorded says that no recorder saw anything of what is asked for.
var ErrNotRecorded = errors.New("no recorder saw anything of it")

// FindChain finds what a name stands for: a chain of the log, from its first record on, or a record in one, by its id or digest, with its
// number in the chain. number is 0 for a chain. It returns ErrNone, or the ledger's ErrNotFound, wrapped, if there is nothing to show.
func FindChain(ctx context.Context, l *ledger.Ledger, name string) (chain string, number int64, err error) {
	for r, err := range l.ChainRecords(ctx, name) {
		if err != nil {
			return "", 0, err
		}
		if verify.ByRecorder(r) {
			return name, 0, nil
		}
		return "", 0, ErrNotRecorded
	}
	r, err := recordOf(ctx, l, name)
	switch {
	case err != nil:
		return "", 0, err
	case !verify.ByRecorder(r) || r.Payload.ChainID == "":
		return "", 0, ErrNotRecorded
	}
	for other, err := range l.ChainRecords(ctx, r.Payload.ChainID) {
		if err != nil {
			return "", 0, err
		}
		if number++; other.Digest == r.Digest {
			break
		}
	}
	return r.Payload.ChainID, number, nil
}

func recordOf(ctx context.Context, l *ledger.Ledger, name string) (*evidence.Record, error) {
	var digest evidence.Digest
	if digest.UnmarshalText([]byte(name)) == nil {
		return l.RecordByDigest(ctx, digest)
	}
	return l.Record(ctx, name)
}
