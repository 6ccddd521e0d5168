package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/installation"
	"jurat/jury"
	"jurat/property"
	"jurat/verify"
	"jurat/verify/trust"
)

// A build says what this program is.
type build struct {
	Version   string   `json:"version"` // (devel) if it was built from a folder without version control
	Commit    string   `json:"commit,omitempty"`
	Committed string   `json:"committed,omitempty"` // when; the time of building is nowhere, so that two builds are the same to the byte
	Modified  bool     `json:"modified,omitzero"`   // files differed from the commit
	Go        string   `json:"go"`
	Platform  string   `json:"platform"`
	Formats   []string `json:"formats"` // that it writes
}

// formats are the forms of files that others read.
var formats = []string{evidence.Schema, evidence.BundleFormat, verify.ReportFormat, trust.Format, operator.ConsistencyFormat,
	property.Format, jury.RequestFormat, jury.TrialRules, installation.BackupFormat}

// thisBuild is what Go wrote into the program when it was built.
func thisBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Formats: formats}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(info.Main.Version, b.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Committed = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func version() string { return thisBuild().Version }

// lines says it for people.
func (b build) lines() string {
	commit := cmp.Or(b.Commit, "unknown: it was not built in a clone of the repository")
	if b.Committed != "" {
		commit += ", " + b.Committed
	}
	if b.Modified {
		commit += ", and files were changed"
	}
	return fmt.Sprintf("jurat %s\ncommit    %s\nbuilt by  %s for %s\nformats   %s\n", b.Version, commit, b.Go, b.Platform,
		strings.Join(b.Formats, "\n          "))
}

type versionCmd struct {
	jsonFlag
}

// Run prints the version.
func (c *versionCmd) Run(io stdio) error {
	b := thisBuild()
	if c.JSON {
		return io.json(b)
	}
	return io.document([]byte(b.lines()))
}

// versionFlag is --version, which needs no command.
type versionFlag bool

// BeforeReset prints the version, as --help prints the help.
func (versionFlag) BeforeReset(k *kong.Kong) error {
	if _, err := fmt.Fprintf(k.Stdout, "jurat %s\n", version()); err != nil {
		return err
	}
	k.Exit(0)
	return nil
}

// IgnoreDefault has the flag count only where it is given.
func (versionFlag) IgnoreDefault() {}
