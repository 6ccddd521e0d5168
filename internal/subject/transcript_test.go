package subject

import (
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/must"
)

// recordOf makes the record of an exhibit.
func recordOf(t testing.TB, e Exhibit) *evidence.Record {
	t.Helper()
	return must.Get(evidence.OpenParts(e.Payload, [][]byte{{1}}, nil))(t)
}

// TestTranscript: each call adds what was not shown, also where the calls before it were left out, as their bytes are kept.
func TestTranscript(t *testing.T) {
	hi := said("user", strings.Repeat("Hi, and a long text that is worth copying. ", 20))
	first, second := chatRequest(brief, hi), chatRequest(brief, hi, helloed, said("user", "Bye"), search, found)
	calls := []Exhibit{seen(t, 1, seenCall{request: first, response: chatAnswer(helloed)}), seen(t, 2, seenCall{request: second, response: chatAnswer(search), earlier: []string{first}}),
		seen(t, 3, seenCall{request: second, response: chatAnswer(search), earlier: []string{second}, more: `,"retry_of":"r2"`}),
		seen(t, 4, seenCall{request: chatRequest(hi), response: chatAnswer(helloed), earlier: []string{"what no record has"}})}
	for skipped, want := range []string{
		"1: system user assistant; 2: repeats 3: user assistant tool assistant; 3: repeats 6, again 7: recorder; 4: user assistant; ",
		"2: system user assistant user assistant tool assistant; 3: repeats 6, again 7: recorder; 4: user assistant; ",
	} {
		tr, got := NewTranscript(), ""
		for i, e := range calls {
			if i < skipped {
				tr.Skip(recordOf(t, e))
			} else if err := tr.Take(recordOf(t, e)); err != nil {
				t.Fatal(err)
			}
		}
		acts := tr.Acts()
		for i, e := range calls[skipped:] {
			act := acts[e.Digest]
			got += fmt.Sprint(skipped+i+1, ":")
			if len(act.Repeated) > 0 {
				got = got[:len(got)-1] + fmt.Sprintf(": repeats %d", len(act.Repeated))
				if act.Again > 0 {
					got += fmt.Sprintf(", again %d", act.Again)
				}
				got += ":"
			}
			for _, m := range act.Messages {
				got += " " + string(m.Role)
			}
			got += "; "
			if len(act.Lacks) > 0 || act.Said.Prompt == nil {
				t.Errorf("call %d: %v, %+v", skipped+i+1, act.Lacks, act.Said)
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%d left out (-want +got)\n%s", skipped, diff)
		}
		for _, m := range acts[calls[1].Digest].Messages {
			if m.Role == Tool && (m.CallNumber == 0 || m.ToolName != "search") {
				t.Errorf("a result does not know its call: %+v", m)
			}
		}
	}
	tr := NewTranscript()
	must.Do(t, tr.Take(recordOf(t, calls[1])))
	if diff := gocmp.Diff([]Lack{{"request", Copied}}, tr.Acts()[calls[1].Digest].Lacks); diff != "" {
		t.Error(diff)
	}
}
