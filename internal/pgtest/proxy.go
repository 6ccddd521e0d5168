package pgtest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// A Proxy stands between a server and who uses it, and can become a hole in the network: what is sent into it is confirmed by the
// operating system as ever, nothing comes out, and no connection ends.
type Proxy struct {
	to       string
	listener net.Listener

	mu    sync.Mutex // while it is held, nobody stops it or opens it
	open  chan struct{}
	conns []net.Conn
	ended bool
}

// NewProxy returns a proxy for the server of a database, and the URL that leads through it. It ends with the test.
func NewProxy(t testing.TB, database string) (p *Proxy, through string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p = &Proxy{to: u.Host, listener: listener, open: make(chan struct{})}
	close(p.open)
	var serving sync.WaitGroup
	serving.Go(p.serve)
	t.Cleanup(func() {
		p.end()
		serving.Wait()
	})
	u.Host = listener.Addr().String()
	return p, u.String()
}

// Stop has nothing pass any more.
func (p *Proxy) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

// GoOn has everything pass again, also what was sent meanwhile, as a network does that was interrupted.
func (p *Proxy) GoOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

func (p *Proxy) end() {
	p.GoOn()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.listener.Close()
	for _, c := range p.conns {
		c.Close()
	}
}

// wait returns when something may pass.
func (p *Proxy) wait() {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	<-open
}

// keep notes a connection, to be closed in the end.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, c)
	return !p.ended
}

func (p *Proxy) serve() {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return // it was closed
		}
		all.Go(func() { p.pass(from) })
	}
}

func (p *Proxy) pass(from net.Conn) {
	defer from.Close()
	if !p.keep(from) {
		return
	}
	p.wait()
	to, err := net.Dial("tcp", p.to)
	if err != nil {
		return // the server does not run
	}
	defer to.Close()
	if !p.keep(to) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(to, from) })
	both.Go(func() { p.copy(from, to) })
	both.Wait()
}

// copy passes on what comes, when something may pass, and that no more will come.
func (p *Proxy) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.wait()
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			to.(interface{ CloseWrite() error }).CloseWrite()
			if failed != nil {
				_, _ = io.Copy(io.Discard, from)
			}
			return
		}
	}
}
