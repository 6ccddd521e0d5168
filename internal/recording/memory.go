package recording

import (
	"container/list"
	"context"
	"sync"

	"jurat/evidence"
)

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

// recent remembers a value for each of the keys that were used last. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	most int         // of the sizes of all values
	size func(V) int // nil: of each 1

	mu     sync.Mutex
	values map[K]*list.Element // of *remembered
	order  *list.List          // the one that was used last first
	sum    int
}

type remembered[K comparable, V any] struct {
	key   K
	value V
	size  int
}

func newRecent[K comparable, V any](most int, size func(V) int) *recent[K, V] {
	if size == nil {
		size = func(V) int { return 1 }
	}
	return &recent[K, V]{most: most, size: size, values: map[K]*list.Element{}, order: list.New()}
}

func (r *recent[K, V]) get(key K) (value V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.values[key]
	if e == nil {
		return value, false
	}
	r.order.MoveToFront(e)
	return e.Value.(*remembered[K, V]).value, true
}

func (r *recent[K, V]) set(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(r.values[key])
	one := &remembered[K, V]{key, value, r.size(value)}
	r.values[key], r.sum = r.order.PushFront(one), r.sum+one.size
	for r.sum > r.most {
		r.remove(r.order.Back())
	}
}

func (r *recent[K, V]) forget(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(r.values[key])
}

// remove drops what an element has; nil: nothing.
func (r *recent[K, V]) remove(e *list.Element) {
	if e == nil {
		return
	}
	one := r.order.Remove(e).(*remembered[K, V])
	delete(r.values, one.key)
	r.sum -= one.size
}

// turns has one call at a time do something for each key: the others wait for their turn.
type turns struct {
	mu    sync.Mutex
	under map[string]chan struct{} // closed when the turn ends
}

// enter returns at once if what is to be done is done, and otherwise when nobody else does it. leave must be called. Its error is that of the context.
func (b *turns) enter(ctx context.Context, key string, done func() bool) (leave func(), err error) {
	for {
		b.mu.Lock()
		if done() {
			b.mu.Unlock()
			return func() {}, nil
		}
		other := b.under[key]
		if other == nil {
			if b.under == nil {
				b.under = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			b.under[key] = mine
			b.mu.Unlock()
			return func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				delete(b.under, key)
				close(mine)
			}, nil
		}
		b.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
