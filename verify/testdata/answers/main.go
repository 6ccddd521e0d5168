// Command answers prints a digest of the report on each file of a manifest, or that it is none of ours. A test builds it for this machine and
// for WebAssembly, and compares what both say.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/verify"
)

type vector struct {
	Name, File, Trust, Checkpoint, Consistency, Entries string

	Before, At *time.Time
	CRLs       []string
	Grace      int64
	Policy     verify.Policy
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(manifest string) error {
	doc, err := os.ReadFile(manifest)
	if err != nil {
		return err
	}
	var m struct{ Verifications []vector }
	if err := json.Unmarshal(doc, &m, json.MatchCaseInsensitiveNames(true)); err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	for _, v := range m.Verifications {
		said, err := v.answer(filepath.Dir(manifest))
		if err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
		fmt.Fprintf(out, "%s %s\n", v.Name, said)
	}
	return out.Flush()
}

// answer verifies a file as its reader would.
func (v *vector) answer(folder string) (string, error) {
	r := &reader{folder: folder}
	q := verify.Inputs{Now: func() time.Time { return time.Time{} }, Before: v.Before, At: v.At, Trust: r.input(v.Trust), Checkpoint: r.input(v.Checkpoint), Consistency: r.input(v.Consistency)}
	if v.Entries != "" {
		q.Entries = bytes.NewReader(r.file(v.Entries))
	}
	for _, name := range v.CRLs {
		q.CRLs = append(q.CRLs, *r.input(name))
	}
	if v.Grace != 0 {
		q.Grace = new(time.Duration(v.Grace) * time.Second)
	}
	file := r.file(v.File)
	if r.err != nil {
		return "", r.err
	}
	o, err := q.Options()
	if err != nil {
		return "refused: " + err.Error(), nil
	}
	o.Policy = v.Policy
	report, err := verify.File(file, o)
	if errors.Is(err, verify.ErrNotOurs) {
		return "none of ours", nil
	}
	if err != nil {
		return "", err
	}
	doc, err := report.Marshal()
	return fmt.Sprintf("%x", sha256.Sum256(doc)), err
}

// A reader keeps its first error.
type reader struct {
	folder string
	err    error
}

func (r *reader) file(name string) []byte {
	doc, err := os.ReadFile(filepath.Join(r.folder, name))
	if r.err == nil {
		r.err = err
	}
	return doc
}

// input is nil if there is no name.
func (r *reader) input(name string) *verify.InputFile {
	if name == "" {
		return nil
	}
	return &verify.InputFile{Name: name, From: bytes.NewReader(r.file(name))}
}
