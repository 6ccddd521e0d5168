package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jurat/internal/court/juror/rules"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/test/must"
	"jurat/jury"
)

// reportPackages is the folder of the packages that judge reports. In CI it must be there; elsewhere the test is skipped.
func reportPackages(t testing.TB) string {
	t.Helper()
	folder := os.Getenv("JURAT_TEST_REPORTS")
	if _, err := os.Stat(filepath.Join(folder, "node_modules", "micromark")); folder == "" || err != nil {
		must.Need(t, os.Getenv("CI") != "true", "JURAT_TEST_REPORTS names no folder with ajv and micromark: scripts/test installs them")
		t.Skip("JURAT_TEST_REPORTS names no folder with ajv and micromark: scripts/test installs them")
	}
	return folder
}

// judged runs the judge of reports, and returns what it prints.
func judged(t testing.TB, args ...string) (string, error) {
	t.Helper()
	reportPackages(t)
	out, err := exec.Command("node", append([]string{"testdata/reports/judge.mjs"}, args...)...).CombinedOutput()
	return string(out), err
}

const evilText = "@everyone </code><script>alert(1)</script> [click](https://evil.example) ![x](https://evil.example/x.png) www.evil.example `` ` | #1 \\` $`x`$ &lt; " +
	"https://evil.example mail@evil.example <img src=x onerror=y> \u202e\x1b[31m\r\n\r\n# Heading\n- [ ] list\n<!-- \x00"

// hostileAttempt is a trial in which everything that others can name is hostile.
func hostileAttempt(text string) *attempt {
	act := &jury.Result{FinalVerdict: jury.UnsafeFail, FinalScore: 3, Offline: true}
	act.Phase3Judgment.Rationale = text
	act.Phase3Judgment.Method = jury.MajorityVote
	return &attempt{name: text, on: new(subject.Case), trial: &trial.Trial{View: &trial.View{Summary: trial.Summary{ID: "trial-" + text}}, Result: act}, file: text}
}

// TestReportsFitTheirSchemas: reports of good, failed and untried cases are what the strictest readers take.
func TestReportsFitTheirSchemas(t *testing.T) {
	t.Setenv("JURAT_JURORS", "offline")
	dir := t.TempDir()
	junit, sarif := filepath.Join(dir, "report.xml"), filepath.Join(dir, "report.sarif")
	ran(t, 1, "--data="+filepath.Join(dir, "data"), "trial", kitchen, invoice, pharmacy, filepath.Join(dir, "nowhere"), "--junit", junit, "--sarif", sarif,
		"--sarif-help", "https://example.org/docs/rules.md")
	xmllint := func(file string) ([]byte, error) {
		return exec.Command(needProgram(t, "xmllint"), "--noout", "--schema", "testdata/reports/junit.xsd", file).CombinedOutput()
	}
	out, err := xmllint(junit)
	must.Hold(t, err == nil, "%v\n%s", err, out)
	c := &trialCmd{}
	doc := must.Get(c.junit([]*attempt{hostileAttempt(evilText), {name: evilText, err: os.ErrNotExist}, {name: "a"}}))(t)
	worst := filepath.Join(dir, "hostile.xml")
	write(t, worst, string(doc))
	out, err = xmllint(worst)
	must.Hold(t, err == nil, "%v\n%s\n%s", err, out, doc)
	write(t, worst, strings.Replace(string(doc), "<testcase ", `<testcase assertions="1" `, 1))
	must.Refuse(t, "", "the schema takes an attribute that some readers refuse")(xmllint(worst))

	run := readSARIF(t, sarif).Runs[0]
	for _, r := range run.Tool.Driver.Rules {
		help, ok := rules.HelpOf(r.ID)
		if !ok || r.FullDescription.Text != help.Wrong || !strings.Contains(r.Help.Text, help.Do) || !strings.Contains(r.Help.Markdown, "**What to do:**") ||
			r.HelpURI != "https://example.org/docs/rules.md#"+r.ID {
			t.Errorf("%+v", r)
		}
	}
	if out, err := judged(t, "sarif", "testdata/reports/sarif-schema-2.1.0.json", sarif); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	good := must.Get(os.ReadFile(sarif))(t)
	bad := filepath.Join(dir, "bad.sarif")
	write(t, bad, strings.Replace(string(good), `"fullDescription"`, `"wholeDescription"`, 1))
	must.Refuse(t, "", "the schema takes an unknown member")(judged(t, "sarif", "testdata/reports/sarif-schema-2.1.0.json", bad))
}

// TestSARIFHelpNeedsAPage: an address that cannot be a page's is refused before anything is tried.
func TestSARIFHelpNeedsAPage(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for _, page := range []string{"docs/rules.md", "javascript:alert(1)", "https://", "https://example.org/#x", "https://example.org/#"} {
		if _, said := ran(t, exitCannot, "--data="+data, "trial", kitchen, "--jurors", "offline", "--sarif", filepath.Join(t.TempDir(), "x"), "--sarif-help", page); !strings.Contains(said, "--sarif-help") {
			t.Errorf("%s: %s", page, said)
		}
	}
	must.Fail(t, fs.ErrNotExist)(os.Stat(data))
}

// TestMarkdownIsInert: what others said stands in code alone, wherever it comes from, as GitHub's form of Markdown is read. A report of very many
// cases fits into a comment.
func TestMarkdownIsInert(t *testing.T) {
	dir := t.TempDir()
	texts := []string{evilText, "", "`", "``", "` `", "a\\", "a`", "|", "\\|", "a\u2028b", strings.Repeat("`", 400), strings.Repeat("𝕏|", 4000), "\xff\xfe", "<!--", "a]: http://x", "~~~", "```\nx"}
	for _, text := range texts {
		c := &trialCmd{base: &baseline{Cases: []baselineCase{{Case: text, Verdict: jury.SafePass}}}}
		doc := must.Get(c.markdown([]*attempt{hostileAttempt(text), {name: text, err: os.ErrNotExist}, {name: text}}))(t)
		file := filepath.Join(dir, "report.md")
		write(t, file, string(doc))
		html, err := judged(t, "markdown", file)
		must.Need(t, err == nil, "%v\n%s", err, html)
		if outside := codeElement.ReplaceAllString(html, ""); strings.ContainsAny(outside, "@`|#") || foreign.MatchString(outside) || strings.Count(html, "<tr>") != 4 || strings.Count(html, "<h3>") != 3 {
			t.Errorf("%q:\n%s\n%s", text, doc, html)
		}
	}
	var many []*attempt
	for range 5000 {
		many = append(many, hostileAttempt(evilText))
	}
	doc, err := (&trialCmd{}).markdown(many)
	must.Hold(t, err == nil && len(doc) <= 65_000 && strings.Contains(string(doc), "cases more: the other reports have them"),
		"%d bytes, %v", len(doc), err)
}

var (
	codeElement = regexp.MustCompile(`(?s)<code>[^<]*</code>`)
	foreign     = regexp.MustCompile(`evil|alert|<(a|img|script|input|pre|h1)\b|<!--|&lt;`)
)

// FuzzCode: a code span holds all that is given, in one line, without a bar, and its fence stands nowhere inside.
func FuzzCode(f *testing.F) {
	for _, seed := range []string{evilText, "", "`", "a``b`", " ` ", "|", strings.Repeat("`", 301)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := code(text)
		if got == "(empty)" {
			return
		}
		fence := got[:len(got)-len(strings.TrimLeft(got, "`"))]
		inner, ok := strings.CutSuffix(strings.TrimPrefix(got, fence), fence)
		for _, run := range regexp.MustCompile("`+").FindAllString(inner, -1) {
			ok = ok && len(run) != len(fence)
		}
		if fence == "" || !ok || strings.TrimSpace(inner) == "" || strings.ContainsAny(got, "|\n\r\t\x00\x1b") || strings.HasPrefix(inner, "`") || strings.HasSuffix(inner, "`") {
			t.Errorf("%q: %q", text, got)
		}
	})
}

// TestBaseline: only what got worse fails. A new case fails as without a baseline; a baseline that is missing, damaged, of another jury, or of cases
// that are not tried is an error; nothing in which something was missing becomes a baseline.
func TestBaseline(t *testing.T) {
	t.Setenv("JURAT_JURORS", "offline")
	dir := t.TempDir()
	data, base := "--data="+filepath.Join(dir, "data"), filepath.Join(dir, "baseline.json")
	trial := func(want int, args ...string) (string, string) {
		t.Helper()
		return ran(t, want, append([]string{data, "trial"}, args...)...)
	}
	cases := filepath.Join(dir, "cases")
	put := func(name, from string) string {
		t.Helper()
		to := filepath.Join(cases, name)
		must.Do(t, os.RemoveAll(to))
		must.Do(t, os.CopyFS(to, os.DirFS(from)))
		return to
	}
	one, two, three := put("one", kitchen), put("two", pharmacy), put("three", invoice)
	_, said := trial(1, one, two, three, "--write-baseline", base)
	must.Contain(t, said)
	markdown, junit := filepath.Join(dir, "report.md"), filepath.Join(dir, "report.xml")
	out, said := trial(0, one, two, three, "--baseline", base, "--markdown", markdown, "--junit", junit)
	must.Contain(t, out, "as in the baseline: unsafe_fail")
	must.Contain(t, said, "no worse than in the baseline")
	must.Equal(t, strings.Join(outcomes(readJUnit(t, junit)), " "), "passed passed passed")
	_, said = trial(0, one+"/", two, three, "--baseline", base, "--fail-on", "needs_review,degraded")
	must.Contain(t, said, "no worse than in the baseline")

	four := put("four", invoice) // a new case fails
	out, _ = trial(1, one, two, three, four, "--baseline", base)
	must.Contain(t, out, "not in the baseline")
	trial(0, one, two, three, put("five", kitchen), "--baseline", base)
	put("one", pharmacy) // a pass that now needs a person
	out, _ = trial(3, one, two, three, "--baseline", base)
	must.Contain(t, out, "worse than the baseline: safe_pass")
	trial(1, one, two, three, "--baseline", base, "--fail-on", "needs_review")
	put("one", kitchen)
	put("two", invoice) // what needed a person now fails
	trial(1, one, two, three, "--baseline", base)
	put("two", kitchen)
	_, said = trial(0, one, two, three, "--baseline", base)
	must.Contain(t, said, "better than in the baseline", "--write-baseline")

	whole := must.Get(os.ReadFile(base))(t)
	fresh := "--data=" + filepath.Join(dir, "fresh")
	refused := func(why string, args ...string) {
		t.Helper()
		_, said := ran(t, exitCannot, append([]string{fresh, "trial", "--baseline", base}, args...)...)
		must.Contain(t, said, why, "hint: ")
	}
	refused("is not among the cases given", one, two)
	refused("by another jury", one, two, three, "--method", "majority_vote")
	refused("differ: judge, maxRounds, method", one, two, three, "--method", "majority_vote")
	refused("by another jury", one, two, three, "--rounds", "2")
	for why, doc := range map[string]string{
		"no baseline, or a damaged one":              string(whole[:len(whole)/2]),
		"no baseline, or a damaged one ":             "",
		"expected \"jurat/baseline/v1\"":             strings.Replace(string(whole), "baseline/v1", "baseline/v2", 1),
		"is empty or there twice":                    strings.ReplaceAll(string(whole), "/three", "/two"),
		"settings: ":                                 strings.Replace(string(whole), `"method": "final_judge"`, `"method": "coin"`, 1),
		"expected safe_pass, needs_review or unsafe": strings.Replace(string(whole), `"verdict": "safe_pass"`, `"verdict": "fine"`, 1),
		"expected 0 to 100":                          strings.Replace(string(whole), `"score": `, `"score": 9`, 1),
		"a damaged one:":                             strings.Replace(string(whole), `"review"`, `"preview"`, 1),
		"expected at least one":                      `{"format":"jurat/baseline/v1"}`,
	} {
		write(t, base, doc)
		refused(strings.TrimSpace(why), one, two, three)
	}
	must.Do(t, os.Remove(base))
	refused("no such file", one, two, three)
	must.Fail(t, fs.ErrNotExist)(os.Stat(filepath.Join(dir, "fresh")))

	ran(t, exitCannot, data, "trial", "--list", "--write-baseline", base)
	_, said = trial(exitCannot, one, filepath.Join(dir, "nowhere"), "--write-baseline", base)
	must.Contain(t, said, "it is not written, because", "was not tried")
	trial(exitCannot, one, one, "--write-baseline", base)
	t.Setenv("JURAT_JURORS", "")
	withoutKeys(t)
	_, said = trial(exitCannot, one, "--write-baseline", base)
	must.Contain(t, said, "had no language model on its jury")
	must.Fail(t, fs.ErrNotExist)(os.Stat(base))
}

// TestBaselineHoldsNothingMissing: a trial in which a juror is missing is never as in the baseline, whatever the baseline has.
func TestBaselineHoldsNothingMissing(t *testing.T) {
	c := &trialCmd{base: &baseline{Cases: []baselineCase{{Case: "a", Verdict: jury.UnsafeFail}}}}
	for _, r := range []jury.Result{{FinalVerdict: jury.UnsafeFail, Degraded: true}, {FinalVerdict: jury.NeedsReview, Inconclusive: true}, {FinalVerdict: jury.SafePass, Degraded: true}} {
		at := &attempt{name: "a", trial: &trial.Trial{Result: &r}}
		must.Hold(t, !c.known(at) && c.code(at) != 0, "%+v is known", r)
	}
	at := &attempt{name: "a", noModel: true, trial: &trial.Trial{Result: &jury.Result{FinalVerdict: jury.SafePass}}}
	must.Hold(t, !c.known(at) && c.code(at) != 0, "a trial without a model is known")
}
