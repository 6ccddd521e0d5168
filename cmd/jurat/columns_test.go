package main

import (
	"bytes"
	"strings"
	"testing"
)

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
