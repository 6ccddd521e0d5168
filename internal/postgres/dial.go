package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

const (
	// silence is how long a connection may keep whoever reads from it waiting before somebody asks whether the server is still there.
	silence = 15 * time.Second
	// answerTime is how long the server may take to answer that.
	answerTime = 5 * time.Second
)

// A dialer makes connections that end when nobody is at the other end any more. What is sent and not confirmed, and what is not sent
// at all, the operating system notices (TCP_USER_TIMEOUT, keepalive). But whatever stands in between, a proxy or a balancer, may confirm
// everything and pass on nothing. So while somebody waits for the server to say something, which may take as long as another's lock, or
// a large index, the server itself is asked over another connection. Callers need no deadline for that, and set none where they wait for
// what may take long.
type dialer struct {
	net.Dialer
	silence, answer time.Duration
	config          *pgconn.Config // by which whoever asks logs in
}

func newDialer(config *pgconn.Config, silence, answer time.Duration) *dialer {
	return &dialer{silence: silence, answer: answer, config: config.Copy(), Dialer: net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 5}}}
}

// dial is a pgconn.DialFunc.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	tcp, is := conn.(*net.TCPConn)
	if !is { // a socket of this machine ends with the server
		return conn, nil
	}
	if err := boundUnconfirmed(tcp, d.silence); err != nil {
		return nil, errors.Join(fmt.Errorf("bounding how long %s may leave unconfirmed what is sent to it: %w", address, err), tcp.Close())
	}
	return &watched{Conn: tcp, dialer: d}, nil
}

// ask returns nil if the server answers, be it that it refuses. A proxy speaks for itself until there is a statement, so one is sent;
// what it says of a server that it does not reach is of class 08.
func (d *dialer) ask(address net.Addr) error {
	ctx, cancel := context.WithTimeout(context.Background(), d.answer) // net.Conn passes no context
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, d.asking(address))
	if err == nil {
		_, err = conn.Exec(ctx, `SELECT 1`).ReadAll()
		_ = conn.Close(ctx) // whoever has answered has
	}
	var said *pgconn.PgError
	if errors.As(err, &said) && !strings.HasPrefix(said.Code, "08") {
		return nil
	}
	return err
}

// asking is how somebody asks who is at an address: there and nowhere else, whatever other servers the URL names and whichever it prefers.
func (d *dialer) asking(address net.Addr) *pgconn.Config {
	config := d.config.Copy()
	config.ConnectTimeout = 0 // the answer's is shorter
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{address.String()}, nil }
	config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, address.Network(), address.String())
	}
	config.ValidateConnect = nil
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
	return config
}

// watched is a connection that ends when the server does not answer any more.
type watched struct {
	net.Conn
	dialer *dialer
	reads  atomic.Int64          // how many have begun and how many have ended, so that it is odd while somebody waits
	silent atomic.Pointer[error] // why it was ended
}

// Read implements net.Conn. Only one reads at a time, as from every connection to PostgreSQL.
func (c *watched) Read(into []byte) (int, error) {
	this := c.reads.Add(1)
	timer := time.AfterFunc(c.dialer.silence, func() { c.doubt(this) })
	n, err := c.Conn.Read(into)
	c.reads.Add(1)
	timer.Stop()
	if why := c.silent.Load(); err != nil && why != nil {
		err = &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: *why}
	}
	return n, err
}

// doubt asks the server while somebody waits for this reading, and ends the connection when it does not answer.
func (c *watched) doubt(this int64) {
	if c.reads.Load() != this {
		return
	}
	err := c.dialer.ask(c.RemoteAddr())
	switch {
	case c.reads.Load() != this:
	case err == nil:
		time.AfterFunc(c.dialer.silence, func() { c.doubt(this) })
	default:
		// That it timed out is not a deadline of who waits here, for whom the connection is broken.
		why := fmt.Errorf("nothing was heard for %v, and asked whether it is there the server does not answer: %v", c.dialer.silence, err)
		c.silent.Store(&why)
		c.Close()
	}
}
