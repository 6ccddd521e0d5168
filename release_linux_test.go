package jurat_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// TestRelease makes a release for all platforms twice, in two folders, by two people with other masks, time zones and languages, the second from nothing: both are
// the same to the byte. What the README says installs it, the list of its parts is what Go says, each part has a licence, and the image runs.
func TestRelease(t *testing.T) {
	if os.Getenv("JURAT_TEST_LONG") == "" {
		t.Skip("it builds the programs for every platform, twice: 'scripts/test release'")
	}
	const tag = "v0.9.0"
	first, second := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "another folder")
	said(t, ".", "git", "clone", "-q", ".", first)
	said(t, first, "git", "-c", "tag.gpgsign=false", "tag", "-f", tag)
	said(t, ".", "git", "clone", "-q", first, second)
	made := func(repository, mask string, env ...string) map[string][]byte {
		t.Helper()
		cmd := exec.Command("bash", "-c", "umask "+mask+" && exec scripts/release")
		cmd.Dir, cmd.Env = repository, append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		must.Need(t, err == nil, "%v\n%s", err, out)
		files := map[string][]byte{}
		for path, content := range rig.Files(t, filepath.Join(repository, "dist")) {
			files[filepath.Base(path)] = content
		}
		return files
	}
	a := made(first, "0022", "TZ=Asia/Tokyo", "GOFLAGS=-buildvcs=false")
	must.Do(t, os.WriteFile(filepath.Join(second, "docs", "private.md"), []byte("mine"), 0o600)) // it is in no release
	b := made(second, "0077", "TZ=America/St_Johns", "LC_ALL=C.UTF-8", "GOFLAGS=-tags=other", "GOAMD64=v2", "GOCACHE="+t.TempDir())
	names := slices.Sorted(maps.Keys(a))
	must.Need(t, len(names) == 13 && slices.Equal(names, slices.Sorted(maps.Keys(b))), "%q and %q", names, slices.Sorted(maps.Keys(b)))
	for name := range a {
		must.Hold(t, bytes.Equal(a[name], b[name]), "%s differs from one release to the other", name)
	}
	dist, name := filepath.Join(first, "dist"), "jurat_"+tag+"_linux_amd64"
	partsAreTrue(t, filepath.Join(dist, name+".cdx.json"), unpacked(t, a[name+".tar.gz"]), name)
	installs(t, dist, name, tag)
	runsAsContainer(t, dist, name, tag)
}

func said(t *testing.T, dir string, words ...string) string {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	must.Need(t, err == nil, "%v: %v\n%s", words, err, out)
	return string(out)
}

// unpacked reads an archive, whose files have no owner.
func unpacked(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	plain := must.Get(gzip.NewReader(bytes.NewReader(archive)))(t)
	files := map[string][]byte{}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must.Do(t, err)
		files[h.Name], err = io.ReadAll(r)
		must.Hold(t, err == nil && h.Uid == 0 && h.Uname == "" && h.Mode&0o022 == 0, "%+v, %v", h, err)
	}
}

// partsAreTrue compares the list of parts with what Go says of the programs, and has the CycloneDX project's library judge its form.
func partsAreTrue(t *testing.T, list string, files map[string][]byte, name string) {
	t.Helper()
	text := files[name+"/sbom.cdx.json"]
	program := filepath.Join(t.TempDir(), "jurat")
	must.Do(t, os.WriteFile(program, files[name+"/jurat"], 0o755))
	deps := 0
	for line := range strings.Lines(said(t, ".", "go", "version", "-m", program)) {
		words := strings.Fields(line)
		if words[0] != "dep" {
			continue
		}
		deps++
		must.Hold(t, bytes.Contains(text, fmt.Appendf(nil, "pkg:golang/%s@%s", words[1], words[2])), "the list of parts lacks %s %s", words[1], words[2])
		must.Hold(t, bytes.Contains(files[name+"/THIRD-PARTY.txt"], fmt.Appendf(nil, "\n%s %s: ", words[1], words[2])),
			"THIRD-PARTY.txt lacks a licence of %s", words[1])
	}
	if deps < 10 || files[name+"/docs/private.md"] != nil || files[name+"/completions/_jurat"] == nil && files[name+"/completions/jurat.bash"] == nil {
		t.Errorf("%d parts, files %q", deps, slices.Sorted(maps.Keys(files)))
	}
	library := os.Getenv("JURAT_TEST_CYCLONEDX")
	must.Need(t, library != "", "JURAT_TEST_CYCLONEDX is not set: 'scripts/test release' installs the library")
	wrong := filepath.Join(t.TempDir(), "wrong.json")
	must.Do(t, os.WriteFile(wrong, bytes.Replace(text, []byte(`"library"`), []byte(`"liberty"`), 1), 0o600))
	said(t, ".", "node", "testdata/release/validate.mjs", library, list)
	must.Hold(t, exec.Command("node", "testdata/release/validate.mjs", library, wrong).Run() != nil, "the library accepts a list that is wrong")
}

// installs runs the README's commands, as a person would in the folder with the download. An archive that was changed is not installed.
func installs(t *testing.T, dist, name, tag string) {
	t.Helper()
	readme := must.Get(os.ReadFile("README.md"))(t)
	_, after, _ := strings.Cut(string(readme), "```console\nsha256sum")
	commands, _, _ := strings.Cut(after, "```")
	t.Setenv("HOME", t.TempDir())
	downloads := t.TempDir()
	said(t, dist, "cp", name+".tar.gz", "SHA256SUMS", downloads)
	out := said(t, downloads, "bash", "-euc", "sha256sum"+commands)
	must.Hold(t, strings.Contains(out, name+".tar.gz: OK") && strings.Contains(out, "jurat "+tag+"\n"), "%v", out)
	must.Do(t, os.WriteFile(filepath.Join(downloads, name+".tar.gz"), []byte("another"), 0o644))
	again := exec.Command("bash", "-euc", "sha256sum"+commands)
	again.Dir = downloads
	must.Hold(t, again.Run() != nil, "an archive that was changed is installed")
}

// runsAsContainer has Buildah make the image from an archive, without a network. In it a case is tried, and a server becomes ready, by the image's own health check.
func runsAsContainer(t *testing.T, dist, name, tag string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // without a network of its own it listens on this machine, at another port than the image says
	must.Do(t, err)
	at := "JURAT_ADDR=" + l.Addr().String()
	l.Close()
	store := t.TempDir()
	said(t, store, "tar", "-xzf", filepath.Join(dist, name+".tar.gz"))
	buildah := func(words ...string) []string {
		return append([]string{"buildah", "--root", filepath.Join(store, "root"), "--runroot", filepath.Join(store, "run"), "--storage-driver", "vfs"}, words...)
	}
	from := filepath.Join(store, name)
	said(t, store, buildah("build", "--quiet", "--format", "docker", "--isolation", "chroot", "--file", filepath.Join(from, "deploy", "Containerfile"), "--tag", "localhost/jurat:"+tag, from)...)
	container := strings.TrimSpace(said(t, store, buildah("from", "--pull-never", "localhost/jurat:"+tag)...))
	within := func(words ...string) []string {
		return buildah(append([]string{"run", "--isolation", "chroot", "--env", at, "--env", "JURAT_ORIGIN=https://jurat.example", "--volume", filepath.Join(from, "examples", "invoice-inbox") + ":/case:ro", container, "--"}, words...)...)
	}
	run := func(code int, want string, words ...string) {
		t.Helper()
		all := within(words...)
		cmd := exec.Command(all[0], all[1:]...)
		out, _ := cmd.CombinedOutput()
		must.Hold(t, cmd.ProcessState.ExitCode() == code && strings.Contains(string(out), want),
			"%q ends with %d, want %d and %q:\n%s", words, cmd.ProcessState.ExitCode(), code, want, out)
	}
	const program = "/usr/local/bin/jurat"
	run(0, "jurat "+tag+"\n", program, "version")
	run(1, "no server answers", program, "doctor", "--ready")
	run(1, "unsafe_fail", program, "trial", "/case", "--jurors", "offline")
	run(0, "the log is whole: 10 records", program, "log", "fsck")
	all := within(program, "serve")
	server := exec.Command(all[0], all[1:]...)
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Do(t, server.Start())
	defer func() { _ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL); _ = server.Wait() }()
	ready := within(program, "doctor", "--ready")
	for end := time.Now().Add(time.Minute); exec.Command(ready[0], ready[1:]...).Run() != nil; time.Sleep(200 * time.Millisecond) {
		must.Need(t, !time.Now().After(end), "the server does not become ready")
	}
}
