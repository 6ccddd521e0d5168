package server_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/client"
	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/internal/log/access"
	"jurat/internal/log/erasure"
	"jurat/internal/log/keys"
	"jurat/internal/test/must"
	"jurat/internal/web/server"
	"jurat/verify"
)

// action is a payload as agents send it.
const action = `{"agent_id": "logistics-agent-v1", "request_id": "uuid", "timestamp": "2026-01-31T16:15:00Z", "model": "gpt-4.1",
	"model_version": "gpt-4.1-turbo-2026-01-25", "prompt": "Plan the best route.", "response": "Take the A9.", "parameters": {"temperature": 0.2}}`

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// post seals a payload, and expects success.
func post(t testing.TB, url, body string, header ...string) *evidence.Record {
	t.Helper()
	answer, doc := send(t, http.DefaultClient, "POST", url, body, header...)
	must.Need(t, answer.StatusCode == http.StatusCreated, "%s: %s", answer.Status, doc)
	record := must.Get(evidence.Open([]byte(doc)))(t)
	must.Equal(t, answer.Header.Get("Location"), "/v1/records/"+record.Payload.RecordID)
	return record
}

func (r *running) size(t *testing.T) int64 {
	t.Helper()
	return must.Get(r.Installation.Ledger.Size(t.Context()))(t)
}

// TestSourceExamples sends the payloads of the audit model as curl would.
func TestSourceExamples(t *testing.T) {
	r := start(t, nil)
	tokens := map[string]string{}
	for file, who := range map[string]struct {
		name string
		role access.Role
	}{
		"action.json":       {"logistics-agent-v1", access.Agent},
		"chain-step-1.json": {"planner-agent", access.Agent},
		"chain-step-2.json": {"tool-agent", access.Agent},
		"human-review.json": {"user@example.com", access.Reviewer},
	} {
		doc := must.Get(os.ReadFile("../../../evidence/testdata/source/" + file))(t)
		tokens[file] = r.token(t, who.name, who.role)
		record := post(t, r.URL+"/v1/records", string(doc), append(bearer(tokens[file]), "Content-Type", "application/x-www-form-urlencoded")...)
		trust := must.Get(r.Installation.Trust(t.Context()))(t)
		report := verify.Record(record, verify.Options{Trust: trust})
		must.Hold(t, report.Outcome == verify.Proved, "%s: %+v", file, report)
	}
	// Each caller may sign for itself only.
	problem(t, api.ErrForbidden)(send(t, http.DefaultClient, "POST", r.URL+"/v1/records", action, bearer(tokens["chain-step-1.json"])...))
	problem(t, api.ErrForbidden)(send(t, http.DefaultClient, "POST", r.URL+"/v1/records", action, bearer(tokens["human-review.json"])...))
}

func TestRefusedPayloads(t *testing.T) {
	r := start(t, nil)
	header := bearer(r.token(t, "logistics-agent-v1", access.Agent))
	before := r.size(t)
	for name, c := range map[string]struct {
		body, field string
		want        error
		header      []string
	}{
		"a member is missing": {strings.Replace(action, `"request_id": "uuid", `, "", 1), "request_id", api.ErrInvalid, nil},
		"no JSON":             {`{"agent_id"`, "/agent_id", api.ErrInvalid, nil},
		"twice":               {`{"agent_id":"a","agent_id":"b"}`, "/agent_id", api.ErrInvalid, nil},
		"an operator's act":   {`{"action_type":"erasure","agent_id":"logistics-agent-v1","timestamp":"2026-01-31T16:15:00Z","response":{}}`, "action_type", api.ErrInvalid, nil},
		"empty":               {"", "", api.ErrMalformed, nil},
		"another media type":  {action, "", api.ErrMediaType, []string{"Content-Type", "text/xml"}},
		"a long key":          {action, "", api.ErrMalformed, []string{api.IdempotencyKey, strings.Repeat("k", 256)}},
		"no record":           {`{"digest":1}`, "/digest", api.ErrInvalid, nil},
	} {
		body := problem(t, c.want)(send(t, http.DefaultClient, "POST", r.URL+"/v1/records", c.body, append(c.header, header...)...))
		var p api.Problem
		err := json.Unmarshal([]byte(body), &p)
		must.Hold(t, err == nil && p.Field == c.field, "%s: %+v, %v", name, p, err)
	}
	must.Equal(t, r.size(t), before)
}

// TestIdempotency sends the same request again, as after a timeout or a crash.
func TestIdempotency(t *testing.T) {
	r := start(t, nil)
	token := r.token(t, "logistics-agent-v1", access.Agent)
	header := append(bearer(token), api.IdempotencyKey, "order 17")
	first := post(t, r.URL+"/v1/records", action, header...)
	size := r.size(t)
	again := post(t, r.URL+"/v1/records", strings.ReplaceAll(action, ": ", ":"), header...)
	must.Hold(t, again.Payload.RecordID == first.Payload.RecordID && again.Digest == first.Digest && r.size(t) == size,
		"sealed %s again as %s", first.Payload.RecordID, again.Payload.RecordID)
	problem(t, api.ErrKeyReused)(send(t, http.DefaultClient, "POST", r.URL+"/v1/records", strings.Replace(action, "A9", "A7", 1), header...))
	problem(t, api.ErrKeyReused)(send(t, http.DefaultClient, "POST", r.URL+"/v1/records", strings.Replace(action, `"agent_id"`, `"metadata":{},"agent_id"`, 1), header...))
	other := post(t, r.URL+"/v1/records", action, append(bearer(token), api.IdempotencyKey, "order 18")...)
	must.Hold(t, other.Payload.RecordID != first.Payload.RecordID, "two keys make one record")
	// The same key of another caller is another key.
	elsewhere := post(t, r.URL+"/v1/records", strings.Replace(action, "logistics-agent-v1", "other-agent", 1),
		append(bearer(r.token(t, "other-agent", access.Agent)), api.IdempotencyKey, "order 17")...)
	must.Hold(t, elsewhere.Payload.RecordID != first.Payload.RecordID, "two agents share a record")
	// If the key is a UUIDv7, the record's id has its time.
	key := "0199f4a2-3b4c-7d5e-8f60-718293a4b5c6"
	timed := post(t, r.URL+"/v1/records", action, append(bearer(token), api.IdempotencyKey, key)...)
	must.Hold(t, timed.Payload.RecordID[:13] == key[:13] && timed.Payload.RecordID != key, "key %s, record %s", key, timed.Payload.RecordID)
	// A record id that the actor gives has the same effect.
	own := strings.Replace(action, "{", `{"record_id":"0199f4a2-3b4c-7d5e-8f60-718293a4b5c7",`, 1)
	post(t, r.URL+"/v1/records", own, bearer(token)...)
	post(t, r.URL+"/v1/records", own, bearer(token)...)
	problem(t, api.ErrConflict)(send(t, http.DefaultClient, "POST", r.URL+"/v1/records", strings.Replace(own, "A9", "A7", 1), bearer(token)...))
	problem(t, api.ErrMalformed)(send(t, http.DefaultClient, "POST", r.URL+"/v1/records", own, header...))
}

// TestIdempotencyOfManyAtOnce: of many identical concurrent requests, the log gets one record.
func TestIdempotencyOfManyAtOnce(t *testing.T) {
	r := start(t, nil)
	header := append(bearer(r.token(t, "logistics-agent-v1", access.Agent)), api.IdempotencyKey, "k")
	ids := make(chan string, 8)
	for range cap(ids) {
		go func() {
			request, err := http.NewRequest("POST", r.URL+"/v1/records", strings.NewReader(action))
			if err != nil {
				ids <- err.Error()
				return
			}
			for i := 0; i < len(header); i += 2 {
				request.Header.Set(header[i], header[i+1])
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				ids <- err.Error()
				return
			}
			defer answer.Body.Close()
			ids <- answer.Status + answer.Header.Get("Location")
		}()
	}
	first := <-ids
	must.Hold(t, strings.HasPrefix(first, "201"), "%v", first)
	for range cap(ids) - 1 {
		id := <-ids
		must.Hold(t, id == first, "%s and %s", first, id)
	}
}

// TestReview: a review is bound to the record that it decides on, and the delivery contains the text that was approved.
func TestReview(t *testing.T) {
	r := start(t, nil)
	agent, mia := bearer(r.token(t, "logistics-agent-v1", access.Agent)), bearer(r.token(t, "mia", access.Reviewer))
	said := post(t, r.URL+"/v1/records", strings.Replace(action, "{", `{"chain_id":"order-17",`, 1), agent...)
	url := r.URL + "/v1/records/" + said.Payload.RecordID
	body := `{"approval_status":"approved_with_modifications","modified_response":"Take the A7.","changes":"roadworks"}`
	review := post(t, url+"/reviews", body, append(mia, api.IdempotencyKey, "1")...)
	p := review.Payload
	must.Hold(t, p.ReviewerID == "mia" && len(p.Saw) == 1 && p.Saw[0] == said.Digest && p.ChainID == "order-17", "%+v", p)
	again := post(t, url+"/reviews", body, append(mia, api.IdempotencyKey, "1")...)
	must.Hold(t, again.Digest == review.Digest, "reviewed twice")
	problem(t, api.ErrKeyReused)(send(t, http.DefaultClient, "POST", url+"/reviews", strings.Replace(body, "A7", "A3", 1), append(mia, api.IdempotencyKey, "1")...))

	delivery := post(t, url+"/deliveries", fmt.Sprintf(`{"review":%q}`, review.Payload.RecordID), append(mia, api.IdempotencyKey, "2")...)
	p = delivery.Payload
	must.Hold(t, string(p.Response) == `"Take the A7."` && p.AgentID == "logistics-agent-v1" && len(p.Saw) == 2, "%+v", p)
	answer, doc := send(t, http.DefaultClient, "GET", r.URL+"/v1/chains/order-17", "", mia...)
	bundle, err := evidence.ParseBundle([]byte(doc))
	must.Need(t, err == nil, "%v %v", answer.Status, err)
	trust := must.Get(r.Installation.Trust(t.Context()))(t)
	report := verify.Bundle(bundle, verify.Options{Trust: trust})
	for _, g := range []verify.Guarantee{verify.HumanReview, verify.Chain} {
		f := report.Of(g)
		must.Hold(t, f.Status == verify.Proved, "%s %s: %s", g, f.Status, f.Reason)
	}
	for name, c := range map[string]struct {
		body string
		want error
	}{
		"another reviewer":             {`{"approval_status":"approved","reviewer_id":"noah"}`, api.ErrInvalid},
		"another record":               {`{"approval_status":"approved","original_response_id":"x"}`, api.ErrInvalid},
		"no such status":               {`{"approval_status":"perhaps"}`, api.ErrInvalid},
		"nothing in its place":         {`{"approval_status":"approved_with_modifications"}`, api.ErrInvalid},
		"an unknown member":            {`{"approval_status":"approved","why":"x"}`, api.ErrInvalid},
		"a response of the wrong kind": {`{"approval_status":"approved_with_modifications","modified_response":3}`, api.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			problem(t, c.want)(send(t, http.DefaultClient, "POST", url+"/reviews", c.body, mia...))
		})
	}
	rejected := post(t, url+"/reviews", `{"approval_status":"rejected","changes":"no"}`, mia...)
	for _, id := range []string{rejected.Payload.RecordID, said.Payload.RecordID, "x"} {
		problem(t, api.ErrInvalid)(send(t, http.DefaultClient, "POST", url+"/deliveries", fmt.Sprintf(`{"review":%q}`, id), mia...))
	}
}

// TestNobodyDecidesOnTheirOwnWork: a reviewer with the agent's name, or the submitter of a trial, may not review it.
func TestNobodyDecidesOnTheirOwnWork(t *testing.T) {
	r := start(t, nil)
	said := post(t, r.URL+"/v1/records", action, bearer(r.token(t, "logistics-agent-v1", access.Agent))...)
	namesake := bearer(r.token(t, "logistics-agent-v1", access.Reviewer))
	problem(t, api.ErrOwnWork)(send(t, http.DefaultClient, "POST", r.URL+"/v1/records/"+said.Payload.RecordID+"/reviews", `{"approval_status":"approved"}`, namesake...))
	answer, body := send(t, http.DefaultClient, "POST", r.URL+"/v1/records", fmt.Sprintf(`{"action_type":"human_review","reviewer_id":"logistics-agent-v1",
		"timestamp":"2026-01-31T16:20:00Z","original_response_id":%q,"approval_status":"approved"}`, said.Payload.RecordID), namesake...)
	problem(t, api.ErrOwnWork)(answer, body)
	for _, alike := range []string{"Logistics-Agent-V1", "l\u043egistics-agent-v1", "logistics-\u03b1gent-v1", "ｌogistics-agent-v1"} {
		order := access.Order{Name: alike, Roles: []access.Role{access.Reviewer}, For: time.Hour, Reason: "a test", By: "tester"}
		_, _, err := r.Access().Grant(t.Context(), order)
		must.Hold(t, errors.Is(err, access.ErrOrder), "%+q: %v", alike, err)
	}
}

// TestNobodyDecidesInTheirOwnTrial: the submitter cannot put a review of another record into the trial's chain either,
// and an agent cannot put a delivery there.
func TestNobodyDecidesInTheirOwnTrial(t *testing.T) {
	r := start(t, withJury(t))
	sam, agent := r.token(t, "sam", access.Submitter, access.Reviewer), bearer(r.token(t, "logistics-agent-v1", access.Agent))
	said := post(t, r.URL+"/v1/records", action, agent...)
	id := r.tried(t, sam)
	judgment := r.submission(t, sam, id).Verdict.Record
	for original, want := range map[string]error{judgment: api.ErrOwnWork, said.Payload.RecordID: api.ErrInvalid, "elsewhere": api.ErrInvalid} {
		answer, body := send(t, http.DefaultClient, "POST", r.URL+"/v1/records", fmt.Sprintf(`{"action_type":"human_review","reviewer_id":"sam","chain_id":%q,
			"timestamp":"2026-01-31T16:20:00Z","original_response_id":%q,"approval_status":"approved"}`, id, original), bearer(sam)...)
		problem(t, want)(answer, body)
	}
	answer, body := send(t, http.DefaultClient, "POST", r.URL+"/v1/records", fmt.Sprintf(`{"action_type":"delivery","agent_id":"logistics-agent-v1","chain_id":%q,
		"response":"x","saw":[%q]}`, id, said.Digest), agent...)
	problem(t, api.ErrForbidden)(answer, body)
	s := r.submission(t, sam, id)
	must.Hold(t, s.Reviews == 0 && !s.Delivered, "%+v", s)
}

// TestNoAgentDeliversForAnother: an agent cannot deliver another agent's answer, even if it may read it.
func TestNoAgentDeliversForAnother(t *testing.T) {
	r := start(t, nil)
	agent, other := bearer(r.token(t, "logistics-agent-v1", access.Agent)), bearer(r.token(t, "other-agent", access.Agent))
	said := post(t, r.URL+"/v1/records", strings.Replace(action, "{", `{"chain_id":"order-17",`, 1), agent...)
	url := r.URL + "/v1/records/" + said.Payload.RecordID
	review := post(t, url+"/reviews", `{"approval_status":"approved"}`, bearer(r.token(t, "mia", access.Reviewer))...)
	must.Do(t, r.Access().Publish(t.Context(), access.What{Chain: "order-17"}, true, "a test", "tester"))
	delivery := fmt.Sprintf(`{"review":%q}`, review.Payload.RecordID)
	problem(t, api.ErrForbidden)(send(t, http.DefaultClient, "POST", url+"/deliveries", delivery, other...))
	post(t, url+"/deliveries", delivery, agent...)
}

func TestConditionalReading(t *testing.T) {
	r := start(t, nil)
	token := bearer(r.token(t, "logistics-agent-v1", access.Agent))
	record := post(t, r.URL+"/v1/records", action, token...)
	url := r.URL + "/v1/records/" + record.Payload.RecordID
	answer, _ := send(t, http.DefaultClient, "GET", url, "", token...)
	tag := answer.Header.Get("ETag")
	answer, body := send(t, http.DefaultClient, "GET", url, "", append(token, "If-None-Match", `"x", W/`+tag)...)
	must.Hold(t, answer.StatusCode == http.StatusNotModified && body == "" && tag != "", "%s %q", answer.Status, body)
	answer, body = send(t, http.DefaultClient, "HEAD", url, "", token...)
	must.Hold(t, answer.StatusCode == 200 && body == "" && answer.Header.Get("ETag") == tag, "%s %q", answer.Status, body)
}

// TestPublicChains: strangers can read public chains and nothing else, without values that are sealed apart.
func TestPublicChains(t *testing.T) {
	r := start(t, nil)
	token := bearer(r.token(t, "logistics-agent-v1", access.Agent))
	record := post(t, r.URL+"/v1/records", strings.Replace(action, "{", `{"chain_id":"order-17",`, 1), token...)
	urls := []string{r.URL + "/v1/records/" + record.Payload.RecordID, r.URL + "/v1/chains/order-17"}
	read := func(want int) {
		t.Helper()
		for _, url := range urls {
			answers(t, want, http.DefaultClient, "GET", url, "")
		}
	}
	read(http.StatusUnauthorized)
	must.Do(t, r.Access().Publish(t.Context(), access.What{Chain: "order-17"}, true, "a test", "tester"))
	read(http.StatusOK)
	must.Do(t, r.Access().Publish(t.Context(), access.What{Chain: "order-17"}, false, "a test", "tester"))
	read(http.StatusUnauthorized)
}

// TestPublicRecord: strangers can read a public record that is in no chain, and no other.
func TestPublicRecord(t *testing.T) {
	r := start(t, nil)
	token := bearer(r.token(t, "logistics-agent-v1", access.Agent))
	open := post(t, r.URL+"/v1/records", action, token...)
	other := post(t, r.URL+"/v1/records", strings.Replace(action, "uuid", "uuid-2", 1), token...)
	read := func(id string, want int) {
		t.Helper()
		for _, path := range []string{"/v1/records/" + id, "/records/" + id} {
			answers(t, want, http.DefaultClient, "GET", r.URL+path, "")
		}
	}
	for _, public := range []bool{false, true, false} {
		must.Do(t, r.Access().Publish(t.Context(), access.What{Record: open.Payload.RecordID}, public, "a test", "tester"))
		read(open.Payload.RecordID, map[bool]int{true: http.StatusOK, false: http.StatusUnauthorized}[public])
		read(other.Payload.RecordID, http.StatusUnauthorized)
	}
	err := r.Access().Publish(t.Context(), access.What{Record: "no id"}, true, "a test", "tester")
	must.Hold(t, err != nil, "what is no id is published")
}

func TestListing(t *testing.T) {
	r := start(t, nil)
	one, other := bearer(r.token(t, "logistics-agent-v1", access.Agent)), bearer(r.token(t, "other-agent", access.Agent))
	for range 3 {
		post(t, r.URL+"/v1/records", action, one...)
		post(t, r.URL+"/v1/records", strings.Replace(action, "logistics-agent-v1", "other-agent", 1), other...)
	}
	count := func(limit int, header []string) (n int) {
		t.Helper()
		cursor := ""
		for range 20 {
			_, body := send(t, http.DefaultClient, "GET", fmt.Sprintf("%s/v1/records?limit=%d&after=%s", r.URL, limit, cursor), "", header...)
			var page api.Listing
			err := json.Unmarshal([]byte(body), &page)
			must.Need(t, err == nil && len(page.Records) <= limit, "%v %v", body, err)
			if n += len(page.Records); page.Next == "" {
				return n
			}
			cursor = page.Next
		}
		t.Fatal("it does not end")
		return 0
	}
	auditor := bearer(r.token(t, "ada", access.Auditor))
	for _, limit := range []int{1, 2, 500} {
		must.Equal(t, count(limit, one), 3, limit)
		n := count(limit, auditor)
		must.Hold(t, int64(n) == r.size(t), "limit %d: an auditor sees %d of %d records", limit, n, r.size(t))
	}
	for _, query := range []string{"limit=0", "limit=501", "limit=x", "after=x", "after=-1"} {
		problem(t, api.ErrMalformed)(send(t, http.DefaultClient, "GET", r.URL+"/v1/records?"+query, "", auditor...))
	}
}

// endless is a body without an end. It counts what is read of it.
type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.text)
	}
	e.read += n
	return n, nil
}

// TestHostileBodiesCostNothing: of bodies that are too long or too deep no more is read than a body may have, and nothing of one that announces its length.
func TestHostileBodiesCostNothing(t *testing.T) {
	const limit = 64 << 10
	r := start(t, func(c *server.Config) { c.MaxBody = limit })
	token := r.token(t, "logistics-agent-v1", access.Agent)
	for name, c := range map[string]struct {
		text   string
		length int64
		want   error
		most   int
	}{
		"announces that it is long": {" ", 1 << 40, api.ErrTooLarge, 0},
		"is long":                   {" ", -1, api.ErrTooLarge, 2 * limit},
		"deep arrays":               {"[", -1, api.ErrInvalid, 2 * limit},
		"deep objects":              {`{"a":`, -1, api.ErrInvalid, 2 * limit},
		"one string":                {"a", -1, api.ErrTooLarge, 2 * limit},
	} {
		t.Run(name, func(t *testing.T) {
			body := &endless{text: c.text}
			request := newRequest(t, r.Server, token, body, c.length)
			got := request.Code
			must.Hold(t, got == api.NewProblem(c.want).Status, "status %d: %s", got, request.Body)
			must.Hold(t, body.read <= c.most, "%d bytes were read", body.read)
		})
	}
}

// TestOwnersRecords: the server accepts a record that an agent signed itself, once, unchanged, and from that agent only.
func TestOwnersRecords(t *testing.T) {
	r := start(t, nil)
	public, private, err := ed25519.GenerateKey(nil)
	must.Do(t, err)
	der := must.Get(evidence.MarshalPublicKey(public))(t)
	must.Do(t, r.Installation.Keys.Register(t.Context(), evidence.RoleAgent, "logistics-agent-v1", []keys.OwnerKey{{Public: der}}, time.Time{},
		keys.Why{Reason: "a test", By: "tester"}))
	signer := must.Get(evidence.NewSigner(private, nil))(t)
	sign := func(payload string) string {
		t.Helper()
		signed := must.Get(client.Sign([]byte(payload), signer))(t)
		return string(must.Get(signed.Marshal())(t))
	}
	token := bearer(r.token(t, "logistics-agent-v1", access.Agent))
	file := sign(action)
	first, size := post(t, r.URL+"/v1/records", file, token...), r.size(t)
	again := post(t, r.URL+"/v1/records", file, token...)
	must.Hold(t, again.Digest == first.Digest && r.size(t) == size, "taken in twice")
	for name, c := range map[string]struct {
		file  string
		want  error
		token []string
	}{
		"by another agent":         {sign(action), api.ErrForbidden, bearer(r.token(t, "other-agent", access.Agent))},
		"in another's name":        {sign(strings.Replace(action, "logistics-agent-v1", "other-agent", 1)), api.ErrForbidden, token},
		"with its key, not theirs": {sign(strings.Replace(action, "logistics-agent-v1", "other-agent", 1)), api.ErrInvalid, bearer(r.token(t, "other-agent", access.Agent))},
		"sealed here":              {action, api.ErrOwnerKey, token},
		"changed":                  {strings.Replace(sign(action), "A9", "A7", 1), api.ErrInvalid, token},
		"already stamped":          {sealedFile(t, first), api.ErrInvalid, token},
	} {
		t.Run(name, func(t *testing.T) {
			problem(t, c.want)(send(t, http.DefaultClient, "POST", r.URL+"/v1/records", c.file, c.token...))
		})
	}
}

func sealedFile(t *testing.T, r *evidence.Record) string {
	t.Helper()
	return string(must.Get(r.Marshal())(t))
}

// TestProvable: what a setting makes provable is in the payload, the same request makes one record, and a value that is not of the kind is
// refused with its field before anything is sealed.
func TestProvable(t *testing.T) {
	r := start(t, nil)
	setting := erasure.Setting{Actor: "logistics-agent-v1", Provable: map[string]property.Kind{"/metadata/amount": "decimal:2"}}
	must.Do(t, r.Installation.Apart.Set(t.Context(), setting))
	token := append(bearer(r.token(t, "logistics-agent-v1", access.Agent)), api.IdempotencyKey, "k")
	payload := strings.Replace(action, "{", `{"metadata":{"amount":12.5},`, 1)
	first := post(t, r.URL+"/v1/records", payload, token...)
	must.Hold(t, len(first.Payload.Provable) == 1 && first.Payload.Provable[0].Kind == "decimal:2", "provable: %v", first.Payload.Provable)
	again := post(t, r.URL+"/v1/records", payload, token...)
	must.Hold(t, again.Digest == first.Digest, "sealed twice")
	size := must.Get(r.Installation.Ledger.Size(t.Context()))(t)
	token[3] = "other"
	for _, bad := range []string{`"12.50"`, `12.505`, `null`, `1e300`} {
		body := problem(t, api.ErrInvalid)(send(t, http.DefaultClient, "POST", r.URL+"/v1/records", strings.Replace(payload, "12.5", bad, 1), token...))
		must.Hold(t, strings.Contains(body, "/metadata/amount") && strings.Contains(body, "decimal:2") && strings.Contains(body, "name another kind"),
			"%s: %s", bad, body)
	}
	must.Equal(t, must.Get(r.Installation.Ledger.Size(t.Context()))(t), size)
}

// TestSealedApart: the public cannot read a text that is sealed apart. The same payload, sent again, is recognised.
func TestSealedApart(t *testing.T) {
	r := start(t, nil)
	must.Do(t, r.Installation.Apart.Set(t.Context(), erasure.Setting{Actor: "logistics-agent-v1", Pointers: []string{"/prompt"}}))
	token := append(bearer(r.token(t, "logistics-agent-v1", access.Agent)), api.IdempotencyKey, "k")
	payload := strings.Replace(action, "{", `{"chain_id":"order-17",`, 1)
	first := post(t, r.URL+"/v1/records", payload, token...)
	again := post(t, r.URL+"/v1/records", payload, token...)
	must.Hold(t, again.Digest == first.Digest, "sealed twice")
	problem(t, api.ErrKeyReused)(send(t, http.DefaultClient, "POST", r.URL+"/v1/records", strings.Replace(payload, "best", "worst", 1), token...))
	must.Do(t, r.Access().Publish(t.Context(), access.What{Chain: "order-17"}, true, "a test", "tester"))
	for _, path := range []string{"/v1/records/" + first.Payload.RecordID, "/v1/chains/order-17"} {
		_, doc := send(t, http.DefaultClient, "GET", r.URL+path, "")
		must.Hold(t, !strings.Contains(doc, "best route") && strings.Contains(doc, "hmac-sha256:"), "a stranger reads a text that is sealed apart: %s", doc)
		_, doc = send(t, http.DefaultClient, "GET", r.URL+path, "", token[:2]...)
		must.Hold(t, strings.Contains(doc, "best route"), "the agent cannot read %s", doc)
	}
}

// TestPublicRecordPage: a stranger opens the page of a record of a public trial. Without a script it says who said it, when
// that is proved, on whose word, what the trial came to with the person first, and how to check it offline; the file that it
// links is proved. The statement names the page's own address.
func TestPublicRecordPage(t *testing.T) {
	h := furnishWith(t, func(c *server.Config) { c.Origins = []string{"https://jurat.example"} })
	mia := h.visit(t, "mia", access.Reviewer)
	judgment := h.submission(t, h.tokens[access.Submitter], h.trial).Verdict.Record
	if answer, page := mia.fill(t, "/reviews/"+judgment, "/reviews/"+judgment, url.Values{"decision": {"unsafe_fail"}, "reason": {"The court knows better."}}); answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s: %s", answer.Status, page)
	}
	path := "/records/" + judgment
	stranger := &visitor{h.running, browser(t)}
	answer, page := stranger.get(t, path)
	_, missing := stranger.get(t, "/records/"+h.said.Payload.RequestID)
	if shows(t, answer, page, 401); strings.ReplaceAll(page, judgment, "") != strings.ReplaceAll(missing, h.said.Payload.RequestID, "") {
		t.Error("before it is public, the page differs from that of a record that does not exist")
	}
	must.Do(t, h.Access().Publish(t.Context(), access.What{Chain: h.trial}, true, "all parties agree", "otto"))
	says := map[string][]string{
		"en": {"Proved on the operator&#39;s word", "Existed no later than", "unsafe, fails", "decided by a person", "mia", "the jury:", "safe, passes", "Check it yourself"},
		"ja": {"証明済み", "この記録が属する審理", "遅くともこの時刻に存在", "自分で検証する"},
		"ru": {"Доказано", "Разбирательство, к которому она относится", "Проверить самостоятельно"},
	}
	for lang, texts := range says {
		shown(t, 200, append(texts, "https://jurat.example"+path, "jurat verify --trust trust.json", `href="`+path+`/bundle"`, `href="/v1/trust"`)...)(stranger.get(t, path+"?lang="+lang))
	}
	_, page = stranger.get(t, path+"?lang=en")
	outcome := page[strings.Index(page, `id="outcome"`):]
	must.Hold(t, strings.Index(outcome, "unsafe, fails") <= strings.Index(outcome, "safe, passes"), "the person's decision does not come first")
	_, doc := stranger.get(t, path+"/bundle")
	trusted := must.Get(h.Installation.Trust(t.Context()))(t)
	report, err := verify.File([]byte(doc), verify.Options{Trust: trusted})
	must.Hold(t, err == nil && report.Outcome == verify.Proved && report.Kind == verify.Trial, "the file behind the page: %v, %+v", err, report)
}

// TestRecordPageWithholds: of a text that was sealed apart, a stranger sees the signed commitment, and is told so in plain
// words. A reader with a role sees the text.
func TestRecordPageWithholds(t *testing.T) {
	r := start(t, nil)
	const agent, secret = "logistics-agent-v1", "Take the A9."
	must.Do(t, r.Installation.Apart.Set(t.Context(), erasure.Setting{Actor: agent, Pointers: []string{"/response"}}))
	said := post(t, r.URL+"/v1/records", strings.Replace(action, "{", `{"chain_id":"order-18",`, 1), bearer(r.token(t, agent, access.Agent))...)
	must.Do(t, r.Access().Publish(t.Context(), access.What{Chain: "order-18"}, true, "its owner agrees", "otto"))
	path := "/records/" + said.Payload.RecordID
	commitment := strings.Trim(string(said.Payload.Response), `"`)
	must.Need(t, strings.HasPrefix(commitment, "hmac-sha256:") && said.Payload.ActionType == evidence.ModelOutput,
		"%s: %s", said.Payload.ActionType, commitment)
	stranger := &visitor{r, browser(t)}
	page := shown(t, 200, commitment, "Sealed apart, and not disclosed here", "Plan the best route.")(stranger.get(t, path))
	_, bundle := stranger.get(t, path+"/bundle")
	must.Hold(t, !strings.Contains(page+bundle, secret), "a stranger sees the text")
	shown(t, 200, secret, "the text shown matches the commitment")(r.visit(t, "ada", access.Auditor).get(t, path))
}

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
		problem(t, api.ErrInvalid)(send(t, http.DefaultClient, "POST", url, body, tokens[0]...))
	}
	if _, err := r.Installation.Apart.Erase(t.Context(), erasure.Order{RecordID: records[0].Payload.RecordID, Pointers: []string{"/metadata/born"}, Reason: "a test", By: "tester", DespiteQuotes: true}); err != nil {
		t.Fatal(err)
	}
	born := `{"form":"age_at_least","pointer":"/metadata/born","years":18,"at":"2026-11-23"}`
	must.Contain(t, problem(t, api.ErrInvalid)(send(t, http.DefaultClient, "POST", url, born, tokens[0]...)), "it was erased, or its owner keeps it")
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
			doc := problem(t, want)(send(t, http.DefaultClient, "POST", url, body, header...))
			answers[i] = doc
		}
		must.Hold(t, answers[0] == answers[1], "%s: a true statement is refused with %s, a false one with %s", what, answers[0], answers[1])
	}
	ranges := [2]string{`{"form":"range","pointer":"/metadata/amount","lo":0,"hi":50}`, `{"form":"range","pointer":"/metadata/amount","lo":0,"hi":5}`}
	refused("another agent", at(0), api.ErrForbidden, ranges, tokens[1]...)
	id := records[0].Payload.RecordID
	must.Do(t, r.Access().Publish(t.Context(), access.What{Chain: id}, true, "a test", "tester"))
	refused("a stranger", at(0), api.ErrSignIn, ranges)

	answer, doc := send(t, http.DefaultClient, "POST", at(1), ranges[0], bearer(r.token(t, "Olga", access.Auditor))...)
	must.Need(t, answer.StatusCode == http.StatusOK, "an auditor: %s: %s", answer.Status, doc)
	bundle := must.Get(evidence.ParseBundle([]byte(doc)))(t)
	found := verify.Record(bundle.Records[0], verify.Options{})
	must.Hold(t, len(bundle.Records) == 1 && len(found.Properties) == 1, "%d records, %+v", len(bundle.Records), found)
}
