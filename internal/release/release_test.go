package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	root    = "../.."
	tag     = "v1.98.7" // of the commit that the test makes
	subject = "2026-01-31T16:15:00+09:00"
)

// here is the platform of this machine, for which a release can be tried.
var here = platform{runtime.GOOS, runtime.GOARCH}

// contents reads the files of a folder.
func contents(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if all[entry.Name()], err = os.ReadFile(filepath.Join(folder, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestRelease makes a release of this source for all platforms twice: in two folders, by two people with other masks, time zones and
// languages, and the second is built from nothing. What they made is the same to the byte.
func TestRelease(t *testing.T) {
	if os.Getenv("JURAT_TEST_LONG") == "" {
		t.Skip("it builds the programs for every platform, twice: 'scripts/test release'")
	}
	first := filepath.Join(t.TempDir(), "one")
	commitTo(t, first)
	second := filepath.Join(t.TempDir(), "another folder", "deeper")
	said(t, "", "git", "clone", "-q", first, second)

	makes(t, first, "0022", nil, "TZ=Asia/Tokyo", "LC_ALL=C.UTF-8", "GOFLAGS=-buildvcs=false")
	// Files that somebody left beside the source are in no release.
	if err := os.WriteFile(filepath.Join(second, "docs", "private.md"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	makes(t, second, "0077", nil, "TZ=America/St_Johns", "LC_ALL=tr_TR.UTF-8", "GOFLAGS=-tags=other", "GOAMD64=v2", "SOURCE_DATE_EPOCH=1", "GOCACHE="+t.TempDir())

	a, b := contents(t, filepath.Join(first, "dist")), contents(t, filepath.Join(second, "dist"))
	if names := slices.Sorted(maps.Keys(a)); !slices.Equal(names, slices.Sorted(maps.Keys(b))) || len(names) < 3 {
		t.Fatalf("%q and %q", names, slices.Sorted(maps.Keys(b)))
	}
	for name := range a {
		t.Logf("%s: %d bytes", name, len(a[name]))
		if !bytes.Equal(a[name], b[name]) {
			t.Errorf("%s differs from one build to the other", name)
		}
	}
	t.Run("Install", func(t *testing.T) { installs(t, filepath.Join(first, "dist")) })
	t.Run("Parts", func(t *testing.T) { partsAreTrue(t, filepath.Join(first, "dist")) })
	t.Run("Images", func(t *testing.T) {
		imagesAreTrue(t, filepath.Join(first, "dist"), said(t, first, "git", "rev-parse", "HEAD")[:40])
	})
	t.Run("Container", func(t *testing.T) { runsAsContainer(t, filepath.Join(first, "dist")) })
	t.Run("EmptyFolder", func(t *testing.T) { runsInAnEmptyFolder(t, filepath.Join(first, "dist")) })
}

// commitTo makes a repository of the source as it is here, with a commit that has a tag.
func commitTo(t *testing.T, to string) {
	t.Helper()
	names := said(t, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(content, []byte("#!")) {
			mode = 0o755
		}
		if err := os.WriteFile(at, content, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GIT_COMMITTER_DATE", subject)
	said(t, to, "git", "init", "-q")
	said(t, to, "git", "add", "-A")
	said(t, to, "git", "-c", "user.name=a", "-c", "user.email=a@jurat.example", "-c", "commit.gpgsign=false", "commit", "-qm", "a release")
	said(t, to, "git", "-c", "tag.gpgsign=false", "tag", tag)
}

func said(t *testing.T, dir string, words ...string) string {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", words, err, out)
	}
	return string(out)
}

// makes runs scripts/release as somebody with this mask and these settings.
func makes(t *testing.T, repository, mask string, words []string, env ...string) {
	t.Helper()
	cmd := exec.Command("bash", append([]string{"-c", "umask " + mask + ` && exec scripts/release "$@"`, "release"}, words...)...)
	cmd.Dir, cmd.Env = repository, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// installs runs the commands of the README's block on archives, as an ordinary person would in the folder with the download.
func installs(t *testing.T, dist string) {
	if here != (platform{"linux", "amd64"}) {
		t.Skip("the README installs on linux/amd64")
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(readme), "```console\nsha256sum")
	commands, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("the README does not show how to install from an archive")
	}
	home, downloads := t.TempDir(), t.TempDir()
	archive := "jurat_" + tag + "_linux_amd64.tar.gz" // and not those of other platforms
	for _, name := range []string{archive, "SHA256SUMS"} {
		said(t, "", "cp", filepath.Join(dist, name), downloads)
	}
	t.Setenv("HOME", home)
	out := said(t, downloads, "bash", "-euc", "sha256sum"+commands)
	for _, want := range []string{archive + ": OK", "jurat " + tag + "\n", said(t, dist, "git", "rev-parse", "HEAD")[:40] + ", 2026-01-31T07:15:00Z\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if installed, err := os.Stat(filepath.Join(home, ".local", "bin", "jurat")); err != nil || installed.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", installed, err)
	}
	if err := os.WriteFile(filepath.Join(downloads, archive), []byte("another"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("bash", "-euc", "cd "+downloads+" && sha256sum"+commands).CombinedOutput(); err == nil {
		t.Errorf("an archive that was changed is installed:\n%s", out)
	}
}

// partsAreTrue compares the list of parts with what Go says about the programs, and has the CycloneDX project's library judge its form.
func partsAreTrue(t *testing.T, dist string) {
	files := unpack(t, dist, here)
	text := files["sbom.cdx.json"].content
	var list bom
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	beside, err := os.ReadFile(filepath.Join(dist, "jurat_"+tag+"_"+here.os+"_"+here.arch+".cdx.json"))
	if err != nil || !bytes.Equal(text, beside) {
		t.Errorf("the list beside the archive is another than the one in it, %v", err)
	}
	listed := map[string]bool{}
	for _, c := range list.Components {
		listed[c.Name+" "+c.Version] = true
	}
	bin := t.TempDir()
	for _, program := range list.Metadata.Component.Components {
		content := files[program.Name].content
		if program.Version != tag || program.Hashes[0].Content != fmt.Sprintf("%x", sha256.Sum256(content)) {
			t.Errorf("%+v is not the program in the archive", program)
		}
		if err := os.WriteFile(filepath.Join(bin, program.Name), content, 0o755); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(said(t, bin, "go", "version", "-m", program.Name)) {
			if words := strings.Fields(line); words[0] == "dep" {
				if !listed[words[1]+" "+words[2]] {
					t.Errorf("%s contains %s, which the list lacks", program.Name, words[1])
				}
				if !bytes.Contains(files["THIRD-PARTY.txt"].content, []byte("\n"+words[1]+" "+words[2]+": ")) {
					t.Errorf("THIRD-PARTY.txt lacks a licence of %s", words[1])
				}
			}
		}
	}
	if want := len(here.programs()); len(list.Metadata.Component.Components) != want {
		t.Errorf("%d programs, want %d", len(list.Metadata.Component.Components), want)
	}
	judgeForm(t, dist)
}

// judgeForm has the CycloneDX project's library judge the lists, and one that is wrong.
func judgeForm(t *testing.T, dist string) {
	lists, err := filepath.Glob(filepath.Join(dist, "*.cdx.json"))
	if err != nil || len(lists) == 0 {
		t.Fatal(lists, err)
	}
	judgeList(t, lists...)
	text, err := os.ReadFile(lists[0])
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.json")
	if err := os.WriteFile(wrong, bytes.Replace(text, []byte(`"library"`), []byte(`"liberty"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if library := cyclonedx(t); library != "" && judge(library, wrong) == nil {
		t.Error("the library accepts a list that is wrong")
	}
}

// judgeList has the library judge lists, if it is there.
func judgeList(t *testing.T, files ...string) {
	t.Helper()
	if library := cyclonedx(t); library == "" {
		t.Log("the CycloneDX library is not installed: scripts/test installs it")
	} else if err := judge(library, files...); err != nil {
		t.Error(err)
	}
}

func cyclonedx(t *testing.T) string {
	t.Helper()
	library := os.Getenv("JURAT_TEST_CYCLONEDX")
	if library == "" && os.Getenv("CI") == "true" {
		t.Fatal("JURAT_TEST_CYCLONEDX is not set: scripts/test installs the library")
	}
	return library
}

func judge(library string, files ...string) error {
	out, err := exec.Command("node", append([]string{"testdata/validate.mjs", library}, files...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// unpack reads the archive of a platform, and judges how each file is in it.
func unpack(t *testing.T, dist string, p platform) map[string]file {
	t.Helper()
	name := "jurat_" + tag + "_" + p.os + "_" + p.arch
	suffix := ".tar.gz"
	if p.os == "windows" {
		suffix = ".zip"
	}
	packed, err := os.ReadFile(filepath.Join(dist, name+suffix))
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, subject)
	if err != nil {
		t.Fatal(err)
	}
	return judged(t, name, at, p, packed)
}

// judged reads an archive whose files must all be in the folder, have the time, no owner, and one of two modes, in order.
func judged(t *testing.T, folder string, at time.Time, p platform, packed []byte) map[string]file {
	t.Helper()
	files, last := map[string]file{}, ""
	take := func(name string, mode fs.FileMode, modified time.Time, owner string, content []byte) {
		rest, ok := strings.CutPrefix(name, folder+"/")
		want := fs.FileMode(0o644)
		if slices.Contains([]string{"jurat", "jurat-token", "jurat.exe"}, rest) {
			want = 0o755
		}
		if !ok || name <= last || mode != want || !modified.Equal(at) || owner != "" || !fs.ValidPath(name) {
			t.Errorf("%s after %s: mode %v, time %v, owner %q", name, last, mode, modified, owner)
		}
		last, files[rest] = name, file{name: rest, mode: mode, content: content}
	}
	if p.os == "windows" {
		readZip(t, packed, take)
	} else {
		readTar(t, packed, take)
	}
	return files
}

func readTar(t *testing.T, packed []byte, take func(string, fs.FileMode, time.Time, string, []byte)) {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if !plain.ModTime.IsZero() || plain.Name != "" {
		t.Errorf("the compressed file names %q, %v", plain.Name, plain.ModTime)
	}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		owner := h.Uname + h.Gname
		if h.Uid != 0 || h.Gid != 0 {
			owner += fmt.Sprint(h.Uid, ":", h.Gid)
		}
		take(h.Name, fs.FileMode(h.Mode), h.ModTime, owner, content)
	}
}

func readZip(t *testing.T, packed []byte, take func(string, fs.FileMode, time.Time, string, []byte)) {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		opened, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(opened)
		if err != nil {
			t.Fatal(err)
		}
		take(f.Name, f.Mode(), f.Modified, "", content)
	}
}

// TestArchives packs a small program for a Unix and for Windows.
func TestArchives(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 7, 15, 1, 0, time.UTC)
	for _, p := range []platform{{"linux", "arm64"}, {"windows", "arm64"}} {
		dir := t.TempDir()
		program := "jurat"
		if p.os == "windows" {
			program += ".exe"
		}
		if err := pack(dir, "folder", p, at, []file{{name: program, mode: 0o755, content: []byte("program")}, {name: "docs/a.md", mode: 0o644, content: []byte("a")}, {name: "LICENSE", mode: 0o644}}); err != nil {
			t.Fatal(err)
		}
		for name, packed := range contents(t, dir) {
			files := judged(t, "folder", at, p, packed)
			if len(files) != 3 || string(files[program].content) != "program" || string(files["docs/a.md"].content) != "a" {
				t.Errorf("%s has %v", name, files)
			}
		}
	}
}

// TestArchiveHolds: the README's links lead to files in the archive, and so do the completions of each shell.
func TestArchiveHolds(t *testing.T) {
	t.Parallel()
	files, err := common(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.name)
		if path.Ext(f.name) == ".go" || len(f.content) == 0 {
			t.Errorf("%s, %d bytes", f.name, len(f.content))
		}
	}
	for _, want := range []string{"LICENSE", "README.md", "docs/operations.md", "docs/pictures/courtroom.png", "deploy/jurat.service", "deploy/nginx.conf", "deploy/compose/sqlite.yaml", "deploy/compose/postgres.yaml", "deploy/compose/secrets.sh",
		"completions/jurat.bash", "completions/jurat.zsh", "completions/jurat.fish", "examples/README.md"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in %q", want, names)
		}
	}
}

// TestNoLicence: a module without a licence is in no release.
func TestNoLicence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("licence.go", "package m")
	write("sub/deep/Licence.txt", "of deep")
	write("other/LICENSE", "of a package that is not linked")
	one := listed{ImportPath: "m/sub/deep", Dir: filepath.Join(dir, "sub", "deep")}
	one.Module = &struct {
		Path, Version, Dir string
		Main               bool
	}{"m", "v1.0.0", dir, false}
	got, err := collect([]listed{one})
	if err != nil || len(got) != 1 || got[0] != (notice{"m v1.0.0", "sub/deep/Licence.txt", "of deep"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := covered(got, "m v1.0.0", "n v1.0.0"); err == nil || !strings.Contains(err.Error(), "n v1.0.0 has no file with its licence") {
		t.Error(err)
	}
}

// TestRefusals: what cannot be released is said, and nothing is left behind.
func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{dir}, "want a repository, a folder"},
		{[]string{dir, dir, "linux/amd64", "plan9/amd64"}, `no archives are made for "plan9/amd64"`},
		{[]string{dir, dir}, "not a git repository"},
	} {
		if err := run(t.Context(), c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
	full := filepath.Join(dir, "full")
	if err := os.MkdirAll(filepath.Join(full, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(root, "scripts", "release"), full).CombinedOutput(); err == nil || !strings.Contains(string(out), "is not empty: name another folder") {
		t.Errorf("%v: %s", err, out)
	}
	for _, name := range []string{"v2.0.0", "v1.2", "v2"} { // Go calls no commit of this module v2, nor v1.2
		if err := tagged([]string{"v2.0.0", name}, "v0.0.0-20260131071500-abcdef123456"); err == nil || !strings.Contains(err.Error(), "v0.x or v1.x") {
			t.Error(err)
		}
	}
	if err := errors.Join(tagged(nil, "v0.0.0-1"), tagged([]string{"v2.0.0", "v1.2.3"}, "v1.2.3")); err != nil {
		t.Error(err)
	}
	shallow := filepath.Join(t.TempDir(), "shallow")
	source := t.TempDir()
	said(t, source, "git", "init", "-q")
	for range 2 {
		said(t, source, "git", "-c", "user.name=a", "-c", "user.email=a@jurat.example", "commit", "-q", "--allow-empty", "-m", "a")
	}
	said(t, "", "git", "clone", "-q", "--depth", "1", "file://"+source, shallow)
	if err := run(t.Context(), []string{shallow, dir}); err == nil || !strings.Contains(err.Error(), "git fetch --unshallow --tags") {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
