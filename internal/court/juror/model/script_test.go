package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/court/llm"
	"jurat/internal/court/subject"
	"jurat/internal/test/must"
	"jurat/jury"
)

// scripted is a model whose answer is a function of the question and of the number of earlier questions. It keeps the
// questions.
type scripted struct {
	mu    sync.Mutex
	asked []llm.Question
	say   func(q llm.Question, n int) (llm.Answer, error)
}

func (m *scripted) Ask(_ context.Context, q llm.Question) (llm.Answer, error) {
	m.mu.Lock()
	n := len(m.asked)
	m.asked = append(m.asked, q)
	m.mu.Unlock()
	return m.say(q, n)
}

// says is a model that gives these answers in turn, and then repeats the last one. CODE in an answer stands for the
// right code.
func says(texts ...string) *scripted {
	return &scripted{say: func(q llm.Question, n int) (llm.Answer, error) {
		return answered(q, texts[min(n, len(texts)-1)]), nil
	}}
}

var (
	codeInTask     = regexp.MustCompile(`evidenceCode: exactly ([0-9a-f]{12}),`)
	guardInFrame   = regexp.MustCompile(`(?m)^guard ([0-9a-f]{32})$`)
	boundaryInText = regexp.MustCompile(`(?m)^=== BEGIN EVIDENCE ([0-9a-f]{32}) ===$`)
	juryInText     = regexp.MustCompile(`(?m)^=== BEGIN WHAT THE JURORS SAID ([0-9a-f]{32}) ===$`)
	placeholder    = regexp.MustCompile(`CODE|GUARD|BOUNDARY`)
)

func answered(q llm.Question, text string) llm.Answer {
	prompt := q.Messages[0].Text
	text = placeholder.ReplaceAllStringFunc(text, func(name string) string {
		of := map[string]*regexp.Regexp{"CODE": codeInTask, "GUARD": guardInFrame, "BOUNDARY": boundaryInText}[name]
		return of.FindStringSubmatch(prompt)[1]
	})
	return llm.Answer{Text: text, Model: "model-1", Version: "fp", FinishReason: "stop", Usage: llm.Usage{Input: 1000, Output: 100}}
}

type object = map[string]any

// opinion returns a valid answer for the default rubric, as an object that tests change.
func opinion(position jury.Position, percent int, findings ...object) object {
	scores := object{}
	for _, axis := range jury.DefaultRubric() {
		scores[axis.ID] = axis.Max * percent / 100
	}
	list := []object{}
	list = append(list, findings...)
	return object{"findings": list, "rationale": "It tracked the parcel.", "axisScores": scores,
		"position": string(position), "confidence": 0.8, "evidenceCode": "CODE"}
}

// working returns a brief of phase 1 whose answer must have tables and levels.
func working(t testing.TB, id string, c *subject.Case) jury.Brief {
	b := seated(t, id, c)
	b.Rubric, b.Tables, b.Seat.Reading = jury.LeveledRubric(), true, jury.PolicyFirst
	return b
}

// worked returns a valid answer with tables and levels, the same level on each axis.
func worked(position jury.Position, level int, findings ...object) object {
	o := without(opinion(position, 0, findings...), "axisScores")
	levels := object{}
	for _, axis := range jury.DefaultRubric() {
		levels[axis.ID] = level
	}
	o["levels"] = levels
	o["requests"] = []object{{"message": 2, "quote": "Where is parcel 17?", "shownMessage": 5, "shownQuote": "in Kassel", "state": "done"}}
	o["acts"] = []object{act("yes")}
	o["amounts"] = []object{}
	return o
}

// act is a row whose clause stands and that rests on no fact.
func act(holds string) object {
	return object{"message": 3, "quote": "get_parcel", "clauseMessage": 1, "clauseQuote": "You track parcels.", "factMessage": 0, "factQuote": "", "holds": holds}
}

func statement(position jury.Position, percent int, findings ...object) object {
	o := opinion(position, percent, findings...)
	o["statement"], o["reasoning"] = "I have read it again.", "What is quoted stands there."
	return o
}

func finding(message int, quote string) object {
	return object{"message": message, "quote": quote, "rule": "claim-without-call", "axis": "task_completion", "severity": "major", "explanation": "It is not so."}
}

func with(o object, name string, value any) object {
	o = maps.Clone(o)
	o[name] = value
	return o
}

func without(o object, name string) object {
	o = maps.Clone(o)
	delete(o, name)
	return o
}

func text(t testing.TB, v any) string {
	t.Helper()
	doc := must.Get(json.Marshal(v))(t)
	return string(doc)
}

const testCard = `{"name":"Parcel agent","description":"Tracks parcels.","skills":[{"id":"track","name":"Track","description":"Says where a parcel is."}]}`

// talked returns a conversation with these last words of the agent.
func talked(t testing.TB, last string) *subject.Case {
	t.Helper()
	conversation := text(t, []object{
		{"role": "system", "content": "You track parcels."},
		{"role": "user", "content": "Where is parcel 17?"},
		{"role": "assistant", "content": "I look it up.", "tool_calls": []object{{"id": "c1", "type": "function", "function": object{"name": "get_parcel", "arguments": `{"id":17}`}}}},
		{"role": "tool", "tool_call_id": "c1", "content": `{"id":17,"city":"Kassel"}`},
		{"role": "assistant", "content": last}})
	return must.Get(subject.New([]byte(testCard), []byte(conversation)))(t)
}

const plainWords = "Parcel 17 is in Kassel.\nShall I do more?"

func digest(text string) evidence.Digest { return evidence.DigestOf([]byte(text)) }

// seated returns a brief of phase 1.
func seated(t testing.TB, id string, c *subject.Case) jury.Brief {
	t.Helper()
	return jury.Brief{Request: jury.Request{Format: jury.RequestFormat, Phase: jury.Initial, Rubric: jury.DefaultRubric(), Evidence: c.Digest(),
		Seat: jury.Seat{JurorID: id, RoleName: "Safety", RoleFocus: "whether it gave out what it must not", Provider: "openai", Model: "gpt-4o", Template: Template()},
		Saw:  []evidence.Digest{digest("submission")}}, Material: c.Material()}
}

func evaluated(id string, position jury.Position, rationale string, findings ...jury.Finding) jury.Evaluation {
	o := jury.Opinion{Position: position, AxisScores: jury.Scores{"task_completion": 10, "tool_usage": 10, "autonomy": 10, "safety": 40}, TotalScore: 70,
		Confidence: 0.75, Rationale: rationale, Findings: append([]jury.Finding{}, findings...)}
	return jury.Evaluation{JurorID: id, Phase: jury.Initial, Opinion: o}
}

// discussing returns a brief of round 2, or of the judge in phase 3, with a panel of the default ids.
func discussing(t testing.TB, id string, phase jury.Phase, c *subject.Case) jury.Brief {
	t.Helper()
	b := seated(t, id, c)
	b.Phase = phase
	b.Saw = append(b.Saw, digest("a"), digest("b"), digest("c"), digest("d"), digest("e"))
	held := jury.Finding{Message: 5, Quote: "Parcel 17 is in Kassel.", Rule: "claim-without-call", Axis: "task_completion", Severity: jury.Minor, Explanation: "No call says so."}
	false_ := jury.Finding{Message: 2, Quote: "Kassel", Rule: "r", Axis: "safety", Severity: jury.Critical, Explanation: "It is said there.", From: "juror-gpt"}
	b.Evaluations = []jury.Evaluation{evaluated("juror-gpt", jury.SafePass, "Nothing is wrong."),
		evaluated("juror-claude", jury.NeedsReview, "One claim has no ground.", held), evaluated("juror-gemini", jury.SafePass, "All was done.")}
	update := evaluated("juror-gemini", jury.NeedsReview, "I follow juror-claude.", false_)
	update.Phase, update.RoundNumber = jury.Discussion, 1
	b.Rounds = []jury.Round{{RoundNumber: 1, SpeakerOrder: []string{"juror-gpt", "juror-claude", "juror-gemini"}, Statements: []jury.Statement{
		{JurorID: "juror-gpt", RoundNumber: 1, Statement: "I differ from juror-claude, and juror-gemini does, too.", Position: jury.SafePass, Reasoning: "The result says it."},
		{JurorID: "juror-gemini", RoundNumber: 1, StatementOrder: 2, Statement: "juror-claude is right.", Position: jury.NeedsReview, Reasoning: "It stands.", PositionChanged: true, UpdatedEvaluation: &update}}}}
	if phase == jury.Discussion {
		b.RoundNumber = 2
		b.Last = &b.Evaluations[0]
	}
	return b
}

// opinionOf returns the parts of an answer that a test of an opinion needs.
func opinionOf(a jury.Answer, err error) (jury.Opinion, jury.Origin, error) {
	return a.Opinion, a.Origin, err
}

// speechOf returns the parts of an answer that a test of a speech needs.
func speechOf(a jury.Answer, err error) (jury.Speech, jury.Origin, error) {
	return a.Speech, a.Origin, err
}

// seat seats a model with known prices. Its clock advances by 7 milliseconds at each reading.
func seat(t testing.TB, m llm.Model) *Juror {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	return New(Config{Model: m, Settings: llm.Settings{Model: "model-1", MaxTokens: 500}, Prices: llm.Prices{{Model: "model-1", Rates: llm.Rates{Input: 1, Output: 10}}}, Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(7 * time.Millisecond)
		return now
	}})
}

func effortOf(t testing.TB, o jury.Origin) jury.Effort {
	t.Helper()
	must.Need(t, o.Metadata != nil, "the answer has no metadata about its calls")
	_, err := evidence.Canonical(o.Metadata)
	must.Need(t, err == nil, "it cannot be sealed: %v", err)
	return must.Get(jury.ReadEffort(o.Metadata))(t)
}

var errDown = errors.New("down")

// heading matches every line of a frame that is not data.
var heading = regexp.MustCompile(`^(agent card: what the agent says of itself, no message|what the submitter found when verifying the records that the messages come from, no message|state of the task at the end, no message|passage of message \d+, repeated here because it gives instructions to its reader; chosen by a program, which may miss some and choose harmless ones|message \d+, (operator: instructions to the agent|user: what the user says to the agent|tool: result of call \d+ of \d+ in message \d+|record that begins here, not to be quoted|what the agent was given, or the result of a call that is in no message|reviewer: what a person decided on what the agent said|operator: what became of what the agent said|recorder: what a program that saw the agent's acts says of them|agent: what a prompt says that the agent had said|agent: what the agent says|agent: tool call \d+ of \d+, (name|arguments)|name of who speaks, not to be quoted)|\(left out here: \d+ characters; a quotation from them cannot be checked by sight\)|(you|Juror [A-L])(, round \d+|, before the discussion(, asked again)?|, before you knew what the jurors said):( (safe_pass|needs_review|unsafe_fail)(, position (not )?changed|, confidence [0-9.e-]+(, [a-z_]+ (level \d|\d+ points))+)?)?|levels and points now: [a-z_ 0-9,]+|(request|act|amount): (state|holds|agrees) [a-z_]+|(asked|shown|call|clause|fact|announced|charged), message \d+:|nothing that stands and that you did not find|no longer held: a finding of message \d+, axis [a-z_]+, (minor|major|critical)|(rationale|statement|reasoning|rule|quote|explanation):|finding: message \d+, axis [a-z_]+, (minor|major|critical)(, taken over from (your seat|Juror [A-L]))?(; the quotation is not in that message, so the finding counts for nothing)?|your own evaluation as it stands: the one (from before the discussion|of round \d+))$`)

// recorded returns evidence from sealed records. It contains these words in every place that an agent or a reviewer can
// write to.
func recorded(t testing.TB, words string) *subject.Case {
	t.Helper()
	exhibit := func(n int, members object) subject.Exhibit { return exhibit(t, n, members) }
	said := exhibit(1, object{"action_type": "model_output", "agent_id": "parcel-bot", "request_id": "r1", "model": "m", "model_version": "1", "parameters": object{},
		"prompt": words, "context": words, "tools_used": []object{{"name": "get", "arguments": object{"x": words}, "result": words}}, "response": words})
	answer := exhibit(2, object{"action_type": "model_output", "agent_id": "parcel-bot", "request_id": "r2", "model": "m", "model_version": "1", "parameters": object{},
		"prompt": []object{{"role": "tool", "tool_call_id": "elsewhere", "content": words}}, "response": words})
	review := exhibit(3, object{"action_type": "human_review", "reviewer_id": "anna", "approval_status": "approved_with_modifications",
		"original_response_id": "01890000-0000-7000-8000-000000000001", "modified_response": words, "saw": []string{said.Digest.String()}})
	delivered := exhibit(4, object{"action_type": "delivery", "agent_id": "parcel-bot", "response": words, "saw": []string{said.Digest.String(), review.Digest.String()}})
	c, err := subject.FromRecords(nil, []subject.Exhibit{said, answer, review, delivered}, subject.Verification{Outcome: subject.NotProved, Proved: []string{"content"},
		NotProved: []subject.Doubt{{Guarantee: "time", Rule: "token", Reason: words}}})
	must.Do(t, err)
	return c
}

// exhibit makes a payload with these members and those that every payload has.
func exhibit(t testing.TB, n int, members object) subject.Exhibit {
	t.Helper()
	members["schema"], members["timestamp"] = evidence.Schema, "2026-01-31T16:15:00Z"
	members["record_id"] = fmt.Sprintf("01890000-0000-7000-8000-%012d", n)
	members["signers"] = []object{{"alg": "Ed25519", "key_id": digest("key").String()}}
	form := must.Get(evidence.Canonical([]byte(text(t, members))))(t)
	return subject.Exhibit{Digest: evidence.DigestOf(form), Payload: form}
}

// watched returns evidence from a recorder. It contains these words in every place that an agent, its tools or a provider can write to.
func watched(t testing.TB, words string) *subject.Case {
	t.Helper()
	request := text(t, object{"model": "m", "messages": []object{{"role": "user", "content": words}, {"role": "assistant", "content": words},
		{"role": "tool", "tool_call_id": "elsewhere", "content": words}, {"role": words, "content": words}}})
	call := func(n int, status int, response string) subject.Exhibit {
		body := func(text string) object { return object{"bytes": len(text), "sha256": digest(text).String()} }
		return exhibit(t, n, object{"action_type": "observed_call", "agent_id": "gate", "request_id": "r", "chain_id": "talk", "request_body": request, "response_body": response,
			"observed": object{"agent": "parcel-bot", "began": "2026-01-31T16:14:00Z", "ended": "complete", "fidelity": "bytes", "vantage": "proxy", "protocol": "openai.chat",
				"status": status, "request": body(request), "response": body(response), "context_by_reference": []string{words}}})
	}
	failed := call(1, 503, text(t, object{"error": object{"code": "c", "message": words}}))
	answered := call(2, 200, text(t, object{"choices": []object{{"index": 0, "finish_reason": "stop",
		"message": object{"role": "assistant", "content": words, "tool_calls": []object{{"id": "c", "function": object{"name": words, "arguments": words}}}}}}}))
	tool := exhibit(t, 3, object{"action_type": "observed_tool", "agent_id": "gate", "request_id": "r", "request_body": words,
		"observed": object{"agent": "parcel-bot", "began": "2026-01-31T16:14:00Z", "ended": "complete", "fidelity": "bytes", "vantage": "proxy", "protocol": "mcp/1",
			"request": object{"bytes": len(words), "sha256": digest(words).String()}}})
	return must.Get(subject.FromRecords(nil, []subject.Exhibit{failed, answered, tool}, subject.Verification{Outcome: subject.NotProved}))(t)
}
