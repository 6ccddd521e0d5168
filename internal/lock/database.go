package lock

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A claim in a database is an advisory lock of a session. The session has one connection, which has no other use. It
// ends at once when the process ends or the connection breaks. It ends after idle without a message, if the network
// is cut or the machine has stopped. The process sends a message every beat. If it gets no answer within answer, it
// treats its claims as lost, well before the database does.
const (
	beat   = 3 * time.Second
	answer = 10 * time.Second // enough for a busy database
	idle   = 20 * time.Second
)

// A Database holds claims among machines. It connects at the first claim.
type Database struct {
	config       *pgx.ConnConfig
	beat, answer time.Duration // shorter in tests

	mu      sync.Mutex    // guards the members below
	session *pgx.Conn     // nil: not connected
	ended   chan struct{} // closed when the session is over; ends watch
	held    map[string]*hold
}

// A hold is a claim of this process.
type hold struct{ end context.CancelCauseFunc }

var _ Claims = (*Database)(nil)

// NewDatabase returns the claims in a database. The connection must not go through a proxy that shares sessions.
func NewDatabase(config *pgx.ConnConfig) *Database { return newDatabase(config, beat, answer, idle) }

func newDatabase(config *pgx.ConnConfig, beat, answer, idle time.Duration) *Database {
	config = config.Copy()
	config.RuntimeParams["application_name"] = "jurat claims"
	config.RuntimeParams["idle_session_timeout"] = strconv.FormatInt(idle.Milliseconds(), 10)
	return &Database{config: config, beat: beat, answer: answer, held: map[string]*hold{}}
}

// lockOf is the number of the advisory lock for a name.
func lockOf(name string) int64 {
	sum := sha256.Sum256([]byte("jurat/claim/v1\x00" + name))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// Claim implements Claims.
func (d *Database) Claim(ctx context.Context, name string) (held context.Context, release func(), err error) {
	if err := check(name); err != nil {
		return nil, nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held[name] != nil { // the database would give a session the same lock again
		return nil, nil, fmt.Errorf("claiming %s: %w", name, ErrTaken)
	}
	if err := d.take(ctx, name); err != nil {
		return nil, nil, fmt.Errorf("claiming %s: %w", name, err)
	}
	held, end := context.WithCancelCause(ctx)
	h := &hold{end}
	d.held[name] = h
	return held, func() { d.release(name, h) }, nil
}

// take takes the lock for a name. The caller holds d.mu.
func (d *Database) take(ctx context.Context, name string) error {
	if err := d.connect(ctx); err != nil {
		return err
	}
	var got bool
	err := d.ask(ctx, `SELECT pg_try_advisory_lock($1)`, &got, lockOf(name))
	if err == nil && !got {
		err = ErrTaken
	}
	return err
}

// connect starts a session if there is none. The caller holds d.mu.
func (d *Database) connect(ctx context.Context) error {
	if d.session != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.answer)
	defer cancel()
	session, err := pgx.ConnectConfig(ctx, d.config)
	if err != nil {
		return err
	}
	d.session, d.ended = session, make(chan struct{})
	go d.watch(session, d.ended)
	return nil
}

// ask sends a query in the session. After an error, or without an answer in time, the state of the locks is unknown,
// so ask ends the session with all its claims. The caller holds d.mu.
func (d *Database) ask(ctx context.Context, question string, to any, arguments ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.answer)
	defer cancel()
	err := d.session.QueryRow(ctx, question, arguments...).Scan(to)
	if err != nil {
		d.lose()
	}
	return err
}

// lose ends the session and its claims. The caller holds d.mu.
func (d *Database) lose() {
	d.endAll()
	_ = d.hangUp() // the session is lost in any case
}

// endAll ends the contexts of all claims, with ErrLost as the cause. The caller holds d.mu.
func (d *Database) endAll() {
	for _, h := range d.held {
		h.end(ErrLost)
	}
	clear(d.held)
}

// hangUp ends the session. The caller holds d.mu.
func (d *Database) hangUp() error {
	if d.session == nil {
		return nil
	}
	session := d.session
	d.session = nil
	close(d.ended)
	ctx, cancel := context.WithTimeout(context.Background(), d.answer) // the caller's context may have ended
	defer cancel()
	return session.Close(ctx)
}

// watch sends a query at every beat while the session lasts.
func (d *Database) watch(session *pgx.Conn, ended <-chan struct{}) {
	tick := time.NewTicker(d.beat)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		d.mu.Lock()
		if d.session == session {
			var one int
			_ = d.ask(context.Background(), `SELECT 1`, &one) // if it fails, ask ends all claims
		}
		d.mu.Unlock()
	}
}

// release releases a claim, unless it was lost.
func (d *Database) release(name string, h *hold) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h.end(context.Canceled)
	if d.held[name] != h {
		return
	}
	delete(d.held, name)
	var had bool
	// The holder's context may have ended. If this fails, the session ends, and the lock with it.
	_ = d.ask(context.Background(), `SELECT pg_advisory_unlock($1)`, &had, lockOf(name))
}

// Claimed implements Claims.
func (d *Database) Claimed(ctx context.Context, name string) (is bool, err error) {
	if err := check(name); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held[name] != nil {
		return true, nil
	}
	if err = d.connect(ctx); err == nil {
		err = d.ask(ctx, `SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND classid::bigint = ($1::bigint >> 32) & 4294967295 AND objid::bigint = $1::bigint & 4294967295)`, &is, lockOf(name))
	}
	if err != nil {
		return false, fmt.Errorf("reading whether %s is claimed: %w", name, err)
	}
	return is, nil
}

// Close implements Claims.
func (d *Database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endAll()
	if err := d.hangUp(); err != nil {
		return fmt.Errorf("releasing claims: %w", err)
	}
	return nil
}
