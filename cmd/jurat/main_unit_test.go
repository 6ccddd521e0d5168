package main

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/duties"
	"jurat/internal/ledger/fsck"
	"jurat/internal/must"
	"jurat/internal/plural"
	"jurat/internal/words"
	"jurat/jury"
	"jurat/verify"
)

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
		if got := verdictCode(&tt.result); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.result, got, tt.want)
		}
	}
}

// TestSeverity: of several files, the worst one decides. A forgery is worse than a file that cannot be read.
func TestSeverity(t *testing.T) {
	order := []exitCode{0, exitUndecided, exitCannot, exitBad}
	for i := range order[1:] {
		if severity(order[i]) >= severity(order[i+1]) {
			t.Errorf("exit code %d does not count as less severe than %d", order[i], order[i+1])
		}
	}
}

func TestWrap(t *testing.T) {
	got := wrap("a bb ccc dddd  eeeeeeeeee f", 6)
	want := []string{"a bb", "ccc", "dddd", "eeeeeeeeee", "f"}
	if len(got) != len(want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"plain/path.json": "plain/path.json", "": "''", "two words": "'two words'",
		"it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "a;b": "'a;b'"} {
		if got := quote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// TestClosing: an error on closing must not hide the exit code of the work.
func TestClosing(t *testing.T) {
	failed := errors.New("disk full")
	if got := closing(exitCode(exitUndecided), failed); !errors.Is(got, failed) || errors.As(got, new(exitCode)) {
		t.Errorf("%v", got)
	}
	if got := closing(nil, nil); got != nil {
		t.Errorf("%v", got)
	}
	var out bytes.Buffer
	if code := report(stdio{err: &out}, closing(exitCode(exitUndecided), nil)); code != exitUndecided || out.Len() > 0 {
		t.Errorf("exit code %d, %q", code, &out)
	}
}

// TestExplainHasEveryLanguage compares --lang, whose values are constants, with the languages that there are.
func TestExplainHasEveryLanguage(t *testing.T) {
	lang, ok := reflect.TypeFor[explainCmd]().FieldByName("Lang")
	var want []string
	for _, l := range words.Langs() {
		want = append(want, string(l))
	}
	if got := lang.Tag.Get("enum"); !ok || got != strings.Join(want, ",") {
		t.Errorf("--lang accepts %q, but the languages are %q", got, want)
	}
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
	has(t, doing(t, 0, "explain", record, "--origin", "https://jurat.example"), page)
	if said := doing(t, 0, "explain", record); strings.Contains(said, "https://") {
		t.Error(said)
	}
	for _, bad := range []string{"jurat.example", "https://jurat.example/records", "https://a@jurat.example", "javascript://x"} {
		_, said := ran(t, exitCannot, "explain", record, "--origin", bad)
		has(t, said, "--origin "+bad)
	}
	t.Setenv("JURAT_ORIGIN", "https://jurat.example")
	has(t, doing(t, 0, "explain", record), page)
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{"0": 0, "1073741824": 1 << 30, "512MiB": 512 << 20, "1GiB": 1 << 30, "3KiB": 3 << 10} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1MB", "1 GiB", "1.5GiB", "9223372036854775807KiB", "1GiBGiB"} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: %d", text, got)
		}
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
		if got := lies(report); got != c.want {
			t.Errorf("%s %s: %v", c.guarantee, c.status, got)
		}
	}
}

func TestCounted(t *testing.T) {
	if one, two := plural.Of(1, "entry"), plural.Of(2, "entry"); one != "1 entry" || two != "2 entries" {
		t.Errorf("%q and %q", one, two)
	}
	for n, want := range map[int]string{0: "0 time stamps", 1: "1 time stamp", 2: "2 time stamps"} {
		if got := plural.Of(n, "time stamp"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestReportsQuoteNobody: names from a log stand in code spans in Markdown, and obey nobody on a terminal.
func TestReportsQuoteNobody(t *testing.T) {
	t.Parallel()
	r := &duties.Report{Mapping: duties.AIAct(), Agent: "a`b|c\x1b[2J", Log: "log", Warnings: []string{"<b>no act</b>"}, Clauses: []duties.Clause{{ID: "12(1)", Lines: []duties.Line{
		{Shows: "decisions", Records: 1, First: &duties.Place{Record: "r1"}, Last: &duties.Place{Record: "r1"}, Guarantees: []verify.Guarantee{verify.Content}, Refuted: 1, People: []string{"in|es @all"}}}}}}
	text := markdownReport(r)
	if !strings.Contains(text, "agent ``") || !strings.Contains(text, "a`b¦c") || strings.Contains(text, "\x1b") || !strings.Contains(text, "; `in¦es @all` |") || !strings.Contains(text, "`<b>no act</b>`") || !strings.Contains(text, "1 REFUTED") {
		t.Error(text)
	}
	var out strings.Builder
	p := newPrinter(&out)
	p.duties(r)
	if p.err != nil || strings.Contains(out.String(), "\x1b[2J") {
		t.Errorf("%v: %q", p.err, out.String())
	}
	if err := reportCode(r); err != exitCode(exitBad) {
		t.Error(err)
	}
	r.Clauses[0].Lines[0].Refuted = 0
	if err := reportCode(r); err != exitCode(exitUndecided) {
		t.Error(err)
	}
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
		if got := howFar("examined", test.done, test.total, test.in); got != want {
			t.Errorf("%q, want %q", got, want)
		}
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
		if got := columns(text); got != want {
			t.Errorf("%q: %d columns, want %d", text, got, want)
		}
	}
	for _, c := range []struct {
		text string
		most int
		want string
	}{{"agent", 5, "agent"}, {"agents", 5, "agen…"}, {"返品係", 6, "返品係"}, {"返品係です", 6, "返品…"}, {"返品係です", 5, "返品…"}, {"返品係", 2, "…"}, {"e\u0301e\u0301e\u0301", 2, "e\u0301…"}} {
		if got := shorter(c.text, c.most); got != c.want || columns(got) > c.most {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

// TestTable: a table has heads, cells stand under them whatever their script, and on a terminal the least important columns are cut first.
func TestTable(t *testing.T) {
	list := table{heads: []head{{name: "agent", rank: 2}, {name: "score", right: true}, {name: "trial", rank: 1}}}
	list.row("返品係の返品係の返品係", 7, "trial-0198c0de-0000-7000-8000-000000000000")
	list.row("desk\nof\x1b[31mreturns", 100, cell{"trial-1", red})
	list.below("a note", "")
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
			if n := columns(strings.TrimSuffix(line, "\n")); most > 0 && n > most {
				t.Errorf("%d columns, and a terminal of %d: %s", n, most, line)
			}
		}
	}
	var out bytes.Buffer
	newPrinter(&out).table(&table{heads: list.heads})
	if out.Len() != 0 {
		t.Errorf("a table without rows: %s", &out)
	}
}
