package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/log/duties"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/words"
	"jurat/jury"
	"jurat/verify"
)

// withInput, if set in the environment, makes the command exit when its standard input ends.
const withInput = "JURAT_TEST_ENDS_WITH_INPUT"

// TestMain makes this binary the command as well. Both collect their little garbage seldom, but where a test looks at memory for long.
func TestMain(m *testing.M) {
	if os.Getenv("JURAT_TEST_LONG") == "" {
		debug.SetGCPercent(400)
	}
	testscript.Main(m, map[string]func(){"jurat": func() {
		if os.Getenv(withInput) != "" {
			go func() {
				_, _ = io.Copy(io.Discard, os.Stdin) // in any way
				os.Exit(1)
			}()
		}
		main()
	}, "jurat-pkcs11-lying": lying})
}

// endsWithTest makes a command that is about to be started exit when this process ends, in any way.
func endsWithTest(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(slices.Clone(cmd.Env), withInput+"=1")
	must.Fail(t, nil)(cmd.StdinPipe())
}

// TestEndsWithTest: a server ends when its test process has died.
func TestEndsWithTest(t *testing.T) {
	server := exec.Command("jurat", "--data", filepath.Join(t.TempDir(), "data"), "serve", "--addr", "127.0.0.1:0")
	server.Env = append(os.Environ(), withInput+"=1")
	input := must.Get(server.StdinPipe())(t)
	must.Do(t, server.Start())
	must.Do(t, input.Close()) // as the system does when a process ends
	must.Say(t, server.Wait(), "", "it ended by itself")
}

// TestScripts runs the real command as users run it.
func TestScripts(t *testing.T) {
	examples := must.Get(filepath.Abs("../../examples"))(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Condition:           condition,
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", examples)
			env.Setenv("JURAT_JURORS", "offline") // scripts use rules as jurors
			env.Values[authoritiesKey{}] = authorities{}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exit": exit, "flip": flip, "authority": authority},
	})
}

// condition answers [has:PROGRAM]. Under CI=true it fails if the program is missing, so that CI runs every script whole.
func condition(name string) (bool, error) {
	const has = "has:"
	if len(name) <= len(has) || name[:len(has)] != has {
		return false, errors.New("unknown condition " + name)
	}
	if os.Getenv("CI") == "true" {
		return true, nil
	}
	_, err := exec.LookPath(name[len(has):])
	return err == nil, nil
}

// exit CODE PROGRAM ARG... runs a program and requires this exit code.
func exit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// flip FILE changes one byte in the middle of a file; flip FILE TEXT the first byte of a text in it.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: flip FILE [TEXT]")
	}
	file := ts.MkAbs(args[0])
	content, err := os.ReadFile(file)
	ts.Check(err)
	at := len(content) / 2
	if len(args) == 2 {
		if at = bytes.Index(content, []byte(args[1])); at < 0 {
			ts.Fatalf("%s does not have %q", args[0], args[1])
		}
	}
	content[at] ^= 1
	ts.Check(os.WriteFile(file, content, 0o644))
}

// authority NAME starts an outside time-stamping authority. Its URL is in the variable NAME, its root in NAME.pem.
// authority NAME MOOD makes it answer in that way from now on.
func authority(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: authority NAME [MOOD]")
	}
	running := ts.Value(authoritiesKey{}).(authorities)
	if len(args) == 2 {
		if running[args[0]] == nil {
			ts.Fatalf("no authority %s was started", args[0])
		}
		ts.Check(running[args[0]].Be(jurattest.Mood(args[1])))
		return
	}
	a, err := jurattest.StartTSA()
	ts.Check(err)
	ts.Defer(a.Close)
	running[args[0]] = a
	ts.Setenv(strings.ToUpper(args[0]), a.URL)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".pem"), a.PEM(), 0o644))
}

// authorities are the authorities of one script, by name.
type authorities map[string]*jurattest.TSA

// authoritiesKey is their key in the script's values.
type authoritiesKey struct{}

func TestVerdictCode(t *testing.T) {
	tests := []struct {
		result jury.Result
		want   exitCode
	}{
		{jury.Result{FinalVerdict: jury.SafePass}, 0},
		{jury.Result{FinalVerdict: jury.SafePass, Degraded: true}, exitUndecided},
		{jury.Result{FinalVerdict: jury.SafePass, Inconclusive: true}, exitUndecided},
		{jury.Result{FinalVerdict: jury.NeedsReview}, exitUndecided},
		{jury.Result{FinalVerdict: jury.NeedsReview, Inconclusive: true}, exitUndecided},
		{jury.Result{FinalVerdict: jury.UnsafeFail}, exitBad},
		{jury.Result{FinalVerdict: jury.UnsafeFail, Degraded: true}, exitBad},
	}
	for _, tt := range tests {
		tt.result.Phase3Judgment.Position = tt.result.FinalVerdict
		must.Equal(t, verdictCode(&tt.result), tt.want, tt.result)
	}
}

// TestSeverity: of several files, the worst one decides. A forgery is worse than a file that cannot be read.
func TestSeverity(t *testing.T) {
	order := []exitCode{0, exitUndecided, exitCannot, exitBad}
	for i := range order[1:] {
		must.Hold(t, severity(order[i]) < severity(order[i+1]), "exit code %d does not count as less severe than %d", order[i], order[i+1])
	}
}

func TestWrap(t *testing.T) {
	must.Equal(t, strings.Join(wrap("a bb ccc dddd  eeeeeeeeee f", 6), "|"), "a bb|ccc|dddd|eeeeeeeeee|f")
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"plain/path.json": "plain/path.json", "": "''", "two words": "'two words'",
		"it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "a;b": "'a;b'"} {
		must.Equal(t, quote(in), want)
	}
}

// TestClosing: an error on closing must not hide the exit code of the work.
func TestClosing(t *testing.T) {
	failed := errors.New("disk full")
	got := closing(exitCode(exitUndecided), failed)
	must.Hold(t, errors.Is(got, failed) && !errors.As(got, new(exitCode)), "%v", got)
	must.Want(t, closing(nil, nil), nil)
	var out bytes.Buffer
	code := report(stdio{err: &out}, closing(exitCode(exitUndecided), nil))
	must.Hold(t, code == exitUndecided && out.Len() == 0, "exit code %d, %q", code, &out)
}

// TestExplainHasEveryLanguage compares --lang, whose values are constants, with the languages that there are.
func TestExplainHasEveryLanguage(t *testing.T) {
	lang, ok := reflect.TypeFor[explainCmd]().FieldByName("Lang")
	var want []string
	for _, l := range words.Langs() {
		want = append(want, string(l))
	}
	got := lang.Tag.Get("enum")
	must.Hold(t, ok && got == strings.Join(want, ","), "--lang accepts %q, but the languages are %q", got, want)
}

// TestExplainNamesThePage: the statement names the record's page on the server that --origin names, or the environment.
func TestExplainNamesThePage(t *testing.T) {
	dir := t.TempDir()
	act, record := dir+"/act.json", dir+"/record.json"
	payload := `{"agent_id":"courier","request_id":"r","timestamp":"2026-01-01T00:00:00Z","model":"m","model_version":"1","prompt":"Where?","response":"There.","parameters":{}}`
	err := os.WriteFile(act, []byte(payload), 0o600)
	sealed := doing(t, 0, "--data", dir+"/data", "seal", act) + "\n"
	opened, readErr := evidence.Open([]byte(sealed))
	must.Do(t, errors.Join(err, readErr, os.WriteFile(record, []byte(sealed), 0o600)))
	page := "https://jurat.example/records/" + opened.Payload.RecordID
	must.Contain(t, doing(t, 0, "explain", record, "--origin", "https://jurat.example"), page)
	lacks(t, doing(t, 0, "explain", record), "https://")
	for _, bad := range []string{"jurat.example", "https://jurat.example/records", "https://a@jurat.example", "javascript://x"} {
		_, said := ran(t, exitCannot, "explain", record, "--origin", bad)
		must.Contain(t, said, "--origin "+bad)
	}
	t.Setenv("JURAT_ORIGIN", "https://jurat.example")
	must.Contain(t, doing(t, 0, "explain", record), page)
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{"0": 0, "1073741824": 1 << 30, "512MiB": 512 << 20, "1GiB": 1 << 30, "3KiB": 3 << 10} {
		var got byteSize
		err := got.UnmarshalText([]byte(text))
		must.Hold(t, err == nil && got == want, "%q: %d, %v", text, got, err)
	}
	for _, text := range []string{"", "MiB", "-1", "1MB", "1 GiB", "1.5GiB", "9223372036854775807KiB", "1GiBGiB"} {
		var got byteSize
		must.Say(t, got.UnmarshalText([]byte(text)), "", text, got)
	}
}

// TestLies: a file is named as refuted for what would count, and not for a chain of which it has some records.
func TestLies(t *testing.T) {
	for _, c := range []struct {
		guarantee verify.Guarantee
		status    verify.Status
		want      bool
	}{{verify.Chain, verify.Refuted, false}, {verify.Content, verify.Refuted, true}, {verify.Content, verify.NotProved, false}} {
		report := &verify.Report{Outcome: c.status, Guarantees: []verify.Finding{{Guarantee: verify.Order, Status: verify.Proved}, {Guarantee: c.guarantee, Status: c.status}}}
		must.Equal(t, lies(report), c.want, c.guarantee, c.status)
	}
}

// TestReportsQuoteNobody: names from a log obey nobody on a terminal.
func TestReportsQuoteNobody(t *testing.T) {
	t.Parallel()
	r := &duties.Report{Mapping: duties.AIAct(), Agent: "a`b|c\x1b[2J", Log: "log", Warnings: []string{"<b>no act</b>"}, Clauses: []duties.Clause{{ID: "12(1)", Lines: []duties.Line{
		{Shows: "decisions", Records: 1, First: &duties.Place{Record: "r1"}, Last: &duties.Place{Record: "r1"}, Guarantees: []verify.Guarantee{verify.Content}, Refuted: 1, People: []string{"in|es @all"}}}}}}
	var out strings.Builder
	p := newPrinter(&out)
	p.duties(r)
	if p.err != nil || strings.Contains(out.String(), "\x1b[2J") || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), "1 REFUTED; by in|es @all") {
		t.Errorf("%v: %q", p.err, out.String())
	}
	err := reportCode(r)
	must.Hold(t, err == exitCode(exitBad), "%v", err)
	r.Clauses[0].Lines[0].Refuted = 0
	err = reportCode(r)
	must.Hold(t, err == exitCode(exitUndecided), "%v", err)
	if r.Acts = 1; reportCode(r) != nil {
		t.Error(reportCode(r))
	}
}

func TestHowFar(t *testing.T) {
	for want, test := range map[string]struct {
		done, total int64
		in          time.Duration
	}{
		"examined: 0 of 10": {0, 10, time.Second},
		"examined: 3 of 10, 1.5 a second, about 5s more":              {3, 10, 2 * time.Second},
		"examined: 1 of 61, 0.5 a second, about 2m0s more":            {1, 61, 2 * time.Second},
		"examined: 500000 of 1000000, 12500 a second, about 40s more": {500_000, 1_000_000, 40 * time.Second},
		"examined: 10 of 10, 5 a second":                              {10, 10, 2 * time.Second},
		"examined: 9999 of 10000, 5000 a second, about 1s more":       {9999, 10_000, 1999800 * time.Microsecond},
		"examined: 12 of 11, 6 a second":                              {12, 11, 2 * time.Second},
	} {
		must.Equal(t, howFar("examined", test.done, test.total, test.in), want)
	}
}

// TestNameDamages: JSON output and text output have the same names for damages.
func TestNameDamages(t *testing.T) {
	orphan := fsck.Damage{Kind: fsck.DamageOrphan, Index: -1, Detail: "a file"}
	row := fsck.Damage{Kind: fsck.DamageRow, Index: 0, RecordID: "id", Detail: "why"}
	if e := nameDamages([]fsck.Damage{orphan}, 3); !e.Whole || e.Records != 3 || e.Damages[0].Index != nil || !e.Damages[0].Harmless {
		t.Errorf("%+v", e)
	}
	e := nameDamages([]fsck.Damage{row, orphan}, 3)
	if d := e.Damages[0]; e.Whole || len(e.Damages) != 2 || *d.Index != 0 || d.RecordID != "id" || d.Meaning != row.Kind.Meaning() || d.Detail != "why" {
		t.Errorf("%+v", e)
	}
}

// TestColumns: wide characters take two columns, marks none, and what is cut fits.
func TestColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "agent": 5, "返品係": 6, "ｱ": 1, "Ａ": 2, "заказ": 5, "e\u0301": 1, "🧾 Rechnung": 11, "a\u200db": 2} {
		must.Equal(t, columns(text), want, text)
	}
	for _, c := range []struct {
		text string
		most int
		want string
	}{{"agent", 5, "agent"}, {"agents", 5, "agen…"}, {"返品係", 6, "返品係"}, {"返品係です", 6, "返品…"}, {"返品係です", 5, "返品…"}, {"返品係", 2, "…"}, {"e\u0301e\u0301e\u0301", 2, "e\u0301…"}} {
		got := shorter(c.text, c.most)
		must.Hold(t, got == c.want && columns(got) <= c.most, "%q in %d columns: %q, want %q", c.text, c.most, got, c.want)
	}
}

// TestTable: a table has heads, cells stand under them whatever their script, and on a terminal the least important columns are cut first.
func TestTable(t *testing.T) {
	list := table{heads: []head{{name: "agent", rank: 2}, {name: "score", right: true}, {name: "trial", rank: 1}}}
	list.row("返品係の返品係の返品係", 7, "trial-0198c0de-0000-7000-8000-000000000000")
	list.row("desk\nof\x1b[31mreturns", 100, cell{"trial-1", red})
	list.below(true, "", "%s", "a note")
	for most, want := range map[int]string{
		0: `agent                   score  trial
返品係の返品係の返品係      7  trial-0198c0de-0000-7000-8000-000000000000
desk of�[31mreturns       100  trial-1
    a note
`,
		60: `agent      score  trial
返品係の…      7  trial-0198c0de-0000-7000-8000-000000000000
desk of�…    100  trial-1
    a note
`,
		30: `agent     score  trial
返品係…       7  trial-0198c0…
desk of…    100  trial-1
    a note
`,
	} {
		var out bytes.Buffer
		p := newPrinter(&out)
		p.columns = most
		if p.table(&list); p.err != nil || out.String() != want {
			t.Errorf("%d columns: %v\n%s\nwant\n%s", most, p.err, &out, want)
		}
		for line := range strings.Lines(out.String()) {
			n := columns(strings.TrimSuffix(line, "\n"))
			must.Hold(t, most <= 0 || n <= most, "%d columns, and a terminal of %d: %s", n, most, line)
		}
	}
	var out bytes.Buffer
	newPrinter(&out).table(&table{heads: list.heads})
	must.Equal(t, out.Len(), 0)
}

// TestCommandsAreFew: how many commands can be run, and how many flags they have: those that a command has alone, and those that several share,
// each once. More of either is decided, and not found.
func TestCommandsAreFew(t *testing.T) {
	const mostCommands, mostFlags, mostShared = 50, 245, 48
	leaves := model(t).Leaves(false)
	must.Hold(t, len(leaves) <= mostCommands, "%d commands, and at most %d are allowed", len(leaves), mostCommands)
	users := map[reflect.Type]int{} // of each group of flags
	for _, n := range leaves {
		groupsOf(n.Target.Type(), users)
	}
	own, shared := 0, 0
	for in, commands := range users {
		switch n := flagsOf(in); {
		case commands > 1:
			shared += n
		default:
			own += n
		}
	}
	must.Hold(t, own <= mostFlags && shared <= mostShared,
		"%d flags of one command and %d that several share, and at most %d and %d are allowed", own, shared, mostFlags, mostShared)
}

// groupsOf counts a type of flags, and those that are embedded in it, as used once more.
func groupsOf(in reflect.Type, users map[reflect.Type]int) {
	users[in]++
	for f := range in.Fields() {
		if f.Anonymous {
			groupsOf(f.Type, users)
		}
	}
}

// flagsOf counts the flags that a type has itself.
func flagsOf(in reflect.Type) (n int) {
	for f := range in.Fields() {
		if _, argument := f.Tag.Lookup("arg"); !argument && !f.Anonymous && f.IsExported() {
			n++
		}
	}
	return n
}

// TestTrialsListShowsWhoHasACase: below the trial, and in a column of the CSV. A name cannot steer the terminal.
func TestTrialsListShowsWhoHasACase(t *testing.T) {
	list := api.TrialList{Trials: []api.TrialLine{{ID: "trial-1", Outcome: jury.NeedsReview, NeedsPerson: true, Taken: &api.Taken{Reviewer: "m\x1bia", Since: "2026-01-01T00:00:00Z", By: "otto"}},
		{ID: "trial-2", Outcome: jury.SafePass}}}
	var out bytes.Buffer
	must.Do(t, (&trialsCmd{}).print(stdio{out: &out}, list, nil))
	lines := strings.Split(out.String(), "\n")
	if len(lines) < 4 || !strings.Contains(lines[1], "trial-1") || !strings.Contains(lines[2], "taken by m\uFFFDia") || strings.Count(out.String(), "taken by") != 1 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", lines)
	}
	out.Reset()
	c := trialsCmd{}
	c.CSV = true
	must.Do(t, c.print(stdio{out: &out}, list, nil))
	lines = strings.Split(out.String(), "\n")
	must.Hold(t, strings.HasSuffix(strings.TrimSpace(lines[0]), ",taken_by") && strings.HasSuffix(strings.TrimSpace(lines[2]), "trial-2,,"), "%q", lines)
}
