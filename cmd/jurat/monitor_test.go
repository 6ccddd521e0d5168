package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/log/witness"
	"jurat/internal/test/must"
	"jurat/internal/test/storetest"
	"jurat/internal/web/server"
)

// A watchedLog is the data folder of an installation.
type watchedLog string

func (l watchedLog) open(t *testing.T) *installation.Installation {
	t.Helper()
	i, _, err := installation.OpenOrCreate(t.Context(), installation.Config{Dir: string(l)})
	must.Do(t, err)
	return i
}

// grow seals n records of the courier with this text.
func (l watchedLog) grow(t *testing.T, n int, what string) {
	t.Helper()
	l.growBy(t, "courier", n, what)
}

// growBy seals n records of an agent with this text.
func (l watchedLog) growBy(t *testing.T, agent string, n int, what string) {
	t.Helper()
	i := l.open(t)
	defer i.Close()
	growIn(t, i, agent, n, what)
}

func growIn(t *testing.T, i *installation.Installation, agent string, n int, what string) {
	t.Helper()
	for range n {
		draft := must.Get(evidence.NewDraft(evidence.Payload{AgentID: agent, RequestID: "r", Timestamp: "2024-01-31T16:15:00Z", Model: "m", ModelVersion: "1",
			Prompt: jsontext.Value(`"p"`), Response: jsontext.Value(fmt.Sprintf("%q", what)), Parameters: jsontext.Value(`{}`)}))(t)
		signers := must.Get(i.Keys.Signers(t.Context(), draft.Role(), draft.Actor()))(t)
		must.Fail(t, nil)(i.Ledger.Seal(t.Context(), draft, signers))
	}
	must.Fail(t, nil)(i.Ledger.Checkpoint(t.Context()))
}

// copied copies the folder in its present state, as a backup or as a dishonest operator would.
func (l watchedLog) copied(t *testing.T) watchedLog {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	must.Do(t, os.CopyFS(to, os.DirFS(string(l))))
	must.Do(t, filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o600)
	}))
	return watchedLog(to)
}

// rewrite changes the database as an attacker does who has the file and knows SQL.
func (l watchedLog) rewrite(t *testing.T, statements ...string) {
	t.Helper()
	db := must.Get(sql.Open("sqlite", filepath.Join(string(l), "jurat.db")))(t)
	defer db.Close()
	for _, trigger := range []string{"records_stay", "records_keep", "timestamps_stay", "timestamps_keep", "tags_stay", "tags_keep"} {
		statements = append([]string{"DROP TRIGGER " + trigger}, statements...)
	}
	for _, statement := range statements {
		must.Get(db.ExecContext(t.Context(), statement))(t)
	}
}

// hashes reads all stored hashes, and the size.
func (l watchedLog) hashes(t *testing.T) (hashes []tlog.Hash, size int64) {
	t.Helper()
	db := must.Get(sql.Open("sqlite", filepath.Join(string(l), "jurat.db")))(t)
	defer db.Close()
	rows := must.Get(db.QueryContext(t.Context(), `SELECT hashes FROM tags ORDER BY idx`))(t)
	defer rows.Close()
	for rows.Next() {
		var of []byte
		must.Do(t, rows.Scan(&of))
		for hash := range slices.Chunk(of, tlog.HashSize) {
			hashes = append(hashes, tlog.Hash(hash))
		}
		size++
	}
	must.Do(t, rows.Err())
	return hashes, size
}

// reader returns the stored hashes as a tlog.HashReader.
func reader(hashes []tlog.Hash) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) (list []tlog.Hash, err error) {
		for _, i := range indexes {
			list = append(list, hashes[i])
		}
		return list, nil
	})
}

// forgeRecord replaces a record and all hashes that depend on it, and signs the result with the log's own key.
func (l watchedLog) forgeRecord(t *testing.T, index int64) {
	t.Helper()
	hashes, size := l.hashes(t)
	forged := l.forged(t, index)
	leaf := tlog.RecordHash(forged.LogEntry(evidence.LogCounts{}))
	row := storage.RowOf(forged)
	statements := []string{fmt.Sprintf("UPDATE records SET %s, digest = %s WHERE idx = %d", storetest.Content(&row), blob(forged.Digest[:]), index)}
	for level, n := 0, index; ; level, n = level+1, n/2 {
		at := tlog.StoredHashIndex(level, n)
		hashes[at] = leaf
		statements = append(statements, storetest.SetHash(level, n, leaf[:]))
		if (n/2+1)<<(level+1) > size {
			break
		}
		leaf = tlog.NodeHash(hashes[tlog.StoredHashIndex(level, n&^1)], hashes[tlog.StoredHashIndex(level, n|1)])
	}
	root := must.Get(tlog.TreeHash(size, reader(hashes)))(t)
	signed := l.sign(t, size, root)
	l.rewrite(t, append(statements, fmt.Sprintf("UPDATE tags SET root = %s WHERE idx = %d", blob(root[:]), size-1),
		fmt.Sprintf("UPDATE head SET checkpoint = CAST(%s AS TEXT)", blob([]byte(signed))))...)
	must.Do(t, os.WriteFile(filepath.Join(string(l), "checkpoint"), []byte(signed), 0o600))
}

// forged returns a record with a changed word and the old signatures.
func (l watchedLog) forged(t *testing.T, index int64) *evidence.Record {
	t.Helper()
	i := l.open(t)
	defer i.Close()
	for r, err := range i.Ledger.Records(t.Context(), index) {
		must.Do(t, err)
		payload := bytes.Replace(r.Canonical(), []byte("as it was"), []byte("otherwise"), 1)
		forged, err := evidence.OpenParts(payload, r.Signatures, r.Timestamps)
		must.Need(t, err == nil && forged.Digest != r.Digest, "record %d: %v", index, err)
		return forged
	}
	t.Fatal("there is no such record")
	return nil
}

// sign signs with the log's own key, as its operator can.
func (l watchedLog) sign(t *testing.T, size int64, root tlog.Hash) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(string(l), "log.key")))(t)
	private, _, _ := strings.Cut(string(text), "\n")
	signer := must.Get(note.NewSigner(private))(t)
	return must.Get(operator.SignCheckpoint(operator.Checkpoint{Origin: signer.Name(), Size: size, Root: root}, signer))(t)
}

func blob(b []byte) string { return "x'" + hex.EncodeToString(b) + "'" }

// A watcher monitors a log at one URL. The log that is served there can change.
type watcher struct {
	t      *testing.T
	folder string
	url    string
	served http.Handler // what is served now
}

func newWatcher(t *testing.T, l watchedLog) *watcher {
	t.Helper()
	w := &watcher{t: t, folder: t.TempDir()}
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { w.served.ServeHTTP(out, r) }))
	t.Cleanup(s.Close)
	w.url = s.URL + "/log"
	i := l.open(t)
	defer i.Close()
	trust := must.Get(i.Trust(t.Context()))(t)
	doc := must.Get(trust.Marshal())(t)
	must.Do(t, os.WriteFile(w.file("trust.json"), doc, 0o600))
	return w
}

func (w *watcher) file(name string) string { return filepath.Join(w.folder, name) }

// serve serves a log at the URL from now on, with jurat's server.
func (w *watcher) serve(ctx context.Context, l watchedLog) {
	w.t.Helper()
	i := l.open(w.t)
	w.t.Cleanup(func() { _ = i.Close() })
	s, err := server.New(ctx, server.Config{Installation: i, PublicEntries: true, Limits: server.Rate{PerSecond: 1e6, Burst: 1e6}, Log: slog.New(slog.DiscardHandler)})
	must.Do(w.t, err)
	w.served = s
}

func (w *watcher) run(args ...string) (code int, out, complaints string) {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	ctx, end := context.WithTimeout(w.t.Context(), time.Minute) // for a watch that does not end although it must
	defer end()
	code = run(ctx, args, stdio{in: strings.NewReader(""), out: &stdout, err: &stderr})
	return code, stdout.String(), stderr.String()
}

// look runs one look, and expects an exit code and a text.
func (w *watcher) look(name string, code int, says string, more ...string) {
	w.t.Helper()
	got, out, complaints := w.run(append([]string{"log", "monitor", w.url, "--trust", w.file("trust.json"), "--state", w.file("state"), "--patient", "1ms"}, more...)...)
	must.Hold(w.t, got == code && strings.Contains(out+complaints, says),
		"%s: exit code %d, %q, %q; want %d, %q", name, got, out, complaints, code, says)
}

// evidence returns the folder that an alarm has left, and the text of its how.txt. It moves the folder away.
func (w *watcher) evidence(name string) (folder, how string) {
	w.t.Helper()
	folders, err := filepath.Glob(w.file("state.*-*"))
	must.Need(w.t, err == nil && len(folders) == 1, "%s: evidence in %v, %v", name, folders, err)
	folder = filepath.Join(w.t.TempDir(), "evidence")
	must.Do(w.t, os.Rename(folders[0], folder))
	return folder, read(w.t, filepath.Join(folder, "how.txt"))
}

// others uses what an alarm has left as another person would: how.txt says what it proves, and 'jurat verify' must say
// the same.
func (w *watcher) others(name, proves string, code int, says string) {
	w.t.Helper()
	folder, how := w.evidence(name)
	_, command, found := strings.Cut(how, "\n    jurat ")
	must.Hold(w.t, found && strings.Contains(how, proves) && strings.Contains(how, w.url),
		"%s: how.txt is %q, and does not contain %q", name, how, proves)
	args := strings.Fields(strings.Replace(command, "TRUST", w.file("trust.json"), 1))
	for i, arg := range args {
		if strings.Contains(arg, ".checkpoint") || arg == "proof.json" {
			args[i] = filepath.Join(folder, arg)
		}
	}
	got, out, complaints := w.run(args...)
	out = strings.Join(strings.Fields(out), " ")
	must.Hold(w.t, got == code && strings.Contains(out, says),
		"%s: jurat %v: exit code %d, %q, %q; want %d, %q", name, args, got, out, complaints, code, says)
}

// between changes the answers of a handler.
func between(h http.Handler, path string, change func([]byte) []byte) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		doc := answer.Body.Bytes()
		if strings.HasPrefix(r.URL.Path, path) && answer.Code == http.StatusOK {
			doc = change(doc)
		}
		out.WriteHeader(answer.Code)
		_, _ = out.Write(doc)
	})
}

// TestTwoMonitorsOfOneState: a slower monitor that has seen less does not overwrite what another one has stored.
func TestTwoMonitorsOfOneState(t *testing.T) {
	t.Parallel()
	l := watchedLog(filepath.Join(t.TempDir(), "data"))
	l.grow(t, 2, "as it was")
	w := newWatcher(t, l)
	w.serve(t.Context(), l)
	w.look("first", 0, "consistent")
	const other = "what the other has seen"
	w.served = between(w.served, "/log/checkpoint", func(signed []byte) []byte {
		must.Want(t, os.WriteFile(w.file("state"), []byte(other), 0o600), nil)
		return signed
	})
	w.look("at the same time", exitCannot, "its own --state")
	must.Equal(t, read(t, w.file("state")), other)
}

// TestMonitorCatches: an operator with the real key tampers with the database of a monitored log. Every change raises an
// alarm, the evidence of a fork convinces others, and no witness that knows the log cosigns it.
func TestMonitorCatches(t *testing.T) {
	t.Parallel()
	honest := watchedLog(filepath.Join(t.TempDir(), "data"))
	honest.grow(t, 280, "as it was")
	backup := honest.copied(t)
	honest.grow(t, 20, "as it was")

	w := newWatcher(t, honest)
	w.serve(t.Context(), honest)
	w.look("first", 0, "consistent: the log ")
	state := must.Get(os.ReadFile(w.file("state")))(t)
	seen := knownWitness(t, honest)
	must.Fail(t, nil)(seen.cosign(t, honest))

	forkedSame, forkedLarger, forgedRecord, forgedAndGrown, oneHash, oneNode := backup.copied(t), backup.copied(t), honest.copied(t), honest.copied(t), honest.copied(t), honest.copied(t)
	forkedSame.grow(t, 20, "another history")
	forkedLarger.grow(t, 40, "another history")
	forgedRecord.forgeRecord(t, 4)
	forgedAndGrown.forgeRecord(t, 4)
	forgedAndGrown.grow(t, 5, "as it was")
	oneHash.rewrite(t, storetest.SetHash(0, 4, make([]byte, 32)))
	oneNode.rewrite(t, storetest.SetHash(8, 0, make([]byte, 32)))

	const proof = "Together they prove that the log is false"
	for _, test := range []struct {
		name    string
		log     watchedLog
		change  func(http.Handler) http.Handler
		says    string
		proves  string // to others, as how.txt says
		code    int    // exit code of 'jurat verify' on the evidence
		others  string
		witness func(error) bool // what a witness who knows the log says; nil: it is not asked
	}{
		{"a fork from an older copy, of the same size", forkedSame, nil, "ALARM: FORK", proof, 1, "different roots", isFork},
		{"a fork from an older copy, larger", forkedLarger, nil, "ALARM: FORK", proof, 1, "the first 300 of the 320 entries have another root", isFork},
		{"an older copy", backup, nil, "ALARM: SHRINK", "and no more: every log signs smaller ones first", 3, "covers 300 entries and the file's 280", isBehind},
		{"a record rewritten with all its hashes, and signed", forgedRecord, nil, "ALARM: FORK", proof, 1, "different roots", isFork},
		{"a record rewritten with all its hashes, and grown", forgedAndGrown, nil, "ALARM: FORK", proof, 1, "the first 300 of the 305 entries have another root", isFork},
		{"one hash in the database", oneHash, nil, "ALARM: REWRITTEN", "nothing against the log", 0, "", nil},
		{"a tile, changed by the server", honest, func(h http.Handler) http.Handler {
			return between(h, "/log/tile/0/000", func(doc []byte) []byte { doc[40] ^= 1; return doc })
		}, "tile/0/000", "nothing against the log", 0, "", nil},
		{"entries, changed by the server", honest, func(h http.Handler) http.Handler {
			return between(h, "/log/tile/entries/000", func(doc []byte) []byte {
				return bytes.Replace(doc, []byte(`"payload":"sha256:`), []byte(`"payload":"sha512:`), 1)
			})
		}, "entry 0 does not hash to its leaf", "nothing against the log", 0, "", nil},
		{"a checkpoint that nobody signed", honest, func(h http.Handler) http.Handler {
			return between(h, "/log/checkpoint", func(doc []byte) []byte { return bytes.Replace(doc, []byte("\n30"), []byte("\n31"), 1) })
		}, "ALARM: FOREIGN", "nothing: what the log's key has not signed, anyone can have made", 1, "", nil},
	} {
		w.serve(t.Context(), test.log)
		if test.change != nil {
			w.served = test.change(w.served)
		}
		w.look(test.name, 1, test.says)
		w.others(test.name, test.proves, test.code, test.others)
		must.Equal(t, read(t, w.file("state")), string(state))
		if test.witness != nil {
			line, err := seen.cosign(t, test.log)
			must.Hold(t, err != nil && test.witness(err), "%s: a witness that knows the log answers %q, %v", test.name, line, err)
		}
	}

	// A damaged hash further up is found by the server itself. It refuses to open the log, and serves nothing false.
	if i, err := installation.Open(t.Context(), installation.Config{Dir: string(oneNode)}); err == nil {
		t.Error("a log with a damaged node on its edge opens", i.Close())
	}
	w.served = http.NotFoundHandler()
	w.look("nobody there", 2, "status 404")
	honest.grow(t, 30, "as it was")
	w.serve(t.Context(), honest)
	w.look("the honest log again", 0, "30 more than the last time")
	w.look("all of it", 0, "330 entries are what it signed", "--full")
	w.look("for machines", 0, `"outcome": "consistent"`, "--json")
	line, err := seen.cosign(t, honest)
	must.Hold(t, err == nil, "%q, %v", line, err)
}

// TestForkOfAPowerOfTwo: an RFC 9162 proof from a size that is a power of two does not contain the smaller root. The
// evidence of a fork must contain it all the same.
func TestForkOfAPowerOfTwo(t *testing.T) {
	t.Parallel()
	honest := watchedLog(filepath.Join(t.TempDir(), "data"))
	honest.grow(t, 1, "as it was")
	forked := honest.copied(t)
	honest.grow(t, 3, "as it was")
	forked.grow(t, 8, "another history")
	w := newWatcher(t, honest)
	w.serve(t.Context(), honest)
	w.look("first", 0, "has 4 entries")
	w.serve(t.Context(), forked)
	w.look("forked", 1, "ALARM: FORK")
	w.others("forked", "Together they prove that the log is false", 1, "the first 4 of the 9 entries have another root")
}

// TestMemoryOfAMonitor: without a state file, a look counts as the first one. If the state file is damaged, the monitor
// says so, and does not look.
func TestMemoryOfAMonitor(t *testing.T) {
	l := watchedLog(filepath.Join(t.TempDir(), "data"))
	l.grow(t, 2, "as it was")
	w := newWatcher(t, l)
	w.serve(t.Context(), l)
	w.look("first", 0, "FIRST LOOK: there was no ")
	w.look("first, for machines", 0, `"first": false`, "--json")
	good := read(t, w.file("state"))
	for name, bad := range map[string]string{
		"empty":              "",
		"a line feed":        "\n",
		"something else":     "hello",
		"cut off":            good[:len(good)/2],
		"changed":            strings.Replace(good, "\n2\n", "\n3\n", 1),
		"without signatures": strings.Split(good, "\n\n")[0] + "\n\n",
	} {
		must.Do(t, os.WriteFile(w.file("state"), []byte(bad), 0o600))
		w.look(name, exitCannot, "restore the file from a safe copy")
		w.look(name+", again and again", exitCannot, "restore the file", "--every", "1ms")
		must.Equal(t, read(t, w.file("state")), bad, name)
	}
	must.Do(t, errors.Join(os.Remove(w.file("state")), os.Mkdir(w.file("state"), 0o700)))
	w.look("a folder", exitCannot, "restore the file")
	must.Do(t, os.Remove(w.file("state")))
	w.look("no file", 0, `"first": true`, "--json")
	w.look("the next time", 0, "0 more than the last time")
}

// TestMemoryOfAMonitorThatRuns: a running monitor checks that the state file is as it left it.
func TestMemoryOfAMonitorThatRuns(t *testing.T) {
	l := watchedLog(filepath.Join(t.TempDir(), "data"))
	l.grow(t, 2, "as it was")
	w := newWatcher(t, l)
	w.serve(t.Context(), l)
	w.look("first", 0, "FIRST LOOK")
	early := read(t, w.file("state"))
	l.grow(t, 2, "as it was")
	w.serve(t.Context(), l)
	honest := w.served
	for name, tt := range map[string]struct {
		take func() error
		says string
	}{
		"taken away": {func() error { return os.Remove(w.file("state")) }, "is gone, which was there before"},
		"emptied":    {func() error { return os.WriteFile(w.file("state"), nil, 0o600) }, "has no checkpoint in it"},
		"set back":   {func() error { return os.WriteFile(w.file("state"), []byte(early), 0o600) }, "another checkpoint in it than this monitor found or left there"},
	} {
		must.Do(t, os.WriteFile(w.file("state"), []byte(early), 0o600))
		w.served = afterALook(t, w, honest, tt.take)
		w.look(name, exitCannot, tt.says, "--every", "200ms")
	}
}

// TestMemoryOfAMonitorThatHasSeenNothing: a running monitor also checks this if its first look failed.
func TestMemoryOfAMonitorThatHasSeenNothing(t *testing.T) {
	l := watchedLog(filepath.Join(t.TempDir(), "data"))
	l.grow(t, 2, "as it was")
	w := newWatcher(t, l)
	w.serve(t.Context(), l)
	w.look("first", 0, "FIRST LOOK")
	early := read(t, w.file("state"))
	l.grow(t, 2, "as it was")
	w.serve(t.Context(), l)
	w.look("second", 0, "2 more than the last time")
	late := read(t, w.file("state"))
	honest := w.served
	put := func(checkpoint string) error {
		if checkpoint == "" {
			return os.RemoveAll(w.file("state"))
		}
		return os.WriteFile(w.file("state"), []byte(checkpoint), 0o600)
	}
	for name, tt := range map[string]struct{ found, then, says string }{
		"taken away": {late, "", "is gone, which was there before"},
		"set back":   {late, early, "another checkpoint in it than this monitor found or left there"},
		"put there":  {"", early, "another checkpoint in it than this monitor found or left there"},
	} {
		must.Do(t, put(tt.found))
		asked := false
		w.served = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if asked {
				honest.ServeHTTP(out, r)
				return
			}
			asked = true
			must.Want(t, put(tt.then), nil)
			http.Error(out, "gone", http.StatusNotFound)
		})
		w.look(name, exitCannot, tt.says, "--every", "200ms")
		now, err := os.ReadFile(w.file("state"))
		must.Hold(t, string(now) == tt.then && (err == nil || tt.then == ""), "%s: the state has changed to %q, %v", name, now, err)
	}
}

// afterALook serves a log until a monitor has stored a new state. Then it calls do, refuses one request, and serves the
// log again.
func afterALook(t *testing.T, w *watcher, log http.Handler, do func() error) http.Handler {
	t.Helper()
	before, done := read(t, w.file("state")), false
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if now, err := os.ReadFile(w.file("state")); err == nil && string(now) != before && !done {
			done = true
			must.Want(t, do(), nil)
			http.Error(out, "gone", http.StatusNotFound)
			return
		}
		log.ServeHTTP(out, r)
	})
}

// TestMonitorGoesOn: failed requests do not end a watch. A checkpoint without the log's signature does.
func TestMonitorGoesOn(t *testing.T) {
	t.Parallel()
	l := watchedLog(filepath.Join(t.TempDir(), "data"))
	l.grow(t, 3, "as it was")
	w := newWatcher(t, l)
	w.serve(t.Context(), l)
	w.look("first", 0, "consistent")
	must.Do(t, os.WriteFile(w.file("state"), []byte(read(t, w.file("state"))), 0o600))
	shorter := between(w.served, "/log/checkpoint", func([]byte) []byte { return []byte("what nobody signed") })
	const silent = 0 // breaks off
	for _, status := range []int{silent, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		asked := 0
		w.served = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			asked++
			switch { // as many requests as one look makes
			case asked <= 8 && status == silent: // each time twice, as the HTTP client does by itself
				panic(http.ErrAbortHandler)
			case asked <= 4 && status != silent:
				http.Error(out, "no", status)
				return
			}
			shorter.ServeHTTP(out, r)
		})
		got, out, complaints := w.run("log", "monitor", w.url, "--trust", w.file("trust.json"), "--state", w.file("state"), "--patient", "1ms", "--every", "1ms")
		if got != 1 || !strings.Contains(out, "ALARM: FOREIGN") || !strings.Contains(complaints, "NOT LOOKED AT: ") || status != silent && !strings.Contains(complaints, fmt.Sprintf("checkpoint: status %d", status)) {
			t.Errorf("status %d: exit code %d, %q, %q", status, got, out, complaints)
		}
		w.evidence(fmt.Sprint(status))
	}
}

func isFork(err error) bool {
	var conflict *witness.ConflictError
	return errors.Is(err, witness.ErrProof) || errors.As(err, &conflict) && conflict.Forked
}

func isBehind(err error) bool {
	var conflict *witness.ConflictError
	return errors.As(err, &conflict) && !conflict.Forked
}

// A seeing is a witness that is asked over HTTP.
type seeing struct {
	remote witness.Address
}

func knownWitness(t *testing.T, l watchedLog) *seeing {
	t.Helper()
	key := must.Get(operator.GenerateCosigner(nil, "witness.example/w1"))(t)
	i := l.open(t)
	defer i.Close()
	trust := must.Get(i.Trust(t.Context()))(t)
	log := must.Get(note.NewVerifier(trust.Logs[0]))(t)
	w := must.Get(witness.Open(t.Context(), witness.Config{File: filepath.Join(t.TempDir(), "w.db"), Key: key, Logs: []note.Verifier{log}}))(t)
	t.Cleanup(func() { _ = w.Close() })
	s := httptest.NewServer(w.Handler(slog.New(slog.DiscardHandler)))
	t.Cleanup(s.Close)
	remote := witness.Address{URL: s.URL, Key: w.Key().String()}
	return &seeing{remote}
}

// cosign asks the witness to cosign the last checkpoint of a log.
func (s *seeing) cosign(t *testing.T, l watchedLog) (string, error) {
	t.Helper()
	i := l.open(t)
	defer i.Close()
	signed := must.Get(i.Ledger.Checkpoint(t.Context()))(t)
	size := must.Get(i.Ledger.SizeAt(t.Context(), signed))(t)
	c, err := s.remote.Ask(t.Context(), 0, signed, size, func(ctx context.Context, old, size int64) ([]tlog.Hash, error) {
		if old > size {
			return nil, nil
		}
		return i.Ledger.ProveConsistency(ctx, old, size)
	})
	return c.Line, err
}
