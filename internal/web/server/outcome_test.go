package server_test

import (
	"archive/zip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"golang.org/x/net/html"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/internal/log/access"
	"jurat/internal/log/erasure"
	"jurat/internal/test/must"
	"jurat/internal/web/portal/visit"
	"jurat/internal/web/server"
	"jurat/internal/web/words"
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
	answer, page := d.mia.fill(t, "/reviews/"+d.judgment, "/reviews/"+d.judgment, url.Values{"decision": {"unsafe_fail"}, "reason": {"It told nobody."}})
	must.Need(t, answer.StatusCode == http.StatusSeeOther, "%s: %s", answer.Status, page)
	d.file = d.asked(t, "/v1/submissions/"+d.trial+"/case", access.Auditor)
	trusted := must.Get(d.Installation.Trust(t.Context()))(t)
	var err error
	d.report, err = verify.File([]byte(d.file), verify.Options{Trust: trusted})
	must.Need(t, err == nil && d.report.Outcome == verify.Proved, "%v: %+v", err, d.report)
	return d
}

func (d *decidedTrial) asked(t *testing.T, path string, role access.Role) string {
	t.Helper()
	answer, doc := send(t, http.DefaultClient, "GET", d.URL+path, "", bearer(d.tokens[role])...)
	must.Need(t, answer.StatusCode == http.StatusOK, "%s: %s: %s", path, answer.Status, doc)
	return doc
}

// page returns what a page says from its element with this text in its address or id to that element's end.
func (d *decidedTrial) page(path, element string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		doc := shown(t, 200)(d.mia.get(t, path))
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
		return words.Site("").Statement(b.Records, d.report, l)[0]
	}
}

// portal is what the portal says of the case file.
func (d *decidedTrial) portal(l words.Lang) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		trusted := d.asked(t, "/v1/trust", access.Auditor)
		v := &visit.Visit{Now: time.Now}
		sources := []visit.Source{{Name: "case.jurat", Size: int64(len(d.file)), From: strings.NewReader(d.file)}, {Name: "trust.json", Size: int64(len(trusted)), From: strings.NewReader(trusted)}}
		_, err := v.Verify([]byte(`{"files":[0],"trust":1}`), sources)
		must.Need(t, err == nil, "%v", err)
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

// canary is the text that is sealed apart in everything that TestPublicIsNotDisclosed makes public.
const canary = "canary-4711"

// opened are public things whose texts are sealed apart.
type opened struct {
	*house
	recorded, chain, trial string           // chains
	step, alone            *evidence.Record // one in the chain, one in no chain
	decision               *evidence.Record // of a person, on the verdict of the trial
	readers                map[string][]string
}

// open seals texts apart and makes all that has them public. Readers are the headers of those who read only what is public, and "own" and "auditor".
func open(t *testing.T) *opened {
	t.Helper()
	o := &opened{house: furnish(t), recorded: "recorded/courier/open", chain: "order-18"}
	for _, s := range []erasure.Setting{{Actor: "owner", Pointers: []string{"/prompt", "/response"}, Provable: map[string]property.Kind{"/metadata/amount": property.Integer}},
		{Actor: "mia", Pointers: []string{"/context"}}} {
		must.Do(t, o.Installation.Apart.Set(t.Context(), s))
	}
	owner := bearer(o.token(t, "owner", access.Agent))
	body := strings.Replace(action, "{", `{"chain_id":"order-18","metadata":{"amount":5},`, 1)
	body = strings.NewReplacer("logistics-agent-v1", "owner", "Plan the best route.", canary, "Take the A9.", canary).Replace(body)
	o.step = post(t, o.URL+"/v1/records", body, owner...)
	o.alone = post(t, o.URL+"/v1/records", strings.Replace(body, `"chain_id":"order-18",`, "", 1), owner...)
	o.record(t, o.recorded, spokenCall(t, 1, canary, canary))
	o.trial = o.house.trial
	verdict := o.submission(t, o.tokens[access.Submitter], o.trial).Verdict.Record
	o.decision = post(t, o.URL+"/v1/records/"+verdict+"/reviews", `{"approval_status":"approved","context":{"note":"`+canary+`"}}`, bearer(o.tokens[access.Reviewer])...)
	for _, chain := range []string{o.recorded, o.chain, o.trial} {
		must.Do(t, o.Access().Publish(t.Context(), access.What{Chain: chain}, true, "a test", "tester"))
	}
	must.Do(t, o.Access().Publish(t.Context(), access.What{Record: o.alone.Payload.RecordID}, true, "a test", "tester"))
	o.readers = map[string][]string{"a stranger": nil, "another agent": bearer(o.token(t, "other-agent", access.Agent)), "the agent that was seen": bearer(o.token(t, "courier", access.Agent)),
		"another submitter": bearer(o.token(t, "sally", access.Submitter)), "a session": {"Cookie", "jurat=" + o.token(t, "sid", access.Submitter)}}
	return o
}

// doors are the addresses at which the public things are read, by the pattern of their route.
func (o *opened) doors() map[string][]string {
	doors := map[string][]string{}
	for _, id := range []string{o.step.Payload.RecordID, o.alone.Payload.RecordID, o.decision.Payload.RecordID} {
		for _, pattern := range []string{"/v1/records/{id}", "/v1/chains/{id}", "/records/{id}", "/records/{id}/bundle", "/records/{id}/openssl", "/chains/{id}", "/reviews/{id}"} {
			doors[pattern] = append(doors[pattern], strings.Replace(pattern, "{id}", id, 1))
		}
		for _, member := range []string{"prompt", "response", "context"} {
			doors["/records/{id}/member"] = append(doors["/records/{id}/member"], "/records/"+id+"/member?name="+member)
		}
	}
	for _, chain := range []string{o.recorded, o.chain, o.trial} {
		for _, pattern := range []string{"/v1/chains/{chain}", "/chains/{chain}", "/v1/recordings/{chain}", "/recordings/{chain}", "/recordings/{chain}/acts/1", "/v1/records?chain={chain}",
			"/v1/search?text=" + canary + "&chain={chain}", "/v1/search.csv?text=" + canary + "&chain={chain}", "/search?text=" + canary + "&chain={chain}"} {
			doors[pattern] = append(doors[pattern], strings.Replace(pattern, "{chain}", url.PathEscape(chain), 1))
		}
	}
	doors["/recordings/{chain}/acts/{number}"] = doors["/recordings/{chain}/acts/1"]
	for _, pattern := range []string{"/v1/agents/{name}/reputation", "/agents/{name}"} {
		doors[pattern] = []string{strings.Replace(pattern, "{name}", "owner", 1), strings.Replace(pattern, "{name}", "courier", 1)}
	}
	doors["/submissions/{id}/messages/{number}"] = []string{"/submissions/" + o.trial + "/messages/1", "/submissions/" + o.trial + "/messages/2"}
	for _, pattern := range []string{"/v1/submissions/{id}", "/v1/submissions/{id}/case", "/v1/submissions/{id}/events", "/ws/submissions/{id}/judge", "/submissions/{id}", "/submissions/{id}?after=2",
		"/submissions/{id}/messages", "/submissions/{id}/messages?find=" + canary, "/v1/trials/{id}/compare/{id}", "/trials/{id}/compare/{id}", "/v1/trials", "/trials", "/v1/recordings"} {
		doors[pattern] = []string{strings.ReplaceAll(pattern, "{id}", o.trial)}
	}
	return doors
}

// read returns what a door gives, with the files in an archive.
func (o *opened) read(t *testing.T, path string, header []string) (status int, text string) {
	t.Helper()
	if strings.HasPrefix(path, "/ws/") {
		return o.listen(t, path, header)
	}
	answer, text := send(t, http.DefaultClient, "GET", o.URL+path, "", header...)
	if answer.Header.Get("Content-Type") != "application/zip" {
		return answer.StatusCode, text
	}
	archive := must.Get(zip.NewReader(strings.NewReader(text), int64(len(text))))(t)
	text = ""
	for _, f := range archive.File {
		in := must.Get(f.Open())(t)
		doc := must.Get(io.ReadAll(in))(t)
		text += string(doc)
	}
	return answer.StatusCode, text
}

// listen returns all messages of a trial that is over.
func (o *opened) listen(t *testing.T, path string, header []string) (status int, text string) {
	t.Helper()
	given := http.Header{}
	for i := 0; i < len(header); i += 2 {
		given.Set(header[i], header[i+1])
	}
	c, answer, err := websocket.Dial(t.Context(), o.URL+path, &websocket.DialOptions{HTTPHeader: given})
	must.Need(t, err == nil, "%v %v", path, err)
	defer c.CloseNow()
	for {
		_, doc, err := c.Read(t.Context())
		if websocket.CloseStatus(err) == websocket.StatusNormalClosure && text != "" {
			return answer.StatusCode, text
		}
		must.Need(t, err == nil, "%v %v", path, err)
		text += string(doc)
	}
}

// TestEveryPublicRouteIsADoor: what strangers may read of public things is among the doors.
func TestEveryPublicRouteIsADoor(t *testing.T) {
	o := open(t)
	among := map[string]bool{}
	bare := func(pattern string) string {
		path, _, _ := strings.Cut(pattern, "?")
		return wildcards.ReplaceAllString(path, "{}")
	}
	for pattern := range o.doors() {
		among[bare(pattern)] = true
	}
	for _, route := range o.Routes() {
		must.Hold(t, route.Who.Strangers != server.WhatPublic || among[bare(route.Pattern())], "%s is no door", route.Name)
	}
}

// TestPublicIsNotDisclosed: those who read something only because it is public get what a stranger gets, at every door. Those with a right of their
// own get the texts.
func TestPublicIsNotDisclosed(t *testing.T) {
	o := open(t)
	auditor := bearer(o.tokens[access.Auditor])
	shown := 0
	for _, paths := range o.doors() {
		seen := false
		for _, path := range paths {
			for name, header := range o.readers {
				_, text := o.read(t, path, header)
				// A search repeats what was searched for: in its form, and in no hit.
				if text = strings.ReplaceAll(text, `value="`+canary+`"`, ""); strings.Contains(strings.ReplaceAll(text, "find="+canary, ""), canary) && !strings.Contains(path, "text=") ||
					strings.Contains(text, `"disclosures"`) || strings.Contains(text, `"text":"`+canary) {
					t.Errorf("%s: %s reads what is sealed apart", path, name)
				}
			}
			_, text := o.read(t, path, auditor)
			seen = seen || strings.Contains(text, canary) && !strings.Contains(path, "text=")
		}
		if seen {
			shown++
		}
	}
	must.Hold(t, shown >= 12, "an auditor reads the texts at %d doors", shown)
	for name, c := range map[string]struct {
		token, path string
	}{"an agent's own record": {o.token(t, "owner", access.Agent), "/v1/chains/order-18"}, "a submitter's own trial": {o.tokens[access.Submitter], "/v1/submissions/" + o.trial + "/case"},
		"a reviewer": {o.tokens[access.Reviewer], "/v1/records/" + o.alone.Payload.RecordID}, "an operator": {o.tokens[access.Operator], "/v1/chains/" + url.PathEscape(o.recorded)}} {
		status, text := o.read(t, c.path, bearer(c.token))
		must.Hold(t, status == http.StatusOK && strings.Contains(text, canary), "%s is not disclosed: %d", name, status)
	}
}

// TestPublicIsNotProved: a proof of what a hidden value is like is for those who may see the value.
func TestPublicIsNotProved(t *testing.T) {
	o := open(t)
	ask := `{"form":"range","pointer":"/metadata/amount","lo":0,"hi":50}`
	for _, id := range []string{o.step.Payload.RecordID, o.alone.Payload.RecordID} {
		for name, header := range o.readers {
			answer, text := send(t, http.DefaultClient, "POST", o.URL+"/v1/records/"+id+"/properties", ask, header...)
			must.Hold(t, answer.StatusCode >= 400 && !strings.Contains(text, `"properties"`), "%s has it proved: %s %s", name, answer.Status, text)
		}
		answers(t, http.StatusOK, http.DefaultClient, "POST", o.URL+"/v1/records/"+id+"/properties", ask, bearer(o.token(t, "owner", access.Agent))...)
	}
}

// TestPublicIsNotTriedInClear: a submitter who reads a chain only because it is public puts it before the jury as a stranger sees it. So the record
// of the trial has no text that is sealed apart.
func TestPublicIsNotTriedInClear(t *testing.T) {
	o := open(t)
	sally := o.token(t, "sally", access.Submitter)
	begun := map[string]string{}
	for name, body := range map[string]string{"recorded": `{"recorded":"` + o.recorded + `"}`, "chainId": `{"chainId":"` + o.recorded + `"}`, "an agent's chain": `{"chainId":"order-18"}`} {
		begun[name] = o.submit(t, sally, body).ID
	}
	form := url.Values{"key": {"k"}}.Encode()
	answer, text := send(t, browser(t), "POST", o.URL+"/recordings/"+url.PathEscape(o.recorded)+"/trial", form, append(bearer(sally), "Content-Type", "application/x-www-form-urlencoded")...)
	must.Need(t, answer.StatusCode == http.StatusSeeOther, "%v %v", answer.Status, text)
	begun["the form"] = strings.TrimPrefix(answer.Header.Get("Location"), "/submissions/")
	for name, id := range begun {
		o.await(t, sally, id, api.Over)
		for _, header := range [][]string{bearer(sally), bearer(o.tokens[access.Auditor])} {
			_, text := o.read(t, "/v1/submissions/"+id+"/case", header)
			must.Hold(t, !strings.Contains(text, canary), "%s: the record of the trial has the text in clear", name)
		}
	}
	whole := o.submit(t, o.tokens[access.Operator], fmt.Sprintf(`{"recorded":%q}`, o.recorded)).ID
	o.await(t, o.tokens[access.Operator], whole, api.Over)
	_, text = o.read(t, "/v1/submissions/"+whole+"/case", bearer(o.tokens[access.Operator]))
	must.Hold(t, strings.Contains(text, canary), "the operator's trial has not read the texts")
}
