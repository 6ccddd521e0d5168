package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/browsertest"
	"jurat/internal/must"
)

// BenchmarkPortal opens the saved page in a new browser and has one record checked. It reports the milliseconds from
// navigation to the verdict, and their parts. It puts the files into the page directly.
func BenchmarkPortal(b *testing.B) {
	browsertest.Find(b)
	dir := b.TempDir()
	page, payload, trust := filepath.Join(dir, "verify.html"), filepath.Join(dir, "payload.json"), filepath.Join(dir, "trust.json")
	command := func(args ...string) string {
		b.Helper()
		code, out, errs := jurat(b, append([]string{"--data", filepath.Join(dir, "data")}, args...)...)
		if code != 0 {
			b.Fatal(errs)
		}
		return out
	}
	write := func(file, content string) {
		b.Helper()
		must.Do(b, os.WriteFile(file, []byte(content), 0o600))
	}
	command("portal", "--out", page)
	write(payload, `{"agent_id":"courier","request_id":"r","timestamp":"2025-12-31T23:59:00Z","model":"m","model_version":"1","prompt":"Plan.","response":"Take the A9.","parameters":{}}`)
	record := must.Get(jsontext.AppendQuote(nil, command("seal", payload)))(b)
	write(trust, command("trust"))
	sums := map[string]float64{}
	rounds := 0
	for b.Loop() {
		browser := browsertest.Open(b, browsertest.Options{CutOff: true})
		browser.Visit("file://" + page)
		browser.Choose("#trust", trust)
		browsertest.Eval[bool](browser, fmt.Sprintf("(document.querySelector('#pasted').value = %s, document.querySelector('#form').requestSubmit(), true)", record))
		browser.Wait("performance.getEntriesByName('found').length > 0")
		if got := browsertest.Eval[string](browser, "document.querySelector('#answers article').dataset.outcome"); got != "proved" {
			b.Fatalf("%q", got)
		}
		took := browsertest.Eval[map[string]float64](browser, `(() => { const [ready] = performance.getEntriesByName('ready'), [found] = performance.getEntriesByName('found');
			return {verdict: found.startTime, ready: ready.startTime, compile: ready.detail.compile, start: ready.detail.start} })()`)
		for what, ms := range took {
			sums[what] += ms
		}
		rounds++
	}
	for what, sum := range sums {
		b.ReportMetric(sum/float64(rounds), what+"-ms")
	}
}
