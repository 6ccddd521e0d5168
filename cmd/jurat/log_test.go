package main

import (
	"bufio"
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
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/client/tiles"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
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
	must.Need(t, err == nil && done.Records == 1 && done.Needed == 2, "%+v, %v", done, err)
	for _, r := range []*evidence.Record{tried, submission} {
		must.Get(i.Ledger.Record(t.Context(), r.Payload.RecordID))(t)
	}
	must.Fail(t, ledger.ErrExpired)(i.Ledger.Record(t.Context(), other.Payload.RecordID))
}

// TestWhatWaitsForAPersonStays: a verdict that a person must decide on keeps its trial, and another one does not.
func TestWhatWaitsForAPersonStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	ran(t, exitUndecided, "--data", dir, "trial", "--jurors", "offline", "../../examples/pharmacy-refill", "--out", filepath.Join(t.TempDir(), "case.jurat"))
	ran(t, exitBad, "--data", dir, "trial", "--jurors", "offline", "../../examples/invoice-inbox", "--out", filepath.Join(t.TempDir(), "case.jurat"))
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: dir}))(t)
	defer i.Close()
	s, err := stays(t.Context(), i.Ledger)
	must.Hold(t, err == nil && len(s.Chains) == 1, "%+v, %v", s, err)
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
	must.Need(t, err == nil && len(left) == 2, "%v %v", left, err)
	excepted := strings.TrimSuffix(left[0].Name(), ".jurat") // ids are in the order of time
	must.Do(t, os.WriteFile(filepath.Join(cases, "trial-0199aabb-0000-7000-8000-000000000000.jurat"), []byte("{}"), 0o600))
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: dir, Now: func() time.Time { return time.Now().AddDate(1, 0, 0) }}))(t)
	d, err := evidence.ParseDraft([]byte(`{"agent_id":"courier","request_id":"r","timestamp":"2024-01-31T16:15:00Z","model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`))
	must.Do(t, err)
	signers := must.Get(i.Keys.Signers(t.Context(), evidence.RoleAgent, "courier"))(t)
	must.Get(i.Ledger.Seal(t.Context(), d, signers))(t) // the log's own time must be a year later
	done, err := i.Expire(t.Context(), installation.ExpiryOrder{Before: time.Now().AddDate(0, 0, 1), Except: []string{excepted}, Reason: "r", By: "b"})
	must.Need(t, err == nil && done.Records != 0 && done.Excepted != 0, "%+v, %v", done, err)
	must.Do(t, i.Close())
	ran(t, 0, "--data", dir, "log", "expire", "--before", "2001-01-01", "--reason", "r", "--by", "b") // as after a crash: it has nothing to remove
	var has []string
	for path, content := range rig.Files(t, dir) {
		must.Hold(t, !bytes.Contains(content, []byte(gone)), "%s still has the text", path)
		if filepath.Dir(path) == cases {
			has = append(has, filepath.Base(path))
		}
	}
	must.Hold(t, len(has) == 2 && slices.Contains(has, excepted+".jurat"),
		"case files: %v, want those of the trial that stays and of the other log", has)
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
	must.Need(t, err == nil && len(files) == 3, "%s, %v", files, err) // two trials, and the records
	again := []string{"reputation", "courier", "--trust", trusted, "--at", at, "--json"}
	must.Contain(t, doing(t, exitUndecided, append(again, files...)...), `"tail"`)
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
		must.Contain(t, from(c.code, between, "--token-file", token, "--json"), c.says)
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

// TestWitnesses: two people run witnesses, and an operator asks both for cosignatures. With the new trust file, the
// order is proved only with both. A third person runs a monitor.
func TestWitnesses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	file := func(name string) string { return filepath.Join(folder, name) }
	write := func(name, text string) string {
		t.Helper()
		must.Do(t, os.WriteFile(file(name), []byte(text), 0o600))
		return file(name)
	}
	jurat := func(want int, args ...string) string {
		return doing(t, want, append([]string{"--data", data}, args...)...) + "\n"
	}

	payload := write("said.json", `{"agent_id":"courier","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`)
	before := write("before.json", jurat(0, "seal", payload))
	plain := write("plain.json", jurat(0, "trust"))
	early := write("early.checkpoint", jurat(0, "log", "checkpoint"))

	urls := map[string]string{}
	for _, name := range []string{"w1", "w2"} {
		key := doing(t, 0, "witness", "--init", "witness.example/"+name, "--dir", file(name))
		must.Equal(t, doing(t, 0, "witness", "--key", "--dir", file(name)), key)
		doing(t, exitCannot, "witness", "--init", "witness.example/"+name, "--dir", file(name))
		url, _, _ := serve(t, "witness", "--dir", file(name), "--addr", "127.0.0.1:0", "--log", plain, "--log", plain)
		jurat(0, "log", "witness", url, "--key", key, "--quorum", map[string]string{"w1": "1", "w2": "2"}[name])
		urls[name] = url
	}
	jurat(exitCannot, "log", "witness", urls["w1"], "--key", "nothing")
	trust := write("trust.json", jurat(0, "trust"))
	must.Contain(t, jurat(0, "log", "witness"), "witness.example/w2", "nothing yet")
	must.Contain(t, doing(t, exitUndecided, "verify", "--trust", trust, before), "0 of the 2")
	must.Contain(t, jurat(0, "log", "witness", "--ask"), "cosigned by 2 of 2 witnesses, 2 are demanded, which counts")
	known := doing(t, 0, "witness", "--list", "--dir", file("w2"))
	must.Hold(t, strings.HasSuffix(known, " 1"), "%v", known)
	record := recordID(t, before)
	proved := write("proved.json", jurat(0, "log", "prove", record))
	must.Contain(t, doing(t, 0, "verify", "--trust", trust, proved), "the reader's 2 witnesses have cosigned it: witness.example/w1")
	doing(t, 0, "verify", "--trust", plain, proved) // a reader who knows no witnesses gets the same answer

	// A server asks its witnesses by itself, and a stranger monitors it.
	url, _, stop := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0", "--public-entries")
	log := url + "/log"
	look := func(want int, says string, more ...string) {
		t.Helper()
		out := doing(t, want, append([]string{"log", "monitor", log, "--trust", trust, "--state", file("state")}, more...)...)
		must.Contain(t, out, says)
	}
	look(0, "cosigned by witness.example/w2")
	jurat(0, "seal", payload)
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if signed := get(t, log+"/checkpoint"); strings.Contains(signed, "\n2\n") && strings.Count(signed, "— ") == 3 {
			break
		} else if time.Now().After(until) {
			t.Fatalf("the witnesses have not cosigned the checkpoint: %s", signed)
		}
	}
	look(0, "1 more than the last time")
	look(0, `"entries": true`, "--json")
	look(0, `"quorum": 2`, "--json")

	// The holder of a record proves with the log that it is still there.
	again := write("again.json", doing(t, 0, "log", "prove", proved, "--log", log, "--trust", trust)+"\n")
	must.Contain(t, doing(t, 0, "verify", "--trust", trust, again), "when it had 2 entries")
	proof := write("proof.json", doing(t, 0, "log", "checkpoint", "--since", early, "--log", log, "--trust", trust)+"\n")
	now := write("now.checkpoint", get(t, log+"/checkpoint"))
	doing(t, 0, "verify", "--trust", trust, "--checkpoint", early, "--consistency", proof, now)
	must.Equal(t, doing(t, 0, "log", "checkpoint", "--since", "1", "--to", now, "--log", log, "--trust", trust)+"\n", read(t, proof))
	forged := strings.Replace(read(t, proved), `"index":0`, `"index":1`, 1)
	doing(t, exitCannot, "log", "prove", write("forged.json", forged), "--log", log, "--trust", trust)
	doing(t, exitCannot, "log", "prove", proved, "--log", log)
	doing(t, exitCannot, "log", "prove", record, "--log", url+"/elsewhere", "--trust", trust)
	doing(t, exitCannot, "log", "prove", record, "--log", log, "--trust", trust) // strangers may not read this record
	token := jurat(0, "access", "grant", "ada", "auditor", "--reason", "a test", "--by", "tester")
	doing(t, 0, "log", "prove", record, "--log", log, "--trust", trust, "--token-file", write("token", token))

	// One witness is removed: the log goes on, and what was proved stays proved.
	jurat(0, "log", "witness", "witness.example/w2", "--remove")
	must.Equal(t, stop(), 0)
	doing(t, exitCannot, "log", "monitor", log, "--trust", trust, "--state", file("state"))
	doing(t, exitCannot, "log", "monitor", log, "--trust", file("nothing"), "--state", file("state"))
	doing(t, exitCannot, "witness", "--dir", file("w1"), "--log", "nothing")
	doing(t, exitCannot, "witness", "--key", "--dir", file("nobody"))

	// A witness that has its key but has lost its database would start from the beginning, and could sign a second
	// history.
	forgetful := file("forgetful")
	doing(t, 0, "witness", "--init", "witness.example/forgetful", "--dir", forgetful)
	doing(t, 0, "witness", "--list", "--dir", forgetful)
	for _, part := range []string{"witness.db", "witness.db-wal", "witness.db-shm"} {
		err := os.Remove(filepath.Join(forgetful, part))
		must.Need(t, err == nil || os.IsNotExist(err), "%v", err)
	}
	doing(t, exitCannot, "witness", "--list", "--dir", forgetful)
	doing(t, exitCannot, "witness", "--dir", forgetful, "--addr", "127.0.0.1:0", "--log", plain)
}

// TestMonitorWithoutQuorum: the monitor distinguishes a log that too few witnesses have cosigned from one that enough
// have cosigned.
func TestMonitorWithoutQuorum(t *testing.T) {
	t.Parallel()
	l := watchedLog(filepath.Join(t.TempDir(), "data"))
	l.grow(t, 3, "as it was")
	i := l.open(t)
	key := doing(t, 0, "witness", "--init", "witness.example/w1", "--dir", t.TempDir()+"/w1")
	doing(t, 0, "--data", string(l), "log", "witness", "http://127.0.0.1:1", "--key", key)
	must.Do(t, i.Close())
	w := newWatcher(t, l)
	w.serve(t.Context(), l)
	w.look("nobody has cosigned", exitUndecided, "NOT WITNESSED: too few witnesses have cosigned the checkpoint: 0 of the 1")
	w.look("for machines", exitUndecided, `"unmet": "too few`, "--json")
	code, out, complaints := w.run("--data", string(l), "log", "witness", "--ask")
	must.Hold(t, code == exitUndecided && strings.Contains(out, "which is too few"), "%d, %s, %s", code, out, complaints)
	code, out, complaints = w.run("--data", string(l), "log", "checkpoint")
	must.Hold(t, code == 0 && strings.Contains(complaints, "0 of the 1 witnesses that are demanded"), "%d, %s, %s", code, out, complaints)
}

func get(t *testing.T, url string) string {
	t.Helper()
	answer := must.Get(http.Get(url))(t)
	defer answer.Body.Close()
	return string(must.Get(io.ReadAll(answer.Body))(t))
}

func read(t *testing.T, file string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(file))(t))
}

// recordID returns the id of the record in a file.
func recordID(t *testing.T, file string) string {
	t.Helper()
	record := must.Get(evidence.Open([]byte(read(t, file))))(t)
	return record.Payload.RecordID
}

// judge builds the program that checks a log with Tessera's implementation of the C2SP specifications. If its module is
// not available, the test is skipped, except in CI.
func judge(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "judge")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Dir = "../../testdata/judge"
	if out, err := build.CombinedOutput(); err != nil {
		must.Need(t, os.Getenv("CI") != "true", "%v\n%s", err, out)
		t.Skipf("the program with Tessera cannot be built: %v\n%s", err, out)
	}
	return file
}

// TestTesseraReadsTheLog: another implementation of C2SP tlog-tiles accepts every tile, entry, proof and cosignature of
// a log.
func TestTesseraReadsTheLog(t *testing.T) {
	t.Parallel()
	program := judge(t)
	l := watchedLog(filepath.Join(t.TempDir(), "data"))
	l.grow(t, 300, "as it was")
	w := newWatcher(t, l)
	folder := t.TempDir() + "/w"
	key := doing(t, 0, "witness", "--init", "witness.example/w1", "--dir", folder)
	at, _, _ := serve(t, "witness", "--dir", folder, "--addr", "127.0.0.1:0", "--log", w.file("trust.json"))
	doing(t, 0, "--data", string(l), "log", "witness", at, "--key", key)
	doing(t, 0, "--data", string(l), "log", "witness", "--ask")
	w.serve(t.Context(), l)
	logKey := logKeyOf(t, w.file("trust.json"))
	out, err := exec.Command(program, "log", w.url, logKey, key).CombinedOutput()
	must.Hold(t, err == nil && strings.Contains(string(out), "300 entries, 1 witnesses"), "%v\n%s", err, out)
	// A check by Tessera is worth something only if Tessera refuses a wrong log.
	good := w.served
	for _, path := range []string{"/log/checkpoint", "/log/tile/0/000", "/log/tile/1/", "/log/tile/entries/001"} {
		w.served = between(good, path, func(doc []byte) []byte { doc[len(doc)/2] ^= 1; return doc })
		out, err := exec.Command(program, "log", w.url, logKey, key).CombinedOutput()
		must.Hold(t, err != nil, "%s was changed: %s", path, out)
	}
}

func logKeyOf(t *testing.T, file string) string {
	t.Helper()
	trust := must.Get(readTrust("--trust", file))(t)
	return trust.Logs[0]
}

// TestTesseraIsWitnessed: jurat's witness cosigns a growing log of Tessera, and package tiles reads that log.
func TestTesseraIsWitnessed(t *testing.T) {
	t.Parallel()
	program, folder, log := judge(t), t.TempDir(), t.TempDir()
	key := doing(t, 0, "witness", "--init", "witness.example/w1", "--dir", folder)
	grow := exec.Command(program, "grow", log)
	var complaints strings.Builder
	grow.Stderr = &complaints
	in := must.Get(grow.StdinPipe())(t)
	out := must.Get(grow.StdoutPipe())(t)
	must.Do(t, grow.Start())
	logKey, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %v\n%s", err, grow.Wait(), &complaints)
	}
	logKey = strings.TrimSpace(logKey)
	at, _, _ := serve(t, "witness", "--dir", folder, "--addr", "127.0.0.1:0", "--log", logKey)
	must.Fail(t, nil)(fmt.Fprintln(in, at, key))
	if err := grow.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &complaints)
	}
	must.Contain(t, doing(t, 0, "witness", "--list", "--dir", folder), "tessera.example/log", " 300")

	s := httptest.NewServer(http.FileServer(http.Dir(log)))
	defer s.Close()
	client := must.Get(tiles.New(tiles.Config{URL: s.URL}))(t)
	signed := must.Get(client.Checkpoint(t.Context()))(t)
	verifier := must.Get(note.NewVerifier(logKey))(t)
	head, err := operator.OpenCheckpoint(signed, verifier)
	must.Need(t, err == nil && head.Size == 300, "%+v, %v", head, err)
	witness := must.Get(operator.ParseWitness(key))(t)
	said, err := operator.Cosignatures(signed, witness)
	must.Hold(t, err == nil && len(said) == 1, "%v, %v", said, err)
	count := 0
	err = client.Tree(t.Context(), head).Entries(0, head.Size, func(int64, []byte) error { count++; return nil })
	must.Hold(t, err == nil && count == 300, "%d entries: %v", count, err)
}
