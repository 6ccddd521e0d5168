package server_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// recordsAt returns the ids of the records in the bundle at a path, in order. The bundle must not be refuted.
func (r *running) recordsAt(t *testing.T, path, token string) (ids []string) {
	t.Helper()
	var header []string
	if token != "" {
		header = bearer(token)
	}
	answer, doc := send(t, http.DefaultClient, http.MethodGet, r.URL+path, "", header...)
	if answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s: %s", path, answer.Status, doc)
		return nil
	}
	if cut := answer.Header.Get("Jurat-Cut"); cut != "" {
		t.Errorf("%s is cut: %s", path, cut)
	}
	bundle := must.Get(evidence.ParseBundle([]byte(doc)))(t)
	trust := must.Get(r.Installation.Trust(t.Context()))(t)
	if report := verify.Bundle(bundle, verify.Options{Trust: trust}); report.Outcome == verify.Refuted {
		t.Errorf("%s: %s: %+v", path, report.Outcome, report.Details)
	}
	for _, record := range bundle.Records {
		ids = append(ids, record.Payload.RecordID)
	}
	return ids
}

func asks(agent, request, more string) string {
	return fmt.Sprintf(`{"agent_id":%q,"request_id":%q,"timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1","prompt":"p","response":"Take the A9.","parameters":{}%s}`,
		agent, request, more)
}

// TestRecordsWithoutAChain: an answer, its review, its delivery and the sub-agent of its request belong together without
// a chain_id. Pages, bundles and the API return all of them for each of them, but only to readers who may read them.
func TestRecordsWithoutAChain(t *testing.T) {
	r := start(t, nil)
	agent, other, reviewer := r.token(t, "a", access.Agent), r.token(t, "b", access.Agent), r.token(t, "noa", access.Reviewer)
	part := post(t, r.URL+"/v1/records", asks("a", "part", `,"parent_request_id":"whole"`), bearer(agent)...)
	said := post(t, r.URL+"/v1/records", asks("a", "whole", ""), bearer(agent)...)
	post(t, r.URL+"/v1/records", asks("a", "unrelated", ""), bearer(agent)...)
	at := r.URL + "/v1/records/" + said.Payload.RecordID
	review := post(t, at+"/reviews", `{"approval_status":"approved"}`, bearer(reviewer)...)
	delivery := post(t, at+"/deliveries", `{"review":"`+review.Payload.RecordID+`"}`, bearer(agent)...)
	foreign := post(t, r.URL+"/v1/records", asks("b", "foreign", `,"parent_request_id":"whole"`), bearer(other)...)
	decided := post(t, r.URL+"/v1/records/"+foreign.Payload.RecordID+"/reviews", `{"approval_status":"rejected"}`, bearer(reviewer)...)

	ids := func(records ...*evidence.Record) (list []string) {
		for _, record := range records {
			list = append(list, record.Payload.RecordID)
		}
		return list
	}
	own, all := ids(part, said, review, delivery), ids(part, said, review, delivery, foreign, decided)
	person := r.visit(t, "ben", access.Auditor)
	for _, id := range all {
		for _, path := range []string{"/records/" + id + "/bundle", "/v1/chains/" + id} {
			if got := r.recordsAt(t, path, reviewer); !slices.Equal(got, all) {
				t.Errorf("%s: a reviewer gets %v, want %v", path, got, all)
			}
			if !slices.Contains(own, id) {
				continue
			}
			if got := r.recordsAt(t, path, agent); !slices.Equal(got, own) {
				t.Errorf("%s: the agent gets %v, want %v", path, got, own)
			}
		}
		answer, page := person.get(t, "/records/"+id)
		shows(t, answer, page, http.StatusOK, `href="/chains/`+id+`"`)
		answer, page = person.get(t, "/chains/"+id)
		shows(t, answer, page, http.StatusOK, all...)
		answer, doc := send(t, http.DefaultClient, http.MethodGet, r.URL+"/v1/chains/"+id, "")
		problem(t, answer, doc, api.ErrSignIn)
	}
	if got := r.recordsAt(t, "/v1/chains/"+foreign.Payload.RecordID, other); !slices.Equal(got, ids(foreign, decided)) {
		t.Errorf("another agent gets %v", got)
	}
	answer, doc := send(t, http.DefaultClient, http.MethodGet, r.URL+"/v1/chains/"+said.Payload.RecordID, "", bearer(other)...)
	problem(t, answer, doc, api.ErrNotFound)

	// A stranger gets the public record, but not the records that belong to it.
	must.Do(t, r.Access().SetPublicRecord(t.Context(), said.Payload.RecordID, true, "it is asked for", "w"))
	if got := r.recordsAt(t, "/records/"+said.Payload.RecordID+"/bundle", ""); !slices.Equal(got, ids(said)) {
		t.Errorf("a stranger gets %v", got)
	}
}

// TestLinkedToAChain: records linked to a record of a chain come with the chain. A chain that the reader may read only
// in part does not come with a record that names it.
func TestLinkedToAChain(t *testing.T) {
	r := start(t, nil)
	agent, other, auditor := r.token(t, "a", access.Agent), r.token(t, "b", access.Agent), r.token(t, "ada", access.Auditor)
	one := post(t, r.URL+"/v1/records", step("a", "order", `,"chain_position":1`), bearer(agent)...)
	must.Do(t, r.Access().Admit(t.Context(), "order", "b", "r", "w"))
	two := post(t, r.URL+"/v1/records", step("b", "order", `,"chain_position":2,"previous_agent":"a"`), bearer(other)...)
	after := post(t, r.URL+"/v1/records", asks("a", "after", `,"saw":["`+one.Digest.String()+`"]`), bearer(agent)...)
	all := []string{one.Payload.RecordID, two.Payload.RecordID, after.Payload.RecordID}
	for _, path := range []string{"/v1/chains/order", "/v1/chains/" + all[0], "/records/" + all[1] + "/bundle", "/records/" + all[2] + "/bundle"} {
		if got := r.recordsAt(t, path, auditor); !slices.Equal(got, all) {
			t.Errorf("%s: %v, want %v", path, got, all)
		}
	}
	if got := r.recordsAt(t, "/records/"+all[2]+"/bundle", agent); !slices.Equal(got, all[2:]) {
		t.Errorf("of a chain that is only partly its own, the agent gets %v", got)
	}
}

// TestListsReadNoPayloads: lists need only what is stored beside the payloads, so they are complete even if payloads
// cannot be read.
func TestListsReadNoPayloads(t *testing.T) {
	panel := withPanel(t, 0, func() ([]jury.Juror, jury.Juror) { return jurattest.Panel() })
	r := start(t, panel)
	agent, auditor := r.token(t, "a", access.Agent), r.token(t, "ada", access.Auditor)
	said := post(t, r.URL+"/v1/records", step("a", "order", `,"chain_position":1`), bearer(agent)...)
	review := post(t, r.URL+"/v1/records/"+said.Payload.RecordID+"/reviews", `{"approval_status":"approved"}`, bearer(r.token(t, "noa", access.Reviewer))...)
	trial := r.tried(t, r.token(t, "s", access.Submitter))
	lists := func(token string) (all []string) {
		t.Helper()
		for _, path := range []string{"/v1/records", "/v1/records?chain=order", "/v1/submissions"} {
			answer, doc := send(t, http.DefaultClient, http.MethodGet, r.URL+path, "", bearer(token)...)
			if answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %s: %s", path, answer.Status, doc)
			}
			all = append(all, doc)
		}
		return all
	}
	before, own := lists(auditor), lists(agent)
	for _, id := range []string{said.Payload.RecordID, review.Payload.RecordID} {
		if !strings.Contains(before[0], id) || !strings.Contains(own[0], id) {
			t.Errorf("record %s is not listed", id)
		}
	}
	var listing api.Listing
	if err := json.Unmarshal([]byte(before[1]), &listing); err != nil || len(listing.Records) != 2 || !strings.Contains(before[2], trial) {
		t.Errorf("%+v, %v; %s", listing, err, before[2])
	}
	dir := r.Installation.Dir
	must.Do(t, r.stop())
	db := must.Get(sql.Open("sqlite", filepath.Join(dir, "jurat.db")))(t)
	if _, err := db.ExecContext(t.Context(), `DROP TRIGGER records_keep; UPDATE records SET packed = x'7b7d'
		WHERE idx < (SELECT max(idx) FROM records) - 20 AND (chain_id IS NULL OR chain_id NOT LIKE 'operator-%')`); err != nil {
		t.Fatal(err)
	}
	must.Do(t, db.Close())
	r = startIn(t, dir, panel)
	for i, now := range [][]string{lists(auditor), lists(agent)} {
		for k, want := range [][]string{before, own}[i] {
			var list, had api.Listing
			if k == 2 {
				if now[k] != want {
					t.Errorf("without payloads the list of trials is\n%s, want\n%s", now[k], want)
				}
				continue
			}
			if json.Unmarshal([]byte(want), &had) != nil || json.Unmarshal([]byte(now[k]), &list) != nil || len(had.Records) == 0 || !slices.Equal(list.Records[:len(had.Records)], had.Records) {
				t.Errorf("without payloads the list is\n%s, want\n%s", now[k], want)
			}
		}
	}
}
