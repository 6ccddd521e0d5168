package server_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/access"
	"jurat/internal/browsertest"
	"jurat/internal/must"
	"jurat/internal/portal"
)

func TestPortalIsServed(t *testing.T) {
	r := start(t, nil)
	page, body := send(t, http.DefaultClient, "GET", r.URL+"/verify", "")
	must.Equal(t, page.Header.Get("Content-Security-Policy"), portal.Policy)
	for _, name := range []string{portal.ScriptName(), portal.StyleName()} {
		if !bytes.Contains([]byte(body), []byte("/static/portal/"+name)) {
			t.Errorf("the page does not name %s", name)
		}
		answer, _ := send(t, http.DefaultClient, "GET", r.URL+"/static/portal/"+name, "")
		if !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %v", name, answer.Header)
		}
	}
	again, _ := send(t, http.DefaultClient, "GET", r.URL+"/verify", "", "If-None-Match", page.Header.Get("ETag"))
	must.Equal(t, again.StatusCode, http.StatusNotModified)
	answer, file := send(t, http.DefaultClient, "GET", r.URL+"/verify.html", "")
	if file != string(portal.File()) || !strings.HasPrefix(answer.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the file to download has %d bytes, %v", len(file), answer.Header)
	}
	answers(t, http.StatusNotFound, http.DefaultClient, "GET", r.URL+"/static/portal/nothing.js", "")
}

// TestServedPortalInABrowser: the portal uses the server's own trust file only if the reader chooses it, and after it
// has said what that means.
func TestServedPortalInABrowser(t *testing.T) {
	browsertest.Find(t)
	r := start(t, nil)
	record := post(t, r.URL+"/v1/records", action, bearer(r.token(t, "logistics-agent-v1", access.Agent))...)
	doc := must.Get(record.Marshal())(t)
	file := filepath.Join(t.TempDir(), "record.json")
	must.Do(t, os.WriteFile(file, doc, 0o600))
	b := browsertest.Open(t, browsertest.Options{})
	b.Visit(r.URL + "/verify")
	check := func() string {
		t.Helper()
		b.Click("#check")
		b.Wait("document.querySelector('#answers article') && !document.querySelector('#check').disabled")
		return browsertest.Eval[string](b, "document.querySelector('#answers article').dataset.outcome")
	}
	if text := b.Text("#served"); !strings.Contains(text, "It runs the program of whoever operates that server.") {
		t.Errorf("the page does not say who supplies its program: %s", text)
	}
	b.Choose("#files", file)
	must.Equal(t, check(), "not proved")
	b.Click("#use-servers")
	b.Wait("document.querySelector('#fingerprint')")
	if text := b.Text("#trusted"); !strings.Contains(text, "not that the operator is honest") {
		t.Errorf("the page does not say what trusting the server means: %s", text)
	}
	trust := must.Get(r.Installation.Trust(t.Context()))(t)
	if want, err := trust.Fingerprint(); err != nil || b.Text("#fingerprint") != want.String() {
		t.Errorf("fingerprint %q, want %v (%v)", b.Text("#fingerprint"), want, err)
	}
	must.Equal(t, check(), "proved")
	b.Screenshot("portal-served")
	for _, url := range b.Requests() { // and the page sent nothing
		if path, own := strings.CutPrefix(url, r.URL); own && path != "/verify" && !strings.HasPrefix(path, "/static/portal/") && path != "/favicon.ico" || !own && !strings.HasPrefix(url, "blob:") {
			t.Errorf("the page asked for %s", url)
		}
	}
	if problems := b.Problems(); len(problems) > 0 {
		t.Errorf("problems: %q", problems)
	}
}
