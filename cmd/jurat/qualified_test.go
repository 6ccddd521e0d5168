package main

import (
	"bytes"
	"crypto/x509/pkix"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/listtest"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/trustlist"
)

// A union is a list of the lists and the list of one territory in a folder, and a qualified authority that the second names.
type union struct {
	t                 *testing.T
	folder            string
	journal, operator *listtest.Signer
	authority         *jurattest.TSA
	issue             int
}

func newUnion(t *testing.T) *union {
	authority := must.Get(jurattest.StartTSAOf(pkix.Name{Country: []string{"XA"}, Organization: []string{"Alpha"}, CommonName: "unit 1"}))(t)
	t.Cleanup(authority.Close)
	u := &union{t: t, folder: t.TempDir(), journal: listtest.NewSigner(t, "journal"), operator: listtest.NewSigner(t, "operator"), authority: authority}
	u.write("oj.pem", u.journal.PEM())
	u.publish(listtest.State{Status: trustlist.Granted, From: "2020-01-01T00:00:00Z"})
	return u
}

func (u *union) write(name string, content []byte) string {
	u.t.Helper()
	file := filepath.Join(u.folder, name)
	must.Do(u.t, os.WriteFile(file, content, 0o600))
	return file
}

// publish issues both lists anew, signed by xmlsec1 where that is installed.
func (u *union) publish(states ...listtest.State) {
	u.t.Helper()
	u.issue++
	issued, next := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), time.Now().AddDate(0, 3, 0).UTC().Format(time.RFC3339)
	lotl := listtest.List{Type: trustlist.ListOfLists, Territory: "EU", Sequence: u.issue, Issued: issued, Next: next, URIs: []string{"https://journal.example/"},
		Pointers: []listtest.Pointer{{Location: "https://lists.example/xa.xml", Type: trustlist.NationalList, Territory: "XA", Signers: []*listtest.Signer{u.operator}}}}
	national := listtest.List{Type: trustlist.NationalList, Territory: "XA", Sequence: u.issue, Issued: issued, Next: next, URIs: []string{"https://lists.example/"},
		Services: []listtest.Service{{TSP: "Alpha N.V.", Trade: []string{"Alpha"}, Name: "stamps", Type: trustlist.QualifiedTimeStamps,
			Certificates: [][]byte{u.authority.Certificate.Raw}, States: states}}}
	sign := (*listtest.List).Sign
	if _, err := exec.LookPath("xmlsec1"); err == nil {
		sign = (*listtest.List).SignByXMLSec
	} else if os.Getenv("CI") == "true" {
		u.t.Fatal("xmlsec1 is not installed, and CI must run this test with it")
	}
	u.write("eu.xml", sign(&lotl, u.t, u.journal))
	u.write("xa.xml", sign(&national, u.t, u.operator))
}

// trustEU is a trust file with what the lists say now.
func (u *union) trustEU(name string, more ...string) string {
	u.t.Helper()
	return u.write(name, []byte(doing(u.t, 0, append([]string{"trust", "eu", "--oj", filepath.Join(u.folder, "oj.pem"), "--lists", u.folder}, more...)...)))
}

// saying runs a command, and returns what it says on stderr.
func saying(t *testing.T, want int, args ...string) string {
	t.Helper()
	_, errs := both(t, want, args...)
	return errs
}

func both(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, stdio{in: strings.NewReader(""), out: &out, err: &errs}); code != want {
		t.Fatalf("jurat %s: exit code %d, want %d\n%s\n%s", strings.Join(args, " "), code, want, &out, &errs)
	}
	return out.String(), errs.String()
}

// TestQualifiedTime goes from the Official Journal to a record whose time is proved to be a qualified one: with a list of the lists, a national list
// and a provider that exist here alone.
func TestQualifiedTime(t *testing.T) {
	u := newUnion(t)
	data := filepath.Join(t.TempDir(), "data")
	jurat := func(want int, args ...string) string {
		t.Helper()
		return doing(t, want, append([]string{"--data", data}, args...)...)
	}
	contains := func(text string, wanted ...string) {
		t.Helper()
		for _, w := range wanted {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), w) {
				t.Errorf("want %q in:\n%s", w, text)
			}
		}
	}
	jurat(0, "init")
	eu := u.trustEU("eu.json")
	contains(jurat(0, "tsa", "notary", u.authority.URL, "--qualified", "--trust", eu), `notary is the qualified service "stamps" of "Alpha", by the trusted list of XA number 1`)
	contains(jurat(0, "tsa"), "qualified, by lists until")

	action := func(request string) string {
		return u.write(request+".json", []byte(`{"agent_id":"a","request_id":"`+request+`","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p","response":"r","parameters":{}}`))
	}
	record := u.write("record.json", []byte(jurat(0, "seal", action("one"))+"\n"))
	own := u.write("trust.json", []byte(jurat(0, "trust")))
	reader := u.trustEU("reader.json", "--with", own)
	contains(doing(t, 0, "verify", "--require", "qualified", "--trust", reader, record), `proved qualified`, `of "Alpha", a service that was qualified then, by the trusted list of XA number 1, issued`)
	contains(doing(t, 3, "verify", "--require", "qualified", "--trust", own, record), "no authority has stamped it that the trust file took from trusted lists")
	contains(doing(t, 0, "verify", "--trust", reader, "--at", "2040-01-01T00:00:00Z", record), "not proved qualified", "said until", "qualified is not proved and does not count here")

	// The provider loses its status: what it stamped before stays qualified, and it is not taken any more.
	u.publish(listtest.State{Status: "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/withdrawn", From: time.Now().UTC().Add(-time.Second).Format(time.RFC3339)},
		listtest.State{Status: trustlist.Granted, From: "2020-01-01T00:00:00Z"})
	gone := u.trustEU("gone.json")
	contains(saying(t, 2, "--data", data, "tsa", "again", u.authority.URL, "--qualified", "--trust", gone), `not a qualified time stamp`, `was "withdrawn"`)
	contains(saying(t, 2, "--data", data, "tsa", "own", u.authority.URL, "--qualified", "--trust", own), "no service of trusted lists")
	other := must.Get(jurattest.StartTSAOf(pkix.Name{Country: []string{"XA"}, Organization: []string{"Alpha"}}))(t)
	t.Cleanup(other.Close)
	contains(saying(t, 2, "--data", data, "tsa", "other", other.URL, "--qualified", "--trust", eu), "trying it", "not valid")

	// The operator's copy of the list ends: sealing goes on, the authority is not asked, and the record waits until there is a newer list.
	setting := filepath.Join(data, "outside-authorities", "notary.json")
	text := must.Get(os.ReadFile(setting))(t)
	from := strings.Index(string(text), `"next_update": "`) + len(`"next_update": "`)
	must.Do(t, os.WriteFile(setting, []byte(string(text[:from])+"2026-01-01T00:00:00Z"+string(text[from+len("2026-01-01T00:00:00Z"):])), 0o600))
	u.authority.Asked()
	late, errs := both(t, 0, "--data", data, "seal", action("two"))
	contains(errs, "waiting for notary", "trusted list is out of date since 2026-01-01T00:00:00Z")
	contains(saying(t, 0, "--data", data, "log", "stamp", "--list"), "notary is not asked", "the list of XA, number 1")
	contains(jurat(3, "log", "stamp"), "notary: 0 stamped, 1 still waiting", "out of date")
	if n := u.authority.Asked(); n != 0 {
		t.Errorf("it was asked %d times, though its answer would have been refused", n)
	}
	opened, err := evidence.Open([]byte(late))
	if err != nil || len(opened.Timestamps) != 1 {
		t.Fatalf("%v, %s", err, late)
	}
	u.publish(listtest.State{Status: trustlist.Granted, From: "2020-01-01T00:00:00Z"})
	jurat(0, "tsa", "notary", u.authority.URL, "--qualified", "--trust", u.trustEU("newer.json"))
	contains(jurat(0, "log", "stamp"), "notary: 1 stamped, 0 still waiting")
	contains(doing(t, 0, "verify", "--require", "qualified", "--trust", u.trustEU("reader.json", "--with", own), u.write("late.json", []byte(jurat(0, "log", "prove", opened.Payload.RecordID)+"\n"))), "by the trusted list of XA number 3")

	// A list that the operator's copy does not know yet makes no difference; a token that is not qualified by it is refused on receipt.
	text = must.Get(os.ReadFile(setting))(t)
	must.Do(t, os.WriteFile(setting, bytes.ReplaceAll(text, []byte("Svcstatus/granted"), []byte("Svcstatus/withdrawn")), 0o600))
	contains(saying(t, 0, "--data", data, "seal", action("three")), "waiting for notary", "not a qualified time stamp")
	for _, wrong := range [][]string{{"--root", own}, {"--untried"}} {
		saying(t, 2, append([]string{"--data", data, "tsa", "x", u.authority.URL, "--qualified", "--trust", eu}, wrong...)...)
	}
	saying(t, 2, "--data", data, "tsa", "x", u.authority.URL, "--trust", eu)
	saying(t, 2, "--data", data, "tsa", "x", u.authority.URL, "--qualified")
}
