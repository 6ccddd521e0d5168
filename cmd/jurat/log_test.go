package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/disktest"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/must"
)

// TestExpireLeavesTrials: a trial that is open stays, with the records that it is about; what no trial needs goes.
func TestExpireLeavesTrials(t *testing.T) {
	then := time.Now().AddDate(-1, 0, 0)
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data"), Now: func() time.Time { return then }}
	i, _, err := installation.OpenOrCreate(t.Context(), c)
	must.Do(t, err)
	seal := func(role evidence.Role, name, doc string) *evidence.Record {
		t.Helper()
		d := must.Get(evidence.ParseDraft([]byte(doc)))(t)
		signers := must.Get(i.Keys.Signers(t.Context(), role, name))(t)
		return must.Get(i.Ledger.Seal(t.Context(), d, signers))(t)
	}
	output := func(n int) *evidence.Record {
		return seal(evidence.RoleAgent, "courier", fmt.Sprintf(`{"agent_id":"courier","request_id":"r-%d","timestamp":"2024-01-31T16:15:00Z","model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`, n))
	}
	tried, other := output(1), output(2)
	submission := seal(evidence.RoleSubmitter, "store", fmt.Sprintf(`{"action_type":"submission","agent_id":"store","timestamp":%q,"chain_id":"trial-0199aabb-0000-7000-8000-000000000000","chain_position":1,"case":%q,"response":{},"saw":[%q]}`,
		evidence.FormatTime(then), evidence.DigestOf([]byte("{}")), tried.Digest))
	must.Do(t, i.Close())
	c.Now = nil
	i = must.Get(installation.Open(t.Context(), c))(t)
	defer i.Close()
	output(3)
	done, err := i.Expire(t.Context(), installation.ExpiryOrder{Before: time.Now().AddDate(0, -7, 0), Reason: "r", By: "b",
		Stays: func(ctx context.Context) (*installation.ExpiryStaying, error) { return stays(ctx, i.Ledger) }})
	if err != nil || done.Records != 1 || done.Needed != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	for _, r := range []*evidence.Record{tried, submission} {
		if _, err := i.Ledger.Record(t.Context(), r.Payload.RecordID); err != nil {
			t.Errorf("%s: %v", r.Payload.ActionType, err)
		}
	}
	if _, err := i.Ledger.Record(t.Context(), other.Payload.RecordID); !errors.Is(err, ledger.ErrExpired) {
		t.Errorf("what no trial needs: %v", err)
	}
}

// TestWhatWaitsForAPersonStays: a verdict that a person must decide on keeps its trial, and another one does not.
func TestWhatWaitsForAPersonStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	ran(t, exitUndecided, "--data", dir, "trial", "--jurors", "offline", "../../examples/pharmacy-refill", "--out", filepath.Join(t.TempDir(), "case.jurat"))
	ran(t, exitBad, "--data", dir, "trial", "--jurors", "offline", "../../examples/invoice-inbox", "--out", filepath.Join(t.TempDir(), "case.jurat"))
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: dir}))(t)
	defer i.Close()
	s, err := stays(t.Context(), i.Ledger)
	if err != nil || len(s.Chains) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestExpireLeavesNoCaseFile: no file of the data folder has the text of a trial that expired, not even the case file that the trial left
// there. That of a trial that stays is kept, and so is a file of another log.
func TestExpireLeavesNoCaseFile(t *testing.T) {
	const gone, kept = "the parcel of Anna", "the parcel of Boris"
	dir := filepath.Join(t.TempDir(), "data")
	cases := filepath.Join(dir, installation.CasesFolder)
	for _, text := range []string{kept, gone} {
		file := filepath.Join(t.TempDir(), "case.json")
		must.Do(t, os.WriteFile(file, fmt.Appendf(nil, `[{"role":"user","content":%q},{"role":"assistant","content":"It is on its way."}]`, text), 0o600))
		ran(t, 0, "--data", dir, "trial", "--jurors", "offline", file)
	}
	ran(t, 0, "--data", dir, "trials")
	left, err := os.ReadDir(cases)
	if err != nil || len(left) != 2 {
		t.Fatal(left, err)
	}
	excepted := strings.TrimSuffix(left[0].Name(), ".jurat") // ids are in the order of time
	must.Do(t, os.WriteFile(filepath.Join(cases, "trial-0199aabb-0000-7000-8000-000000000000.jurat"), []byte("{}"), 0o600))
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: dir, Now: func() time.Time { return time.Now().AddDate(1, 0, 0) }}))(t)
	d, err := evidence.ParseDraft([]byte(`{"agent_id":"courier","request_id":"r","timestamp":"2024-01-31T16:15:00Z","model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`))
	must.Do(t, err)
	signers := must.Get(i.Keys.Signers(t.Context(), evidence.RoleAgent, "courier"))(t)
	if _, err := i.Ledger.Seal(t.Context(), d, signers); err != nil { // the log's own time must be a year later
		t.Fatal(err)
	}
	done, err := i.Expire(t.Context(), installation.ExpiryOrder{Before: time.Now().AddDate(0, 0, 1), Except: []string{excepted}, Reason: "r", By: "b"})
	if err != nil || done.Records == 0 || done.Excepted == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	must.Do(t, i.Close())
	ran(t, 0, "--data", dir, "log", "expire", "--before", "2001-01-01", "--reason", "r", "--by", "b") // as after a crash: it has nothing to remove
	var has []string
	for path, content := range disktest.Files(t, dir) {
		if bytes.Contains(content, []byte(gone)) {
			t.Errorf("%s still has the text", path)
		}
		if filepath.Dir(path) == cases {
			has = append(has, filepath.Base(path))
		}
	}
	if len(has) != 2 || !slices.Contains(has, excepted+".jurat") {
		t.Errorf("case files: %v, want those of the trial that stays and of the other log", has)
	}
}

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
