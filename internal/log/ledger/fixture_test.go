package ledger_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/log/postgres"
	"jurat/internal/test/rig"
)

// Keys of these tests. They are public, so anyone can sign with them.
var (
	logSigner, logVerifier     = logKey("jurat.example/log")
	otherSigner, otherVerifier = logKey("other.example/log")
	actorKey                   = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	actor                      = []evidence.Signer{must(evidence.NewSigner(actorKey, rand.Reader))}
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func logKey(name string) (note.Signer, note.Verifier) {
	seed := sha256.Sum256([]byte(name))
	private, public, err := note.GenerateKey(bytes.NewReader(seed[:]), name)
	if err != nil {
		panic(err)
	}
	return must(note.NewSigner(private)), must(note.NewVerifier(public))
}

// clock stamps with the imprint itself, which a test can check.
type clock struct{}

func (clock) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	return ledger.Stamped{Tokens: [][]byte{append([]byte("stamped "), imprint[:]...)}}, ctx.Err()
}

// genuine checks signature and token as the fixture makes them.
func genuine(r *evidence.Record, waits bool) error {
	if waits {
		return r.CheckSignature(0, actorKey.Public())
	}
	if len(r.Timestamps) == 0 {
		return errors.New("no time stamp")
	}
	imprint := r.Imprint()
	if !bytes.Equal(r.Timestamps[0].Token, append([]byte("stamped "), imprint[:]...)) {
		return errors.New("the time stamp is over something else")
	}
	return r.CheckSignature(0, actorKey.Public())
}

func config(store storage.Store) ledger.Config {
	return ledger.Config{Store: store, Signer: logSigner, Verifier: logVerifier, Stamper: clock{}}
}

// folder is a data folder: a database and its checkpoint file. If it contains a file "url", the database is the
// PostgreSQL database with that URL.
type folder string

// onBoth runs a test on each kind of database.
func onBoth(t *testing.T, test func(*testing.T, folder)) {
	t.Run("sqlite", func(t *testing.T) { test(t, folder(t.TempDir())) })
	t.Run("postgres", func(t *testing.T) { test(t, onPostgres(t, rig.Database(t))) })
}

func onPostgres(t testing.TB, url string) folder {
	t.Helper()
	f := folder(t.TempDir())
	succeeds(t, os.WriteFile(filepath.Join(string(f), "url"), []byte(url), 0o600))
	return f
}

func (f folder) url() (string, error) {
	url, err := os.ReadFile(filepath.Join(string(f), "url"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(url), err
}

func (f folder) database() string { return filepath.Join(string(f), "log.db") }

func (f folder) createStore(ctx context.Context) (storage.Store, error) {
	url, err := f.url()
	if err != nil {
		return nil, err
	}
	if url == "" {
		return sqlite.Create(ctx, f.database())
	}
	return pool(ctx, url, postgres.Create)
}

func (f folder) openStore(ctx context.Context) (storage.Store, error) {
	url, err := f.url()
	if err != nil {
		return nil, err
	}
	if url == "" {
		return sqlite.Open(ctx, f.database())
	}
	return pool(ctx, url, postgres.Open)
}

// pooled is a store with a pool of its own.
type pooled struct {
	*postgres.Store
	pool *pgxpool.Pool
}

func (p pooled) Close() error {
	err := p.Store.Close()
	p.pool.Close()
	return err
}

func pool(ctx context.Context, url string, open func(context.Context, *pgxpool.Pool) (*postgres.Store, error)) (storage.Store, error) {
	pool, err := postgres.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, pool)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pooled{s, pool}, nil
}

func (f folder) published() ledger.CheckpointFile {
	return ledger.CheckpointFile(filepath.Join(string(f), "checkpoint"))
}

func (f folder) config(store storage.Store) ledger.Config {
	c := config(store)
	c.Published = f.published()
	return c
}

func (f folder) create(t testing.TB) *ledger.Ledger {
	t.Helper()
	store := must(f.createStore(t.Context()))
	l := must(ledger.Create(t.Context(), f.config(store)))
	t.Cleanup(func() { l.Close() })
	return l
}

// open opens the ledger, or returns the error.
func (f folder) open(t testing.TB) (*ledger.Ledger, error) {
	t.Helper()
	store, err := f.openStore(t.Context())
	if err != nil {
		return nil, err
	}
	l, err := ledger.Open(t.Context(), f.config(store))
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	t.Cleanup(func() { l.Close() })
	return l, nil
}

func (f folder) store(t testing.TB) (storage.Store, error) {
	t.Helper()
	store, err := f.openStore(t.Context())
	if err == nil {
		t.Cleanup(func() { store.Close() })
	}
	return store, err
}

func (f folder) fsck(t testing.TB) []fsck.Damage {
	t.Helper()
	store := must(f.openStore(t.Context()))
	defer store.Close()
	return damagesOf(t, f.config(store))
}

func damagesOf(t testing.TB, c ledger.Config) []fsck.Damage {
	t.Helper()
	return must(fsck.Run(t.Context(), examined(c), fsck.Options{Check: genuine}))
}

func wantClean(t testing.TB, found []fsck.Damage) {
	t.Helper()
	for _, d := range found {
		t.Errorf("damage: %v", d)
	}
}

// fresh returns an empty store that the test shares with no process.
func fresh(t testing.TB) storage.Store {
	t.Helper()
	store := must(sqlite.UnsafeCreate(t.Context(), filepath.Join(t.TempDir(), "log.db")))
	t.Cleanup(func() { store.Close() })
	return store
}

func alone(t testing.TB) (*ledger.Ledger, ledger.Config) {
	t.Helper()
	c := config(fresh(t))
	l := must(ledger.Create(t.Context(), c))
	t.Cleanup(func() { l.Close() })
	return l, c
}

const someAct = `{"agent_id":"agent-7","request_id":"req-1","timestamp":"2000-01-01T00:00:00Z","model":"m","model_version":"1",
	"prompt":"May I?","response":"You may.","parameters":{"temperature":0.5}%s}`

// act is a draft; more is further members, with a comma before each.
func act(more string) *evidence.Draft {
	return must(evidence.ParseDraft(fmt.Appendf(nil, someAct, more)))
}

func seal(t testing.TB, l *ledger.Ledger, more string) *evidence.Record {
	t.Helper()
	return must(l.Seal(t.Context(), act(more), actor))
}

func sealMany(t testing.TB, l *ledger.Ledger, n int) (records []*evidence.Record) {
	t.Helper()
	for range n {
		records = append(records, seal(t, l, ""))
	}
	return records
}

func wantError(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v, want %v", err, target)
	}
}

// fails is wantError for a call that returns more.
func fails(t testing.TB, target error) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		wantError(t, err, target)
	}
}

// only is the error of a call that returns more.
func only(_ any, err error) error { return err }

// wantOnce checks that each of these ids is in the log exactly once.
func wantOnce(t testing.TB, l *ledger.Ledger, ids []string) {
	t.Helper()
	times := map[string]int{}
	for r, err := range l.Records(t.Context(), 0) {
		succeeds(t, err)
		times[r.Payload.RecordID]++
	}
	for _, id := range ids {
		if times[strings.TrimSpace(id)] != 1 {
			t.Errorf("record %s is in the log %d times", id, times[id])
		}
	}
}

// blob and text write SQL literals.
func blob(data []byte) string { return fmt.Sprintf("x'%x'", data) }

func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// examined returns what fsck.Run reads of a log.
func examined(c ledger.Config) fsck.Log {
	return fsck.Log{Store: c.Store, Verifier: c.Verifier, Published: c.Published}
}

func succeeds(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
