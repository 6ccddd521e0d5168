package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// A listed is a package as 'go list' describes it.
type listed struct {
	ImportPath string
	Dir        string
	Standard   bool
	Module     *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// A notice is a licence, or what a licence wants to be handed on.
type notice struct{ of, file, text string }

// named are the files that hold licences, or what a licence wants to be handed on.
var named = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|copyright|unlicense)([-._].*)?$`)

// code are the files of such a name that are source.
var code = regexp.MustCompile(`(?i)\.(go|s|c|h|js|py|sh|json|yml|yaml)$`)

// thirdParty returns the licences of all that others wrote and the programs contain: of the modules, and of folders in them that have
// one of their own. It fails for a module without any.
func thirdParty(ctx context.Context, dir string, p platform, modules []*debug.Module) ([]notice, error) {
	packages, err := linked(ctx, dir, p)
	if err != nil {
		return nil, err
	}
	notices, err := collect(packages)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if err := covered(notices, m.Path+" "+m.Version); err != nil {
			return nil, err
		}
	}
	standard, err := ofGo(ctx, dir)
	if err != nil {
		return nil, err
	}
	return append(notices, standard), nil
}

// covered fails if one of the modules has no licence.
func covered(notices []notice, modules ...string) error {
	for _, m := range modules {
		if !slices.ContainsFunc(notices, func(n notice) bool { return n.of == m }) {
			return fmt.Errorf("%s has no file with its licence that a release can hand on", m)
		}
	}
	return nil
}

// linked lists the packages that are in the programs, those in the program of the portal, which runs in browsers.
func linked(ctx context.Context, dir string, p platform) ([]listed, error) {
	words := []string{"go", "list", "-mod=readonly", "-deps", "-json=ImportPath,Dir,Standard,Module"}
	programs := slices.Clone(words)
	for _, name := range p.programs() {
		programs = append(programs, "./cmd/"+name)
	}
	out, err := command(ctx, dir, p.env(), programs...)
	if err != nil {
		return nil, err
	}
	portal, err := command(ctx, dir, platform{"js", "wasm"}.env(), append(words, "./internal/portal/verifier")...)
	if err != nil {
		return nil, err
	}
	return packagesIn(append(out, portal...))
}

// packagesIn reads what 'go list -json' says.
func packagesIn(said []byte) ([]listed, error) {
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(said)); ; {
		var one listed
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("what go list says: %w", err)
		}
		all = append(all, one)
	}
}

// collect reads the licences in the folder of each package, and in those above it up to its module's.
func collect(packages []listed) ([]notice, error) {
	read := map[string]bool{}
	var notices []notice
	for _, one := range packages {
		if one.Standard || one.Module == nil || one.Module.Main {
			continue
		}
		for dir := one.Dir; !read[dir]; dir = filepath.Dir(dir) {
			read[dir] = true
			found, err := within(dir, one.Module.Dir)
			if err != nil {
				return nil, err
			}
			for _, n := range found {
				n.of = one.Module.Path + " " + one.Module.Version
				notices = append(notices, n)
			}
			if dir == one.Module.Dir {
				break
			}
		}
	}
	slices.SortFunc(notices, func(a, b notice) int { return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(a.file, b.file)) })
	return notices, nil
}

// within reads the licences in one folder of a module.
func within(dir, module string) ([]notice, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []notice
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !named.MatchString(entry.Name()) || code.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		file, err := filepath.Rel(module, filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		found = append(found, notice{file: filepath.ToSlash(file), text: string(text)})
	}
	return found, nil
}

// ofGo is the licence of Go, whose standard library is in every program.
func ofGo(ctx context.Context, dir string) (notice, error) {
	said, err := command(ctx, dir, nil, "go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return notice{}, err
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	text, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return notice{}, fmt.Errorf("the licence of Go's standard library: %w", err)
	}
	return notice{"Go's standard library " + version, "LICENSE", string(text)}, nil
}

// render writes the notices one after the other.
func render(notices []notice) []byte {
	var text bytes.Buffer
	text.WriteString("The programs contain these works of others, unchanged, under the licences below. Anyone gets the source of one with\n\n  go mod download -json MODULE@VERSION\n\n")
	of := ""
	for _, n := range notices {
		if n.of != of {
			fmt.Fprintf(&text, "  %s\n", n.of)
		}
		of = n.of
	}
	for _, n := range notices {
		fmt.Fprintf(&text, "\n%s\n%s: %s\n%s\n\n%s", strings.Repeat("=", 100), n.of, n.file, strings.Repeat("=", 100), n.text)
	}
	return text.Bytes()
}
