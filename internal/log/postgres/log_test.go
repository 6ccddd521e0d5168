package postgres

import (
	"context"
	"errors"
	"io/fs"
	neturl "net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/internal/test/storetest"
)

func connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool := must.Get(Connect(t.Context(), url))(t)
	t.Cleanup(pool.Close)
	return pool
}

func create(t testing.TB, url string) *Store {
	t.Helper()
	s := must.Get(Create(t.Context(), connect(t, url)))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// planOf appends one record with this payload.
func planOf(id string, payload []byte, waits ...string) storage.Plan {
	return func(head storage.Head, hashes storage.Committed) (storage.Batch, error) {
		stored, err := tlog.StoredHashesForRecordHash(head.Size, tlog.RecordHash(payload), hashes)
		batch := storage.Batch{
			Rows: []storage.Row{{Index: head.Size, RecordID: id, Digest: evidence.DigestOf(payload), Payload: payload,
				Signatures: [][]byte{{1}}, Timestamps: []evidence.Timestamp{{Kind: evidence.RFC3161, Token: []byte{1}}}}},
			Hashes: stored, Next: storage.Head{Size: head.Size + 1}}
		for _, authority := range waits {
			batch.Waits = append(batch.Waits, storage.Wait{Index: head.Size, Authority: authority})
		}
		return batch, err
	}
}

func add(t testing.TB, s *Store, id string) error {
	return s.Append(t.Context(), planOf(id, []byte("payload of "+id)))
}

// patience is how long tests wait on a busy machine for something that should come soon.
const patience = time.Minute

// connOf returns the connection on which a plan reads.
func connOf(log storage.Committed) *pgxpool.Conn {
	return reflect.ValueOf(log).FieldByName("Writer").Interface().(*transaction).conn
}

// unhurried makes the server wait for a process that stops in a transaction. Other processes still wait only their
// standstill.
func unhurried(t testing.TB, plan storage.Plan) storage.Plan {
	return func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		must.Fail(t, nil)(connOf(log).Exec(t.Context(), `SET LOCAL idle_in_transaction_session_timeout = 0`))
		return plan(head, log)
	}
}

func mustAdd(t testing.TB, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		must.Do(t, add(t, s, id))
	}
}

func wantSize(t testing.TB, s *Store, size int64) {
	t.Helper()
	head, err := s.Head(t.Context())
	must.Hold(t, err == nil && head.Size == size, "Head = %v, %v; want size %d", head, err, size)
}

// exec executes statements as the superuser, one by one.
func exec(t testing.TB, url string, statements ...string) {
	t.Helper()
	conn := must.Get(pgx.Connect(t.Context(), rig.Admin(t, url)))(t)
	defer conn.Close(t.Context())
	for _, statement := range statements {
		_, err := conn.Exec(t.Context(), statement)
		must.Need(t, err == nil, "%s: %v", statement, err)
	}
}

// TestStore runs the suite with prepared statements, and as over a proxy that puts transactions on connections with other
// settings: with none prepared.
func TestStore(t *testing.T) {
	t.Run("prepared", func(t *testing.T) {
		storetest.Log(t, func(t *testing.T) storage.Store { return create(t, rig.Database(t)) })
	})
	t.Run("settings of others", func(t *testing.T) {
		storetest.Log(t, func(t *testing.T) storage.Store {
			return must.Get(Create(t.Context(), unset(t, rig.Database(t)+"?default_query_exec_mode=exec")))(t)
		})
	})
}

func TestSharedDictionaries(t *testing.T) {
	url := rig.Database(t)
	storetest.Shared(t, create(t, url), create(t, url))
}

// unset returns a pool whose connections keep the server's settings.
func unset(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	config := connect(t, url).Config()
	config.AfterConnect = nil
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	pool := must.Get(pgxpool.NewWithConfig(t.Context(), config))(t)
	t.Cleanup(pool.Close)
	return pool
}

// TestDurable checks that no default setting makes a transaction count before it is on disk, or lets it last without
// limit.
func TestDurable(t *testing.T) {
	for name, test := range map[string]struct{ set, want string }{
		"off":          {"off", "on"},
		"on":           {"on", "on"},
		"remote_apply": {"remote_apply", "remote_apply"},
	} {
		url := rig.Database(t)
		u := must.Get(neturl.Parse(url))(t)
		exec(t, url, `ALTER DATABASE `+strings.TrimPrefix(u.Path, "/")+` SET synchronous_commit = `+test.set)
		pools := map[string]*pgxpool.Pool{"own": connect(t, url)}
		if test.set == "off" {
			pools["proxy"] = unset(t, url)
		}
		for whose, pool := range pools {
			s := must.Get(Create(t.Context(), pool))(t)
			stop := errors.New("stop")
			must.Want(t, s.Append(t.Context(), func(_ storage.Head, log storage.Committed) (storage.Batch, error) {
				var commit, idle string
				err := connOf(log).QueryRow(t.Context(), `SELECT current_setting('synchronous_commit'),
					current_setting('idle_in_transaction_session_timeout')`).Scan(&commit, &idle)
				must.Hold(t, err == nil && commit == test.want && idle == "10s", "%s, %s: a transaction runs with %s and %s, %v", name, whose, commit, idle, err)
				return storage.Batch{}, stop
			}), stop)
		}
	}
}

// TestNotRead checks that a large table is not scanned because it was small when the statement was first run.
func TestNotRead(t *testing.T) {
	s := create(t, rig.Database(t))
	mustAdd(t, s, "one", "two")
	for range 10 {
		must.Get(s.ByRecordID(t.Context(), "one"))(t)
		mustAdd(t, s, "r"+time.Now().String())
	}
	deadline := time.Now().Add(patience)
	for {
		var scans, rows int64 // the scans without those that have made the indexes
		err := s.pool.QueryRow(t.Context(), `SELECT pg_stat_get_numscans('jurat.records'::regclass) - count(*), pg_stat_get_tuples_inserted('jurat.records'::regclass)
			FROM pg_index WHERE indrelid = 'jurat.records'::regclass`).Scan(&scans, &rows)
		must.Do(t, err)
		must.Need(t, rows < 12 || scans == 0, "the records were read from end to end %d times", scans)
		if rows >= 12 { // the server updates its statistics a little later
			return
		}
		must.Need(t, !time.Now().After(deadline), "of 12 rows %d are counted", rows)
		time.Sleep(50 * time.Millisecond)
	}
}

// TestOtherProcesses writes through two stores with a pool each, as two processes would, one of them over the socket.
func TestOtherProcesses(t *testing.T) {
	server := rig.StartPostgres(t)
	url := server.Database(t)
	one, two := create(t, url), create(t, server.Socket(t, url))
	done := make(chan error)
	for i, s := range []*Store{one, two} {
		go func() {
			var err error
			for n := range 30 {
				err = errors.Join(err, add(t, s, string(rune('a'+i))+string(rune('A'+n))))
			}
			done <- err
		}()
	}
	for range 2 {
		must.Want(t, <-done, nil)
	}
	wantSize(t, two, 60)
}

// TestWaitsForAnother lets a writer wait for another process and give up: it leaves nothing behind that could do harm
// later.
func TestWaitsForAnother(t *testing.T) {
	url := rig.Database(t)
	one, two := create(t, url), create(t, url)
	two.standstill = time.Hour
	begun, finish := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	go func() {
		first <- one.Append(t.Context(), unhurried(t, func(head storage.Head, log storage.Committed) (storage.Batch, error) {
			close(begun)
			<-finish
			return planOf("one", []byte("one"))(head, log)
		}))
	}()
	<-begun
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		must.Want(t, two.Append(ctx, planOf("two", []byte("two"))), context.DeadlineExceeded)
		cancel()
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var waiting int
		err := two.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted`).Scan(&waiting)
		if err == nil && waiting == 0 {
			break
		}
		must.Need(t, !time.Now().After(end), "%d still wait, %v", waiting, err)
	}
	close(finish)
	must.Want(t, <-first, nil)
	mustAdd(t, two, "two")
	wantSize(t, one, 2)
}

// TestStandsStill checks that a process that stops in a transaction loses it, and does not block others for ever.
func TestStandsStill(t *testing.T) {
	url := rig.Database(t)
	one, two := create(t, url), create(t, url)
	err := one.Append(t.Context(), func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		must.Fail(t, nil)(connOf(log).Exec(t.Context(), `SET LOCAL idle_in_transaction_session_timeout = '50ms'`))
		mustAdd(t, two, "in between") // which waits until the server has ended the stopped transaction
		return planOf("one", []byte("one"))(head, log)
	})
	must.Hold(t, err != nil, "a transaction was committed although its process stood still in it")
	wantSize(t, two, 1)
	mustAdd(t, one, "one") // over another connection
	wantSize(t, two, 2)
}

// TestStandsStillInAMessage checks the same for a process that stopped in the middle of a message, for whose rest the
// server would wait for ever.
func TestStandsStillInAMessage(t *testing.T) {
	url := rig.Database(t)
	one, two := create(t, url), create(t, url)
	two.standstill = 100 * time.Millisecond
	err := one.Append(t.Context(), func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		conn := connOf(log).Conn().PgConn().Conn()
		must.Fail(t, nil)(conn.Write([]byte("P\x00\x00\x00\x10\x00SELECT 1\x00\x00\x00P\x00\x00\x40\x00\x00half a statement")))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		must.Want(t, two.Append(ctx, planOf("in between", []byte("in between"))), nil)
		return planOf("one", []byte("one"))(head, log)
	})
	must.Hold(t, err != nil, "a transaction was committed although its process stood still in it")
	wantSize(t, two, 1)
	mustAdd(t, one, "one")
	wantSize(t, two, 2)
}

func TestReopen(t *testing.T) {
	url := rig.Database(t)
	must.Fail(t, ErrNoTables)(Open(t.Context(), connect(t, url)))
	s := create(t, url)
	mustAdd(t, s, "one")
	s.Close()
	for name, open := range map[string]func(context.Context, *pgxpool.Pool) (*Store, error){"Open": Open, "Create": Create} {
		again, err := open(t.Context(), connect(t, url))
		must.Need(t, err == nil, "%s: %v", name, err)
		r, err := again.ByRecordID(t.Context(), "one")
		must.Hold(t, err == nil && r.Index == 0, "%s: %+v, %v", name, r, err)
		again.Close()
	}
	exec(t, url, `UPDATE jurat.meta SET value = '999'`)
	for _, open := range []func(context.Context, *pgxpool.Pool) (*Store, error){Open, Create} {
		if _, err := open(t.Context(), connect(t, url)); err == nil || !strings.Contains(err.Error(), `version "999"`) || !strings.Contains(err.Error(), "4f6f114d") {
			t.Errorf("tables of another version: %v", err)
		}
	}
}

// TestCreateAtOnce makes the same tables from many connections at once.
func TestCreateAtOnce(t *testing.T) {
	url := rig.Database(t)
	pool := connect(t, url)
	done := make(chan error)
	for range 6 {
		go func() {
			_, err := Create(t.Context(), pool)
			done <- err
		}()
	}
	for range 6 {
		must.Want(t, <-done, nil)
	}
	s, err := Open(t.Context(), pool)
	must.Want(t, err, nil)
	wantSize(t, s, 0)
}

func TestEncoding(t *testing.T) {
	url := rig.Database(t)
	exec(t, url, `CREATE DATABASE latin OWNER jurat TEMPLATE template0 ENCODING 'LATIN1'`)
	defer exec(t, url, `DROP DATABASE latin WITH (FORCE)`)
	u := must.Get(neturl.Parse(url))(t)
	u.Path = "/latin"
	_, err := Create(t.Context(), connect(t, u.String()))
	must.Hold(t, err != nil && strings.Contains(err.Error(), "jurat needs UTF8"), "error %v", err)
}

func TestAppendOnly(t *testing.T) {
	url := rig.Database(t)
	s := create(t, url)
	mustAdd(t, s, "one")
	must.Get(s.pool.Exec(t.Context(), `INSERT INTO jurat.timestamps VALUES (0, 0, 'rfc3161', '\x01')`))(t)
	must.Want(t, s.PutDictionary(t.Context(), 1, []byte("one")), nil)
	for _, statement := range []string{
		`UPDATE jurat.records SET packed = '', dictionary = 0, stamps = 0`, // not noted
		`DELETE FROM jurat.dictionaries`, `UPDATE jurat.dictionaries SET text = '\x00'`, `TRUNCATE jurat.dictionaries`,
		`DELETE FROM jurat.records`, `UPDATE jurat.records SET packed = '\x00'`, `UPDATE jurat.records SET idx = 7`, `TRUNCATE jurat.records CASCADE`,
		`DELETE FROM jurat.timestamps`, `UPDATE jurat.timestamps SET token = '\x00'`, `TRUNCATE jurat.timestamps`,
		`DELETE FROM jurat.head`, `TRUNCATE jurat.head`,
		`DELETE FROM jurat.tags`, `UPDATE jurat.tags SET root = NULL`, `UPDATE jurat.tags SET hashes = ''`, `TRUNCATE jurat.tags`,
	} {
		_, err := s.pool.Exec(t.Context(), statement)
		must.Hold(t, err != nil, "%s: done", statement)
	}
	wantSize(t, s, 1)
}

// TestReadOnly checks that a role with read rights only can read, and gets an error when it writes.
func TestReadOnly(t *testing.T) {
	server := rig.StartPostgres(t)
	url := server.Database(t)
	mustAdd(t, create(t, url), "one")
	reads := func(whose, url string, want error) {
		t.Helper()
		s, err := Open(t.Context(), connect(t, url))
		must.Need(t, err == nil, "%s: %v", whose, err)
		wantSize(t, s, 1)
		must.Want(t, add(t, s, "two"), want)
		must.Want(t, s.SetCheckpoint(t.Context(), "", "one"), want)
		wantSize(t, s, 1)
	}
	exec(t, url, `CREATE ROLE reader LOGIN PASSWORD 'known'`, `GRANT USAGE ON SCHEMA jurat TO reader`, `GRANT SELECT ON ALL TABLES IN SCHEMA jurat TO reader`)
	u := must.Get(neturl.Parse(url))(t)
	u.User = neturl.UserPassword("reader", "known")
	reads("a role that may not write", u.String(), fs.ErrPermission)
	reads("a role that is not to write", url+"?options=-cdefault_transaction_read_only%3Don", storage.ErrReadOnly)
	server.Halt(t)
	server.Standby(t)
	server.Restart(t)
	reads("a standby", url, storage.ErrReadOnly)
}

// TestDuplicateOfAnother checks that the error names a record that another process has appended.
func TestDuplicateOfAnother(t *testing.T) {
	url := rig.Database(t)
	one, two := create(t, url), create(t, url)
	mustAdd(t, one, "first", "same")
	var duplicate *storage.DuplicateError
	err := add(t, two, "same")
	must.Hold(t, errors.As(err, &duplicate) && *duplicate == (storage.DuplicateError{RecordID: "same", Index: 1, Field: "record_id"}), "error %v", err)
	wantSize(t, two, 2)
}

// TestDiskFull makes the server report a full disk on insertion.
func TestDiskFull(t *testing.T) {
	url := rig.Database(t)
	s := create(t, url)
	mustAdd(t, s, "one")
	exec(t, url, `CREATE FUNCTION jurat.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device'
		USING ERRCODE = 'disk_full'; END $$`, `CREATE TRIGGER fills AFTER INSERT ON jurat.records EXECUTE FUNCTION jurat.full()`)
	must.Want(t, add(t, s, "two"), storage.ErrDiskFull)
	wantSize(t, s, 1)
	must.Fail(t, storage.ErrNotFound)(s.ByRecordID(t.Context(), "two"))
	exec(t, url, `DROP TRIGGER fills ON jurat.records`)
	mustAdd(t, s, "two")
}

// TestEndMissing checks that a last record that is not the end of a batch counts as damage.
func TestEndMissing(t *testing.T) {
	url := rig.Database(t)
	s := create(t, url)
	mustAdd(t, s, "one")
	exec(t, url, `ALTER TABLE jurat.tags DISABLE TRIGGER USER`, `UPDATE jurat.tags SET root = NULL`)
	must.Fail(t, storage.ErrDamaged)(s.Head(t.Context()))
	must.Want(t, add(t, s, "two"), storage.ErrDamaged)
}

func TestCloseWhileReading(t *testing.T) {
	s := create(t, rig.Database(t))
	stop := make(chan error)
	go func() {
		for {
			if _, err := s.Rows(t.Context(), 0, 10); err != nil {
				stop <- err
				return
			}
		}
	}()
	must.Want(t, s.Close(), nil)
	must.Want(t, <-stop, storage.ErrClosed)
}

func check(t *testing.T, s *Store, want ...string) {
	t.Helper()
	complaints := must.Get(s.Check(t.Context()))(t)
	for _, w := range want {
		must.Hold(t, slices.ContainsFunc(complaints, func(c string) bool { return strings.Contains(c, w) }), "%q is in none of the complaints %q", w, complaints)
	}
	must.Equal(t, len(complaints), len(want))
}

// TestCheck damages an index so that it misses a record, and turns off settings that a crash needs.
func TestCheck(t *testing.T) {
	for _, with := range []string{"queries", "amcheck"} {
		t.Run(with, func(t *testing.T) {
			url := rig.Database(t)
			s := create(t, url)
			mustAdd(t, s, "one", "two", "three")
			must.Want(t, s.Append(t.Context(), planOf("four", []byte("four"), "authority")), nil)
			if with == "amcheck" {
				exec(t, url, `CREATE EXTENSION amcheck`, `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO jurat`)
			}
			check(t, s)
			hide(t, url, "records_record_id_key")
			check(t, s, "records_record_id_key")
			exec(t, url, `REINDEX INDEX jurat.records_record_id_key`)
			check(t, s)
		})
	}
}

// hide makes an index miss the next record, like an index that was not written when the power failed.
func hide(t *testing.T, url, index string) {
	t.Helper()
	insert := `INSERT INTO jurat.records (idx, chain_seq, case_seq, record_id, digest, dictionary, stamps, packed)
		SELECT max(idx) + 1, 0, 0, 'hidden', sha256('hidden'), -1, 0, 'hidden' FROM jurat.records`
	exec(t, url, `UPDATE pg_index SET indisready = false, indisvalid = false WHERE indexrelid = 'jurat.`+index+`'::regclass`, insert,
		`UPDATE pg_index SET indisready = true, indisvalid = true WHERE indexrelid = 'jurat.`+index+`'::regclass`)
}

func TestCheckSettings(t *testing.T) {
	server := rig.StartPostgres(t, "fsync=off", "full_page_writes=off")
	check(t, create(t, server.Database(t)), "fsync=off", "full_page_writes=off")
}

// TestOperatorsOfOthers checks that functions and operators of other users are never called, even if they match
// better than the server's own: they would run with the rights of the ledger's role.
func TestOperatorsOfOthers(t *testing.T) {
	url := rig.Database(t)
	create(t, url)
	exec(t, url, `GRANT CREATE ON SCHEMA public TO public`,
		`CREATE FUNCTION public.taken(text[], text[]) RETURNS text[] LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'taken'; END $$`,
		`CREATE OPERATOR public.|| (LEFTARG = text[], RIGHTARG = text[], FUNCTION = public.taken)`,
		`CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'taken'; END $$`)
	s := create(t, url)
	mustAdd(t, s, "one")
	must.Fail(t, nil)(s.Rows(t.Context(), 0, 10))
	must.Want(t, s.Append(t.Context(), func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		if _, err := log.Find(storage.Query{Chains: []string{"a"}}); err != nil {
			return storage.Batch{}, err
		}
		return planOf("two", []byte("two"))(head, log)
	}), nil)
}

// TestSnapshot checks that everything in a snapshot is of the same moment.
func TestSnapshot(t *testing.T) {
	s := create(t, rig.Database(t))
	trial := func(id string) {
		t.Helper()
		must.Do(t, s.Append(t.Context(), func(head storage.Head, log storage.Committed) (storage.Batch, error) {
			batch, err := planOf(id, []byte(id))(head, log)
			if err == nil {
				batch.Rows[0].ChainID, batch.Rows[0].Counts.ChainSeq = "trial-1", head.Size+1
			}
			return batch, err
		}))
	}
	trial("one")
	must.Do(t, s.Snapshot(t.Context(), func(then storage.Store) error {
		if _, err := then.Head(t.Context()); err != nil {
			return err
		}
		trial("two")
		for what, read := range map[string]func() ([]storage.Row, error){
			"all":    func() ([]storage.Row, error) { return then.Rows(t.Context(), 0, 9) },
			"chain":  func() ([]storage.Row, error) { return then.InChain(t.Context(), "trial-1", 0, 9) },
			"trials": func() ([]storage.Row, error) { return then.RowsAt(t.Context(), []int64{0, 1, 2, 3, 4, 5, 6, 7, 8}) },
		} {
			rows, err := read()
			must.Hold(t, len(rows) == 1 && err == nil, "%s: %d rows, %v", what, len(rows), err)
		}
		return nil
	}))
}

// TestTurnComesAsPatienceEnds checks a caller that gets its turn just when it begins to look for a stopped process:
// it does not evict itself.
func TestTurnComesAsPatienceEnds(t *testing.T) {
	s := create(t, rig.Database(t))
	stop := errors.New("stop")
	for n := range 2000 {
		s.standstill = time.Duration(n%200) * 5 * time.Microsecond
		must.Want(t, s.Append(t.Context(), func(storage.Head, storage.Committed) (storage.Batch, error) { return storage.Batch{}, stop }), stop)
	}
}
