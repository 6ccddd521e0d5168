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

	"jurat/internal/web/words"
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
	//go:embed page/verifier.wasm.lzma
	packedVerifier []byte
)

// File returns the page as one file. Every jurat built from the same source returns the same bytes.
func File() []byte { return file() }

var file = sync.OnceValue(func() []byte {
	style, script := pageCSS, pageJS
	// A saved page has no headers, so the policy is in the page itself, under the file's digest. The worker inherits
	// the policy.
	policy := "default-src 'none'; script-src " + hash(script) + " 'wasm-unsafe-eval'; style-src " + hash(style) +
		"; worker-src blob:; connect-src 'none'; base-uri 'none'; form-action 'none'"
	return assemble(map[string]string{
		"policy":  `<meta http-equiv="Content-Security-Policy" content="` + policy + `">`,
		"style":   "<style>" + style + "</style>",
		"script":  "<script>" + script + "</script>",
		"setting": data("setting", setting{}),
	})
})

// Digest returns the SHA-256 of File, for comparison.
func Digest() [sha256.Size]byte { return sha256.Sum256(File()) }

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// A Served page is the page that a server serves.
type Served struct {
	Script string // where Script() is served
	Style  string // where Style() is served
	File   string // where File() is served
	Trust  []byte // the installation's trust file, which the visitor can choose; nil: none
}

// Policy is the Content-Security-Policy of a served page. Under it, the server's origin cannot see the files that the
// page reads.
const Policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; worker-src blob:; connect-src 'none'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Script and Style are the files beside a served page. Their names contain their digests.
func Script() []byte     { return []byte(pageJS) }
func Style() []byte      { return []byte(pageCSS) }
func ScriptName() string { return fmt.Sprintf("%x.js", sha256.Sum256([]byte(pageJS))) }
func StyleName() string  { return fmt.Sprintf("%x.css", sha256.Sum256([]byte(pageCSS))) }

func (s Served) Page() []byte {
	return assemble(map[string]string{
		"policy":  "",
		"style":   `<link rel="stylesheet" href="` + s.Style + `">`,
		"script":  `<script src="` + s.Script + `"></script>`,
		"setting": data("setting", setting{Served: true, Download: s.File, Trust: string(s.Trust)}),
	})
}

// A setting tells the page where it runs.
type setting struct {
	Served   bool   `json:"served"`
	Download string `json:"download"`
	Trust    string `json:"trust"`
}

// assemble fills the page's places. It does not search the inserted parts for places.
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

// texts returns the page's texts in every language, by the names that its script asks for. The first language is for readers whose browser
// names none of them.
func texts() []map[string]any {
	var list []map[string]any
	for _, lang := range words.Langs() {
		members := map[string]string{} // of records
		all := map[string]any{"lang": lang, "language": lang.Name(), "members": members}
		for key, text := range words.OfPages(lang) {
			if name, is := strings.CutPrefix(key, "portal.members."); is {
				members[name] = text
			} else if name, is := strings.CutPrefix(key, "portal."); is {
				all[name] = text
			}
		}
		list = append(list, all)
	}
	return list
}

// noScript returns, in every language, the text for browsers that run no scripts. Without scripts the reader cannot
// choose a language.
func noScript() string {
	var all strings.Builder
	for _, lang := range words.Langs() {
		fmt.Fprintf(&all, "\t<p lang=\"%s\">%s</p>\n", lang, html.EscapeString(words.OfPages(lang).Say("noscript.portal")))
	}
	return all.String()
}

func licensed() string { return "/*\n" + goLicense + "*/\n" + goJS }

// data returns a value for the page's script. It writes < as \u003c, so that no text can end the element.
func data(id string, value any) string {
	doc, err := json.Marshal(value, json.Deterministic(true), jsontext.EscapeForHTML(true))
	if err != nil {
		panic(fmt.Sprintf("portal: %s: %v", id, err)) // the values consist of strings
	}
	return block(id, "application/json", string(doc))
}

// block returns an element that browsers do not execute.
func block(id, kind, content string) string {
	return `<script type="` + kind + `" id="` + id + `">` + content + "</script>"
}
