package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

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
