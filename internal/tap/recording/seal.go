package recording

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

// seal makes an act durable under a record id; that the log has it already is no error, since the ids of calls are made once. An act that the format or the
// log refuses, whatever the reason, would be refused for ever, and would stop all calls of closed mode; so what can be sealed of it is sealed, and says so.
func (r *Recorder) seal(ctx context.Context, id string, act observed.Act) error {
	return once(r.sealFitting(ctx, id, act))
}

// sealFitting is seal, whose error has api.ErrConflict in its chain if the log has a record with the id.
func (r *Recorder) sealFitting(ctx context.Context, id string, act observed.Act) error {
	err := r.sealWhole(ctx, id, act)
	if _, refused := errors.AsType[*evidence.FieldError](err); refused || errors.Is(err, errNoRecord) {
		r.Tell.Error("the record of a call was refused; it is sealed without what was said", "agent", act.Agent, "error", err)
		return r.sealWhole(ctx, id, bare(act, err))
	}
	if b := act.Request; err == nil && b.Kept != nil && !b.Truncated && len(b.Kept) <= observed.MaxKept { // the record has all of it
		r.bodies.set(act.ChainID, b.Kept)
	}
	return err
}

// errNoRecord says that no record can have an act, whatever the log says.
var errNoRecord = errors.New("the act cannot be sealed")

func (r *Recorder) sealWhole(ctx context.Context, id string, act observed.Act) error {
	act.RecordID = id
	return r.sealNext(ctx, act.ChainID, func(last end) (*evidence.Draft, error) {
		act.Saw = last.named()
		if act.At.Before(last.at) {
			act.At = last.at
		}
		draft, err := observed.Draft(act)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoRecord, err)
		}
		return draft, nil
	})
}

// bare is an act with nothing that others chose, but for the names that Begin has checked, and counts and digests.
func bare(a observed.Act, why error) observed.Act {
	b := observed.Act{Recorder: a.Recorder, Type: a.Type, Side: a.Side, RequestID: a.RequestID, ChainID: a.ChainID, Agent: a.Agent, Vantage: a.Vantage,
		Fidelity: a.Fidelity, Protocol: a.Protocol, At: a.At, Began: a.Began, Elapsed: a.Elapsed, FirstByte: a.FirstByte, Ended: a.Ended, Status: a.Status,
		Missing: append(a.Missing, "what was said: the record that had it was refused: "+inWords(why))}
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
	return &observed.Body{Bytes: b.Bytes, SHA256: b.SHA256, Encoding: b.Encoding, Delivered: b.Delivered}
}

// An end is the last record of a chain. The next one names it, and claims no earlier time: a call that ended before it may be sealed after it, since it had
// more to read, or the log did not seal at the time. When a call itself began and ended stands in its record apart from that.
type end struct {
	digest evidence.Digest
	at     time.Time
}

// named is what the next record names, so that nobody can put another in the place of this one.
func (e end) named() []evidence.Digest {
	if e.digest.IsZero() {
		return nil
	}
	return []evidence.Digest{e.digest}
}

func (r *Recorder) sealNext(ctx context.Context, chain string, draftAfter func(last end) (*evidence.Draft, error)) error {
	leave, err := r.beginnings.enter(ctx, chain, func() bool { last, _ := r.ends.get(chain); return !last.digest.IsZero() })
	if err != nil {
		return err
	}
	defer leave()
	last, known := r.ends.get(chain)
	if !known {
		if last.digest, last.at, err = r.Log.Last(ctx, chain); err != nil {
			return err
		}
	}
	draft, err := draftAfter(last)
	if err != nil {
		return err
	}
	digest, err := r.Log.Seal(ctx, draft.SealingApart(r.apart(draft)...))
	if err != nil {
		r.ends.forget(chain) // it may be in the log: the next one asks
		return err
	}
	r.ends.set(chain, end{digest, draft.Payload.Time()})
	return nil
}

// once takes the error that a record is in the log already for no error: the ids of calls and events are made once.
func once(err error) error {
	if errors.Is(err, api.ErrConflict) {
		return nil
	}
	return err
}

// apart lists the members with what the agent said and was told.
func (r *Recorder) apart(d *evidence.Draft) []string {
	if r.InTheRecord || !d.Payload.ActionType.Observes() {
		return nil
	}
	said := []string{"/context", "/prompt", "/request_body", "/response", "/response_body", "/tools_used"}
	return slices.DeleteFunc(said, func(pointer string) bool { return !d.Has(pointer) })
}

// unsealed holds acts that could not be sealed, until they can.
type unsealed struct {
	mu    sync.Mutex
	acts  []late
	bytes int
	why   error
}

type late struct {
	id  string
	act observed.Act
}

const (
	mostLate      = 10_000    // acts that wait
	mostLateBytes = 256 << 20 // of their bodies; those of further acts are dropped, and their digests stay
)

// add keeps an act, and reports whether there was room for it.
func (u *unsealed) add(l late, why error) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.why = why
	if len(u.acts) >= mostLate {
		return false
	}
	l.act.Request.Earlier = nil
	if size := sizeOf(&l.act); u.bytes+size > mostLateBytes {
		l.act.Request, l.act.Response = withoutBytes(l.act.Request), withoutBytes(l.act.Response)
	} else {
		u.bytes += size
	}
	u.acts = append(u.acts, l)
	return true
}

// state returns how many acts wait, and why.
func (u *unsealed) state() (waiting int, why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.acts), u.why
}

// next drops the first act, if it is sealed, and returns the one that is the first then; nil: none is left.
func (u *unsealed) next(sealed bool) *late {
	u.mu.Lock()
	defer u.mu.Unlock()
	if sealed {
		u.bytes -= sizeOf(&u.acts[0].act)
		u.acts[0] = late{}
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
	left.Kept, left.Refused, left.Truncated = nil, false, false
	return &left
}

// failed keeps an act that could not be sealed, and returns what the relay is told: in open mode, an act that is kept was not missed.
func (r *Recorder) failed(e *exchange, act observed.Act, why error) error {
	r.Tell.Error("a call could not be sealed; it is tried again", "agent", act.Agent, "error", why)
	if r.Mode == relay.Closed {
		act.Ended = evidence.RecorderCut
		act.Missing = append(act.Missing, "the end of the answer was not handed out, as the call could not be sealed: "+inWords(why))
	}
	kept := r.unsealed.add(late{e.intent.RecordID, act}, why)
	switch {
	case r.Mode == relay.Closed:
		return why // what is not kept is in the journal, and the next process seals that it was lost
	case kept:
		return nil
	}
	r.journal.end(e.intent.RecordID)
	return why // the relay counts it as missed
}

// catchUp seals what could not be sealed, as soon as that is possible.
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
	for l := r.unsealed.next(false); l != nil; l = r.unsealed.next(true) {
		if err := r.seal(ctx, l.id, l.act); err != nil {
			return err
		}
		r.recorded(l.id)
	}
	if err := r.sealGaps(ctx); err != nil {
		return err
	}
	r.unsealed.works()
	return nil
}

// A Report is an act that did not pass the recorder: somebody told it of the act, maybe more than once.
type Report struct {
	Agent, Chain string       // Chain is a name: see ChainOf
	Act          observed.Act // the recorder fills in its own name and the chain
	ID           string       // the record's; it follows from what the act is called, so the same act told again has the same id
	OtherID      string       // the record's if the log has another account under ID; it follows from what is told, too
}

// An Account says what became of a report.
type Account string

const (
	New     Account = "new"     // it is sealed
	Known   Account = "known"   // the log had it
	Another Account = "another" // the log had another account of the act; this one is sealed, and names that
)

// Report seals what was told of an act, and returns when its record is durable. The same account is sealed once, however often it is told. Two accounts
// of one act are both sealed, and the second names the first. The names of agent and chain must be fit for records.
func (r *Recorder) Report(ctx context.Context, told Report) (Account, error) {
	act := told.Act
	act.Recorder, act.ChainID = r.Name, ChainOf(told.Agent, told.Chain)
	act.Agent, act.Request.Earlier = told.Agent, r.earlier(act.ChainID)
	account, err := New, r.sealNew(ctx, told.ID, act)
	if errors.Is(err, api.ErrConflict) {
		account, err = r.another(ctx, told, act)
	}
	if err != nil {
		return "", err
	}
	if account != Known {
		r.calls.Add(1)
	}
	return account, nil
}

// another seals an act of which the log has a record, if that has another account of it.
func (r *Recorder) another(ctx context.Context, told Report, act observed.Act) (Account, error) {
	before, err := r.Log.RequestOf(ctx, told.ID)
	if err != nil || before == act.Request.SHA256 || before.IsZero() { // what has expired does not come back
		return Known, err
	}
	act.Missing = append([]string{"which account is true: another one of the same act is in the record " + told.ID}, act.Missing...)
	err = r.sealNew(ctx, told.OtherID, act)
	if errors.Is(err, api.ErrConflict) {
		return Known, nil
	}
	return Another, err
}

// sealNew is sealFitting, but looks for the record before: what is told again would cost a time stamp each time, and its texts would take room among those
// that are sealed apart, which is not given back when the log refuses the record.
func (r *Recorder) sealNew(ctx context.Context, id string, act observed.Act) error {
	has, err := r.Log.Has(ctx, id)
	if err == nil && has {
		err = api.ErrConflict
	}
	if err != nil {
		return err
	}
	return r.sealFitting(ctx, id, act)
}

// CheckChain returns an error if no record can have a chain of this name.
func CheckChain(agent, name string) error { return evidence.CheckName(ChainOf(agent, name)) }
