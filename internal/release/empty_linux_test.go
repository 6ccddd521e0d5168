package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// runsInAnEmptyFolder runs the program where there is nothing else: no library, no shell, no /proc, no time zones, no certificates, and
// as a user who may write in one folder. There it tries a case, and its proof is checked.
func runsInAnEmptyFolder(t *testing.T, dist string) {
	if os.Geteuid() != 0 && os.Getenv("CI") != "true" {
		t.Skip("only root can make a folder the whole world of a program")
	}
	world := filepath.Join(t.TempDir(), "world")
	files := unpack(t, dist, here)
	put := func(name string, mode os.FileMode, content []byte) {
		t.Helper()
		at := filepath.Join(world, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, content, mode); err != nil {
			t.Fatal(err)
		}
	}
	put("jurat", 0o755, files["jurat"].content)
	for name, f := range files {
		if rest, ok := strings.CutPrefix(name, "examples/invoice-inbox/"); ok {
			put("work/case/"+rest, 0o644, f.content)
		}
	}
	const nobody = 65534
	work := filepath.Join(world, "work")
	for _, err := range []error{os.Chmod(filepath.Dir(world), 0o755), os.Chmod(filepath.Dir(filepath.Dir(world)), 0o755), os.Chown(work, nobody, nobody)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	inside := func(code int, want string, words ...string) string {
		t.Helper()
		cmd := exec.Command("/jurat", words...)
		cmd.Dir, cmd.Env = "/work", []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: world, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		var errs strings.Builder
		cmd.Stderr = &errs
		out, _ := cmd.Output()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), want) {
			t.Fatalf("%q: %v\n%s%s", words, cmd.ProcessState, out, &errs)
		}
		return string(out)
	}
	inside(0, "jurat "+tag+"\n", "version")
	inside(1, "unsafe_fail", "trial", "case", "--jurors", "offline", "--out", "case.jurat")
	trust := inside(0, "", "trust")
	if err := os.WriteFile(filepath.Join(work, "trust.json"), []byte(trust), 0o644); err != nil {
		t.Fatal(err)
	}
	inside(0, "PROVED", "verify", "--trust", "trust.json", "case.jurat")
	inside(0, "the log is whole", "log", "fsck")
}
