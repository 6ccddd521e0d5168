package pages

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/court/juror/rules"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/words"
	"jurat/jury"
	"jurat/verify"
)

// panel is one for all tests: it keeps what it found in an example.
var panel = sync.OnceValues(func() ([]jury.Juror, jury.Juror) { return rules.Jurors(nil) })

// offline tries an example before the rule jurors.
func offline(t testing.TB, h *jurattest.House, example string) []*evidence.Record {
	t.Helper()
	c, err := subject.Load(filepath.Join("..", "..", "..", "examples", example))
	check(t, err)
	return try(t, h, c)
}

func try(t testing.TB, h *jurattest.House, c *subject.Case) []*evidence.Record {
	t.Helper()
	return tryIn(t, h, c, 3)
}

// tryIn tries a case with so many rounds of discussion at most.
func tryIn(t testing.TB, h *jurattest.House, c *subject.Case, rounds int) []*evidence.Record {
	t.Helper()
	jurors, judge := panel()
	seats, judgeSeat := rules.Seats()
	done, err := trial.Run(context.Background(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Random: h.Random, Jurors: jurors, Judge: judge,
		Submitter: "Ines Duarte",
		Settings: jury.Settings{Seats: seats, Judge: &judgeSeat, Rubric: jury.DefaultRubric(), Collaborative: true, MaxRounds: rounds,
			Threshold: 2, Method: jury.FinalJudge}}, c)
	check(t, err)
	return done.Records
}

func courtOf(t testing.TB, records []*evidence.Record) *Court {
	t.Helper()
	c, err := NewCourt(records)
	check(t, err)
	return c
}

// Line returns the trial as one line of a list. Its agent has its whole name, which the log's index cuts.
func (c *Court) Line() Summary {
	s := Summary{c.Summary, c.State}
	s.Agent = c.Title()
	return s
}

// proved returns records with their proofs, and the report on them under the House's own trust file.
func proved(t testing.TB, h *jurattest.House, records ...*evidence.Record) ([]*evidence.Record, *verify.Report) {
	t.Helper()
	b := h.Bundle(t, records...)
	return b.Records, verify.Bundle(b, h.Options(t))
}

// provedOne returns one of a trial's records with its proof, and the report on the trial.
func provedOne(t testing.TB, h *jurattest.House, r *evidence.Record) (*evidence.Record, *verify.Report) {
	t.Helper()
	chain, err := h.Ledger.Chain(t.Context(), r.Payload.ChainID)
	check(t, err)
	_, report := proved(t, h, chain...)
	one, err := h.Ledger.ProveOne(t.Context(), r)
	check(t, err)
	return one, report
}

// sealedOf makes the page of one of a trial's records.
func sealedOf(t testing.TB, h *jurattest.House, r *evidence.Record) *Sealed {
	t.Helper()
	one, report := provedOne(t, h, r)
	return NewSealed(one, report, "https://jurat.example")
}

func write(t testing.TB, f Frame, p Page) string {
	t.Helper()
	if f.Lang == "" {
		f.Lang = words.English
	}
	var b bytes.Buffer
	check(t, Write(&b, f, p))
	return b.String()
}

// titleOf returns the title of a page's window, in English.
func titleOf(t testing.TB, p Page) string {
	t.Helper()
	return strings.TrimSuffix(texts(parse(t, write(t, Frame{}, p)), "title", "")[0], " · jurat")
}

func check(t testing.TB, err error) {
	t.Helper()
	must.Do(t, err)
}

func equal(t testing.TB, got, want any) {
	t.Helper()
	must.Equal(t, cmp.Diff(want, got), "")
}

var viewer = &Viewer{Name: "Reika Mori", Form: "form-key", Submits: true, Reviews: true, Oversees: true, Operates: true}

// several is the desk after a form for several cases, of which one was refused.
func several(s Summary) *Desk {
	d := NewDesk([]Summary{s}, nil, "Mia Brandt")
	d.May, d.Assigns, d.Problem = true, true, "no case is marked"
	d.Answer([]Result{{Record: "a-verdict", Subject: "courier", Did: Assign, To: "Ines Duarte"}, {Record: s.Outcome.Verdict.Record, Problem: "it moved on"}},
		Several{Draft: Draft{Reason: "Both were told."}, Decision: Assign, To: "Ines Duarte", Marked: []string{d.Items[0].Seen()}})
	return d
}

// tableOfPages has the pages that are made once, for all tests: no test changes them.
var tableOfPages map[string]Page

// everyPage returns one of each page, from real records.
func everyPage(t testing.TB) map[string]Page {
	t.Helper()
	if tableOfPages == nil {
		tableOfPages = makeEveryPage(t)
	}
	return tableOfPages
}

func makeEveryPage(t testing.TB) map[string]Page {
	t.Helper()
	h := jurattest.New(t)
	records := offline(t, h, "pharmacy-refill")
	court := courtOf(t, records)
	live := courtOf(t, records[:len(records)*3/5])
	live.State, live.Events = api.UnderWay, "/v1/submissions/"+live.ID+"/events"
	stopped := courtOf(t, records[:4])
	stopped.Reason, stopped.Resume = "the process that conducted it has stopped", true
	stopped.Next, stopped.Cancel = stopped.Submitted, true
	ended := courtOf(t, records[:4])
	ended.State, ended.Reason, ended.By, ended.Resume = api.Cancelled, "submitted by mistake", "Reika Mori", true
	chain, report := proved(t, h, records...)
	third, seen := provedOne(t, h, records[3])
	judgment := records[len(records)-2]
	review, err := NewReview(judgment)
	check(t, err)
	review.May, review.Subject, review.Trial, review.Court, review.Next = true, court.Title(), court.ID, court, judgment.Payload.RecordID
	review.Waits, review.Taken = true, &trial.Change{TrialEventBody: operator.TrialEventBody{Reviewer: "Reika Mori", By: "Otto", Reason: "she knows medicines"}, At: time.Unix(1e9, 0)}
	changed, err := NewReview(h.Seal(t, evidence.Payload{AgentID: "courier", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "1",
		Prompt: value(t, "What now?"), Response: value(t, "Call the number that we have on file for the patient."), Parameters: []byte(`{}`)}))
	check(t, err)
	changed.May, changed.Subject = true, court.Title()
	changed.Draft.Text = "Only after the phone number is really changed. " + changed.Draft.Text[:len(changed.Draft.Text)-20]
	changed.Draft.Reason = "The patient would miss the message."
	changed.Compare()
	own, err := NewReview(judgment)
	check(t, err)
	own.Own = true
	untaken, err := NewReview(judgment)
	check(t, err)
	untaken.May, untaken.Waits = true, true
	all := map[string]Page{
		"home": &Home{Trials: []Summary{live.Line(), court.Line()}, Rules: true,
			Examples: []Example{{"kitchen-return", "Kitchen shop"}, {"invoice-inbox", "Payables"}}},
		"empty":    &Home{Panel: []string{"gpt-4o", "claude-haiku", "gemini-flash"}, Refusal: Refusal{Problem: "the card is no JSON"}},
		"hidden":   &Home{Hidden: true},
		"court":    court,
		"decided":  courtOf(t, decide(t, h, records, evidence.ApprovedWithModifications, jury.ModifiedVerdict(jury.UnsafeFail))),
		"live":     live,
		"ended":    ended,
		"stopped":  stopped,
		"queued":   courtOf(t, records[:1]),
		"sealed":   NewSealed(third, seen, "https://jurat.example"),
		"chain":    NewChain(court.ID, chain, report, 1),
		"desk":     NewDesk([]Summary{court.Line()}, nil, "Ines Duarte"),
		"several":  several(court.Line()),
		"review":   review,
		"changed":  changed,
		"own":      own,
		"untaken":  untaken,
		"sign-in":  &SignIn{Refusal: Refusal{Problem: "the token has expired"}, Next: "/reviews", OpenID: "/sign-in/openid"},
		"link":     &SignIn{Link: "LINKSECRET"},
		"trouble":  &Trouble{Code: 404, Detail: "there is no record 17; see /"},
		"chain-op": NewChain("none", nil, &verify.Report{}, 1),
	}
	maps.Copy(all, everyWhole(t, h))
	maps.Copy(all, everyState(t, h))
	maps.Copy(all, everyAgent(t))
	maps.Copy(all, everyRecording(t, h))
	maps.Copy(all, everyAccess(t))
	maps.Copy(all, everySearch(court, live))
	return all
}

func parse(t testing.TB, page string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	check(t, err)
	return doc
}

func elements(doc *html.Node) (list []*html.Node) {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			list = append(list, n)
		}
	}
	return list
}

func attr(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func is(n *html.Node, names ...string) bool { return slices.Contains(names, n.Data) }

func hasClass(n *html.Node, class string) bool {
	classes, _ := attr(n, "class")
	return slices.Contains(strings.Fields(classes), class)
}

func content(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// flaws returns what is wrong with a page's structure for a visitor who cannot see it, or has no scripts.
func flaws(doc *html.Node) (list []string) {
	say := func(format string, values ...any) { list = append(list, fmt.Sprintf(format, values...)) }
	ids, labels := map[string]int{}, map[string]bool{}
	count := map[string]int{}
	all := elements(doc)
	for _, n := range all {
		if n.Namespace == "" { // a picture has a title of its own
			count[n.Data]++
		}
		if id, has := attr(n, "id"); has {
			ids[id]++
		}
		if to, has := attr(n, "for"); has {
			labels[to] = true
		}
	}
	for id, n := range ids {
		if n > 1 {
			say("the id %q is there %d times", id, n)
		}
	}
	for _, landmark := range []string{"main", "h1", "title", "footer"} {
		if count[landmark] != 1 {
			say("there are %d of %s", count[landmark], landmark)
		}
	}
	level := 0
	for _, n := range all {
		if is(n, "h1", "h2", "h3", "h4") {
			now := int(n.Data[1] - '0')
			if now > level+1 {
				say("h%d follows h%d: %q", now, level, content(n))
			}
			level = now
			if strings.TrimSpace(content(n)) == "" {
				say("an empty %s", n.Data)
			}
		}
		flawsOf(n, ids, labels, say)
	}
	if lang, _ := attr(all[0], "lang"); !slices.Contains(words.Langs(), words.Lang(lang)) {
		say("the page's language is %q", lang)
	}
	return list
}

func flawsOf(n *html.Node, ids map[string]int, labels map[string]bool, say func(string, ...any)) {
	for _, a := range n.Attr {
		switch {
		case strings.HasPrefix(a.Key, "on"), a.Key == "style":
			say("<%s> has the attribute %s", n.Data, a.Key)
		case slices.Contains([]string{"aria-labelledby", "aria-describedby"}, a.Key) && ids[a.Val] == 0:
			say("<%s> refers to %q, which is not there", n.Data, a.Val)
		case a.Key == "href" && strings.HasPrefix(a.Val, "#") && ids[a.Val[1:]] == 0:
			say("a link leads to %s, which is not there", a.Val)
		}
	}
	_, named := attr(n, "aria-label")
	_, by := attr(n, "aria-labelledby")
	id, _ := attr(n, "id")
	kind, _ := attr(n, "type")
	switch {
	case is(n, "script") && content(n) != "":
		say("a script stands in the page")
	case is(n, "input", "select", "textarea") && kind != "hidden" && !labels[id] && !named:
		say("<%s id=%q> has no label", n.Data, id)
	case is(n, "button", "a") && strings.TrimSpace(content(n)) == "" && !named:
		say("<%s> without words", n.Data)
	case is(n, "section") && !by && !named, is(n, "nav") && !named:
		say("<%s> has no name", n.Data)
	case is(n, "th"):
		if scope, _ := attr(n, "scope"); scope == "" {
			say("<th> without scope: %q", content(n))
		}
	case is(n, "form"):
		formFlaws(n, say)
	}
}

// formFlaws finds forms that the server would refuse: forms that change something need the session's key.
func formFlaws(n *html.Node, say func(string, ...any)) {
	if method, _ := attr(n, "method"); method == "get" { // it changes nothing
		return
	}
	for d := range n.Descendants() {
		if name, _ := attr(d, "name"); d.Data == "input" && name == "form" {
			return
		}
	}
	say("a form without the session's key")
}

var ofAKey = regexp.MustCompile(`>([a-z_]+\.[a-z_.-]+)<`)

func TestPagesAreWellBuilt(t *testing.T) {
	for _, lang := range words.Langs() {
		for name, p := range everyPage(t) {
			for _, v := range []*Viewer{nil, viewer} {
				if _, form := p.(*Review); v == nil && form {
					continue
				}
				page := write(t, Frame{Lang: lang, Path: "/x", Viewer: v}, p)
				for _, flaw := range flaws(parse(t, page)) {
					t.Errorf("%s in %s: %s", name, lang, flaw)
				}
				for _, shown := range ofAKey.FindAllStringSubmatch(page, -1) {
					must.Hold(t, words.OfPages(lang)[shown[1]] == "", "%s in %s shows the key of a text, %s", name, lang, shown[1])
				}
			}
		}
	}
}

func TestFlawsAreFound(t *testing.T) {
	const good = `<!doctype html><html lang="en"><title>x</title><main><h1>x</h1><footer></footer>`
	f := flaws(parse(t, good))
	must.Need(t, len(f) == 0, "flaws %q", f)
	for _, bad := range []string{`<h3>x</h3>`, `<h2></h2>`, `<p id=a></p><p id=a></p>`, `<a href="#no">x</a>`, `<input id=i>`, `<button></button>`,
		`<p style="x">`, `<p onclick="x">`, `<script>x</script>`, `<section></section>`, `<nav></nav>`, `<table><th>x</table>`, `<form></form>`,
		`<p aria-labelledby=no>`, `<main></main>`, `<h1>x</h1>`} {
		f := flaws(parse(t, good+bad))
		must.Hold(t, len(f) == 1, "%s: flaws %q", bad, f)
	}
}

// TestPagesLoadNothingFromElsewhere: every address in a page is on this server, and every static file exists.
func TestPagesLoadNothingFromElsewhere(t *testing.T) {
	for name, p := range everyPage(t) {
		for _, n := range elements(parse(t, write(t, Frame{Path: "/x", Viewer: viewer}, p))) {
			for _, key := range []string{"href", "src", "action", "data-events"} {
				address, has := attr(n, key)
				if !has {
					continue
				}
				u, err := url.Parse(address)
				must.Hold(t, err == nil && u.Host == "" && u.Scheme == "", "%s: <%s %s=%q>", name, n.Data, key, address)
				if strings.HasPrefix(address, AssetPrefix) {
					_, kind, found := Asset(address)
					must.Hold(t, found && kind != "", "%s: there is no static file %s", name, address)
				}
			}
		}
	}
}

func TestLanguageLinksStayHere(t *testing.T) {
	for path, want := range map[string]string{"/chains/a%2Fb?page=2": "/chains/a%2Fb?lang=ru&page=2", "/": "/?lang=ru", "/chains/a?page=2": "/chains/a?lang=ru&page=2", "//evil.example/": "/?lang=ru", "////evil.example": "/?lang=ru", "///evil.example": "/?lang=ru",
		"https://evil.example/": "/?lang=ru", "/a%0d%0ab": "/a%0d%0ab?lang=ru", "": "/?lang=ru", "/x?lang=ja": "/x?lang=ru"} {
		equal(t, inLanguage(path, words.Russian), want)
	}
}

// firstView is how many bytes a first view may take, with the style sheet and the script, before any compression.
const firstView = 100_000

// TestFirstViewIsSmall: every page of the table is small with all that it loads, without compression.
func TestFirstViewIsSmall(t *testing.T) {
	for _, lang := range words.Langs() {
		for name, p := range everyPage(t) {
			page := write(t, Frame{Lang: lang, Path: "/x", Viewer: viewer}, p)
			size := len(page)
			for _, a := range assets {
				if strings.Contains(page, a.path) {
					size += len(a.content)
				}
			}
			must.Hold(t, size <= firstView, "%s in %s takes %d bytes at first", name, lang, size)
		}
	}
}

// sentence finds three English words in a row.
var sentence = regexp.MustCompile(`\b[A-Za-z][a-z]+ [a-z]+ [a-z]+\b`)

// TestNoEnglishIsLeft: in another language a page has no English but what others wrote, and what is marked as English.
func TestNoEnglishIsLeft(t *testing.T) {
	for _, lang := range words.Langs() {
		for name, p := range everyPage(t) {
			for _, v := range []*Viewer{nil, viewer} {
				if _, form := p.(*Review); v == nil && form {
					continue
				}
				found := strings.Join(ownTexts(parse(t, write(t, Frame{Lang: lang, Path: "/x", Viewer: v}, p))), "\n")
				is := sentence.FindString(found)
				must.Hold(t, (is != "") == (lang == words.English), "%s in %s: %q", name, lang, is)
			}
		}
	}
}

// ownTexts returns what the program itself says in a page, without the words of others and without parts in English. The
// window's title names the agent, and a comparison quotes.
func ownTexts(doc *html.Node) (list []string) {
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if in, _ := attr(n, "lang"); n.Type == html.ElementNode && (in == "en" && !is(n, "html") || hasClass(n, "said") || hasClass(n, "id") || is(n, "script", "style", "textarea") || is(n, "title") && n.Namespace == "" || hasClass(n, "diff")) {
			return
		}
		if n.Type == html.TextNode {
			list = append(list, n.Data)
		}
		for _, a := range n.Attr {
			if a.Key == "aria-label" || a.Key == "title" || a.Key == "placeholder" {
				list = append(list, a.Val)
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(doc)
	return list
}
