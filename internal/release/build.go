package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// settled are the settings of Go that change what it builds: they are the same on every machine, whatever a person has set.
var settled = []string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off",
	"GOAMD64=v1", "GOARM64=v8.0", "LC_ALL=C", "TZ=UTC"}

// command runs a command in the clone and returns what it prints.
func command(ctx context.Context, dir string, env []string, words ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), settled...), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, &errs)
	}
	return out.Bytes(), nil
}

// clone copies what is committed. So files that are not committed are in no release, and Go finds the tag in every kind of checkout.
func clone(ctx context.Context, repository string) (string, error) {
	top, err := command(ctx, repository, nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	from := strings.TrimSpace(string(top))
	if shallow, err := command(ctx, from, nil, "git", "rev-parse", "--is-shallow-repository"); err != nil {
		return "", err
	} else if strings.TrimSpace(string(shallow)) == "true" {
		return "", fmt.Errorf("%s is a shallow clone, which lacks the tags that name the version: run git fetch --unshallow --tags", from)
	}
	if changed, err := command(ctx, from, nil, "git", "status", "--porcelain"); err != nil {
		return "", err
	} else if len(changed) > 0 {
		fmt.Fprintf(os.Stderr, "release: these changes are not committed, and so not in the release:\n%s", changed)
	}
	to, err := os.MkdirTemp("", "jurat-release-*")
	if err != nil {
		return "", err
	}
	if _, err := command(ctx, from, nil, "git", "-c", "core.autocrlf=false", "clone", "-q", "-c", "core.autocrlf=false", "--", from, to); err != nil {
		return "", errors.Join(err, os.RemoveAll(to))
	}
	return to, nil
}

// A program is an executable file and what Go wrote into it.
type program struct {
	file    string
	content []byte
	info    *debug.BuildInfo
}

// A built is what was built for one platform.
type built struct {
	platform  platform
	version   string // by Go's rules: the tag of the commit, or else one with the commit's time and name
	commit    string
	committed time.Time
	programs  []program
}

// name is how the files of a platform begin.
func (b built) name() string {
	return "jurat_" + b.version + "_" + b.platform.os + "_" + b.platform.arch
}

// build builds the platform's programs.
func build(ctx context.Context, source string, p platform) (built, error) {
	b := built{platform: p}
	bin, err := os.MkdirTemp("", "jurat-release-*")
	if err != nil {
		return b, err
	}
	defer os.RemoveAll(bin)
	for _, name := range p.programs() {
		made, err := compile(ctx, source, bin, name, p)
		if err != nil {
			return b, err
		}
		b.programs = append(b.programs, made)
	}
	if err := b.identify(); err != nil {
		return b, err
	}
	tags, err := command(ctx, source, nil, "git", "tag", "--points-at", "HEAD", "v*")
	if err != nil {
		return b, err
	}
	return b, tagged(strings.Fields(string(tags)), b.version)
}

// tagged fails if the commit has tags, and Go took none of them for the version.
func tagged(tags []string, version string) error {
	if len(tags) == 0 || slices.Contains(tags, version) {
		return nil
	}
	return fmt.Errorf("the commit has the tag %s, but Go names it %s: a tag must be of the form v1.2.3, and v0.x or v1.x as long as the module's path says no other", strings.Join(tags, ", "), version)
}

func compile(ctx context.Context, source, bin, name string, p platform) (program, error) {
	made := program{file: name}
	if p.os == "windows" {
		made.file += ".exe"
	}
	path := filepath.Join(bin, made.file)
	if _, err := command(ctx, source, p.env(), "go", "build", "-trimpath", "-buildvcs=true", "-mod=readonly", "-ldflags=-s -w -buildid=", "-o", path, "./cmd/"+name); err != nil {
		return made, err
	}
	var err error
	if made.content, err = os.ReadFile(path); err != nil {
		return made, err
	}
	made.info, err = buildinfo.ReadFile(path)
	return made, err
}

func (p platform) env() []string { return []string{"GOOS=" + p.os, "GOARCH=" + p.arch} }

// identify takes version, commit and time from the programs themselves. A release says of which commit it is, and is of nothing else.
func (b *built) identify() error {
	for _, made := range b.programs {
		said := map[string]string{}
		for _, s := range made.info.Settings {
			said[s.Key] = s.Value
		}
		at, err := time.Parse(time.RFC3339, said["vcs.time"])
		if err != nil || said["vcs.revision"] == "" || said["vcs.modified"] != "false" {
			return fmt.Errorf("%s does not say of which commit it is: commit %q, time %q, modified %q", made.file, said["vcs.revision"], said["vcs.time"], said["vcs.modified"])
		}
		version := made.info.Main.Version
		if strings.ContainsAny(version, "(/\\") || version == "" {
			return fmt.Errorf("%s has no version: %q", made.file, version)
		}
		if b.version != "" && b.version != version {
			return fmt.Errorf("%s has the version %s, and the others %s", made.file, version, b.version)
		}
		b.version, b.commit, b.committed = version, said["vcs.revision"], at.UTC()
	}
	return nil
}

// modules are the modules that any of the programs contains, by path.
func (b built) modules() []*debug.Module {
	var all []*debug.Module
	for _, made := range b.programs {
		all = append(all, made.info.Deps...)
	}
	slices.SortFunc(all, func(a, b *debug.Module) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Version, b.Version))
	})
	return slices.CompactFunc(all, func(a, b *debug.Module) bool { return a.Path == b.Path && a.Version == b.Version })
}
