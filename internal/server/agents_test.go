package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/internal/access"
	"jurat/internal/must"
	"jurat/reputation"
	"jurat/verify"
)

// TestAgentIsPublished: strangers read what the log has of an agent once the operator has published it, and its records
// stay private. Withdrawing ends that.
func TestAgentIsPublished(t *testing.T) {
	h := furnish(t)
	const page, doc = "/agents/logistics-agent-v1", "/v1/agents/logistics-agent-v1/reputation"
	for _, public := range []bool{false, true, false} {
		must.Do(t, h.Access().SetPublicAgent(t.Context(), "logistics-agent-v1", public, "its owner agrees", "otto"))
		for _, path := range []string{page, doc} {
			want := map[bool]int{true: 200, false: 401}[public]
			if answer, _ := send(t, http.DefaultClient, "GET", h.URL+path, ""); answer.StatusCode != want {
				t.Errorf("published %v: a stranger gets %s for %s, want %d", public, answer.Status, path, want)
			}
		}
		for _, path := range []string{"/v1/records/" + h.said.Payload.RecordID, "/agents/another", "/v1/agents/another/reputation", doc[:len(doc)-len("reputation")] + "conduct"} {
			if answer, _ := send(t, http.DefaultClient, "GET", h.URL+path, ""); answer.StatusCode != 401 {
				t.Errorf("published %v: a stranger gets %s for %s", public, answer.Status, path)
			}
		}
	}
}

// TestAgentPage: the page and the JSON are of one view, which is kept until the log has something new of the agent.
func TestAgentPage(t *testing.T) {
	h := furnish(t)
	ada := bearer(h.tokens[access.Auditor])
	view := func() (v *reputation.View, text string) {
		t.Helper()
		answer, text := send(t, http.DefaultClient, "GET", h.URL+"/v1/agents/logistics-agent-v1/reputation", "", ada...)
		v = new(reputation.View)
		if err := json.Unmarshal([]byte(text), v, json.RejectUnknownMembers(true)); err != nil || answer.StatusCode != 200 {
			t.Fatal(answer.Status, err)
		}
		return v, text
	}
	another := bearer(h.token(t, "another", access.Agent))
	other := func() {
		post(t, h.URL+"/v1/records", strings.Replace(action, "logistics-agent-v1", "another", 1), another...)
	}
	other() // its key comes into the trust file
	first, text := view()
	if first.Identity.Name != "logistics-agent-v1" || first.Coverage.Known+int64(len(first.LeftOut)) == 0 || len(first.Completeness) != 1 {
		t.Errorf("%s", text)
	}
	other()
	if _, again := view(); again != text {
		t.Errorf("a record of another agent changes the view:\n%s\n%s", text, again)
	}
	post(t, h.URL+"/v1/records", action, bearer(h.tokens[access.Agent])...)
	second, _ := view()
	if second.Completeness[0].Records.Total != first.Completeness[0].Records.Total+1 {
		t.Errorf("after one more record there are %d, before %d", second.Completeness[0].Records.Total, first.Completeness[0].Records.Total)
	}
	answer, page := send(t, http.DefaultClient, "GET", h.URL+"/agents/logistics-agent-v1", "", ada...)
	shows(t, answer, page, 200, "logistics-agent-v1", "personal data", "/v1/agents/logistics-agent-v1/reputation", second.Trust.String(), second.Policy.String(), second.At)
	answer, page = send(t, http.DefaultClient, "GET", h.URL+"/agents/nobody", "", append([]string{"Accept", "text/html"}, ada...)...)
	shows(t, answer, page, 404, "Page not found")
}

// TestConductOfAgent: the lines are bundles that verify, of what the log had at the size that is asked for.
func TestConductOfAgent(t *testing.T) {
	h := furnish(t)
	ada := bearer(h.tokens[access.Auditor])
	const path = "/v1/agents/logistics-agent-v1/conduct"
	answer, text := send(t, http.DefaultClient, "GET", h.URL+path, "", ada...)
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "application/x-ndjson" || !strings.HasSuffix(text, "\n") {
		t.Fatal(answer.Status, answer.Header, text)
	}
	by := must.Get(h.Installation.Trust(t.Context()))(t)
	found := false
	for line := range strings.Lines(text) {
		report, err := verify.File([]byte(line), verify.Options{Trust: by})
		if err != nil || report.Records == 0 || report.Log == nil || report.Log.Origin != h.Installation.Ledger.Origin() {
			t.Errorf("%v, %+v", err, report)
		}
		found = found || strings.Contains(line, h.said.Payload.RecordID)
	}
	if !found {
		t.Errorf("the agent's record is not in it: %s", text)
	}
	size := must.Get(h.Installation.Ledger.Size(t.Context()))(t)
	for query, want := range map[string]int{"?size=0": 200, "?size=-1": 400, "?size=": 200, "?size=x": 400, fmt.Sprintf("?size=%d", size+1000): 400, "?ca=x": 400} {
		answer, text := send(t, http.DefaultClient, "GET", h.URL+path+query, "", ada...)
		if answer.StatusCode != want || query == "?size=0" && text != "" {
			t.Errorf("%s: %s %s", query, answer.Status, text)
		}
	}
	if answer, text := send(t, http.DefaultClient, "HEAD", h.URL+path, "", ada...); answer.StatusCode != 200 || text != "" {
		t.Error(answer.Status, text)
	}
	if answer, _ := send(t, http.DefaultClient, "GET", h.URL+"/v1/agents/nobody/conduct", "", ada...); answer.StatusCode != 404 {
		t.Error(answer.Status)
	}
}
