package sealer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/relay"
)

// seal makes an act durable under its record id, as the next of its chain, and returns the time that the record claims. That the log has it already is no
// error, since the ids of calls and events are made once. An act that the format or the log refuses, whatever the reason, would be refused for ever, and would
// stop all calls of closed mode; so what can be sealed of it is sealed, and says so.
func (r *Recorder) seal(ctx context.Context, act observed.Act) (at time.Time, err error) {
	if at, err = r.sealNew(ctx, act); errors.Is(err, api.ErrConflict) {
		err = nil
	}
	return at, err
}

// sealNew is seal, whose error has api.ErrConflict in its chain if the log has a record with the id.
func (r *Recorder) sealNew(ctx context.Context, act observed.Act) (time.Time, error) {
	at, err := r.sealNext(ctx, act)
	switch _, refused := errors.AsType[*evidence.FieldError](err); {
	case act.ActionType == evidence.RecorderEvent:
	case refused, errors.Is(err, errNoRecord):
		r.Tell.Error("the record of a call was refused; it is sealed without what was said", "agent", act.Agent, "error", err)
		return r.sealNext(ctx, bare(act, err))
	case err == nil && act.Request.Kept != nil && !act.Request.Truncated && len(act.Request.Kept) <= observed.MaxKept: // the record has all of it
		r.bodies.set(act.ChainID, act.Request.Kept)
	}
	return at, err
}

// errNoRecord says that no record can have an act, whatever the log says.
var errNoRecord = errors.New("the act cannot be sealed")

// sealNext seals an act so that its record names the last one of its chain, and claims no earlier time.
func (r *Recorder) sealNext(ctx context.Context, act observed.Act) (time.Time, error) {
	at := act.Payload.Time()
	leave, err := r.beginnings.enter(ctx, act.ChainID, func() bool { last, _ := r.ends.get(act.ChainID); return !last.digest.IsZero() })
	if err != nil {
		return at, err
	}
	defer leave()
	last, known := r.ends.get(act.ChainID)
	if !known {
		if last.digest, last.at, err = r.Log.Last(ctx, act.ChainID); err != nil {
			return at, err
		}
	}
	if !last.digest.IsZero() {
		act.Saw = []evidence.Digest{last.digest}
	}
	if at.Before(last.at) {
		at, act.Timestamp = last.at, evidence.FormatTime(last.at)
	}
	draft, err := observed.Draft(act)
	if err != nil {
		return at, fmt.Errorf("%w: %w", errNoRecord, err)
	}
	digest, err := r.Log.Seal(ctx, draft.SealingApart(nil, r.apart(draft)...))
	if err != nil {
		r.ends.forget(act.ChainID) // it may be in the log: the next one asks
		return at, err
	}
	r.ends.set(act.ChainID, end{digest, at})
	return at, nil
}

// bare is an act with nothing that others chose, but for the names that Begin has checked, and counts and digests.
func bare(a observed.Act, why error) observed.Act {
	b := observed.Act{Payload: evidence.Payload{RecordID: a.RecordID, ActionType: a.ActionType, AgentID: a.AgentID, RequestID: a.RequestID,
		ChainID: a.ChainID, Timestamp: a.Timestamp}, Observed: evidence.Observed{Agent: a.Agent, Began: a.Began, Ended: a.Ended, EndedMS: a.EndedMS,
		Fidelity: a.Fidelity, FirstByteMS: a.FirstByteMS, Protocol: a.Protocol, Side: a.Side, Status: a.Status, Vantage: a.Vantage,
		Missing: append(a.Missing, "what was said: the record that had it was refused: "+inWords(why))}}
	if a.Upstream != nil {
		b.Upstream = &evidence.Upstream{Origin: a.Upstream.Origin}
	}
	b.Request, b.Response = countsOf(a.Request), countsOf(a.Response)
	return b
}

func countsOf(b *observed.Body) *observed.Body {
	if b == nil {
		return nil
	}
	return &observed.Body{ObservedBody: evidence.ObservedBody{Bytes: b.Bytes, SHA256: b.SHA256, Encoding: b.Encoding, Delivered: b.Delivered}}
}

// An end is the last record of a chain. The next one names it, so that nobody can put another in its place, and claims no earlier time: a call that ended
// before it may be sealed after it, since it had more to read, or the log did not seal at the time. When a call itself began and ended stands in its record
// apart from that.
type end struct {
	digest evidence.Digest
	at     time.Time
}

// apart lists the members with what the agent said and was told.
func (r *Recorder) apart(d *evidence.Draft) []string {
	if r.InTheRecord || !d.Payload.ActionType.Observes() {
		return nil
	}
	said := []string{"/context", "/prompt", "/request_body", "/response", "/response_body", "/tools_used"}
	return slices.DeleteFunc(said, func(pointer string) bool { return !d.Has(pointer) })
}

type unsealed struct {
	mu    sync.Mutex
	acts  []observed.Act
	bytes int
	why   error
}

const (
	mostLate      = 10_000    // acts that wait
	mostLateBytes = 256 << 20 // of their bodies; those of further acts are dropped, and their digests stay
)

func (u *unsealed) add(act observed.Act, why error) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.why = why
	if len(u.acts) >= mostLate {
		return false
	}
	act.Request.Earlier = nil
	if size := sizeOf(&act); u.bytes+size > mostLateBytes {
		act.Request, act.Response = withoutBytes(act.Request), withoutBytes(act.Response)
	} else {
		u.bytes += size
	}
	u.acts = append(u.acts, act)
	return true
}

func (u *unsealed) state() (waiting int, why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.acts), u.why
}

// next drops the first act, if it is sealed, and returns the one that is the first then; nil: none is left.
func (u *unsealed) next(sealed bool) *observed.Act {
	u.mu.Lock()
	defer u.mu.Unlock()
	if sealed {
		u.bytes -= sizeOf(&u.acts[0])
		u.acts[0] = observed.Act{}
		u.acts = u.acts[1:]
	}
	if len(u.acts) == 0 {
		return nil
	}
	return new(u.acts[0])
}

// works says that the log seals again, unless acts wait.
func (u *unsealed) works() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.acts) == 0 {
		u.why = nil
	}
}

func sizeOf(act *observed.Act) int {
	size := len(act.Request.Kept)
	if act.Response != nil {
		size += len(act.Response.Kept)
	}
	return size
}

// withoutBytes is a body of which the digest and the count stay; nil: there is none.
func withoutBytes(b *observed.Body) *observed.Body {
	if b == nil {
		return nil
	}
	left := *b
	left.Kept, left.Decoded, left.Truncated = nil, "", false
	return &left
}

// failed keeps an act that could not be sealed, and returns what the relay is told: in open mode, an act that is kept was not missed.
func (r *Recorder) failed(act observed.Act, why error) error {
	r.Tell.Error("a call could not be sealed; it is tried again", "agent", act.Agent, "error", why)
	if r.Mode == relay.Closed {
		act.Ended = evidence.RecorderCut
		act.Missing = append(act.Missing, "the end of the answer was not handed out, as the call could not be sealed: "+inWords(why))
	}
	kept := r.unsealed.add(act, why)
	switch {
	case r.Mode == relay.Closed:
		return why // what is not kept is in the journal, and the next process seals that it was lost
	case kept:
		return nil
	}
	r.journal.end(act.RecordID)
	return why // the relay counts it as missed
}

func (r *Recorder) catchUp(ctx context.Context) {
	var told State
	for every(ctx, r.Retry) {
		if err := r.settle(ctx); err != nil && ctx.Err() == nil {
			r.Tell.Warn("calls wait until the log seals again", "error", err)
		}
		told = r.tellState(told)
	}
}

func (r *Recorder) settle(ctx context.Context) error {
	for act := r.unsealed.next(false); act != nil; act = r.unsealed.next(true) {
		if _, err := r.seal(ctx, *act); err != nil {
			return err
		}
		r.recorded(act.RecordID)
	}
	if err := r.sealGaps(ctx); err != nil {
		return err
	}
	r.unsealed.works()
	return nil
}

// An Account says what became of an act that was told.
type Account string

const (
	New     Account = "new"     // it is sealed
	Known   Account = "known"   // the log had it
	Another Account = "another" // the log had another account of the act; this one is sealed, and names that
)

// Report seals an act that did not pass the recorder: somebody told it, maybe more than once. It returns when the record is durable. The act's RecordID follows
// from what it is called: the same account is sealed once, however often told. Of two accounts of one act both are sealed, the second under otherID, which
// follows from what is told, and names the first. The names of agent and chain must be fit for records.
func (r *Recorder) Report(ctx context.Context, act observed.Act, otherID string) (Account, error) {
	act.AgentID = r.Name
	act.Request.Earlier = r.earlier(act.ChainID)
	account := New
	before, known, err := r.sealUnknown(ctx, act)
	if err == nil && known && before != act.Request.SHA256 && !before.IsZero() { // what has expired does not come back
		act.Missing = append([]string{"which account is true: another one of the same act is in the record " + act.RecordID}, act.Missing...)
		act.RecordID, account = otherID, Another
		_, known, err = r.sealUnknown(ctx, act)
	}
	switch {
	case err != nil:
		return "", err
	case known:
		return Known, nil
	}
	r.calls.Add(1)
	return account, nil
}

// sealUnknown seals an act, unless the log has a record with its id: then it returns the request of that. It looks before, as what is told again would cost a
// time stamp each time, and its texts would take room among those that are sealed apart, which is not given back when the log refuses the record.
func (r *Recorder) sealUnknown(ctx context.Context, act observed.Act) (before evidence.Digest, known bool, err error) {
	before, known, err = r.Log.RequestOf(ctx, act.RecordID)
	if known || err != nil {
		return before, known, err
	}
	if _, err = r.sealNew(ctx, act); errors.Is(err, api.ErrConflict) { // it was told twice at once
		return r.Log.RequestOf(ctx, act.RecordID)
	}
	return before, false, err
}

// CheckChain returns an error if no record can have a chain of this name.
func CheckChain(agent, name string) error { return evidence.CheckName(ChainOf(agent, name)) }
