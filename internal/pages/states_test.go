package pages

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/browsertest"
	"jurat/internal/must"
	"jurat/internal/words"
	"jurat/jurattest"
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
		if c := pages[name].(*Court); c.Outcome == nil || c.Outcome.Position != want {
			t.Errorf("%s came to %+v, want %s", name, c.Outcome, want)
		}
	}
	for name, want := range map[string]Mark{"court, absent": Degraded, "court, inconclusive": Inconclusive, "court, broken": Broken, "court, no judge": Degraded} {
		if c := pages[name].(*Court); !slices.Contains(c.Marks(), want) {
			t.Errorf("%s has the marks %v, want %s", name, c.Marks(), want)
		}
	}
	for _, name := range []string{"court, asked", "court, evaluated", "court, talking", "court, judged", "live"} {
		if c := pages[name].(*Court); !c.Live() || c.Outcome != nil && name != "court, judged" {
			t.Errorf("%s is not under way", name)
		}
	}
}

// TestStoppedTrialsSayWhy: a trial that was stopped while jurors were asked waits for nobody; its page says who stopped it, and why.
func TestStoppedTrialsSayWhy(t *testing.T) {
	pages := everyPage(t)
	for name, want := range map[string]string{"ended": "submitted by mistake", "stopped": "the process that conducted it has stopped"} {
		c := pages[name].(*Court)
		page := write(t, Frame{Path: "/"}, c)
		if len(c.Waiting) == 0 || !strings.Contains(page, want) || strings.Contains(page, words.OfPages(words.English)["court.waiting"]) {
			t.Errorf("%s, which had asked %v, does not say %q, or waits for somebody", name, c.Waiting, want)
		}
	}
	if page := write(t, Frame{Path: "/"}, pages["court, asked"]); !strings.Contains(page, words.OfPages(words.English)["court.waiting"]) {
		t.Error("a trial under way does not say for whom it waits")
	}
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
		if wide := browsertest.Eval[int](b, `document.documentElement.scrollWidth`); wide > phone {
			t.Errorf("%s in %s is %d wide", name, lang, wide)
		}
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
	if !found {
		t.Fatal("the style sheet has no dark colours")
	}
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
			if s[a] == "" || s[b] == "" {
				t.Fatalf("%s: %s or %s is no colour", name, a, b)
			}
			if got := contrast(t, s[a], s[b]); got < least {
				t.Errorf("%s: %s %s on %s %s has a contrast of %.2f, want %.1f", name, a, s[a], b, s[b], got, least)
			}
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
		if pairs < 60 {
			t.Errorf("%s: only %d pairs were found", name, pairs)
		}
	}
}

// TestColoursAreNamed: every colour in the style sheet has a name, so TestContrast sees all of them.
func TestColoursAreNamed(t *testing.T) {
	css := string(assets["jurat.css"].content)
	rest := colour.ReplaceAllString(css, "")
	if m := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl|lab|lch|oklch|color-mix)a?\(|: (?:white|black|red|gray|grey)\b|opacity`).FindString(rest); m != "" {
		t.Errorf("the style sheet has the colour %q outside of the list", m)
	}
}
