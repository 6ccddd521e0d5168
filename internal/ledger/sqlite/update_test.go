package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// version1 makes a file of the first version, with a log of three records. The first record has a second time stamp.
func version1(t *testing.T) string {
	t.Helper()
	statements, err := os.ReadFile("testdata/version1.sql")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), string(statements)+`; INSERT INTO timestamps VALUES (0, 1, 'rfc3161', x'02')`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// tables returns the SQL of every table, index and trigger of a file.
func tables(t *testing.T, s *Store) map[string]string {
	t.Helper()
	rows, err := s.writer.QueryContext(t.Context(), `SELECT name, coalesce(sql, '') FROM sqlite_schema`)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	err = scan(rows, func() error {
		var name, text string
		err := rows.Scan(&name, &text)
		all[name] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestUpdate opens a file of the first version: it keeps its content, and has every table that a new file has.
func TestUpdate(t *testing.T) {
	path := version1(t)
	for range 2 { // a second run finds nothing to do
		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if version, err := version(t.Context(), s.writer); version != len(versions) || err != nil {
			t.Errorf("version %d, %v", version, err)
		}
		rows, err := s.Rows(t.Context(), 0, 10)
		if err != nil || len(rows) != 3 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for _, row := range rows {
			stamps := 1
			if row.Index == 0 {
				stamps = 2
			}
			if _, err := evidence.OpenParts(row.Payload, row.Signatures, row.Timestamps); err != nil || len(row.Timestamps) != stamps {
				t.Errorf("row %d: %d time stamps, %v", row.Index, len(row.Timestamps), err)
			} else if last := row.Timestamps[stamps-1].Token; (len(last) == 1) != (stamps == 2) {
				t.Errorf("row %d: the last time stamp has %d bytes", row.Index, len(last))
			}
			if found, err := s.ByDigest(t.Context(), row.Digest); err != nil || found.Index != row.Index {
				t.Errorf("the digest of row %d is found at %d, %v", row.Index, found.Index, err)
			}
		}
		if diff := cmp.Diff(tables(t, create(t, filepath.Join(t.TempDir(), "new.db"))), tables(t, s)); diff != "" {
			t.Errorf("new -, updated +:\n%s", diff)
		}
		if complaints, err := s.Check(t.Context()); err != nil || len(complaints) > 0 {
			t.Errorf("complaints: %v, %v", complaints, err)
		}
		var orphan string
		if err := s.writer.QueryRowContext(t.Context(), `PRAGMA foreign_key_check`).Scan(&orphan); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("foreign keys: %q, %v", orphan, err)
		}
		if owing, err := s.Owing(t.Context()); err != nil || len(owing) != 0 {
			t.Errorf("Owing = %v, %v", owing, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s := create(t, path) // the file exists, and opens
	if err := add(t, s, "four", 10); err != nil {
		t.Fatal(err)
	}
	since := time.Now().UTC().Truncate(time.Millisecond)
	if err := s.transact(t.Context(), func(ctx context.Context) error {
		return s.insertOutbox(ctx, &storage.Batch{Waits: []storage.Wait{{Index: 3, Authority: "one", Since: since}}})
	}); err != nil {
		t.Fatal(err)
	}
	if waits, err := s.Waiting(t.Context(), "one", 0, 9); err != nil || len(waits) != 1 || !waits[0].Since.Equal(since) {
		t.Errorf("Waiting = %v, %v", waits, err)
	}
}

// TestUpdateIsAllOrNothing interrupts the update: the file keeps the old version, and is updated the next time.
func TestUpdateIsAllOrNothing(t *testing.T) {
	path := version1(t)
	whole := versions
	t.Cleanup(func() { versions = whole })
	versions = []string{whole[0], whole[1] + "; CREATE TABLE meta (x)"}
	if s, err := Open(t.Context(), path); err == nil {
		s.Close()
		t.Fatal("updated")
	}
	versions = whole
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Owing(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestReadOnlyWithoutBriefs checks that a file of the version before briefs, on a read-only disk, is read as if no
// row had a brief.
func TestReadOnlyWithoutBriefs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	for _, id := range []string{"one", "two"} {
		if err := add(t, s, id, 10); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.writer.ExecContext(t.Context(), `DROP TABLE briefs; DROP TABLE links; DROP TRIGGER head_counted; DROP TABLE tags; UPDATE meta SET value = '6' WHERE name = 'schema'`); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := openReadOnly(t.Context(), path, storage.ErrReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.Briefs(t.Context(), storage.BriefQuery{N: 9, Names: true})
	if err != nil || len(list) != 2 || list[1].RecordID != "two" || list[0].Line != nil {
		t.Errorf("%+v, %v", list, err)
	}
	if places, err := s.Places(t.Context(), storage.Lookup{RecordIDs: []string{"two"}, Digests: []evidence.Digest{list[0].Digest}, Keys: []int64{1}, Most: 9}); err != nil || len(places) != 2 {
		t.Errorf("%v, %v", places, err)
	}
	if missing, err := s.Unbriefed(t.Context(), 0, 2, 9); err != nil || len(missing) != 1 || missing[0] != (storage.Range{From: 0, To: 2}) {
		t.Errorf("%v, %v", missing, err)
	}
	if n, err := s.Briefed(t.Context()); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	if keys, err := s.BriefKeys(t.Context(), 0, 9); err != nil || len(keys) != 0 {
		t.Errorf("%v, %v", keys, err)
	}
	if err := s.PutBriefs(t.Context(), storage.Range{}, nil, 0); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("error %v", err)
	}
}

// TestReadOnlyWithoutTags checks that a file of the version before tags, on a read-only disk, is read as a log that has
// counted no actor.
func TestReadOnlyWithoutTags(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	if err := add(t, s, "one", 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.ExecContext(t.Context(), `DROP TRIGGER head_counted; DROP TABLE tags; UPDATE meta SET value = '7' WHERE name = 'schema'`); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := openReadOnly(t.Context(), path, storage.ErrReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if rows, err := s.Rows(t.Context(), 0, 9); err != nil || len(rows) != 1 || !rows[0].Actor.IsZero() || rows[0].Counts.ActorSeq != 0 {
		t.Errorf("%+v, %v", rows, err)
	}
	for _, list := range []func(context.Context, evidence.Digest, int64, int64) ([]storage.Row, error){s.OfActor, s.About} {
		if rows, err := list(t.Context(), evidence.DigestOf(nil), 0, 9); err != nil || len(rows) != 0 {
			t.Errorf("%+v, %v", rows, err)
		}
	}
}

// TestOnceCountedAlwaysCounted: a log that has counted an actor takes no record without a count, such as an older
// program that still has the file open would add. Nor does it take one number twice.
func TestOnceCountedAlwaysCounted(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "log.db"))
	insert := func(idx, tagged int64) error {
		return s.transact(t.Context(), func(ctx context.Context) error {
			if tagged > 0 {
				if _, err := s.writer.ExecContext(ctx, `INSERT INTO tags (idx, actor, actor_seq) VALUES (?, zeroblob(32), ?)`, idx, tagged); err != nil {
					return err
				}
			}
			if _, err := s.writer.ExecContext(ctx, `INSERT INTO records (idx, record_id, digest, chain_seq, case_seq, payload, signatures)
				VALUES (?1, ?1, zeroblob(32), 0, 0, x'01', '[]')`, idx); err != nil {
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
	if _, err := s.writer.ExecContext(t.Context(), `INSERT INTO tags (idx, actor, actor_seq) VALUES (9, zeroblob(32), 9)`); err != nil {
		t.Fatal(err)
	}
	if complaints, err := s.Check(t.Context()); err != nil || len(complaints) != 1 || complaints[0] != "the table of counts has 1 row without a record" {
		t.Errorf("%v, %v", complaints, err)
	}
}
