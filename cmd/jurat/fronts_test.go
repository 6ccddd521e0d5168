package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/must"
)

// TestFrontsAgree: the command and the server give the same answer to the same act. Each has an installation of its own,
// which gets the same acts in the same order.
func TestFrontsAgree(t *testing.T) {
	said := func(id, more string) string {
		return `{"record_id":"` + id + `","agent_id":"courier","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"m-1",
			"prompt":"p","response":"r","parameters":{}` + more + `}`
	}
	decided := func(id, by, on, more string) string {
		return `{"record_id":"` + id + `","action_type":"human_review","reviewer_id":"` + by + `","original_response_id":"` + on + `",
			"approval_status":"approved","timestamp":"2026-01-31T16:20:00Z"` + more + `}`
	}
	const one, two, three, four = "019c1500-0000-7000-8000-000000000001", "019c1500-0000-7000-8000-000000000002",
		"019c1500-0000-7000-8000-000000000003", "019c1500-0000-7000-8000-000000000004"
	acts := []struct {
		what, by, payload string
		taken             bool
	}{
		{"an answer", "courier", said(one, ""), true},
		{"the same again", "courier", said(one, ""), true},
		{"another under its id", "courier", said(one, `,"context":"another"`), false},
		{"an agent in a trial", "courier", said(two, `,"chain_id":"trial-019c1500-0000-7000-8000-0000000000ff"`), false},
		{"an act of a juror", "courier", `{"action_type":"juror_evaluation","agent_id":"courier","response":{}}`, false},
		{"no number", "courier", said(two, `,"chain_position":"first"`), false},
		{"a person's decision", "noa", decided(three, "noa", one, ""), true},
		{"a decision that saw something else", "noa", decided(four, "noa", one, `,"saw":["`+strings.Repeat("ab", 32)+`"]`), false},
		{"a decision on nothing that is here", "noa", decided(four, "noa", two, ""), true},
	}
	served, alone := t.TempDir()+"/served", t.TempDir()+"/alone"
	at, _, _ := serve(t, "--data", served, "serve", "--addr", "127.0.0.1:0")
	tokens := map[string]string{}
	for _, who := range [][2]string{{"courier", "agent"}, {"noa", "reviewer"}} {
		tokens[who[0]] = doing(t, 0, "--data", served, "access", "grant", who[0], who[1], "--reason", "a test", "--by", "tester")
	}
	doing(t, 0, "--data", alone, "init")
	for _, folder := range []string{served, alone} {
		doing(t, 0, "--data", folder, "apart", "set", "courier", "/prompt")
	}
	for _, act := range acts {
		status, answer := postTo(t, at+"/v1/records", tokens[act.by], "", act.payload)
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"--data", alone, "seal"}, stdio{in: strings.NewReader(act.payload), out: &out, err: &errs})
		if (status == http.StatusCreated) != act.taken || (code == 0) != act.taken {
			t.Errorf("%s: the server answers %d, the command %d\n%s\n%s", act.what, status, code, answer, &errs)
			continue
		}
		if act.taken {
			sameRecord(t, act.what, answer, out.String())
			continue
		}
		var problem api.Problem
		must.Do(t, json.Unmarshal([]byte(answer), &problem))
		_, reason, _ := strings.Cut(problem.Detail, ": ") // the server's answer begins with the kind of problem, for which the command has exit codes
		if !strings.Contains(errs.String(), reason) {
			t.Errorf("%s: the server answers\n%s\nand the command\n%s", act.what, problem.Detail, &errs)
		}
	}
}

// sameRecord compares the records that two installations made of one draft. Keys and commitments differ.
func sameRecord(t *testing.T, what, one, other string) {
	t.Helper()
	a, err := evidence.Open([]byte(one))
	if err != nil {
		t.Fatal(what, err)
	}
	b, err := evidence.Open([]byte(other))
	if err != nil {
		t.Fatal(what, err)
	}
	a.Payload.Signers, b.Payload.Signers = nil, nil
	a.Payload.Saw, b.Payload.Saw = a.Payload.Saw[:0], b.Payload.Saw[:0]
	a.Payload.Prompt, b.Payload.Prompt = nil, nil
	first, _ := json.Marshal(a.Payload)
	second, _ := json.Marshal(b.Payload)
	if string(first) != string(second) || len(a.Disclosures) != len(b.Disclosures) {
		t.Errorf("%s:\n%s\n%s", what, first, second)
	}
}
