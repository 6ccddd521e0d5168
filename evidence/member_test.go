package evidence

import (
	"encoding/json"
	"strings"
	"testing"

	"jurat/internal/must"
)

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
				doc, err := json.Marshal(base)
				if err != nil {
					t.Fatal(err)
				}
				_, err = ParseDraft(doc)
				if name == "sealed_apart" && strings.HasPrefix(value, `["/prompt"`) {
					if err == nil {
						t.Error("accepted a prompt that is not a commitment")
					}
					return
				}
				wantField(t, err, name)
				if name == "agent_id" && value == `1` && !strings.HasSuffix(err.Error(), "want a string, found a number") {
					t.Error(err)
				}
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
			if _, err := Open(marshalRecord(t, r)); err != nil {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
	}
}
