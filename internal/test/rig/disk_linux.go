package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"jurat/internal/test/must"
)

// mountPoint is the environment variable with a folder on which this process may mount a file system, in a name space
// of its own.
const mountPoint = "JURAT_TEST_DISK"

// A Disk is a file system in memory. It disappears when its process ends.
type Disk struct{ Path string }

// OnDisk runs a top-level test again in a process that has a disk of the given size in megabytes for itself. If the
// system does not permit that, it skips the test, or fails it under CI=true.
func OnDisk(t *testing.T, megabytes int, test func(*Disk)) {
	t.Helper()
	if path := os.Getenv(mountPoint); path != "" {
		if err := syscall.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=700", megabytes)); err != nil {
			t.Skipf("mounting: %v", err)
		}
		test(&Disk{path})
		return
	}
	runtime.LockOSThread() // Pdeathsig fires when the thread that started the process ends, not when the program ends
	defer runtime.UnlockOSThread()
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), mountPoint+"="+t.TempDir())
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER, Pdeathsig: syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	out, err := again.CombinedOutput()
	var refused *exec.ExitError
	if err != nil && !errors.As(err, &refused) {
		noDisk(t, fmt.Errorf("this system gives this process no name space of its own: %w", err))
	}
	if strings.Contains(string(out), "--- SKIP: "+t.Name()) {
		noDisk(t, fmt.Errorf("this system mounts nothing in a name space of this process: %s", out))
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}

// noDisk skips a test that gets no disk. Under CI=true it fails the test.
func noDisk(t *testing.T, why error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Resize changes the size of the disk.
func (d *Disk) Resize(t *testing.T, megabytes int) {
	t.Helper()
	d.remount(t, 0, fmt.Sprintf("size=%dm", megabytes))
}

// ReadOnly makes the disk read-only, or writable again.
func (d *Disk) ReadOnly(t *testing.T, is bool) {
	t.Helper()
	var flags uintptr
	if is {
		flags = syscall.MS_RDONLY
	}
	d.remount(t, flags, "")
}

func (d *Disk) remount(t *testing.T, flags uintptr, options string) {
	t.Helper()
	must.Do(t, syscall.Mount("tmpfs", d.Path, "tmpfs", syscall.MS_REMOUNT|flags, options))
}

// Mirror mounts a folder of the disk a second time, read-only, at another folder of the disk.
func (d *Disk) Mirror(t *testing.T, folder, at string) {
	t.Helper()
	must.Do(t, os.Mkdir(at, 0o700))
	for _, flags := range []uintptr{syscall.MS_BIND, syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY} {
		must.Do(t, syscall.Mount(folder, at, "", flags, ""))
	}
}

// Fill writes a file that takes all free room of the disk.
func (d *Disk) Fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for page := make([]byte, 4096); err == nil; {
		_, err = f.Write(page)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
