package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/must"
	"jurat/internal/test/storetest"
)

func create(t *testing.T, path string) *Store {
	t.Helper()
	s := must.Get(Create(t.Context(), path))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// add appends one record with a payload of this size.
func add(t *testing.T, s *Store, id string, size int) error {
	return addAs(t, s, id, size, false)
}

func addAs(t *testing.T, s *Store, id string, size int, urgent bool) error {
	payload := []byte(id + strings.Repeat("x", size))
	return s.Append(t.Context(), func(head storage.Head, hashes storage.Committed) (storage.Batch, error) {
		stored, err := tlog.StoredHashesForRecordHash(head.Size, tlog.RecordHash(payload), hashes)
		return storage.Batch{
			Rows: []storage.Row{{Index: head.Size, RecordID: id, Digest: evidence.DigestOf(payload), Payload: payload,
				Signatures: [][]byte{{1}}, Timestamps: []evidence.Timestamp{{Kind: evidence.RFC3161, Token: []byte{1}}, {Kind: evidence.RFC3161, Token: []byte{2}}}}},
			Hashes: stored, Next: storage.Head{Size: head.Size + 1}, Urgent: urgent}, err
	})
}

func TestStore(t *testing.T) {
	storetest.Log(t, func(t *testing.T) storage.Store {
		return create(t, filepath.Join(t.TempDir(), "a name? with #100%.db"))
	})
}

func TestSharedDictionaries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	storetest.Shared(t, create(t, path), create(t, path))
}

// TestTwoStoresOnOneFile writes through two stores on one file, as two processes would.
func TestTwoStoresOnOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	one, two := create(t, path), create(t, path)
	done := make(chan error)
	for i, s := range []*Store{one, two} {
		go func() {
			var err error
			for n := range 30 {
				err = errors.Join(err, add(t, s, string(rune('a'+i))+string(rune('A'+n)), 10))
			}
			done <- err
		}()
	}
	for range 2 {
		must.Want(t, <-done, nil)
	}
	head, err := two.Head(t.Context())
	must.Hold(t, err == nil && head.Size == 60, "Head = %v, %v", head, err)
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	must.Do(t, add(t, s, "one", 10))
	must.Do(t, s.Close())
	for name, open := range map[string]func() (*Store, error){
		"Open":   func() (*Store, error) { return Open(t.Context(), path) },
		"Create": func() (*Store, error) { return Create(t.Context(), path) }, // after a crash the write is repeated
	} {
		again, err := open()
		must.Need(t, err == nil, "%s: %v", name, err)
		r, err := again.ByRecordID(t.Context(), "one")
		must.Hold(t, err == nil && r.Index == 0, "%s: %+v, %v", name, r, err)
		must.Want(t, again.Close(), nil)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		must.Do(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	for name, test := range map[string]struct {
		path string
		want error
		text string
	}{
		"missing":     {path: filepath.Join(folder, "missing.db"), want: fs.ErrNotExist},
		"empty":       {path: write("empty.db", ""), text: "not a ledger"},
		"no database": {path: write("text.db", strings.Repeat("no database ", 1000)), want: storage.ErrDamaged},
	} {
		s, err := Open(t.Context(), test.path)
		if err == nil {
			s.Close()
			t.Errorf("%s: opened", name)
			continue
		}
		must.Hold(t, (test.want == nil || errors.Is(err, test.want)) && strings.Contains(err.Error(), test.text), "%s: %v", name, err)
	}
}

func TestSettings(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "log.db"))
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "page_size": "8192"} {
		var got string
		err := s.writer.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got)
		must.Hold(t, err == nil && got == want, "%s is %q, %v; want %q", pragma, got, err, want)
	}
}

func TestAppendOnly(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "log.db"))
	must.Do(t, add(t, s, "one", 10))
	must.Get(s.writer.ExecContext(t.Context(), `INSERT INTO timestamps VALUES (0, 2, 'rfc3161', x'01')`))(t)
	must.Do(t, s.PutDictionary(t.Context(), 1, []byte("one")))
	for _, statement := range []string{
		`DELETE FROM records`, `UPDATE records SET packed = x'00'`, `UPDATE records SET stamps = 0`, `UPDATE records SET dictionary = 0`, `UPDATE records SET idx = 7`,
		`DELETE FROM timestamps`, `UPDATE timestamps SET token = x'00'`,
		`DELETE FROM dictionaries`, `UPDATE dictionaries SET text = x'00'`, `UPDATE dictionaries SET n = 7`,
		`DELETE FROM head`, `DELETE FROM tags`, `UPDATE tags SET root = NULL`, `UPDATE tags SET hashes = zeroblob(32)`,
	} {
		_, err := s.writer.ExecContext(t.Context(), statement)
		must.Hold(t, err != nil, "%s: done", statement)
	}
}

// TestDiskFull prevents the file from growing: nothing is stored in part, reads work, and writes work again with
// room.
func TestDiskFull(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "log.db"))
	must.Do(t, add(t, s, "one", 10))
	limit := func(pages string) {
		var n int
		must.Do(t, s.writer.QueryRowContext(t.Context(), `PRAGMA max_page_count = `+pages).Scan(&n))
	}
	limit("1")
	must.Want(t, add(t, s, "two", 1<<20), storage.ErrDiskFull)
	head, err := s.Head(t.Context())
	must.Hold(t, err == nil && head.Size == 1, "Head = %v, %v", head, err)
	must.Fail(t, storage.ErrNotFound)(s.ByRecordID(t.Context(), "two"))
	limit("1000000")
	must.Want(t, add(t, s, "two", 1<<20), nil)
}

func TestReadOnly(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "log.db"))
	must.Get(s.writer.ExecContext(t.Context(), `PRAGMA query_only = 1`))(t)
	must.Want(t, add(t, s, "one", 10), storage.ErrReadOnly)
	head, err := s.Head(t.Context())
	must.Hold(t, err == nil && head.Size == 0, "Head = %v, %v", head, err)
}

// TestCorruptFile overwrites pages, and checks that the error reports the damage.
func TestCorruptFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	for _, id := range []string{"one", "two", "three", "four"} {
		must.Do(t, add(t, s, id, 100_000))
	}
	s.Close()
	if files, err := filepath.Glob(path + "-[ws]*"); err != nil || len(files) != 0 { // except the reserve
		t.Errorf("after Close there are %q, %v", files, err)
	}
	content := must.Get(os.ReadFile(path))(t)
	for i := 2 * 8192; i < len(content); i++ {
		content[i] = 0xa5
	}
	must.Do(t, os.WriteFile(path, content, 0o600))
	damaged, err := Open(t.Context(), path)
	if err == nil {
		defer damaged.Close()
		_, err = damaged.Rows(t.Context(), 0, 10)
		err = errors.Join(err, add(t, damaged, "five", 10))
	}
	must.Want(t, err, storage.ErrDamaged)
}

// TestCloseWhileReading closes with a reader at work.
func TestCloseWhileReading(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "log.db"))
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

// TestOtherTables: a file whose tables have another version is refused, with what reads it, also where it can only be read.
func TestOtherTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	must.Get(s.writer.ExecContext(t.Context(), `UPDATE meta SET value = '8' WHERE name = 'schema'`))(t)
	must.Do(t, s.Close())
	for name, open := range map[string]func() (*Store, error){
		"to write": func() (*Store, error) { return Open(t.Context(), path) },
		"to read": func() (*Store, error) {
			return openReadOnly(t.Context(), path, logForm, errors.New("a disk that cannot be written"))
		},
		"to make": func() (*Store, error) { return Create(t.Context(), path) },
	} {
		_, err := open()
		must.Hold(t, err != nil && strings.Contains(err.Error(), `version "8"`) && strings.Contains(err.Error(), "4f6f114d"), "%s: %v", name, err)
	}
}

// TestCountsWithoutARecord: Check reports them.
func TestCountsWithoutARecord(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "log.db"))
	must.Do(t, add(t, s, "one", 10))
	complaints, err := s.Check(t.Context())
	must.Hold(t, err == nil && len(complaints) == 0, "%v, %v", complaints, err)
	must.Get(s.writer.ExecContext(t.Context(), `INSERT INTO tags (idx, hashes) VALUES (9, zeroblob(32))`))(t)
	complaints, err = s.Check(t.Context())
	must.Hold(t, err == nil && len(complaints) == 1 && complaints[0] == "the table of counts has 1 row without a record", "%v, %v", complaints, err)
}

// TestSizesThatNoLogHas checks that a size from a foreign database cannot cause endless computation.
func TestSizesThatNoLogHas(t *testing.T) {
	s := create(t, t.TempDir()+"/log.db")
	for _, statement := range []string{"DROP TRIGGER tags_stay", "PRAGMA ignore_check_constraints = ON"} {
		must.Get(s.writer.ExecContext(t.Context(), statement))(t)
	}
	for size, fits := range map[int64]bool{3: true, operator.MaxEntries: true, operator.MaxEntries + 1: false, 1<<62 + 1: false, math.MaxInt64: false, -1: false} {
		must.Get(s.writer.ExecContext(t.Context(), `DELETE FROM tags; INSERT INTO tags (idx, root, hashes) VALUES (?, zeroblob(32), zeroblob(32))`, size-1))(t)
		head, err := s.Head(t.Context())
		must.Hold(t, fits != errors.Is(err, storage.ErrDamaged), "%d: %v, %v", size, head, err)
	}
}

// TestBackupDigestEnds: a caller that goes away while a large file is digested is not waited for.
func TestBackupDigestEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup")
	must.Do(t, errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 64<<20)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := OpenBackup(ctx, path)
	must.Want(t, err, context.Canceled)
}
