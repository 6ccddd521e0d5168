package pages

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	syntax "text/template/parse"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/net/html"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/words"
	"jurat/jury"
	"jurat/reputation"
	"jurat/verify"
	"jurat/verify/trust"
)

// markup are texts that must not become elements or attributes anywhere. canary identifies what came from them.
const markup = `"'><script>canary()</script><img src=x onerror=canary()><svg onload=canary()><a href="javascript:canary()">canary</a>` +
	`</title></textarea></bdi></main><!-- canary --><style>*{display:none}</style><base href=//canary.example>{{template "canary"}}` + "`${canary}`"

// tricks are characters that a page could lose, or that could make text look different from what it is.
const tricks = "abc\u202Edesrever\u202C \u2066isolate\u2069 \x01\x02\x7f\u0085 tab\there\r\nline\rend \u200B\uFEFF\U000E0041 \x00\x00 \u0627\u0644\u0639\u0631\u0628\u064A\u0629 日本語 \U0001F468\u200D\U0001F469"

func hostile(where string) string { return where + " " + markup + " " + tricks }

// hostileName is a name with every hostile character that a payload allows. It allows no control characters.
func hostileName(where string) string { return where + ` "'><img src=x onerror=canary()>` + "\u200B" }

// shown returns what a page must show for a text: the text itself. An HTML document cannot contain U+0000.
func shown(text string) string { return strings.ReplaceAll(text, "\x00", "\uFFFD") }

func quoted(t testing.TB, text string) string {
	t.Helper()
	doc, err := json.Marshal(text)
	check(t, err)
	return string(doc)
}

// liar is a juror whose answers are hostile texts.
type liar struct {
	name  string
	fails bool
}

func (l liar) opinion(b jury.Brief) jury.Opinion {
	o := jurattest.Opine(jury.SafePass, 90)
	o.Rationale = hostile(l.name + " rationale")
	o.Findings = []jury.Finding{{Message: 1, Quote: "canary()", Rule: hostile(l.name + " rule"), Axis: "safety", Severity: jury.Minor, Explanation: hostile(l.name + " explanation")},
		{Message: 1, Quote: hostile(l.name + " invented"), Rule: "r", Axis: "safety", Severity: jury.Critical, Explanation: "e", Unfounded: true},
		{Message: 99, Quote: hostile(l.name + " nowhere"), Rule: "r", Axis: "safety", Severity: jury.Major, Explanation: "e"}}
	if b.RoundNumber > 0 {
		o.Position = jury.NeedsReview
		o.Findings[0].Rule += " again"
	}
	return o
}

func (l liar) origin() jury.Origin {
	return jury.Origin{Model: hostileName(l.name + " model"), ModelVersion: hostileName("version")}
}

func (l liar) Answer(_ context.Context, b jury.Brief) (jury.Answer, error) {
	if l.fails {
		return jury.Answer{Origin: l.origin()}, errors.New(hostile(l.name + " failure"))
	}
	o := l.opinion(b)
	return jury.Answer{Opinion: o, Origin: l.origin(),
		Speech: jury.Speech{Statement: hostile(l.name + " statement"), Position: o.Position, Reasoning: hostile(l.name + " reasoning"), Updated: &o}}, nil
}

// hostileCase puts hostile text into everything that an agent says.
func hostileCase(t testing.TB) *subject.Case {
	t.Helper()
	card := fmt.Sprintf(`{"name":%s,"description":%s,"version":%s,"protocolVersion":"0.3.0","url":"https://a.example/","provider":{"organization":%s,"url":"https://a.example/"},
		"skills":[{"id":"s","name":%s,"description":%s,"tags":[]}]}`, quoted(t, hostile("card name")), quoted(t, hostile("card description")), quoted(t, hostile("card version")),
		quoted(t, hostile("organization")), quoted(t, hostile("skill")), quoted(t, hostile("skill description")))
	conversation := fmt.Sprintf(`[{"role":"user","content":%s},{"role":"assistant","content":%s,"tool_calls":[{"id":"c1","type":"function","function":{"name":%s,"arguments":%s}}]},
		{"role":"tool","tool_call_id":"c1","name":%s,"content":%s},{"role":"assistant","content":%s}]`,
		quoted(t, hostile("user")), quoted(t, hostile("agent")), quoted(t, hostile("tool name")), quoted(t, hostile("arguments")), quoted(t, hostile("tool")),
		quoted(t, hostile("tool result")), quoted(t, strings.Repeat("x", 1<<20)))
	c, err := subject.New([]byte(card), []byte(conversation))
	check(t, err)
	return c
}

func hostileTrial(t testing.TB, h *jurattest.House) []*evidence.Record {
	t.Helper()
	s := jurattest.Settings(jury.FinalJudge)
	for i := range s.Seats {
		s.Seats[i].RoleName, s.Seats[i].RoleFocus = hostileName(fmt.Sprintf("role %d", i)), hostileName("focus")
		s.Seats[i].Model, s.Seats[i].Provider = hostileName("configured"), hostileName("provider")
	}
	done, err := trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Random: h.Random, Submitter: hostileName("submitter"), Settings: s,
		Jurors: []jury.Juror{liar{name: "first"}, liar{name: "second"}, liar{name: "third", fails: true}}, Judge: liar{name: "judge"}}, hostileCase(t))
	check(t, err)
	return done.Records
}

func value(t testing.TB, text string) jsontext.Value {
	t.Helper()
	return jsontext.Value(quoted(t, text))
}

// decided adds a hostile reviewer's text and a delivery to a trial's chain.
func decided(t testing.TB, h *jurattest.House, records []*evidence.Record) []*evidence.Record {
	t.Helper()
	judgment := records[len(records)-2]
	p := judgment.Payload
	review := h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: hostileName("reviewer"), Timestamp: p.Timestamp, OriginalResponseID: p.RecordID,
		ApprovalStatus: evidence.ApprovedWithModifications, ModifiedResponse: value(t, hostile("modified")), Changes: value(t, hostile("reason")), ChainID: p.ChainID, Case: p.Case,
		Saw: []evidence.Digest{judgment.Digest}})
	delivery := h.Seal(t, evidence.Payload{ActionType: evidence.Delivery, AgentID: hostileName("deliverer"), Timestamp: p.Timestamp, OriginalResponseID: p.RecordID,
		Response: value(t, hostile("modified")), Saw: []evidence.Digest{judgment.Digest, review.Digest}})
	return append(slices.Clone(records), review, delivery)
}

// hostilePages makes every page from hostile records, and returns the texts that must be on it, character by character.
func hostilePages(t testing.TB) (pages map[string]Page, want map[string][]string) {
	t.Helper()
	h := jurattest.New(t)
	records := decided(t, h, hostileTrial(t, h))
	court := courtOf(t, records)
	said := []string{hostile("card name"), hostile("card description"), hostile("card version"), hostile("organization"), hostile("skill"), hostile("skill description"),
		hostile("user"), hostile("agent"), hostile("tool name"), hostile("arguments"), hostile("tool result"), hostile("reason"), hostile("modified"),
		hostileName("submitter"), hostileName("reviewer"), hostileName("focus"), hostile("judge rationale")}
	for _, name := range []string{"first", "second"} {
		for _, what := range []string{" rationale", " rule", " explanation", " invented", " nowhere", " statement", " reasoning"} {
			said = append(said, hostile(name+what))
		}
		said = append(said, hostileName(name+" model"))
	}

	own := h.Seal(t, evidence.Payload{ActionType: evidence.Recommendation, AgentID: hostileName("agent"), RequestID: hostileName("request"), Timestamp: "2026-01-01T00:00:00Z",
		Model: hostileName("model"), ModelVersion: hostileName("version"), Prompt: value(t, hostile("prompt")), Response: value(t, hostile("response")),
		Context: jsontext.Value(`{` + quoted(t, hostile("context")) + `:1}`), Parameters: jsontext.Value(`{` + quoted(t, hostile("parameter")) + `:"x"}`),
		ChainID: hostileName("chain"), ParentRequestID: hostileName("parent"), Metadata: jsontext.Value(`{` + quoted(t, "m "+markup) + `:` + quoted(t, hostile("metadata")) + `}`)})
	chain, report := proved(t, h, append(slices.Clone(records), own)...)
	sealed := sealedOf(t, h, own)
	sealed.Record.Timestamps = nil
	review, err := NewReview(own)
	check(t, err)
	review.May, review.Subject, review.Problem = true, hostile("subject"), hostile("problem")
	review.Draft = Draft{Text: hostile("draft"), Reason: "\n" + hostile("because")}
	review.Compare()
	review.Reviews, review.Waits = court.Human, true
	review.Taken = &trial.Change{TrialEventBody: operator.TrialEventBody{Reviewer: hostileName("holder"), By: hostileName("assigner"), Reason: hostile("taking")}}
	summary := court.Line()
	desk := NewDesk([]Summary{summary}, nil, "nobody")
	desk.May, desk.Assigns, desk.Problem = true, true, hostile("problem")
	desk.Answer([]Result{{Record: hostile("record"), Did: Assign, To: hostile("assignee")}, {Record: hostile("record"), Subject: hostile("subject"), Problem: hostile("why")}},
		Several{Draft: Draft{Reason: "\n" + hostile("because")}, Decision: Assign, To: "x", Marked: []string{hostile("mark")}})
	pages = map[string]Page{
		"whole": court.WholeMessage(4), "whole member": WholeMember(own, "response"),
		"mentions": &Mentions{Trial: hostile("trial"), Query: hostile("query"), Refusal: Refusal{Problem: hostile("problem")}, Found: []Mention{{court.Messages[1].Message, hostile("line")}}},
		"court":    court, "sealed": sealed, "sealed act": sealedOf(t, h, records[2]), "chain": NewChain(hostile("id"), chain, report, 1),
		"desk": desk, "review": review,
		"home":    &Home{Trials: []Summary{summary}, Panel: []string{hostile("panel")}, Refusal: Refusal{Problem: hostile("problem")}, Examples: []Example{{hostile("id"), hostile("example")}}},
		"sign-in": &SignIn{Refusal: Refusal{Problem: hostile("problem")}, Next: hostile("next"), Link: hostile("link"), OpenID: "/openid", Provider: hostile("provider")},
		"trouble": &Trouble{400, hostile("detail")},
		"agent": agentOf(t, 12, passes, func(f *reputation.Facts) {
			f.Identity.Name, f.Identity.By, f.Identity.CA = hostileName("agent"), "cas", hostileName("ca")
			for i := range f.Records {
				f.Records[i].By, f.Records[i].CA = "cas", f.Identity.CA
			}
			for i := range f.Trials {
				f.Trials[i].Panel.Seats, f.Trials[i].Panel.Judge, f.Trials[i].Panel.Method = []string{hostileName("seat")}, hostileName("judge"), jury.Method(hostileName("method"))
				f.Trials[i].Raters[0].Name = hostileName("submitter")
			}
			f.Trials[0].Transcript, f.Trials[1].Proved, f.Trials[1].Rule = true, false, hostileName("rule")
			for i := range f.Counted {
				f.Counted[i].Origin = hostileName("origin")
			}
		}),
	}
	want = map[string][]string{"whole": {strings.Repeat("x", 1<<20)}, "whole member": {hostile("response")}, "mentions": {hostile("problem")}, "court": said, "sealed": {hostileName("agent"), hostileName("model"), hostile("prompt"), hostile("response"), hostileName("chain"), hostileName("parent")},
		"chain": {hostile("id"), hostileName("agent")}, "desk": {hostile("card name"), hostile("problem"), hostile("subject"), hostile("why"), hostile("assignee")}, "home": {hostile("card name"), hostile("panel"), hostile("problem"), hostile("example")},
		"review": {hostile("subject"), hostileName("holder"), hostileName("assigner"), hostile("taking"), hostile("problem"), hostile("response"), hostile("reason")}, "sign-in": {hostile("problem"), hostile("provider")}, "trouble": {hostile("detail")},
		"agent": {hostileName("agent"), hostileName("seat"), hostileName("judge"), hostileName("submitter")}}
	return pages, want
}

// knownElements are the elements that templates write. None of the elements in markup is among them.
var knownElements = strings.Fields(`html head meta title link script body a header nav ul li div span form input button main p h1 h2 h3 dl dt dd ol details summary
	section table caption thead tbody tfoot tr th td svg desc rect path polygon polyline text figure figcaption footer bdi time blockquote q strong fieldset legend label select option textarea noscript ins del`)

var knownAttributes = strings.Fields(`lang charset name content rel href type src defer class id tabindex aria-label aria-labelledby aria-describedby aria-live aria-relevant aria-current
	aria-hidden role method action value hreflang dir data-mark data-events data-nth data-copy data-done datetime download scope colspan data-since data-go data-whole data-message data-failed data-partly data-key data-says data-lacks viewbox viewBox preserveaspectratio preserveAspectRatio focusable
	width height d points x y for placeholder required autocomplete spellcheck rows hidden formnovalidate selected checked disabled accept enctype`)

// intrusions returns elements and attributes that no template writes.
func intrusions(doc *html.Node) (list []string) {
	for _, n := range elements(doc) {
		if !is(n, knownElements...) {
			list = append(list, "<"+n.Data+">")
		}
		for _, a := range n.Attr {
			if !slices.Contains(knownAttributes, a.Key) {
				list = append(list, "<"+n.Data+" "+a.Key+">")
			}
			if name := strings.ToLower(a.Key); (name == "href" || name == "src" || name == "action") && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "?") {
				list = append(list, fmt.Sprintf("<%s %s=%.40q>", n.Data, a.Key, a.Val))
			}
			if a.Key != "value" && a.Key != "data-events" && a.Key != "download" && strings.ContainsFunc(a.Val, func(r rune) bool { return needsMark(r) }) {
				list = append(list, fmt.Sprintf("<%s %s=%.80q> hides something", n.Data, a.Key, a.Val))
			}
		}
	}
	for n := range doc.Descendants() {
		if n.Type == html.CommentNode {
			list = append(list, "a comment")
		}
	}
	return list
}

// passages returns the texts that pages show as somebody else's words.
func passages(doc *html.Node) map[string]bool {
	found := map[string]bool{}
	for _, n := range elements(doc) {
		if hasClass(n, "said") {
			found[content(n)] = true
		}
	}
	return found
}

// unmarked finds characters that turn or hide text and are not in a mark of their own.
func unmarked(doc *html.Node) (list []string) {
	for n := range doc.Descendants() {
		if n.Type != html.TextNode || hasClass(n.Parent, "mark") || is(n.Parent, "textarea", "title") {
			continue
		}
		for _, r := range n.Data {
			if needsMark(r) || r == '\r' {
				list = append(list, fmt.Sprintf("%U in %.60q", r, n.Data))
			}
		}
	}
	return list
}

func TestHostileTextIsInertAndIntact(t *testing.T) {
	for _, lang := range words.Langs() {
		pages, want := hostilePages(t)
		more, wanted := hostileRecordings(t)
		for name, p := range more {
			pages["recorded, "+name], want["recorded, "+name] = p, wanted[name]
		}
		for name, p := range pages {
			doc := parse(t, write(t, Frame{Lang: lang, Path: "/" + hostile("path"), Viewer: &Viewer{Name: hostile("viewer"), Form: hostile("key"), Submits: true, Reviews: true}}, p))
			for _, i := range intrusions(doc) {
				t.Errorf("%s in %s: %s", name, lang, i)
			}
			for _, f := range flaws(doc) {
				t.Errorf("%s in %s: %s", name, lang, f)
			}
			for _, u := range unmarked(doc) {
				t.Errorf("%s in %s: unmarked %s", name, lang, u)
			}
			found := passages(doc)
			for _, text := range append(want[name], hostile("viewer")) {
				must.Hold(t, found[shown(text)], "%s in %s: the page does not show %.60q unchanged", name, lang, text)
			}
		}
	}
}

// TestDraftsComeBack: the form contains the reviewer's text again, character by character, although HTML drops a line
// break at the beginning of a textarea. Browsers normalise line breaks, which the page cannot change.
func TestDraftsComeBack(t *testing.T) {
	pages, _ := hostilePages(t)
	for _, n := range elements(parse(t, write(t, Frame{Path: "/", Viewer: viewer}, pages["review"]))) {
		if id, _ := attr(n, "id"); id == "reason" {
			unix := strings.NewReplacer("\r\n", "\n", "\r", "\n")
			equal(t, content(n), unix.Replace(shown("\n"+hostile("because"))))
			return
		}
	}
	t.Error("the form has no field for the reason")
}

func TestIntrusionsAreFound(t *testing.T) {
	for _, bad := range []string{`<img>`, `<iframe></iframe>`, `<p onclick=x>`, `<p style=x>`, `<a href="javascript:x">x</a>`, `<a href="https://x.example/">x</a>`, `<!-- x -->`,
		"<p title=\u202Ex>", "<p class=\u202Ex>"} {
		must.Hold(t, len(intrusions(parse(t, "<!doctype html><p>x</p>"+bad))) != 0, "%s is not found", bad)
	}
	must.Hold(t, len(unmarked(parse(t, "<p>a\u202Eb</p>"))) == 1, "unmarked does not find an override without a mark")
}

func TestSaid(t *testing.T) {
	equal(t, said("a\u202E\u202Eb\r\nc\x00\u200Dd\te"), []stretch{{Text: "a"}, {Text: "\u202E\u202E", Mark: "U+202E ×2", Shut: true}, {Text: "b"}, {Text: "\r", Mark: "U+000D", Shut: true, CR: true},
		{Text: "\nc"}, {Text: "\x00", Mark: "U+0000", Shut: true}, {Text: "\u200Dd\te"}})
	equal(t, said("\xffa"), []stretch{{Text: "\uFFFDa"}})
	equal(t, said(""), []stretch(nil))
}

// FuzzSaid: the parts together give the text, and a part without a mark has no character that turns text.
func FuzzSaid(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		var whole strings.Builder
		for _, s := range said(text) {
			whole.WriteString(s.Text)
			must.Hold(t, s.Text != "" && (s.Shut || !strings.ContainsFunc(s.Text, turns)), "stretch %q with mark %q", s.Text, s.Mark)
		}
		equal(t, whole.String(), strings.ToValidUTF8(text, "\uFFFD"))
		if line := plain(text); strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || turns(r) }) || len([]rune(line)) > maxPlain+1 {
			t.Errorf("plain %q", line)
		}
	})
}

// TestManyMarksDoNotGrowAPage: the page of a text that consists of characters with marks is longer only by a bounded
// factor.
func TestManyMarksDoNotGrowAPage(t *testing.T) {
	text := strings.Repeat("a\u202E\u202D", 100_000)
	page := write(t, Frame{Path: "/"}, &Trouble{400, text})
	must.Hold(t, passages(parse(t, page))[text], "the page does not show the text unchanged")
	must.Hold(t, len(page) <= 12*len(text), "%d bytes of text became a page of %d", len(text), len(page))
}

var place = regexp.MustCompile(`\{([^}]*)\}`)

// places lists the placeholders of a text.
func places(text string) (names []string) {
	for _, m := range place.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A use is a text that a template shows, and the values that it fills in.
type use struct {
	key    string
	values []string
}

// textsOf lists the texts of a node and of what is below it.
func textsOf(node reflect.Value) (list []use) {
	switch node.Kind() {
	case reflect.Interface, reflect.Pointer:
		if node.IsNil() {
			return nil
		}
		if c, is := node.Interface().(*syntax.CommandNode); is {
			return append(ofCommand(c), textsOf(reflect.ValueOf(c.Args))...)
		}
		return textsOf(node.Elem())
	case reflect.Slice:
		for i := range node.Len() {
			list = append(list, textsOf(node.Index(i))...)
		}
	case reflect.Struct:
		for i := range node.NumField() {
			if f := node.Type().Field(i); f.IsExported() {
				list = append(list, textsOf(node.Field(i))...)
			}
		}
	}
	return list
}

// ofCommand returns the text that a command asks for.
func ofCommand(c *syntax.CommandNode) []use {
	function, is := c.Args[0].(*syntax.IdentifierNode)
	if !is || function.Ident != "t" || len(c.Args) < 2 {
		return nil
	}
	key, is := c.Args[1].(*syntax.StringNode)
	if !is {
		return nil
	}
	u := use{key: key.Text}
	for name := range slices.Chunk(c.Args[2:], 2) {
		u.values = append(u.values, strings.Trim(name[0].String(), `"`))
	}
	slices.Sort(u.values)
	return []use{u}
}

// misused returns what is wrong with how a template uses a text, or "".
func misused(u use) string {
	text, is := words.OfPages(words.English)[u.key]
	if !is {
		return "there is no such text"
	}
	if has := places(text); !slices.Equal(has, u.values) {
		return fmt.Sprintf("%q has the places %v and is given %v", text, has, u.values)
	}
	return ""
}

func TestTemplatesUseTextsThatAreThere(t *testing.T) {
	set, err := template.New("").Funcs(functions(words.English)).ParseFS(templateFiles, "templates/*.html")
	check(t, err)
	var list []use
	for _, one := range set.Templates() {
		if one.Tree != nil {
			list = append(list, textsOf(reflect.ValueOf(one.Tree.Root))...)
		}
	}
	must.Need(t, len(list) >= 400, "found %d texts in templates", len(list))
	for _, u := range list {
		wrong := misused(u)
		must.Hold(t, wrong == "", "%s: %s", u.key, wrong)
	}
	for _, u := range []use{{key: "court.jokes"}, {key: "court"}, {key: "chain.page", values: []string{"n"}}, {key: "court.kicker", values: []string{"n"}}} {
		must.Hold(t, misused(u) != "", "nothing is wrong with %v", u)
	}
}

// TestEveryKindOfValueHasNames: pages have words, and a class of its own, for a value of each type. Package words demands them for each value.
func TestEveryKindOfValueHasNames(t *testing.T) {
	values := map[any]string{verify.HumanReview: "guarantee.human_review", verify.NotProved: "status.not proved", trust.OperatorClock: "clock.operator", evidence.ToolPlan: "action.tool_plan",
		evidence.RoleOperator: "role.operator", evidence.ApprovedWithModifications: "approval.approved_with_modifications", jury.NeedsReview: "position.needs_review",
		jury.FinalJudge: "method.final_judge", jury.Critical: "severity.critical", jury.Split: "consensus.split", jury.TimedOut: "absence.timed_out", subject.Operator: "speaker.operator",
		api.BrokenOff: "state.broken_off", PartlyOffline: "mark.partly_offline"}
	must.Equal(t, len(values), len(kinds))
	for value, key := range values {
		for _, lang := range words.Langs() {
			want := words.OfPages(lang)[key]
			must.Hold(t, want != "" && name(lang, value) == want, "%s: %s is called %q, want %q", lang, key, name(lang, value), want)
		}
		must.Hold(t, class(value) != "unknown" && !strings.Contains(class(value), " "), "%s has the class %q", key, class(value))
	}
	got := name(words.English, jury.Position("<b>\u202e"))
	must.Hold(t, got == "<b>\uFFFD" && class(jury.Position("x y")) == "unknown", "a position that this program does not know is shown as %q", got)
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		chosen, accept string
		want           words.Lang
	}{
		{"", "", "en"}, {"", "ja", "ja"}, {"", "ru-RU,ru;q=0.9,en;q=0.8", "ru"}, {"", "de,fr;q=0.9", "en"},
		{"", "en;q=0.2, ja;q=0.7, ru;q=0.5", "ja"}, {"ru", "ja", "ru"}, {"xx", "ja", "ja"}, {"", "ja;q=0, ru;q=0.1", "ru"},
		{"", "ja;q=7", "en"}, {"", strings.Repeat("xx,", 5000) + "ja", "en"},
	} {
		got := Choose(c.chosen, c.accept)
		must.Hold(t, got == c.want, "%q, %.30q: %s, want %s", c.chosen, c.accept, got, c.want)
	}
}
