package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// standstill is how long the server waits for a process to go on with its transaction, while everybody else waits for that.
const standstill = 10 * time.Second

// settings are those of every connection, whatever the server, the database or the role has made the default. That a transaction is durable when
// it is committed is what an acknowledgement promises; an even stronger setting is left. How long one waits for another process is for
// the caller's context to say. A machine that is cut off is noticed within a quarter of a minute, by both ends. And how a statement
// is carried out is decided on once, as deciding takes longer than doing; nothing is then read from end to end because there was little of
// it when that was decided. Functions and operators are the server's own: where others may make some in public, those that fit better than
// its general ones would be taken.
var settings = fmt.Sprintf(`SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
		ELSE current_setting('synchronous_commit') END, $1),
	set_config('idle_in_transaction_session_timeout', '%d', $1), set_config('lock_timeout', '0', $1), set_config('statement_timeout', '0', $1),
	set_config('tcp_keepalives_idle', '5', $1), set_config('tcp_keepalives_interval', '2', $1), set_config('tcp_keepalives_count', '5', $1),
	set_config('tcp_user_timeout', '15000', $1), set_config('enable_seqscan', 'off', $1), set_config('plan_cache_mode', 'force_generic_plan', $1), set_config('jit', 'off', $1),
	set_config('search_path', 'pg_catalog, pg_temp', $1)`, standstill.Milliseconds())

// isURL reports whether a name of a database is one that Connect understands.
func isURL(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// Connect returns a pool of connections that are as settings say. It has reached the server once. No error
// of it, or of anything that uses it, says the password.
//
// The URL is libpq's, and may say how many connections there may be at most (pool_max_conns, 16). Behind a proxy that keeps no
// prepared statements it has to say default_query_exec_mode=exec.
func Connect(ctx context.Context, name string) (*pgxpool.Pool, error) {
	config, err := parse(name)
	if err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", Explain(err))
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", Explain(err))
	}
	return pool, nil
}

// CheckURL says what is wrong with a name of a database for Connect, as far as that shows without the server.
func CheckURL(name string) error {
	_, err := parse(name)
	return err
}

func parse(name string) (*pgxpool.Config, error) {
	if !isURL(name) {
		return nil, ErrURL
	}
	u, err := url.Parse(name)
	if err != nil { // which can quote a part of the password
		return nil, errors.New("the database's URL cannot be read: in a user's name and password, every character but letters, digits and -._~ " +
			"is to be written as % and two hexadecimal digits")
	}
	config, err := pgxpool.ParseConfig(name)
	if err != nil {
		var unreadable *pgconn.ParseConfigError // which quotes the whole
		if errors.As(err, &unreadable) {
			err = errors.Unwrap(unreadable)
		}
		u.User, u.RawQuery = nil, "" // a password may be in either
		return nil, fmt.Errorf("the database's URL %s: %w", u, err)
	}
	if !u.Query().Has("pool_max_conns") {
		config.MaxConns = 16
	}
	conn := config.ConnConfig
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = 10 * time.Second
	}
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "jurat"
	}
	conn.DialFunc = newDialer(&conn.Config, silence, answerTime).dial
	// Whoever does not want to wait any more for another writer says so to the server. The default is to hang up, which the server
	// would notice only once it had the lock.
	conn.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 2 * time.Second}
	}
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, settings, pgx.QueryExecModeExec, false)
		return err
	}
	return config, nil
}
