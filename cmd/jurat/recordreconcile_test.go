package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jurat/internal/reconcile"
)

// TestRecordReconcile: what a provider counts is compared with what was sealed: sums, single calls by either id, and what went around the recorder.
func TestRecordReconcile(t *testing.T) {
	var n atomic.Int64
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := n.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", fmt.Sprintf("req_%d", n))
		fmt.Fprintf(w, `{"id":"chatcmpl-%d","object":"chat.completion","model":"wise-2026","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":4,"total_tokens":13}}`, n, 10*n)
	}))
	defer model.Close()
	t.Setenv("OPENAI_BASE_URL", model.URL+"/v1")
	data := filepath.Join(t.TempDir(), "data")
	agent := written(t, `for n in 1 2; do curl -sS "$OPENAI_BASE_URL/chat/completions" -d '{"model":"wise","messages":[{"role":"user","content":"a question"}]}'; done`)
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"--data", data, "record", "run", "--agent", "mia", "--chain", "monday", "--", "sh", agent}, stdio{in: strings.NewReader(""), out: &out, err: &errs}); code != 0 {
		t.Fatalf("%d\n%s\n%s", code, &out, &errs)
	}
	now := time.Now().UTC()
	page := func(requests, in, out int) string {
		return written(t, fmt.Sprintf(`{"object":"page","data":[{"start_time":%d,"end_time":%d,"results":[{"model":"wise-2026","num_model_requests":%d,"input_tokens":%d,"output_tokens":%d}]}],"has_more":false}`,
			now.Add(-time.Hour).Unix(), now.Add(time.Hour).Unix(), requests, in, out))
	}
	if said := doing(t, 0, "--data", data, "record", "reconcile", page(2, 30, 8)); !strings.Contains(said, "All agrees.") || !strings.Contains(said, "not proved: nothing shows") {
		t.Errorf("%s", said)
	}
	sealed := doing(t, 0, "--data", data, "record", "reconcile", "--seal", "--keep-file", "--agent", "mia", page(2, 30, 8))
	_, id, _ := strings.Cut(sealed, "sealed    record ")
	id, _, _ = strings.Cut(id, "\n")
	if said := doing(t, 0, "--data", data, "record", "status"); !strings.Contains(strings.Join(strings.Fields(said), " "), "2 calls in the log, 2 requests at the provider, no difference (record "+id+")") {
		t.Errorf("%s", said)
	}
	trust := written(t, doing(t, 0, "--data", data, "trust"))
	file := written(t, doing(t, 0, "--data", data, "log", "case", "recorded/mia/monday", "--with", id))
	if said := strings.Join(strings.Fields(doing(t, 0, "verify", "--trust", trust, file)), " "); !strings.Contains(said, "2 calls in the log, 2 requests at the provider, no difference; all calls that it counts are in this file") {
		t.Errorf("%s", said)
	}
	if said := doing(t, 0, "--data", data, "record", "reconcile", "--key-held", page(2, 30, 8)); !strings.Contains(said, "stated by the operator: key held by recorder") {
		t.Errorf("%s", said)
	}
	if said := doing(t, 1, "--data", data, "record", "reconcile", page(3, 40, 9)); !strings.Contains(said, "around") || !strings.Contains(said, "counts 3 requests, and the log has 2") {
		t.Errorf("%s", said)
	}
	// Of another agent there is nothing.
	if said := doing(t, 1, "--data", data, "record", "reconcile", "--agent", "ada", page(2, 30, 8)); !strings.Contains(said, "around") {
		t.Errorf("%s", said)
	}
	row := func(id string, in int) string {
		return fmt.Sprintf("%s,%s,wise-2026,%d,4\n", id, now.Format(time.DateTime), in)
	}
	const head = "request_id,time,model,input_tokens,output_tokens\n"
	span := []string{"--zone", "UTC", "--from", now.Add(-time.Hour).Format(time.RFC3339), "--to", now.Add(time.Hour).Format(time.RFC3339)}
	list := func(code int, text string) reconciled {
		t.Helper()
		var r reconciled
		if err := json.Unmarshal([]byte(doing(t, code, append([]string{"--data", data, "record", "reconcile", "--json", written(t, text)}, span...)...)), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := list(0, head+row("req_1", 10)+row("chatcmpl-2", 20)); r.Calls != 2 || len(r.Findings) != 0 || r.File.SHA256.IsZero() || !strings.Contains(r.Log.Checkpoint, "\n") {
		t.Errorf("%+v", r)
	}
	r := list(1, head+row("req_1", 11)+row("req_9", 90))
	kinds := map[reconcile.Kind]int{}
	for _, f := range r.Findings {
		kinds[f.Kind]++
		if f.Kind != reconcile.Around && f.Record.IsZero() {
			t.Errorf("no record: %+v", f)
		}
	}
	if kinds[reconcile.Differs] != 1 || kinds[reconcile.Around] != 1 || kinds[reconcile.Unclaimed] != 1 {
		t.Errorf("%+v", r.Findings)
	}
	_, said := ran(t, exitCannot, "--data", data, "record", "reconcile", written(t, head+row("req_1", -1)), "--zone", "UTC")
	if !strings.Contains(said, "line 2, field input_tokens") {
		t.Errorf("%s", said)
	}
}
