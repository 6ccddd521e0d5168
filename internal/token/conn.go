package token

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
)

// A conn carries requests of many callers to one helper.
type conn struct {
	requests *writer
	answers  *reader
	closing  func() error // ends the connection, and says how a child ended
	first    func()       // is called at the first answer

	mu      sync.Mutex // held while waiting or lost changes
	waiting map[uint32]chan answer
	last    uint32
	lost    error
	done    chan struct{} // closed once lost is set
	over    chan struct{} // closed once nothing more is read
}

func newConn(in io.Reader, out io.Writer, closing func() error, first func()) *conn {
	c := &conn{
		requests: &writer{out: bufio.NewWriterSize(out, 64<<10), deadline: writeDeadline(out), patience: patience},
		answers: &reader{in: bufio.NewReaderSize(in, 64<<10), deadline: readDeadline(in), patience: patience, most: maxAnswer,
			reserve: func(int) error { return nil }, release: func(int) {}},
		closing: sync.OnceValue(closing), first: first,
		waiting: map[uint32]chan answer{}, done: make(chan struct{}), over: make(chan struct{}),
	}
	go c.read()
	return c
}

// read hands answers to those who wait for them. A caller that has given up stays in the list until its answer comes.
func (c *conn) read() {
	defer close(c.over)
	for {
		frame, err := c.answers.next()
		if err != nil {
			c.fail(fmt.Errorf("%w: the helper has gone: %w", ErrUnavailable, cmp.Or(c.closing(), err)))
			return
		}
		var a answer
		if err := decode(frame, &a); err != nil {
			c.fail(fmt.Errorf("%w: the helper's answer: %w", ErrUnavailable, err))
			return
		}
		asker := c.take(a.ID)
		if asker == nil || a.Version != version {
			c.fail(fmt.Errorf("%w: the helper answered a request that was not sent, or in another version", ErrUnavailable))
			return
		}
		if c.first != nil {
			c.first()
			c.first = nil
		}
		asker <- a // has room for one
	}
}

func (c *conn) take(id uint32) chan answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	asker := c.waiting[id]
	delete(c.waiting, id)
	return asker
}

// fail ends the connection for all who wait. The first reason counts.
func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return
	}
	c.lost = err
	close(c.done)
	go c.closing() // end waits for it
}

// end closes the connection, and says how a child ended.
func (c *conn) end() error {
	c.fail(ErrUnavailable)
	err := c.closing()
	<-c.over
	return err
}

// why says why the connection was lost. It returns nil while it stands.
func (c *conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

func (c *conn) call(ctx context.Context, r request) (answer, error) {
	asker := make(chan answer, 1)
	r.Version, r.ID = version, c.ask(asker)
	frame, err := encode(r)
	if err != nil {
		c.take(r.ID)
		return answer{}, err
	}
	if err := c.requests.send(frame); err != nil {
		c.fail(fmt.Errorf("%w: the helper takes no request: %w", ErrUnavailable, err))
	}
	select {
	case a := <-asker:
		return a, nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	case <-c.done:
		return answer{}, c.why()
	}
}

func (c *conn) ask(asker chan answer) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.last++; c.waiting[c.last] != nil; c.last++ { // after four thousand million
	}
	c.waiting[c.last] = asker
	return c.last
}
