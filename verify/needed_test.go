package verify_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/internal/test/must"
)

// checked are the packages in which a reader's checks stand, and those whose tests must notice when one is missing: the vectors first.
var (
	checked  = []string{"evidence/...", "jury", "timestamp", "verify/..."}
	noticing = []string{"verify/...", "evidence/...", "jury", "timestamp"}
)

// A guard is one condition under which the code of a reader refuses or doubts: an operand of the condition of an if or a case.
type guard struct {
	at   string // file, function and source of the condition
	file string
	from int
	to   int
}

// disabling is the package of which the conditions ask whether they are switched off. It exists only in the overlay of the build.
const disabling = `package disabled

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

var (
	off     atomic.Int64
	mu      sync.Mutex
	seen    = map[int]bool{}
	told, _ = os.OpenFile(os.Getenv("JURAT_TEST_REFUSED"), os.O_APPEND|os.O_WRONLY, 0)
)

func init() {
	n, _ := strconv.Atoi(os.Getenv("JURAT_TEST_DISABLED"))
	Off(n)
}

// Off switches off a check, and on all others.
func Off(n int) { off.Store(int64(n)) }

// Watch returns a function that says which checks refused something since.
func Watch() func() []int {
	mu.Lock()
	defer mu.Unlock()
	clear(seen)
	return func() (all []int) {
		mu.Lock()
		defer mu.Unlock()
		for n := range seen {
			all = append(all, n)
		}
		return all
	}
}

// If tells that check n refuses, and lets pass what it refuses if it is switched off.
func If(n int, refuses bool) bool {
	if !refuses {
		return false
	}
	mu.Lock()
	defer mu.Unlock()
	if !seen[n] && told != nil {
		fmt.Fprintln(told, n)
	}
	seen[n] = true
	return int64(n) != off.Load()
}
`

// noticing is the test in which the vectors judge, in one process. It exists only in the overlay, too.
const vectorsNotice = `package verify_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"jurat/internal/disabled"
)

func TestVectorsNotice(t *testing.T) {
	files, m := readVectors(t), readVectorManifest(t)
	type answer struct {
		report  *expectedReport
		refused bool
	}
	ask := func(v verificationVector) (a answer, ended bool) {
		answers.Clear() // of the same question with the check
		over := make(chan bool, 1)
		go func() {
			ended := false
			defer func() {
				_ = recover()
				over <- ended
			}()
			a.report, a.refused = reportOnVector(new(testing.T), files, v)
			ended = true
		}()
		select {
		case ended := <-over:
			return a, ended
		case <-time.After(20 * time.Second):
			return answer{}, false
		}
	}
	noticed := map[int]bool{}
	for _, v := range m.Verifications {
		refusing := disabled.Watch()
		want, _ := ask(v)
		for _, n := range refusing() {
			if noticed[n] {
				continue
			}
			disabled.Off(n)
			got, ended := ask(v)
			disabled.Off(0)
			if !ended || !reflect.DeepEqual(got, want) {
				noticed[n] = true
				fmt.Println("noticed", n)
			}
		}
	}
}
`

// TestEveryCheckIsNeeded switches off every check of a reader, one at a time, and demands that a vector or a test notices it. It tries those in which the
// check refused something. What nothing notices stands in testdata/unnoticed, a list that only gets shorter: checks that another makes needless for now,
// such as a bound before a bound, and checks that still want a test.
func TestEveryCheckIsNeeded(t *testing.T) {
	if os.Getenv("JURAT_TEST_LONG") == "" {
		t.Skip("it runs tests a thousand times: set JURAT_TEST_LONG=1")
	}
	root := must.Get(filepath.Abs(".."))(t)
	checks := checksIn(t, root)
	must.Need(t, len(checks) >= 500, "this test found only %d checks; it searches wrongly, or they are gone", len(checks))
	build := overlay(t, root, checks)
	open := map[int]bool{}
	for i := range checks {
		open[i+1] = true
	}
	for _, folder := range folders(t, root, noticing) {
		program := filepath.Join(t.TempDir(), "judge")
		out, err := exec.Command("go", "test", "-vet=off", "-overlay", build, "-c", "-o", program, "../"+folder).CombinedOutput()
		must.Need(t, err == nil, "%s: %v\n%s", folder, err, out)
		if _, err := os.Stat(program); err != nil {
			continue // it has no tests
		}
		if folder == "verify" {
			judgeByVectors(t, program, filepath.Join(root, folder), open)
			t.Logf("after the vectors %d of %d checks are left", len(open), len(checks))
		}
		judge(t, program, filepath.Join(root, folder), open)
		t.Logf("after the tests of %s %d of %d checks are left", folder, len(open), len(checks))
	}
	var unnoticed []string
	for n := range open {
		unnoticed = append(unnoticed, checks[n-1].at)
	}
	slices.Sort(unnoticed)
	want := must.Get(os.ReadFile(filepath.Join("testdata", "unnoticed")))(t)
	known := strings.Split(strings.TrimSpace(string(want)), "\n")
	for _, at := range unnoticed {
		must.Hold(t, slices.Contains(known, at), "nothing notices when this check is gone: %s", at)
	}
	t.Logf("%d checks, %d of them not noticed", len(checks), len(unnoticed))
}

// judgeByVectors removes from open those checks that a vector notices.
func judgeByVectors(t *testing.T, program, folder string, open map[int]bool) {
	t.Helper()
	run := exec.Command(program, "-test.run", "^TestVectorsNotice$")
	run.Dir = folder
	out, err := run.CombinedOutput()
	must.Need(t, err == nil, "%v\n%s", err, out)
	for line := range strings.Lines(string(out)) {
		if n, found := strings.CutPrefix(strings.TrimSpace(line), "noticed "); found {
			n, _ := strconv.Atoi(n)
			delete(open, n)
		}
	}
}

// judge removes from open those checks that a test of the program notices.
func judge(t *testing.T, program, folder string, open map[int]bool) {
	t.Helper()
	var tests []string
	listed := must.Get(exec.Command(program, "-test.list", "^Test").Output())(t)
	for name := range strings.FieldsSeq(string(listed)) {
		if !slices.Contains([]string{"TestEveryCheckIsNeeded", "TestVectors", "TestVectorsNotice", "TestVectorsStand"}, name) {
			tests = append(tests, "^"+name+"$")
		}
	}
	type tried struct {
		name string
		took time.Duration
	}
	refused := map[int][]tried{}
	var mu sync.Mutex
	each(tests, func(name string) {
		told := filepath.Join(t.TempDir(), "refused")
		_ = os.WriteFile(told, nil, 0o600)
		began := time.Now()
		if !passes(t, program, folder, name, "JURAT_TEST_REFUSED="+told) {
			return // it cannot be tried alone
		}
		took := time.Since(began)
		file, err := os.Open(told)
		if err != nil {
			return
		}
		defer file.Close()
		mu.Lock()
		defer mu.Unlock()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if n, err := strconv.Atoi(lines.Text()); err == nil && open[n] {
				refused[n] = append(refused[n], tried{name, took})
			}
		}
	})
	var which []int
	for n := range refused {
		which = append(which, n)
	}
	each(which, func(n int) {
		slices.SortFunc(refused[n], func(a, b tried) int { return int(a.took - b.took) })
		for i, test := range refused[n] {
			if i > 12 {
				return
			}
			if !passes(t, program, folder, test.name, "JURAT_TEST_DISABLED="+strconv.Itoa(n)) {
				mu.Lock()
				delete(open, n)
				mu.Unlock()
				return
			}
		}
	})
}

// each calls do for all of them, as many at a time as there are processors.
func each[T any](all []T, do func(T)) {
	var wg sync.WaitGroup
	turn := make(chan T)
	for range runtime.NumCPU() {
		wg.Go(func() {
			for one := range turn {
				do(one)
			}
		})
	}
	for _, one := range all {
		turn <- one
	}
	close(turn)
	wg.Wait()
}

func passes(t *testing.T, program, folder, test, with string) bool {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, program, "-test.run", test, "-test.failfast")
	run.Dir = folder
	run.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "JURAT_TEST_LONG=") }), with)
	return run.Run() == nil
}

// folders are the folders with Go files that the patterns name.
func folders(t *testing.T, root string, patterns []string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		list := exec.Command("go", "list", "-f", "{{.Dir}}", "./"+pattern)
		list.Dir = root
		out := must.Get(list.Output())(t)
		for _, dir := range strings.Fields(string(out)) {
			if name, err := filepath.Rel(root, dir); err == nil && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// overlay writes the files of the checks with each condition asking, and returns the file that tells the go command of them.
func overlay(t *testing.T, root string, checks []guard) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{filepath.Join(root, "internal", "disabled", "disabled.go"): filepath.Join(dir, "disabled.go"),
		filepath.Join(root, "verify", "notice_test.go"): filepath.Join(dir, "notice_test.go")}
	write := func(name, text string) {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("disabled.go", disabling)
	write("notice_test.go", vectorsNotice)
	texts := map[string]string{}
	for i := len(checks) - 1; i >= 0; i-- { // from the end: what stands before keeps its place
		c := checks[i]
		if texts[c.file] == "" {
			text := must.Get(os.ReadFile(c.file))(t)
			texts[c.file] = string(text)
		}
		s := texts[c.file]
		texts[c.file] = s[:c.from] + fmt.Sprintf("disabled.If(%d, %s)", i+1, s[c.from:c.to]) + s[c.to:]
	}
	for file, text := range texts {
		clause := strings.Index("\n"+text, "\npackage ")
		end := clause + strings.IndexByte(text[clause:], '\n')
		name := strconv.Itoa(len(replace)) + ".go"
		write(name, text[:end]+`; import "jurat/internal/disabled"`+text[end:])
		replace[file] = filepath.Join(dir, name)
	}
	doc := must.Get(json.Marshal(map[string]any{"Replace": replace}))(t)
	write("overlay.json", string(doc))
	return filepath.Join(dir, "overlay.json")
}

// checksIn finds the checks, in the order of their files and places.
func checksIn(t *testing.T, root string) []guard {
	t.Helper()
	var all []guard
	for _, folder := range folders(t, root, checked) {
		files := must.Get(filepath.Glob(filepath.Join(root, folder, "*.go")))(t)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "affine.go") { // which is for browsers: a test of its own asks it the same as the other group
				continue
			}
			text := must.Get(os.ReadFile(file))(t)
			set := token.NewFileSet()
			tree := must.Get(parser.ParseFile(set, file, text, parser.SkipObjectResolution))(t)
			for _, decl := range tree.Decls {
				within := ""
				of := func(e ast.Expr) {
					from, to := set.Position(e.Pos()).Offset, set.Position(e.End()).Offset
					name, _ := filepath.Rel(root, file)
					source := strings.Join(strings.Fields(string(text[from:to])), " ")
					all = append(all, guard{fmt.Sprintf("%s: %s: %s", filepath.ToSlash(name), within, source), file, from, to})
				}
				ast.Inspect(decl, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.FuncDecl:
						within = n.Name.Name
					case *ast.ValueSpec: // a table of rules
						within = n.Names[0].Name
					case *ast.CallExpr:
						if slices.Contains([]string{"refuteIf", "doubtIf"}, called(n.Fun)) {
							operands(n.Args[0], of)
						}
					case *ast.IfStmt:
						if refuses(n.Body.List) {
							operands(n.Cond, of)
						}
					case *ast.SwitchStmt:
						for _, one := range n.Body.List {
							if one := one.(*ast.CaseClause); n.Tag == nil && refuses(one.Body) {
								for _, e := range one.List {
									operands(e, of)
								}
							}
						}
					}
					return true
				})
			}
		}
	}
	slices.SortFunc(all, func(a, b guard) int {
		if a.file != b.file {
			return strings.Compare(a.file, b.file)
		}
		return a.from - b.from
	})
	return all
}

// operands are the parts of which one is enough. What only hands on an error is none: another check made it.
func operands(e ast.Expr, of func(ast.Expr)) {
	switch b, ok := e.(*ast.BinaryExpr); {
	case ok && b.Op == token.LOR:
		operands(b.X, of)
		operands(b.Y, of)
	case ok && b.Op == token.NEQ && called(b.X) == "err":
	default:
		of(e)
	}
}

// refuses reports whether a branch ends in an error of its own, or in a doubt.
func refuses(body []ast.Stmt) bool {
	if len(body) == 0 {
		return false
	}
	switch s := body[len(body)-1].(type) {
	case *ast.ReturnStmt:
		if len(s.Results) == 0 {
			return refuses(body[:len(body)-1])
		}
		switch last := s.Results[len(s.Results)-1].(type) {
		case *ast.CallExpr:
			return slices.Contains([]string{"Errorf", "New", "breaks", "wrong", "invalid", "refuse", "broken", "within"}, called(last.Fun))
		default:
			name := called(last)
			return strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err") && name != "err"
		}
	case *ast.ExprStmt:
		c, ok := s.X.(*ast.CallExpr)
		return ok && slices.Contains([]string{"refute", "doubt", "add"}, called(c.Fun))
	}
	return false
}

// called is the last part of a name.
func called(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
