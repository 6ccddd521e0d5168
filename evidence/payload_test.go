package evidence

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/test/must"
)

// TestSourceExamples seals the examples of the audit model without changes.
func TestSourceExamples(t *testing.T) {
	for name, action := range map[string]ActionType{
		"action": ModelOutput, "human-review": HumanReview, "chain-step-1": ChainStep, "chain-step-2": ChainStep,
	} {
		t.Run(name, func(t *testing.T) {
			doc := readFile(t, filepath.Join("testdata", "source", name+".json"))
			draft := must.Get(ParseDraft(doc))(t)
			must.Equal(t, draft.ActionType, action)
			r := seal(t, string(doc), nil)
			opened := must.Get(Open(marshalRecord(t, r)))(t)
			wantKept(t, string(doc), opened)
		})
	}
}

// wantKept checks that a record has every member of its source document, and the members that the sealer adds.
func wantKept(t *testing.T, doc string, r *Record) {
	t.Helper()
	given, sealed := object(t, []byte(doc)), object(t, r.Canonical())
	for _, name := range []string{"schema", "record_id", "action_type", "signers", "timestamp"} {
		if _, there := given[name]; !there {
			_, there := sealed[name]
			must.Hold(t, there, "%s was not filled in", name)
			delete(sealed, name)
		}
	}
	must.Equal(t, cmp.Diff(given, sealed), "", "sealing changed the payload (-given +sealed)")
}

func object(t *testing.T, doc []byte) map[string]any {
	t.Helper()
	var m map[string]any
	must.Do(t, json.Unmarshal(doc, &m))
	return m
}

const someDigest = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// sample has a valid value for every member of the format.
var sample = map[string]string{
	"schema": `"jurat/evidence/v1"`, "record_id": `"` + testID + `"`,
	"agent_id": `"agent"`, "reviewer_id": `"user@example.com"`, "request_id": `"request"`,
	"timestamp": `"2026-01-31T16:15:00Z"`, "model": `"m"`, "model_version": `"m-1"`, "prompt": `"p"`, "context": `["c"]`,
	"response": `{"said":1}`, "parameters": `{}`, "tools_used": `[]`, "metadata": `{"":null}`,
	"chain_id": `"chain"`, "chain_position": `1`, "previous_agent": `"b"`, "next_agent": `"c"`, "parent_request_id": `"q"`,
	"previous_record": `"` + someDigest + `"`, "saw": `["` + someDigest + `"]`,
	"case": `"` + someDigest + `"`, "request_digest": `"` + someDigest + `"`,
	"original_response_id": `"o"`, "modified_response": `"n"`, "changes": `"d"`, "approval_status": `"approved"`,
	"observed":     `{"agent":"a","began":"2026-01-31T16:15:00Z","ended":"complete","fidelity":"bytes","protocol":"openai.chat","request":{"bytes":2,"sha256":"` + someDigest + `"},"vantage":"proxy"}`,
	"request_body": `"{}"`, "response_body": `{"pieces":["{",{"at":0,"from":"` + someDigest + `","length":1}]}`,
}

// sampleIn is sample for an action type: only an observed_span is told by telemetry.
func sampleIn(action ActionType, name string) string {
	if name == "observed" && action == ObservedSpan {
		return strings.NewReplacer(`"bytes","p`, `"attributes","p`, `"vantage":"proxy"`, `"vantage":"telemetry"`).Replace(sample[name])
	}
	if name == "observed" && action == ObservedMessage {
		return strings.Replace(sample[name], `"vantage"`, `"side":"answered","vantage"`, 1)
	}
	return sample[name]
}

// table repeats by hand which members each action type must have, may have, and has filled in. The test compares the
// rules with it.
var table = map[ActionType]struct {
	role                                Role
	required, filled, optional, asApart string
}{
	"model_output":    {"agent", modelMust, "", "context tools_used", modelApart},
	"recommendation":  {"agent", modelMust, "", "context tools_used", modelApart},
	"proposal":        {"agent", modelMust, "", "context tools_used", modelApart},
	"instruction":     {"agent", modelMust, "", "context tools_used", modelApart},
	"api_call":        {"agent", modelMust, "", "context tools_used", modelApart},
	"tool_plan":       {"agent", modelMust, "", "context tools_used", modelApart},
	"message":         {"agent", modelMust, "", "context tools_used", modelApart},
	"chain_step":      {"agent", "agent_id request_id response chain_position", "timestamp", "model model_version prompt context parameters tools_used", modelApart},
	"human_review":    {"reviewer", "reviewer_id timestamp original_response_id approval_status", "", "request_id context modified_response changes case", "context modified_response changes metadata"},
	"delivery":        {"agent", "agent_id response saw", "timestamp", "request_id context original_response_id case", "context response metadata"},
	"submission":      {"submitter", "agent_id timestamp chain_id chain_position case response", "", "", "response"},
	"phase_opening":   {"clerk", clerkMust, "", "", ""},
	"consensus_check": {"clerk", clerkMust, "", "", ""},
	"absence":         {"clerk", clerkMust, "", "", ""},
	"final_judgment":  {"clerk", clerkMust, "", "", ""},
	"trial_closing":   {"clerk", clerkMust, "", "", ""},
	"evaluation":      {"juror", seatMust, "", "", ""},
	"statement":       {"juror", seatMust, "", "", ""},
	"judge_opinion":   {"judge", seatMust, "", "", ""},

	"late_stamp":       {"operator", operatorMust, "", "", ""},
	"checkpoint_stamp": {"operator", operatorMust, "", "", ""},
	"key_event":        {"operator", operatorMust, "", "", ""},
	"erasure":          {"operator", operatorMust, "", "", ""},
	"access_event":     {"operator", operatorMust, "", "", ""},
	"trial_event":      {"operator", operatorMust, "", "", ""},
	"expiry":           {"operator", operatorMust, "", "", ""},

	"observed_call":    {"recorder", observedMust, "", observedMay, observedApart},
	"observed_tool":    {"recorder", observedMust, "", observedMay, observedApart},
	"observed_message": {"recorder", observedMust, "", observedMay, observedApart},
	"observed_span":    {"recorder", observedMust, "", observedMay, observedApart},
	"recorder_event":   {"recorder", "agent_id timestamp response", "", "", ""},
}

const (
	modelMust     = "agent_id request_id timestamp model model_version prompt response parameters"
	modelApart    = "prompt context response tools_used metadata"
	observedApart = "prompt context response tools_used request_body response_body metadata"
	clerkMust     = "agent_id timestamp chain_id chain_position previous_record case response"
	seatMust      = "agent_id request_id timestamp model model_version parameters response chain_id chain_position previous_record saw case request_digest"
	operatorMust  = "agent_id timestamp response"
	anywhere      = "chain_id chain_position previous_agent next_agent parent_request_id previous_record saw metadata"
	observedMust  = "agent_id request_id timestamp observed"
	observedMay   = "model model_version prompt context response parameters tools_used request_body response_body"
	filledIn      = "schema record_id action_type signers"
)

func TestRulesAreTheTable(t *testing.T) {
	diff := cmp.Diff(slices.Sorted(maps.Keys(table)), ActionTypes())
	must.Need(t, diff == "", "action types (-table +rules):\n%s", diff)
	words := func(list []string) string { return strings.Join(slices.Sorted(slices.Values(list)), " ") }
	for action, row := range table {
		r := rules[action]
		got := []string{string(r.role), words(r.required), words(r.filled), words(r.optional), words(r.apart)}
		want := []string{string(row.role)}
		for _, text := range []string{row.required, row.filled, row.optional, row.asApart} {
			want = append(want, words(strings.Fields(text)))
		}
		must.Equal(t, cmp.Diff(want, got), "", action)
	}
	must.Equal(t, cmp.Diff(strings.Fields(anywhere+" sealed_apart provable"), linking), "")
	must.Equal(t, cmp.Diff(strings.Fields(filledIn), always), "")
}

// document writes a payload with these members, taken from sample.
func document(action ActionType, names ...string) string {
	parts := []string{fmt.Sprintf(`"action_type":%q`, action)}
	for _, name := range names {
		if name != "action_type" {
			parts = append(parts, fmt.Sprintf("%q:%s", name, sampleIn(action, name)))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestMembers tries every member with every action type: required, optional or forbidden.
func TestMembers(t *testing.T) {
	for action, row := range table {
		t.Run(string(action), func(t *testing.T) {
			required := strings.Fields(row.required)
			must.Get(ParseDraft([]byte(document(action, required...))))(t)
			full := slices.Compact(slices.Sorted(slices.Values(strings.Fields(
				row.required + " " + row.filled + " " + row.optional + " " + anywhere))))
			wantKept(t, document(action, full...), seal(t, document(action, full...), nil))
			for _, name := range required {
				_, err := ParseDraft([]byte(document(action, without(full, name)...)))
				wantField(t, err, name)
			}
			for name := range sample {
				_, err := ParseDraft([]byte(document(action, append(without(full, name), name)...)))
				if slices.Contains(full, name) || name == "schema" || name == "record_id" {
					must.Hold(t, err == nil, "with %s: %v", name, err)
					continue
				}
				wantField(t, err, name)
			}
		})
	}
}

// TestSealedMembers removes each member of a sealed payload, including those that the sealer fills in.
func TestSealedMembers(t *testing.T) {
	for action, row := range table {
		r := seal(t, document(action, strings.Fields(row.required)...), nil)
		must.Get(ParsePayload(r.Canonical()))(t)
		m := must.Get(membersOf(r.Canonical()))(t)
		for name := range m {
			fewer := maps.Clone(m)
			delete(fewer, name)
			_, err := ParsePayload(fewer.canonical())
			wantField(t, err, name)
		}
	}
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}

// TestPayloadStruct compares the struct with the members: every member has a field, and the struct marshals without
// loss.
func TestPayloadStruct(t *testing.T) {
	for action, row := range table {
		names := strings.Fields(row.required + " " + row.filled + " " + row.optional + " " + anywhere)
		r := seal(t, document(action, slices.Compact(slices.Sorted(slices.Values(names)))...), nil)
		if again, err := Canonical(marshal(r.Payload)); err != nil || string(again) != string(r.Canonical()) {
			t.Errorf("%s: the struct marshals as %s, %v\nwant %s", action, again, err, r.Canonical())
		}
		again, err := NewDraft(r.Payload)
		if err != nil {
			t.Errorf("%s: the struct is no draft: %v", action, err)
			continue
		}
		must.Hold(t, string(again.members.canonical()) == string(r.Canonical()),
			"%s: a draft of the struct is %s\nwant %s", action, again.members.canonical(), r.Canonical())
	}
}

func TestReviewNeedsItsChange(t *testing.T) {
	names := strings.Fields(table[HumanReview].required)
	doc := strings.Replace(document(HumanReview, names...), `"approved"`, `"approved_with_modifications"`, 1)
	_, err := ParseDraft([]byte(doc))
	wantField(t, err, "modified_response")
	for _, status := range []string{"", "APPROVED", "maybe", "approved "} {
		_, err := ParseDraft([]byte(strings.Replace(document(HumanReview, names...), `"approved"`, `"`+status+`"`, 1)))
		wantField(t, err, "approval_status")
	}
}

func TestResponsesThatAreObjects(t *testing.T) {
	for _, action := range ActionTypes() {
		doc := strings.Replace(document(action, strings.Fields(table[action].required)...), sample["response"], `"text"`, 1)
		_, err := ParseDraft([]byte(doc))
		if action.InTrial() || action.ByOperator() || action == RecorderEvent {
			wantField(t, err, "response")
		} else if err != nil {
			t.Errorf("%s: %v", action, err)
		}
	}
}

// TestDraftNumbers checks that the errors of a draft give the place in the document.
func TestDraftNumbers(t *testing.T) {
	doc := strings.Replace(testPayload, `"parameters":{}`, `"parameters":{"seed":9007199254740993}`, 1)
	_, err := ParseDraft([]byte(doc))
	wantSyntax(t, err, "/parameters/seed", int64(strings.Index(doc, "9007")), "would become 9007199254740992")
	for _, doc := range []string{`[]`, `"a"`, `null`, `1`} {
		_, err := ParseDraft([]byte(doc))
		wantSyntax(t, err, "", 0, "want an object")
	}
}

func TestParsePayloadIsStrict(t *testing.T) {
	canonical := string(seal(t, testPayload, nil).Canonical())
	for name, doc := range map[string]string{
		"space":    strings.Replace(canonical, `":"`, `": "`, 1),
		"order":    `{"model":"m",` + strings.Replace(canonical[1:], `"model":"m",`, "", 1),
		"escape":   strings.Replace(canonical, `"prompt":"p"`, `"prompt":"\u0070"`, 1),
		"number":   strings.Replace(canonical, `"parameters":{}`, `"parameters":{"t":1.0}`, 1),
		"line end": canonical + "\n",
	} {
		must.Refuse(t, "not in canonical form", name)(ParsePayload([]byte(doc)))
	}
}

// TestTrialChainIsReserved: an agent under trial cannot put an act of its own into the chain of its trial.
func TestTrialChainIsReserved(t *testing.T) {
	for _, action := range ActionTypes() {
		required := strings.Fields(table[action].required)
		if !slices.Contains(required, "chain_id") {
			required = append(required, "chain_id")
		}
		doc := strings.Replace(document(action, required...), sample["chain_id"], `"trial-1"`, 1)
		_, err := ParseDraft([]byte(doc))
		must.Equal(t, action.InTrial() || action == HumanReview || action == Delivery, err == nil, action, "in the chain of a trial", err)
		if err != nil {
			wantField(t, err, "chain_id")
		}
	}
}

func TestOperatorChains(t *testing.T) {
	for _, action := range ActionTypes() {
		names := strings.Fields(table[action].required)
		if !slices.Contains(names, "chain_id") {
			names = append(names, "chain_id")
		}
		doc := strings.Replace(document(action, names...), sample["chain_id"], `"operator-keys"`, 1)
		_, err := ParseDraft([]byte(doc))
		if action.ByOperator() {
			must.Hold(t, err == nil, "%s: %v", action, err)
		} else {
			wantField(t, err, "chain_id")
		}
	}
}

// TestMemberValues gives members values of the wrong kind.
func TestMemberValues(t *testing.T) {
	for name, values := range map[string][]string{
		"schema":      {`null`, `""`, `"jurat/evidence/v2"`, `1`},
		"record_id":   {`null`, `""`, `"x"`, `"019C14D6-13A0-7000-8000-000000000001"`, `"019c14d6-13a0-4000-8000-000000000001"`, `"019c14d6-13a0-7000-c000-000000000001"`, `"{019c14d6-13a0-7000-8000-000000000001}"`, `"019c14d613a070008000000000000001"`, `"019c14d6-13a0-7000-8000-000000000001 "`},
		"action_type": {`null`, `""`, `"Message"`, `"message "`, `1`, `"human"`},
		"signers":     {`null`, `[]`, `{}`, `[null]`, `[{"alg":"ES256"}]`, `[{"alg":"none","key_id":"` + someDigest + `"}]`, `[{"alg":"ES256","key_id":"` + someDigest + `","x":1}]`, `[{"alg":"ES256","key_id":"` + someDigest + `"},{"alg":"RS256","key_id":"` + someDigest + `"}]`, `[{"ALG":"ES256","key_id":"` + someDigest + `"}]`},
		"agent_id":    {`null`, `""`, `" "`, `"\t"`, `"a\u0000"`, `"a\nb"`, `"a\u007f"`, `"a\u0085"`, `"a\u202eb"`, `"\u2066b"`, `1`, `["a"]`, `{}`, `"` + strings.Repeat("a", maxName+1) + `"`},
		"timestamp": {`null`, `""`, `"2026-01-31"`, `"2026-01-31T16:15:00"`, `"2026-01-31T16:15:00+00:00"`, `"2026-01-31T16:15:00z"`, `"2026-01-31t16:15:00Z"`,
			`"2026-01-31T6:15:00Z"`, `"2026-01-31T16:15:00,5Z"`, `"2026-02-30T16:15:00Z"`, `"2026-01-31T24:00:00Z"`, `"2026-01-31T23:59:60Z"`, `"2026-01-31T16:15:00.Z"`,
			`"2026-01-31T16:15:00.1234567890Z"`, `" 2026-01-31T16:15:00Z"`, `"2026-01-31T16:15Z"`, `"02026-01-31T16:15:00Z"`, `1769876100`},
		"prompt":           {`null`, `true`, `1`},
		"response":         {`null`, `false`, `0`},
		"context":          {`null`, `true`, `1`},
		"parameters":       {`null`, `[]`, `""`, `1`},
		"tools_used":       {`null`, `{}`, `"a tool"`, `1`, `"hmac-sha256:` + someDigest[len(digestPrefix):] + `"`},
		"metadata":         {`null`, `[]`, `""`, `1`},
		"chain_position":   {`null`, `0`, `-1`, `1.5`, `"1"`, `1e300`, `9007199254740992`, `[]`},
		"previous_record":  {`null`, `""`, `"sha256:0"`, `"` + strings.ToUpper(someDigest) + `"`, `"SHA256:` + someDigest[7:] + `"`, `"` + someDigest[7:] + `"`, `"sha256:` + strings.Repeat("0", 64) + `"`, `"sha256:` + strings.Repeat("A", 64) + `"`, `"sha256:` + strings.Repeat("g", 64) + `"`},
		"saw":              {`null`, `[]`, `[null]`, `{}`, `"` + someDigest + `"`, `["` + someDigest + `","` + someDigest + `"]`, `["sha256:` + strings.Repeat("0", 64) + `"]`, `[1]`},
		"sealed_apart":     {`null`, `[]`, `[null]`, `[""]`, `["prompt"]`, `["/prompt"]`, `["/prompt","/prompt"]`, `["/agent_id"]`, `[1]`, `{}`, `"/prompt"`},
		"Agent_ID":         {`"a"`},
		"agent_id ":        {`"a"`},
		"":                 {`"a"`},
		"thoughts":         {`"a"`},
		"reviewer_id":      {`"a"`},
		"approval_status":  {`"approved"`},
		"request_digest":   {`"` + someDigest + `"`},
		"chain_id":         {`null`, `""`},
		"original_respons": {`1`},
	} {
		for _, value := range values {
			t.Run(name+"="+value[:min(len(value), 40)], func(t *testing.T) {
				base := object(t, []byte(testPayload))
				base[name] = json.RawMessage(value)
				doc := must.Get(json.Marshal(base))(t)
				_, err := ParseDraft(doc)
				if name == "sealed_apart" && strings.HasPrefix(value, `["/prompt"`) {
					must.Hold(t, err != nil, "accepted a prompt that is not a commitment")
					return
				}
				wantField(t, err, name)
				must.Hold(t, name != "agent_id" || value != `1` || strings.HasSuffix(err.Error(), "want a string, found a number"), "%v", err)
			})
		}
	}
}

// TestMemberValuesAccepted uses values at the edge of the allowed range.
func TestMemberValuesAccepted(t *testing.T) {
	for name, values := range map[string][]string{
		"agent_id":       {`"` + strings.Repeat("a", maxName) + `"`, `"агент é \u0061"`, `" a "`, `"../x"`, `"وكيل"`},
		"timestamp":      {`"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.999999999Z"`, `"2026-01-31T16:15:00.5Z"`, `"2024-02-29T00:00:00.000Z"`},
		"prompt":         {`""`, `[]`, `{}`, `[null]`, `"hmac-sha256:"`},
		"context":        {`""`, `[]`, `{}`},
		"parameters":     {`{}`, `{"":null}`, `{"seed":9007199254740992}`},
		"tools_used":     {`[]`, `[{"name":"t"},1,null]`},
		"metadata":       {`{}`, `{"":{"":[]},"agent_id":null}`},
		"chain_position": {`1`, `1.0`, `1e3`, `9007199254740991`},
	} {
		for _, value := range values {
			base := object(t, []byte(testPayload))
			base[name] = json.RawMessage(value)
			doc := must.Get(json.Marshal(base))(t)
			r := seal(t, string(doc), nil)
			wantKept(t, string(doc), r)
			must.Fail(t, nil, name, "=", value)(Open(marshalRecord(t, r)))
		}
	}
}
