package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	neturl "net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// A wire connects the store and the server. A test can cut it where a transaction ends.
type wire struct {
	t      *testing.T
	server string
	cut    atomic.Pointer[func(message []byte, client, server net.Conn)] // what is done with the next message that has a COMMIT in it
	down   atomic.Bool                                                   // no connection is possible

	mu    sync.Mutex // while it is held, no other goroutine looks at all
	all   []net.Conn
	ended bool
}

// wired returns the URL of a database that is reached over a wire. Statements travel as text, so that the wire can
// read them.
func wired(t *testing.T, url string) (*wire, string) {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	u := must.Get(neturl.Parse(url))(t)
	w := &wire{t: t, server: u.Host}
	go w.accept(listener)
	t.Cleanup(func() {
		listener.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended = true
		for _, c := range w.all {
			c.Close()
		}
	})
	u.Host = listener.Addr().String()
	return w, u.String() + "?default_query_exec_mode=exec"
}

func (w *wire) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		if w.down.Load() {
			client.Close()
			continue
		}
		server, err := net.Dial("tcp", w.server)
		if err != nil {
			client.Close()
			continue
		}
		w.mu.Lock()
		w.all = append(w.all, client, server)
		if w.ended {
			client.Close()
		}
		w.mu.Unlock()
		go w.carry(client, server)
		go func() { // the server's answers
			io.Copy(client, server)
			client.Close()
		}()
	}
}

// cancelRequest begins a connection by which a client asks the server to cancel the work of another one. The driver
// makes one when its connection is cut. A cut wire stops it as well, because it could undo the COMMIT.
const cancelRequest = 80877102

func (w *wire) carry(client, server net.Conn) {
	buffer := make([]byte, 1<<20)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			server.Close()
			return
		}
		if n == 16 && binary.BigEndian.Uint32(buffer[4:]) == cancelRequest {
			client.Close()
			server.Close()
			return
		}
		if bytes.Contains(buffer[:n], []byte("COMMIT")) && bytes.Contains(buffer[:n], []byte("INSERT INTO jurat.records")) {
			if cut := w.cut.Swap(nil); cut != nil {
				(*cut)(buffer[:n], client, server)
				return
			}
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			client.Close()
			return
		}
	}
}

// committed waits until the server has ended the transaction, and then the connection.
func (w *wire) committed(server net.Conn, watch *Store, size int64) {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if head, err := watch.Head(context.Background()); err == nil && head.Size == size || time.Now().After(end) {
			server.Close()
			return
		}
	}
}

// TestAnswerLost cuts the wire around a COMMIT. Whatever Append returns, ByRecordID tells what became of the record,
// and its answer stays true, even if the COMMIT is still on its way when Append returns.
func TestAnswerLost(t *testing.T) {
	const later = 300 * time.Millisecond
	for name, test := range map[string]struct {
		stored bool
		cut    func(w *wire, watch *Store) func([]byte, net.Conn, net.Conn)
	}{
		"before it arrives": {false, func(*wire, *Store) func([]byte, net.Conn, net.Conn) {
			return func(_ []byte, client, server net.Conn) { client.Close(); server.Close() }
		}},
		"in the middle of it": {false, func(*wire, *Store) func([]byte, net.Conn, net.Conn) {
			return func(message []byte, client, server net.Conn) {
				server.Write(message[:len(message)/2])
				client.Close()
				server.Close()
			}
		}},
		"before it, and the server does not notice": {false, func(*wire, *Store) func([]byte, net.Conn, net.Conn) {
			return func(message []byte, client, server net.Conn) {
				server.Write(message[:bytes.LastIndex(message, []byte("COMMIT"))-10])
				client.Close()
				time.Sleep(later)
				server.Close()
			}
		}},
		"after it": {true, func(w *wire, watch *Store) func([]byte, net.Conn, net.Conn) {
			return func(message []byte, client, server net.Conn) {
				client.Close()
				server.Write(message)
				w.committed(server, watch, 2)
			}
		}},
		"and it arrives late": {true, func(w *wire, watch *Store) func([]byte, net.Conn, net.Conn) {
			return func(message []byte, client, server net.Conn) {
				client.Close()
				time.Sleep(later)
				server.Write(message)
				w.committed(server, watch, 2)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			url := rig.Database(t)
			watch := create(t, url)
			w, through := wired(t, url)
			s := create(t, through)
			s.standstill = time.Hour
			mustAdd(t, s, "one")
			cut := test.cut(w, watch)
			w.cut.Store(&cut)
			if err := s.Append(t.Context(), unhurried(t, planOf("two", []byte("two")))); err == nil {
				t.Fatal("appended")
			}
			_, err := s.ByRecordID(t.Context(), "two")
			must.Hold(t, (err == nil) == test.stored && (err == nil || errors.Is(err, storage.ErrNotFound)),
				"ByRecordID says %v; want that it is stored: %v", err, test.stored)
			time.Sleep(2 * later)
			_, again := watch.ByRecordID(t.Context(), "two")
			must.Hold(t, errors.Is(again, err), "it said %v, and later %v", err, again)
			mustAdd(t, s, "three")
		})
	}
}

// TestNobodyKnows checks that, while the server is out of reach, a record whose COMMIT got no answer is not reported
// as missing.
func TestNobodyKnows(t *testing.T) {
	url := rig.Database(t)
	watch := create(t, url)
	w, through := wired(t, url)
	s := create(t, through)
	s.standstill = time.Hour
	sent := make(chan struct{})
	cut := func(message []byte, client, server net.Conn) {
		w.down.Store(true)
		client.Close()
		<-sent
		server.Write(message)
		w.committed(server, watch, 1)
	}
	w.cut.Store(&cut)
	err := s.Append(t.Context(), unhurried(t, planOf("one", []byte("one"))))
	must.Need(t, err != nil, "appended")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = s.ByRecordID(ctx, "one")
	must.Hold(t, err != nil && !errors.Is(err, storage.ErrNotFound), "ByRecordID says %v", err)
	w.down.Store(false)
	close(sent)
	must.Fail(t, nil)(s.ByRecordID(t.Context(), "one"))
}

// TestServerKilled kills the server again and again while several callers append. Acknowledged records are stored,
// and records reported as missing are not.
func TestServerKilled(t *testing.T) {
	server := rig.StartPostgres(t)
	url := server.Database(t)
	stores := []*Store{create(t, url), create(t, url)}
	var mu sync.Mutex
	there, missing := map[string]bool{}, map[string]bool{}
	acknowledged := 0
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i, s := range stores {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("%d-%d", i, n)
				err := add(t, s, id)
				if err != nil {
					_, err = s.ByRecordID(t.Context(), id)
				}
				mu.Lock()
				if there[id], missing[id] = err == nil, errors.Is(err, storage.ErrNotFound); there[id] {
					acknowledged++
				}
				mu.Unlock()
			}
		})
	}
	further := func(n int) { // waits until as many more are acknowledged
		mu.Lock()
		defer mu.Unlock()
		want := acknowledged + n
		for end := time.Now().Add(patience); acknowledged < want; {
			must.Need(t, !time.Now().After(end), "%d records were acknowledged, and %d more were not in time", acknowledged, want)
			mu.Unlock()
			time.Sleep(5 * time.Millisecond)
			mu.Lock()
		}
	}
	rounds := 2
	for round := range 2 * rounds {
		further(10 + rand.IntN(20))
		if round%2 == 0 {
			server.Kill(t)
		} else {
			server.Halt(t)
		}
		server.Restart(t)
	}
	further(10)
	close(stop)
	all.Wait()
	rows := must.Get(stores[0].Rows(t.Context(), 0, 1_000_000))(t)
	found := map[string]bool{}
	for i, row := range rows {
		must.Hold(t, row.Index == int64(i) && !found[row.RecordID], "row %d has the index %d, or its record %s is there twice", i, row.Index, row.RecordID)
		found[row.RecordID] = true
	}
	for id := range there {
		must.Hold(t, (!there[id] || found[id]) && (!missing[id] || !found[id]),
			"record %s was reported as stored: %v, as missing: %v, and is stored: %v", id, there[id], missing[id], found[id])
	}
	wantSize(t, stores[1], int64(len(rows)))
}

// TestListen checks that listeners hear of what another process appends, and are called once after the server was
// away.
func TestListen(t *testing.T) {
	server := rig.StartPostgres(t)
	url := server.Database(t)
	one, two := create(t, url), create(t, url)
	news := make(chan struct{}, 100)
	tell := func() { news <- struct{}{} }
	ended := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- one.Listen(ctx, tell) }()
	<-news // it listens
	for i := range 3 {
		mustAdd(t, two, fmt.Sprint(i))
		<-news
	}
	server.Halt(t)
	err := <-ended
	must.Hold(t, err != nil && !errors.Is(err, storage.ErrClosed), "it ended with %v", err)
	must.Say(t, one.Listen(ctx, tell), "", "Listen succeeded although the server is stopped")
	server.Restart(t)
	mustAdd(t, two, "while nobody listened")
	go func() { ended <- one.Listen(ctx, tell) }()
	<-news
	cancel()
	must.Want(t, <-ended, context.Canceled)
	go func() { ended <- two.Listen(t.Context(), tell) }()
	<-news
	two.Close()
	must.Want(t, <-ended, storage.ErrClosed)
}

// TestStandbyMissing checks that a record is reported as stored only when the standby that the server waits for has
// it.
func TestStandbyMissing(t *testing.T) {
	server := rig.StartPostgres(t)
	url := server.Database(t)
	s := create(t, url)
	mustAdd(t, s, "before")
	exec(t, url, `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`, `SELECT pg_reload_conf()`)
	awaitStandby(t, url)
	s.answer = 500 * time.Millisecond
	const id = "nowhere else"
	err := add(t, s, id)
	must.Need(t, err != nil, "Append succeeded although no standby has the record")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = s.ByRecordID(ctx, id)
	must.Hold(t, err != nil && !errors.Is(err, storage.ErrNotFound), "ByRecordID reports a record that no standby has: %v", err)
	exec(t, url, `ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	s.answer = patience // the server notices this by and by, too
	must.Fail(t, nil)(s.ByRecordID(t.Context(), id))
	mustAdd(t, s, "after")
	wantSize(t, s, 3)
}

// awaitStandby returns once the server makes commits wait for a standby, which is a little after it got the setting.
func awaitStandby(t *testing.T, url string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	commits := make(chan error)
	var committing sync.WaitGroup
	defer committing.Wait()
	defer leave()
	committing.Go(func() {
		for ctx.Err() == nil {
			conn, err := pgx.Connect(ctx, rig.Admin(t, url))
			if err == nil {
				_, err = conn.Exec(ctx, `SELECT pg_logical_emit_message(true, 'test', 'of which nobody knows')`)
				err = errors.Join(err, conn.Close(ctx))
			}
			select {
			case commits <- err:
			case <-ctx.Done():
			}
		}
	})
	for end := time.Now().Add(patience); time.Now().Before(end); {
		select {
		case err := <-commits:
			must.Do(t, err)
		case <-time.After(10 * time.Millisecond):
			if ask(t, url, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`) > 0 {
				return
			}
		}
	}
	t.Fatal("the server waits for no standby")
}

// ask runs a query as the superuser.
func ask(t *testing.T, url, question string) (n int) {
	t.Helper()
	conn := must.Get(pgx.Connect(t.Context(), rig.Admin(t, url)))(t)
	defer conn.Close(t.Context())
	must.Do(t, conn.QueryRow(t.Context(), question).Scan(&n))
	return n
}

// TestListenToNobody checks that a listener notices a connection that is silent but not closed.
func TestListenToNobody(t *testing.T) {
	proxy, through := rig.NewProxy(t, rig.Database(t))
	s := create(t, through)
	defer proxy.GoOn() // before the pool is closed
	s.silence = 300 * time.Millisecond
	listens, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- s.Listen(t.Context(), func() { listens <- struct{}{} }) }()
	<-listens
	proxy.Stop()
	select {
	case err := <-ended:
		must.Hold(t, err != nil, "it ended without a reason")
	case <-time.After(patience):
		t.Error("the listener has not noticed that its connection is silent")
	}
}
