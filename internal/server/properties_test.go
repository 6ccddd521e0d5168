package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/erasure"
	"jurat/internal/must"
	"jurat/property"
	"jurat/verify"
)

// provingHouse has two agents with a record each: the amount is 12.5 in both.
func provingHouse(t *testing.T) (r *running, tokens [2][]string, records [2]*evidence.Record) {
	t.Helper()
	r = start(t, nil)
	for i, name := range []string{"logistics-agent-v1", "other-agent"} {
		setting := erasure.Setting{Actor: name, Provable: map[string]property.Kind{"/metadata/amount": "decimal:2", "/metadata/born": property.Date, "/metadata/action": property.Text}}
		must.Do(t, r.Installation.Apart.Set(t.Context(), setting))
		tokens[i] = bearer(r.token(t, name, access.Agent))
		payload := strings.Replace(strings.Replace(action, "logistics-agent-v1", name, 1), "{", `{"metadata":{"amount":12.5,"born":"2001-05-17","action":"refund"},`, 1)
		records[i] = post(t, r.URL+"/v1/records", payload, tokens[i]...)
	}
	return r, tokens, records
}

// TestProperties: who may read a value gets a proof of what it is like, in a file that does not have the value.
func TestProperties(t *testing.T) {
	r, tokens, records := provingHouse(t)
	url := r.URL + "/v1/records/" + records[0].Payload.RecordID + "/properties"
	for body, want := range map[string]property.Form{
		`{"form":"range","pointer":"/metadata/amount","lo":0,"hi":50.00,"audience":"auditor"}`: property.Range,
		`{"form":"in","pointer":"/metadata/action","set":["refund","quote"]}`:                  property.In,
		`{"form":"not_in","pointer":"/metadata/action","set":["a",{"b":1, "a":2}]}`:            property.NotIn,
		`{"form":"age_at_least","pointer":"/metadata/born","years":18,"at":"2026-11-23"}`:      property.AgeAtLeast,
	} {
		answer, doc := send(t, http.DefaultClient, "POST", url, body, tokens[0]...)
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s: %s", body, answer.Status, doc)
			continue
		}
		bundle := must.Get(evidence.ParseBundle([]byte(doc)))(t)
		found := verify.Record(bundle.Records[0], verify.Options{})
		if len(found.Properties) != 1 || found.Of(verify.Property).Status != verify.Proved || !strings.Contains(string(found.Properties[0].Statement), fmt.Sprintf(`"form":%q`, want)) || len(bundle.Records[0].Disclosures) != 0 {
			t.Errorf("%s: %+v, disclosed %v", body, found, bundle.Records[0].Disclosures)
		}
	}
	for _, body := range []string{`{"form":"range","pointer":"/metadata/amount","lo":0,"hi":12.49}`, `{"form":"in","pointer":"/metadata/action","set":["a","b"]}`,
		`{"form":"range","pointer":"/prompt","lo":0,"hi":12.49}`, `{"form":"range","pointer":"/metadata/amount"}`, `{"form":"x","pointer":"/metadata/amount"}`,
		`{"form":"equal","pointer":"/metadata/amount"}`, `{"form":"in","pointer":"/metadata/action","set":[null,{}]}`, `{"form":"range","pointer":"/metadata/amount","lo":0,"hi":1e400}`,
		`{"form":"range","pointer":"/metadata/amount","lo":0,"hi":5,"x":1}`, `{"form":"in","pointer":"","set":["refund","b"]}`, `[]`} {
		answer, doc := send(t, http.DefaultClient, "POST", url, body, tokens[0]...)
		problem(t, answer, doc, api.ErrInvalid)
	}
	if _, err := r.Installation.Eraser.Erase(t.Context(), erasure.Order{RecordID: records[0].Payload.RecordID, Pointers: []string{"/metadata/born"}, Reason: "a test", By: "tester", DespiteQuotes: true}); err != nil {
		t.Fatal(err)
	}
	answer, doc := send(t, http.DefaultClient, "POST", url, `{"form":"age_at_least","pointer":"/metadata/born","years":18,"at":"2026-11-23"}`, tokens[0]...)
	if problem(t, answer, doc, api.ErrInvalid); !strings.Contains(doc, "it was erased, or its owner keeps it") {
		t.Errorf("erased: %s", doc)
	}
}

// TestPropertiesAreNoOracle: a caller who may not read a value gets the same refusal whether the statement is true or false, and also where the chain
// is public.
func TestPropertiesAreNoOracle(t *testing.T) {
	r, tokens, records := provingHouse(t)
	at := func(i int) string { return r.URL + "/v1/records/" + records[i].Payload.RecordID + "/properties" }
	refused := func(what, url string, want error, bodies [2]string, header ...string) {
		t.Helper()
		var answers [2]string
		for i, body := range bodies {
			answer, doc := send(t, http.DefaultClient, "POST", url, body, header...)
			problem(t, answer, doc, want)
			answers[i] = doc
		}
		if answers[0] != answers[1] {
			t.Errorf("%s: a true statement is refused with %s, a false one with %s", what, answers[0], answers[1])
		}
	}
	ranges := [2]string{`{"form":"range","pointer":"/metadata/amount","lo":0,"hi":50}`, `{"form":"range","pointer":"/metadata/amount","lo":0,"hi":5}`}
	refused("another agent", at(0), api.ErrForbidden, ranges, tokens[1]...)
	id := records[0].Payload.RecordID
	must.Do(t, r.Access().SetPublic(t.Context(), id, true, "a test", "tester"))
	refused("a stranger", at(0), api.ErrSignIn, ranges)

	answer, doc := send(t, http.DefaultClient, "POST", at(1), ranges[0], bearer(r.token(t, "Olga", access.Auditor))...)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("an auditor: %s: %s", answer.Status, doc)
	}
	bundle := must.Get(evidence.ParseBundle([]byte(doc)))(t)
	if found := verify.Record(bundle.Records[0], verify.Options{}); len(bundle.Records) != 1 || len(found.Properties) != 1 {
		t.Errorf("%d records, %+v", len(bundle.Records), found)
	}
}
