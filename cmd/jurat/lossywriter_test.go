package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jurat/internal/must"
)

// TestNobodyReadsTheLog: a server whose stderr is a pipe without a reader still answers, and ends when it is told to.
func TestNobodyReadsTheLog(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe() // a pipe holds about 64 KiB
	must.Do(t, err)
	defer reader.Close()
	defer writer.Close()
	out, stdout := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, []string{"--data", filepath.Join(t.TempDir(), "data"), "serve", "--addr", "127.0.0.1:0", "--jurors", "offline", "--rate-limit", "0"},
			stdio{in: strings.NewReader(""), out: stdout, err: writer})
		stdout.Close()
		ended <- code
	}()
	defer cancel()
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	client := &http.Client{Timeout: 30 * time.Second}
	for n := range 1500 {
		answer, err := client.Get(strings.TrimSpace(line) + "/v1/trust")
		if err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
	cancel()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("it ended with %d", code)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}

// TestLinesThatAreLeftOut: lines that a slow reader missed are counted, and the last lines are written.
func TestLinesThatAreLeftOut(t *testing.T) {
	var got bytes.Buffer
	gate := make(chan struct{})
	p := newLossyWriter(gated{&got, gate}, leftOut(true))
	const n = heldLines + 500
	for i := range n {
		fmt.Fprintf(p, "{\"line\":%d}\n", i)
	}
	close(gate)
	p.flush()
	fmt.Fprintf(p, "{\"last\":true}\n")
	p.flush()
	text := got.String()
	if lines := strings.Count(text, "\"line\""); lines < heldLines || lines > heldLines+1 || !strings.Contains(text, fmt.Sprintf("%d lines are left out", n-lines)) ||
		!strings.HasSuffix(text, "{\"last\":true}\n") {
		t.Errorf("%d lines; the end is %s", lines, text[max(0, len(text)-300):])
	}
}

// gated blocks every write until gate is closed.
type gated struct {
	to   io.Writer
	gate chan struct{}
}

func (g gated) Write(p []byte) (int, error) { <-g.gate; return g.to.Write(p) }

// TestHangUp: when its terminal is closed, a server ends as it does on Ctrl-C.
func TestHangUp(t *testing.T) {
	heard := make(chan os.Signal, 1) // so that the server does not inherit an ignored SIGHUP, as under nohup
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	for _, sent := range []os.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		cmd := exec.CommandContext(t.Context(), "jurat", "--data", filepath.Join(t.TempDir(), "data"), "serve", "--addr", "127.0.0.1:0", "--jurors", "offline")
		endsWithTest(t, cmd)
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		must.Do(t, cmd.Process.Signal(sent))
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", sent, err)
		}
	}
}
