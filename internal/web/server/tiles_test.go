package server_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/client/api"
	"jurat/client/tiles"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/access"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/server"
	"jurat/jury"
	"jurat/verify"
)

// reader is a client of a server's log.
func (r *running) reader(t testing.TB, token string) *tiles.Client {
	t.Helper()
	return must.Get(tiles.New(tiles.Config{URL: r.URL + "/log", Token: token}))(t)
}

// head opens the checkpoint that a server serves.
func (r *running) head(t testing.TB) operator.Checkpoint {
	t.Helper()
	signed := must.Get(r.reader(t, "").Checkpoint(t.Context()))(t)
	trust := must.Get(r.Installation.Trust(t.Context()))(t)
	key := must.Get(note.NewVerifier(trust.Logs[0]))(t)
	return must.Get(operator.OpenCheckpoint(signed, key))(t)
}

// fill has an agent seal n more records.
func (r *running) fill(t testing.TB, token string, n int) {
	t.Helper()
	for i := range n {
		said := strings.Replace(action, "uuid", fmt.Sprint("request ", i), 1)
		post(t, r.URL+"/v1/records", said, bearer(token)...)
	}
}

// limitless removes the limit on requests.
func limitless(c *server.Config) { c.Limits = server.Rate{PerSecond: 1e6, Burst: 1e6} }

// TestTilesOfALog reads a log of more than one tile, as a stranger and as an auditor.
func TestTilesOfALog(t *testing.T) {
	r := start(t, limitless)
	agent, auditor := r.token(t, "logistics-agent-v1", access.Agent), r.token(t, "ada", access.Auditor)
	r.fill(t, agent, 280)
	head := r.head(t)
	must.Need(t, head.Size >= 280, "%d records", head.Size)
	var logged [][]byte
	for entry, err := range r.Installation.Ledger.Entries(t.Context(), 0, head.Size) {
		must.Do(t, err)
		logged = append(logged, entry)
	}
	read := int64(0)
	tree := r.reader(t, auditor).Tree(t.Context(), head)
	err := tree.Entries(0, head.Size, func(i int64, entry []byte) error {
		must.Hold(t, i == read && bytes.Equal(entry, logged[i]), "entry %d: %d, %s", read, i, entry)
		read++
		return nil
	})
	must.Need(t, err == nil && read == head.Size, "%d of %d entries: %v", read, head.Size, err)
	stranger := r.reader(t, "").Tree(t.Context(), head)
	proof := must.Get(stranger.ProveInclusion(200))(t)
	must.Want(t, tlog.CheckRecord(proof, head.Size, head.Root, 200, tlog.RecordHash(logged[200])), nil)
	must.Want(t, stranger.Entries(0, 1, func(int64, []byte) error { return nil }), tiles.ErrRefused)
}

// TestTilesAreForEver: answers have the media types and caching rules of the specification.
func TestTilesAreForEver(t *testing.T) {
	r := start(t, limitless)
	agent, auditor := r.token(t, "logistics-agent-v1", access.Agent), r.token(t, "ada", access.Auditor)
	r.fill(t, agent, 3)
	size := int(r.head(t).Size)
	for path, want := range map[string]struct{ media, kept string }{
		"/log/checkpoint":                                 {"text/plain; charset=utf-8", "no-cache"},
		fmt.Sprintf("/log/tile/0/000.p/%d", size):         {"application/octet-stream", "public, max-age=31536000, immutable"},
		fmt.Sprintf("/log/tile/entries/000.p/%d", size-1): {"application/octet-stream", "private, max-age=31536000, immutable"},
	} {
		answer, doc := send(t, http.DefaultClient, "GET", r.URL+path, "", bearer(auditor)...)
		must.Hold(t, answer.StatusCode == 200 && answer.Header.Get("Content-Type") == want.media && answer.Header.Get("Cache-Control") == want.kept && doc != "",
			"%s: %s %v", path, answer.Status, answer.Header)
		again, doc := send(t, http.DefaultClient, "GET", r.URL+path, "", append(bearer(auditor), "If-None-Match", answer.Header.Get("ETag"))...)
		must.Hold(t, again.StatusCode == http.StatusNotModified && doc == "", "%s, again: %s", path, again.Status)
		head, doc := send(t, http.DefaultClient, "HEAD", r.URL+path, "", bearer(auditor)...)
		must.Hold(t, head.StatusCode == 200 && doc == "" && head.ContentLength == answer.ContentLength,
			"%s, HEAD: %s, %d bytes", path, head.Status, head.ContentLength)
	}
}

// TestTilesShowOnlyWhatIsSigned: tiles do not show records that no checkpoint covers yet.
func TestTilesShowOnlyWhatIsSigned(t *testing.T) {
	r := start(t, limitless)
	auditor := r.token(t, "ada", access.Auditor)
	signed := int(r.head(t).Size)
	r.token(t, "bob", access.Auditor) // an act of the operator that no checkpoint covers yet
	size := int(r.size(t))
	must.Need(t, size > signed, "%d records, of which the checkpoint covers %d", size, signed)
	ask := func(path string) *http.Response {
		answer, _ := send(t, http.DefaultClient, "GET", r.URL+"/log/tile/"+path, "", bearer(auditor)...)
		return answer
	}
	for _, level := range []string{"0", "entries"} {
		if got := ask(fmt.Sprintf("%s/000.p/%d", level, signed)); got.StatusCode != http.StatusOK {
			t.Errorf("%s: what is signed: %s", level, got.Status)
		}
		got := ask(fmt.Sprintf("%s/000.p/%d", level, signed+1))
		kept := got.Header.Get("Cache-Control")
		must.Hold(t, got.StatusCode == http.StatusNotFound && kept == "no-store", "%s: what is not signed: %s, %s", level, got.Status, kept)
	}
	r.head(t)
	for _, level := range []string{"0", "entries"} {
		got := ask(fmt.Sprintf("%s/000.p/%d", level, signed+1))
		must.Hold(t, got.StatusCode == http.StatusOK, "%s: what is signed by now: %s", level, got.Status)
	}
	for _, path := range []string{"0/000", "1/000.p/1", "0/001.p/1", "0/000.p/0", "0/000.p/256", "0/000.p/01", "7/000.p/1", "8/000.p/1", "63/000.p/1", "64/000.p/1", "-1/000.p/1",
		"0/x036/x028/x797/x018/x963/967", "0/0", "entries/000", "entries/x000/000.p/1", "data/000.p/1", "0/%2e%2e/000.p/1"} {
		got := ask(path)
		must.Hold(t, got.StatusCode == http.StatusNotFound, "%s: %s", path, got.Status)
	}
}

// TestPublicEntries: if the operator allows it, strangers can read entries.
func TestPublicEntries(t *testing.T) {
	r := start(t, func(c *server.Config) { c.PublicEntries = true })
	r.token(t, "ada", access.Auditor)
	head := r.head(t)
	must.Want(t, r.reader(t, "").Tree(t.Context(), head).Entries(0, head.Size, func(int64, []byte) error { return nil }), nil)
}

// BenchmarkTiles requests whole tiles of 256 hashes, and bundles of as many entries, over HTTP on this machine.
func BenchmarkTiles(b *testing.B) {
	r := start(b, limitless)
	agent, auditor := r.token(b, "logistics-agent-v1", access.Agent), r.token(b, "ada", access.Auditor)
	r.fill(b, agent, 260)
	r.head(b)
	for name, path := range map[string]string{"tile": "0/000", "entries": "entries/000"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				request := must.Get(http.NewRequestWithContext(b.Context(), http.MethodGet, r.URL+"/log/tile/"+path, nil))(b)
				request.Header.Set("Authorization", "Bearer "+auditor)
				answer := must.Get(http.DefaultClient.Do(request))(b)
				n, err := io.Copy(io.Discard, answer.Body)
				if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
					b.Fatal(answer.Status, err)
				}
				b.SetBytes(n)
				must.Do(b, err)
			}
		})
	}
}

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
	must.Equal(t, answer.Header.Get("Jurat-Cut"), "")
	bundle := must.Get(evidence.ParseBundle([]byte(doc)))(t)
	trust := must.Get(r.Installation.Trust(t.Context()))(t)
	report := verify.Bundle(bundle, verify.Options{Trust: trust})
	must.Hold(t, report.Outcome != verify.Refuted, "%s: %s: %+v", path, report.Outcome, report.Details)
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
			got := r.recordsAt(t, path, reviewer)
			must.Hold(t, slices.Equal(got, all), "%s: a reviewer gets %v, want %v", path, got, all)
			if !slices.Contains(own, id) {
				continue
			}
			got = r.recordsAt(t, path, agent)
			must.Hold(t, slices.Equal(got, own), "%s: the agent gets %v, want %v", path, got, own)
		}
		shown(t, http.StatusOK, `href="/chains/`+id+`"`)(person.get(t, "/records/"+id))
		shown(t, http.StatusOK, all...)(person.get(t, "/chains/"+id))
		problem(t, api.ErrSignIn)(send(t, http.DefaultClient, http.MethodGet, r.URL+"/v1/chains/"+id, ""))
	}
	got := r.recordsAt(t, "/v1/chains/"+foreign.Payload.RecordID, other)
	must.Hold(t, slices.Equal(got, ids(foreign, decided)), "another agent gets %v", got)
	problem(t, api.ErrNotFound)(send(t, http.DefaultClient, http.MethodGet, r.URL+"/v1/chains/"+said.Payload.RecordID, "", bearer(other)...))

	// A stranger gets the public record, but not the records that belong to it.
	must.Do(t, r.Access().Publish(t.Context(), access.What{Record: said.Payload.RecordID}, true, "it is asked for", "w"))
	got = r.recordsAt(t, "/records/"+said.Payload.RecordID+"/bundle", "")
	must.Hold(t, slices.Equal(got, ids(said)), "a stranger gets %v", got)
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
		got := r.recordsAt(t, path, auditor)
		must.Hold(t, slices.Equal(got, all), "%s: %v, want %v", path, got, all)
	}
	got := r.recordsAt(t, "/records/"+all[2]+"/bundle", agent)
	must.Hold(t, slices.Equal(got, all[2:]), "of a chain that is only partly its own, the agent gets %v", got)
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
			must.Hold(t, answer.StatusCode == http.StatusOK, "%s: %s: %s", path, answer.Status, doc)
			all = append(all, doc)
		}
		return all
	}
	before, own := lists(auditor), lists(agent)
	for _, id := range []string{said.Payload.RecordID, review.Payload.RecordID} {
		must.Contain(t, before[0], id)
		must.Contain(t, own[0], id)
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
				must.Equal(t, now[k], want)
				continue
			}
			if json.Unmarshal([]byte(want), &had) != nil || json.Unmarshal([]byte(now[k]), &list) != nil || len(had.Records) == 0 || !slices.Equal(list.Records[:len(had.Records)], had.Records) {
				t.Errorf("without payloads the list is\n%s, want\n%s", now[k], want)
			}
		}
	}
}
