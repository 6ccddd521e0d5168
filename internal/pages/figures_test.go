package pages

import (
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"jurat/internal/words"
)

// firstView is how many bytes a first view may take, with the style sheet and the script, before any compression.
const firstView = 100_000

// TestFirstViewIsSmall: every page of the table is small with all that it loads, without compression.
func TestFirstViewIsSmall(t *testing.T) {
	for _, lang := range words.Langs() {
		for name, p := range everyPage(t, lang) {
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
		for name, p := range everyPage(t, lang) {
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
