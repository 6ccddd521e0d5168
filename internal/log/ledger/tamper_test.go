package ledger_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/log/ledger/storage"
	expect "jurat/internal/test/must"
	"jurat/internal/test/storetest"
)

// rewrite changes a database as an attacker does who has the file and knows SQL.
func (f folder) rewrite(t testing.TB, statements ...string) {
	t.Helper()
	for _, table := range []string{"records_stay", "records_keep", "timestamps_stay", "timestamps_keep", "tags_stay", "tags_keep"} {
		statements = append([]string{"DROP TRIGGER " + table}, statements...)
	}
	f.exec(t, append([]string{"PRAGMA foreign_keys = OFF"}, statements...)...)
}

// exec runs statements on one connection.
func (f folder) exec(t testing.TB, statements ...string) {
	t.Helper()
	db := must(sql.Open("sqlite", f.database()))
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range statements {
		_, err := db.ExecContext(t.Context(), statement)
		expect.Need(t, err == nil, "%s: %v", statement, err)
	}
}

// row returns a row of the log.
func (f folder) row(t testing.TB, index int64) storage.Row {
	t.Helper()
	s := must(f.store(t))
	defer s.Close()
	return must(s.Rows(t.Context(), index, 1))[0]
}

// addDictionary adds a dictionary that contains a row.
func (f folder) addDictionary(t testing.TB, index int64) {
	t.Helper()
	row := f.row(t, index)
	s := must(f.store(t))
	defer s.Close()
	succeeds(t, s.PutDictionary(t.Context(), must(s.NewestDictionary(t.Context()))+1, storage.NewDictionary("", []storage.Row{row})))
}

// bomb is a blob of a megabyte of zeros, compressed to a few bytes.
func bomb(t testing.TB) []byte {
	t.Helper()
	return must(zstd.NewWriter(nil)).EncodeAll(make([]byte, 1<<20), binary.AppendUvarint(nil, 1<<20))
}

// found is a damage without its detail.
type found struct {
	Kind  fsck.Kind
	Index int64
}

// rewound cuts the log of 21 records back to 15, with its hashes and head, like a restored backup.
func rewound(root tlog.Hash) []string {
	return []string{`DELETE FROM timestamps WHERE idx >= 15`, `DELETE FROM records WHERE idx >= 15`, `DELETE FROM tags WHERE idx >= 15`,
		`UPDATE tags SET root = ` + blob(root[:]) + ` WHERE idx = 14`}
}

func TestTampering(t *testing.T) {
	// 21 records, a checkpoint over 17 of them, and one over the first 15, for those who set it back.
	f := folder(t.TempDir())
	l := f.create(t)
	records := sealMany(t, l, 2)
	f.addDictionary(t, 1)
	l.Close()
	l = must(f.open(t))
	records = append(records, sealMany(t, l, 13)...)
	earlier := must(l.Checkpoint(t.Context()))
	head15 := must(operator.OpenCheckpoint(earlier, logVerifier)).Root
	records = append(records, sealMany(t, l, 2)...)
	must(l.Checkpoint(t.Context()))
	records = append(records, sealMany(t, l, 4)...)
	forged := forgery(t, records[4])
	foreign := must(operator.SignCheckpoint(operator.Checkpoint{Origin: otherSigner.Name(), Size: 17, Root: head15}, otherSigner))
	otherwise := must(operator.SignCheckpoint(operator.Checkpoint{Origin: logSigner.Name(), Size: 16, Root: head15}, logSigner))
	l.Close()
	wantClean(t, f.fsck(t))
	unreadable := []found{{fsck.DamageUnreadable, 4}}
	var compressed []found // every record but the first two, which came before the dictionary
	for i := int64(2); i < 21; i++ {
		compressed = append(compressed, found{fsck.DamageUnreadable, i})
	}
	fourth := f.row(t, 4)
	as := func(change func(*storage.Row)) string {
		row := fourth
		change(&row)
		return `UPDATE records SET ` + storetest.Content(&row) + ` WHERE idx = 4`
	}
	asForged := as(func(r *storage.Row) { r.Payload = forged.Canonical() })
	digestForged := `UPDATE records SET digest = ` + blob(forged.Digest[:]) + ` WHERE idx = 4`

	for name, test := range map[string]struct {
		do   []string
		want []found
		open error // what Open says; nil: it opens, as the damage is far from the end
	}{
		"payload": {do: []string{as(func(r *storage.Row) { r.Payload = bytes.Replace(r.Payload, []byte("May"), []byte("Can"), 1) })},
			want: []found{{fsck.DamageDigest, 4}}},
		"payload and digest": {do: []string{asForged, digestForged},
			want: []found{{fsck.DamageRow, 4}}},
		"payload and digest and leaf": {do: []string{asForged, digestForged,
			storetest.SetHash(0, 4, leafWith(forged, records[4]))},
			want: []found{{fsck.DamageCheck, 4}, {fsck.DamageBelow, -1}}},
		"actor's number":  {do: []string{`UPDATE tags SET actor_seq = 99 WHERE idx = 4`}, want: []found{{fsck.DamageRow, 4}}},
		"actor's tag":     {do: []string{`INSERT INTO actors (tag) VALUES (zeroblob(32))`, `UPDATE tags SET actor = (SELECT max(n) FROM actors) WHERE idx = 4`}, want: []found{{fsck.DamageKeys, 4}}},
		"tags missing":    {do: []string{`UPDATE tags SET actor = NULL, actor_seq = NULL WHERE idx = 4`}, want: []found{{fsck.DamageRow, 4}}},
		"a subject added": {do: []string{`UPDATE tags SET subject = actor, subject_seq = 1 WHERE idx = 4`}, want: []found{{fsck.DamageKeys, 4}, {fsck.DamageRow, 4}}},
		"signature":       {do: []string{as(func(r *storage.Row) { r.Signatures = [][]byte{{0, 0, 0}} })}, want: []found{{fsck.DamageRow, 4}}},
		"token": {do: []string{as(func(r *storage.Row) { r.Timestamps = []evidence.Timestamp{{Kind: evidence.RFC3161, Token: []byte{0}}} })},
			want: []found{{fsck.DamageCheck, 4}}},
		"token gone":         {do: []string{as(func(r *storage.Row) { r.Timestamps = nil })}, want: []found{{fsck.DamageCheck, 4}}},
		"packed":             {do: []string{`UPDATE records SET packed = CAST(substr(packed, 1, 20) || x'00' || substr(packed, 22) AS BLOB) WHERE idx = 4`}, want: unreadable},
		"packed, cut":        {do: []string{`UPDATE records SET packed = substr(packed, 1, length(packed) - 1) WHERE idx = 4`}, want: unreadable},
		"packed, and more":   {do: []string{`UPDATE records SET packed = CAST(packed || x'00' AS BLOB) WHERE idx = 4`}, want: unreadable},
		"packed, as text":    {do: []string{`UPDATE records SET packed = x'7b7d' WHERE idx = 4`}, want: unreadable},
		"plain, and more":    {do: []string{strings.Replace(as(func(*storage.Row) {}), "' WHERE", "00' WHERE", 1)}, want: unreadable},
		"stamps":             {do: []string{`UPDATE records SET stamps = 2 WHERE idx = 4`}, want: unreadable},
		"another dictionary": {do: []string{`UPDATE records SET dictionary = 7 WHERE idx = 4`}, want: unreadable},
		"dictionary gone":    {do: []string{`DROP TRIGGER dictionaries_stay`, `DELETE FROM dictionaries`}, want: compressed, open: ledger.ErrDamaged},
		"dictionary changed": {do: []string{`DROP TRIGGER dictionaries_keep`, `UPDATE dictionaries SET text = zeroblob(length(text))`}, want: compressed, open: ledger.ErrDamaged},
		"bomb":               {do: []string{`UPDATE records SET dictionary = 0, packed = ` + blob(bomb(t)) + ` WHERE idx = 4`}, want: unreadable},
		"leaf hash": {do: []string{storetest.SetHash(0, 4, make([]byte, 32))},
			want: []found{{fsck.DamageHash, 4}}},
		"inner hash": {do: []string{storetest.SetHash(2, 1, make([]byte, 32))}, want: []found{{fsck.DamageHash, -1}}},
		"hash on the edge": {do: []string{storetest.SetHash(4, 0, make([]byte, 32))},
			want: []found{{fsck.DamageHash, -1}}, open: ledger.ErrDamaged},
		"hash missing":   {do: []string{`UPDATE tags SET hashes = substr(hashes, 1, 64) WHERE idx = 7`}, want: []found{{fsck.DamageMissingHash, -1}, {fsck.DamageMissingHash, -1}}},
		"row in between": {do: []string{`DELETE FROM records WHERE idx = 2`}, want: []found{{fsck.DamageMissingRow, 2}}},
		"tail rows": {do: []string{`DELETE FROM records WHERE idx >= 19`},
			want: []found{{fsck.DamageMissingRow, 19}, {fsck.DamageMissingRow, 20}}, open: ledger.ErrDamaged},
		"swapped rows": {do: []string{`UPDATE records SET idx = 100 WHERE idx = 3`, `UPDATE records SET idx = 3 WHERE idx = 8`, `UPDATE records SET idx = 8 WHERE idx = 100`,
			`CREATE TABLE t AS SELECT idx, actor, actor_seq FROM tags WHERE idx IN (3, 8)`, `UPDATE tags SET actor_seq = 100 + idx WHERE idx IN (3, 8)`,
			`UPDATE tags SET (actor, actor_seq) = (SELECT actor, actor_seq FROM t WHERE t.idx = 11 - tags.idx) WHERE idx IN (3, 8)`},
			want: []found{{fsck.DamageMoved, 3}, {fsck.DamageMoved, 8}}, open: ledger.ErrDamaged},
		"record twice": {do: []string{`CREATE TABLE r (idx INTEGER PRIMARY KEY, record_id TEXT, digest BLOB, chain_id TEXT, chain_seq INTEGER, case_digest BLOB, case_seq INTEGER, dictionary INTEGER, stamps INTEGER, packed BLOB)`,
			`INSERT INTO r SELECT * FROM records WHERE idx <> 4`, `INSERT INTO r SELECT 4, record_id, digest, chain_id, chain_seq, case_digest, case_seq, dictionary, stamps, packed FROM records WHERE idx = 2`,
			`DROP TABLE records`, `ALTER TABLE r RENAME TO records`},
			want: []found{{fsck.DamageDuplicate, 4}}},
		"record id":              {do: []string{`UPDATE records SET record_id = 'x' WHERE idx = 4`}, want: []found{{fsck.DamageKeys, 4}, {fsck.DamageLookup, 4}}},
		"chain":                  {do: []string{`UPDATE records SET chain_id = 'x' WHERE idx = 3`}, want: []found{{fsck.DamageKeys, 3}}},
		"count":                  {do: []string{`UPDATE records SET chain_seq = 1 WHERE idx = 3`}, want: []found{{fsck.DamageKeys, 3}, {fsck.DamageRow, 3}}},
		"head root":              {do: []string{`UPDATE tags SET root = zeroblob(32) WHERE idx = 20`}, want: []found{{fsck.DamageHead, -1}}, open: ledger.ErrDamaged},
		"head set back":          {do: []string{`DELETE FROM tags WHERE idx = 20`}, want: []found{{fsck.DamageExtraRow, 20}}, open: ledger.ErrDamaged},
		"end of a batch missing": {do: []string{`UPDATE tags SET root = NULL WHERE idx = 20`}, want: []found{{fsck.DamageHead, -1}}, open: ledger.ErrDamaged},
		"cut consistently, under the checkpoint": {do: rewound(head15),
			want: []found{{fsck.DamageCut, -1}, {fsck.DamageBehind, -1}}, open: ledger.ErrDamaged},
		"cut with the checkpoint": {do: append(rewound(head15), `UPDATE head SET checkpoint = `+text(earlier)),
			want: []found{{fsck.DamageBehind, -1}}},
		"checkpoint of another": {do: []string{`UPDATE head SET checkpoint = ` + text(foreign)}, want: []found{{fsck.DamageKey, -1}}, open: ledger.ErrCheckpoint},
		"checkpoint changed": {do: []string{`UPDATE head SET checkpoint = replace(checkpoint, char(10) || '17' || char(10), char(10) || '16' || char(10))`},
			want: []found{{fsck.DamageKey, -1}}, open: ledger.ErrCheckpoint},
		"checkpoint of another history": {do: []string{`UPDATE head SET checkpoint = ` + text(otherwise)}, want: []found{{fsck.DamageFork, -1}}, open: ledger.ErrDamaged},
		"checkpoint gone":               {do: []string{`UPDATE head SET checkpoint = ''`}, want: []found{{fsck.DamageNoCheckpoint, -1}}, open: ledger.ErrNoLog},
	} {
		t.Run(name, func(t *testing.T) {
			copied := folder(t.TempDir())
			succeeds(t, os.CopyFS(string(copied), os.DirFS(string(f))))
			copied.rewrite(t, test.do...)
			wantDamage(t, copied.fsck(t), test.want)
			l, err := copied.open(t)
			if test.open != nil {
				wantError(t, err, test.open)
			} else if err != nil {
				t.Errorf("opening: %v", err)
			} else if name == "cut with the checkpoint" {
				wantError(t, l.CanAppend(t.Context()), ledger.ErrBehind)
			}
		})
	}
}

func wantDamage(t *testing.T, got []fsck.Damage, want []found) {
	t.Helper()
	var kinds []found
	for _, d := range got {
		if d.Kind == fsck.DamageStore { // SQLite also reports an index that was not updated
			continue
		}
		expect.Hold(t, d.Kind.Meaning() != "" && strings.Contains(d.String(), d.Kind.Meaning()), "%v says nothing", d)
		kinds = append(kinds, found{d.Kind, d.Index})
	}
	expect.Equal(t, cmp.Diff(want, kinds), "")
}

// forgery is a changed record with the signature of the true one.
func forgery(t *testing.T, r *evidence.Record) *evidence.Record {
	t.Helper()
	payload := strings.Replace(string(r.Canonical()), "May I?", "Must I?", 1)
	return must(evidence.OpenParts([]byte(payload), r.Signatures, r.Timestamps))
}

func leafWith(payload, signatures *evidence.Record) []byte {
	leaf := tlog.RecordHash(must(evidence.OpenParts(payload.Canonical(), signatures.Signatures, nil)).LogEntry(evidence.LogCounts{ActorSeq: 5})) // as it was logged
	return leaf[:]
}

// TestFsckPublished compares an intact log with other published checkpoints.
func TestFsckPublished(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	sealMany(t, l, 3)
	must(l.Checkpoint(t.Context()))
	l.Close()
	fork := must(operator.SignCheckpoint(operator.Checkpoint{Origin: logSigner.Name(), Size: 2}, logSigner))
	ahead := must(operator.SignCheckpoint(operator.Checkpoint{Origin: logSigner.Name(), Size: 4}, logSigner))
	foreign := must(operator.SignCheckpoint(operator.Checkpoint{Origin: otherSigner.Name(), Size: 2}, otherSigner))
	for name, test := range map[string]struct {
		published string
		want      fsck.Kind
		open      error
		append    error
	}{
		"fork":    {published: fork, want: fsck.DamagePublicFork, append: ledger.ErrForked},
		"ahead":   {published: ahead, want: fsck.DamageBehind, append: ledger.ErrBehind},
		"foreign": {published: foreign, want: fsck.DamagePublished, open: ledger.ErrCheckpoint},
		"garbage": {published: "garbage", want: fsck.DamagePublished, open: ledger.ErrCheckpoint},
		"missing": {want: fsck.DamageUnpublished, append: ledger.ErrBehind},
	} {
		succeeds(t, os.WriteFile(string(f.published()), []byte(test.published), 0o600))
		wantDamage(t, f.fsck(t), []found{{test.want, -1}})
		l, err := f.open(t)
		wantError(t, err, test.open)
		if err != nil {
			continue
		}
		wantError(t, l.CanAppend(t.Context()), test.append)
		_, err = l.Seal(t.Context(), act(""), actor)
		wantError(t, err, test.append)
		_, err = l.Checkpoint(t.Context())
		wantError(t, err, test.append)
		records, err := l.Prove(t.Context())
		expect.Hold(t, err == nil && records.Checkpoint != "", "%s: reading: %v", name, err)
		l.Close()
	}
}

// TestRestored restores a backup: it can be read, but takes no record until the missing records are back.
func TestRestored(t *testing.T) {
	f, backup := folder(t.TempDir()), folder(t.TempDir())
	l := f.create(t)
	sealMany(t, l, 4)
	must(l.Checkpoint(t.Context()))
	l.Close()
	succeeds(t, os.CopyFS(string(backup), os.DirFS(string(f))))
	l = must(f.open(t))
	last := seal(t, l, "")
	latest := must(l.Checkpoint(t.Context()))
	l.Close()
	succeeds(t, (backup.published()).Store(t.Context(), latest))
	l = must(backup.open(t))
	expect.Give(l.Size(t.Context()))(t, 4)
	_, err := l.Seal(t.Context(), act(""), actor)
	wantError(t, err, ledger.ErrBehind)
	// The missing row comes from elsewhere, while the ledger is open.
	store := must(sqlite.Open(t.Context(), backup.database()))
	defer store.Close()
	source := must(sqlite.Open(t.Context(), f.database()))
	defer source.Close()
	row := must(source.ByRecordID(t.Context(), last.Payload.RecordID))
	head := must(source.Head(t.Context()))
	err = store.Append(t.Context(), func(storage.Head, storage.Committed) (storage.Batch, error) {
		hashes, err := source.Hashes(t.Context(), []int64{tlog.StoredHashIndex(0, 4)})
		return storage.Batch{Rows: []storage.Row{row}, Hashes: hashes, Next: head}, err
	})
	succeeds(t, err)
	wantError(t, l.CanAppend(t.Context()), nil)
	seal(t, l, "")
	must(l.Checkpoint(t.Context()))
	succeeds(t, l.Briefs().Reindex(t.Context(), nil)) // which that row came without
	l.Close()
	wantClean(t, backup.fsck(t))
}

func TestFsckProgress(t *testing.T) {
	l, c := alone(t)
	sealMany(t, l, 100)
	var done, total int64
	found, err := fsck.Run(t.Context(), examined(c), fsck.Options{Progress: func(d, n int64) { done, total = d, n }})
	expect.Hold(t, err == nil && len(found) == 0 && done == 100 && total == 100, "%v, %v, %d of %d", found, err, done, total)
	l.Close()
	_, err = fsck.Run(t.Context(), examined(c), fsck.Options{})
	expect.Want(t, err, ledger.ErrClosed)
}

// TestFsckOutbox makes the outbox and the late_stamp acts disagree with the records.
func TestFsckOutbox(t *testing.T) {
	f := folder(t.TempDir())
	f.create(t).Close()
	l := f.with(t, halfSilent{silent("one", "two")})
	sealMany(t, l, 3)
	expect.Give(l.Settle(t.Context(), lateStamps(must(l.Waiting(t.Context(), "one", 0, 2))), actor))(t, 2)
	l.Close()
	wantClean(t, f.fsck(t))
	bare := f.row(t, 2)
	bare.Timestamps = nil
	unstamped := `UPDATE records SET ` + storetest.Content(&bare) + ` WHERE idx = 2`
	for name, test := range map[string]struct {
		do   string
		want []found
	}{
		"waits at the very end":   {`INSERT INTO waiting VALUES ('two', 9223372036854775807, 0)`, []found{{fsck.DamageWaiting, math.MaxInt64}}},
		"waits for nothing":       {`INSERT INTO waiting VALUES ('two', 99, 0)`, []found{{fsck.DamageWaiting, 99}}},
		"stamped, and waits":      {`INSERT INTO waiting VALUES ('one', 1, 0)`, []found{{fsck.DamageSettled, 1}}},
		"late stamp gone":         {`DELETE FROM timestamps WHERE idx = 1 AND position = 1`, []found{{fsck.DamageLateStamp, 3}}},
		"late stamp changed":      {`UPDATE timestamps SET token = x'01' WHERE idx = 0 AND position = 1`, []found{{fsck.DamageLateStamp, 3}}},
		"bare, and waits":         {unstamped, nil},
		"bare, and waits no more": {unstamped + `; DELETE FROM waiting`, []found{{fsck.DamageCheck, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			copied := folder(t.TempDir())
			succeeds(t, os.CopyFS(string(copied), os.DirFS(string(f))))
			copied.rewrite(t, test.do)
			wantDamage(t, copied.fsck(t), test.want)
		})
	}
}

// TestFsckInOrder checks that damages are reported in log order, on any number of cores and however long each record
// takes.
func TestFsckInOrder(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	sealMany(t, l, 500)
	must(l.Checkpoint(t.Context()))
	l.Close()
	f.rewrite(t, `UPDATE records SET packed = x'7b7d' WHERE idx % 7 = 3;
		UPDATE tags SET hashes = zeroblob(length(hashes)) WHERE idx % 20 = 9;
		DELETE FROM records WHERE idx IN (64, 65, 66, 499)`)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first []fsck.Damage
	for _, cores := range []int{1, 2, 8, 8, 8} {
		runtime.GOMAXPROCS(cores)
		store := must(f.store(t))
		found := must(fsck.Run(t.Context(), examined(f.config(store)), fsck.Options{Check: func(r *evidence.Record, waits bool) error {
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			return genuine(r, waits)
		}}))
		if first == nil {
			first = found
		}
		expect.Hold(t, slices.Equal(found, first), "%d cores: %d damages, which differ from the %d that one core finds", cores, len(found), len(first))
	}
	expect.Hold(t, len(first) >= 71+4, "only %d damages", len(first))
	last := int64(-1)
	for _, d := range first {
		if d.Kind != fsck.DamageUnreadable && d.Kind != fsck.DamageMissingRow {
			continue
		}
		expect.Hold(t, d.Index > last, "%v is named after one at %d", d, last)
		last = d.Index
	}
}

// watched counts rows that were read but not merged yet.
type watched struct {
	storage.Store
	read, most atomic.Int64
	taken      atomic.Int64
	fail       int64 // reading this row fails
	returned   atomic.Bool
	late       atomic.Bool // it was read after Fsck had returned
}

func (w *watched) Rows(ctx context.Context, from, n int64) ([]storage.Row, error) {
	if w.returned.Load() {
		w.late.Store(true)
	}
	if w.fail > 0 && from <= w.fail && w.fail < from+n {
		return nil, errFault
	}
	ahead := w.read.Add(n) - w.taken.Load()
	for most := w.most.Load(); ahead > most && !w.most.CompareAndSwap(most, ahead); most = w.most.Load() {
	}
	return w.Store.Rows(ctx, from, n)
}

// TestFsckReadsNotFarAhead checks that one slow record does not make Fsck keep everything behind it in memory.
func TestFsckReadsNotFarAhead(t *testing.T) {
	l, c := alone(t)
	sealMany(t, l, 2000)
	w := &watched{Store: c.Store}
	c.Store = w
	var firstID string
	for r := range l.Records(t.Context(), 0) {
		firstID = r.Payload.RecordID
		break
	}
	found, err := fsck.Run(t.Context(), examined(c), fsck.Options{
		Progress: func(done, _ int64) { w.taken.Store(done) },
		Check: func(r *evidence.Record, _ bool) error {
			if r.Payload.RecordID == firstID {
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}})
	expect.Need(t, err == nil && len(found) == 0, "%v %v", found, err)
	// Package inorder has at most four pages for each core in turn, and one is being handed over on each side.
	bound := int64(32 * (4*runtime.GOMAXPROCS(0) + 2))
	expect.Hold(t, w.most.Load() <= bound, "%d rows were read ahead, want at most %d", w.most.Load(), bound)
}

// TestFsckBrokenOff checks that no goroutine reads the store after Fsck has returned, for whatever reason.
func TestFsckBrokenOff(t *testing.T) {
	l, c := alone(t)
	sealMany(t, l, 1000)
	for name, want := range map[string]error{"cancelled": context.Canceled, "cannot be read": errFault} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := &watched{Store: c.Store}
			if want == errFault {
				w.fail = 500
			}
			broken := c
			broken.Store = w
			_, err := fsck.Run(ctx, examined(broken), fsck.Options{Progress: func(done, _ int64) {
				if done >= 300 && want == context.Canceled {
					cancel()
				}
			}})
			w.returned.Store(true)
			expect.Want(t, err, want)
			time.Sleep(20 * time.Millisecond)
			expect.Hold(t, !w.late.Load(), "the store was read after Fsck returned")
		})
	}
}

// TestFsckManyDamages checks that the time for many damages grows with their number, not with its square.
func TestFsckManyDamages(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	sealMany(t, l, 300)
	l.Close()
	// Every record moves to its neighbour's place.
	f.rewrite(t, `UPDATE records SET idx = idx + 1000000; UPDATE timestamps SET idx = idx + 1000000;
		UPDATE records SET idx = (idx - 1000000) + 1 - 2 * ((idx - 1000000) % 2);
		UPDATE timestamps SET idx = (idx - 1000000) + 1 - 2 * ((idx - 1000000) % 2);
		CREATE TABLE t AS SELECT idx, actor, actor_seq FROM tags; UPDATE tags SET actor_seq = 1000000 + idx;
		UPDATE tags SET (actor, actor_seq) = (SELECT actor, actor_seq FROM t WHERE t.idx = tags.idx + 1 - 2 * (tags.idx % 2))`)
	moved := 0
	for _, d := range f.fsck(t) {
		if d.Kind == fsck.DamageMoved && d.Detail == fmt.Sprintf("it was logged at %d", d.Index^1) {
			moved++
		}
	}
	expect.Equal(t, moved, 300)
}

// copied makes a log with several pages of records. Some wait for time stamps, some got late ones.
func copied(t *testing.T) (*ledger.Ledger, ledger.Config) {
	t.Helper()
	store := fresh(t)
	c := config(store)
	c.Stamper, c.Settler = halfSilent{silent("one", "other")}, clock{}
	l := must(ledger.Create(t.Context(), c))
	t.Cleanup(func() { l.Close() })
	sealMany(t, l, 1100)
	pending := must(l.Waiting(t.Context(), "one", 0, 3))
	must(l.Settle(t.Context(), lateStamps(pending), actor))
	must(l.Checkpoint(t.Context()))
	sealMany(t, l, 3)
	return l, c
}

// unpacked returns rows without what each store makes of them.
func unpacked(rows []storage.Row) []storage.Row {
	for i := range rows {
		rows[i].Packed = storage.Packed{}
	}
	return rows
}

func wantSameLog(t *testing.T, from, to storage.Store) {
	t.Helper()
	ctx := t.Context()
	head := must(from.Head(ctx))
	expect.Equal(t, must(to.Head(ctx)), head)
	wantSame(t, unpacked(must(from.Rows(ctx, 0, head.Size))), unpacked(must(to.Rows(ctx, 0, head.Size))))
	owing := must(from.Owing(ctx))
	diff := cmp.Diff(owing, must(to.Owing(ctx)))
	expect.Hold(t, diff == "" && len(owing) != 0, "(-log +copy):\n%s", diff)
	for _, o := range owing {
		wantSame(t, must(from.Waiting(ctx, o.Authority, 0, head.Size)), must(to.Waiting(ctx, o.Authority, 0, head.Size)))
	}
	signed := must(from.Checkpoint(ctx))
	expect.Hold(t, must(to.Checkpoint(ctx)) == signed && signed != "", "the copy has another checkpoint")
}

// wantSame asks for the differences only where there are some: finding them takes far longer than comparing.
func wantSame[T any](t *testing.T, log, copied []T) {
	t.Helper()
	if reflect.DeepEqual(log, copied) {
		return
	}
	expect.Equal(t, cmp.Diff(log, copied), "")
}

// TestCopy copies a log between kinds of stores and back, and compares everything.
func TestCopy(t *testing.T) {
	_, c := copied(t)
	file := must(sqlite.Create(t.Context(), filepath.Join(t.TempDir(), "copy.db")))
	defer file.Close()
	back := fresh(t)
	told := int64(0)
	transactions := 0
	head, err := storage.Copy(t.Context(), c.Store, file, func(done, total int64) { told, transactions = done, transactions+1 })
	expect.Need(t, err == nil && told == head.Size && transactions == 3, "%v %v %v", told, transactions, err)
	expect.Equal(t, must(file.Checkpoint(t.Context())), "")
	succeeds(t, storage.FinishCopy(t.Context(), c.Store, file))
	wantSameLog(t, c.Store, file)
	must(storage.Copy(t.Context(), file, back, nil))
	succeeds(t, storage.FinishCopy(t.Context(), file, back))
	wantSameLog(t, c.Store, back)
	copied := c
	copied.Store = back
	damages, err := fsck.Run(t.Context(), examined(copied), fsck.Options{Check: genuine})
	expect.Hold(t, err == nil && len(damages) == 0, "%v %v", damages, err)
	wantError(t, storage.FinishCopy(t.Context(), file, back), ledger.ErrConflict)
}

// TestCopyOfLargeRecords: what one transaction writes is bounded.
func TestCopyOfLargeRecords(t *testing.T) {
	store := fresh(t)
	l := must(ledger.Create(t.Context(), config(store)))
	defer l.Close()
	large := `,"metadata":{"x":"` + strings.Repeat("x", 1<<19) + `"}`
	for range 33 {
		seal(t, l, large)
	}
	var told []int64
	must(storage.Copy(t.Context(), store, fresh(t), func(done, _ int64) { told = append(told, done) }))
	wantSame(t, told, []int64{32, 33})
}

// TestCopyGoesOn checks that an interrupted copy continues where it was, and refuses another log.
func TestCopyGoesOn(t *testing.T) {
	_, c := copied(t)
	to := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	fails(t, context.Canceled)(storage.Copy(ctx, c.Store, to, func(int64, int64) { cancel() }))
	head := must(to.Head(t.Context()))
	expect.Need(t, head.Size != 0 && head.Size != must(c.Store.Head(t.Context())).Size, "it was broken off at %v", head)
	must(storage.Copy(t.Context(), c.Store, to, nil))
	must(storage.Copy(t.Context(), c.Store, to, nil)) // there is nothing left to do
	succeeds(t, storage.FinishCopy(t.Context(), c.Store, to))
	wantSameLog(t, c.Store, to)

	_, other := copied(t)
	fails(t, storage.ErrOtherLog)(storage.Copy(t.Context(), other.Store, to, nil))
}
