package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/test/browsertest"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
)

// A vector is the input of a reader, from testdata/vectors/verification/manifest.json.
type vector struct {
	Name, File, Trust, Before, At, Checkpoint, Consistency, Entries string
	CRLs                                                            []string
}

// fixedMoment is the time of checking for vectors without one, so that both sides use the same.
const fixedMoment = "2026-06-01T00:00:00Z"

func vectors(t *testing.T) (folder string, all []vector) {
	t.Helper()
	folder = filepath.Join("..", "..", "testdata", "vectors", "verification")
	doc := must.Get(os.ReadFile(filepath.Join(folder, "manifest.json")))(t)
	var manifest struct{ Verifications []vector }
	err := json.Unmarshal(doc, &manifest)
	must.Need(t, err == nil && len(manifest.Verifications) >= 100, "%d vectors: %v", len(manifest.Verifications), err)
	for i := range manifest.Verifications {
		if v := &manifest.Verifications[i]; v.At == "" {
			v.At = fixedMoment
		}
	}
	return folder, manifest.Verifications
}

// byCommand returns the answer of 'jurat verify --json': the report, or the error.
func byCommand(t *testing.T, folder string, v vector) (report, refused string) {
	t.Helper()
	args := []string{"verify", "--json", "--at", v.At}
	for flag, name := range map[string]string{"--trust": v.Trust, "--checkpoint": v.Checkpoint, "--consistency": v.Consistency, "--entries": v.Entries} {
		if name != "" {
			args = append(args, flag, filepath.Join(folder, name))
		}
	}
	for _, name := range v.CRLs {
		args = append(args, "--crl", filepath.Join(folder, name))
	}
	if v.Before != "" {
		args = append(args, "--before", v.Before)
	}
	code, out, errs := jurat(t, append(args, filepath.Join(folder, v.File))...)
	if code == exitCannot {
		first, _, _ := strings.Cut(errs, "\n")
		return "", first
	}
	return out, ""
}

// A question is a request to the portal's worker, sent by testdata/worker.js.
type question struct {
	ID       int            `json:"id"`
	What     string         `json:"what"`
	Argument map[string]any `json:"argument"`
	Sources  []questioned   `json:"sources"`
}

type questioned struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

func questionOf(id int, folder string, v vector) question {
	q := question{ID: id, What: "verify", Argument: map[string]any{"before": v.Before, "at": v.At}}
	add := func(name string) int {
		q.Sources = append(q.Sources, questioned{name, filepath.Join(folder, name)})
		return len(q.Sources) - 1
	}
	q.Argument["files"] = []int{add(v.File)}
	for what, name := range map[string]string{"trust": v.Trust, "checkpoint": v.Checkpoint, "consistency": v.Consistency, "entries": v.Entries} {
		if name != "" {
			q.Argument[what] = add(name)
		}
	}
	crls := []int{}
	for _, name := range v.CRLs {
		crls = append(crls, add(name))
	}
	q.Argument["crls"] = crls
	return q
}

// node runs the committed verifier in the page's worker under Node, and returns its answers to the questions.
func node(t *testing.T, questions []question) map[int]json.RawMessage {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		must.Need(t, os.Getenv("CI") != "true", "node is not installed, and CI must run this test")
		t.Skip("node is not installed; the portal's verifier runs in it")
	}
	portal := filepath.Join("..", "..", "internal", "web", "portal")
	var in, out, errs bytes.Buffer
	for _, q := range questions {
		doc := must.Get(json.Marshal(q))(t)
		in.Write(append(doc, '\n'))
	}
	run := exec.Command("node", "--liftoff-only", filepath.Join(portal, "testdata", "worker.js"), filepath.Join(portal, "page"))
	run.Stdin, run.Stdout, run.Stderr = &in, &out, &errs
	err := run.Run()
	must.Need(t, err == nil, "%v\n%s%s", err, out.String(), errs.String())
	answers := map[int]json.RawMessage{}
	lines := bufio.NewScanner(&out)
	for lines.Buffer(nil, 64<<20); lines.Scan(); {
		var posted struct {
			ID    int
			Reply string
		}
		must.Do(t, json.Unmarshal(lines.Bytes(), &posted))
		if posted.Reply != "" {
			answers[posted.ID] = json.RawMessage(posted.Reply)
		}
	}
	return answers
}

// TestPortalAnswersAsTheCommand gives vectors to the portal's program and to the command: each tenth, and every one at length. What both run is the same source.
func TestPortalAnswersAsTheCommand(t *testing.T) {
	t.Parallel()
	folder, all := vectors(t)
	if os.Getenv("JURAT_TEST_LONG") == "" {
		n := 0
		all = slices.DeleteFunc(all, func(vector) bool { n++; return n%10 != 0 })
	}
	var questions []question
	for i, v := range all {
		questions = append(questions, questionOf(i+1, folder, v))
	}
	answers := node(t, questions)
	for i, v := range all {
		want, refused := byCommand(t, folder, v)
		var got struct {
			Answer struct {
				Files []struct{ Report, Error string }
			}
			Error string
		}
		must.Do(t, json.Unmarshal(answers[i+1], &got))
		switch {
		case got.Error != "" && strings.HasSuffix(refused, got.Error): // what was brought beside the file is refused
		case got.Error != "" || len(got.Answer.Files) != 1:
			t.Errorf("%s: %s", v.Name, answers[i+1])
		case refused != "":
			file := got.Answer.Files[0]
			must.Hold(t, file.Error != "" && strings.HasSuffix(refused, file.Error), "%s: the portal answers %q, the command %q", v.Name, file.Error, refused)
		default:
			must.Equal(t, cmp.Diff(want, got.Answer.Files[0].Report+"\n"), "", v.Name)
		}
	}
}

// A portalled browser has the saved page open from disk, without a network.
type portalled struct {
	*browsertest.Browser
	t     *testing.T
	page  string
	case_ string // a case file that is right
	trust string // what proves it
}

// openPortal writes the page and a case file with the command, and opens the page.
func openPortal(t *testing.T, o browsertest.Options) *portalled {
	t.Helper()
	browsertest.Find(t)
	dir := t.TempDir()
	p := &portalled{t: t, page: filepath.Join(dir, "verify.html"), case_: filepath.Join(dir, "case.jurat"), trust: filepath.Join(dir, "trust.json")}
	code, _, errs := jurat(t, "portal", "--out", p.page)
	must.Need(t, code == 0, "%v", errs)
	data := filepath.Join(dir, "data")
	if code, _, errs := jurat(t, "--data", data, "trial", filepath.Join("..", "..", "examples", "pharmacy-refill"), "--out", p.case_); code == exitCannot {
		t.Fatal(errs)
	}
	code, trust, errs := jurat(t, "--data", data, "trust")
	must.Need(t, code == 0, "%v", errs)
	must.Do(t, os.WriteFile(p.trust, []byte(trust), 0o600))
	p.open(o)
	return p
}

func (p *portalled) open(o browsertest.Options) {
	o.CutOff = true
	p.Browser = browsertest.Open(p.t, o)
	p.Visit("file://" + p.page)
}

// check has files checked, and waits for the results.
func (p *portalled) check(files ...string) {
	p.t.Helper()
	p.Choose("#files", files...)
	p.checked()
}

func (p *portalled) checked() {
	p.t.Helper()
	p.Click("#check")
	p.Wait("document.querySelector('#answers article') && !document.querySelector('#check').disabled")
}

func (p *portalled) choose(trust string) {
	p.t.Helper()
	p.Choose("#trust", trust)
	p.Wait("document.querySelector('#fingerprint')")
}

// outcome returns the outcome of the first file.
func (p *portalled) outcome() string {
	p.t.Helper()
	return browsertest.Eval[string](p.Browser, "document.querySelector('#answers article').dataset.outcome ?? ''")
}

// quiet fails if the page requested anything but itself, or if it had an error.
func (p *portalled) quiet() {
	p.t.Helper()
	for _, url := range p.Requests() {
		must.Hold(p.t, url == "file://"+p.page || strings.HasPrefix(url, "blob:null/"), "the page asked for %s", url)
	}
	problems := p.Problems()
	must.Hold(p.t, len(problems) == 0, "problems: %q", problems)
}

func TestPortalProvesACaseFileOffline(t *testing.T) {
	t.Parallel()
	p := openPortal(t, browsertest.Options{})
	p.Screenshot("portal-empty")
	p.check(p.case_)
	must.Equal(t, p.outcome(), "not proved")
	must.Contain(t, p.Text("#results"), "You chose no trust file, so nothing can be proved.")
	p.Screenshot("portal-without-trust")
	p.choose(p.trust)
	p.checked()
	must.Equal(t, p.outcome(), "proved")
	must.Equal(t, browsertest.Eval[string](p.Browser, "document.activeElement.id"), "found")
	p.Wait("document.querySelectorAll('.record').length >= 10")
	p.Click(".record:nth-child(8) > summary")
	p.Wait("document.querySelector('.record:nth-child(8) pre')")
	inside := p.Text(".record:nth-child(8)")
	must.Contain(t, inside, "Output", "Configuration", "jurat-rules", "Content", "rationale")
	must.Contain(t, p.Text("#results"), "The jury judged needs_review", "What none of this proves", "that what was said is correct", "The answer above does not depend on this.")
	_, _, errs := jurat(t, "--data", filepath.Join(filepath.Dir(p.case_), "data"), "trust")
	fingerprint := p.Text("#fingerprint")
	must.Hold(t, strings.Contains(errs, fingerprint) && fingerprint != "", "the page has the fingerprint %q, the command says %s", fingerprint, errs)
	p.Screenshot("portal-proved")
	p.Dark(true)
	p.Screenshot("portal-proved-dark")
	p.quiet()
}

func TestPortalRefutesAChangedCaseFile(t *testing.T) {
	t.Parallel()
	p := openPortal(t, browsertest.Options{})
	doc := must.Get(os.ReadFile(p.case_))(t)
	changed := bytes.Replace(doc, []byte("needs_review"), []byte("safe_pass"), 1)
	must.Need(t, !bytes.Equal(changed, doc), "the case file has no needs_review")
	file := filepath.Join(t.TempDir(), "changed.jurat")
	must.Do(t, os.WriteFile(file, changed, 0o600))
	p.choose(p.trust)
	p.check(file)
	must.Equal(t, p.outcome(), "refuted")
	if text := p.Text("#results"); !strings.Contains(text, "digest") || strings.Contains(text, "What was said") {
		t.Errorf("a refuted text is shown like a sealed one, or without the reason:\n%s", text)
	}
	p.Screenshot("portal-refuted")
	p.quiet()
}

func TestPortalInThreeLanguages(t *testing.T) {
	t.Parallel()
	for lang, want := range map[string][]string{
		"ja": {"この記録は何を証明するか", "証明済み", "否認防止", "陪審の判定は", "何が起きたか"},
		"ru": {"Что доказывает эта запись?", "Доказано", "Неотказуемость", "Решение присяжных", "Что произошло, словами"},
	} {
		p := openPortal(t, browsertest.Options{Languages: lang + ",en"})
		p.choose(p.trust)
		p.check(p.case_)
		text := p.Text("body")
		must.Contain(t, text, want...)
		p.Wait("document.querySelectorAll('.record').length >= 10")
		p.Click(".record:nth-child(8) > summary")
		p.Screenshot("portal-" + lang)
		p.Select("#language", "en") // the choice also changes results that are already shown
		p.Wait("document.querySelector('.outcome')?.textContent === 'Proved'")
		if text := p.Text("body"); strings.Contains(text, want[0]) || !strings.Contains(text, "What does this record prove?") {
			t.Errorf("%s: after the choice of English:\n%s", lang, text)
		}
		must.Equal(t, browsertest.Eval[string](p.Browser, "document.documentElement.lang"), "en")
		p.quiet()
	}
}

// hostileText is a text with which an agent could try to attack a later reader's browser.
const hostileText = "<img src=x onerror=\"document.title='owned'\"><svg onload=\"document.title='owned'\"><script>document.title='owned'</script>" +
	"</pre></script>\u202Eevil\u202C\u2066\u200Bzero\u0007bell\u001b[31mred \U000E0041tag ⟦U+0041⟧ \u0435nd"

func TestPortalShowsHostileTextInert(t *testing.T) {
	t.Parallel()
	p := openPortal(t, browsertest.Options{})
	h := jurattest.NewForStrangers(t)
	said := hostileText + "\n" + strings.Repeat("0123456789\n", 100_000) // as lines, because browsers need minutes to lay out one line of this length
	quoted := must.Get(jsontext.AppendQuote(nil, said))(t)
	r := h.Seal(t, evidence.Payload{AgentID: "<b>a</b>", RequestID: "r-1", Timestamp: "2025-12-31T23:59:00Z", Model: "m<script>", ModelVersion: "<i>1</i>",
		Prompt: jsontext.Value(`"What?"`), Response: quoted, Parameters: jsontext.Value(`{"temperature":0}`)})
	record, trust := p.write("record.json", r), p.write("h.json", h.Trust(t))
	p.choose(trust)
	p.check(record)
	p.Wait("document.querySelector('.record pre')")
	const shown = "[...document.querySelectorAll('.record pre')].find(p => p.getAttribute('aria-label') === 'Output').textContent"
	want := strings.NewReplacer("\u202E", "⟦U+202E⟧", "\u202C", "⟦U+202C⟧", "\u2066", "⟦U+2066⟧", "\u200B", "⟦U+200B⟧", "\u0007", "⟦U+0007⟧",
		"\u001b", "⟦U+001B⟧", "\U000E0041", "⟦U+E0041⟧", "⟦", "⟦U+27E6⟧", "⟧", "⟦U+27E7⟧").Replace(said)
	must.Equal(t, browsertest.Eval[string](p.Browser, shown), want)
	must.Equal(t, browsertest.Eval[string](p.Browser, "document.title"), "jurat: check a record")
	must.Equal(t, browsertest.Eval[int](p.Browser, "document.querySelectorAll('#results img, #results svg, #results script').length"), 0)
	text := p.Text("#results")
	must.Hold(t, !strings.ContainsAny(text, "\u202E\u2066\u001b"), "the page has a character that changes the direction of text")
	// The copy button copies the unchanged text.
	copied := "(() => { let text; navigator.clipboard.writeText = async (t) => { text = t }; " +
		"[...document.querySelectorAll('.record .member')].find(m => m.textContent.startsWith('Output')).querySelector('button').click(); return text })()"
	must.Equal(t, browsertest.Eval[string](p.Browser, copied), said)
	p.quiet()
}

// write writes a file beside the case file.
func (p *portalled) write(name string, content interface{ Marshal() ([]byte, error) }) string {
	p.t.Helper()
	doc := must.Get(content.Marshal())(p.t)
	file := filepath.Join(filepath.Dir(p.case_), name)
	must.Do(p.t, os.WriteFile(file, doc, 0o600))
	return file
}

func TestPortalWithManyRecords(t *testing.T) {
	t.Parallel()
	p := openPortal(t, browsertest.Options{})
	h := jurattest.NewForStrangers(t)
	const count = 400
	var records []*evidence.Record
	for i := range count {
		records = append(records, h.Seal(t, evidence.Payload{AgentID: "courier", RequestID: fmt.Sprintf("r-%d", i), Timestamp: "2025-12-31T23:59:00Z",
			Model: "m", ModelVersion: "1", Prompt: jsontext.Value(`"Plan."`), Response: jsontext.Value(`"` + strings.Repeat("Take the A9. ", 50) + `"`), Parameters: jsontext.Value(`{}`)}))
	}
	bundle, trust := p.write("bundle.jurat", h.Bundle(t, records...)), p.write("h.json", h.Trust(t))
	// Record the messages of the page while it works, and count timer ticks, which shows that it still responds.
	browsertest.Eval[bool](p.Browser, `(() => { globalThis.heard = []; globalThis.beats = 0; setInterval(() => { if (document.querySelector('#check').disabled) beats++ }, 5);
		new MutationObserver(() => heard.push(document.querySelector('#state').textContent)).observe(document.querySelector('#state'), {childList: true, characterData: true, subtree: true}); return true })()`)
	p.choose(trust)
	p.Choose("#files", bundle)
	p.Click("#check")
	p.Wait("document.querySelector('#progress').value > 0")
	p.Click("#cancel")
	p.Wait("document.querySelector('#state').textContent.startsWith('Cancelled')")
	must.Equal(t, browsertest.Eval[int](p.Browser, "document.querySelectorAll('#answers article').length"), 0)
	p.checked()
	must.Equal(t, p.outcome(), "proved")
	heard := browsertest.Eval[[]string](p.Browser, "heard")
	i := slices.IndexFunc(heard, func(s string) bool { return strings.HasPrefix(s, "Checking bundle.jurat: 50") })
	must.Hold(t, i >= 0, "it said %q", heard)
	beats := browsertest.Eval[int](p.Browser, "beats")
	must.Hold(t, beats >= 10, "the page did not respond: %d timer ticks", beats)
	p.Wait("document.querySelectorAll('.record').length === 50")
	browsertest.Eval[bool](p.Browser, "(document.querySelector('.records + button').click(), true)")
	p.Wait("document.querySelectorAll('.record').length === 100")
	must.Equal(t, p.Text(".record:nth-child(100) .number"), "100")
	p.quiet()
}

// TestPortalInTheBrowserAnswersAsTheCommand does in a browser, for vectors that have something for each field, what TestPortalAnswersAsTheCommand does for all.
func TestPortalInTheBrowserAnswersAsTheCommand(t *testing.T) {
	t.Parallel()
	p := openPortal(t, browsertest.Options{})
	folder, all := vectors(t)
	folder = must.Get(filepath.Abs(folder))(t)
	for i, has := range []func(vector) bool{
		func(v vector) bool { return v.Before != "" && v.Trust != "" },
		func(v vector) bool {
			return v.Checkpoint != "" && v.Consistency != "" && v.Entries != "" && v.Trust != ""
		},
	} {
		v := all[slices.IndexFunc(all, has)]
		want, refused := byCommand(t, folder, v)
		must.Need(t, refused == "", "%v %v", v.Name, refused)
		if i > 0 {
			p.Visit("file://" + p.page)
		}
		// This keeps the report that the page saves.
		browsertest.Eval[bool](p.Browser, "(globalThis.make = URL.createObjectURL, URL.createObjectURL = (blob) => blob.type === 'application/json' ? (globalThis.saved = blob.text(), 'about:blank') : make(blob), HTMLAnchorElement.prototype.click = () => {}, true)")
		browsertest.Eval[bool](p.Browser, fmt.Sprintf("(document.querySelector('details.more').open = true, document.querySelector('#at').value = %q, document.querySelector('#before').value = %q, true)", v.At, v.Before))
		for field, name := range map[string]string{"#checkpoint": v.Checkpoint, "#consistency": v.Consistency, "#entries": v.Entries} {
			if name != "" {
				p.Choose(field, filepath.Join(folder, name))
			}
		}
		if v.Trust != "" {
			p.choose(filepath.Join(folder, v.Trust))
		}
		p.check(filepath.Join(folder, v.File))
		browsertest.Eval[bool](p.Browser, "([...document.querySelectorAll('article button')].find(b => b.textContent.startsWith('Save')).click(), true)")
		must.Equal(t, cmp.Diff(want, browsertest.Eval[string](p.Browser, "saved")), "", v.Name)
	}
}

func TestPortalByKeyboardAndPaste(t *testing.T) {
	t.Parallel()
	p := openPortal(t, browsertest.Options{})
	doc := must.Get(os.ReadFile(p.case_))(t)
	p.choose(p.trust)
	pasted := must.Get(json.Marshal(string(doc)))(t)
	browsertest.Eval[bool](p.Browser, "(document.querySelector('#pasted').value = "+string(pasted)+", document.querySelector('#files').focus(), true)")
	// With the Tab key, every control can be reached, in the order of the page.
	var order []string
	for range 40 {
		p.Press("\t")
		id := browsertest.Eval[string](p.Browser, "document.activeElement.id || document.activeElement.textContent.trim()")
		if order = append(order, id); id == "check" {
			break
		}
	}
	want := []string{"Or paste a record", "trust", "✕", "Ask for more", "check"}
	must.Hold(t, slices.Equal(order, want), "by keyboard: %q, want %q", order, want)
	p.Press("\r")
	p.Wait("document.querySelector('#answers article')")
	must.Equal(t, p.outcome(), "proved")
	// For screen readers: every control has a name, there are landmarks and one h1, and no heading level is skipped.
	nameless := browsertest.Eval[[]string](p.Browser, `[...document.querySelectorAll('input, select, textarea, button, progress, pre[tabindex]')].filter(e =>
		!(e.labels?.length || e.textContent.trim() || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby'))).map(e => e.outerHTML)`)
	must.Len(t, nameless, 0)
	must.Equal(t, browsertest.Eval[int](p.Browser, "document.querySelectorAll('main, header').length * 10 + document.querySelectorAll('h1').length"), 21)
	skipped := browsertest.Eval[[]string](p.Browser, `(() => { let last = 0; return [...document.querySelectorAll('h1, h2, h3, h4')].filter(h => { const level = +h.tagName[1]; const bad = level > last + 2; last = level; return bad }).map(h => h.textContent) })()`)
	must.Len(t, skipped, 0)
	p.quiet()
}

func TestPortalSaysWhatItCannotCheck(t *testing.T) {
	t.Parallel()
	p := openPortal(t, browsertest.Options{})
	other := filepath.Join(t.TempDir(), "letter.txt")
	must.Do(t, os.WriteFile(other, []byte("Dear Sir or Madam"), 0o600))
	p.Click("#check")
	p.Wait("document.querySelector('#state').textContent.startsWith('Choose a file')")
	p.Choose("#trust", other)
	p.Wait("document.querySelector('#trusted .wrong')")
	p.check(other)
	must.Contain(t, p.Text("#results"), "neither a sealed record nor a bundle")
	p.quiet()
}

// TestPortalInEveryState checks in the portal a case file that is proved, one that is refuted, one of which nothing is proved, and a file that is none.
// Of what is proved, a record and what more can be asked stand open. In each state, on a phone: axe-core finds nothing, in light colours and in dark ones; nothing is wider than the screen; and in Japanese and
// Russian no English is left but what others wrote.
func TestPortalInEveryState(t *testing.T) {
	t.Parallel()
	axe := browsertest.FindAxe(t)
	const phone = 360
	p := openPortal(t, browsertest.Options{Width: phone, Height: 740})
	doc := must.Get(os.ReadFile(p.case_))(t)
	file := func(name string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		must.Do(t, os.WriteFile(path, content, 0o600))
		return path
	}
	changed, letter := file("changed.jurat", bytes.Replace(doc, []byte("needs_review"), []byte("safe_pass"), 1)), file("letter.txt", []byte("Dear Sir or Madam"))
	for _, state := range []struct {
		name, trust, file, want string
	}{{"empty", "", "", ""}, {"not proved", "", p.case_, "not proved"}, {"proved", p.trust, p.case_, "proved"}, {"refuted", p.trust, changed, "refuted"}, {"wrong file", p.trust, letter, ""}} {
		p.Visit("file://" + p.page)
		if state.trust != "" {
			p.choose(state.trust)
		}
		if state.file != "" {
			if p.check(state.file); p.outcome() != state.want {
				t.Errorf("%s: the outcome is %q", state.name, p.outcome())
			}
			if state.name == "proved" {
				p.Wait("document.querySelectorAll('.record').length >= 10")
				p.Click(".record:nth-child(8) > summary")
				p.Click("form details.more > summary")
			}
		}
		for _, lang := range []string{"ja", "ru", "en"} {
			browsertest.Eval[bool](p.Browser, "document.querySelectorAll('#answers > *, #trusted > *').forEach(e => e.classList.add('before')), true")
			p.Select("#language", lang)
			p.Wait("document.documentElement.lang === '" + lang + "' && !document.querySelector('.before')")
			wide := browsertest.Eval[int](p.Browser, "document.documentElement.scrollWidth")
			must.Hold(t, wide <= phone, "%s in %s is %d wide", state.name, lang, wide)
			own := p.ownTexts()
			found := english.FindString(own)
			must.Hold(t, (found != "") == (lang == "en"), "%s in %s: %q", state.name, lang, found)
			p.Screenshot("portal-state-" + state.name + "-" + lang)
		}
		found := axe.Findings(p.Browser)
		p.Dark(true)
		found = append(found, axe.Findings(p.Browser, browsertest.Contrast)...)
		p.Screenshot("portal-state-" + state.name + "-dark")
		p.Dark(false)
		for _, f := range found {
			t.Errorf("%s: %s", state.name, f)
		}
	}
	p.quiet()
}

// english finds three English words in a row.
var english = regexp.MustCompile(`\b[A-Za-z][a-z]+ [a-z]+ [a-z]+\b`)

// ownTexts is what the page itself says, without the words of others and without what is marked as English. The statement names jurors, and is
// tested where it is written.
func (p *portalled) ownTexts() string {
	p.t.Helper()
	lines := browsertest.Eval[[]string](p.Browser, `(() => {
		const list = [];
		const walk = (n) => {
			if (n.nodeType === Node.TEXT_NODE) list.push(n.data);
			if (n.nodeType !== Node.ELEMENT_NODE || n.matches("script, style, noscript, pre, textarea, bdi, code, .statement") || n !== document.body && n.lang === "en") return;
			for (const c of n.childNodes) walk(c);
		};
		walk(document.body);
		return list;
	})()`)
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" }), "\n")
}

// BenchmarkPortal opens the saved page in a new browser and has one record checked. It reports the milliseconds from
// navigation to the verdict, and their parts. It puts the files into the page directly.
func BenchmarkPortal(b *testing.B) {
	browsertest.Find(b)
	dir := b.TempDir()
	page, payload, trust := filepath.Join(dir, "verify.html"), filepath.Join(dir, "payload.json"), filepath.Join(dir, "trust.json")
	command := func(args ...string) string {
		b.Helper()
		code, out, errs := jurat(b, append([]string{"--data", filepath.Join(dir, "data")}, args...)...)
		must.Need(b, code == 0, "%v", errs)
		return out
	}
	write := func(file, content string) {
		b.Helper()
		must.Do(b, os.WriteFile(file, []byte(content), 0o600))
	}
	command("portal", "--out", page)
	write(payload, `{"agent_id":"courier","request_id":"r","timestamp":"2025-12-31T23:59:00Z","model":"m","model_version":"1","prompt":"Plan.","response":"Take the A9.","parameters":{}}`)
	record := must.Get(jsontext.AppendQuote(nil, command("seal", payload)))(b)
	write(trust, command("trust"))
	sums := map[string]float64{}
	rounds := 0
	for b.Loop() {
		browser := browsertest.Open(b, browsertest.Options{CutOff: true})
		browser.Visit("file://" + page)
		browser.Choose("#trust", trust)
		browsertest.Eval[bool](browser, fmt.Sprintf("(document.querySelector('#pasted').value = %s, document.querySelector('#form').requestSubmit(), true)", record))
		browser.Wait("performance.getEntriesByName('found').length > 0")
		got := browsertest.Eval[string](browser, "document.querySelector('#answers article').dataset.outcome")
		must.Need(b, got == "proved", "%q", got)
		took := browsertest.Eval[map[string]float64](browser, `(() => { const [ready] = performance.getEntriesByName('ready'), [found] = performance.getEntriesByName('found');
			return {verdict: found.startTime, ready: ready.startTime, compile: ready.detail.compile, start: ready.detail.start} })()`)
		for what, ms := range took {
			sums[what] += ms
		}
		rounds++
	}
	for what, sum := range sums {
		b.ReportMetric(sum/float64(rounds), what+"-ms")
	}
}
