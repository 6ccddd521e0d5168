package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"jurat/internal/must"
)

// TestReputationOfAServer: an auditor computes from a server's log what the operator computes on its machine, byte for byte. A server that
// leaves out a judgment is refuted, one whose answer breaks off or is no bundle decides nothing, and a caller who may not read is told so.
func TestReputationOfAServer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	jurat := func(want int, args ...string) string {
		t.Helper()
		return doing(t, want, append([]string{"--data", data}, args...)...) + "\n"
	}
	log := watchedLog(data)
	trusted := filepath.Join(folder, "trust.json")
	for _, text := range []string{"one", "two"} {
		log.grow(t, 3, text) // by the courier
		write(t, trusted, jurat(0, "trust"))
		jurat(0, "reputation", "courier", "--out", filepath.Join(folder, text))
		jurat(0, "trial", filepath.Join(folder, text, "records-0001.jurat"), "--trust", trusted, "--jurors", "offline")
	}
	log.growBy(t, "another", 40, "filler")
	token := write(t, filepath.Join(folder, "token"), jurat(0, "access", "grant", "ada", "auditor", "--reason", "a test", "--by", "tester"))
	submitter := write(t, filepath.Join(folder, "other-token"), jurat(0, "access", "grant", "zoe", "submitter", "--reason", "a test", "--by", "tester"))
	server, _, _ := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0")

	const at = "2036-01-01T00:00:00Z"
	from := func(want int, server string, more ...string) string {
		t.Helper()
		return doing(t, want, append([]string{"reputation", "courier", "--log", server + "/log", "--trust", trusted, "--at", at}, more...)...) + "\n"
	}
	here := func() string {
		t.Helper()
		return jurat(0, "reputation", "courier", "--trust", trusted, "--at", at, "--json")
	}
	out := filepath.Join(folder, "out")
	if there, here := from(0, server, "--token-file", token, "--json", "--out", out), here(); there != here {
		t.Errorf("%s, and on the operator's machine %s", there, here)
	}
	files, err := filepath.Glob(filepath.Join(out, "*.jurat"))
	if err != nil || len(files) != 3 { // two trials, and the records
		t.Fatalf("%s, %v", files, err)
	}
	again := []string{"reputation", "courier", "--trust", trusted, "--at", at, "--json"}
	if text := doing(t, exitUndecided, append(again, files...)...); !strings.Contains(text, `"tail"`) {
		t.Error(text)
	}
	from(exitCannot, server, "--token-file", token, "--json", "--out", out) // the folder is there
	from(exitCannot, server, "--json")
	from(exitCannot, server, "--token-file", submitter)
	from(exitCannot, server, "--token-file", token, files[0])
	doing(t, exitCannot, "reputation", "nobody", "--log", server+"/log", "--trust", trusted, "--token-file", token)
	doing(t, exitCannot, "reputation", "courier", "--log", server+"/log", "--token-file", token)
	doing(t, exitCannot, "reputation", "courier", "--token-file", token)

	var how atomic.Pointer[func([]byte) []byte]
	between := changing(t, server, &how)
	for _, c := range []struct {
		name string
		code int
		says string
		how  func([]byte) []byte
	}{
		{"nothing", 0, here(), func(doc []byte) []byte { return doc }},
		{"a trial is left out", exitBad, `"dropped"`, func(doc []byte) []byte { return doc[bytes.IndexByte(doc, '\n')+1:] }},
		{"it breaks off", exitCannot, "", func(doc []byte) []byte { return doc[:len(doc)-len(doc)/3] }},
		{"it is no bundle", exitCannot, "", func([]byte) []byte { return []byte("{\"format\":\"jurat/bundle/v1\"}\n") }},
		{"it is empty", exitBad, `"dropped"`, func([]byte) []byte { return nil }},
	} {
		how.Store(&c.how)
		if text := from(c.code, between, "--token-file", token, "--json"); !strings.Contains(text, c.says) {
			t.Errorf("%s: %s", c.name, text)
		}
	}
	elsewhere := filepath.Join(folder, "elsewhere")
	doing(t, 0, "--data", elsewhere, "init")
	write(t, trusted, doing(t, 0, "--data", elsewhere, "trust")+"\n") // of another log
	from(exitCannot, server, "--token-file", token)
}

// changing is a server before another one, which changes what that shows of agents.
func changing(t *testing.T, server string, how *atomic.Pointer[func([]byte) []byte]) (address string) {
	t.Helper()
	to := must.Get(url.Parse(server))(t)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ModifyResponse: func(answer *http.Response) error {
		if !strings.Contains(answer.Request.URL.Path, "/conduct") {
			return nil
		}
		doc, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			return err
		}
		doc = (*how.Load())(doc)
		answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(doc)), int64(len(doc))
		answer.Header.Set("Content-Length", strconv.Itoa(len(doc)))
		return nil
	}}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL
}
