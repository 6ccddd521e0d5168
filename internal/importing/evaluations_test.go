package importing

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPromptfooOutcomes: a check that failed is no error of the agent; an output that the evaluation changed, or kept from before, is named as that.
func TestPromptfooOutcomes(t *testing.T) {
	b := newBook()
	file := `{"evalId":"e","results":{"version":3,"results":[
 {"id":"a","prompt":{"raw":"Q"},"response":{"output":"A"},"failureReason":1,"error":"Expected output to contain \"B\""},
 {"id":"b","prompt":{"raw":"Q"},"response":{"error":"500"},"failureReason":2,"error":"500"},
 {"id":"c","prompt":{"raw":"Q"},"failureReason":2,"error":"it threw"},
 {"id":"d","prompt":{"raw":"Q"},"response":{"output":"A","cached":true},"testCase":{"options":{"transform":"output.trim()"}},"failureReason":0},
 {"id":"e","prompt":{"raw":"Q"},"response":{"output":"A"},"failureReason":2,"error":"the grader failed"},
 {"id":"f","prompt":{"raw":"Q"},"response":{"output":"A"},"error":"Expected"}]}}`
	if checked, _ := imported(t, b, "out.json", file); len(checked.Faults) > 0 {
		t.Fatal(checked.Faults)
	}
	const answered, failed = `import/promptfoo: [{"role":"user","content":"Q"}] => "A"|||||`, `import/promptfoo: [{"role":"user","content":"Q"}] => ||||||upstream_error`
	want := []string{"recorded/support/a " + answered, "recorded/support/b " + failed, "recorded/support/c " + failed, "recorded/support/d " + answered, "recorded/support/e " + answered, "recorded/support/f " + answered}
	got := b.said()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const error, changed, kept, doubt = "an answer: the entry of the file says that there was an error", "the output as the agent gave it", "a call of its own", "whether all went well"
	named := map[string][]string{"b": {error}, "c": {error}, "d": {changed, kept}, "e": {doubt}}
	for i, id := range b.order {
		want := named[b.acts[id].Request.Headers["conversation"]]
		never := slices.DeleteFunc([]string{error, changed, kept, doubt}, func(what string) bool { return slices.Contains(want, what) })
		missing(t, b, i, want, never)
	}
}

// TestInspectInput: an answer that stands in the input of a sample was written beforehand, and is none of the agent's; a sample that was ended before anything was
// said is passed over, and a limit is named.
func TestInspectInput(t *testing.T) {
	b := newBook()
	file := `{"version":2,"eval":{"eval_id":"e","model":"m/x"},"samples":[{"id":1,"epoch":2,"input":[],"limit":{"type":"token","limit":9},"messages":[
 {"id":"1","role":"user","source":"input","content":"Say a"},{"id":"2","role":"assistant","source":"input","content":"a"},{"id":"3","role":"user","source":"input","content":"Say b"},
 {"id":"4","role":"assistant","source":"generate","model":"x-1","content":"b"}],"output":{"model":"x-1","usage":{"input_tokens":3}}},
 {"id":2,"epoch":1,"messages":[],"error":{"message":"no sandbox"}}]}`
	if checked, _ := imported(t, b, "log.json", file); len(checked.Faults) > 0 {
		t.Fatal(checked.Faults)
	}
	want := []string{`recorded/support/e-1_epoch_2 import/inspect: [{"role":"user","content":"Say a"},{"role":"assistant","content":"a"},{"role":"user","content":"Say b"}] => "b"|m/x|x-1|{"input_tokens":3}||`}
	if diff := cmp.Diff(want, b.said()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	missing(t, b, 0, []string{"the rest of the sample, which was ended by its limit: token", "what the log has as events alone"}, nil)
}

// TestInspectUnfinished: a packed log of an evaluation that was ended before its end has its id and model in the journal alone.
func TestInspectUnfinished(t *testing.T) {
	b := newBook()
	imported(t, b, "log.eval", string(packed(t, "_journal/start.json", `{"version":2,"eval":{"eval_id":"e","model":"m/x"},"plan":{}}`,
		"samples/1_epoch_1.json", `{"id":1,"epoch":1,"messages":[{"role":"user","content":"Q"},{"role":"assistant","content":"A"}]}`)))
	want := []string{`recorded/support/e-1_epoch_1 import/inspect: [{"role":"user","content":"Q"}] => "A"|m/x||||`}
	if diff := cmp.Diff(want, b.said()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
