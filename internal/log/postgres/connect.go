package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/log/ledger/storage"
)

// standstill is how long the server waits for a process to continue its transaction. All other writers wait meanwhile.
const standstill = 10 * time.Second

// settings are applied to every connection. They override the defaults of the server, the database and the role.
//
//   - synchronous_commit: a commit is durable when it is acknowledged; a stronger setting of the server stays.
//   - lock_timeout, statement_timeout: off, because the caller's context limits how long to wait for another process.
//   - tcp_*: both ends notice within 15 seconds that the other machine is cut off.
//   - plan_cache_mode: a statement is planned once, because planning takes longer than running it.
//   - enable_seqscan: off, because a plan made while a table is small would later read the whole table.
//   - search_path: only the server's own functions and operators are used. Other users may create better matching
//     ones in the schema public.
var settings = fmt.Sprintf(`SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
		ELSE current_setting('synchronous_commit') END, $1),
	set_config('idle_in_transaction_session_timeout', '%d', $1), set_config('lock_timeout', '0', $1), set_config('statement_timeout', '0', $1),
	set_config('tcp_keepalives_idle', '5', $1), set_config('tcp_keepalives_interval', '2', $1), set_config('tcp_keepalives_count', '5', $1),
	set_config('tcp_user_timeout', '15000', $1), set_config('enable_seqscan', 'off', $1), set_config('plan_cache_mode', 'force_generic_plan', $1),
	set_config('jit', 'off', $1), set_config('search_path', 'pg_catalog, pg_temp', $1)`, standstill.Milliseconds())

// Connect returns a pool of connections that have the settings above, after it has reached the server once. Its error wraps ErrURL, ErrUnreachable,
// ErrNoDatabase or ErrNotLetIn where one of them is the cause. No error of Connect, or of the pool's users, contains the password.
//
// The URL is libpq's. Its parameter pool_max_conns limits the number of connections (default 16). Behind a proxy that
// keeps no prepared statements, the URL must contain default_query_exec_mode=exec.
func Connect(ctx context.Context, name string) (*pgxpool.Pool, error) {
	config, err := parse(name)
	if err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err == nil {
		if err = pool.Ping(ctx); err == nil {
			return pool, nil
		}
		pool.Close()
	}
	return nil, fmt.Errorf("connecting to PostgreSQL: %w", Explain(err))
}

// CheckURL returns the error that Connect would return for a bad URL, without contacting the server.
func CheckURL(name string) error {
	_, err := parse(name)
	return err
}

func parse(name string) (*pgxpool.Config, error) {
	if !strings.HasPrefix(name, "postgres://") && !strings.HasPrefix(name, "postgresql://") {
		return nil, ErrURL
	}
	u, err := url.Parse(name)
	if err != nil { // the error can quote a part of the password
		return nil, errors.New("the database's URL cannot be read: in the user name and password, write every character except letters, digits and -._~ " +
			"as % and two hexadecimal digits")
	}
	config, err := pgxpool.ParseConfig(name)
	if err != nil {
		if unreadable, is := errors.AsType[*pgconn.ParseConfigError](err); is { // it quotes the whole URL
			err = errors.Unwrap(unreadable)
		}
		u.User, u.RawQuery = nil, "" // either can contain a password
		return nil, fmt.Errorf("the database's URL %s: %w", u, err)
	}
	if !u.Query().Has("pool_max_conns") {
		config.MaxConns = 16
	}
	conn := config.ConnConfig
	conn.ConnectTimeout = cmp.Or(conn.ConnectTimeout, 10*time.Second)
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "jurat"
	}
	conn.DialFunc = newDialer(&conn.Config, silence, answerTime).dial
	// A caller that stops waiting for another writer cancels its request at the server. pgx would by default close
	// the connection, which the server would notice only after it got the lock.
	conn.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 2 * time.Second}
	}
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, settings, pgx.QueryExecModeExec, false)
		return err
	}
	return config, nil
}

const (
	// silence is how long a read may wait before the dialer asks the server whether it is still running.
	silence = 15 * time.Second
	// answerTime is how long the server may take to answer that.
	answerTime = 5 * time.Second
)

// A dialer makes connections that end when the server is gone. The operating system notices data that is not confirmed or not sent (TCP_USER_TIMEOUT,
// keepalive). But a proxy or load balancer in between may confirm everything and pass on nothing. A read may wait as long as another process's lock, or
// a large index, takes. Therefore, while a read waits, the dialer asks the server over another connection. Callers need no deadline for this, and set
// none where a wait may be long.
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

// ask returns nil if the server answers, even if it refuses the login. A proxy may answer the login itself, so ask sends a statement. A proxy that
// cannot reach its server answers with an error of class 08. ask connects to this address only, whatever other servers the URL names or prefers.
func (d *dialer) ask(address net.Addr) error {
	ctx, cancel := context.WithTimeout(context.Background(), d.answer) // net.Conn passes no context
	defer cancel()
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
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err == nil {
		_, err = conn.Exec(ctx, `SELECT 1`).ReadAll()
		_ = conn.Close(ctx) // the server has answered already
	}
	if said, is := errors.AsType[*pgconn.PgError](err); is && !strings.HasPrefix(said.Code, "08") {
		return nil
	}
	return err
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
	default: // The error of ask is not wrapped: its timeout is not the reader's deadline. For the reader, the connection is broken.
		why := fmt.Errorf("the server sent nothing for %v and does not answer on a new connection: %v", c.dialer.silence, err)
		c.silent.Store(&why)
		c.Close()
	}
}

// Errors that keep a process from using a database. Neither they nor errors that wrap them contain the password. Those of type absence wrap storage.ErrAway.
var (
	// ErrURL means that the name is not a URL that Connect accepts.
	ErrURL = errors.New("the database's name must be a URL of the form postgres://USER@HOST:PORT/DATABASE")
	// ErrUnreachable means that the connection to the server failed or broke, or that the server starts, stops or takes no more connections.
	ErrUnreachable error = absence("the database server is out of reach")
	// ErrNoDatabase means that the server has no database of that name.
	ErrNoDatabase error = absence("the server has no such database")
	// ErrNotLetIn means that the server refuses this role, this password, or logins from this machine.
	ErrNotLetIn error = absence("the server does not let this role in")
	// ErrNotAllowed means that the role lacks a right. It wraps fs.ErrPermission.
	ErrNotAllowed = fmt.Errorf("the role may not do what is needed: %w", fs.ErrPermission)
)

// An absence is an error that wraps storage.ErrAway.
type absence string

func (a absence) Error() string { return string(a) }
func (absence) Unwrap() error   { return storage.ErrAway }

// Explain wraps an error of a connection in the error above that says its meaning. It returns other errors unchanged.
func Explain(err error) error {
	meaning := meaningOf(err)
	if meaning == nil || errors.Is(err, meaning) {
		return err
	}
	return fmt.Errorf("%w: %w", meaning, oneLine{err})
}

// oneLine prints an error of pgconn on one line. pgconn uses one line for each address.
type oneLine struct{ error }

func (o oneLine) Error() string {
	return strings.ReplaceAll(strings.ReplaceAll(o.error.Error(), ":\n\t", ": "), "\n\t", "; ")
}

func (o oneLine) Unwrap() error { return o.error }

func meaningOf(err error) error {
	failure, is := errors.AsType[*pgconn.PgError](err)
	switch {
	case !is && outOfReach(err), is && (isCut(err) || strings.HasPrefix(failure.Code, "53")): // or it lacks memory or connections
		return ErrUnreachable
	case !is:
		return nil
	}
	return map[string]error{"42501": ErrNotAllowed, "3D000": ErrNoDatabase, "28P01": ErrNotLetIn, "28000": ErrNotLetIn}[failure.Code]
}

// outOfReach reports whether no PostgreSQL server answered, or a connection broke off.
func outOfReach(err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return network || connecting || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		pgconn.SafeToRetry(err) // it was not sent, as the connection was closed
}

// isCut reports whether an error is about the connection, not an answer that came over it.
func isCut(err error) bool {
	failure, is := errors.AsType[*pgconn.PgError](err)
	if !is {
		return !errors.Is(err, pgx.ErrNoRows) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	switch failure.Code {
	case "57P01", "57P02", "57P03", "25P03", "25P04": // the server shuts down, crashed, starts up; a transaction was idle or ran for too long
		return true
	}
	return strings.HasPrefix(failure.Code, "08")
}

// isBroken reports whether an error is about the connection, not an answer of the store.
func isBroken(err error) bool {
	return isCut(err) && !errors.Is(err, storage.ErrDamaged) && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrClosed)
}

// translate replaces PostgreSQL's errors by those of package storage and of this package.
func translate(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return storage.ErrNotFound
	}
	failure, is := errors.AsType[*pgconn.PgError](err)
	if !is {
		return Explain(err)
	}
	meaning := map[string]error{
		"23505": storage.ErrNotUnique,
		"53100": storage.ErrDiskFull,
		"25006": storage.ErrReadOnly, // a standby, or default_transaction_read_only
		"XX001": storage.ErrDamaged,
		"XX002": storage.ErrDamaged,
		"42P01": ErrNoTables, // or these tables do not exist
		"3F000": ErrNoTables,
	}[failure.Code]
	if meaning == nil || errors.Is(err, meaning) {
		return Explain(err)
	}
	return fmt.Errorf("%w: %w", meaning, err)
}

// tries is how often an operation is tried after broken connections: a server that restarted or took over may leave several dead ones in the pool.
const tries = 3

// retry runs do, and repeats it while again accepts its error, up to tries times. When a connection broke, others of
// the pool are broken as well, so retry calls reset to empty the pool. Who lost to another transaction lets that one
// come to its end first: without a pause it could take the same locks again, and lose each time.
func retry(ctx context.Context, reset func(), again func(error) bool, do func() error) (err error) {
	for try := range tries {
		if err = do(); err == nil || !again(err) || ctx.Err() != nil {
			break
		}
		if isCut(err) {
			reset()
			continue
		}
		select {
		case <-time.After(pause << try):
		case <-ctx.Done():
		}
	}
	return err
}

// pause is how long the first one is.
const pause = 50 * time.Millisecond

// undone reports whether a failed operation certainly had no effect and may succeed when repeated: the server did not
// receive it, or rolled it back in favour of another transaction.
func undone(err error) bool {
	if failure, is := errors.AsType[*pgconn.PgError](err); is && (failure.Code == "40001" || failure.Code == "40P01") { // serialization failure, deadlock
		return true
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return pgconn.SafeToRetry(err) || connecting && isCut(err)
}

// undoneOrBroken reports whether a failed operation may be repeated, if doing it twice does no harm.
func undoneOrBroken(err error) bool { return undone(err) || isCut(err) }
