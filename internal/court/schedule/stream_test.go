package schedule_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/client/api"
	"jurat/internal/court/schedule"
	"jurat/internal/court/trial"
	"jurat/internal/log/filestore"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/jury"
	"jurat/timestamp"
)

// TestWatchFromAnywhere: a watcher who asks for the events after a number gets exactly those, live and later, with the
// same bytes.
func TestWatchFromAnywhere(t *testing.T) {
	h, b := jurattest.New(t), &bench{delay: 2 * time.Millisecond}
	d := open(t, config(h, b))
	id := submit(t, d)
	var all sync.WaitGroup
	live := make([][]schedule.Frame, 50)
	for i := range live {
		all.Go(func() { live[i] = watched(t, d, id, int64(i%2)) })
	}
	run(t, d)
	all.Wait()
	whole := live[0]
	must.Len(t, whole, 15)
	for i, frames := range live {
		wantSame(t, frames, whole[i%2:])
	}
	for after := range whole {
		wantSame(t, watched(t, d, id, int64(after+1)), whole[after+1:])
	}
	other := open(t, config(h, b)) // a scheduler without memory of the trial
	wantSame(t, watched(t, other, id, 0), whole)
}

func wantSame(t *testing.T, got, want []schedule.Frame) {
	t.Helper()
	same := func(a, b schedule.Frame) bool {
		return a.Seq == b.Seq && a.Type == b.Type && a.Last == b.Last && bytes.Equal(a.JSON, b.JSON)
	}
	must.Hold(t, slices.EqualFunc(got, want, same), "%d events, want %d: %+v", len(got), len(want), got)
}

func TestWatchRefusals(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	d := open(t, config(h, b))
	id := submit(t, d)
	done := h.Try(t, jury.FinalJudge)
	for _, c := range []struct {
		id    string
		after int64
		want  error
	}{
		{"trial-none", 0, trial.ErrUnknown}, {"", 0, trial.ErrUnknown}, {"chain-x", 0, trial.ErrUnknown},
		{id, 2, schedule.ErrAhead}, {id, -1, schedule.ErrAhead}, {done.ID, 16, schedule.ErrAhead},
	} {
		must.Fail(t, c.want, c.id, "after", c.after)(d.Watch(t.Context(), c.id, c.after))
	}
	frames := watched(t, d, done.ID, 15)
	must.Hold(t, len(frames) <= 0, "after the last event: %+v", frames)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := must.Get(d.Watch(ctx, id, 0))(t)
	for f, err := range events.Frames {
		must.Need(t, (err != nil || f.Seq == 1) && (err == nil || errors.Is(err, context.Canceled)), "%+v, %v", f, err)
		cancel()
	}
}

// TestSlowWatcher: a slow watcher blocks no one, and gets all events in the end.
func TestSlowWatcher(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	d := open(t, config(h, b))
	id := submit(t, d)
	run(t, d)
	events := must.Get(d.Watch(t.Context(), id, 0))(t)
	var seq int64
	for f, err := range events.Frames {
		must.Need(t, err == nil && f.Seq == seq+1, "%v, event %d after %d", err, f.Seq, seq)
		if seq = f.Seq; seq == 1 {
			awaitState(t, d, id, api.Over)
		}
	}
	must.Equal(t, seq, 15)
}

// TestWatchedAgainAtOnce: a watcher who comes while the last one leaves gets all events, although the read that was due
// ended with the one who left.
func TestWatchedAgainAtOnce(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	c := config(h, b)
	c.Gather = 20 * time.Millisecond
	d := open(t, c)
	id := submit(t, d)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	events := must.Get(d.Watch(ctx, id, 0))(t)
	run(t, d)
	awaitState(t, d, id, api.Over) // without a watcher
	for range events.Frames {
		break // a reading is due
	}
	n := 0
	for f, err := range events.Frames {
		must.Need(t, err == nil, "after %d events: %v", n, err)
		n = int(f.Seq)
	}
	must.Equal(t, n, 15)
}

// TestTrialsHaveMemory: trials that do not fit into memory together run one after the other. A trial that waits for
// memory ends with the scheduler.
func TestTrialsHaveMemory(t *testing.T) {
	h, b := jurattest.New(t), &bench{delay: 2 * time.Millisecond}
	c := config(h, b)
	c.Parallel, c.Memory = 4, 3<<20>>1 // one and a half of the smallest
	d := open(t, c)
	var ids []string
	for range 4 {
		ids = append(ids, submit(t, d))
	}
	stop := run(t, d)
	for _, id := range ids {
		watched(t, d, id, 0)
	}
	most := b.most.Load()
	must.Hold(t, most <= 3, "%d answers at a time in one trial of three jurors", most)
	stop()

	b = &bench{gate: make(chan struct{})}
	c = config(h, b)
	c.Parallel, c.Memory = 2, 1<<20
	d = open(t, c)
	submit(t, d)
	submit(t, d)
	stop = run(t, d)
	for b.asked.Load() < 3 || d.UnderWay() < 2 {
		time.Sleep(time.Millisecond)
	}
	go func() { time.Sleep(50 * time.Millisecond); close(b.gate) }()
	stop()
	must.Hold(t, b.most.Load() <= 3, "%d answers at a time", b.most.Load())
}

// TestWatchersReadOnce: watchers who come to a finished trial while it is being read cause each record to be read once.
func TestWatchersReadOnce(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	d := open(t, config(h, b))
	id := submit(t, d)
	run(t, d)
	watched(t, d, id, 0)
	begin, read := schedule.HoldReading(d, id)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { watched(t, d, id, 0) })
	}
	time.Sleep(300 * time.Millisecond) // so that all watchers have come
	begin()
	all.Wait()
	must.Equal(t, read(), 15)
}

// meanwhile is a store in which another action happens right after a reader found nothing new about trials.
type meanwhile struct {
	storage.Store
	happens atomic.Pointer[func()]
}

func (m *meanwhile) Briefs(ctx context.Context, q storage.BriefQuery) ([]storage.StoredBrief, error) {
	rows, err := m.Store.Briefs(ctx, q)
	if f := m.happens.Load(); q.Trials && f != nil && len(rows) == 0 && m.happens.CompareAndSwap(f, nil) {
		(*f)()
	}
	return rows, err
}

// TestStoppedWhileRead: a trial that another process submits and cancels between two reads of the log does not count as
// damage.
func TestStoppedWhileRead(t *testing.T) {
	h := jurattest.New(t)
	store := &meanwhile{Store: emptyLog(t)}
	keep(t, h, store)
	one, other := two(t, h, &bench{})
	id := ""
	happens := func() {
		id = submit(t, other)
		must.Want(t, other.Cancel(t.Context(), id, "Reika Mori", "submitted by mistake"), nil)
	}
	store.happens.Store(&happens)
	_, _, err := one.Entries(t.Context(), "", 10, nil)
	must.Hold(t, err == nil, "%v", err)
	e := entry(t, one, id)
	must.Hold(t, e.State == api.Cancelled, "%+v", e)
}

func emptyLog(t *testing.T) storage.Store {
	t.Helper()
	store := must.Get(sqlite.UnsafeCreate(t.Context(), filepath.Join(t.TempDir(), "log.db")))(t)
	t.Cleanup(func() { store.Close() })
	return store
}

// keep puts the log of a house into a store.
func keep(t *testing.T, h *jurattest.House, store storage.Store) {
	t.Helper()
	private, public, err := note.GenerateKey(rand.Reader, jurattest.Origin)
	must.Do(t, err)
	signer := must.Get(note.NewSigner(private))(t)
	verifier := must.Get(note.NewVerifier(public))(t)
	h.Ledger, err = ledger.Create(t.Context(), ledger.Config{Store: store, Signer: signer, Verifier: verifier, Stamper: stamped{timestamp.NewMock()}, Now: h.Now})
	must.Do(t, err)
	t.Cleanup(func() { h.Ledger.Close() })
}

// deaf is a store that can block every query about trials until the caller gives up.
type deaf struct {
	storage.Store
	asked chan struct{} // nil: queries do not block
}

func (d *deaf) Briefs(ctx context.Context, q storage.BriefQuery) ([]storage.StoredBrief, error) {
	if d.asked == nil || !q.Trials {
		return d.Store.Briefs(ctx, q)
	}
	d.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestDeafLog: a caller who waits for a blocked log does not keep other callers from giving up.
func TestDeafLog(t *testing.T) {
	h := jurattest.New(t)
	store := &deaf{Store: emptyLog(t)}
	keep(t, h, store)
	one, _ := two(t, h, &bench{})
	store.asked = make(chan struct{})
	patient, end := context.WithCancel(t.Context())
	told := make(chan error)
	go func() {
		_, _, err := one.Entries(patient, "", 10, nil)
		told <- err
	}()
	<-store.asked
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := one.Entries(impatient, "", 10, nil)
	must.Want(t, err, context.Canceled)
	end()
	must.Want(t, <-told, context.Canceled)
}

type stamped struct{ *timestamp.Authority }

func (s stamped) Stamp(_ context.Context, imprint [32]byte) (ledger.Stamped, error) {
	token, err := s.Issue(&timestamp.Request{Imprint: imprint, CertReq: true})
	return ledger.Stamped{Tokens: [][]byte{token}}, err
}

// TestDatabaseAway takes the database away again and again, for a moment. Each trial comes to its end, although a single attempt that failed would
// break it off: a database that was away is no attempt.
func TestDatabaseAway(t *testing.T) {
	server := rig.StartPostgres(t)
	dir := t.TempDir()
	key := filepath.Join(dir, "wrapping.key")
	must.Do(t, os.WriteFile(key, filestore.Generate(), 0o600))
	i, _, err := installation.OpenOrCreate(t.Context(), installation.Config{Dir: filepath.Join(dir, "node"), DB: server.Database(t) + "?connect_timeout=60", WrappingKey: key})
	must.Do(t, err)
	t.Cleanup(func() {
		must.Want(t, i.Close(), nil)
	})
	table := must.Get(schedule.OpenTable(t.Context(), i.Database, ""))(t)
	t.Cleanup(func() {
		must.Want(t, table.Close(), nil)
	})
	b := &bench{delay: 200 * time.Millisecond}
	d := open(t, schedule.Config{Ledger: i.Ledger, Keys: i.Keys, Locks: i.Locks, Vouch: i.Vouch, Table: table, Sit: b.sit, Attempts: 1, Backoff: time.Hour, Lease: time.Second})
	run(t, d)
	var ids []string
	for range 8 {
		ids = append(ids, submit(t, d))
	}
	for n := range 5 {
		time.Sleep(1500 * time.Millisecond) // trials go on meanwhile
		if n%2 == 0 {
			server.Halt(t)
		} else {
			server.Kill(t)
		}
		time.Sleep(300 * time.Millisecond)
		server.Restart(t)
	}
	for _, id := range ids {
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			e := entry(t, d, id)
			if e.State == api.Over {
				break
			}
			if e.State == api.BrokenOff || time.Now().After(end) {
				t.Errorf("%s is %s: %s", id, e.State, e.Reason)
				break
			}
		}
	}
}
