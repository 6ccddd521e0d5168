package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/internal/must"
)

// TestWatched: a reader reads a file to its end, stops when the program is to end, and reports progress.
func TestWatched(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(name, bytes.Repeat([]byte("x"), 1<<20), 0o600))
	file := must.Get(os.Open(name))(t)
	defer file.Close()
	var told bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	r := watch(ctx, stdio{err: &told}, file)
	if n, err := io.Copy(io.Discard, io.LimitReader(r, 1<<19)); n != 1<<19 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	cancel()
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the signal: %v", err)
	}
	tell := progress(stdio{err: &told}, "verified")
	last := time.Now().Add(time.Second)
	for told.Len() == 0 && time.Now().Before(last.Add(10*time.Second)) {
		tell(1, 2)
	}
	if !strings.Contains(told.String(), "jurat: verified: 1 of 2") {
		t.Errorf("told %q", told.String())
	}
}
