package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/listtest"
	"jurat/internal/must"
	"jurat/trustlist"
)

// TestTrustEU derives a trust file from lists, checks it, and detects that a list has changed.
func TestTrustEU(t *testing.T) {
	journal, operator := listtest.NewSigner(t, "journal"), listtest.NewSigner(t, "operator")
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		file := filepath.Join(folder, name)
		must.Do(t, os.WriteFile(file, content, 0o600))
		return file
	}
	lotl := listtest.List{Type: trustlist.ListOfLists, Territory: "EU", Sequence: 1, Issued: "2026-05-01T00:00:00Z", Next: "2026-10-01T00:00:00Z", URIs: []string{"https://journal.example/"},
		Pointers: []listtest.Pointer{{Location: "https://lists.example/", Type: trustlist.NationalList, Territory: "XA", Signers: []*listtest.Signer{operator}}}}
	national := listtest.List{Type: trustlist.NationalList, Territory: "XA", Sequence: 1, Issued: "2026-05-01T00:00:00Z", Next: "2026-10-01T00:00:00Z",
		Services: []listtest.Service{{TSP: "Alpha", Name: "stamps", Type: trustlist.QualifiedTimeStamps, Certificates: [][]byte{listtest.NewSigner(t, "alpha").Certificate},
			States: []listtest.State{{Status: trustlist.Granted, From: "2020-01-01T00:00:00Z"}}}}}
	oj := write("oj.pem", journal.PEM())
	write("eu.xml", lotl.Sign(t, journal))
	write("xa.xml", national.Sign(t, operator))
	own := write("own.json", []byte(`{"format":"jurat/trust/v1"}`))

	text := doing(t, 0, "trust", "eu", "--oj", oj, "--lists", folder, "--with", own)
	if !strings.Contains(text, "XA Alpha: stamps") {
		t.Fatal(text)
	}
	derived := write("derived.json", []byte(text))
	if again := doing(t, 0, "trust", "eu", "--oj", oj, "--lists", folder, "--with", derived); again != text {
		t.Errorf("derived a second time: %s", again)
	}
	doing(t, 0, "trust", "eu", "--check", derived, "--lists", folder)
	doing(t, 2, "trust", "eu", "--check", derived, "--lists", folder, "--oj", write("other.pem", operator.PEM()))
	doing(t, 2, "trust", "eu", "--check", own, "--lists", folder)
	doing(t, 2, "trust", "eu", "--lists", folder)
	doing(t, 2, "trust", "eu", "--oj", oj, "--lists", folder, "--territory", "XB")
	doing(t, 2, "lists", "fetch", "--oj", oj, "--from", "http://127.0.0.1:1/", folder)

	national.Sequence++
	write("xa-2.xml", national.Sign(t, operator))
	doing(t, 1, "trust", "eu", "--check", derived, "--lists", folder)
}
