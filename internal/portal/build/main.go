// Command build makes the committed files of the portal anew: the verifier, compiled to WebAssembly and packed, and Go's script
// by which it runs. 'go generate ./internal/portal' calls it.
//
//	build FOLDER       writes them, with xz
//	build -raw FILE    writes the verifier unpacked, for the test that compares it with the committed one
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	case len(args) == 2 && args[0] == "-raw":
		return compile(args[1])
	case len(args) == 1:
		return all(args[0])
	}
	return fmt.Errorf("want a folder, or -raw and a file")
}

// compile builds the verifier to the same bytes wherever that is done with this version of Go. Functions are not inlined, which
// takes an eighth off, but for the arithmetic of signatures, which would take twice as long.
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

func all(folder string) error {
	temp, err := os.MkdirTemp("", "portal-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	raw := filepath.Join(temp, "verifier.wasm")
	if err := compile(raw); err != nil {
		return err
	}
	packed, err := pack(raw)
	if err != nil {
		return err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("asking go where it is: %w", err)
	}
	files := map[string][]byte{"verifier.wasm.lzma": packed, "verifier.go-version": []byte(runtime.Version() + "\n")}
	for name, from := range map[string]string{"wasm_exec.js": "lib/wasm/wasm_exec.js", "wasm_exec.LICENSE": "LICENSE"} {
		if files[name], err = os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), filepath.FromSlash(from))); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pack packs the program. xz, writing to a pipe, leaves the size in the header open; whoever unpacks wants to know it.
func pack(raw string) ([]byte, error) {
	program, err := os.ReadFile(raw)
	if err != nil {
		return nil, err
	}
	xz := exec.Command("xz", "--format=lzma", "-9e", "--stdout")
	xz.Stdin, xz.Stderr = bytes.NewReader(program), os.Stderr
	packed, err := xz.Output()
	if err != nil {
		return nil, fmt.Errorf("packing the verifier with xz: %w", err)
	}
	binary.LittleEndian.PutUint64(packed[5:], uint64(len(program)))
	return packed, nil
}
