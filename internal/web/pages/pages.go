// Package pages writes the pages for people: the courtroom, the desk, records, chains.
//
// A page is a view model (Court, Desk, Sealed, ...), made only from sealed records, and a template that shows it. The package uses no ledger, clock or
// network: the caller collects the records and names the viewer.
//
// # Text that others wrote
//
// Almost every word on these pages was written by an agent under trial, a model or a stranger. The pages keep two promises about it. It is inert:
// only html/template escapes, and no text becomes an element, an attribute's name, a link or a style. It is intact: a browser selects and copies
// exactly the original characters. Characters that change how a line reads (bidirectional controls, other control and invisible characters) stay in
// their places. Each is in a <bdi> of its own, where an override has no effect, and has a visible mark beside it, which a style sheet draws, so that
// it is seen but not copied. U+0000 cannot be in an HTML document: it is shown as U+FFFD, with its mark; the record's JSON has the original.
//
// # Languages
//
// Package words has every text of this program. Templates write {{t "desk.title"}}, {{t "card.skills" "n" 3}} if a text has places, and
// {{name .Status}} for a value of a record. Tests check that every text exists and is used.
package pages

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/court/trial"
	"jurat/internal/web/words"
	"jurat/jury"
	"jurat/verify"
)

// A Frame is what surrounds every page.
type Frame struct {
	Lang   words.Lang
	Path   string  // of the page, with its query, for the links that choose a language; begins with "/"
	Viewer *Viewer // nil: signed out
}

type Viewer struct {
	Name     string
	Form     string // the session's form key, which goes into every form
	Submits  bool   // may put agents before the jury
	Reviews  bool   // may decide at the desk
	Oversees bool   // may see the desk
	Operates bool   // may see who may do what
}

// A Page is a pointer to a view model of this package. The template that shows it has the name of its type, in small letters.
type Page any

// A Refusal says why what a page's form sent was refused. It is part of every page with a form.
type Refusal struct {
	Code    int    // the status of the answer; 0: nothing was refused
	Problem string // "": nothing was refused
}

func (f *Refusal) Refuse(p *api.Problem) { f.Code, f.Problem = p.Status, ProblemText(p) }

func (f *Refusal) code() int { return f.Code }

// ProblemText describes a problem on the page that shows the form again.
func ProblemText(p *api.Problem) string {
	text := cmp.Or(p.Detail, p.Title)
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	return text
}

func Status(p Page) int {
	if refused, can := p.(interface{ code() int }); can && refused.code() != 0 {
		return refused.code()
	}
	return http.StatusOK
}

type sheet struct {
	Frame
	Page Page
}

//go:embed templates/*.html
var templateFiles embed.FS

// templates holds a set for each language, parsed when it is first used: most commands write no page. t returns that language's texts.
var templates = func() map[words.Lang]func() *template.Template {
	sets := map[words.Lang]func() *template.Template{}
	for _, lang := range words.Langs() {
		sets[lang] = sync.OnceValue(func() *template.Template {
			return template.Must(template.New("").Funcs(functions(lang)).ParseFS(templateFiles, "templates/*.html"))
		})
	}
	return sets
}()

// Write writes a whole page. It returns an error for an unknown language and if the template or w fails.
func Write(w io.Writer, f Frame, p Page) error {
	set := templates[f.Lang]
	if set == nil {
		return fmt.Errorf("writing page: there is no language %q", f.Lang)
	}
	// The page is buffered, because a template that fails halfway must not leave half a page that looks complete.
	var page bytes.Buffer
	if err := set().ExecuteTemplate(&page, strings.ToLower(reflect.TypeOf(p).Elem().Name()), sheet{f, p}); err != nil {
		return fmt.Errorf("writing page: %w", err)
	}
	_, err := w.Write(page.Bytes())
	return err
}

func functions(lang words.Lang) template.FuncMap {
	says := words.OfPages(lang)
	return template.FuncMap{
		"t":       says.Say,
		"of":      func(kind string, value any) string { return says.Say(kind + "." + fmt.Sprint(value)) },
		"name":    func(value any) string { return name(lang, value) },
		"class":   class,
		"lang":    func() words.Lang { return lang },
		"join":    func(list []string) string { return strings.Join(list, ", ") },
		"view":    func(r *verify.Report) *words.View { return words.ViewOf(lang, r) },
		"line":    func(f verify.Finding) words.Line { return words.LineOf(lang, verify.Group{Finding: f}) },
		"langs":   languageLinks,
		"said":    said,
		"long":    long,
		"folds":   folds,
		"lines":   lines,
		"plain":   plain,
		"clock":   clock,
		"instant": instant,
		"asset":   assetPath,
		"millis":  millis,
		"nth":     func(i int) int { return i + 1 },
		"width":   width,
		"percent": percent,
		"share":   func(perMyriad int64) int64 { return min(max(perMyriad/100, 0), 100) },
		"row":     row,
		"agent":   func(name string) string { return "/agents/" + url.PathEscape(name) },
		"dollars": func(micro int64) string { return fmt.Sprintf("$%d.%02d", micro/1_000_000, micro/10_000%100) },

		"recording":   recordingPath,
		"coefficient": func(value *float64) string { return share2(says, value) },
		"positioned":  func(position string) string { return name(lang, jury.Position(position)) },
		"positions":   func() []jury.Position { return []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail} },
	}
}

func width(score, most int) int {
	if most <= 0 {
		return 0
	}
	return min(max(score*100/most, 0), 100)
}

// row passes several values to an included template.
func row(pairs ...any) (map[string]any, error) {
	values := map[string]any{}
	for pair := range slices.Chunk(pairs, 2) {
		name, ok := pair[0].(string)
		if !ok || len(pair) != 2 {
			return nil, fmt.Errorf("row wants names and values, not %v", pair)
		}
		values[name] = pair[1]
	}
	return values, nil
}

// A languageLink shows the same page in another language.
type languageLink struct {
	Lang words.Lang
	Name string // in the language itself
	Href string
	Here bool
}

func languageLinks(f Frame) []languageLink {
	var links []languageLink
	for _, lang := range words.Langs() {
		links = append(links, languageLink{lang, lang.Name(), inLanguage(f.Path, lang), lang == f.Lang})
	}
	return links
}

// inLanguage adds ?lang= to a path of this server. For an invalid path it returns the home page's.
func inLanguage(path string, lang words.Lang) string {
	u, err := url.Parse(path)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") {
		u = &url.URL{Path: "/"}
	}
	query := u.Query()
	query.Set("lang", string(lang))
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: query.Encode()}).String() // a name in the path may have a slash
}

const AssetPrefix = "/static/"

//go:embed static
var staticFiles embed.FS

// An asset is a static file under a name that changes with its content, so that browsers can keep it forever.
type asset struct {
	path    string // contains the digest of the content
	kind    string // media type
	content []byte
}

var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// assets holds the static files by their plain names.
var assets = func() map[string]asset {
	byName := map[string]asset{}
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		panic(err) // the files are part of the program
	}
	for _, e := range entries {
		content, err := staticFiles.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		extension := path.Ext(e.Name())
		byName[e.Name()] = asset{AssetPrefix + strings.TrimSuffix(e.Name(), extension) + "." + hex.EncodeToString(sum[:8]) + extension,
			contentTypes[extension], content}
	}
	return byName
}()

func assetPath(name string) (string, error) {
	a, is := assets[name]
	if !is {
		return "", fmt.Errorf("there is no static file %q", name)
	}
	return a.path, nil
}

func Asset(path string) (content []byte, mediaType string, found bool) {
	for _, a := range assets {
		if a.path == path {
			return a.content, a.kind, true
		}
	}
	return nil, "", false
}

// Home is the first page: the list of trials, and the form for a new one.
type Home struct {
	Trials   []Summary // the newest first
	Older    string    // the address of older ones; "": there are none
	Examples []Example
	Panel    []string // the models that would sit
	Rules    bool     // rules would sit
	Hidden   bool     // there may be trials that the viewer may not see
	Key      string   // the forms' idempotency key: sending a form twice makes one trial
	Refusal
}

type Example struct{ ID, Agent string }

// A Summary is a trial in one line.
type Summary struct {
	trial.Summary
	State api.State
}

func (s Summary) Marks() []Mark {
	return append(marks(s.Outcome != nil && s.Outcome.Verdict.Inconclusive, Inconclusive, s.Degraded, Degraded, s.Offline, Offline), reasons(s.Outcome)...)
}

type SignIn struct {
	Refusal
	Next     string // the path to go to afterwards
	Link     string // the secret of a one-time link that led here; "": the page asks for a token
	Form     string // the form key of a viewer who is signed in already
	OpenID   string // the address that asks an identity provider; "": there is none
	Provider string // its name
}

type Trouble struct {
	Code   int
	Detail string // what is wrong and what to do next, in English
}

func (p *Trouble) code() int { return p.Code }

// Key is that of the text that names the kind of error.
func (p *Trouble) Key() string {
	key := map[int]string{401: "trouble.sign_in", 403: "trouble.forbidden", 404: "trouble.missing", 429: "trouble.busy", 503: "trouble.busy"}[p.Code]
	if p.Code >= 500 {
		key = cmp.Or(key, "trouble.ours")
	}
	return cmp.Or(key, "trouble.refused")
}

type Access struct {
	Grants []Granted
	Ended  bool // what has ended is shown, too
	Began  time.Time
	Next   int // the number of the next page; 0: this is the last one
}

// Granted is a token, and what became of it.
type Granted struct {
	api.Grant
	Used  time.Time // the last request since the server began; zero: none
	Acted time.Time // the last record under the name; zero: none that the log has counted
}

func (g Granted) Good() bool { return g.State == api.GrantGood }

// Token is the page of one token: what its owner did, and the form that ends it.
type Token struct {
	Granted
	Acts  []Act
	Began time.Time
	Own   bool   // it is the viewer's own, or the one under their session
	Typed string // the reason as it was typed
	Refusal
}

// An Act is a record that a person or an agent made.
type Act struct {
	ID     string
	Action evidence.ActionType // "": it has expired
	At     time.Time
}
