// Command build rebuilds the committed files of the portal: the verifier, compiled to WebAssembly and compressed, and
// Go's script that runs it. 'go generate ./internal/web/portal' calls it.
//
//	build FOLDER          writes the files
//	build -check FOLDER   rebuilds them, and fails if those in the folder differ: for releases
package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "-check":
		return check(args[1])
	case len(args) == 1:
		return write(args[0])
	}
	return errors.New("want a folder, or -check and a folder")
}

// compile builds the verifier. With the same version of Go it gives the same bytes on every machine. It disables
// inlining, which saves an eighth of the size, except for the arithmetic of signatures, which would take twice as
// long.
func compile(file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=",
		"-gcflags=all=-l", "-gcflags=math/bits=", "-gcflags=crypto/internal/fips140/...=", "-gcflags=github.com/cloudflare/circl/...=",
		"-o", file, "jurat/internal/web/portal/verifier")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOFLAGS=", "GOEXPERIMENT=", "GOWASM=", "GOFIPS140=off", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling the verifier: %w\n%s", err, out)
	}
	return nil
}

// program is the file that holds the verifier, compressed by xz. Versions of xz may compress it differently, so what is compared is what it decompresses to.
const program = "verifier.wasm.lzma"

// build returns every file, by name, and the program as it is.
func build() (map[string][]byte, error) {
	temp, err := os.MkdirTemp("", "portal-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	raw := filepath.Join(temp, "verifier.wasm")
	if err := compile(raw); err != nil {
		return nil, err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("asking go where it is: %w", err)
	}
	lib := func(name string) string {
		return filepath.Join(strings.TrimSpace(string(root)), filepath.FromSlash(name))
	}
	files := map[string][]byte{"verifier.go-version": []byte(runtime.Version() + "\n")}
	for name, from := range map[string]string{program: raw, "wasm_exec.js": lib("lib/wasm/wasm_exec.js"), "wasm_exec.LICENSE": lib("LICENSE")} {
		if files[name], err = os.ReadFile(from); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func write(folder string) error {
	files, err := build()
	if err != nil {
		return err
	}
	if files[program], err = xz(files[program], "--lzma1=preset=9e,pb=0,lc=4"); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// check compares a folder's files with those that this source and this compiler give. Another version of Go gives
// other bytes.
func check(folder string) error {
	version, err := os.ReadFile(filepath.Join(folder, "verifier.go-version"))
	if err != nil {
		return err
	}
	if by := strings.TrimSpace(string(version)); by != runtime.Version() {
		return fmt.Errorf("the files were built by %s, and this is %s: run 'go generate ./internal/web/portal', and commit what it writes", by, runtime.Version())
	}
	files, err := build()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		there, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil && name == program {
			there, err = xz(there, "--decompress")
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(there, files[name]) {
			return fmt.Errorf("%s was not built from this source: run 'go generate ./internal/web/portal', and commit what it writes", name)
		}
	}
	return nil
}

// xz compresses or decompresses LZMA. Writing to a pipe, it ends what it compresses with a marker, at which the page's worker knows that nothing is damaged.
func xz(in []byte, how string) ([]byte, error) {
	run := exec.Command("xz", "--format=lzma", how, "--stdout")
	run.Stdin, run.Stderr = bytes.NewReader(in), os.Stderr
	out, err := run.Output()
	if err != nil {
		return nil, fmt.Errorf("running xz, of the package xz-utils: %w", err)
	}
	return out, nil
}
