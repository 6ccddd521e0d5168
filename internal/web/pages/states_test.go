package pages

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/court/llm"
	"jurat/internal/court/subject"
	"jurat/internal/test/browsertest"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/docket"
	"jurat/internal/web/words"
	"jurat/jury"
	"jurat/verify"
)

// everyState makes the courtroom, and the pages of records, in each state in which they can be, as far as everyPage does not.
func everyState(t testing.TB, h *jurattest.House) map[string]Page {
	t.Helper()
	silent := &jurattest.Juror{Err: jury.ErrCeiling}
	passes, fails := &jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90)}, &jurattest.Juror{Opinion: jurattest.Opine(jury.UnsafeFail, 10)}
	before := func(method jury.Method, jurors ...jury.Juror) []*evidence.Record {
		return h.TryBefore(t, jurattest.Settings(method), jurors, fails).Records
	}
	failed, absent := before(jury.FinalJudge, fails, fails, passes), before(jury.MajorityVote, passes, &jurattest.Juror{Err: errors.New("no answer")}, passes)
	inconclusive, noJudge := before(jury.MajorityVote, silent, silent, passes), h.TryBefore(t, jurattest.Settings(jury.FinalJudge), []jury.Juror{passes, fails, passes}, silent).Records
	pages := map[string]Page{
		"court, passed":       courtOf(t, offline(t, h, "kitchen-return")),
		"court, failed":       courtOf(t, failed),
		"court, absent":       courtOf(t, absent),
		"court, inconclusive": courtOf(t, inconclusive),
		"court, no judge":     courtOf(t, noJudge),
		"court, agreed":       courtOf(t, decide(t, h, failed, evidence.Approved, nil)),
		"court, left open":    courtOf(t, decide(t, h, absent, evidence.Rejected, nil)),
		"court, overruled":    courtOf(t, decide(t, h, inconclusive, evidence.ApprovedWithModifications, jury.ModifiedVerdict(jury.SafePass))),
		"court, broken":       courtOf(t, slices.Delete(slices.Clone(failed), 3, 4)),
	}
	for name, n := range map[string]int{"asked": 2, "evaluated": 5, "talking": len(failed) - 4, "judged": len(failed) - 1} {
		c := courtOf(t, failed[:n])
		c.State, c.Events, c.Cancel, c.Ahead = api.UnderWay, "/v1/submissions/"+c.ID+"/events", true, 2
		pages["court, "+name] = c
	}
	chain, _ := proved(t, h, absent...)
	_, cut := proved(t, h, slices.Delete(slices.Clone(absent), 2, 3)...)
	unknown := verify.Bundle(h.Bundle(t, absent...), verify.Options{})
	forged := *chain[2]
	forged.Signatures = [][]byte{bytes.Repeat([]byte{1}, len(forged.Signatures[0]))}
	apart := h.Seal(t, evidence.Payload{AgentID: "courier", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "1",
		Prompt: value(t, "What now?"), Response: value(t, "Call the number on file."), Parameters: []byte(`{}`)}, "/prompt", "/response")
	withheld := *apart
	withheld.Disclosures = nil
	for name, page := range map[string]struct {
		record *evidence.Record
		report *verify.Report
		want   verify.Status
	}{"refuted": {chain[0], cut, verify.Refuted}, "forged": {&forged, verify.Record(&forged, h.Options(t)), verify.Refuted}, "not proved": {chain[0], unknown, verify.NotProved},
		"apart": {apart, verify.Record(apart, h.Options(t)), verify.NotProved}, "withheld": {&withheld, verify.Record(&withheld, h.Options(t)), verify.NotProved}} {
		equal(t, page.report.Outcome, page.want)
		pages["sealed, "+name] = NewSealed(page.record, page.report, "https://jurat.example")
	}
	for name, report := range map[string]*verify.Report{"refuted": cut, "not proved": unknown} {
		pages["chain, "+name] = NewChain("trial", chain, report, 1)
	}
	return pages
}

// TestStatesAreWhatTheyAreCalled: the table has the states of trials.
func TestStatesAreWhatTheyAreCalled(t *testing.T) {
	pages := everyPage(t)
	for name, want := range map[string]jury.Position{"court, passed": jury.SafePass, "court": jury.NeedsReview, "court, failed": jury.UnsafeFail, "court, inconclusive": jury.NeedsReview,
		"court, overruled": jury.SafePass, "court, agreed": jury.UnsafeFail, "court, left open": jury.NeedsReview, "decided": jury.UnsafeFail} {
		c := pages[name].(*Court)
		must.Hold(t, c.Outcome != nil && c.Outcome.Position == want, "%s came to %+v, want %s", name, c.Outcome, want)
	}
	for name, want := range map[string]Mark{"court, absent": Degraded, "court, inconclusive": Inconclusive, "court, broken": Broken, "court, no judge": Degraded} {
		c := pages[name].(*Court)
		must.Hold(t, slices.Contains(c.Marks(), want), "%s has the marks %v, want %s", name, c.Marks(), want)
	}
	for _, name := range []string{"court, asked", "court, evaluated", "court, talking", "court, judged", "live"} {
		c := pages[name].(*Court)
		must.Hold(t, c.Live() && (c.Outcome == nil || name == "court, judged"), "%s is not under way", name)
	}
}

// TestStoppedTrialsSayWhy: a trial that was stopped while jurors were asked waits for nobody; its page says who stopped it, and why.
func TestStoppedTrialsSayWhy(t *testing.T) {
	pages := everyPage(t)
	for name, want := range map[string]string{"ended": "submitted by mistake", "stopped": "the process that conducted it has stopped"} {
		c := pages[name].(*Court)
		page := write(t, Frame{Path: "/"}, c)
		must.Hold(t, len(c.Waiting) != 0 && strings.Contains(page, want) && !strings.Contains(page, words.OfPages(words.English)["court.waiting"]),
			"%s, which had asked %v, does not say %q, or waits for somebody", name, c.Waiting, want)
	}
	must.Contain(t, write(t, Frame{Path: "/"}, pages["court, asked"]), words.OfPages(words.English)["court.waiting"])
}

// TestEveryPageInEveryState opens every page of the table on a phone. No page may be wider than the screen. In its short form, they are in Russian,
// whose words are longest. axe-core looks at the English ones, in light colours and in dark ones: other languages have the same elements and colours, and
// that they have every text is for TestPagesAreWellBuilt to see. In the short form it looks at pages that have all kinds of elements among them, at every other one in dark colours.
func TestEveryPageInEveryState(t *testing.T) {
	const phone = 360
	axe := browsertest.FindAxe(t)
	b := browsertest.Open(t, browsertest.Options{Width: phone, Height: 740})
	long := os.Getenv("JURAT_TEST_LONG") != ""
	fits := func(lang words.Lang, address, name string) {
		b.Visit(address + "/" + name)
		wide := browsertest.Eval[int](b, `document.documentElement.scrollWidth`)
		must.Hold(t, wide <= phone, "%s in %s is %d wide", name, lang, wide)
		b.Screenshot(fmt.Sprintf("state-%s-%s", name, lang))
	}
	for _, lang := range words.Langs() {
		if lang == words.English || !long && lang != words.Russian {
			continue
		}
		pages := everyPage(t)
		server := httptest.NewServer(pagesOf(t, lang, pages))
		for name := range pages {
			fits(lang, server.URL, name)
		}
		server.Close()
	}
	pages := everyPage(t)
	server := httptest.NewServer(pagesOf(t, words.English, pages))
	defer server.Close()
	for i, name := range withEveryElement(t, pages, long) {
		b.Dark(!long && i%2 == 1)
		fits(words.English, server.URL, name)
		found := axe.Findings(b)
		if long {
			b.Dark(true)
			found = append(found, axe.Findings(b, browsertest.Contrast)...)
			b.Screenshot("state-" + name + "-dark")
		}
		for _, f := range found {
			t.Errorf("%s: %s", name, f)
		}
	}
}

// withEveryElement returns the names of pages that have among them every kind of element: by its name, class and role. If all is set, it returns all names.
func withEveryElement(t testing.TB, pages map[string]Page, all bool) (list []string) {
	t.Helper()
	kinds := map[string][]string{}
	for name, p := range pages {
		for _, n := range elements(parse(t, write(t, Frame{Path: "/x", Viewer: viewer}, p))) {
			class, _ := attr(n, "class")
			role, _ := attr(n, "role")
			kinds[name] = append(kinds[name], n.Data+"."+class+" "+role)
		}
	}
	seen := map[string]bool{}
	for _, name := range slices.SortedFunc(maps.Keys(kinds), func(a, b string) int { return cmp.Or(len(kinds[b])-len(kinds[a]), strings.Compare(a, b)) }) {
		before := len(seen)
		for _, kind := range kinds[name] {
			seen[kind] = true
		}
		if all || len(seen) > before {
			list = append(list, name)
		}
	}
	return list
}

// pagesOf serves pages under their names.
func pagesOf(t testing.TB, lang words.Lang, pages map[string]Page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if content, kind, is := Asset(r.URL.Path); is {
			w.Header().Set("Content-Type", kind)
			w.Write(content)
			return
		}
		p := pages[strings.TrimPrefix(r.URL.Path, "/")]
		if p == nil { // a browser asks for its own icon
			http.NotFound(w, r)
			return
		}
		var page bytes.Buffer
		must.Want(t, Write(&page, Frame{Lang: lang, Path: "/x", Viewer: viewer}, p), nil)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(page.Bytes())
	})
}

// scheme maps the names of colours in the style sheet to colours.
type scheme map[string]string

var colour = regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`)

// schemes reads the colours for light and dark. Dark uses the light colour where it has none of its own, as browsers do.
func schemes(t *testing.T, css string) map[string]scheme {
	t.Helper()
	light, dark := scheme{}, scheme{}
	before, after, found := strings.Cut(css, "@media (prefers-color-scheme: dark)")
	must.Need(t, found, "the style sheet has no dark colours")
	after, _, _ = strings.Cut(after, "\n}\n")
	for _, m := range colour.FindAllStringSubmatch(before, -1) {
		light[m[1]], dark[m[1]] = m[2], m[2]
	}
	for _, m := range colour.FindAllStringSubmatch(after, -1) {
		dark[m[1]] = m[2]
	}
	return map[string]scheme{"light": light, "dark": dark}
}

// luminance is the relative luminance of WCAG 2.2.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		check(t, err)
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestContrastIsComputedRight(t *testing.T) {
	equal(t, fmt.Sprintf("%.2f", contrast(t, "#ffffff", "#000000")), "21.00")
	equal(t, fmt.Sprintf("%.2f", contrast(t, "#777777", "#ffffff")), "4.48")
}

// uses finds the named colours that properties of a kind use.
func uses(css string, properties string) map[string]bool {
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`[{;\s](?:`+properties+`): ([^;}]*)`).FindAllStringSubmatch(css, -1) {
		for _, v := range regexp.MustCompile(`var\(--([a-z-]+)\)`).FindAllStringSubmatch(m[1], -1) {
			names[v[1]] = true
		}
	}
	return names
}

// TestContrast compares every colour of text with every background in the style sheet, because text of any kind can be
// on any of them. Text on the accent colour has a colour of its own.
func TestContrast(t *testing.T) {
	css := string(assets["jurat.css"].content)
	texts, surfaces := uses(css, "color"), uses(css, "background")
	edges := uses(css, "border|border-color|border-left|outline|text-decoration-color")
	fills := uses(css, "fill")
	for name, s := range schemes(t, css) {
		pairs := 0
		need := func(a, b string, least float64) {
			pairs++
			must.Need(t, s[a] != "" && s[b] != "", "%s: %s or %s is no colour", name, a, b)
			got := contrast(t, s[a], s[b])
			must.Hold(t, got >= least, "%s: %s %s on %s %s has a contrast of %.2f, want %.1f", name, a, s[a], b, s[b], got, least)
		}
		for surface := range surfaces {
			for text := range texts {
				if text != "on-accent" && surface != "accent" {
					need(text, surface, 4.5)
				}
			}
			for edge := range edges {
				if edge != "line" && surface != "accent" { // lines separate parts that are also separate without them
					need(edge, surface, 3)
				}
			}
		}
		need("on-accent", "accent", 4.5)
		for fill := range fills {
			if fill != "track" {
				need(fill, "track", 3)
			}
		}
		must.Hold(t, pairs >= 60, "%s: only %d pairs were found", name, pairs)
	}
}

// TestColoursAreNamed: every colour in the style sheet has a name, so TestContrast sees all of them.
func TestColoursAreNamed(t *testing.T) {
	css := string(assets["jurat.css"].content)
	rest := colour.ReplaceAllString(css, "")
	m := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl|lab|lch|oklch|color-mix)a?\(|: (?:white|black|red|gray|grey)\b|opacity`).FindString(rest)
	must.Hold(t, m == "", "the style sheet has the colour %q outside of the list", m)
}

// A spoken is a call that a recorder saw, in a few words.
type spoken struct {
	request, response string // messages of the request, and the answer's message or an error's body
	change            func(*observed.Act)
	apart             []string // members that are sealed apart and are not disclosed
}

// recordCalls seals calls of a model, each after the one before.
func recordCalls(t testing.TB, h *jurattest.House, calls ...spoken) (records []*evidence.Record) {
	t.Helper()
	for i, c := range calls {
		answer := c.response
		if strings.HasPrefix(answer, `{"role"`) {
			answer = `{"model":"gpt-4o-2024-08-06","choices":[{"index":0,"finish_reason":"stop","message":` + answer + `}],"usage":{"prompt_tokens":1200,"completion_tokens":48,"total_tokens":1248}}`
		}
		began := jurattest.Start.Add(time.Duration(i) * time.Minute)
		a := observed.Act{Payload: evidence.Payload{AgentID: "gate", RequestID: fmt.Sprintf("call-%d", i+1), Timestamp: evidence.FormatTime(began.Add(2 * time.Second)), ChainID: "recorded/support-agent/monday"},
			Observed: evidence.Observed{Began: evidence.FormatTime(began), FirstByteMS: observed.Milliseconds(350 * time.Millisecond), EndedMS: observed.Milliseconds(2100 * time.Millisecond), Agent: "support-agent", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: "openai.chat", Method: "POST", Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete, Upstream: &evidence.Upstream{Origin: "https://api.openai.com"}},
			Request:  observed.Whole(`{"model":"gpt-4o","messages":[`+c.request+`]}`, "application/json"), Response: observed.Whole(answer, "application/json")}
		if c.change != nil {
			c.change(&a)
		}
		draft, err := observed.Draft(a)
		check(t, err)
		p := draft.Payload
		p.Timestamp = evidence.FormatTime(jurattest.Start)
		r := h.Seal(t, p, c.apart...)
		if c.apart != nil {
			r.Disclosures = nil
		}
		records = append(records, r)
	}
	return records
}

// restsOn is what every proof of the fixture rests on.
const restsOn = "42"

// conversationOf makes the page of a chain.
func conversationOf(t testing.TB, from, n int64, events []docket.RecordedAct, records ...*evidence.Record) *Conversation {
	t.Helper()
	part, err := docket.ReadPart("recorded/support-agent/monday", func(yield func(*evidence.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}, docket.PartOrder{From: from, N: n, Prices: llm.Prices{{Model: "gpt-4o", Rates: llm.Rates{Input: 2.5, Output: 10}}}, Open: func(r *evidence.Record) (*evidence.Record, error) { return r, nil }})
	check(t, err)
	part.Events = events
	proofs := map[string]RecordedProof{}
	for i, a := range part.Acts {
		proofs[a.Record] = []RecordedProof{{Status: verify.Proved, Rests: restsOn}, {Status: verify.NotProved, Why: "time is not proved: no time stamp"}}[i%2]
	}
	return NewConversation(recordingLine("recorded/support-agent/monday"), part, int64(len(records)), proofs)
}

func recordingLine(chain string) api.Recording {
	return api.Recording{Chain: chain, Agents: []string{"support-agent"}, Recorders: []string{"gate"}, Models: []string{"gpt-4o-2024-08-06"}, Protocols: []string{"openai.chat"}, Vantages: []evidence.Vantage{evidence.Proxy},
		First: "2026-01-01T00:00:00.000Z", Last: "2026-01-01T00:09:02.000Z", Acts: 9, Calls: 9, Broken: 2, Lost: 1, Missed: 3, Tokens: &api.TokenCounts{Input: 12_000, Output: 480, Calls: 8},
		Trials: []api.TrialLine{{ID: "trial-1", Outcome: jury.UnsafeFail, NeedsPerson: true}, {ID: "trial-2", State: api.UnderWay}}}
}

const (
	parcelAsked = `{"role":"system","content":"You help customers of a parcel service."},{"role":"user","content":"Where is my parcel 4711?"}`
	parcelLook  = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"track_parcel","arguments":"{\"parcel\":\"4711\"}"}}]}`
	parcelThere = `{"role":"assistant","content":"It is at the depot in Kassel."}`
)

func parcelFound() string {
	return `{"role":"tool","tool_call_id":"c1","content":"` + strings.Repeat(`depot Kassel, scanned\n`, 60) + `"}`
}

// longConversation has every state in which a call can be.
func longConversation(t testing.TB, h *jurattest.House) []*evidence.Record {
	t.Helper()
	whole := parcelAsked + "," + parcelLook + "," + parcelFound()
	next := whole + "," + parcelThere + `,{"role":"user","content":"And when does it arrive?"}`
	return recordCalls(t, h,
		spoken{request: parcelAsked, response: parcelLook},
		spoken{request: whole, response: parcelThere},
		spoken{request: next, response: `{"error":{"message":"the model is overloaded","code":"overloaded"}}`, change: func(a *observed.Act) { a.Status = 529 }},
		spoken{request: next, response: `{"role":"assistant","content":"Tomorrow, they s`, change: func(a *observed.Act) { a.Ended, a.RetryOf, a.Attempt = evidence.ClientGone, "call-3", 2 }},
		spoken{request: next, change: func(a *observed.Act) {
			a.Ended, a.Response, a.Status, a.FirstByteMS, a.EndedMS = evidence.LostInCrash, nil, 0, nil, nil
		}},
		spoken{request: next, response: `{"role":"assistant","content":"Tomorrow."}`, apart: []string{"/request_body", "/response_body"}},
		spoken{request: next, response: "???", change: func(a *observed.Act) {
			a.Response.Encoding, a.Response.Decoded, a.Missing = "zstd", evidence.DecodingRefused, []string{"trailers"}
		}},
		spoken{request: `{"role":"user","content":"Use the file."}`, response: `{"role":"assistant","content":"Done."}`, change: func(a *observed.Act) { a.Missing = []string{"a picture"} }},
		spoken{request: next, response: `{"role":"assistant","content":"Tomorrow."}`, change: func(a *observed.Act) {
			a.Vantage, a.Fidelity, a.Protocol, a.Request, a.Response = evidence.Telemetry, evidence.ByAttributes, "a-gateway", nil, nil
			a.ActionType, a.Prompt, a.Payload.Response = evidence.ObservedSpan, []byte(`[{"role":"user","content":"Second hand?"}]`), []byte(`"Yes."`)
		}},
	)
}

func recorderEvents(t testing.TB, h *jurattest.House) (list []docket.RecordedAct) {
	t.Helper()
	digest := evidence.DigestOf(nil)
	for i, e := range []observed.Event{
		{Event: observed.Start, Mode: observed.Closed, Configuration: digest, Version: "1", Vantage: evidence.Proxy}, {Event: observed.Stop, Reason: "asked to"},
		{Event: observed.ModeChanged, Mode: observed.Passing, Reason: "the disk is full"}, {Event: observed.ModeChanged, Mode: observed.Closed, Reason: "there is room again"},
		{Event: observed.Configuration, Configuration: digest, Reason: "asked to"}, {Event: observed.Gap, Reason: "the disk was full", Missed: []observed.Missed{{Agent: "support-agent", Calls: 3, Minute: evidence.FormatTime(jurattest.Start)}}},
		{Event: observed.LostInCrash, Agent: "support-agent", Began: evidence.FormatTime(jurattest.Start), Protocol: "openai.chat", RequestSHA256: digest},
		{Event: observed.ToolDefinitionChanged, Agent: "support-agent", Server: "parcels", Tool: "track_parcel", Before: digest, After: evidence.DigestOf([]byte("x"))},
	} {
		p, err := e.Payload("gate", evidence.FormatTime(jurattest.Start), "recorder/gate")
		check(t, err)
		act, err := docket.RecordedEvent(h.Seal(t, p))
		check(t, err)
		act.Time = evidence.FormatTime(jurattest.Start.Add(time.Duration(i)*time.Minute + 30*time.Second))
		list = append(list, act)
	}
	return list
}

// everyRecording makes the pages of recorded chains in each state.
func everyRecording(t testing.TB, h *jurattest.House) map[string]Page {
	t.Helper()
	records, events := longConversation(t, h), recorderEvents(t, h)
	list := &Recordings{Searched: Searched{Query: url.Values{"agent": {"support"}}}, Events: "/v1/recording-events"}
	untried := recordingLine("recorded/support-agent/tuesday")
	untried.Broken, untried.Lost, untried.Missed, untried.Trials, untried.Tokens, untried.Models = 0, 0, 0, nil, nil, nil
	list.Fill(api.Recordings{Recordings: []api.Recording{recordingLine("recorded/support-agent/monday"), untried}, Next: "17", Index: api.IndexState{Behind: 2}})
	nothing, none := &Recordings{Searched: Searched{Query: url.Values{"agent": {"x"}}}}, &Recordings{}
	nothing.Fill(api.Recordings{})
	none.Fill(api.Recordings{})
	whole := conversationOf(t, 1, 20, events, records...)
	whole.Part(t, records, h)
	whole.Send, whole.Key, whole.Rules, whole.Events, whole.Problem = true, "k", true, "/v1/recording-events", "the queue is full"
	middle := conversationOf(t, 4, 2, nil, records...)
	middle.Send, middle.Panel = true, []string{"gpt-4o", "claude-haiku"}
	alone := conversationOf(t, 2, 1, nil, records...)
	alone.Alone = true
	broken := conversationOf(t, 1, 20, nil, h.Try(t, jury.MajorityVote).Records[0], records[0])
	return map[string]Page{"recordings": list, "recordings, nothing": nothing, "recordings, none": none, "recordings, refused": &Recordings{Searched: Searched{Query: url.Values{"text": {"ab"}}, Refusal: Refusal{Problem: "text: too short"}}},
		"recording": whole, "recording, middle": middle, "recording, act": alone, "recording, fault": broken, "court, recorded": courtOf(t, try(t, h, caseOf(t, records[:2]...)))}
}

// Part marks what was erased.
func (c *Conversation) Part(t testing.TB, records []*evidence.Record, h *jurattest.House) {
	p := docket.ChainPart{}
	for _, s := range c.Steps {
		p.Acts = append(p.Acts, s.RecordedAct)
	}
	p.MarkErased(map[evidence.Digest][]string{records[5].Digest: {"/request_body"}})
	for i := range c.Steps {
		c.Steps[i].RecordedAct = p.Acts[i]
	}
}

// TestConversationSaysHowCallsEnded: every state of a call is said in words, once, and nothing of what was shown before is shown again.
func TestConversationSaysHowCallsEnded(t *testing.T) {
	h := jurattest.New(t)
	page := write(t, Frame{Path: "/", Viewer: viewer}, everyRecording(t, h)["recording"])
	text := content(parse(t, page))
	for want, times := range map[string]int{"Where is my parcel 4711?": 1, "It is at the depot in Kassel.": 1, "The agent went away before the end of the answer.": 1, "No answer came.": 0,
		"The recorder stopped working during the call.": 1, "the model is overloaded": 1, "It is another attempt of the request": 1, "attempt 2": 1,
		"the operator has erased its bytes": 1, "its bytes were sealed apart": 1, "the recorder could not decode it": 1, "Erased from this record: /request_body": 1,
		"Second hand": 2, "trailers": 1, "track_parcel": 3, "first byte after 350 ms": 8, "ended after 2.1 s": 8, "gpt-4o-2024-08-06": 5, "$0.0035": 4, "1200 tokens read, 48 written": 4,
		"3 calls passed without a record": 1, "let everything pass": 1, "the disk is full": 1, "Send to trial": 1, "the queue is full": 1, "Acts 1 to 9 of 9": 1} {
		got := strings.Count(text, want)
		must.Hold(t, got == times, "%q is there %d times, want %d", want, got, times)
	}
	must.Equal(t, strings.Count(page, ">"+restsOn+"<"), 1)
	differing := NewConversation(recordingLine("c"), &docket.ChainPart{From: 1, Acts: []docket.RecordedAct{{Record: "a", Number: 1}, {Record: "b", Number: 2}}}, 2, map[string]RecordedProof{"a": {Rests: "one"}, "b": {Rests: "another"}})
	must.Hold(t, differing.Rests == "" && differing.Steps[0].Rests == "one" && differing.Steps[1].Rests == "another",
		"what proofs rest on is lost: %+v", differing)
	must.Contain(t, page, `<a href="#act-3"><bdi class="said" dir="auto">call-3</bdi></a>`)
	list := write(t, Frame{Path: "/"}, everyRecording(t, jurattest.New(t))["recording"])
	must.Hold(t, !strings.Contains(list, `action="/recordings`), "a stranger gets the form that begins a trial")
}

// TestRecordingsAreLight: the first view of a long conversation is small, and what is left out has a link. A call with very many messages, or
// one very long one, does not make it larger.
func TestRecordingsAreLight(t *testing.T) {
	h := jurattest.New(t)
	var messages []string
	calls := []spoken{}
	for i := range 500 {
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":"question %d, %s"}`, i, strings.Repeat("and on and on ", 15)))
		if i%25 == 24 {
			calls = append(calls, spoken{request: strings.Join(messages, ","), response: parcelThere})
		}
	}
	calls = append(calls, spoken{request: `{"role":"user","content":"` + strings.Repeat("x ", 1<<19) + `"}`, response: parcelThere})
	records := recordCalls(t, h, calls...)
	shipped := func(p Page) int {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write([]byte(write(t, Frame{Path: "/", Viewer: viewer}, p)))
		check(t, err)
		check(t, z.Close())
		return b.Len()
	}
	for name, p := range map[string]*Conversation{"of many calls": conversationOf(t, 1, ActsPerPage, nil, records...), "of a long message": conversationOf(t, 21, 1, nil, records...),
		"of many messages": conversationOf(t, 1, 1, nil, recordCalls(t, jurattest.New(t), spoken{request: strings.Join(messages, ","), response: parcelThere})...)} {
		n := shipped(p)
		must.Hold(t, n <= 100<<10, "the page %s has %d bytes", name, n)
	}
	one := conversationOf(t, 1, 1, nil, recordCalls(t, jurattest.New(t), spoken{request: strings.Join(messages, ","), response: parcelThere})...)
	page := write(t, Frame{Path: "/", Viewer: viewer}, one)
	if !strings.Contains(page, "461 more messages") || strings.Contains(page, "question 250,") || !strings.Contains(page, "question 0,") || !strings.Contains(page, "question 499,") {
		t.Error("the page does not have the first and last messages, or does not say how many are left out")
	}
	one.Alone = true
	must.Contain(t, write(t, Frame{Path: "/", Viewer: viewer}, one), "question 250,")
}

// TestRecordedTextsAreFetched: a text of which the page has the beginning is fetched when the reader asks for it.
func TestRecordedTextsAreFetched(t *testing.T) {
	h := jurattest.New(t)
	long := strings.Repeat("all of it ", 1000) + "to its end"
	records := recordCalls(t, h, spoken{request: `{"role":"user","content":"` + long + `"}`, response: `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":\"` + long + `\"}"}}]}`})
	page, alone := conversationOf(t, 1, 20, nil, records...), conversationOf(t, 1, 1, nil, records...)
	alone.Alone = true
	b := browsertest.Open(t, browsertest.Options{})
	server := httptest.NewServer(pagesOf(t, words.English, map[string]Page{"page": page, strings.TrimPrefix(mustUnescape(t, alone.Steps[0].Path()), "/"): alone}))
	defer server.Close()
	b.Visit(server.URL + "/page")
	for i, at := range []string{`.message .body > .cut`, `.call .cut`} {
		got := browsertest.Eval[bool](b, `document.querySelector("`+at+`").textContent.includes("to its end")`)
		must.Hold(t, !got, "%d: the text is there already", i)
		b.Click(at + ` .rest a`)
		b.Wait(`document.querySelector("` + at + `").textContent.includes("to its end")`)
	}
	for _, problem := range b.Problems() {
		t.Error(problem)
	}
}

func mustUnescape(t testing.TB, path string) string {
	t.Helper()
	plain, err := url.PathUnescape(path)
	check(t, err)
	return plain
}

// hostileRecordings are pages of a recorder that was told hostile things.
func hostileRecordings(t testing.TB) (map[string]Page, map[string][]string) {
	t.Helper()
	h := jurattest.New(t)
	said := func(role, text string) string { return `{"role":"` + role + `","content":` + quoted(t, text) + `}` }
	records := recordCalls(t, h,
		spoken{request: said("system", hostile("system")) + "," + said("user", hostile("user")), response: `{"role":"assistant","content":` + quoted(t, hostile("agent")) + `,"tool_calls":[{"id":"c","type":"function","function":{"name":` + quoted(t, hostile("tool")) +
			`,"arguments":` + quoted(t, hostile("arguments")) + `}}]}`, change: func(a *observed.Act) {
			a.Agent, a.AgentID, a.RetryOf, a.Missing, a.Path = hostileName("agent"), hostileName("gate"), hostileName("retry"), []string{hostileName("missing")}, "/"+markup
			a.Upstream = &evidence.Upstream{Origin: hostileName("origin")}
		}},
		spoken{request: said("critic", hostile("stranger")), response: `{"error":{"message":` + quoted(t, hostile("error")) + `,"code":"x"}}`},
		spoken{request: said("user", strings.Repeat("x", 1<<20)), response: `{"role":"assistant","content":"\ud800"}`})
	page := conversationOf(t, 1, 20, nil, records...)
	page.Recording.Agents, page.Recording.Recorders, page.Chain, page.Problem, page.Send = []string{hostileName("agent"), "b"}, []string{hostileName("gate")}, hostileName("chain"), hostile("problem"), true
	page.Panel = []string{hostile("panel")}
	line := recordingLine(hostileName("chain"))
	line.Agents, line.Models, line.Recorders = []string{hostileName("agent")}, []string{hostileName("model")}, []string{hostileName("gate")}
	list := &Recordings{Searched: Searched{Query: url.Values{"agent": {hostile("query")}, "text": {hostile("text")}}}}
	list.Fill(api.Recordings{Recordings: []api.Recording{line}})
	alone := conversationOf(t, 3, 1, nil, records...)
	alone.Alone = true
	return map[string]Page{"recordings": list, "recording": page, "act": alone}, map[string][]string{"recordings": {hostileName("agent"), hostileName("model"), hostileName("chain")},
		"recording": {hostile("system"), hostile("user"), hostile("agent"), hostile("tool"), hostile("arguments"), hostileName("retry"), hostileName("missing"), hostileName("origin"), hostile("problem"), hostile("panel")},
		"act":       {strings.Repeat("x", 1<<20)}}
}

// TestScrollingALongConversation: the browser scrolls through 500 messages without a task that a reader would notice as a stop, and nothing moves.
func TestScrollingALongConversation(t *testing.T) {
	h := jurattest.New(t)
	var messages []string
	var calls []spoken
	for i := range 500 {
		messages = append(messages, fmt.Sprintf(`{"role":"%s","content":"part %d %s"}`, []string{"user", "assistant"}[i%2], i, strings.Repeat("text ", 40)))
		if i%25 == 24 {
			calls = append(calls, spoken{request: strings.Join(messages, ","), response: fmt.Sprintf(`{"role":"assistant","content":"answer %d"}`, i)})
		}
	}
	b := browsertest.Open(t, browsertest.Options{Width: 360, Height: 740})
	server := httptest.NewServer(pagesOf(t, words.English, map[string]Page{"page": conversationOf(t, 1, ActsPerPage, nil, recordCalls(t, h, calls...)...)}))
	defer server.Close()
	b.Visit(server.URL + "/page")
	n := browsertest.Eval[int](b, `document.querySelectorAll(".message").length`)
	must.Hold(t, n >= 500, "%d messages", n)
	browsertest.Eval[bool](b, `(() => { window.moved = 0; new PerformanceObserver((l) => { for (const e of l.getEntries()) if (!e.hadRecentInput) window.moved += e.value }).observe({ type: "layout-shift", buffered: true });
		window.long = []; new PerformanceObserver((l) => { for (const e of l.getEntries()) window.long.push(Math.round(e.duration)) }).observe({ type: "longtask", buffered: true });
		window.at = 0; window.done = false; const step = () => { scrollTo(0, window.at += 600); if (window.at < document.body.scrollHeight) requestAnimationFrame(step); else window.done = true }; requestAnimationFrame(step); return true })()`)
	b.Wait(`window.done`)
	moved := browsertest.Eval[float64](b, `window.moved`)
	must.Hold(t, moved <= 0.1, "what is shown moved by %v", moved)
	t.Logf("tasks of more than 50 ms while it scrolls: %v", browsertest.Eval[[]int](b, `window.long`))
	wide := browsertest.Eval[int](b, `document.documentElement.scrollWidth`)
	must.Hold(t, wide <= 360, "the page is %d wide", wide)
}

// caseOf makes a case of records.
func caseOf(t testing.TB, records ...*evidence.Record) *subject.Case {
	t.Helper()
	var exhibits []subject.Exhibit
	for _, r := range records {
		exhibits = append(exhibits, subject.NewExhibit(r))
	}
	c, err := subject.FromRecords(nil, exhibits, subject.Verification{Outcome: subject.NotProved})
	check(t, err)
	return c
}
