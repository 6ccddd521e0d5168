package schedule_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/api"
	"jurat/internal/filestore"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/ledger/storage"
	"jurat/internal/must"
	"jurat/internal/pgtest"
	"jurat/internal/schedule"
	"jurat/jurattest"
	"jurat/timestamp"
)

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
		if err := other.Cancel(t.Context(), id, "Reika Mori", "submitted by mistake"); err != nil {
			t.Error(err)
		}
	}
	store.happens.Store(&happens)
	if _, _, err := one.Entries(t.Context(), "", 10, nil); err != nil {
		t.Error(err)
	}
	if e := entry(t, one, id); e.State != api.Cancelled {
		t.Errorf("%+v", e)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	signer := must.Get(note.NewSigner(private))(t)
	verifier := must.Get(note.NewVerifier(public))(t)
	h.Ledger, err = ledger.Create(t.Context(), ledger.Config{Store: store, Signer: signer, Verifier: verifier, Stamper: stamped{timestamp.NewMock()}, Now: h.Now})
	if err != nil {
		t.Fatal(err)
	}
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
	if _, _, err := one.Entries(impatient, "", 10, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	end()
	if err := <-told; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

type stamped struct{ *timestamp.Authority }

func (s stamped) Stamp(_ context.Context, imprint [32]byte) (ledger.Stamped, error) {
	token, err := s.Issue(&timestamp.Request{Imprint: imprint, CertReq: true})
	return ledger.Stamped{Tokens: [][]byte{token}}, err
}

// TestDatabaseAway takes the database away again and again, for a moment. Each trial comes to its end, although a single attempt that failed would
// break it off: a database that was away is no attempt.
func TestDatabaseAway(t *testing.T) {
	server := pgtest.Start(t)
	dir := t.TempDir()
	key := filepath.Join(dir, "wrapping.key")
	must.Do(t, os.WriteFile(key, filestore.Generate(), 0o600))
	i, _, err := installation.OpenOrCreate(t.Context(), installation.Config{Dir: filepath.Join(dir, "node"), DB: server.Database(t) + "?connect_timeout=60", WrappingKey: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	table := must.Get(schedule.OpenTable(t.Context(), i.Database(), ""))(t)
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{delay: 200 * time.Millisecond}
	d := open(t, schedule.Config{Ledger: i.Ledger, Keys: i.Keys, Locks: i.Locks(), Vouch: i.Vouch, Table: table, Sit: b.sit, Attempts: 1, Backoff: time.Hour, Lease: time.Second})
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
