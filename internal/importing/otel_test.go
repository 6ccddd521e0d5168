package importing

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/telemetry"
)

// exported reads what a real instrumentation has sent.
func exported(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../telemetry/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTracesOfOpenTelemetry: a file of traces gives the acts, under the ids, that the receiver of telemetry gives of the same spans.
func TestTracesOfOpenTelemetry(t *testing.T) {
	for name, acts := range map[string]int{"traceloop.json": 2, "openinference.json": 2, "opentelemetry.jsonl": 4} {
		text := exported(t, name)
		b := newBook()
		var entries []Entry
		checked, sealed := imported(t, b, name, text, func(o *Options) { o.Each = func(e Entry) { entries = append(entries, e) } })
		if checked.New != acts || sealed.New != acts || checked.Wrong > 0 || entries[0].SaidAt == "" {
			t.Errorf("%s: %+v, %+v, %+v", name, checked, sealed, entries)
		}
		told, err := telemetry.ReadFile([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for i := range told.Acts {
			a := &told.Acts[i]
			got, there := b.acts[a.RecordID("support", false)]
			if want := a.Observed("support", time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)); !there || got.Request.SHA256 != want.Request.SHA256 || got.Protocol != "otlp" || got.Vantage != evidence.Telemetry ||
				got.ChainID != "recorded/support/"+a.Trace || got.Request.Headers["file"] != name || !slices.Contains(got.Missing, "whether the file is whole and unchanged since it was written") {
				t.Errorf("%s: %v, %+v", name, there, got)
			}
		}
		if again, _ := imported(t, b, name, text); again.New != 0 || again.Known != acts {
			t.Errorf("%s again: %+v", name, again)
		}
	}
	var entries []Entry
	imported(t, newBook(), "one.json", exported(t, "traceloop.json"), func(o *Options) { o.Each = func(e Entry) { entries = append(entries, e) } })
	if e := entries[1]; e.Prompt != 4 || e.Answers != 1 || e.Model != "gpt-5-2026" {
		t.Errorf("%+v", e)
	}
}

// TestTracesWithFaults: what is wrong in a file of traces is named by its place, and other lines are read.
func TestTracesWithFaults(t *testing.T) {
	line := strings.TrimSpace(exported(t, "traceloop.json"))
	first := line[strings.Index(line, `"spanId":"`)+10:][:16]
	for name, test := range map[string]struct {
		text string
		want string
		new  int
	}{
		"metrics between":      {`{"resourceMetrics":[]}` + "\n" + line + "\n", "", 2},
		"a line that is none":  {line + "\n" + `{"resourceSpans":7}` + "\n", "line 2", 2},
		"a span without an id": {strings.Replace(line, first, "0000000000000000", 1), "without ids", 1},
		"another account":      {line + "\n" + strings.Replace(line, "In Kassel.", "In Gera.", 1) + "\n", "same id", 2},
	} {
		checked, _ := imported(t, newBook(), "traces.json", test.text)
		if checked.New != test.new || (test.want != "") != (len(checked.Faults) == 1) || test.want != "" && !strings.Contains(checked.Faults[0].Error(), test.want) {
			t.Errorf("%s: %+v", name, checked)
		}
	}
}
