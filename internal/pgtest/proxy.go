package pgtest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"jurat/internal/must"
)

// A Proxy stands between a server and its clients. It can behave like a broken network: the operating system still
// confirms what is sent, but nothing is passed on, and no connection ends.
type Proxy struct {
	to       string
	listener net.Listener

	mu    sync.Mutex // guards the members below
	open  chan struct{}
	conns []net.Conn
	ended bool
}

// NewProxy returns a proxy for the server of a database, and the URL through it. The proxy ends with the test.
func NewProxy(t testing.TB, database string) (p *Proxy, through string) {
	t.Helper()
	u := must.Get(url.Parse(database))(t)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
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

// Stop makes the proxy pass nothing on.
func (p *Proxy) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

// GoOn makes the proxy pass on everything again, also what was sent meanwhile, like a network after an interruption.
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

// wait returns when the proxy passes on data.
func (p *Proxy) wait() {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	<-open
}

// keep adds a connection that end must close. It returns false if the proxy has ended.
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
			return // the listener was closed
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
		return // the server is not running
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

// copy passes on data, when wait permits it, and the end of the stream.
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
