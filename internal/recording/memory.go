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

// An attempt is a request of an agent: a repetition of it can name the call before.
type attempt struct {
	agent, path string
	request     evidence.Digest
}

// made is what became of an attempt.
type made struct {
	requestID, chain string
	failed           bool // there is no whole answer to it
}

// recent remembers a value for each of the keys that came last. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	most int

	mu     sync.Mutex
	values map[K]V
	order  []K // the oldest first
}

func newRecent[K comparable, V any](most int) *recent[K, V] {
	return &recent[K, V]{most: most, values: map[K]V{}}
}

func (r *recent[K, V]) get(key K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, known := r.values[key]
	return value, known
}

func (r *recent[K, V]) set(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.values[key]; !known {
		r.order = append(r.order, key)
	}
	r.values[key] = value
	if len(r.order) > r.most {
		delete(r.values, r.order[0])
		r.order = r.order[1:]
	}
}

// forget drops a value. Its key stays in the order, so if it is set again, it may go sooner than others.
func (r *recent[K, V]) forget(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.values, key)
}
