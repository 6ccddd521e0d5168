package portal

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/words"
)

var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
	//go:embed page/worker.js
	workerJS string
	//go:embed page/wasm_exec.js
	goJS string
	//go:embed page/wasm_exec.LICENSE
	goLicense string
	//go:embed page/verifier.wasm.gz
	packedVerifier []byte
)

// File returns the page as one file. It is the same bytes from every jurat that was built from the same source.
func File() []byte { return file() }

var file = sync.OnceValue(func() []byte {
	style, script := pageCSS, pageJS
	// A saved page cannot be told by a header, and cannot be changed without its file's digest being another. The worker takes over
	// its policy.
	policy := "default-src 'none'; script-src " + hash(script) + " 'wasm-unsafe-eval'; style-src " + hash(style) +
		"; worker-src blob:; connect-src 'none'; base-uri 'none'; form-action 'none'"
	return assemble(map[string]string{
		"policy":  `<meta http-equiv="Content-Security-Policy" content="` + policy + `">`,
		"style":   "<style>" + style + "</style>",
		"script":  "<script>" + script + "</script>",
		"setting": data("setting", setting{}),
	})
})

// Digest is the SHA-256 of File, to compare.
func Digest() [sha256.Size]byte { return sha256.Sum256(File()) }

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// A Served page is handed out by a server.
type Served struct {
	Script string // where Script() is served
	Style  string // where Style() is served
	File   string // where File() is served
	Trust  []byte // the installation's trust file, to be chosen by who wants to; nil: there is none
}

// Policy is the Content-Security-Policy that a served page takes. Its origin is allowed to see nothing of what is dropped on it.
const Policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; worker-src blob:; connect-src 'none'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Script and Style are what a served page has beside it, under names that change with them.
func Script() []byte     { return []byte(pageJS) }
func Style() []byte      { return []byte(pageCSS) }
func ScriptName() string { return fmt.Sprintf("%x.js", sha256.Sum256([]byte(pageJS))) }
func StyleName() string  { return fmt.Sprintf("%x.css", sha256.Sum256([]byte(pageCSS))) }

// Page returns the page as a server serves it.
func (s Served) Page() []byte {
	return assemble(map[string]string{
		"policy":  "",
		"style":   `<link rel="stylesheet" href="` + s.Style + `">`,
		"script":  `<script src="` + s.Script + `"></script>`,
		"setting": data("setting", setting{Served: true, Download: s.File, Trust: string(s.Trust)}),
	})
}

// A setting is what the page is told of where it is.
type setting struct {
	Served   bool   `json:"served"`
	Download string `json:"download"`
	Trust    string `json:"trust"`
}

// assemble fills the page's places. What is in one is not searched for another.
func assemble(parts map[string]string) []byte {
	parts["texts"] = data("texts", texts())
	parts["noscript"] = noScript()
	parts["worker"] = block("worker", "text/plain", licensed()+"\n"+workerJS)
	parts["program"] = block("program", "text/plain", base64.StdEncoding.EncodeToString(packedVerifier))
	var old []string
	for name, part := range parts {
		old = append(old, "{{"+name+"}}", part)
	}
	return []byte(strings.NewReplacer(old...).Replace(pageHTML))
}

// A text is what the page says by itself in one language.
type text struct {
	Lang     words.Lang `json:"lang"`     // as in HTML
	Language string     `json:"language"` // its own name
	words.Portal
}

// texts are in every language; the first is for readers whose browser names none of them.
func texts() []text {
	list := make([]text, 0, len(words.Langs()))
	for _, lang := range words.Langs() {
		list = append(list, text{lang, lang.Name(), *words.PortalIn(lang)})
	}
	return list
}

// noScript tells readers whose browser runs no scripts, in every language, as none can be chosen without.
func noScript() string {
	var all strings.Builder
	for _, lang := range words.Langs() {
		fmt.Fprintf(&all, "\t<p lang=\"%s\">%s</p>\n", lang, html.EscapeString(words.PortalIn(lang).NoScript))
	}
	return all.String()
}

// licensed is Go's script with the licence under which it may be handed on.
func licensed() string { return "/*\n" + goLicense + "*/\n" + goJS }

// data is a value for the page's script to read; < is written as \u003c, so that no text in it ends the element.
func data(id string, value any) string {
	doc, err := json.Marshal(value, json.Deterministic(true), jsontext.EscapeForHTML(true))
	if err != nil {
		panic(fmt.Sprintf("portal: %s: %v", id, err)) // strings are all there is in it
	}
	return block(id, "application/json", string(doc))
}

// block is an element that is not executed.
func block(id, kind, content string) string {
	return `<script type="` + kind + `" id="` + id + `">` + content + "</script>"
}
