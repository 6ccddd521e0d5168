package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"jurat/internal/must"
)

// TestQuiet: with --quiet a command says results, errors and hints, and nothing else; the exit code is the same.
func TestQuiet(t *testing.T) {
	t.Setenv("JURAT_JURORS", "offline")
	withoutKeys(t)
	dir := t.TempDir()
	data := "--data=" + filepath.Join(dir, "data")
	out, said := ran(t, 0, data, "--quiet", "trial", kitchen) // it makes the installation, and does not say so
	if said != "" || strings.Count(out, "\n") != 1 || !strings.Contains(out, "safe_pass") {
		t.Errorf("%q\n%s", said, out)
	}
	out, said = ran(t, 1, data, "--quiet", "trial", kitchen, invoice, "--parallel", "2")
	if said != "" || strings.Count(out, "\n") != 2 || !strings.Contains(out, "unsafe_fail") {
		t.Errorf("%q\n%s", said, out)
	}
	out, said = ran(t, 0, data, "trial", kitchen, "--json", "--quiet")
	if said != "" || !strings.Contains(out, `"finalVerdict": "safe_pass"`) {
		t.Errorf("%q\n%s", said, out)
	}
	_, said = ran(t, exitCannot, data, "--quiet", "trial", filepath.Join(dir, "nowhere"))
	has(t, said, "nowhere: no such file", "hint: ")
	t.Setenv("JURAT_JURORS", "")
	_, said = ran(t, exitUndecided, data, "--quiet", "trial", kitchen)
	if said != "" {
		t.Errorf("%q", said)
	}
}

// TestClosedPipe: if the reader of stdout goes away, as head does, the command ends without a word; a trial goes on to its end, is in the log,
// and its exit code says that not all was said.
func TestClosedPipe(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"trial", kitchen, "--jurors", "offline"}, {"trial", "--list"}, {"--help"}, {"help", "verifying"}, {"log", "entries"}} {
		read, write, err := os.Pipe()
		must.Do(t, err)
		must.Do(t, read.Close())
		var said bytes.Buffer
		cmd := exec.Command("jurat", append([]string{"--data", filepath.Join(dir, "data")}, args...)...)
		cmd.Stdout, cmd.Stderr = write, &said
		err = cmd.Run()
		must.Do(t, write.Close())
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.ExitCode() != exitCannot {
			t.Errorf("%q: %v", args, err)
		}
		if text := said.String(); strings.Contains(text, "goroutine") || strings.Contains(text, "broken pipe") {
			t.Errorf("%q: %s", args, text)
		}
	}
	if out := doing(t, 0, "--data", filepath.Join(dir, "data"), "trial", "--list"); !strings.Contains(out, "every trial in the log has its verdict") {
		t.Error(out)
	}
	doing(t, 0, "--data", filepath.Join(dir, "data"), "log", "fsck")
}

// TestInterruptedEndsWith130: Ctrl-C ends a command with 130, in a few words, and leaves a log that is whole and a trial that can go on.
func TestInterruptedEndsWith130(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	read, write, err := os.Pipe()
	must.Do(t, err)
	var said bytes.Buffer
	cmd := exec.Command("jurat", "--data", data, "trial", kitchen, invoice, pharmacy, "--jurors", "offline")
	cmd.Stdout, cmd.Stderr = write, &said
	must.Do(t, cmd.Start())
	must.Do(t, write.Close())
	part := make([]byte, 1)
	if _, err := read.Read(part); err != nil { // the first trial has begun
		t.Fatal(err)
	}
	must.Do(t, cmd.Process.Signal(syscall.SIGINT))
	go io.Copy(io.Discard, read) // until the command ends
	var ended *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != exitInterrupted {
		t.Errorf("%v\n%s", err, &said)
	}
	if strings.Contains(said.String(), "goroutine") || !strings.Contains(said.String(), "interrupted") {
		t.Errorf("%s", &said)
	}
	doing(t, 0, "--data", data, "log", "fsck")
}
