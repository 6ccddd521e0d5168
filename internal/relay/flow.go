package relay

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// A flow is what one side says: messages in their order. Each goes on once it is recorded.
type flow struct {
	*relay
	name  string
	queue chan *line
	stop  <-chan struct{} // closed when nothing may pass any more
	fail  func(error)
	calls *sync.WaitGroup // being recorded

	// take notes what a line is, and returns what must be done before it may go on; nil: nothing. What it returns must be called, and calls.Done then.
	take func(*line) (record func() error, over bool)
}

func newFlow(r *relay, name string, stop <-chan struct{}, fail func(error), calls *sync.WaitGroup) flow {
	return flow{relay: r, name: name, queue: make(chan *line, 64), stop: stop, fail: fail, calls: calls}
}

// pass has what next reads recorded and puts it into the queue, until next fails or nothing may pass any more. rest reads the rest of a line for whose copy
// there is no room. It returns what ended the reading; nil: nothing may pass any more. The caller closes the queue.
func (f *flow) pass(next func() (*line, error), rest func(*line, <-chan struct{}) error) error {
	for {
		l, err := next()
		if l != nil {
			if !f.send(l, err) {
				return nil
			}
			if l.rest != nil {
				err = rest(l, f.stop)
			}
		}
		if err != nil {
			return err // the end of a stream, whatever ended it
		}
	}
}

// send has a line recorded and puts it into the queue. It reports whether more may follow.
func (f *flow) send(l *line, err error) bool {
	if l.rest == nil && l.body.lost != nil {
		f.free(l)
		f.fail(fmt.Errorf("a message of the %s cannot be recorded: %w", f.name, err))
		return false
	}
	l.refs.Add(1) // for who records it
	record, over := f.take(l)
	if over {
		f.free(l)
		f.free(l)
		return false
	}
	if record == nil {
		f.free(l)
		l.ready <- nil
	} else {
		go func() {
			defer f.calls.Done()
			defer f.free(l)
			l.ready <- record()
		}()
	}
	select {
	case f.queue <- l:
		return true
	case <-f.stop:
		f.free(l)
		return false
	}
}

// write writes lines as soon as they may go on. lost is called when nobody takes them any more.
func (f *flow) write(to io.Writer, lost func()) {
	for l := range f.queue {
		ok := f.let(l, &to, lost)
		f.free(l)
		if !ok {
			return
		}
	}
}

// let writes a line once it may go on, unless nobody takes it. It reports whether others may follow.
func (f *flow) let(l *line, to *io.Writer, lost func()) bool {
	select {
	case err := <-l.ready:
		if err != nil {
			f.fail(err)
			return false
		}
	case <-f.stop:
		return false
	}
	if *to != nil {
		err := l.write(*to)
		if errors.Is(err, errUnreadable) {
			f.fail(err)
			return false
		}
		if err != nil {
			*to = nil
			lost()
		}
	}
	if l.rest != nil {
		for range l.rest { // what nobody takes
		}
	}
	return true
}

// free gives a line's copy back, once nobody else needs it.
func (r *relay) free(l *line) {
	if err := l.release(); err != nil {
		r.Log.Error("relay: removing the copy of a message", "call", l.id, "error", err)
	}
}
