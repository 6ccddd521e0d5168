package recording

import (
	"container/list"
	"sync"

	"jurat/evidence"
)

// bodies keeps the last request of each conversation, from which the next one copies: each call sends the whole conversation again. It is safe
// for concurrent use.
type bodies struct {
	most int // bytes of all

	mu    sync.Mutex
	last  map[string]*list.Element // of *lastBody, by chain
	order *list.List               // the one that was used last first
	bytes int
}

type lastBody struct {
	chain string
	body  []byte
}

func newBodies(most int) *bodies {
	return &bodies{most: most, last: map[string]*list.Element{}, order: list.New()}
}

// of returns the bodies from which the next request of a chain may copy.
func (b *bodies) of(chain string) [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.last[chain]
	if e == nil {
		return nil
	}
	b.order.MoveToFront(e)
	return [][]byte{e.Value.(*lastBody).body}
}

// keep remembers the body of a request that is sealed.
func (b *bodies) keep(chain string, body []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.last[chain]; e != nil {
		b.remove(e)
	}
	b.last[chain] = b.order.PushFront(&lastBody{chain, body})
	b.bytes += len(body)
	for b.bytes > b.most {
		b.remove(b.order.Back())
	}
}

func (b *bodies) remove(e *list.Element) {
	last := b.order.Remove(e).(*lastBody)
	b.bytes -= len(last.body)
	delete(b.last, last.chain)
}

// attempts remembers the calls with a request, so that a repetition can name the one before. It is safe for concurrent use.
type attempts struct {
	most int

	mu    sync.Mutex
	calls map[attempt]made
	order []attempt // the oldest first
}

type attempt struct {
	agent   string
	request evidence.Digest
}

type made struct{ requestID, chain string }

func newAttempts(most int) *attempts { return &attempts{most: most, calls: map[attempt]made{}} }

func (a *attempts) last(of attempt) (made, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, known := a.calls[of]
	return m, known
}

func (a *attempts) remember(of attempt, m made) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.calls[of]; !known {
		a.order = append(a.order, of)
	}
	a.calls[of] = m
	if len(a.order) > a.most {
		delete(a.calls, a.order[0])
		a.order = a.order[1:]
	}
}

// ends remembers the last record of each chain. It is safe for concurrent use.
type ends struct {
	most int

	mu    sync.Mutex
	last  map[string]evidence.Digest
	order []string // the oldest first
}

func newEnds(most int) *ends { return &ends{most: most, last: map[string]evidence.Digest{}} }

func (e *ends) of(chain string) (evidence.Digest, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, known := e.last[chain]
	return last, known
}

func (e *ends) set(chain string, last evidence.Digest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.last[chain]; !known {
		e.order = append(e.order, chain)
	}
	e.last[chain] = last
	if len(e.order) > e.most {
		delete(e.last, e.order[0])
		e.order = e.order[1:]
	}
}
