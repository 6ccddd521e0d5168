package pages

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"jurat/internal/words"
)

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
					if words.OfPages(lang)[shown[1]] != "" {
						t.Errorf("%s in %s shows the key of a text, %s", name, lang, shown[1])
					}
				}
			}
		}
	}
}

func TestFlawsAreFound(t *testing.T) {
	const good = `<!doctype html><html lang="en"><title>x</title><main><h1>x</h1><footer></footer>`
	if f := flaws(parse(t, good)); len(f) > 0 {
		t.Fatalf("flaws %q", f)
	}
	for _, bad := range []string{`<h3>x</h3>`, `<h2></h2>`, `<p id=a></p><p id=a></p>`, `<a href="#no">x</a>`, `<input id=i>`, `<button></button>`,
		`<p style="x">`, `<p onclick="x">`, `<script>x</script>`, `<section></section>`, `<nav></nav>`, `<table><th>x</table>`, `<form></form>`,
		`<p aria-labelledby=no>`, `<main></main>`, `<h1>x</h1>`} {
		if f := flaws(parse(t, good+bad)); len(f) != 1 {
			t.Errorf("%s: flaws %q", bad, f)
		}
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
				if u, err := url.Parse(address); err != nil || u.Host != "" || u.Scheme != "" {
					t.Errorf("%s: <%s %s=%q>", name, n.Data, key, address)
				}
				if strings.HasPrefix(address, AssetPrefix) {
					if _, kind, found := Asset(address); !found || kind == "" {
						t.Errorf("%s: there is no static file %s", name, address)
					}
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
			if size > firstView {
				t.Errorf("%s in %s takes %d bytes at first", name, lang, size)
			}
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
				if is := sentence.FindString(found); (is != "") != (lang == words.English) {
					t.Errorf("%s in %s: %q", name, lang, is)
				}
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
