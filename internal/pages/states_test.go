package pages

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"jurat/internal/browsertest"
	"jurat/internal/words"
)

// axe is the environment variable with the file axe.min.js of axe-core, which finds what keeps people out of a page. It is
// no part of this project.
const axe = "JURAT_TEST_AXE"

// TestAxe has axe-core look at every page of the table, in each language, on a light phone and a dark one.
func TestAxe(t *testing.T) {
	file := os.Getenv(axe)
	if file == "" {
		t.Skip(axe + " does not name axe-core's axe.min.js")
	}
	program, err := os.ReadFile(file)
	check(t, err)
	for _, dark := range []bool{false, true} {
		b := browsertest.Open(t, browsertest.Options{Width: 360, Height: 740, Dark: dark})
		for _, lang := range words.Langs() {
			pages := everyPage(t, lang)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				fmt.Fprint(w, write(t, Frame{Lang: lang, Path: "/x", Viewer: viewer}, p))
			}))
			for name := range pages {
				b.Visit(server.URL + "/" + name)
				browsertest.Eval[bool](b, string(program)+";true")
				found := browsertest.Eval[[]string](b, `axe.run().then(r => r.violations.map(v => v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(" | ")))`)
				for _, f := range found {
					t.Errorf("%s in %s, dark %t: %s", name, lang, dark, f)
				}
				if wide := browsertest.Eval[int](b, `document.documentElement.scrollWidth`); wide > 360 {
					t.Errorf("%s in %s is %d wide", name, lang, wide)
				}
			}
			server.Close()
		}
	}
}
