package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jurat/internal/browsertest"
	"jurat/internal/must"
)

// TestPortalInEveryState checks in the portal a case file that is proved, one that is refuted, one of which nothing is proved, and a file that is none.
// In each state, on a phone: axe-core finds nothing, in light colours and in dark ones; nothing is wider than the screen; and in Japanese and
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
		}
		for _, lang := range []string{"ja", "ru", "en"} {
			browsertest.Eval[bool](p.Browser, "document.querySelectorAll('#answers > *, #trusted > *').forEach(e => e.classList.add('before')), true")
			p.Select("#language", lang)
			p.Wait("document.documentElement.lang === '" + lang + "' && !document.querySelector('.before')")
			if wide := browsertest.Eval[int](p.Browser, "document.documentElement.scrollWidth"); wide > phone {
				t.Errorf("%s in %s is %d wide", state.name, lang, wide)
			}
			own := p.ownTexts()
			if found := english.FindString(own); (found != "") != (lang == "en") {
				t.Errorf("%s in %s: %q", state.name, lang, found)
			}
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
