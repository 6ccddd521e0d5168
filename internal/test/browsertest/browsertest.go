// Package browsertest drives a real browser through pages, for tests. The browser is Chromium without a screen, one for each test
// binary. It has a temporary profile, and its own background requests are switched off.
package browsertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Options describe the visitor's browser. The zero Options are a wide window, English and light colours.
type Options struct {
	Languages string // as a browser names them, such as "ja,en"; "": English
	Width     int    // of the window in CSS pixels; 0: 1100
	Height    int    // 0: 900
	Dark      bool
	NoScripts bool // pages load no scripts
	CutOff    bool // no connection works, not even to this machine
}

// A Browser is a page with cookies of its own. It ends with the test.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex // guards what the page's events change
	requests []string
	problems []string
	names    map[string]string // of files being downloaded, by their ids
	files    []string          // the downloaded ones
}

// Screenshots names the environment variable with the folder that Screenshot writes to.
const Screenshots = "JURAT_TEST_SCREENSHOTS"

// patience limits every wait for a page, so that a test can report what it waited for.
const patience = 90 * time.Second

// Find returns the path of Chromium. It skips the test if there is no Chromium, and fails it under CI=true. It also
// skips under the race detector, if the test is in a file that imports this package: scripts/test runs those without the
// detector as well. Other tests cover the server's concurrency.
func Find(t testing.TB) string {
	t.Helper()
	skipUnderRace(t)
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("chromium is missing, and CI=true forbids skipping tests")
	}
	t.Skip("chromium is missing, which page tests need")
	return ""
}

// all is what the pages of a test binary share: one Chromium, which the kernel ends with this process. Then the reaper, whose input ends, removes its folder.
var all struct {
	once   sync.Once
	ctx    context.Context
	err    error
	agent  string // what the browser calls itself
	reaper *exec.Cmd
	tell   io.WriteCloser // input of the reaper
}

func start(t testing.TB, program string) error {
	folder, err := os.MkdirTemp("", "jurat-chromium-")
	if err != nil {
		return err
	}
	all.reaper = exec.Command("sh", "-c", `cat; until rm -rf "$0"; do sleep 0.1; done`, folder)
	if all.tell, err = all.reaper.StdinPipe(); err != nil {
		return err
	}
	if err := all.reaper.Start(); err != nil {
		return err
	}
	flags := []chromedp.ExecAllocatorOption{chromedp.ExecPath(program), chromedp.UserDataDir(folder), chromedp.Headless, chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Flag("lang", "en"),
		chromedp.Flag("enable-features", "NetworkServiceInProcess2")} // one process less
	for _, name := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage",
		"in-process-gpu", "disable-software-rasterizer", "disable-extensions", // each would be work of every browser, and no page of ours uses it
		"hide-scrollbars", "mute-audio", "disable-background-timer-throttling", "disable-renderer-backgrounding", "disable-backgrounding-occluded-windows"} {
		flags = append(flags, chromedp.Flag(name, true))
	}
	if _, measured := t.(*testing.B); !measured { // making WebAssembly fast takes longer than what tests have it do
		flags = append(flags, chromedp.Flag("js-flags", "--liftoff-only"))
	}
	allocator, _ := chromedp.NewExecAllocator(context.Background(), flags...)
	all.ctx, _ = chromedp.NewContext(allocator)
	version, err := chromedp.CallBrowser(all.ctx, browser.GetVersion, struct{}{})
	if err != nil {
		return err
	}
	all.agent = version.UserAgent
	return nil
}

func Open(t testing.TB, o Options) *Browser {
	t.Helper()
	program := Find(t)
	all.once.Do(func() { all.err = start(t, program) })
	if all.err != nil {
		t.Fatalf("starting the browser: %v", all.err)
	}
	ctx, cancel := chromedp.NewContext(all.ctx, chromedp.WithNewBrowserContext(func(p *target.CreateBrowserContextParams) {
		if o.CutOff { // sends all connections to a proxy that does not exist
			p.ProxyServer, p.ProxyBypassList = "http://127.0.0.1:9", "<-loopback>"
		}
	}))
	t.Cleanup(cancel)
	b := &Browser{t: t, ctx: ctx, names: map[string]string{}}
	b.check("opening a page", errors.Join(chromedp.Listen(ctx, b.hear), chromedp.ListenBrowser(ctx, b.hear)))
	call(b, "watching the network", network.Enable, network.EnableParams{})
	call(b, "being in front", emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	call(b, "preferring languages", emulation.SetUserAgentOverride,
		emulation.SetUserAgentOverrideParams{UserAgent: all.agent, AcceptLanguage: cmp.Or(o.Languages, "en")})
	b.Resize(cmp.Or(o.Width, 1100), cmp.Or(o.Height, 900))
	b.Dark(o.Dark)
	if o.NoScripts { // pages have scripts in files alone; where Chromium disables scripts, it runs none of the test's either
		call(b, "blocking scripts", network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{{URLPattern: "*://*:*/*.js", Block: true}}})
	}
	return b
}

func call[P, R any](b *Browser, doing string, command cdp.Command[P, R], parameters P) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, command, parameters)
	b.check(doing, err)
}

func (b *Browser) Resize(width, height int) {
	b.t.Helper()
	b.check("sizing the window", chromedp.Do(b.ctx, chromedp.EmulateViewport(int64(width), int64(height))))
}

func (b *Browser) CutOff() {
	b.t.Helper()
	everywhere := []*network.Conditions{{Offline: true, DownloadThroughput: -1, UploadThroughput: -1}}
	call(b, "leaving the network", network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: everywhere})
}

func (b *Browser) Dark(is bool) {
	b.t.Helper()
	scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: "light"}
	if is {
		scheme.Value = "dark"
	}
	call(b, "preferring colours", emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{scheme}})
}

func (b *Browser) check(doing string, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("%s: %v", doing, err)
	}
}

func (b *Browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *browser.EventDownloadWillBegin: // of any page
		if string(e.FrameID) == string(chromedp.FromContext(b.ctx).Target.TargetID) {
			b.names[e.GUID] = e.SuggestedFilename
		}
	case *browser.EventDownloadProgress:
		if b.names[e.GUID] != "" && e.State == browser.DownloadProgressStateCompleted {
			b.files = append(b.files, e.GUID)
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			text += " " + thrown.Description
		}
		b.problems = append(b.problems, text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			b.problems = append(b.problems, fmt.Sprintf("console: %v", e.Args))
		}
	case *log.EventEntryAdded: // for example violations of the Content-Security-Policy
		if e.Entry.Level == log.EntryLevelError {
			b.problems = append(b.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

func (b *Browser) copied(list *[]string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(*list)
}

func (b *Browser) Requests() []string { return b.copied(&b.requests) }

// Problems returns uncaught exceptions, and errors on the console.
func (b *Browser) Problems() []string { return b.copied(&b.problems) }

func (b *Browser) Visit(url string) {
	b.t.Helper()
	b.check("visiting "+url, chromedp.Do(b.ctx, chromedp.Navigate(url)))
}

func Eval[T any](b *Browser, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	b.check(expression, err)
	return value
}

// Wait waits until a JavaScript expression is true in the page. It ignores errors while another page is being loaded.
func (b *Browser) Wait(expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")", chromedp.EvalAwaitPromise))
		if err == nil && is {
			return
		}
		if time.Now().After(end) || b.ctx.Err() != nil {
			b.t.Fatalf("waited for %s (%v); the page says:\n%s\nproblems: %v", expression, err, b.Text("body"), b.Problems())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (b *Browser) Text(css string) string {
	b.t.Helper()
	return Eval[string](b, fmt.Sprintf("document.querySelector(%s)?.innerText ?? ''", quote(css)))
}

func (b *Browser) Choose(css string, files ...string) {
	b.t.Helper()
	b.check("choosing files in "+css, chromedp.Do(b.ctx, chromedp.SetUploadFiles(chromedp.CSS(css), files, chromedp.NodeReady)))
}

func (b *Browser) Click(css string) {
	b.t.Helper()
	b.check("clicking "+css, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(css))))
}

func (b *Browser) Type(css, text string) {
	b.t.Helper()
	b.check("typing into "+css, chromedp.Do(b.ctx, chromedp.SendKeys(chromedp.CSS(css), text)))
}

func (b *Browser) Press(key string) {
	b.t.Helper()
	b.check("pressing a key", chromedp.Do(b.ctx, chromedp.KeyEvent(key)))
}

// Reach presses the Tab key until an element has the focus.
func (b *Browser) Reach(css string) {
	b.t.Helper()
	var passed []string
	for range 100 {
		b.Press(kb.Tab)
		at := Eval[string](b, fmt.Sprintf("document.activeElement.matches(%s) ? '' : document.activeElement.outerHTML.slice(0, 80)", quote(css)))
		if at == "" {
			return
		}
		passed = append(passed, at)
	}
	b.t.Fatalf("the Tab key does not reach %s, but %q", css, passed)
}

func (b *Browser) Enter(css string) {
	b.t.Helper()
	b.Reach(css)
	b.Press(kb.Enter)
}

// Download clicks a link, and returns the path of the downloaded file, in a folder of the test.
func (b *Browser) Download(css string) string {
	b.t.Helper()
	folder := b.t.TempDir()
	on := true
	_, err := chromedp.CallBrowser(b.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName,
		BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID, DownloadPath: folder, EventsEnabled: &on})
	b.check("allowing downloads", err)
	before := len(b.copied(&b.files))
	b.Click(css)
	for end := time.Now().Add(patience); len(b.copied(&b.files)) == before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s gave no file; problems: %v", css, b.Problems())
		}
	}
	id := b.copied(&b.files)[before]
	b.mu.Lock()
	file := filepath.Join(folder, filepath.Base(b.names[id]))
	b.mu.Unlock()
	b.check("keeping what was downloaded", os.Rename(filepath.Join(folder, id), file))
	return file
}

// Select chooses an option of a list, as a visitor does.
func (b *Browser) Select(css, value string) {
	b.t.Helper()
	Eval[bool](b, fmt.Sprintf("(e => { e.value = %s; e.dispatchEvent(new Event('change', {bubbles: true})); return true })(document.querySelector(%s))", quote(value), quote(css)))
}

// Picture returns what the window shows as PNG, reduced to its most frequent colours: enough for text, in a third of the bytes.
func (b *Browser) Picture() []byte {
	b.t.Helper()
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	b.check("taking a picture", err)
	shown, err := png.Decode(bytes.NewReader(shot))
	b.check("reading a picture", err)
	picture := image.NewPaletted(shown.Bounds(), frequent(shown))
	draw.Draw(picture, picture.Bounds(), shown, image.Point{}, draw.Src)
	var out bytes.Buffer
	b.check("writing a picture", (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, picture))
	return out.Bytes()
}

func frequent(of image.Image) color.Palette {
	counts := map[color.Color]int{}
	for y := of.Bounds().Min.Y; y < of.Bounds().Max.Y; y++ {
		for x := of.Bounds().Min.X; x < of.Bounds().Max.X; x++ {
			counts[of.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] })
	return colours[:min(len(colours), 256)]
}

// Screenshot writes a picture of the whole page to the folder that Screenshots names, if it is set.
func (b *Browser) Screenshot(name string) {
	b.t.Helper()
	folder := os.Getenv(Screenshots)
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	b.check("taking a picture", err)
	b.check("writing a picture", os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644))
}

func quote(text string) string {
	doc, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be written
	}
	return string(doc)
}

// Tasks returns how much processor time each task of the pages' main threads took while do ran, the longest first. Unlike the time on the clock, it does
// not grow much with what else the machine does.
func (b *Browser) Tasks(do func()) (list []time.Duration) {
	b.t.Helper()
	var mu sync.Mutex
	var events []traced
	done := make(chan struct{})
	ended := sync.OnceFunc(func() { close(done) }) // the listener stays, and hears of later traces, too
	b.check("watching tasks", chromedp.Listen(b.ctx, func(event any) {
		switch e := event.(type) {
		case *tracing.EventDataCollected:
			mu.Lock()
			defer mu.Unlock()
			for _, value := range e.Value {
				var one traced
				if json.Unmarshal(value, &one) == nil { // events of other forms say nothing about tasks
					events = append(events, one)
				}
			}
		case *tracing.EventTracingComplete:
			ended()
		}
	}))
	categories := &tracing.TraceConfig{IncludedCategories: []string{"toplevel", "disabled-by-default-devtools.timeline"}}
	call(b, "beginning to trace", tracing.Start, tracing.StartParams{TraceConfig: categories})
	do()
	call(b, "ending the trace", tracing.End, struct{}{})
	select {
	case <-done:
	case <-time.After(patience):
		b.t.Fatal("the trace does not end")
	}
	mu.Lock()
	defer mu.Unlock()
	main := map[[2]int]bool{}
	for _, e := range events {
		if e.Name == "thread_name" && e.Args.Name == "CrRendererMain" {
			main[[2]int{e.Process, e.Thread}] = true
		}
	}
	for _, e := range events {
		if (e.Name == "RunTask" || e.Name == "ThreadControllerImpl::RunTask") && main[[2]int{e.Process, e.Thread}] {
			list = append(list, time.Duration(e.Used)*time.Microsecond)
		}
	}
	slices.SortFunc(list, func(a, b time.Duration) int { return int(b - a) })
	return list
}

// A traced event is what Tasks needs of one.
type traced struct {
	Name    string `json:"name"`
	Process int    `json:"pid"`
	Thread  int    `json:"tid"`
	Used    int64  `json:"tdur"` // microseconds of the processor
	Args    struct {
		Name string `json:"name"`
	} `json:"args"`
}

// NPM names the environment variable with the folder of npm packages that scripts/test installs. axe-core is one of them.
const NPM = "JURAT_TEST_OPENAPI"

// Axe is axe-core, which finds what keeps people out of a page. It is no part of this project.
type Axe struct{ program string }

// FindAxe reads axe-core. It skips the test if axe-core is not installed, and fails it under CI=true.
func FindAxe(t interface {
	Helper()
	Skip(...any)
	Fatal(...any)
}) *Axe {
	t.Helper()
	program, err := os.ReadFile(filepath.Join(os.Getenv(NPM), "node_modules", "axe-core", "axe.min.js"))
	switch {
	case err == nil:
		return &Axe{string(program)}
	case os.Getenv("CI") == "true":
		t.Fatal(NPM + " names no folder with axe-core: scripts/test installs it")
	}
	t.Skip(NPM + " names no folder with axe-core: scripts/test installs it")
	return nil
}

// Contrast is axe-core's rule on colours, the only one whose answer depends on the visitor's preferred colours.
const Contrast = "color-contrast"

// Findings returns what axe-core finds in the open page. rules names its rules; none: all.
func (a *Axe) Findings(b *Browser, rules ...string) []string {
	b.t.Helper()
	if !Eval[bool](b, `typeof axe === "object"`) {
		Eval[bool](b, `(()=>{`+a.program+`})();true`)
	}
	options := "{resultTypes: ['violations']}"
	if len(rules) > 0 {
		options = fmt.Sprintf("{resultTypes: ['violations'], runOnly: ['%s']}", strings.Join(rules, "', '"))
	}
	return Eval[[]string](b, `axe.run(`+options+`).then(r => r.violations.map(v => v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(" | ")))`)
}
