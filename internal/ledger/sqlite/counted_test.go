package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestOtherTables: a file whose tables have another version is refused, with what reads it, also where it can only be read.
func TestOtherTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	if _, err := s.writer.ExecContext(t.Context(), `UPDATE meta SET value = '8' WHERE name = 'schema'`); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() (*Store, error){
		"to write": func() (*Store, error) { return Open(t.Context(), path) },
		"to read": func() (*Store, error) {
			return openReadOnly(t.Context(), path, logForm, errors.New("a disk that cannot be written"))
		},
		"to make": func() (*Store, error) { return Create(t.Context(), path) },
	} {
		if _, err := open(); err == nil || !strings.Contains(err.Error(), `version "8"`) || !strings.Contains(err.Error(), "4f6f114d") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOnceCountedAlwaysCounted: a log that has counted an actor takes no record without a count, such as an older
// program that still has the file open would add. Nor does it take one number twice.
func TestOnceCountedAlwaysCounted(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "log.db"))
	if _, err := s.writer.ExecContext(t.Context(), `INSERT INTO actors VALUES (1, zeroblob(32))`); err != nil {
		t.Fatal(err)
	}
	insert := func(idx, tagged int64) error {
		return s.transact(t.Context(), func(ctx context.Context) error {
			if tagged > 0 {
				if _, err := s.writer.ExecContext(ctx, `INSERT INTO tags (idx, actor, actor_seq) VALUES (?, 1, ?)`, idx, tagged); err != nil {
					return err
				}
			}
			if _, err := s.writer.ExecContext(ctx, `INSERT INTO records (idx, record_id, digest, chain_seq, case_seq, dictionary, stamps, packed)
				VALUES (?1, ?1, zeroblob(32), 0, 0, -1, 0, x'01')`, idx); err != nil {
				return err
			}
			_, err := s.writer.ExecContext(ctx, `UPDATE head SET size = ?`, idx+1)
			return err
		})
	}
	for i, c := range []struct {
		idx, tagged int64
		good        bool
	}{{0, 0, true}, {1, 0, true}, {2, 1, true}, {3, 0, false}, {3, 1, false}, {3, 2, true}, {4, 0, false}} {
		if err := insert(c.idx, c.tagged); (err == nil) != c.good {
			t.Errorf("row %d, number %d: %v", i, c.tagged, err)
		}
	}
	if complaints, err := s.Check(t.Context()); err != nil || len(complaints) != 0 {
		t.Errorf("%v, %v", complaints, err)
	}
	if _, err := s.writer.ExecContext(t.Context(), `INSERT INTO tags (idx, actor, actor_seq) VALUES (9, 1, 9)`); err != nil {
		t.Fatal(err)
	}
	if complaints, err := s.Check(t.Context()); err != nil || len(complaints) != 1 || complaints[0] != "the table of counts has 1 row without a record" {
		t.Errorf("%v, %v", complaints, err)
	}
}
