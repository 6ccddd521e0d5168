package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/erasure"
	"jurat/internal/must"
	"jurat/internal/server"
	"jurat/verify"
)

// TestPublicRecordPage: a stranger opens the page of a record of a public trial. Without a script it says who said it, when
// that is proved, on whose word, what the trial came to with the person first, and how to check it offline; the file that it
// links is proved. The statement names the page's own address.
func TestPublicRecordPage(t *testing.T) {
	h := furnishWith(t, func(c *server.Config) { c.Origins = []string{"https://jurat.example"} })
	mia := h.visit(t, "mia", access.Reviewer)
	judgment := h.submission(t, h.tokens[access.Submitter], h.trial).Verdict.Record
	if answer, page := mia.fill(t, "/reviews/"+judgment, "/reviews/"+judgment, url.Values{"decision": {"unsafe_fail"}, "reason": {"The court knows better."}}); answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s: %s", answer.Status, page)
	}
	path := "/records/" + judgment
	stranger := &visitor{h.running, browser(t)}
	answer, page := stranger.get(t, path)
	_, missing := stranger.get(t, "/records/"+h.said.Payload.RequestID)
	if shows(t, answer, page, 401); strings.ReplaceAll(page, judgment, "") != strings.ReplaceAll(missing, h.said.Payload.RequestID, "") {
		t.Error("before it is public, the page differs from that of a record that does not exist")
	}
	must.Do(t, h.Access().SetPublic(t.Context(), h.trial, true, "all parties agree", "otto"))
	says := map[string][]string{
		"en": {"Proved on the operator&#39;s word", "Existed no later than", "unsafe, fails", "decided by a person", "mia", "the jury:", "safe, passes", "Check it yourself"},
		"ja": {"証明済み", "この記録が属する審理", "遅くともこの時刻に存在", "自分で検証する"},
		"ru": {"Доказано", "Разбирательство, к которому она относится", "Проверить самостоятельно"},
	}
	for lang, texts := range says {
		answer, page = stranger.get(t, path+"?lang="+lang)
		shows(t, answer, page, 200, append(texts, "https://jurat.example"+path, "jurat verify --trust trust.json", `href="`+path+`/bundle"`, `href="/v1/trust"`)...)
	}
	_, page = stranger.get(t, path+"?lang=en")
	if outcome := page[strings.Index(page, `id="outcome"`):]; strings.Index(outcome, "unsafe, fails") > strings.Index(outcome, "safe, passes") {
		t.Error("the person's decision does not come first")
	}
	_, doc := stranger.get(t, path+"/bundle")
	trusted := must.Get(h.Installation.Trust(t.Context()))(t)
	if report, err := verify.File([]byte(doc), verify.Options{Trust: trusted}); err != nil || report.Outcome != verify.Proved || report.Kind != verify.Trial {
		t.Errorf("the file behind the page: %v, %+v", err, report)
	}
}

// TestRecordPageWithholds: of a text that was sealed apart, a stranger sees the signed commitment, and is told so in plain
// words. A reader with a role sees the text.
func TestRecordPageWithholds(t *testing.T) {
	r := start(t, nil)
	const agent, secret = "logistics-agent-v1", "Take the A9."
	must.Do(t, r.Installation.Apart.Set(t.Context(), erasure.Setting{Actor: agent, Pointers: []string{"/response"}}))
	said := post(t, r.URL+"/v1/records", strings.Replace(action, "{", `{"chain_id":"order-18",`, 1), bearer(r.token(t, agent, access.Agent))...)
	must.Do(t, r.Access().SetPublic(t.Context(), "order-18", true, "its owner agrees", "otto"))
	path := "/records/" + said.Payload.RecordID
	commitment := strings.Trim(string(said.Payload.Response), `"`)
	if !strings.HasPrefix(commitment, "hmac-sha256:") || said.Payload.ActionType != evidence.ModelOutput {
		t.Fatalf("%s: %s", said.Payload.ActionType, commitment)
	}
	stranger := &visitor{r, browser(t)}
	answer, page := stranger.get(t, path)
	shows(t, answer, page, 200, commitment, "Sealed apart, and not disclosed here", "Plan the best route.")
	_, bundle := stranger.get(t, path+"/bundle")
	if strings.Contains(page+bundle, secret) {
		t.Error("a stranger sees the text")
	}
	answer, page = r.visit(t, "ada", access.Auditor).get(t, path)
	shows(t, answer, page, 200, secret, "the text shown matches the commitment")
}
