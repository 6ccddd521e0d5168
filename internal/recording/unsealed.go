package recording

import (
	"context"
	"sync"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/relay"
)

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
		drop(&l.act)
	} else {
		u.bytes += size
	}
	u.acts = append(u.acts, l)
	return true
}

// trouble returns why the log does not seal at this time, or nil.
func (u *unsealed) trouble() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.why
}

// count returns how many acts wait.
func (u *unsealed) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.acts)
}

// first returns the act that waits longest.
func (u *unsealed) first() (late, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.acts) == 0 {
		return late{}, false
	}
	return u.acts[0], true
}

func (u *unsealed) removeFirst() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bytes -= sizeOf(&u.acts[0].act)
	u.acts[0] = late{}
	u.acts = u.acts[1:]
}

// works notes that the log seals again.
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

// drop takes the bytes out of an act. Their digests and counts stay.
func drop(act *observed.Act) {
	request := *act.Request
	forgetBytes(&request)
	act.Request = &request
	if act.Response != nil {
		response := *act.Response
		forgetBytes(&response)
		act.Response = &response
	}
}

// forgetBytes takes the bytes out of a body. Its digest and count stay.
func forgetBytes(b *observed.Body) { b.Kept, b.Refused, b.Truncated = nil, false, false }

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

// settle seals all that could not be sealed before.
func (r *Recorder) settle(ctx context.Context) error {
	for {
		l, there := r.unsealed.first()
		if !there {
			break
		}
		if err := r.sealAct(ctx, l.id, l.act); err != nil {
			return err
		}
		r.unsealed.removeFirst()
		r.counted()
		r.journal.end(l.id)
	}
	if err := r.sealGaps(ctx); err != nil {
		return err
	}
	r.unsealed.works()
	return nil
}
