package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jurat/internal/listtest"
	"jurat/trustlist"
)

// TestKeptLists: lists that hold are kept once, with an act for each that verifies, come back byte for byte also from a backup, and a file that
// was changed is not given out.
func TestKeptLists(t *testing.T) {
	u := newUnion(t)
	data := filepath.Join(t.TempDir(), "data")
	jurat := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		return both(t, want, append([]string{"--data", data}, args...)...)
	}
	oj := filepath.Join(u.folder, "oj.pem")
	keep := []string{"lists", "keep", "--oj", oj, "--reason", "monthly", "--by", "A. Person", u.folder}
	read := func(file string) []byte {
		t.Helper()
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	jurat(0, "init")
	first, firstUnion := read(filepath.Join(u.folder, "xa.xml")), read(filepath.Join(u.folder, "eu.xml"))
	u.write("bad.xml", bytes.Replace(first, []byte("Alpha"), []byte("Gamma"), 1))
	out, errs := jurat(0, keep...)
	if !strings.Contains(out, "2 lists hold, 2 kept now") || !strings.Contains(errs, "not kept: XA 1") {
		t.Errorf("%s\n%s", out, errs)
	}
	if out, _ = jurat(0, keep...); !strings.Contains(out, "2 lists hold, 0 kept now") {
		t.Error(out)
	}
	u.publish(listtest.State{Status: trustlist.Granted, From: "2021-01-01T00:00:00Z"})
	u.write("old-xa.xml", first)
	u.write("old-eu.xml", firstUnion)
	if out, _ = jurat(0, keep...); !strings.Contains(out, "4 lists hold, 2 kept now") {
		t.Error(out)
	}
	jurat(2, "lists", "keep", "--oj", u.write("other.pem", u.operator.PEM()), u.folder)

	// The acts are records like others, and the second list is the newest one now.
	trusted := u.write("trust.json", []byte(doing(t, 0, "--data", data, "trust")))
	acts := u.write("lists.jurat", []byte(doing(t, 0, "--data", data, "log", "case", "operator-lists")+"\n"))
	doing(t, 0, "verify", "--trust", trusted, acts)
	if listed, _ := jurat(0, "lists", "show"); strings.Count(listed, "\n") != 5 || !regexp.MustCompile(`(?m)^XA +1 `).MatchString(listed) || !regexp.MustCompile(`(?m)^EU +2 `).MatchString(listed) {
		t.Error(listed)
	}
	if listed, _ := jurat(0, "lists", "show", "--json", "--at", "2015-01-01T00:00:00Z"); strings.TrimSpace(listed) != "[]" {
		t.Error(listed)
	}
	written := filepath.Join(u.folder, "again.xml")
	jurat(2, "lists", "show", "--territory", "XA", "-o", written)
	jurat(0, "lists", "show", "--territory", "XA", "--at", "2040-01-01T00:00:00Z", "-o", written)
	if !bytes.Equal(read(written), read(filepath.Join(u.folder, "xa.xml"))) {
		t.Error("the list comes back changed")
	}
	jurat(2, "lists", "show", "--territory", "XA", "--at", "2040-01-01T00:00:00Z", "-o", written) // it is there already

	copied, restored := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "restored")
	jurat(0, "backup", copied)
	doing(t, 0, "--data", restored, "restore", "--none-later", copied)
	fromCopy := filepath.Join(t.TempDir(), "eu.xml")
	doing(t, 0, "--data", restored, "lists", "show", "--territory", "EU", "--at", "2040-01-01T00:00:00Z", "-o", fromCopy)
	if !bytes.Equal(read(fromCopy), read(filepath.Join(u.folder, "eu.xml"))) {
		t.Error("the restored list is changed")
	}

	files, err := filepath.Glob(filepath.Join(data, "trusted-lists", "*.xml"))
	if err != nil || len(files) != 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		if err := os.WriteFile(file, first[1:], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, errs = jurat(2, "lists", "show", "--territory", "EU", "--at", "2040-01-01T00:00:00Z", "-o", filepath.Join(t.TempDir(), "x"))
	if !strings.Contains(errs, "is damaged") {
		t.Error(errs)
	}
}
