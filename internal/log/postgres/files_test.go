package postgres_test

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/log/filestore"
	"jurat/internal/log/postgres"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/internal/test/storetest"
)

func newKeys(t *testing.T, files ...[]byte) *filestore.Keys {
	t.Helper()
	return must.Get(filestore.Parse(bytes.Join(files, nil)))(t)
}

// database makes a new database with the table, and returns a function that opens a further pool to it, as another
// machine would.
func database(t *testing.T) (open func(t *testing.T) *pgxpool.Pool) {
	t.Helper()
	url := rig.Database(t)
	open = func(t *testing.T) *pgxpool.Pool {
		t.Helper()
		pool := must.Get(pgxpool.New(t.Context(), url))(t)
		t.Cleanup(pool.Close)
		return pool
	}
	pool := open(t)
	for range 2 { // making the table can be repeated
		prepare(t, pool)
	}
	return open
}

func TestFiles(t *testing.T) {
	storetest.Files(t, func(t *testing.T) storetest.OpenFiles {
		open, keys := database(t), newKeys(t, filestore.Generate())
		shared := open(t)
		return func(*testing.T) filestore.Store { return postgres.NewFiles(shared, keys) }
	})
}

// TestFilesAreWrapped checks that a reader of the database can read no file, and a writer cannot replace a file by
// another one or by own text. This holds for keys, and for files that are not secret, such as a certificate.
func TestFilesAreWrapped(t *testing.T) {
	pool, keys := database(t)(t), newKeys(t, filestore.Generate())
	c := postgres.NewFiles(pool, keys)
	for _, name := range []string{"a.key", "b.key"} {
		must.Do(t, c.Create(t.Context(), name, []byte("secret of "+name)))
	}
	must.Do(t, c.Create(t.Context(), "plain.json", []byte("no secret")))
	stored := func(name string) (content []byte) {
		must.Do(t, pool.QueryRow(t.Context(), `SELECT content FROM jurat.files WHERE name = $1`, name).Scan(&content))
		return content
	}
	for _, name := range []string{"a.key", "plain.json"} {
		must.Hold(t, !bytes.Contains(stored(name), []byte("secret")), "stored of %s is %q", name, stored(name))
	}
	must.Get(pool.Exec(t.Context(), `UPDATE jurat.files SET content = 'mine' WHERE name = 'plain.json'`))(t)
	got, err := c.Read(t.Context(), "plain.json")
	must.Hold(t, errors.Is(err, filestore.ErrDamaged), "content that replaced a file that is not secret: %q, %v", got, err)
	for _, forgery := range []struct{ name, statement string }{
		{"another's row", `UPDATE jurat.files SET content = (SELECT content FROM jurat.files WHERE name = 'b.key') WHERE name = 'a.key'`},
		{"his own text", `UPDATE jurat.files SET content = 'mine' WHERE name = 'a.key'`},
		{"another's name", `DELETE FROM jurat.files WHERE name = 'a.key'; UPDATE jurat.files SET name = 'a.key' WHERE name = 'b.key'`},
	} {
		must.Get(pool.Exec(t.Context(), forgery.statement))(t)
		got, err := c.Read(t.Context(), "a.key")
		must.Hold(t, errors.Is(err, filestore.ErrDamaged) && strings.Contains(err.Error(), "a.key"), "%s: %q, %v", forgery.name, got, err)
	}
	must.Do(t, c.Remove(t.Context(), "a.key")) // a damaged file can be destroyed, too
	got, err = c.Read(t.Context(), "a.key")
	must.Hold(t, errors.Is(err, fs.ErrNotExist), "%q, %v", got, err)
}

// TestCreateAll checks that no file is made if one of them exists.
func TestCreateAll(t *testing.T) {
	c := postgres.NewFiles(database(t)(t), newKeys(t, filestore.Generate()))
	files := []filestore.File{{Name: "a.key", Content: []byte("a")}, {Name: "b.json", Content: []byte("b")}}
	must.Do(t, c.CreateAll(t.Context(), files))
	for _, file := range files {
		got, err := c.Read(t.Context(), file.Name)
		must.Hold(t, err == nil && bytes.Equal(got, file.Content), "%s: %q, %v", file.Name, got, err)
	}
	must.Want(t, c.CreateAll(t.Context(), []filestore.File{{Name: "0.json"}, {Name: "b.json", Content: []byte("new")}, {Name: "c.json"}}), fs.ErrExist)
	n := 0
	for _, name := range []string{"0.json", "c.json"} {
		if _, err := c.Read(t.Context(), name); err == nil {
			n++
		}
	}
	got, err := c.Read(t.Context(), "b.json")
	must.Hold(t, n == 0 && err == nil && string(got) == "b", "%d of the other files were made; %q, %v", n, got, err)
}

// TestChangeOfWrappingKey checks a change of the wrapping key. During it, a machine with both keys reads every file.
// After it, a machine with only the new key does, and one with only the old key gets an error.
func TestChangeOfWrappingKey(t *testing.T) {
	pool := database(t)(t)
	oldFile, newFile := filestore.Generate(), filestore.Generate()
	oldKeys, both, newKeys := newKeys(t, oldFile), newKeys(t, newFile, oldFile), newKeys(t, newFile)
	of := func(keys *filestore.Keys) *postgres.Files { return postgres.NewFiles(pool, keys) }
	must.Want(t, of(oldKeys).CheckKeys(t.Context()), nil)
	all := []string{"a.key", "b/c.key", "d.key"}
	for _, name := range all {
		must.Do(t, of(oldKeys).Create(t.Context(), name, []byte(name)))
	}
	must.Do(t, of(both).Create(t.Context(), "e.key", []byte("e.key")))
	for _, c := range []*filestore.Keys{oldKeys, newKeys} {
		must.Want(t, of(c).CheckKeys(t.Context()), filestore.ErrOtherKey, c)
	}
	must.Want(t, of(both).CheckKeys(t.Context()), nil)
	told := int64(0)
	n, err := of(both).Rewrap(t.Context(), func(done int64) { told = done })
	must.Hold(t, n == 3 && told == 3 && err == nil, "%d, %d, %v", n, told, err)
	must.Give(of(newKeys).Rewrap(t.Context(), func(int64) { t.Error("again") }))(t, 0)
	must.Want(t, of(newKeys).CheckKeys(t.Context()), nil)
	for _, name := range append(all, "e.key") {
		got, err := of(newKeys).Read(t.Context(), name)
		must.Hold(t, err == nil && string(got) == name, "%s: %q, %v", name, got, err)
		got, err = of(oldKeys).Read(t.Context(), name)
		must.Hold(t, errors.Is(err, filestore.ErrOtherKey), "%s with the old key: %q, %v", name, got, err)
	}
}

// TestRewrapBrokenOff checks that after an interrupted Rewrap every file can be read, and the next run wraps the
// rest.
func TestRewrapBrokenOff(t *testing.T) {
	pool := database(t)(t)
	oldFile, newFile := filestore.Generate(), filestore.Generate()
	before := postgres.NewFiles(pool, newKeys(t, oldFile))
	names := []string{"a.key", "b.key", "c.key", "d.key"}
	for _, name := range names {
		must.Do(t, before.Create(t.Context(), name, []byte(name)))
	}
	must.Get(pool.Exec(t.Context(), `UPDATE jurat.files SET content = 'damaged' WHERE name = 'c.key'`))(t)
	both := postgres.NewFiles(pool, newKeys(t, newFile, oldFile))
	n, err := both.Rewrap(t.Context(), func(int64) {})
	must.Hold(t, n == 2 && errors.Is(err, filestore.ErrDamaged) && strings.Contains(err.Error(), "c.key"), "%d, %v", n, err)
	for _, name := range []string{"a.key", "b.key", "d.key"} {
		got, err := both.Read(t.Context(), name)
		must.Hold(t, err == nil && string(got) == name, "%s: %q, %v", name, got, err)
	}
	must.Do(t, both.Remove(t.Context(), "c.key"))
	must.Give(both.Rewrap(t.Context(), func(int64) {}))(t, 1)
}

// TestFilesStandbyMissing checks that a file is reported as durable only when the standby that the server waits for
// has it.
func TestFilesStandbyMissing(t *testing.T) {
	server := rig.StartPostgres(t)
	url := server.Database(t)
	pool := must.Get(postgres.Connect(t.Context(), url))(t)
	defer pool.Close()
	store := must.Get(postgres.Create(t.Context(), pool))(t)
	defer store.Close()
	must.Do(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return postgres.PrepareFiles(t.Context(), tx) }))
	admin := must.Get(pgx.Connect(t.Context(), rig.Admin(t, url)))(t)
	defer admin.Close(t.Context())
	for _, statement := range []string{`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`, `SELECT pg_reload_conf()`} {
		must.Get(admin.Exec(t.Context(), statement))(t)
	}
	c := postgres.NewFiles(pool, newKeys(t, filestore.Generate()))
	c.SetPatience(500 * time.Millisecond)
	var err error
	for end := time.Now().Add(time.Minute); err == nil; { // the server notices the setting by and by
		must.Need(t, !time.Now().After(end), "the server waits for no standby, or was told not to")
		err = c.Replace(t.Context(), "a", []byte("content"))
	}
	c.SetPatience(time.Minute)
	content, err := c.Read(t.Context(), "a")
	must.Hold(t, err == nil && string(content) == "content", "%q, %v", content, err)
}

// TestDeadConnections checks that what can be repeated succeeds after the server has ended every connection.
func TestDeadConnections(t *testing.T) {
	url := rig.Database(t)
	pool := must.Get(postgres.Connect(t.Context(), url))(t)
	defer pool.Close()
	prepare(t, pool)
	c := postgres.NewFiles(pool, newKeys(t, filestore.Generate()))
	must.Do(t, errors.Join(c.Create(t.Context(), "a", []byte("content")), c.Create(t.Context(), "b", nil)))
	admin := must.Get(pgx.Connect(t.Context(), rig.Admin(t, url)))(t)
	defer admin.Close(t.Context())
	for name, use := range map[string]func() error{
		"read":    func() error { _, err := c.Read(t.Context(), "a"); return err },
		"replace": func() error { return c.Replace(t.Context(), "a", []byte("content")) },
		"remove":  func() error { return c.Remove(t.Context(), "b") },
		"list":    func() error { return c.List(t.Context(), "folder", func(string) error { return nil }) },
	} {
		var busy []*pgxpool.Conn // so that there are several
		for range 4 {
			conn := must.Get(pool.Acquire(t.Context()))(t)
			busy = append(busy, conn)
		}
		for _, conn := range busy {
			conn.Release()
		}
		must.Get(admin.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'jurat' AND datname = current_database()`))(t)
		must.Want(t, use(), nil, name)
	}
}

// TestDeadlock checks that an operation that loses a deadlock is repeated afterwards.
func TestDeadlock(t *testing.T) {
	url := rig.Database(t)
	pool := must.Get(postgres.Connect(t.Context(), url))(t)
	defer pool.Close()
	prepare(t, pool)
	c := postgres.NewFiles(pool, newKeys(t, filestore.Generate()))
	c.SetPatience(time.Minute)
	other := must.Get(pgx.Connect(t.Context(), rig.Admin(t, url)))(t)
	defer other.Close(t.Context())
	for range 5 {
		must.Do(t, errors.Join(c.Replace(t.Context(), "a", []byte("a")), c.Replace(t.Context(), "b", []byte("b"))))
		// The file store notices the deadlock and gives way, unless its check ran before there was one.
		must.Get(other.Exec(t.Context(), `BEGIN; SET LOCAL deadlock_timeout = '10s'; SELECT FROM jurat.files WHERE name = 'b' FOR UPDATE`))(t)
		renamed := make(chan error, 1)
		go func() { renamed <- c.Rename(t.Context(), "a", "b") }()
		for waits := false; !waits; time.Sleep(5 * time.Millisecond) {
			must.Do(t, other.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid)))`).Scan(&waits))
		}
		_, lost := other.Exec(t.Context(), `SELECT FROM jurat.files WHERE name = 'a' FOR UPDATE`)
		must.Get(other.Exec(t.Context(), `ROLLBACK`))(t)
		must.Want(t, <-renamed, nil)
		got, err := c.Read(t.Context(), "b")
		must.Hold(t, err == nil && string(got) == "a", "%q, %v", got, err)
		if lost == nil {
			return
		}
	}
	t.Error("the file store never had to give way")
}

// prepare makes the table.
func prepare(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `CREATE SCHEMA IF NOT EXISTS jurat`); err != nil {
			return err
		}
		return postgres.PrepareFiles(t.Context(), tx)
	})
	must.Do(t, err)
}
