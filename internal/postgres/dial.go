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
	// silence is how long a read may wait before the dialer asks the server whether it is still running.
	silence = 15 * time.Second
	// answerTime is how long the server may take to answer that.
	answerTime = 5 * time.Second
)

// A dialer makes connections that end when the server is gone. The operating system notices data that is not
// confirmed or not sent (TCP_USER_TIMEOUT, keepalive). But a proxy or load balancer in between may confirm everything
// and pass on nothing. A read may wait as long as another process's lock, or a large index, takes. Therefore, while a
// read waits, the dialer asks the server over another connection. Callers need no deadline for this, and set none
// where a wait may be long.
type dialer struct {
	net.Dialer
	silence, answer time.Duration
	config          *pgconn.Config // the login for the other connection
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
	if !is { // a Unix socket ends with the server
		return conn, nil
	}
	if err := boundUnconfirmed(tcp, d.silence); err != nil {
		return nil, errors.Join(fmt.Errorf("limiting how long %s may leave sent data unconfirmed: %w", address, err), tcp.Close())
	}
	return &watched{Conn: tcp, dialer: d}, nil
}

// ask returns nil if the server answers, even if it refuses the login. A proxy may answer the login itself, so ask
// sends a statement. A proxy that cannot reach its server answers with an error of class 08.
func (d *dialer) ask(address net.Addr) error {
	ctx, cancel := context.WithTimeout(context.Background(), d.answer) // net.Conn passes no context
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, d.asking(address))
	if err == nil {
		_, err = conn.Exec(ctx, `SELECT 1`).ReadAll()
		_ = conn.Close(ctx) // the server has answered already
	}
	var said *pgconn.PgError
	if errors.As(err, &said) && !strings.HasPrefix(said.Code, "08") {
		return nil
	}
	return err
}

// asking returns the configuration for ask. It connects to this address only, whatever other servers the URL names or
// prefers.
func (d *dialer) asking(address net.Addr) *pgconn.Config {
	config := d.config.Copy()
	config.ConnectTimeout = 0 // answer is shorter
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

// watched is a connection that ends when the server stops answering.
type watched struct {
	net.Conn
	dialer *dialer
	reads  atomic.Int64          // reads begun plus reads ended: odd while one waits
	silent atomic.Pointer[error] // why the dialer closed the connection
}

// Read implements net.Conn. Only one caller reads at a time, as pgx does.
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

// doubt asks the server while the given read still waits, and closes the connection if the server does not answer.
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
		// The error of ask is not wrapped: its timeout is not the reader's deadline. For the reader, the connection
		// is broken.
		why := fmt.Errorf("the server sent nothing for %v and does not answer on a new connection: %v", c.dialer.silence, err)
		c.silent.Store(&why)
		c.Close()
	}
}
