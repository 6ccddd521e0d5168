package relay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"jurat/internal/must"
)

func TestSpool(t *testing.T) {
	folder := t.TempDir()
	s := &spool{folder: folder, perBody: 100, memory: 150, cap: 1000}
	text := func(n int) []byte { return bytes.Repeat([]byte("0123456789"), n/10) }
	bodies := map[string]*Body{}
	for name, n := range map[string]int{"a": 100, "b": 60, "c": 300} {
		b := s.body(name, "", 0)
		must.Get(b.read(iotest.OneByteReader(bytes.NewReader(text(n)))))(t)
		b.seal()
		got, err := io.ReadAll(b.Open())
		if err != nil || !bytes.Equal(got, text(n)) || b.SHA256 != sha256.Sum256(text(n)) || b.Bytes != int64(n) || b.Kept != b.Bytes || b.Partial {
			t.Errorf("%s: %d bytes, %v, %+v", name, len(got), err, b)
		}
		bodies[name] = b
	}
	if files, _ := filepath.Glob(filepath.Join(folder, "*")); len(files) != 2 {
		t.Errorf("two bodies are too large for memory, alone or together: %v", files)
	}
	for _, file := range []string{"c"} {
		if info, err := os.Stat(filepath.Join(folder, file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
	}
	full := s.body("d", "", 0)
	left, err := full.read(bytes.NewReader(text(700)))
	full.seal()
	if !errors.Is(err, ErrSpoolFull) || len(left) != 700 || !full.Partial || full.Kept != 0 || full.Bytes != 700 {
		t.Errorf("%v, %d left, %+v", err, len(left), full)
	}
	bodies["d"] = full
	for _, b := range bodies {
		if err := errors.Join(b.release(), b.release()); err != nil {
			t.Error(err)
		}
		if _, err := b.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	}
	if s.held.Load() != 0 || s.inMemory.Load() != 0 {
		t.Errorf("%d and %d bytes are still held", s.held.Load(), s.inMemory.Load())
	}
}

func TestFolderMustBePrivate(t *testing.T) {
	folder := t.TempDir()
	must.Do(t, os.Chmod(folder, 0o755))
	_, err := New(newRecorder(), Options{Upstreams: map[string]Upstream{"a": {Base: mustParse(t, "https://x")}}, FingerprintKey: make([]byte, 32), Folder: folder})
	if err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Error(err)
	}
}

// TestSpoolIsFull: closed mode refuses and breaks off; open mode passes everything, and says that its copy is not whole.
func TestSpoolIsFull(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, strings.Repeat("x", int(n)))
			if r.URL.Query().Has("large") {
				fmt.Fprint(w, strings.Repeat("x", 100_000))
			}
		}), func(o *Options) { o.Mode = mode; o.Cap = 50_000 })
		ask := func(query string, size int) (int, int, error) {
			answer, err := p.client.Post(p.url()+"/x"+query, "text/plain", strings.NewReader(strings.Repeat("y", size)))
			if err != nil {
				return 0, 0, err
			}
			defer answer.Body.Close()
			n, err := io.Copy(io.Discard, answer.Body)
			return answer.StatusCode, int(n), err
		}
		status, n, err := ask("", 100_000)
		if mode == Closed {
			if status != 503 || len(p.seen) != 0 {
				t.Errorf("a request that is too large: %d %v", status, err)
			}
		} else if o := p.last(t, 1); status != 200 || n != 100_000 || err != nil || !o.call.Request.Partial || o.call.Request.Kept > 50_000 || !o.outcome.Response.Partial {
			t.Errorf("a request that is too large: %d %d %v", status, n, err)
		}
		seen := len(p.seen)
		status, n, err = ask("?large", 10)
		o := p.last(t, seen+1).outcome
		if mode == Closed && (err == nil || n > 50_000 || o.Ended != RecorderCut || !errors.Is(o.Reason, ErrSpoolFull)) {
			t.Errorf("an answer that is too large: %d %d %v, %+v", status, n, err, o)
		}
		if mode == Open && (err != nil || n != 100_010 || o.Ended != Complete || o.Response.Bytes != 100_010 || !o.Response.Partial || o.Response.Kept > 50_000) {
			t.Errorf("an answer that is too large: %d %d %v, %+v", status, n, err, o)
		}
		p.handler.spool.held.Add(50_000) // of others
		if status, _, _ := ask("", 0); mode == Closed && status != 503 || mode == Open && status != 200 {
			t.Errorf("when the spool is full, %d", status)
		}
		p.handler.late.Wait()
		p.handler.spool.held.Add(-50_000)
	}
}

// TestSpoolIsFullAfterTheTerminalEvent: what is held when the copy cannot be kept any more, is not handed out.
func TestSpoolIsFullAfterTheTerminalEvent(t *testing.T) {
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {}\n\ndata: [DONE]\n\n")
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, strings.Repeat(": x\n", 50_000))
	}), func(o *Options) { o.Cap = 50_000; o.Linger = time.Minute })
	answer := must.Get(p.client.Get(p.url() + "/x"))(t)
	if body, err := io.ReadAll(answer.Body); err == nil || string(body) != "data: {}\n\n" {
		t.Errorf("the client got %.100q, %v", body, err)
	}
	if o := p.last(t, 1).outcome; o.Ended != RecorderCut || !o.Response.Partial || o.Held != 0 {
		t.Errorf("%+v", o)
	}
}

// TestLargeBodies: what passes both ways is allocated in pieces, and never as a whole. What passes is compared by a running count, and the copy by its digest.
func TestLargeBodies(t *testing.T) {
	const size = 64 << 20
	pattern := bytes.Repeat([]byte("jurat relay "), 1<<12)
	p := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); n != size || err != nil {
			t.Errorf("the provider got %d bytes, %v", n, err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = io.Copy(w, io.LimitReader(repeat(pattern), size))
	}), func(o *Options) { o.MaxDecoded = 1 << 20 })
	p.handler.witness = ignoring{p.recorder}
	digest := sha256.New()
	_, _ = io.Copy(digest, io.LimitReader(repeat(pattern), size))
	got := sha256.New()
	n := allocated(func() {
		answer := must.Get(p.client.Post(p.url()+"/x", "application/octet-stream", io.LimitReader(repeat(pattern), size)))(t)
		must.Get(io.Copy(got, answer.Body))(t)
	})
	if !bytes.Equal(got.Sum(nil), digest.Sum(nil)) {
		t.Error("the client got other bytes")
	}
	if n > 2*size+size/2 { // each body is encrypted or decrypted once, in pieces
		t.Errorf("%d KiB were allocated for two bodies of %d KiB", n>>10, size>>10)
	}
	o := p.last(t, 1)
	if o.call.Request.SHA256 != [32]byte(digest.Sum(nil)) || o.outcome.Response.SHA256 != [32]byte(digest.Sum(nil)) {
		t.Error("the witness got other digests")
	}
}

// ignoring does not read the bodies.
type ignoring struct{ *recorder }

func (i ignoring) Begin(_ context.Context, call *Call) (Exchange, error) {
	s := &seen{recorder: i.recorder, call: call}
	i.changed(func() { i.seen = append(i.seen, s) })
	return ignoringExchange{s}, nil
}

type ignoringExchange struct{ *seen }

func (s ignoringExchange) End(_ context.Context, o *Outcome) error {
	s.changed(func() { s.ends++; s.outcome = o })
	return nil
}

// repeat reads a pattern forever.
func repeat(pattern []byte) io.Reader { return &repeater{pattern: pattern} }

type repeater struct {
	pattern []byte
	at      int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := copy(p, r.pattern[r.at:])
	r.at = (r.at + n) % len(r.pattern)
	return n, nil
}

// allocated returns how many bytes are allocated, also if they are given back.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestRequestsAreNotInClear: the file of a request, which may have secrets, has none of its words, and a reader gets them wherever it begins.
func TestRequestsAreNotInClear(t *testing.T) {
	folder := t.TempDir()
	s := &spool{folder: folder, perBody: 100, memory: 100, cap: 1 << 20}
	text := bytes.Repeat([]byte("a token that is secret, "), 1000)
	b := s.request("one", "", 0)
	must.Get(b.read(iotest.HalfReader(bytes.NewReader(text))))(t)
	b.seal()
	file, err := os.ReadFile(filepath.Join(folder, "one.request"))
	if err != nil || len(file) != len(text) || bytes.Contains(file, []byte("secret")) {
		t.Errorf("%d bytes, %v", len(file), err)
	}
	for _, at := range []int{0, 1, 15, 16, 17, 99, 100, 101, len(text) - 7} {
		got := make([]byte, 40)
		n, err := b.ReadAt(got, int64(at))
		if want := text[at:min(at+40, len(text))]; !bytes.Equal(got[:n], want) || n != len(want) || err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("at %d: %q %v", at, got[:n], err)
		}
	}
	if err := b.release(); err != nil {
		t.Error(err)
	}
}

// TestLeft: the copy of an answer of a process that died is found by its call, and its name says how it is encoded.
func TestLeft(t *testing.T) {
	for encoding, want := range map[string]string{"": "", "gzip": "gzip", "gzip, br": "gzip,br", "x-../../etc": unnamed, strings.Repeat("a", 300): unnamed, "br\x00": unnamed, "gzip.br": unnamed} {
		s := &spool{folder: filepath.Join(t.TempDir(), "[a]"), cap: 1 << 20}
		must.Do(t, os.Mkdir(s.folder, 0o700))
		dead := s.response("c1", encoding, 0)
		other := s.response("c2", encoding, 0)
		must.Do(t, errors.Join(dead.add([]byte("half an answer")), other.add([]byte("of another call"))))
		b, done, err := Left(s.folder, "c1")
		if err != nil {
			t.Fatalf("%q: %v", encoding, err)
		}
		text, err := io.ReadAll(b.Open())
		if err != nil || string(text) != "half an answer" || b.Encoding != want || b.Bytes != 14 || b.Kept != 14 || b.SHA256 != sha256.Sum256(text) {
			t.Errorf("%q: %q, %v, %+v", encoding, text, err, b)
		}
		if err := errors.Join(done(), dead.release(), other.release()); err != nil {
			t.Error(err)
		}
		if _, _, err := Left(s.folder, "c1"); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}
