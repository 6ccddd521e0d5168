package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"golang.org/x/net/html"

	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/incident"
	"jurat/internal/must"
	"jurat/internal/portal/visit"
	"jurat/internal/words"
	"jurat/verify"
)

// A decided trial is one in which a person failed an agent whom the jury had passed.
type decidedTrial struct {
	*house
	mia      *visitor
	judgment string // record id
	file     string // the case file
	report   *verify.Report
}

func decideAgainst(t *testing.T) *decidedTrial {
	t.Helper()
	d := &decidedTrial{house: furnish(t)}
	sam := d.tokens[access.Submitter]
	d.trial = d.submit(t, sam, strings.Replace(parcelCase, "Parcel agent", names[access.Agent], 1)).ID
	d.await(t, sam, d.trial, "over")
	d.mia, d.judgment = d.visit(t, "mia", access.Reviewer), d.submission(t, sam, d.trial).Verdict.Record
	if answer, page := d.mia.fill(t, "/reviews/"+d.judgment, "/reviews/"+d.judgment, url.Values{"decision": {"unsafe_fail"}, "reason": {"It told nobody."}}); answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s: %s", answer.Status, page)
	}
	d.file = d.asked(t, "/v1/submissions/"+d.trial+"/case", access.Auditor)
	trusted := must.Get(d.Installation.Trust(t.Context()))(t)
	var err error
	if d.report, err = verify.File([]byte(d.file), verify.Options{Trust: trusted}); err != nil || d.report.Outcome != verify.Proved {
		t.Fatalf("%v: %+v", err, d.report)
	}
	return d
}

func (d *decidedTrial) asked(t *testing.T, path string, role access.Role) string {
	t.Helper()
	answer, doc := send(t, http.DefaultClient, "GET", d.URL+path, "", bearer(d.tokens[role])...)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", path, answer.Status, doc)
	}
	return doc
}

// page returns what a page says from its element with this text in its address or id to that element's end.
func (d *decidedTrial) page(path, element string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		answer, doc := d.mia.get(t, path)
		shows(t, answer, doc, 200)
		parsed := must.Get(html.Parse(strings.NewReader(doc)))(t)
		for n := range parsed.Descendants() {
			if n.Type == html.ElementNode && (n.Data == element || has(n, "id", element) || has(n, "class", element)) && strings.Contains(textOf(n), "mia") {
				return textOf(n)
			}
		}
		return "nothing that names the person: " + textOf(parsed)
	}
}

func has(n *html.Node, name, value string) bool {
	for _, a := range n.Attr {
		if a.Key == name && a.Val == value {
			return true
		}
	}
	return false
}

// textOf is the text of an element.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// socket is the last event that a watcher hears.
func (d *decidedTrial) socket(t *testing.T) (last string) {
	t.Helper()
	c, _, err := d.dial(t, d.tokens[access.Submitter], d.trial, 0, "")
	must.Do(t, err)
	for {
		_, doc, err := c.Read(t.Context())
		if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
			return last
		}
		must.Do(t, err)
		last = string(doc)
	}
}

// stream is the same of server-sent events.
func (d *decidedTrial) stream(t *testing.T) string {
	t.Helper()
	events := d.asked(t, "/v1/submissions/"+d.trial+"/events", access.Submitter)
	return events[strings.LastIndex(events, "event: "):]
}

// statement is the paragraph of the statement that names the outcome: the first.
func (d *decidedTrial) statement(l words.Lang) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		b := must.Get(evidence.ParseBundle([]byte(d.file)))(t)
		return incident.Site("").Statement(b.Records, d.report, l)[0]
	}
}

// portal is what the portal says of the case file.
func (d *decidedTrial) portal(l words.Lang) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		trusted := d.asked(t, "/v1/trust", access.Auditor)
		v := &visit.Visit{Now: time.Now}
		sources := []visit.Source{{Name: "case.jurat", Size: int64(len(d.file)), From: strings.NewReader(d.file)}, {Name: "trust.json", Size: int64(len(trusted)), From: strings.NewReader(trusted)}}
		if _, err := v.Verify([]byte(`{"files":[0],"trust":1}`), sources); err != nil {
			t.Fatal(err)
		}
		view := must.Get(v.View(0, l))(t)
		return view.Came
	}
}

// TestOneOutcomeEverywhere: after a person decided against the jury, each place that shows what a trial came to shows the
// person's decision first, and the jury's verdict with it.
func TestOneOutcomeEverywhere(t *testing.T) {
	d := decideAgainst(t)
	submission, agent := "/v1/submissions/"+d.trial, "/v1/agents/"+names[access.Agent]+"/reputation"
	const person, jurys = "unsafe, fails", "safe, passes"
	const given, judged = `"position": ?"unsafe_fail"`, `"position": ?"safe_pass"`
	type place struct {
		name        string
		show        func(*testing.T) string
		first, then string // what it says of the person's decision, and of the verdict
	}
	api := func(path string, role access.Role, from string) func(*testing.T) string {
		return func(t *testing.T) string {
			doc := d.asked(t, path, role)
			return doc[max(strings.Index(doc, from), 0):]
		}
	}
	places := []place{
		{"list page", d.page("/", "entry"), person, jurys},
		{"trial page", d.page("/submissions/"+d.trial, "verdict"), person, jurys},
		{"trial page's title", d.page("/submissions/"+d.trial, "html"), person, jurys},
		{"desk", d.page("/reviews", "entry"), person, jurys},
		{"record page", d.page("/records/"+d.judgment, "outcome"), person, jurys},
		{"agent page", d.page("/agents/"+names[access.Agent], "ul"), person, jurys},
		{"reputation", api(agent, access.Auditor, `"allegations"`), `"decided": ?"unsafe_fail"`, judged},
		{"trials found", d.page("/trials", "tbody"), person, jurys},
		{"two trials", d.page("/trials/"+d.trial+"/compare/"+d.trial, "section"), person, jurys},
		{"agent's history", d.page("/agents/"+names[access.Agent], "history"), person, jurys},
		{"records found", d.page("/search?record="+d.judgment, "entry"), person, jurys},
		{"API trials", api("/v1/trials?record="+d.trial, access.Auditor, `"agent"`), `"outcome": ?"unsafe_fail"`, `"verdict": ?"safe_pass"`},
		{"CSV trials", api("/v1/trials.csv?record="+d.trial, access.Auditor, d.trial[:1]), `unsafe_fail`, `safe_pass`},
		{"API comparison", api("/v1/trials/"+d.trial+"/compare/"+d.trial, access.Auditor, `"a"`), `"outcome": ?"unsafe_fail"`, `"verdict": ?"safe_pass"`},
		{"API history", api("/v1/agents/"+names[access.Agent]+"/history", access.Auditor, `"agent"`), `"outcome": ?"unsafe_fail"`, `"verdict": ?"safe_pass"`},
		{"API search", api("/v1/search?record="+d.judgment, access.Auditor, `"hits"`), given, judged},
		{"CSV search", api("/v1/search.csv?record="+d.judgment, access.Auditor, d.judgment), `unsafe_fail`, `safe_pass`},
		{"API list", api("/v1/submissions", access.Auditor, d.trial), given, judged},
		{"API get", api(submission, access.Auditor, `"outcome"`), given, judged},
		{"server-sent event", d.stream, given, judged},
		{"WebSocket event", d.socket, given, judged},
		{"case report", func(t *testing.T) string {
			return string(must.Get(json.Marshal(d.report.TrialOutcome))(t))
		}, given, judged},
	}
	for _, l := range words.Langs() {
		passes, fails := words.Of(l)["sealed_position.safe_pass"], words.Of(l)["sealed_position.unsafe_fail"]
		for name, show := range map[string]func(*testing.T) string{"statement": d.statement(l), "portal": d.portal(l)} {
			places = append(places, place{fmt.Sprintf("%s in %s", name, l), show, regexp.QuoteMeta(fails), regexp.QuoteMeta(passes)})
		}
	}
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			said := p.show(t)
			first, then := regexp.MustCompile(p.first).FindStringIndex(said), regexp.MustCompile(p.then).FindStringIndex(said)
			if first == nil || then == nil || then[0] < first[0] || !strings.Contains(said, "mia") && p.name != "reputation" {
				t.Errorf("it does not say %q first and then %q, by whom: %s", p.first, p.then, said[:min(len(said), 900)])
			}
		})
	}
}
