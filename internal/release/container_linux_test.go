package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A container is one that Buildah made of the image, and runs without a daemon.
type container struct {
	t        *testing.T
	buildah  []string // the program, and where it keeps images
	name     string
	settings []string // for each run
}

// runsAsContainer has Buildah load the image from the archive and run it as its configuration says. There it tries a case, its server becomes
// ready, as the image's own health check finds, and it ends when it is told to.
func runsAsContainer(t *testing.T, dist string) {
	found, err := exec.LookPath("buildah")
	if os.Getenv("CI") != "true" && (err != nil || os.Geteuid() != 0) {
		t.Skip("there is no Buildah, or it would not run as root: scripts/test installs it")
	}
	at, err := time.Parse(time.RFC3339, subject)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dist, "jurat_"+tag+"_"+here.os+"_"+here.arch+".oci.tar")
	how := open(t, archive, at).config.Config
	store := t.TempDir()
	c := container{t: t, buildah: []string{found, "--root", filepath.Join(store, "root"), "--runroot", filepath.Join(store, "run"), "--storage-driver", "vfs"}}
	c.buildahs("pull", "--quiet", "oci-archive:"+archive)
	c.name = strings.TrimSpace(c.buildahs("from", "--pull-never", "localhost/jurat:"+tag))
	// Without a network of its own it listens on this machine, so at another port than the image says.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	if env := strings.Join(how.Env, " "); !strings.Contains(env, " JURAT_ADDR=0.0.0.0:8417") {
		t.Errorf("the image says %q", env)
	}
	example, err := filepath.Abs(filepath.Join(root, "examples", "invoice-inbox"))
	if err != nil {
		t.Fatal(err)
	}
	c.settings = []string{"--isolation", "chroot", "--env", fmt.Sprintf("JURAT_ADDR=0.0.0.0:%d", port), "--env", "JURAT_ORIGIN=https://jurat.example", "--volume", example + ":/case:ro"}

	health := how.Healthcheck.Test
	if health[0] != "CMD" {
		t.Fatal(health)
	}
	c.run(1, "no server answers", health[1:]...)
	c.run(0, "jurat "+tag+"\n", append(how.Entrypoint, "version")...)
	c.run(1, "unsafe_fail", append(how.Entrypoint, "trial", "/case", "--jurors", "offline")...)

	server := exec.Command(c.buildah[0], c.words(append(how.Entrypoint, how.Cmd...))...)
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var errs strings.Builder
	server.Stdout, server.Stderr = &errs, &errs
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL); _ = server.Wait() }()
	ready := false
	for end := time.Now().Add(time.Minute); !ready && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		_, err := c.try(health[1:]...)
		ready = err == nil
	}
	c.run(0, fmt.Sprintf("ready: http://127.0.0.1:%d\n", port), health[1:]...)
	c.run(0, "https://jurat.example/sign-in?link=", append(how.Entrypoint, "access", "link", "--at", "https://jurat.example")...)
	c.run(0, "the log is whole: 10 records", append(how.Entrypoint, "log", "fsck")...)
	if err := syscall.Kill(-server.Process.Pid, syscall.SIGTERM); err != nil || how.StopSignal != "SIGTERM" {
		t.Error(err, how.StopSignal)
	}
	_ = server.Wait() // what Buildah makes of the signal is its own; the next line says whether the server has ended
	for end := time.Now().Add(time.Minute); ready && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		_, err := c.try(health[1:]...)
		ready = err == nil
	}
	if c.run(1, "no server answers", health[1:]...); t.Failed() {
		t.Log(errs.String())
	}
}

// buildahs runs a command of Buildah.
func (c container) buildahs(words ...string) string {
	c.t.Helper()
	return said(c.t, "", append(c.buildah, words...)...)
}

func (c container) words(command []string) []string {
	words := append([]string{}, c.buildah[1:]...)
	words = append(append(words, "run"), c.settings...)
	return append(append(words, c.name, "--"), command...)
}

// try runs a command in the container.
func (c container) try(command ...string) (string, error) {
	out, err := exec.Command(c.buildah[0], c.words(command)...).CombinedOutput()
	return string(out), err
}

// run runs a command in the container that must end with this code and say this.
func (c container) run(code int, want string, command ...string) {
	c.t.Helper()
	out, err := c.try(command...)
	got, failed := 0, (*exec.ExitError)(nil)
	if errors.As(err, &failed) {
		got = failed.ExitCode()
	} else if err != nil {
		c.t.Fatal(err)
	}
	if got != code || !strings.Contains(out, want) {
		c.t.Errorf("%q ends with %d, want %d and %q:\n%s", command, got, code, want, out)
	}
}
