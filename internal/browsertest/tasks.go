package browsertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

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
	_, err := chromedp.Call(b.ctx, tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{IncludedCategories: []string{"toplevel", "disabled-by-default-devtools.timeline"}}})
	b.check("beginning to trace", err)
	do()
	_, err = chromedp.Call(b.ctx, tracing.End, struct{}{})
	b.check("ending the trace", err)
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
