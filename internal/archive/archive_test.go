package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
)

// logOf is a log in memory whose records have no real signatures.
type logOf struct {
	rows       []storage.Row
	hashes     []tlog.Hash
	checkpoint string
	size       int64
	verifier   note.Verifier
}

func (l *logOf) ReadHashes(indexes []int64) (list []tlog.Hash, err error) {
	for _, i := range indexes {
		list = append(list, l.hashes[i])
	}
	return list, nil
}

func (l *logOf) source(from, to int64) Source {
	return Source{Origin: "example.com/log", From: from, To: to, Checkpoint: l.checkpoint, Size: l.size, Hashes: l, Rows: l.read}
}

func (l *logOf) read(_ context.Context, from, n int64) ([]storage.Row, error) {
	return l.rows[from:min(from+n, int64(len(l.rows)))], nil
}

// text is typical text of a record, different for each record.
func text(random *rand.Rand, words int) string {
	list := strings.Fields("the agent asked whether a refund of the booking was allowed under the policy and then cancelled it for the customer who had not agreed")
	var b strings.Builder
	for range words {
		b.WriteString(list[random.IntN(len(list))] + " ")
	}
	return b.String()
}

func newLog(t testing.TB, n, words int) *logOf {
	t.Helper()
	skey, vkey, err := note.GenerateKey(nil, "example.com/log")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(skey)
	if err != nil {
		t.Fatal(err)
	}
	l := &logOf{size: int64(n)}
	if l.verifier, err = note.NewVerifier(vkey); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		row := rowOf(t, random, i, words)
		entry, err := row.LogEntry()
		if err != nil {
			t.Fatal(err)
		}
		stored, err := tlog.StoredHashesForRecordHash(int64(i), tlog.RecordHash(entry), l)
		if err != nil {
			t.Fatal(err)
		}
		l.rows, l.hashes = append(l.rows, row), append(l.hashes, stored...)
	}
	root, err := tlog.TreeHash(l.size, l)
	if err != nil {
		t.Fatal(err)
	}
	if l.checkpoint, err = operator.SignCheckpoint(operator.Checkpoint{Origin: "example.com/log", Size: l.size, Root: root}, signer); err != nil {
		t.Fatal(err)
	}
	return l
}

// rowOf makes a row without a real signature or token: an archive does not check them.
func rowOf(t testing.TB, random *rand.Rand, n, words int) storage.Row {
	t.Helper()
	payload, err := evidence.Canonical(fmt.Appendf(nil, `{"schema":%q,"record_id":"0199aabb-0000-7000-8000-%012x","action_type":"model_output","agent_id":"agent",
		"request_id":"r-%d","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1","prompt":%q,"response":%q,"parameters":{},
		"chain_id":"c","chain_position":%d,"signers":[{"alg":"ES256","key_id":"sha256:%064x"}]}`,
		evidence.Schema, n, n, text(random, words), text(random, words), n+1, 7))
	if err != nil {
		t.Fatal(err)
	}
	noise := func(size int) []byte {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	token := append(bytes.Repeat([]byte("certificate "), 40), noise(150)...)
	row := storage.Row{Index: int64(n), RecordID: fmt.Sprintf("0199aabb-0000-7000-8000-%012x", n), Digest: evidence.DigestOf(payload), ChainID: "c",
		Counts: evidence.LogCounts{ChainSeq: int64(n + 1)}, Payload: payload, Signatures: [][]byte{derSignature(noise(64))},
		Timestamps: []evidence.Timestamp{{Kind: evidence.RFC3161, Token: token}}}
	if _, err := row.LogEntry(); err != nil {
		t.Fatal(err)
	}
	return row
}

// derSignature has the form of an ECDSA signature with a low S.
func derSignature(noise []byte) []byte {
	r, s := noise[:32], noise[32:64]
	r[0], s[0] = 1, 1
	return append(append(append([]byte{0x30, 68, 2, 32}, r...), 2, 32), s...)
}

func write(t testing.TB, s Source) []byte {
	t.Helper()
	var b bytes.Buffer
	digest, err := Write(t.Context(), &b, s)
	if err != nil {
		t.Fatal(err)
	}
	f := openBytes(t, b.Bytes())
	if f.Digest() != digest {
		t.Errorf("the digest is %v, Write returned %v", f.Digest(), digest)
	}
	return b.Bytes()
}

func openBytes(t testing.TB, b []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// TestRoundTrip writes ranges of a log, and reads them: one by one in any order, and all.
func TestRoundTrip(t *testing.T) {
	l := newLog(t, 5*tile+17, 40)
	for _, r := range [][2]int64{{0, tile}, {0, 5 * tile}, {tile, 4 * tile}, {3 * tile, 5 * tile}} {
		doc := write(t, l.source(r[0], r[1]))
		if again := write(t, l.source(r[0], r[1])); !bytes.Equal(doc, again) {
			t.Errorf("%v: the same records gave two different files", r)
		}
		f := openBytes(t, doc)
		if err := f.CheckProof(l.verifier); err != nil {
			t.Errorf("%v: %v", r, err)
		}
		indexes, roots := f.Roots()
		stored, err := l.ReadHashes(indexes)
		if diff := cmp.Diff(stored, roots); err != nil || diff != "" {
			t.Errorf("%v: roots (-log +file):\n%s", r, diff)
		}
		for n := r[1] - 1; n >= r[0]; n-- {
			row, leaf, err := f.Row(n)
			if err != nil {
				t.Fatal(err)
			}
			if !sameRow(&row, &l.rows[n]) || row.Index != n || leaf != l.hashes[tlog.StoredHashIndex(0, n)] {
				t.Errorf("%v: record %d is another", r, n)
			}
		}
		for _, n := range []int64{r[0] - 1, r[1], -1} {
			if _, _, err := f.Row(n); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("%v: record %d: %v", r, n, err)
			}
		}
		seen := make([]bool, r[1])
		var mu sync.Mutex
		damages, err := f.Check(t.Context(), Examination{Workers: 3, Each: func(row *storage.Row, record *evidence.Record) error {
			mu.Lock()
			defer mu.Unlock()
			seen[row.Index] = record.Payload.RecordID == l.rows[row.Index].RecordID
			return nil
		}})
		if err != nil || damages > 0 {
			t.Errorf("%v: %d damages, %v", r, damages, err)
		}
		for n := r[0]; n < r[1]; n++ {
			if !seen[n] {
				t.Fatalf("%v: record %d was not examined", r, n)
			}
		}
	}
}

// TestExpired checks that a file keeps only the log entry of an expired record.
func TestExpired(t *testing.T) {
	l := newLog(t, tile+3, 20)
	for n := range int64(tile) {
		if n%3 == 0 {
			continue
		}
		entry, err := l.rows[n].LogEntry()
		if err != nil {
			t.Fatal(err)
		}
		l.rows[n] = storage.Row{Index: n, RecordID: l.rows[n].RecordID, Entry: entry, ExpiredBy: "act-1"}
	}
	doc := write(t, l.source(0, tile))
	f := openBytes(t, doc)
	row, leaf, err := f.Row(1)
	if err != nil || row.ExpiredBy != "act-1" || len(row.Payload) > 0 || tlog.RecordHash(row.Entry) != leaf {
		t.Errorf("%+v, %v", row, err)
	}
	gone := 0
	var mu sync.Mutex
	damages, err := f.Check(t.Context(), Examination{Each: func(_ *storage.Row, record *evidence.Record) error {
		mu.Lock()
		defer mu.Unlock()
		if record == nil {
			gone++
		}
		return nil
	}})
	if err != nil || damages != 0 || gone != tile-86 {
		t.Errorf("%d damages, %v, %d expired", damages, err, gone)
	}
}

// TestEveryByteCounts changes each byte of a file, and truncates the file at every length. Open or the reads must return
// an error.
func TestEveryByteCounts(t *testing.T) {
	l := newLog(t, tile+1, 3)
	doc := write(t, l.source(0, tile))
	whole := openBytes(t, doc).Digest()
	step := max(1, len(doc)/1500)
	for at := 0; at < len(doc); at += step {
		bad := bytes.Clone(doc)
		bad[at] ^= 1 << (at % 8)
		if reason := refused(t, bad, whole); reason == nil {
			t.Errorf("byte %d of %d was changed without an error", at, len(doc))
		} else if !errors.Is(reason, ledger.ErrArchive) {
			t.Errorf("byte %d: %v", at, reason)
		}
	}
	for length := 0; length < len(doc); length += max(1, len(doc)/200) {
		if refused(t, doc[:length], whole) == nil {
			t.Errorf("it was cut off after %d bytes without an error", length)
		}
	}
	if refused(t, append(bytes.Clone(doc), 0), whole) == nil {
		t.Error("a byte was added without an error")
	}
}

// refused returns why a file is not the one with this digest.
func refused(t *testing.T, doc []byte, want evidence.Digest) error {
	f, err := Open(bytes.NewReader(doc), int64(len(doc)))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.is(storage.Archived{From: 0, To: tile, Digest: want}); err != nil {
		return err
	}
	var first error
	if _, err := f.Check(t.Context(), Examination{Workers: 1, Found: func(d *Damage) { first = d }}); err != nil {
		t.Fatal(err)
	}
	return first
}

// TestForgeries makes files that are well-formed, but do not hold the records of this log.
func TestForgeries(t *testing.T) {
	l := newLog(t, 2*tile+9, 3)
	other := newLog(t, 2*tile+9, 4)
	for name, forge := range map[string]func(*Source){
		"another log's records": func(s *Source) { s.Rows = other.read },
		"two records swapped": func(s *Source) {
			rows := append([]storage.Row{}, l.rows...)
			rows[3], rows[4] = rows[4], rows[3]
			s.Rows = (&logOf{rows: rows}).read
		},
		"another count": func(s *Source) {
			rows := append([]storage.Row{}, l.rows...)
			rows[3].Counts.ChainSeq = 9
			s.Rows = (&logOf{rows: rows}).read
		},
	} {
		s := l.source(0, 2*tile)
		forge(&s)
		var b bytes.Buffer
		digest, err := Write(t.Context(), &b, s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f := openBytes(t, b.Bytes())
		if damages, err := f.Check(t.Context(), Examination{}); err != nil || damages == 0 {
			t.Errorf("%s: %d damages, %v", name, damages, err)
		}
		_ = digest
	}
	s := l.source(0, 2*tile)
	s.Checkpoint = other.checkpoint
	var b bytes.Buffer
	if _, err := Write(t.Context(), &b, s); err != nil {
		t.Fatal(err)
	}
	if err := openBytes(t, b.Bytes()).CheckProof(l.verifier); err == nil {
		t.Error("it is accepted under another log's checkpoint")
	}
	if err := openBytes(t, b.Bytes()).CheckProof(other.verifier); err == nil {
		t.Error("it is accepted under a checkpoint that does not cover its records")
	}
	whole := write(t, l.source(0, 2*tile))
	if err := openBytes(t, whole).is(storage.Archived{From: tile, To: 2 * tile, Digest: openBytes(t, whole).Digest()}); err == nil {
		t.Error("it is accepted as another range")
	}
}

// TestHostile opens files that try to exhaust memory or time, or to cause a panic.
func TestHostile(t *testing.T) {
	l := newLog(t, tile, 3)
	doc := write(t, l.source(0, tile))
	f := openBytes(t, doc)
	remake := func(change func(*table)) []byte {
		tb := *f.table
		tb.Tiles = append([]tileParts{}, f.table.Tiles...)
		change(&tb)
		text, err := tb.marshal()
		if err != nil {
			t.Fatal(err)
		}
		old, err := f.table.marshal()
		if err != nil {
			t.Fatal(err)
		}
		body := doc[:len(doc)-int(trailerSize)-len(old)]
		digest := evidence.DigestOf(text)
		b := append(bytes.Clone(body), text...)
		b = binary.BigEndian.AppendUint64(b, uint64(len(text)))
		return append(append(b, digest[:]...), endMagic...)
	}
	for name, bad := range map[string][]byte{
		"another format":        remake(func(t *table) { t.Format = "jurat/archive/v2" }),
		"huge dictionary":       remake(func(t *table) { t.Dictionary.Length = 1 << 40 }),
		"negative dictionary":   remake(func(t *table) { t.Dictionary.Length = -5 }),
		"huge index":            remake(func(t *table) { t.Tiles[0].Index.Length = 1 << 50 }),
		"negative blocks":       remake(func(t *table) { t.Tiles[0].Blocks = -1 }),
		"overflowing sums":      remake(func(t *table) { t.Tiles[0].Blocks = 1<<63 - 1 }),
		"no tiles":              remake(func(t *table) { t.Tiles = []tileParts{} }),
		"half a tile":           remake(func(t *table) { t.To = 100 }),
		"backwards":             remake(func(t *table) { t.From, t.To = tile, 0 }),
		"the last tile":         remake(func(t *table) { t.From, t.To = 1<<63-2*tile, 1<<63-tile }),
		"beyond any log":        remake(func(t *table) { t.From, t.To = 1<<53, 1<<53+tile }),
		"no multiple of a tile": remake(func(t *table) { t.From, t.To = 1<<62+1, 1<<62+1+tile }),
		"too many hashes":       remake(func(t *table) { t.Outside = make([]evidence.Digest, maxOutside+1) }),
		"no roots":              remake(func(t *table) { t.Roots = []evidence.Digest{} }),
		"a table that is short": append(append(bytes.Clone(magic), make([]byte, 40)...), endMagic...),
		"nothing":               {},
	} {
		if f, err := Open(bytes.NewReader(bad), int64(len(bad))); err == nil {
			f.Close()
			t.Errorf("%s: it opens", name)
		} else if !errors.Is(err, ledger.ErrArchive) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bomb, err := pack(make([]byte, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unpackOnce(bomb, maxDictionary); err == nil || len(bomb) > maxDictionary {
		t.Errorf("a dictionary of %d bytes that unpacks to a megabyte: %v", len(bomb), err)
	}
}

// TestFolder opens more files than a Folder keeps open, from many goroutines, and checks the errors for a missing and
// for a wrong file.
func TestFolder(t *testing.T) {
	l := newLog(t, 20*tile, 2)
	d := NewFolder(filepath.Join(t.TempDir(), "archive"))
	defer d.Close()
	var files []storage.Archived
	for from := int64(0); from < 20*tile; from += tile {
		in, err := d.Create(t.Context(), l.source(from, from+tile))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, in)
	}
	adopted, ok, err := d.Adopt(t.Context(), l.source(tile, 2*tile))
	if err != nil || !ok || adopted != files[1] {
		t.Errorf("Adopt = %+v, %v, %v", adopted, ok, err)
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for range 100 {
				at := random.Int64N(20 * tile)
				row := l.rows[at]
				row.Payload, row.Signatures, row.Timestamps = nil, nil, nil
				if err := d.Fill(context.Background(), files[at/tile], []*storage.Row{&row}); err != nil || !sameRow(&row, &l.rows[at]) {
					t.Errorf("record %d: %v", at, err)
				}
			}
		})
	}
	wg.Wait()
	if len(d.open) > maxOpen {
		t.Errorf("%d files are open", len(d.open))
	}
	names, err := d.List()
	if err != nil || len(names) != 20 || names[3] != files[3].File {
		t.Errorf("List = %q, %v", names, err)
	}
	d.Close()
	if err := os.Remove(d.Path(files[3].File)); err != nil {
		t.Fatal(err)
	}
	err = d.Fill(t.Context(), files[3], []*storage.Row{{Index: 3 * tile}})
	if !errors.Is(err, ledger.ErrArchive) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), files[3].File) || errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.Rename(d.Path(files[4].File), d.Path(files[3].File)); err != nil {
		t.Fatal(err)
	}
	if err := d.Fill(t.Context(), files[3], []*storage.Row{{Index: 3 * tile}}); !errors.Is(err, ledger.ErrArchive) {
		t.Errorf("another file in its place: %v", err)
	}
}

// TestCancelled checks that a cancelled Create leaves no file behind.
func TestCancelled(t *testing.T) {
	l := newLog(t, 2*tile, 2)
	ctx, cancel := context.WithCancel(t.Context())
	s := l.source(0, 2*tile)
	s.Progress = func(int64) { cancel() }
	s.Rows = func(ctx context.Context, from, n int64) ([]storage.Row, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return l.read(ctx, from, n)
	}
	dir := t.TempDir()
	if _, err := NewFolder(dir).Create(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("Create: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("it leaves %v, %v", entries, err)
	}
}

// FuzzOpen opens any bytes, and reads everything from a file that opens.
func FuzzOpen(f *testing.F) {
	l := newLog(f, tile, 1)
	doc := write(f, l.source(0, tile))
	f.Add(doc)
	f.Add(doc[:len(doc)/2])
	f.Add([]byte("jurat/archive/v1\n"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		file, err := Open(bytes.NewReader(doc), int64(len(doc)))
		if err != nil {
			return
		}
		defer file.Close()
		if _, err := file.Check(t.Context(), Examination{Workers: 1}); err != nil {
			t.Error(err)
		}
	})
}

// TestBlockCounts checks that a reader allocates no more for the counts in a block than the block contains.
func TestBlockCounts(t *testing.T) {
	signature, stamp := []byte{1, 7}, []byte{1, 'k', 1, 7}
	entry := func(signatures int, signature []byte, stamps int, stamp []byte) []byte {
		b := []byte{whole, 1, 0, 1, 'p'}
		b = append(binary.AppendUvarint(b, uint64(signatures)), bytes.Repeat(signature, signatures)...)
		return append(binary.AppendUvarint(b, uint64(stamps)), bytes.Repeat(stamp, stamps)...)
	}
	if rows, err := parseBlock(entry(maxSignatures, signature, maxTimestamps, stamp), 1); err != nil || len(rows[0].Signatures) != maxSignatures || len(rows[0].Timestamps) != maxTimestamps {
		t.Errorf("as many as there may be: %v", err)
	}
	for name, b := range map[string][]byte{
		"too many signatures":  entry(maxSignatures+1, signature, 0, nil),
		"too many time stamps": entry(1, signature, maxTimestamps+1, stamp),
		"an empty signature":   entry(1, []byte{0}, 0, nil),
		"an empty time stamp":  entry(1, signature, 1, []byte{1, 'k', 0}),
		"of no kind":           entry(1, signature, 1, []byte{0, 1, 7}),
	} {
		if _, err := parseBlock(b, 1); err == nil {
			t.Errorf("%s: is read", name)
		}
	}
	p := parser{rest: entry(maxSignatures, []byte{9}, 0, nil)[1:]} // the first signature ends after the block does
	var r storage.Row
	if p.whole(&r); p.err == nil || len(r.Signatures) > 2 {
		t.Errorf("%d signatures were read before the error %v", len(r.Signatures), p.err)
	}
}

// TestCountedRows checks that a row keeps what the log counted of its actor and subject, and that a reader takes these
// numbers in no other form.
func TestCountedRows(t *testing.T) {
	l := newLog(t, 2, 1)
	row := l.rows[0]
	subject := evidence.SubjectTag(evidence.RoleAgent, "a")
	for _, counts := range []evidence.LogCounts{{ChainSeq: 1}, {ChainSeq: 1, ActorSeq: 7}, {ChainSeq: 1, ActorSeq: 300, Subject: subject, SubjectSeq: 1 << 40}} {
		row.Counts = counts
		b := appendRow(nil, &row)
		if rows, err := parseBlock(b, 1); err != nil || rows[0].Counts != counts || !bytes.Equal(rows[0].Payload, row.Payload) {
			t.Errorf("%+v: %+v, %v", counts, rows, err)
		}
	}
	plain := appendRow(nil, &l.rows[1])[1:]
	for name, head := range map[string][]byte{
		"number 0":              {counted, 0, 0},
		"a long number":         {counted, 0x81, 0, 0},
		"no number":             {counted},
		"a subject that is cut": {counted, 1, 1, 7},
		"a subject of zeros":    append([]byte{counted, 1, 1}, make([]byte, 32)...),
	} {
		b := append([]byte{}, head...)
		if len(head) > 2 && name != "a subject that is cut" {
			b = append(b, plain...)
		}
		if rows, err := parseBlock(b, 1); err == nil {
			t.Errorf("%s: is read as %+v", name, rows)
		}
	}
}

// FuzzBlock: a block that parses marshals back to the same bytes.
func FuzzBlock(f *testing.F) {
	l := newLog(f, 2, 1)
	b := appendRow(appendRow(nil, &l.rows[0]), &l.rows[1])
	f.Add(b, 2)
	f.Add(appendRow(nil, &storage.Row{Entry: []byte("{}"), ExpiredBy: "a"}), 1)
	f.Add([]byte{1, 0x80, 0}, 1)
	l.rows[0].Counts = evidence.LogCounts{ChainSeq: 1, ActorSeq: 3, Subject: evidence.DigestOf(nil), SubjectSeq: 2}
	f.Add(appendRow(nil, &l.rows[0]), 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n < 0 || n > tile {
			return
		}
		rows, err := parseBlock(b, n)
		if err != nil {
			return
		}
		var again []byte
		for i := range rows {
			again = appendRow(again, &rows[i])
		}
		if !bytes.Equal(again, b) {
			t.Errorf("%x is written as %x", b, again)
		}
	})
}
