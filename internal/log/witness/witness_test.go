package witness_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence/operator"
	"jurat/internal/log/witness"
	"jurat/internal/test/must"
)

// A log is a log in memory, with its key. A copy of it can continue with other entries.
type log struct {
	t      testing.TB
	signer note.Signer
	public string
	hashes []tlog.Hash
	size   int64
}

func newLog(t testing.TB, origin string) *log {
	t.Helper()
	private, public, err := note.GenerateKey(strings.NewReader(strings.Repeat(origin+"x", 64)), origin)
	must.Do(t, err)
	signer := must.Get(note.NewSigner(private))(t)
	return &log{t: t, signer: signer, public: public}
}

func (l *log) verifier() note.Verifier {
	return must.Get(note.NewVerifier(l.public))(l.t)
}

func (l *log) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var list []tlog.Hash
	for _, i := range indexes {
		list = append(list, l.hashes[i])
	}
	return list, nil
}

func (l *log) add(entries ...string) *log {
	for _, entry := range entries {
		hashes := must.Get(tlog.StoredHashes(l.size, []byte(entry), l))(l.t)
		l.hashes, l.size = append(l.hashes, hashes...), l.size+1
	}
	return l
}

func (l *log) grow(n int) *log {
	for range n {
		l.add(fmt.Sprint("entry ", l.size))
	}
	return l
}

func (l *log) checkpoint() string { return l.checkpointAt(l.size) }

func (l *log) checkpointAt(size int64) string {
	root := must.Get(tlog.TreeHash(size, l))(l.t)
	signed := must.Get(operator.SignCheckpoint(operator.Checkpoint{Origin: l.signer.Name(), Size: size, Root: root}, l.signer))(l.t)
	return signed
}

func (l *log) prove(_ context.Context, old, size int64) ([]tlog.Hash, error) {
	if old == 0 || old == size {
		return nil, nil
	}
	return tlog.ProveTree(size, old, l)
}

// request asks to cosign the log at its present size.
func (l *log) request(old int64) witness.Request {
	proof := must.Get(l.prove(context.Background(), old, l.size))(l.t)
	return witness.Request{Old: old, Proof: proof, Signed: l.checkpoint()}
}

func key(t testing.TB) *operator.Cosigner {
	t.Helper()
	return must.Get(operator.GenerateCosigner(bytes.NewReader(bytes.Repeat([]byte{5}, 32)), "witness.example/w1"))(t)
}

func open(t testing.TB, file string, logs ...*log) *witness.Witness {
	t.Helper()
	c := witness.Config{File: file, Key: key(t), Now: func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }}
	for _, l := range logs {
		c.Logs = append(c.Logs, l.verifier())
	}
	w := must.Get(witness.Open(t.Context(), c))(t)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// served is a witness behind HTTP.
func served(t testing.TB, w *witness.Witness) string {
	t.Helper()
	s := httptest.NewServer(w.Handler(slog.New(slog.DiscardHandler)))
	t.Cleanup(s.Close)
	return s.URL
}

func post(t testing.TB, url, body string) (*http.Response, string) {
	t.Helper()
	answer := must.Get(http.Post(url+"/add-checkpoint", "text/plain", strings.NewReader(body)))(t)
	defer answer.Body.Close()
	doc := must.Get(io.ReadAll(answer.Body))(t)
	return answer, string(doc)
}

// TestLogIsShort: refusals that any caller can cause write little to the program's log, and a checkpoint that the log's
// key signed is written there.
func TestLogIsShort(t *testing.T) {
	l := newLog(t, "example.com/log").grow(5)
	w := open(t, t.TempDir()+"/w.db", l)
	var logged bytes.Buffer
	s := httptest.NewServer(w.Handler(slog.New(slog.NewTextHandler(&logged, nil))))
	defer s.Close()
	answer, doc := post(t, s.URL, witness.FormatRequest(l.request(0)))
	must.Need(t, answer.StatusCode == http.StatusOK, "%v", doc)
	l.grow(4)
	beside := strings.Repeat("— who.example AAAAAAAA\n", 60)
	for name, r := range map[string]witness.Request{
		"no proof":       {Old: 5, Signed: l.checkpoint() + beside},
		"another size":   {Old: 3, Signed: l.checkpoint() + beside},
		"another tree":   {Old: 5, Signed: newLog(t, "example.com/log").grow(4).add("something else").checkpoint() + beside},
		"an unknown log": {Signed: newLog(t, strings.Repeat("x", 50<<10)).grow(1).checkpoint()},
	} {
		logged.Reset()
		answer, doc := post(t, s.URL, witness.FormatRequest(r))
		must.Hold(t, answer.StatusCode != http.StatusOK, "%s: %s", name, doc)
		must.Hold(t, logged.Len() != 0 && logged.Len() <= 3<<10 && !strings.Contains(logged.String(), "who.example"),
			"%s: %d bytes: %.2000s", name, logged.Len(), logged.String())
		if signature := strings.Fields(strings.SplitAfter(r.Signed, "\n\n")[1])[2]; name != "an unknown log" && !strings.Contains(logged.String(), signature) {
			t.Errorf("%s: the checkpoint that the log signed is not in the program's log: %s", name, logged.String())
		}
	}
}

// TestAddCheckpoint checks every answer that C2SP tlog-witness defines.
func TestAddCheckpoint(t *testing.T) {
	l, other, stranger := newLog(t, "example.com/log").grow(5), newLog(t, "example.com/other").grow(3), newLog(t, "example.com/stranger").grow(2)
	url := served(t, open(t, t.TempDir()+"/w.db", l, other))
	fork := newLog(t, "example.com/log").grow(2).add("something else").grow(2)
	impostor := newLog(t, "example.com/log")
	impostor.signer = newLog(t, "x").signer

	step := func(name string, request witness.Request, status int, says string) {
		t.Helper()
		answer, doc := post(t, url, witness.FormatRequest(request))
		must.Hold(t, answer.StatusCode == status && (says == "" || doc == says), "%s: %s: %q", name, answer.Status, doc)
		if isSize := answer.Header.Get("Content-Type") == "text/x.tlog.size"; isSize != (status == http.StatusConflict) {
			t.Errorf("%s: Content-Type %s", name, answer.Header.Get("Content-Type"))
		}
		if status == http.StatusOK {
			found, err := operator.Cosignatures(request.Signed+doc, &key(t).Witness)
			must.Hold(t, err == nil && len(found) == 1 && found[0].Line == doc, "%s: %q: %v, %v", name, doc, found, err)
		}
	}
	step("a log that is unknown", stranger.request(0), 404, "")
	step("the first", l.request(0), 200, "")
	step("the same again, from its own size", l.request(5), 200, "")
	step("the same again, from nothing", l.request(0), 409, "5\n")
	l.grow(4)
	step("grown, from nothing", l.request(0), 409, "5\n")
	step("grown, from another size", l.request(3), 409, "5\n")
	withoutProof := l.request(5)
	withoutProof.Proof = nil
	step("grown, without a proof", withoutProof, 422, "")
	wrong := l.request(5)
	wrong.Proof[0][3] ^= 1
	step("grown, with a proof that does not hold", wrong, 422, "")
	longer := l.request(5)
	longer.Proof = append(longer.Proof, tlog.Hash{})
	step("grown, with a longer proof", longer, 422, "")
	step("another history, larger", fork.grow(20).request(5), 422, "")
	step("grown", l.request(5), 200, "")
	step("smaller", witness.Request{Old: 5, Signed: l.checkpointAt(5)}, 409, "9\n")
	tooOld := witness.Request{Old: 9, Signed: l.checkpointAt(5)}
	step("an old size above the checkpoint's", tooOld, 400, "")
	same := newLog(t, "example.com/log").grow(8).add("something else")
	step("another history of the same size", same.request(9), 409, "9\n")
	proofOfNothing := l.request(9)
	proofOfNothing.Proof = []tlog.Hash{{}}
	step("a proof of nothing", proofOfNothing, 422, "")
	fromNothing := other.request(0)
	fromNothing.Proof = []tlog.Hash{{}}
	step("a proof from nothing", fromNothing, 422, "")
	step("another log meanwhile", other.request(0), 200, "")

	unsigned, _, _ := strings.Cut(l.checkpoint(), "— ")
	forged := unsigned + strings.TrimPrefix(other.checkpoint(), strings.SplitAfter(other.checkpoint(), "\n\n")[0])
	step("signed by another known key", witness.Request{Old: 9, Signed: forged}, 403, "")
	data, _ := base64.StdEncoding.DecodeString(strings.Fields(strings.SplitAfter(l.checkpoint(), "\n\n")[1])[2])
	data[20] ^= 1
	step("with a changed signature", witness.Request{Old: 9, Signed: unsigned + "— example.com/log " + base64.StdEncoding.EncodeToString(data) + "\n"}, 403, "")
	extended := must.Get(note.Sign(&note.Note{Text: strings.Replace(unsigned, "\n\n", "\n", 1) + "an extension\n"}, l.signer))(t)
	step("with an extension line", witness.Request{Old: 9, Signed: string(extended)}, 200, "")
	step("with other signatures beside", witness.Request{Old: 9, Signed: l.checkpoint() + "— who.example AAAAAAAA\n"}, 200, "")
	step("with one beside that verifiers refute", witness.Request{Old: 9, Signed: l.checkpoint() + "— who.example AAAAAAAAAB==\n"}, 403, "")
	for name, body := range map[string]string{"nothing": "", "no proof": "old 9\n" + l.checkpoint(), "no checkpoint": "old 9\n\n", "no size": "old \n\n" + l.checkpoint(), "a sign": "old +9\n\n" + l.checkpoint(),
		"zeros": "old 09\n\n" + l.checkpoint(), "negative": "old -1\n\n" + l.checkpoint(), "another word": "size 9\n\n" + l.checkpoint(), "half a hash": "old 9\nAAAA\n\n" + l.checkpoint(),
		"a carriage return": "old 9\r\n\n" + l.checkpoint(), "too many": "old 9\n" + strings.Repeat(strings.Repeat("A", 43)+"=\n", 64) + "\n" + l.checkpoint(), "no note": "old 9\n\nwhat\n",
		"too large": strings.Repeat("x", 200<<10)} {
		answer, doc := post(t, url, body)
		must.Hold(t, answer.StatusCode == http.StatusBadRequest, "%s: %s: %s", name, answer.Status, doc)
	}
	answer, err := http.Get(url + "/add-checkpoint")
	must.Hold(t, err == nil && answer.StatusCode == http.StatusMethodNotAllowed, "GET: %v, %v", answer, err)
}

// checkpointOf returns a checkpoint of any size, with the log's signature.
func (l *log) checkpointOf(t testing.TB, size int64, root byte) string {
	t.Helper()
	hash := sha256.Sum256([]byte{root})
	text := fmt.Sprintf("%s\n%d\n%s\n", l.signer.Name(), size, base64.StdEncoding.EncodeToString(hash[:]))
	signed := must.Get(note.Sign(&note.Note{Text: text}, l.signer))(t)
	return string(signed)
}

// TestSizesThatNoLogHas: after a log signed impossible checkpoints, the witness still cosigns those of other logs.
func TestSizesThatNoLogHas(t *testing.T) {
	honest, hostile := newLog(t, "example.com/log").grow(3), newLog(t, "example.com/hostile").grow(3)
	w := open(t, t.TempDir()+"/w.db", honest, hostile)
	must.Get(w.AddCheckpoint(t.Context(), hostile.request(0)))(t)
	for _, size := range []int64{operator.MaxEntries + 1, 1<<62 - 1, 1 << 62, 1<<62 + 1, math.MaxInt64} {
		for _, old := range []int64{0, 3, size} {
			request := witness.Request{Old: old, Signed: hostile.checkpointOf(t, size, 1), Proof: make([]tlog.Hash, 63)}
			line, err := w.AddCheckpoint(t.Context(), request)
			must.Hold(t, errors.Is(err, witness.ErrMalformed), "%d of %d: %q, %v", old, size, line, err)
		}
	}
	largest := witness.Request{Old: 3, Signed: hostile.checkpointOf(t, operator.MaxEntries, 1), Proof: make([]tlog.Hash, 63)}
	line, err := w.AddCheckpoint(t.Context(), largest)
	must.Hold(t, errors.Is(err, witness.ErrProof), "the largest: %q, %v", line, err)
	must.Fail(t, nil)(w.AddCheckpoint(t.Context(), honest.request(0)))
}

// TestOneLogsWorkHoldsUpNoOther: while the witness checks one log's proof, it cosigns for others. Before it remembers
// the result, it compares again with what it knows by then.
func TestOneLogsWorkHoldsUpNoOther(t *testing.T) {
	slow, other, file := newLog(t, "example.com/slow").grow(3), newLog(t, "example.com/log").grow(3), t.TempDir()+"/w.db"
	w := open(t, file, slow, other)
	must.Get(w.AddCheckpoint(t.Context(), slow.request(0)))(t)
	late := newLog(t, "example.com/slow").grow(4)
	answers := 0
	w.After(func(step string) {
		if step != "checked" || answers > 0 {
			return
		}
		answers++
		for _, through := range []*witness.Witness{w, open(t, file, slow, other)} { // of this process, and of another process
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := through.AddCheckpoint(ctx, other.request(0))
			must.Hold(t, err == nil || isConflict(err), "another log: %v", err)
			cancel()
		}
		// Another request of the same log is handled in between.
		must.Fail(t, nil)(w.AddCheckpoint(t.Context(), slow.grow(2).request(3)))
	})
	_, err := w.AddCheckpoint(t.Context(), late.request(3))
	var conflict *witness.ConflictError
	must.Hold(t, errors.As(err, &conflict) && conflict.Size == 5 && answers == 1, "the request that was overtaken: %v, %d", err, answers)
	known, err := w.Logs(t.Context())
	must.Hold(t, err == nil && len(known) == 2 && known[0].Size == 3 && known[1].Size == 5, "%+v, %v", known, err)
}

func isConflict(err error) bool {
	var conflict *witness.ConflictError
	return errors.As(err, &conflict)
}

// TestRemembersAcrossProcesses: every process that opens the file knows what was cosigned, at once and later. Another
// key knows nothing of it.
func TestRemembersAcrossProcesses(t *testing.T) {
	l, file := newLog(t, "example.com/log").grow(3), t.TempDir()+"/a folder?#%/w.db"
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
	one, two := open(t, file, l), open(t, file, l)
	must.Get(one.AddCheckpoint(t.Context(), l.request(0)))(t)
	var conflict *witness.ConflictError
	if _, err := two.AddCheckpoint(t.Context(), l.grow(1).request(0)); !errors.As(err, &conflict) || conflict.Size != 3 {
		t.Errorf("%v", err)
	}
	known, err := two.Logs(t.Context())
	must.Hold(t, err == nil && len(known) == 1 && known[0].Size == 3 && known[0].Origin == "example.com/log", "%v, %v", known, err)
	another := must.Get(operator.GenerateCosigner(nil, "witness.example/w2"))(t)
	if w, err := witness.Open(t.Context(), witness.Config{File: file, Key: another}); err == nil {
		t.Errorf("another key uses the state of this one: %v", w.Close())
	}
}

// TestOnlyOneHistory sends many concurrent requests for two histories to two witnesses with one file. All cosigned
// checkpoints must be of one history.
func TestOnlyOneHistory(t *testing.T) {
	file := t.TempDir() + "/w.db"
	histories := []*log{newLog(t, "example.com/log").grow(60), newLog(t, "example.com/log").add("something else").grow(59)}
	witnesses := []*witness.Witness{open(t, file, histories[0]), open(t, file, histories[0])}
	var mu sync.Mutex // held while the variables below are read or changed
	cosigned := map[int64]map[string]bool{}
	var asking sync.WaitGroup
	for n := range 16 {
		asking.Go(func() {
			l, w := histories[n%2], witnesses[n/2%2]
			random := rand.New(rand.NewPCG(uint64(n), 1))
			old := int64(0)
			for range 30 {
				size := min(l.size, old+1+random.Int64N(4))
				proof, _ := l.prove(context.Background(), old, size)
				signed := l.checkpointAt(size)
				line, err := w.AddCheckpoint(t.Context(), witness.Request{Old: old, Proof: proof, Signed: signed})
				var conflict *witness.ConflictError
				switch {
				case errors.As(err, &conflict):
					old = conflict.Size
				case errors.Is(err, witness.ErrProof):
				case err != nil:
					t.Error(err)
				default:
					mu.Lock()
					if cosigned[size] == nil {
						cosigned[size] = map[string]bool{}
					}
					text, _, _ := strings.Cut(signed, "\n\n")
					cosigned[size][text] = true
					must.Hold(t, strings.Contains(line, "witness.example/w1"), "%q", line)
					mu.Unlock()
					old = size
				}
			}
		})
	}
	asking.Wait()
	which := -1
	for size, texts := range cosigned {
		must.Need(t, len(texts) == 1, "two trees of %d entries were cosigned", size)
		for n, l := range histories {
			text, _, _ := strings.Cut(l.checkpointAt(size), "\n\n")
			if texts[text] && which >= 0 && which != n {
				t.Fatal("two histories were cosigned")
			} else if texts[text] {
				which = n
			}
		}
	}
	must.Need(t, len(cosigned) >= 2 && which >= 0, "%d trees were cosigned", len(cosigned))
}

// TestKilled kills a witness again and again while it cosigns. Afterwards it must know the last size that it answered.
func TestKilled(t *testing.T) {
	file := os.Getenv("WITNESS_FILE")
	l := newLog(t, "example.com/log").grow(400)
	if file != "" { // in the process that is killed
		w := open(t, file, l)
		known := must.Get(w.Logs(t.Context()))(t)
		old := int64(0)
		if len(known) > 0 {
			old = known[0].Size
		}
		for size := old + 1; size <= l.size; size++ {
			proof, _ := l.prove(context.Background(), old, size)
			must.Get(w.AddCheckpoint(t.Context(), witness.Request{Old: old, Proof: proof, Signed: l.checkpointAt(size)}))(t)
			fmt.Printf("cosigned %d\n", size)
			old = size
		}
		return
	}
	file = t.TempDir() + "/w.db"
	last := int64(0)
	for range 6 {
		process := exec.Command(os.Args[0], "-test.run=^TestKilled$", "-test.v")
		process.Env = append(os.Environ(), "WITNESS_FILE="+file)
		out := must.Get(process.StdoutPipe())(t)
		must.Do(t, process.Start())
		answered, n := last, 0
		for lines := bufio.NewScanner(out); n < 12 && lines.Scan(); {
			if _, err := fmt.Sscanf(lines.Text(), "cosigned %d", &answered); err == nil {
				n++
			}
		}
		must.Need(t, n >= 12, "the process ended by itself after %d cosignatures", n)
		must.Do(t, process.Process.Kill())
		_ = process.Wait() // Wait returns an error, as the process was killed
		known := must.Get(open(t, file, l).Logs(t.Context()))(t)
		must.Need(t, len(known) != 0 && known[0].Size >= answered && known[0].Size >= last, "it cosigned size %d, but knows %v", answered, known)
		last = known[0].Size
	}
	must.Hold(t, last >= 6*12, "only %d were cosigned", last)
}

// TestRememberedBeforeSigned: as soon as a cosignature exists, a process that opens the file knows the tree.
func TestRememberedBeforeSigned(t *testing.T) {
	l, file := newLog(t, "example.com/log").grow(3), t.TempDir()+"/w.db"
	w := open(t, file, l)
	seen := false
	w.After(func(step string) {
		known, err := open(t, file, l).Logs(t.Context())
		seen = step == "remembered" && err == nil && len(known) == 1 && known[0].Size == 3
	})
	_, err := w.AddCheckpoint(t.Context(), l.request(0))
	must.Hold(t, err == nil && seen, "%v, %v", err, seen)
}

// TestAsk: a log finds out what a witness knows, and accepts only a cosignature by that witness.
func TestAsk(t *testing.T) {
	l := newLog(t, "example.com/log").grow(3)
	w := open(t, t.TempDir()+"/w.db", l)
	known := int64(0)
	ask := func(url string, l *log) error {
		remote := witness.Address{URL: url, Key: w.Key().String()}
		c, err := remote.Ask(t.Context(), known, l.checkpoint(), l.size, l.prove)
		must.Hold(t, err != nil || strings.Contains(c.Line, "witness.example/w1"), "%+v", c)
		return err
	}
	again := served(t, w)
	for range 3 {
		must.Want(t, ask(again, l.grow(2)), nil)
		known = l.size
	}
	known = 0 // what the witness knows is not known here
	must.Do(t, ask(again, l.grow(1)))
	var conflict *witness.ConflictError
	err := ask(again, newLog(t, "example.com/log").grow(4))
	must.Hold(t, errors.As(err, &conflict) && conflict.Size == l.size && !conflict.Forked, "a log that shrank: %v", err)
	err = ask(again, newLog(t, "example.com/log").grow(9).add("something else"))
	must.Hold(t, errors.As(err, &conflict) && conflict.Forked && strings.Contains(err.Error(), "without proof"), "a log that forked: %v", err)
	must.Want(t, ask(again, newLog(t, "example.com/log").add("something else").grow(20)), witness.ErrProof)
	must.Want(t, ask(again, newLog(t, "example.com/stranger").grow(1)), witness.ErrUnknownLog)
	for name, answer := range map[string]http.HandlerFunc{
		"somebody else": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "— who.example AAAAAAAA\n") },
		"no line":       func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "yes\n") },
		"made up": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, key(t).Cosign("something else\n", time.Unix(7, 0)))
		},
		"no size":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) },
		"a fault":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"circling": circling(),
	} {
		s := httptest.NewServer(answer)
		must.Hold(t, ask(s.URL, l) != nil, "%s: believed", name)
		s.Close()
	}
	for _, url := range []string{"", "witness.example", "http://witness.example", "ftp://witness.example", "https://witness.example?x"} {
		must.Say(t, ask(url, l), "want https", url, "is taken")
	}
}

// circling is a witness that answers with a different size each time.
func circling() http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("Content-Type", "text/x.tlog.size")
		w.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprintf(w, "%d\n", n%5+1)
	}
}

func FuzzParseRequest(f *testing.F) {
	l := newLog(f, "example.com/log").grow(9)
	f.Add(witness.FormatRequest(l.request(0)))
	f.Add(witness.FormatRequest(l.request(5)))
	f.Add("old 0\n\nx")
	f.Fuzz(func(t *testing.T, body string) {
		r, err := witness.ParseRequest(body)
		if err == nil && witness.FormatRequest(r) != body {
			t.Errorf("%q has another form %q", body, witness.FormatRequest(r))
		}
	})
}
