package ledger_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/rig"
)

func TestMain(m *testing.M) {
	if f := folder(os.Getenv(loadFolder)); f != "" {
		fmt.Fprintln(os.Stderr, f.load())
		os.Exit(1)
	}
	if f := folder(os.Getenv(settlerFolder)); f != "" {
		fmt.Fprintln(os.Stderr, f.settleAndDie())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// loadFolder, if set, makes this test binary a process that seals into that folder under load until it is killed. It
// prints the id of each record before it sends it, and when it is acknowledged.
const loadFolder = "JURAT_TEST_LOAD"

const sending, acknowledging = "sends ", "has "

// loadName is the application name of such processes at a PostgreSQL server.
const loadName = "jurat under load"

// loadKey signs what such processes seal, so that it can be checked when they are gone.
var loadKey = ed25519.NewKeyFromSeed(func() []byte { s := sha256.Sum256([]byte("load")); return s[:] }())

func (f folder) load() error {
	ctx := context.Background()
	l, err := f.openPatiently(ctx)
	if err != nil {
		return err
	}
	by := []evidence.Signer{must(evidence.NewSigner(loadKey, rand.Reader))}
	var saying sync.Mutex
	say := func(what, id string) { // the kernel has the line when this returns, also if this process dies
		saying.Lock()
		defer saying.Unlock()
		fmt.Println(what + id)
	}
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for n := 1; ; n++ {
				id := must(evidence.NewRecordID(time.Now(), rand.Reader))
				say(sending, id)
				_, err := l.Seal(ctx, act(fmt.Sprintf(`,"record_id":%q,"chain_id":"load-%d"`, id, caller)), by)
				if err != nil { // an error of the killed server, and no other
					fmt.Fprintln(os.Stderr, err)
					time.Sleep(20 * time.Millisecond)
					continue
				}
				say(acknowledging, id)
				if n%8 == caller {
					if _, err := l.Checkpoint(ctx); err != nil {
						fmt.Fprintln(os.Stderr, err)
					}
				}
			}
		})
	}
	callers.Wait()
	return nil
}

// patience is how long a test waits for a server that restarts on a busy machine.
const patience = time.Minute

// openPatiently waits for a server that was killed and is not back yet.
func (f folder) openPatiently(ctx context.Context) (*ledger.Ledger, error) {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		store, err := f.openStore(ctx)
		var l *ledger.Ledger
		if err == nil {
			l, err = ledger.Open(ctx, f.config(store))
		}
		if err == nil || time.Now().After(end) {
			return l, err
		}
		fmt.Fprintln(os.Stderr, err)
	}
}

// A loaded log is one into which several processes seal while they are killed at random.
type loaded struct {
	t *testing.T
	f folder

	mu           sync.Mutex // while it is held, no other goroutine adds
	sent         map[string]bool
	acknowledged []string
	killed       int
}

// process runs processes one after the other. It kills each a while after its first acknowledged record, until enough
// is true.
func (p *loaded) process(enough func() bool) {
	for !enough() {
		child := exec.CommandContext(p.t.Context(), must(os.Executable()))
		child.Env = append(os.Environ(), loadFolder+"="+string(p.f), "PGAPPNAME="+loadName)
		var complaints strings.Builder
		child.Stderr = &complaints
		out := must(child.StdoutPipe())
		if err := child.Start(); err != nil {
			p.t.Error(err)
			return
		}
		random := must(rand.Int(rand.Reader, big.NewInt(int64(time.Second))))
		var kill *time.Timer
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if p.hear(lines.Text()) && kill == nil {
				kill = time.AfterFunc(time.Duration(random.Int64()), func() { child.Process.Kill() })
			}
		}
		err := child.Wait()
		var exit *exec.ExitError
		if kill == nil || kill.Stop() || !errors.As(err, &exit) || exit.Exited() {
			p.t.Errorf("a process ended by itself: %v\n%s", err, complaints.String())
			return
		}
		p.mu.Lock()
		p.killed++
		p.mu.Unlock()
	}
}

// hear notes a line that a process printed, and reports whether it is an acknowledgement.
func (p *loaded) hear(line string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id, is := strings.CutPrefix(line, sending); is {
		p.sent[id] = true
	} else if id, is := strings.CutPrefix(line, acknowledging); is {
		p.acknowledged = append(p.acknowledged, id)
		return true
	} // a part of a line, printed when the process was killed, is no acknowledgement
	return false
}

// count returns how many records were acknowledged.
func (p *loaded) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.acknowledged)
}

// TestSharedUnderLoad lets processes seal into one log and kills them at random. Then every acknowledged record must
// be in the log once, in one order, and proved. Every other record in it must be one that was sent, complete, and
// there once.
func TestSharedUnderLoad(t *testing.T) {
	lasts := time.Second
	if os.Getenv("JURAT_TEST_LONG") != "" {
		lasts = time.Minute
	}
	for database, processes := range map[string]int{"sqlite": 2, "postgres": 3} {
		t.Run(database, func(t *testing.T) {
			f := folder(t.TempDir())
			if database == "postgres" {
				f = onPostgres(t, rig.Database(t))
			}
			underLoad(t, f, processes, lasts, nil)
		})
	}
	t.Run("postgres, killed as well", func(t *testing.T) {
		server := rig.StartPostgres(t)
		underLoad(t, onPostgres(t, server.Database(t)), 3, lasts, func() {
			server.Kill(t)
			server.Restart(t)
		})
	})
}

func underLoad(t *testing.T, f folder, processes int, lasts time.Duration, disturb func()) {
	l := f.create(t)
	p := &loaded{t: t, f: f, sent: map[string]bool{}}
	end := time.Now().Add(lasts)
	enough := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return t.Failed() || !time.Now().Before(end) && p.killed >= processes && len(p.acknowledged) >= 100
	}
	checkpoints := []storage.Head{storage.EmptyHead}
	var all sync.WaitGroup
	for range processes {
		all.Go(func() { p.process(enough) })
	}
	for n, before := 1, 0; !enough(); n++ {
		time.Sleep(lasts / 20)
		if now := p.count(); disturb != nil && n >= 5 && now > before { // rarely enough that the others make progress
			disturb()
			n, before = 0, now
		}
		c := must(operator.OpenCheckpoint(signed(t, l), logVerifier))
		checkpoints = append(checkpoints, storage.Head{Size: c.Size, Root: c.Root})
	}
	all.Wait()
	p.wantNobodyLeft()
	c := must(operator.OpenCheckpoint(signed(t, l), logVerifier))
	checkpoints = append(checkpoints, storage.Head{Size: c.Size, Root: c.Root})
	t.Logf("%d records acknowledged of %d sent, %d in the log, by processes of which %d were killed; %d checkpoints",
		len(p.acknowledged), len(p.sent), c.Size, p.killed, len(checkpoints))
	p.wantInLog(l, checkpoints[len(checkpoints)-1])
	wantConsistent(t, l, checkpoints)
	found := must(fsck.Run(t.Context(), examined(f.config(must(f.store(t)))), fsck.Options{
		Check: func(r *evidence.Record, _ bool) error { return r.CheckSignature(0, loadKey.Public()) }}))
	wantClean(t, found)
}

// wantNobodyLeft waits until a PostgreSQL server has completed the requests of killed processes. It commits them without
// checking whether the client still exists.
func (p *loaded) wantNobodyLeft() {
	t := p.t
	t.Helper()
	url := must(p.f.url())
	if url == "" {
		return
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left, err := sessionsOf(t.Context(), url, loadName)
		if err == nil && left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d sessions of processes that were killed: %v", left, err)
		}
	}
}

func sessionsOf(ctx context.Context, url, name string) (n int, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`, name).Scan(&n)
	return n, errors.Join(err, conn.Close(ctx))
}

// signed returns a checkpoint as soon as the database has one.
func signed(t *testing.T, l *ledger.Ledger) string {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		c, err := l.Checkpoint(t.Context())
		if err == nil {
			return c
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// wantInLog reads the whole log, and proves every record under a checkpoint.
func (p *loaded) wantInLog(l *ledger.Ledger, head storage.Head) {
	t := p.t
	t.Helper()
	places, chains := map[string]int64{}, map[string]int64{}
	var page []*evidence.Record
	for r, err := range l.Records(t.Context(), 0) {
		succeeds(t, err)
		id, at := r.Payload.RecordID, int64(len(places))
		if !p.sent[id] {
			t.Errorf("record %s at %d was never sent", id, at)
		}
		if place, twice := places[id]; twice {
			t.Fatalf("record %s is at %d and at %d", id, place, at)
		}
		places[id] = at
		if page = append(page, r.Record); len(page) == 256 || at == head.Size-1 {
			wantProved(t, l, page, at+1-int64(len(page)), chains)
			page = nil
		}
	}
	if n := int64(len(places)); n != head.Size || len(page) > 0 {
		t.Errorf("%d records in the log, %d in its last checkpoint", n, head.Size)
	}
	for _, id := range p.acknowledged {
		if _, there := places[id]; !there {
			t.Errorf("record %s was acknowledged, and is not in the log", id)
		}
	}
}

// wantProved checks that records have consecutive places, correct counts in their chains, and proofs of both.
func wantProved(t *testing.T, l *ledger.Ledger, records []*evidence.Record, from int64, chains map[string]int64) {
	t.Helper()
	bundle := must(l.Prove(t.Context(), records...))
	for i, r := range bundle.Records {
		chains[r.Payload.ChainID]++
		if r.Digest != records[i].Digest || r.Log.Index != from+int64(i) || r.Log.ChainSeq != chains[r.Payload.ChainID] {
			t.Errorf("record %s is proved at %d as number %d of chain %s", r.Payload.RecordID, r.Log.Index, r.Log.ChainSeq, r.Payload.ChainID)
		}
		checkProof(t, r, bundle.Checkpoint)
	}
}

// wantConsistent proves that each checkpoint is the beginning of the next one.
func wantConsistent(t *testing.T, l *ledger.Ledger, checkpoints []storage.Head) {
	t.Helper()
	for i, next := range checkpoints[1:] {
		old := checkpoints[i]
		if next.Size < old.Size {
			t.Errorf("the log went from %v to %v", old, next)
		}
		if old.Size == 0 {
			continue
		}
		proof, err := l.ProveConsistency(t.Context(), old.Size, next.Size)
		if err == nil {
			err = tlog.CheckTree(proof, next.Size, next.Root, old.Size, old.Root)
		}
		if err != nil {
			t.Errorf("%v and %v: %v", old, next, err)
		}
	}
}

// wantSound checks everything except the signatures: their keys ended with their processes.
func (f folder) wantSound(t *testing.T) {
	t.Helper()
	store := must(f.openStore(t.Context()))
	defer store.Close()
	found := must(fsck.Run(t.Context(), examined(f.config(store)), fsck.Options{}))
	wantClean(t, found)
}

// taken takes a value from c, and reports whether there was one.
func taken(c <-chan struct{}) bool {
	synctest.Wait()
	select {
	case _, open := <-c:
		return open
	default:
		return false
	}
}

// TestGrown checks that waiting callers hear at once of what this process appends, and at the next poll of what
// another process appends.
func TestGrown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		store := fresh(t)
		c := config(store)
		c.Poll = time.Minute
		here := must(ledger.Create(t.Context(), c))
		elsewhere := must(ledger.Open(t.Context(), c)) // as in another process
		one, two := here.Grown(ctx), here.Grown(t.Context())
		taken(one)
		taken(two)
		if time.Sleep(time.Hour); taken(one) {
			t.Error("nothing was appended")
		}
		sealMany(t, here, 3)
		if !taken(one) || taken(one) || !taken(two) {
			t.Error("not every waiting caller was notified exactly once of three records appended here")
		}
		time.Sleep(time.Minute)
		taken(one)
		seal(t, elsewhere, "")
		if taken(one) {
			t.Error("who has told?")
		}
		if time.Sleep(time.Minute); !taken(one) || !taken(two) {
			t.Error("not every waiting caller was notified of a record appended elsewhere")
		}
		cancel()
		synctest.Wait()
		if _, open := <-one; open {
			t.Error("the channel of a caller that left is still open")
		}
		seal(t, here, "")
		if !taken(two) {
			t.Error("a caller that stayed was not notified")
		}
	})
}

// telling is a store that notifies, until the test makes it deaf.
type telling struct {
	storage.Store
	deaf   atomic.Bool // listening fails at once
	listen chan func()
	broken chan error
}

func (s *telling) Listen(ctx context.Context, grown func()) error {
	if s.deaf.Load() {
		return errFault
	}
	s.listen <- grown
	grown()
	select {
	case err := <-s.broken:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestGrownIsTold checks that a store that notifies is not polled, is polled while it cannot notify, and misses
// nothing when it can again.
func TestGrownIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &telling{Store: fresh(t), listen: make(chan func(), 1), broken: make(chan error)}
		c := config(store)
		c.Poll = time.Minute
		l := must(ledger.Create(t.Context(), c))
		other := must(ledger.Open(t.Context(), config(store.Store)))
		news := l.Grown(t.Context())
		tell := <-store.listen
		taken(news)
		seal(t, other, "")
		if time.Sleep(time.Hour); taken(news) {
			t.Error("the store was polled although it notifies")
		}
		if tell(); !taken(news) {
			t.Error("the waiting caller was not notified")
		}
		store.deaf.Store(true)
		store.broken <- errFault
		time.Sleep(time.Minute)
		taken(news)
		seal(t, other, "")
		if time.Sleep(2 * time.Minute); !taken(news) {
			t.Error("the store was not polled although it cannot notify")
		}
		seal(t, other, "") // no one gets this notification, and the store is not polled before it listens again
		store.deaf.Store(false)
		tell = <-store.listen
		if !taken(news) {
			t.Error("a record appended before the store listened again was missed")
		}
		seal(t, other, "")
		if tell(); !taken(news) {
			t.Error("no caller was notified afterwards")
		}
		wantError(t, l.Close(), nil)
	})
}

// TestGrownEnds checks that polling ends when no caller waits any more, or when the ledger is closed.
func TestGrownEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine still runs at its end
		l, _ := alone(t)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			news := l.Grown(ctx)
			<-news
			cancel()
			for range news {
			}
		}
		l.Grown(context.Background())
		wantError(t, l.Close(), nil)
		time.Sleep(time.Hour)
	})
}
