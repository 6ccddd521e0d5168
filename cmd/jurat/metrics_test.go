package main

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"jurat/internal/must"
)

// TestMetrics: after a trial, a running server exports what happened in it, and Prometheus' own tool finds no fault.
func TestMetrics(t *testing.T) {
	data := t.TempDir() + "/data"
	at, _, _ := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0", "--jurors", "offline")
	submitter := doing(t, 0, "--data", data, "access", "grant", "Quintus", "submitter", "--reason", "a test", "--by", "tester", "--for", "48h")
	auditor := doing(t, 0, "--data", data, "access", "grant", "Xanthe", "auditor", "--reason", "a test", "--by", "tester")
	status, body := postTo(t, at+"/v1/submissions", submitter, "first", `{"conversation":[{"role":"user","content":"Where is it?"},{"role":"assistant","content":"In Kassel."}]}`)
	if status != http.StatusAccepted {
		t.Fatal(status, body)
	}
	waitUntilOver(t, at, submitter, body)
	request := must.Get(http.NewRequestWithContext(t.Context(), "GET", at+"/metrics", nil))(t)
	request.Header.Set("Authorization", "Bearer "+auditor)
	answer := must.Get(http.DefaultClient.Do(request))(t)
	defer answer.Body.Close()
	doc, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status, err)
	}
	text := string(doc)
	for _, want := range []string{"\njurat_build_info{", "\njurat_access_tokens 2\n", "\njurat_access_tokens_expiring 1\n", "\njurat_juror_answer_seconds_count{model=", "\njurat_reviews_open "} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q", want)
		}
	}
	verdicts := 0
	for _, position := range []string{"safe_pass", "needs_review", "unsafe_fail"} {
		verdicts += strings.Count(text, "\njurat_verdicts_total{position=\""+position+"\"} 1\n")
	}
	if verdicts != 1 {
		t.Errorf("%d verdicts were counted:\n%s", verdicts, text)
	}
	for _, foreign := range []string{"Quintus", "Xanthe", "Kassel", "trial-"} {
		if strings.Contains(text, foreign) {
			t.Errorf("the metrics have %q", foreign)
		}
	}
	check := func(metrics string) ([]byte, error) {
		c := exec.CommandContext(t.Context(), needProgram(t, "promtool"), "check", "metrics")
		c.Stdin = strings.NewReader(metrics)
		return c.CombinedOutput()
	}
	if out, err := check(text); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	if _, err := check(text + "# TYPE jurat_bad counter\njurat_bad 1\n"); err == nil {
		t.Error("promtool takes a counter whose name does not end in _total")
	}
}
