// Package browsertest drives a real browser through pages, for tests. The browser is Chromium, without a screen, with a
// profile of its own that is thrown away, and with its own errands switched off.
package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Options say what the visitor's browser is like. The zero Options are a wide window, English and light.
type Options struct {
	Languages string // as a browser names them, such as "ja,en"; "": English
	Width     int    // of the window in CSS pixels; 0: 1100
	Height    int    // 0: 900
	Dark      bool
	CutOff    bool // no connection can be made, not even to this machine
}

// A Browser has one page open. It ends with the test.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex // guards what the page does by itself
	requests []string
	problems []string
}

// Screenshots names the environment variable with the folder that Screenshot writes to.
const Screenshots = "JURAT_TEST_SCREENSHOTS"

// patience bounds every wait for a page, so that a test that waits for what never comes says what it waited for.
const patience = 90 * time.Second

// Find returns where Chromium is. A test for which there is none is skipped, and fails under CI=true.
func Find(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("there is no chromium, and under CI=true nothing is skipped")
	}
	t.Skip("there is no chromium, in which pages are tried")
	return ""
}

// Open starts a browser.
func Open(t testing.TB, o Options) *Browser {
	t.Helper()
	if o.Languages == "" {
		o.Languages = "en"
	}
	if o.Width == 0 {
		o.Width = 1100
	}
	if o.Height == 0 {
		o.Height = 900
	}
	flags := []chromedp.ExecAllocatorOption{chromedp.ExecPath(Find(t)), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.WindowSize(o.Width, o.Height)}
	for _, name := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage", "hide-scrollbars", "mute-audio"} {
		flags = append(flags, chromedp.Flag(name, true))
	}
	flags = append(flags, chromedp.Flag("accept-lang", o.Languages), chromedp.Flag("lang", strings.Split(o.Languages, ",")[0]))
	if o.CutOff { // everything goes by a proxy that is not there
		flags = append(flags, chromedp.Flag("proxy-server", "http://127.0.0.1:9"), chromedp.Flag("proxy-bypass-list", "<-loopback>"))
	}
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), flags...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &Browser{t: t, ctx: ctx}
	b.check("starting the browser", chromedp.Listen(ctx, b.hear))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	b.check("watching the network", err)
	b.check("sizing the window", chromedp.Do(ctx, chromedp.EmulateViewport(int64(o.Width), int64(o.Height))))
	b.Dark(o.Dark)
	return b
}

// Dark sets which colours the visitor prefers.
func (b *Browser) Dark(is bool) {
	b.t.Helper()
	scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: "light"}
	if is {
		scheme.Value = "dark"
	}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{scheme}})
	b.check("preferring colours", err)
}

func (b *Browser) check(doing string, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("%s: %v", doing, err)
	}
}

// hear keeps what the page asks the network for, and what goes wrong in it.
func (b *Browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
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
	case *log.EventEntryAdded: // such as what a Content-Security-Policy refuses
		if e.Entry.Level == log.EntryLevelError {
			b.problems = append(b.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// Requests are the addresses that the pages asked for, themselves included.
func (b *Browser) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// Problems are exceptions that nothing caught, and what was written to the console as an error.
func (b *Browser) Problems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.problems)
}

// Visit goes to an address and waits until the page is loaded.
func (b *Browser) Visit(url string) {
	b.t.Helper()
	b.check("visiting "+url, chromedp.Do(b.ctx, chromedp.Navigate(url)))
}

// Eval returns what a JavaScript expression gives in the page.
func Eval[T any](b *Browser, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	b.check(expression, err)
	return value
}

// Wait waits until a JavaScript expression is true in the page.
func (b *Browser) Wait(expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; {
		if Eval[bool](b, "Boolean("+expression+")") {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("waited for %s; the page says:\n%s\nproblems: %v", expression, b.Text("body"), b.Problems())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Text is the visible text of an element.
func (b *Browser) Text(css string) string {
	b.t.Helper()
	return Eval[string](b, fmt.Sprintf("document.querySelector(%s)?.innerText ?? ''", quote(css)))
}

// Choose chooses files in a file field, as if they had been picked.
func (b *Browser) Choose(css string, files ...string) {
	b.t.Helper()
	b.check("choosing files in "+css, chromedp.Do(b.ctx, chromedp.SetUploadFiles(chromedp.CSS(css), files, chromedp.NodeReady)))
}

// Click clicks an element with the mouse.
func (b *Browser) Click(css string) {
	b.t.Helper()
	b.check("clicking "+css, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(css))))
}

// Type types into an element.
func (b *Browser) Type(css, text string) {
	b.t.Helper()
	b.check("typing into "+css, chromedp.Do(b.ctx, chromedp.SendKeys(chromedp.CSS(css), text)))
}

// Press presses a key, such as kb.Tab, wherever the focus is.
func (b *Browser) Press(key string) {
	b.t.Helper()
	b.check("pressing a key", chromedp.Do(b.ctx, chromedp.KeyEvent(key)))
}

// Select chooses an option of a list, as a visitor does.
func (b *Browser) Select(css, value string) {
	b.t.Helper()
	Eval[bool](b, fmt.Sprintf("(e => { e.value = %s; e.dispatchEvent(new Event('change', {bubbles: true})); return true })(document.querySelector(%s))", quote(value), quote(css)))
}

// Screenshot writes a picture of the whole page to the folder that Screenshots names, if it names one.
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

// quote writes a string as JavaScript does.
func quote(text string) string {
	doc, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be written
	}
	return string(doc)
}
