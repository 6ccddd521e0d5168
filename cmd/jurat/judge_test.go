package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence/operator"
	"jurat/internal/must"
	"jurat/tiles"
)

// judge builds the program that checks a log with Tessera's implementation of the C2SP specifications. If its module is
// not available, the test is skipped, except in CI.
func judge(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "judge")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Dir = "../../testdata/judge"
	if out, err := build.CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Skipf("the program with Tessera cannot be built: %v\n%s", err, out)
	}
	return file
}

// TestTesseraReadsTheLog: another implementation of C2SP tlog-tiles accepts every tile, entry, proof and cosignature of
// a log.
func TestTesseraReadsTheLog(t *testing.T) {
	t.Parallel()
	program := judge(t)
	l := watchedLog(filepath.Join(t.TempDir(), "data"))
	l.grow(t, 300, "as it was")
	w := newWatcher(t, l)
	folder := t.TempDir() + "/w"
	key := doing(t, 0, "witness", "init", "witness.example/w1", "--dir", folder)
	at, _, _ := serve(t, "witness", "serve", "--dir", folder, "--addr", "127.0.0.1:0", "--log", w.file("trust.json"))
	doing(t, 0, "--data", string(l), "log", "witness", "add", at, "--key", key)
	doing(t, 0, "--data", string(l), "log", "witness", "ask")
	w.serve(t.Context(), l)
	logKey := logKeyOf(t, w.file("trust.json"))
	out, err := exec.Command(program, "log", w.url, logKey, key).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "300 entries, 1 witnesses") {
		t.Errorf("%v\n%s", err, out)
	}
	// A check by Tessera is worth something only if Tessera refuses a wrong log.
	good := w.served
	for _, path := range []string{"/log/checkpoint", "/log/tile/0/000", "/log/tile/1/", "/log/tile/entries/001"} {
		w.served = between(good, path, func(doc []byte) []byte { doc[len(doc)/2] ^= 1; return doc })
		if out, err := exec.Command(program, "log", w.url, logKey, key).CombinedOutput(); err == nil {
			t.Errorf("%s was changed: %s", path, out)
		}
	}
}

func logKeyOf(t *testing.T, file string) string {
	t.Helper()
	trust := must.Get(readTrust(file))(t)
	return trust.Logs[0]
}

// TestTesseraIsWitnessed: jurat's witness cosigns a growing log of Tessera, and package tiles reads that log.
func TestTesseraIsWitnessed(t *testing.T) {
	t.Parallel()
	program, folder, log := judge(t), t.TempDir(), t.TempDir()
	key := doing(t, 0, "witness", "init", "witness.example/w1", "--dir", folder)
	grow := exec.Command(program, "grow", log)
	var complaints strings.Builder
	grow.Stderr = &complaints
	in := must.Get(grow.StdinPipe())(t)
	out := must.Get(grow.StdoutPipe())(t)
	must.Do(t, grow.Start())
	logKey, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %v\n%s", err, grow.Wait(), &complaints)
	}
	logKey = strings.TrimSpace(logKey)
	at, _, _ := serve(t, "witness", "serve", "--dir", folder, "--addr", "127.0.0.1:0", "--log", logKey)
	if _, err := fmt.Fprintln(in, at, key); err != nil {
		t.Fatal(err)
	}
	if err := grow.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &complaints)
	}
	if known := doing(t, 0, "witness", "list", "--dir", folder); !strings.Contains(known, "tessera.example/log") || !strings.Contains(known, " 300") {
		t.Error(known)
	}

	s := httptest.NewServer(http.FileServer(http.Dir(log)))
	defer s.Close()
	client := must.Get(tiles.New(tiles.Config{URL: s.URL}))(t)
	signed := must.Get(client.Checkpoint(t.Context()))(t)
	verifier := must.Get(note.NewVerifier(logKey))(t)
	head, err := operator.OpenCheckpoint(signed, verifier)
	if err != nil || head.Size != 300 {
		t.Fatalf("%+v, %v", head, err)
	}
	witness := must.Get(operator.ParseWitness(key))(t)
	if said, err := operator.Cosignatures(signed, witness); err != nil || len(said) != 1 {
		t.Errorf("%v, %v", said, err)
	}
	count := 0
	if err := client.Tree(t.Context(), head).Entries(0, head.Size, func(int64, []byte) error { count++; return nil }); err != nil || count != 300 {
		t.Errorf("%d entries: %v", count, err)
	}
}
