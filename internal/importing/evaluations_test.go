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

// TestTau2Beside: the model, the counts and the id of each answer, and that reasoning is left out, are read as tau2-bench writes them.
func TestTau2Beside(t *testing.T) {
	b := newBook()
	file := `{"timestamp":"x","info":{"agent_info":{"llm":"claude"},"environment_info":{"policy":"Be kind"}},"tasks":[{"id":"0"}],"simulations":[{"id":"s1","task_id":"0","trial":1,"termination_reason":"max_steps","messages":[
 {"role":"assistant","content":"Hi!","turn_idx":0,"timestamp":"t0","cost":0.0,"usage":null,"raw_data":null},
 {"role":"user","content":"Where?","timestamp":"t1","usage":{"prompt_tokens":4},"raw_data":{"message":{"role":"assistant"}}},
 {"role":"assistant","content":null,"tool_calls":[{"id":"t","name":"find","arguments":{"n":1},"requestor":"assistant"}],"timestamp":"t2","usage":{"prompt_tokens":5},"raw_data":{"id":"msg_1","model":"claude-1","thinking_blocks":[{"thinking":"hm"}]}}]}]}`
	if checked, _ := imported(t, b, "results.json", file); len(checked.Faults) > 0 {
		t.Fatal(checked.Faults)
	}
	want := []string{`recorded/support/s1 import/tau2:  => "Hi!"|claude||||t0`,
		`recorded/support/s1 import/tau2: [{"role":"user","content":"Where?"}] => [{"role":"assistant","content":"","tool_calls":[{"id":"t","type":"function","function":{"name":"find","arguments":"{\"n\":1}"}}]}]|claude|claude-1|{"prompt_tokens":5}|msg_1|t2`}
	if diff := cmp.Diff(want, b.said()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const over = "the rest of the conversation, which was ended for another reason than that it was over: max_steps"
	missing(t, b, 0, []string{noSystem + ", with the policy"}, []string{over})
	missing(t, b, 1, []string{"left out: inner reasoning", over}, []string{"counts of tokens", "which model answered"})
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
