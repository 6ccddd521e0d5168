package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"jurat/internal/log/lock"
)

// A lock in a database is an advisory lock of a session. The session has one connection, which has no other use. It ends at once when the process ends
// or the connection breaks. It ends after lockIdle without a message, if the network is cut or the machine has stopped. The process sends a message
// every lockBeat. If it gets no answer within lockAnswer, it treats its locks as lost, well before the database does.
const (
	lockBeat   = 3 * time.Second
	lockAnswer = 10 * time.Second // enough for a busy database
	lockIdle   = 20 * time.Second
)

// Locks holds locks among machines. It connects at the first lock.
type Locks struct {
	config       *pgx.ConnConfig
	beat, answer time.Duration // shorter in tests

	mu      sync.Mutex    // guards the members below
	session *pgx.Conn     // nil: not connected
	ended   chan struct{} // closed when the session is over; ends watch
	held    map[string]*hold
}

// A hold is a lock of this process.
type hold struct{ end context.CancelCauseFunc }

var _ lock.Locks = (*Locks)(nil)

// NewLocks returns the locks in a database. The connection must not go through a proxy that shares sessions.
func NewLocks(config *pgx.ConnConfig) *Locks { return newLocks(config, lockBeat, lockAnswer, lockIdle) }

func newLocks(config *pgx.ConnConfig, beat, answer, idle time.Duration) *Locks {
	config = config.Copy()
	config.RuntimeParams["application_name"] = "jurat claims" // the name of earlier versions, which operators may look for
	config.RuntimeParams["idle_session_timeout"] = strconv.FormatInt(idle.Milliseconds(), 10)
	return &Locks{config: config, beat: beat, answer: answer, held: map[string]*hold{}}
}

// lockOf is the number of the advisory lock for a name. Machines with different versions of the program must compute
// the same number, so it does not change.
func lockOf(name string) int64 {
	sum := sha256.Sum256([]byte("jurat/claim/v1\x00" + name))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

func (l *Locks) Lock(ctx context.Context, name string) (held context.Context, release func(), err error) {
	if err := lock.CheckName(name); err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] != nil { // the database would give a session the same lock again
		return nil, nil, fmt.Errorf("locking %s: %w", name, lock.ErrTaken)
	}
	var got bool
	if err = l.ask(ctx, `SELECT pg_try_advisory_lock($1)`, &got, lockOf(name)); err == nil && !got {
		err = lock.ErrTaken
	}
	if err != nil {
		return nil, nil, fmt.Errorf("locking %s: %w", name, Explain(err))
	}
	held, end := context.WithCancelCause(ctx)
	h := &hold{end}
	l.held[name] = h
	return held, func() { l.release(name, h) }, nil
}

// connect starts a session if there is none. The caller holds l.mu.
func (l *Locks) connect(ctx context.Context) error {
	if l.session != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.answer)
	defer cancel()
	session, err := pgx.ConnectConfig(ctx, l.config)
	if err != nil {
		return err
	}
	l.session, l.ended = session, make(chan struct{})
	go l.watch(session, l.ended)
	return nil
}

// ask sends a query in the session, which it starts if there is none. After an error, or without an answer in time, the state of the locks is unknown,
// so ask ends the session with all its locks. The caller holds l.mu.
func (l *Locks) ask(ctx context.Context, question string, to any, arguments ...any) error {
	if err := cmp.Or(ctx.Err(), l.connect(ctx)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.answer)
	defer cancel()
	err := l.session.QueryRow(ctx, question, arguments...).Scan(to)
	if err != nil {
		l.endAll()
		_ = l.hangUp() // the session is lost in any case
	}
	return err
}

// endAll ends the contexts of all locks, with lock.ErrLost as the cause. The caller holds l.mu.
func (l *Locks) endAll() {
	for _, h := range l.held {
		h.end(lock.ErrLost)
	}
	clear(l.held)
}

// hangUp ends the session. The caller holds l.mu.
func (l *Locks) hangUp() error {
	if l.session == nil {
		return nil
	}
	session := l.session
	l.session = nil
	close(l.ended)
	ctx, cancel := context.WithTimeout(context.Background(), l.answer) // the caller's context may have ended
	defer cancel()
	return session.Close(ctx)
}

// watch sends a query at every beat while the session lasts.
func (l *Locks) watch(session *pgx.Conn, ended <-chan struct{}) {
	tick := time.NewTicker(l.beat)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		l.mu.Lock()
		if l.session == session {
			var one int
			_ = l.ask(context.Background(), `SELECT 1`, &one) // if it fails, ask ends all locks
		}
		l.mu.Unlock()
	}
}

// release releases a lock, unless it was lost.
func (l *Locks) release(name string, h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.end(context.Canceled)
	if l.held[name] != h {
		return
	}
	delete(l.held, name)
	var had bool
	// The holder's context may have ended. If this fails, the session ends, and the lock with it.
	_ = l.ask(context.Background(), `SELECT pg_advisory_unlock($1)`, &had, lockOf(name))
}

func (l *Locks) Locked(ctx context.Context, name string) (is bool, err error) {
	if err := lock.CheckName(name); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] != nil {
		return true, nil
	}
	// The session may have ended with a server that runs again since. A retry asks in a new session.
	if err = retry(ctx, func() {}, undoneOrBroken, func() error {
		return l.ask(ctx, `SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND classid::bigint = ($1::bigint >> 32) & 4294967295 AND objid::bigint = $1::bigint & 4294967295)`, &is, lockOf(name))
	}); err != nil {
		return false, fmt.Errorf("reading whether %s is locked: %w", name, Explain(err))
	}
	return is, nil
}

func (l *Locks) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endAll()
	if err := l.hangUp(); err != nil {
		return fmt.Errorf("releasing locks: %w", err)
	}
	return nil
}
