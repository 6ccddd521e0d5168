package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/must"
)

func step(agent, chain, more string) string {
	return fmt.Sprintf(`{"agent_id":%q,"request_id":"r","chain_id":%q,"response":"x","timestamp":"2026-01-31T16:15:00Z"%s}`, agent, chain, more)
}

// TestChainsBelongToWhoBeganThem: an agent that guesses a chain_id cannot add to the chain, and cannot find out whether
// it exists.
func TestChainsBelongToWhoBeganThem(t *testing.T) {
	r := start(t, nil)
	owner, mallory := r.token(t, "a", access.Agent), r.token(t, "mallory", access.Agent)
	first := post(t, r.URL+"/v1/records", step("a", "order-4711", `,"chain_position":1`), bearer(owner)...)

	answer, body := send(t, http.DefaultClient, http.MethodPost, r.URL+"/v1/records", step("mallory", "order-4711", `,"chain_position":2`), bearer(mallory)...)
	problem(t, answer, body, api.ErrForbidden)
	answer, body = send(t, http.DefaultClient, http.MethodPost, r.URL+"/v1/records", step("a", "order-4711", `,"chain_position":9`), bearer(owner)...)
	problem(t, answer, body, api.ErrConflict)
	post(t, r.URL+"/v1/records", step("a", "order-4711", `,"chain_position":2,"previous_record":"`+first.Digest.String()+`"`), bearer(owner)...)
	if answer, _ := send(t, http.DefaultClient, http.MethodGet, r.URL+"/v1/chains/order-4711", "", bearer(owner)...); answer.StatusCode != http.StatusOK {
		t.Errorf("its owner reads it: %s", answer.Status)
	}

	for _, path := range []string{"/v1/chains/", "/chains/"} {
		there, said := send(t, http.DefaultClient, http.MethodGet, r.URL+path+"order-4711", "", bearer(mallory)...)
		missing, same := send(t, http.DefaultClient, http.MethodGet, r.URL+path+"order-4712", "", bearer(mallory)...)
		if there.StatusCode != http.StatusNotFound || missing.StatusCode != http.StatusNotFound || path == "/v1/chains/" && said != same {
			t.Errorf("%s: %s %s for an existing chain, %s %s for a missing one", path, there.Status, said, missing.Status, same)
		}
	}
	submitter := r.token(t, "s", access.Submitter)
	for _, chain := range []string{"order-4711", "order-4712"} {
		answer, body := send(t, http.DefaultClient, http.MethodPost, r.URL+"/v1/submissions", `{"chainId":"`+chain+`"}`, bearer(submitter)...)
		problem(t, answer, body, api.ErrNotFound)
	}

	must.Do(t, r.Access().Admit(t.Context(), "order-4711", "mallory", "r", "w"))
	post(t, r.URL+"/v1/records", step("mallory", "order-4711", `,"chain_position":3,"previous_agent":"a"`), bearer(mallory)...)
}

// TestNothingRejectedIsDelivered: after one person approved an answer and another rejected it, the first approval no
// longer allows its delivery.
func TestNothingRejectedIsDelivered(t *testing.T) {
	r := start(t, nil)
	agent, first, second := r.token(t, "a", access.Agent), r.token(t, "noa", access.Reviewer), r.token(t, "ben", access.Reviewer)
	said := post(t, r.URL+"/v1/records", strings.ReplaceAll(action, "logistics-agent-v1", "a"), bearer(agent)...)
	at := r.URL + "/v1/records/" + said.Payload.RecordID
	approval := post(t, at+"/reviews", `{"approval_status":"approved"}`, bearer(first)...)
	post(t, at+"/reviews", `{"approval_status":"rejected"}`, bearer(second)...)
	answer, body := send(t, http.DefaultClient, http.MethodPost, at+"/deliveries", `{"review":"`+approval.Payload.RecordID+`"}`, bearer(agent)...)
	problem(t, answer, body, api.ErrConflict)
}
