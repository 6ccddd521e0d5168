// Command build rebuilds the committed files of the portal: the verifier, compiled to WebAssembly and compressed, and
// Go's script that runs it. 'go generate ./internal/portal' calls it.
//
//	build FOLDER          writes the files
//	build -check FOLDER   rebuilds them, and fails if those in the folder differ: for releases
package main

import (
	"bytes"
	"encoding/binary"
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
		"-o", file, "jurat/internal/portal/verifier")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOFLAGS=", "GOEXPERIMENT=", "GOWASM=", "GOFIPS140=off", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling the verifier: %w\n%s", err, out)
	}
	return nil
}

// build returns every file, by name.
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
	packed, err := pack(raw)
	if err != nil {
		return nil, err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("asking go where it is: %w", err)
	}
	files := map[string][]byte{"verifier.wasm.lzma": packed, "verifier.go-version": []byte(runtime.Version() + "\n")}
	for name, from := range map[string]string{"wasm_exec.js": "lib/wasm/wasm_exec.js", "wasm_exec.LICENSE": "LICENSE"} {
		if files[name], err = os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), filepath.FromSlash(from))); err != nil {
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
		return fmt.Errorf("the files were built by %s, and this is %s: run 'go generate ./internal/portal', and commit what it writes", by, runtime.Version())
	}
	files, err := build()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		there, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		if !bytes.Equal(there, files[name]) {
			return fmt.Errorf("%s was not built from this source: run 'go generate ./internal/portal', and commit what it writes", name)
		}
	}
	return nil
}

// pack compresses the program with xz, which leaves the size in the header open when it writes to a pipe. The page's
// worker wants to know it.
func pack(raw string) ([]byte, error) {
	program, err := os.ReadFile(raw)
	if err != nil {
		return nil, err
	}
	xz := exec.Command("xz", "--format=lzma", "--lzma1=preset=9e,pb=0", "--stdout")
	xz.Stdin, xz.Stderr = bytes.NewReader(program), os.Stderr
	packed, err := xz.Output()
	if err != nil {
		return nil, fmt.Errorf("compressing the verifier with xz, of the package xz-utils: %w", err)
	}
	binary.LittleEndian.PutUint64(packed[5:], uint64(len(program)))
	return packed, nil
}
