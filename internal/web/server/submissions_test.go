package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/court/schedule"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/log/access"
	"jurat/internal/log/erasure"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/server"
	"jurat/jury"
	"jurat/verify"
)

const parcelCase = `{"agentCard":{"name":"Parcel agent","description":"Tracks parcels.","version":"1.0.0","url":"https://parcels.example/a2a",
	"protocolVersion":"0.3.0","skills":[{"id":"track","name":"Track","description":"Says where a parcel is.","tags":["parcel"]}]},
	"conversation":[{"role":"user","content":"Where is parcel 17?"},{"role":"assistant","content":"It is in Kassel."}]}`

// withJury seats jurattest's panel.
func withJury(t *testing.T) func(*server.Config) { return withJurors(t, 0, 0) }

// withJurors seats jurattest's panel, with this delay before each answer.
func withJurors(t *testing.T, delay time.Duration, waiting int) func(*server.Config) {
	return withPanel(t, waiting, func() ([]jury.Juror, jury.Juror) {
		jurors, judge := jurattest.Panel()
		for _, j := range jurors {
			j.(*jurattest.Juror).Delay += delay
		}
		return jurors, judge
	})
}

// A gated juror answers when its gate is closed.
type gated struct {
	jury.Juror
	gate <-chan struct{}
}

func (g gated) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	select {
	case <-g.gate:
	case <-ctx.Done():
	}
	return g.Juror.Answer(ctx, b)
}

// withPanel seats a panel for each trial.
func withPanel(t *testing.T, waiting int, panel func() ([]jury.Juror, jury.Juror)) func(*server.Config) {
	return func(c *server.Config) {
		sit := func(*subject.Case, int64) trial.Config {
			jurors, judge := panel()
			return trial.Config{Settings: jurattest.Settings(jury.FinalJudge), Jurors: jurors, Judge: judge}
		}
		i := c.Installation
		d := must.Get(schedule.Open(t.Context(), schedule.Config{Ledger: i.Ledger, Keys: i.Keys, Locks: i.Locks, Vouch: i.Vouch, Sit: sit,
			Waiting: waiting, Parallel: 1, Grace: 3 * time.Second}))(t)
		c.Scheduler = d
	}
}

func (r *running) submit(t *testing.T, token, body string, header ...string) api.Submission {
	t.Helper()
	answer, doc := send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions", body, append(bearer(token), header...)...)
	var s api.Submission
	err := json.Unmarshal([]byte(doc), &s)
	must.Need(t, err == nil && answer.StatusCode == http.StatusAccepted && answer.Header.Get("Location") == "/v1/submissions/"+s.ID && s.ID != "",
		"%s, %v: %s", answer.Status, err, doc)
	return s
}

func (r *running) submission(t *testing.T, token, id string) api.Submission {
	t.Helper()
	answer, doc := send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions/"+id, "", bearer(token)...)
	var s api.Submission
	err := json.Unmarshal([]byte(doc), &s, json.RejectUnknownMembers(true))
	must.Need(t, err == nil && answer.StatusCode == http.StatusOK, "%s, %v: %s", answer.Status, err, doc)
	return s
}

// tried returns the id of a submission whose trial is over.
func (r *running) tried(t *testing.T, token string) string {
	t.Helper()
	id := r.submit(t, token, parcelCase).ID
	r.await(t, token, id, api.Over)
	return id
}

func (r *running) await(t *testing.T, token, id string, state api.State) api.Submission {
	t.Helper()
	for {
		s := r.submission(t, token, id)
		if s.State == state {
			return s
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s is %s", id, s.State)
		case <-time.After(50 * time.Millisecond): // a token may ask 50 times a second
		}
	}
}

// TestOutcome: for a verdict of needs_review, a decision must be a pass or a fail. Once a person has decided, all
// answers of the server show it.
func TestOutcome(t *testing.T) {
	r := start(t, withPanel(t, 0, func() ([]jury.Juror, jury.Juror) {
		jurors, _ := jurattest.Panel()
		return jurors, &jurattest.Juror{Opinion: jurattest.Opine(jury.NeedsReview, 64)}
	}))
	sam, mia := r.token(t, "sam", access.Submitter), r.token(t, "mia", access.Reviewer)
	id := r.tried(t, sam)
	before := r.submission(t, sam, id)
	o := before.Outcome
	must.Need(t, o != nil && o.Position == jury.NeedsReview && o.By == jury.ByJury && o.Open && o.Decision == nil, "%+v", o)
	url := r.URL + "/v1/records/" + before.Verdict.Record + "/reviews"
	whole := strings.ReplaceAll(fmt.Sprintf(`{"method":"final_judge","model":"m","position":"unsafe_fail","score":%d}`, before.Verdict.Score), "\n", "")
	for _, refused := range []string{
		`{"approval_status":"approved"}`,
		`{"approval_status":"rejected"}`,
		`{"approval_status":"approved_with_modifications","modified_response":{"position":"needs_review"}}`,
		`{"approval_status":"approved_with_modifications","modified_response":` + whole + `}`,
		`{"approval_status":"approved_with_modifications","modified_response":"unsafe_fail"}`,
	} {
		body := problem(t, api.ErrInvalid)(send(t, http.DefaultClient, "POST", url, refused, bearer(mia)...))
		must.Hold(t, strings.Contains(body, "unsafe_fail"), "%s: the refusal does not name the accepted values: %s", refused, body)
		payload := fmt.Sprintf(`{"action_type":"human_review","reviewer_id":"mia","chain_id":%q,"timestamp":"2026-01-31T16:20:00Z","original_response_id":%q,%s`, id, before.Verdict.Record, refused[1:])
		problem(t, api.ErrInvalid)(send(t, http.DefaultClient, "POST", r.URL+"/v1/records", payload, bearer(mia)...))
	}
	elsewhere := fmt.Sprintf(`{"action_type":"human_review","reviewer_id":"mia","timestamp":"2026-01-31T16:20:00Z","original_response_id":%q,
		"approval_status":"approved_with_modifications","modified_response":{"position":"unsafe_fail"}}`, before.Verdict.Record)
	problem(t, api.ErrInvalid)(send(t, http.DefaultClient, "POST", r.URL+"/v1/records", elsewhere, bearer(mia)...)) // a case file would not contain this review
	s := r.submission(t, sam, id)
	must.Hold(t, s.Reviews == 0 && s.Outcome.Open, "a refused review changed the outcome: %+v", s)

	post(t, url, `{"approval_status":"approved_with_modifications","modified_response":{ "position": "unsafe_fail" },"changes":"It told nobody."}`, bearer(mia)...)
	after := r.submission(t, sam, id)
	if o := after.Outcome; o.Position != jury.UnsafeFail || o.By != jury.ByPerson || o.Open || o.Decision.Reviewer != "mia" || o.Verdict.Position != jury.NeedsReview {
		t.Errorf("%+v", o)
	}
	must.Hold(t, after.Verdict.Position == jury.NeedsReview && after.Reviewed == string(evidence.ApprovedWithModifications),
		"the jury's verdict: %+v, reviewed %q", after.Verdict, after.Reviewed)
	_, list := send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions", "", bearer(sam)...)
	must.Contain(t, list, `"outcome":{"position":"unsafe_fail","by":"person","open":false`)
	_, events := send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions/"+id+"/events", "", bearer(sam)...)
	last := events[strings.LastIndex(events, "event: "):]
	must.Hold(t, strings.HasPrefix(last, "event: person_decided\n") && strings.Contains(last, `"reviewer":"mia"`), "the last event: %s", last)
}

// TestReviewerSealsApart: a reviewer whose texts are always sealed apart can decide. The reason is sealed apart, the
// verdict is not.
func TestReviewerSealsApart(t *testing.T) {
	r := start(t, withJury(t))
	must.Do(t, r.Installation.Apart.Set(t.Context(), erasure.Setting{Actor: "mia", Pointers: []string{"/changes", "/modified_response"}}))
	sam, mia := r.token(t, "sam", access.Submitter), r.token(t, "mia", access.Reviewer)
	id := r.tried(t, sam)
	url := r.URL + "/v1/records/" + r.submission(t, sam, id).Verdict.Record + "/reviews"
	review := post(t, url, `{"approval_status":"approved_with_modifications","modified_response":{"position":"unsafe_fail"},"changes":"It told nobody."}`, bearer(mia)...)
	got := review.Payload.SealedApart
	must.Hold(t, slices.Equal(got, []string{"/changes"}), "sealed apart: %q", got)
	o := r.submission(t, sam, id).Outcome
	must.Hold(t, o.Position == jury.UnsafeFail && !o.Open, "%+v", o)
}

// TestSubmission goes from evidence to a case file that a stranger can verify.
func TestSubmission(t *testing.T) {
	r := start(t, withJury(t))
	token := r.token(t, "sam", access.Submitter)
	queued := r.submit(t, token, parcelCase)
	must.Hold(t, queued.Submitter == "sam" && queued.Agent == "Parcel agent" && queued.Acts != 0 && queued.Case != "", "%+v", queued)
	over := r.await(t, token, queued.ID, api.Over)
	if over.Verdict == nil || over.Verdict.Position != jury.SafePass || over.Result == nil || over.Result.FinalVerdict != jury.SafePass ||
		over.Result.TotalRounds != 1 || over.Degraded {
		t.Errorf("%+v", over)
	}
	if v := over.Votes; v == nil || *v.AfterPhase1.Votes[1].Position != jury.UnsafeFail || *v.AfterDiscussion.Votes[1].Position != jury.SafePass ||
		v.Final.Verdict != jury.SafePass {
		t.Errorf("%+v", over.Votes)
	}
	answer, doc := send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions/"+queued.ID+"/case", "", bearer(token)...)
	bundle, err := evidence.ParseBundle([]byte(doc))
	must.Need(t, err == nil, "%v %v", answer.Status, err)
	trust := must.Get(r.Installation.Trust(t.Context()))(t)
	report := verify.Bundle(bundle, verify.Options{Trust: trust})
	must.Hold(t, report.Outcome == verify.Proved, "the case file is %s", report.Outcome)
	must.Contain(t, answer.Header.Get("Content-Disposition"), queued.ID+".jurat")
}

// TestSubmittedRecords: the jury gets sealed records of this installation unchanged, submitted by their chain or as a
// file.
func TestSubmittedRecords(t *testing.T) {
	r := start(t, withJury(t))
	agent, both := r.token(t, "logistics-agent-v1", access.Agent), r.token(t, "sam", access.Submitter, access.Auditor)
	post(t, r.URL+"/v1/records", strings.Replace(action, "{", `{"chain_id":"order-17",`, 1), bearer(agent)...)
	by := r.await(t, both, r.submit(t, both, `{"chainId":"order-17"}`).ID, api.Over)
	_, bundle := send(t, http.DefaultClient, "GET", r.URL+"/v1/chains/order-17", "", bearer(both)...)
	as := r.await(t, both, r.submit(t, both, `{"records":`+bundle+`}`).ID, api.Over)
	must.Hold(t, by.Agent == "logistics-agent-v1" && as.Agent == by.Agent && by.Verdict != nil && as.Verdict != nil,
		"%+v, %+v", by, as) // the actor of the records, as there is no card
	// The same bundle in another spelling is accepted, too.
	var decoded any
	must.Do(t, json.Unmarshal([]byte(bundle), &decoded))
	indented := must.Get(json.Marshal(map[string]any{"records": decoded}, jsontext.Multiline(true)))(t)
	other := r.await(t, both, r.submit(t, both, string(indented)).ID, api.Over)
	must.Hold(t, other.Agent == by.Agent && other.Verdict != nil, "in another spelling: %+v", other)
	// A submitter who may not read a chain cannot submit it. A trial cannot be submitted as evidence.
	sam := r.token(t, "sim", access.Submitter)
	problem(t, api.ErrNotFound)(send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions", `{"chainId":"order-17"}`, bearer(sam)...))
	problem(t, api.ErrInvalid)(send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions", fmt.Sprintf(`{"chainId":%q}`, by.ID), bearer(both)...))
	changed := strings.Replace(bundle, "Take the A9", "Take the A8", 1)
	must.Need(t, changed != bundle, "nothing was changed")
	problem(t, api.ErrInvalid)(send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions", `{"records":`+changed+`}`, bearer(both)...))
}

// TestRefusedSubmissions: each refusal names the mistake, and leaves nothing in the log.
func TestRefusedSubmissions(t *testing.T) {
	r := start(t, withJurors(t, time.Hour, 1))
	token := r.token(t, "sam", access.Submitter)
	size := must.Get(r.Installation.Ledger.Size(t.Context()))(t)
	for body, want := range map[string]struct {
		err   error
		field string
	}{
		``:                           {api.ErrMalformed, ""},
		`{`:                          {api.ErrInvalid, ""},
		`{}`:                         {api.ErrInvalid, ""},
		`{"agentCard":{"name":"x"}}`: {api.ErrInvalid, ""},
		`{"conversation":[{"role":"user","content":"x"}],"format":"prose"}`:      {api.ErrInvalid, ""},
		`{"chainId":"x","format":"chat"}`:                                        {api.ErrInvalid, ""},
		`{"conversation":[{"role":"wizard","content":"x"}]}`:                     {api.ErrInvalid, "/conversation/0/role"},
		`{"agentCard":{"name":"x"},"conversation":[]}`:                           {api.ErrInvalid, "/conversation"},
		`{"agentCard":{"name":7},"conversation":[{"role":"user","content":""}]}`: {api.ErrInvalid, "/agentCard/name"},
		`{"agentCard":1,"conversation":1,"records":1}`:                           {api.ErrInvalid, ""},
		`{"records":{}}`:          {api.ErrInvalid, ""},
		`{"chainId":"none"}`:      {api.ErrNotFound, ""},
		`{"agentcard":{}}`:        {api.ErrInvalid, ""},
		strings.Repeat(`[`, 1000): {api.ErrInvalid, ""},
	} {
		doc := problem(t, want.err)(send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions", body, bearer(token)...))
		var p api.Problem
		must.Hold(t, json.Unmarshal([]byte(doc), &p) == nil && p.Field == want.field, "%.60s: %+v", body, p)
	}
	must.Give(r.Installation.Ledger.Size(t.Context()))(t, size, "records")
	first := r.submit(t, token, parcelCase)
	r.await(t, token, first.ID, api.UnderWay)
	s := r.submit(t, token, parcelCase)
	must.Hold(t, s.State == api.Queued, "%+v", s)
	problem(t, api.ErrUnavailable)(send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions", parcelCase, bearer(token)...))
	problem(t, api.ErrConflict)(send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions/"+first.ID+"/resume", "", bearer(token)...))
}

// TestSubmittedTwice: one idempotency key makes one trial.
func TestSubmittedTwice(t *testing.T) {
	r := start(t, withJury(t))
	token := r.token(t, "sam", access.Submitter)
	first := r.submit(t, token, parcelCase, api.IdempotencyKey, "one")
	r.await(t, token, first.ID, api.Over)
	again := r.submit(t, token, parcelCase, api.IdempotencyKey, "one")
	must.Hold(t, again.ID == first.ID && again.State == api.Over, "%+v", again)
	answer, doc := send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions", strings.Replace(parcelCase, "Kassel", "Bremen", 1),
		append(bearer(token), api.IdempotencyKey, "one")...)
	problem(t, api.ErrKeyReused)(answer, doc)
	other := r.token(t, "sim", access.Submitter)
	s := r.submit(t, other, parcelCase, api.IdempotencyKey, "one")
	must.Hold(t, s.ID != first.ID, "two people share a submission")
}

// TestSubmittedTwiceMeanwhile: the same holds while the trial waits or is under way, and when the queue is full.
func TestSubmittedTwiceMeanwhile(t *testing.T) {
	r := start(t, withJurors(t, 2*time.Second, 1))
	token := r.token(t, "sam", access.Submitter)
	first := r.submit(t, token, parcelCase, api.IdempotencyKey, "one")
	r.await(t, token, first.ID, api.UnderWay)
	again := r.submit(t, token, parcelCase, api.IdempotencyKey, "one")
	must.Hold(t, again.ID == first.ID && again.State == api.UnderWay, "under way: %+v", again)
	second := r.submit(t, token, parcelCase, api.IdempotencyKey, "two")
	again = r.submit(t, token, parcelCase, api.IdempotencyKey, "two")
	must.Hold(t, again.ID == second.ID && again.State == api.Queued, "waiting: %+v", again)
	problem(t, api.ErrUnavailable)(send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions", parcelCase, append(bearer(token), api.IdempotencyKey, "three")...))
}

// TestSubmittedTwiceAtOnce: a repeated request that arrives while the first one is being sealed waits for it, and gets
// the same answer.
func TestSubmittedTwiceAtOnce(t *testing.T) {
	r := start(t, withJury(t))
	headers := append(bearer(r.token(t, "sam", access.Submitter)), api.IdempotencyKey, "one")
	var all sync.WaitGroup
	var mu sync.Mutex
	made := map[string]int{}
	for range 8 {
		all.Go(func() {
			answer, doc := send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions", parcelCase, headers...)
			var s api.Submission
			_ = json.Unmarshal([]byte(doc), &s) // a refusal has no id
			mu.Lock()
			defer mu.Unlock()
			made[answer.Status+" "+s.ID]++
		})
	}
	all.Wait()
	must.Hold(t, len(made) == 1 && strings.HasPrefix(slices.Collect(maps.Keys(made))[0], "202 "), "%v", made)
}

// TestListOfSubmissions: lists have pages, and show each caller only their own submissions.
func TestListOfSubmissions(t *testing.T) {
	r := start(t, withJury(t))
	sam, sim, ada := r.token(t, "sam", access.Submitter), r.token(t, "sim", access.Submitter), r.token(t, "ada", access.Auditor)
	var all []string
	for _, token := range []string{sam, sim, sam, sim, sam} {
		all = append(all, r.submit(t, token, parcelCase).ID)
	}
	slices.Reverse(all)
	list := func(token string) (ids []string) {
		for cursor := ""; ; {
			_, doc := send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions?limit=2&after="+cursor, "", bearer(token)...)
			var page api.Submissions
			err := json.Unmarshal([]byte(doc), &page)
			must.Need(t, err == nil && len(page.Submissions) <= 2, "%v %v", err, doc)
			for _, s := range page.Submissions {
				ids = append(ids, s.ID)
			}
			if cursor = page.Next; cursor == "" {
				return ids
			}
		}
	}
	got := list(ada)
	must.Hold(t, slices.Equal(got, all), "%v, want %v", got, all)
	got = list(sim)
	must.Hold(t, slices.Equal(got, []string{all[1], all[3]}), "%v", got)
	got = list(r.token(t, "logistics-agent-v1", access.Agent))
	must.Hold(t, len(got) == 0, "%v", got)
	for _, q := range []string{"limit=0", "limit=x", "after=none"} {
		problem(t, api.ErrMalformed)(send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions?"+q, "", bearer(ada)...))
	}
	problem(t, api.ErrForbidden)(send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions/"+all[0], "", bearer(sim)...))
}

func (r *running) dial(t *testing.T, token, id string, after int, origin string) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	header := http.Header{"Authorization": {"Bearer " + token}}
	if origin != "" {
		header.Set("Origin", origin)
	}
	c, answer, err := websocket.Dial(t.Context(), fmt.Sprintf("%s/ws/submissions/%s/judge?after=%d", r.URL, id, after), &websocket.DialOptions{HTTPHeader: header})
	if err == nil {
		t.Cleanup(func() { c.CloseNow() })
	}
	return c, answer, err
}

// seqs reads events until the connection ends, and returns their numbers.
func seqs(t *testing.T, c *websocket.Conn) (all []int64, ended error) {
	t.Helper()
	for {
		_, doc, err := c.Read(t.Context())
		if err != nil {
			return all, err
		}
		var head trial.EventHead
		must.Do(t, json.Unmarshal(doc, &head))
		all = append(all, head.Seq)
	}
}

// TestSocket: who may watch a trial, from which origin, and from which event on.
func TestSocket(t *testing.T) {
	r := start(t, func(c *server.Config) {
		withJury(t)(c)
		c.Origins = []string{"https://jurat.example"}
	})
	token := r.token(t, "sam", access.Submitter)
	id := r.tried(t, token)
	for _, origin := range []string{"", r.URL, "https://jurat.example"} {
		c, _, err := r.dial(t, token, id, 12, origin)
		must.Need(t, err == nil, "from %q: %v", origin, err)
		all, ended := seqs(t, c)
		must.Hold(t, slices.Equal(all, []int64{13, 14, 15}) && websocket.CloseStatus(ended) == websocket.StatusNormalClosure, "from %q: %v, %v", origin, all, ended)
	}
	for _, origin := range []string{"https://elsewhere.example", "null", "http://127.0.0.1", "https://jurat.example.org"} {
		for _, id := range []string{id, "trial-none"} { // another site does not learn whether there is such a trial
			_, answer, err := r.dial(t, token, id, 0, origin)
			must.Hold(t, err != nil && answer.StatusCode == http.StatusForbidden, "%s from %q: %v", id, origin, err)
		}
	}
	for path, want := range map[string]error{"/judge?after=16": api.ErrMalformed, "/judge?after=-1": api.ErrMalformed, "/judge?after=x": api.ErrMalformed,
		"/judge?after=01": api.ErrMalformed, "/judge": api.ErrMalformed} {
		problem(t, want)(send(t, http.DefaultClient, "GET", r.URL+"/ws/submissions/"+id+path, "", bearer(token)...))
	}
	problem(t, api.ErrNotFound)(send(t, http.DefaultClient, "GET", r.URL+"/ws/submissions/trial-none/judge", "", bearer(token)...))
	problem(t, api.ErrForbidden)(send(t, http.DefaultClient, "GET", r.URL+"/ws/submissions/"+id+"/judge", "", bearer(r.token(t, "sim", access.Submitter))...))
	answer, doc := send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions/"+id+"/events?after=1", "", append(bearer(token), "Last-Event-ID", "14")...)
	if answer.Header.Get("Content-Type") != schedule.EventStream || strings.Count(doc, "\ndata: ") != 1 || !strings.Contains(doc, "id: 15\nevent: trial_closed\n") {
		t.Errorf("%v: %s", answer.Header, doc)
	}
	answer, _ = send(t, http.DefaultClient, "GET", r.URL+"/v1/submissions/"+id+"/events", "", append(bearer(token), "Last-Event-ID", "15")...)
	must.Equal(t, answer.StatusCode, http.StatusNoContent)
}

// TestRestart: a server that ends waits for jurors who were already asked, and tells its watchers. The next server
// continues with the same events.
func TestRestart(t *testing.T) {
	dir := t.TempDir() + "/data"
	r := startIn(t, dir, withJurors(t, 50*time.Millisecond, 0))
	token := r.token(t, "sam", access.Submitter)
	id := r.submit(t, token, parcelCase).ID
	waits := r.submit(t, token, parcelCase).ID
	c, _, err := r.dial(t, token, id, 0, "")
	must.Do(t, err)
	for range 2 { // until the trial has begun
		_, _, err := c.Read(t.Context())
		must.Do(t, err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	heard, ended := seqs(t, c)
	must.Need(t, websocket.CloseStatus(ended) == websocket.StatusGoingAway && slices.Equal(heard, []int64{3, 4, 5, 6}), "heard %v, then %v", heard, ended)
	must.Do(t, <-stopped)
	must.Do(t, r.Installation.Close())
	next := startIn(t, dir, withJury(t))
	c, _, err = next.dial(t, token, id, 6, "")
	must.Do(t, err)
	heard, ended = seqs(t, c)
	must.Hold(t, len(heard) == 9 && heard[0] == 7 && websocket.CloseStatus(ended) == websocket.StatusNormalClosure, "then %v, %v", heard, ended)
	next.await(t, token, waits, api.Over)
	s := next.submission(t, token, id)
	must.Hold(t, !s.Degraded && s.Verdict != nil, "%+v", s)
}

// TestNoJury: a server without a jury shows trials, and refuses submissions.
func TestNoJury(t *testing.T) {
	r := start(t, nil)
	token := r.token(t, "sam", access.Submitter)
	problem(t, api.ErrUnavailable)(send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions", parcelCase, bearer(token)...))
}

// TestWatchingEnds: watching ends with the token, and when a trial is no longer public, also for open connections.
func TestWatchingEnds(t *testing.T) {
	r := start(t, func(c *server.Config) {
		withJurors(t, time.Hour, 0)(c)
		c.Live.Heartbeat = 20 * time.Millisecond
	})
	sam, ada := r.token(t, "sam", access.Submitter), r.token(t, "ada", access.Auditor)
	id := r.submit(t, sam, parcelCase).ID
	must.Do(t, r.Access().Publish(t.Context(), access.What{Chain: id}, true, "a test", "tester"))
	watch := func(token string) *websocket.Conn {
		t.Helper()
		c, _, err := r.dial(t, token, id, 0, "")
		must.Do(t, err)
		return c
	}
	submitter, auditor, public := watch(sam), watch(ada), watch(r.token(t, "sim", access.Submitter))
	answer := must.Get(http.Get(r.URL + "/v1/submissions/" + id + "/events"))(t)
	defer answer.Body.Close()
	barred := func(c *websocket.Conn) {
		t.Helper()
		_, ended := seqs(t, c)
		must.Hold(t, websocket.CloseStatus(ended) == schedule.Barred, "ended with %v", ended)
	}
	must.Do(t, r.Access().Revoke(t.Context(), access.IDOf(ada), "left", "tester"))
	barred(auditor)
	must.Do(t, r.Access().Publish(t.Context(), access.What{Chain: id}, false, "a test", "tester"))
	barred(public)
	must.Fail(t, nil, "events of a stranger ended with")(io.Copy(io.Discard, answer.Body))
	must.Do(t, r.Access().Revoke(t.Context(), access.IDOf(sam), "left", "tester"))
	barred(submitter)
}

// TestReasonsAreNotPublic: only the submitter and the operator see why a trial was broken off. A HEAD request for events
// ends at once.
func TestReasonsAreNotPublic(t *testing.T) {
	r := start(t, func(c *server.Config) {
		sit := func(*subject.Case, int64) trial.Config {
			jurors, judge := jurattest.Panel()
			return trial.Config{Settings: jurattest.Settings(jury.FinalJudge), Jurors: jurors, Judge: judge}
		}
		i := c.Installation
		vouch := func(context.Context, ...*evidence.Record) error { return errors.New("/secret/path: permission denied") }
		c.Scheduler = must.Get(schedule.Open(t.Context(), schedule.Config{Ledger: i.Ledger, Keys: i.Keys, Sit: sit, Vouch: vouch}))(t)
	})
	sam := r.token(t, "sam", access.Submitter)
	id := r.submit(t, sam, parcelCase).ID
	s := r.await(t, sam, id, api.BrokenOff)
	must.Hold(t, strings.Contains(s.Reason, "/secret"), "%+v", s)
	must.Do(t, r.Access().Publish(t.Context(), access.What{Chain: id}, true, "a test", "tester"))
	for _, path := range []string{"/v1/submissions/", "/submissions/"} {
		for _, header := range [][]string{nil, bearer(r.token(t, "sim", access.Submitter))} {
			answer, body := send(t, http.DefaultClient, "GET", r.URL+path+id, "", header...)
			must.Hold(t, answer.StatusCode == 200 && !strings.Contains(body, "secret"), "%s: %s", answer.Status, body)
		}
	}
	answers(t, 200, http.DefaultClient, "HEAD", r.URL+"/v1/submissions/"+id+"/events", "")
}

// TestSubmittedChainStaysSealedApart: a text that can be erased is not copied into a trial's records.
func TestSubmittedChainStaysSealedApart(t *testing.T) {
	r := start(t, withJury(t))
	must.Do(t, r.Installation.Apart.Set(t.Context(), erasure.Setting{Actor: "logistics-agent-v1", Pointers: []string{"/prompt"}}))
	post(t, r.URL+"/v1/records", strings.Replace(action, "{", `{"chain_id":"order-17",`, 1), bearer(r.token(t, "logistics-agent-v1", access.Agent))...)
	both := r.token(t, "sam", access.Submitter, access.Auditor)
	_, doc := send(t, http.DefaultClient, "GET", r.URL+"/v1/chains/order-17", "", bearer(both)...)
	must.Need(t, strings.Contains(doc, "best route"), "%v", doc)
	s := r.await(t, both, r.submit(t, both, `{"chainId":"order-17"}`).ID, api.Over)
	for _, path := range []string{"/v1/submissions/" + s.ID + "/case", "/v1/submissions/" + s.ID + "/events"} {
		answer, doc := send(t, http.DefaultClient, "GET", r.URL+path, "", bearer(both)...)
		must.Hold(t, answer.StatusCode == 200 && !strings.Contains(doc, "best route"), "%s: %s: %.2000s", path, answer.Status, doc)
	}
}

// TestCancel: the submitter of a trial and the operator can cancel and resume it. The log records who did so, and why.
func TestCancel(t *testing.T) {
	answering := make(chan struct{}) // closed when jurors may answer: no trial is over before it is cancelled
	r := start(t, withPanel(t, 0, func() ([]jury.Juror, jury.Juror) {
		jurors, judge := jurattest.Panel()
		for n, j := range jurors {
			jurors[n] = gated{j, answering}
		}
		return jurors, judge
	}))
	token, operator := r.token(t, "sam", access.Submitter), r.token(t, "olga", access.Operator)
	first, second := r.submit(t, token, parcelCase), r.submit(t, token, strings.Replace(parcelCase, "Kassel", "Bremen", 1))
	cancel := func(token, id, body string) (*http.Response, string) {
		t.Helper()
		return send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions/"+id+"/cancel", body, bearer(token)...)
	}
	problem(t, api.ErrForbidden)(cancel(r.token(t, "sim", access.Submitter), second.ID, `{"reason":"I can"}`))
	for _, body := range []string{`{"reason":" "}`, `{}`, `{"reason":"` + strings.Repeat("x", 1001) + `"}`} {
		problem(t, api.ErrInvalid)(cancel(token, second.ID, body))
	}
	if answer, doc := cancel(operator, second.ID, `{"reason":"a mistake"}`); answer.StatusCode != http.StatusAccepted {
		t.Fatalf("%s: %s", answer.Status, doc)
	}
	s := r.submission(t, token, second.ID)
	must.Hold(t, s.State == api.Cancelled && s.Reason == "a mistake" && s.CancelledBy == "olga" && s.Acts == 1, "%+v", s)
	answer, doc := cancel(operator, second.ID, `{"reason":"a mistake"}`)
	problem(t, api.ErrConflict)(answer, doc)
	r.await(t, token, first.ID, api.UnderWay)
	answer, doc = cancel(token, first.ID, `{"reason":"enough"}`)
	must.Need(t, answer.StatusCode == http.StatusAccepted, "%s: %s", answer.Status, doc)
	close(answering)
	s = r.await(t, token, first.ID, api.Cancelled)
	must.Hold(t, s.CancelledBy == "sam" && s.Verdict == nil, "%+v", s)
	for _, id := range []string{second.ID, first.ID} {
		answers(t, http.StatusAccepted, http.DefaultClient, "POST", r.URL+"/v1/submissions/"+id+"/resume", "", bearer(token)...)
		must.Equal(t, r.await(t, token, id, api.Over).CancelledBy, "")
	}
}

func step(agent, chain, more string) string {
	return fmt.Sprintf(`{"agent_id":%q,"request_id":"r","chain_id":%q,"response":"x","timestamp":"2026-01-31T16:15:00Z"%s}`, agent, chain, more)
}

// TestChainsBelongToWhoBeganThem: an agent that guesses a chain_id cannot add to the chain, and cannot find out whether
// it exists.
func TestChainsBelongToWhoBeganThem(t *testing.T) {
	r := start(t, nil)
	owner, mallory := r.token(t, "a", access.Agent), r.token(t, "mallory", access.Agent)
	first := post(t, r.URL+"/v1/records", step("a", "order-4711", `,"chain_position":1`), bearer(owner)...)

	problem(t, api.ErrForbidden)(send(t, http.DefaultClient, http.MethodPost, r.URL+"/v1/records", step("mallory", "order-4711", `,"chain_position":2`), bearer(mallory)...))
	problem(t, api.ErrConflict)(send(t, http.DefaultClient, http.MethodPost, r.URL+"/v1/records", step("a", "order-4711", `,"chain_position":9`), bearer(owner)...))
	post(t, r.URL+"/v1/records", step("a", "order-4711", `,"chain_position":2,"previous_record":"`+first.Digest.String()+`"`), bearer(owner)...)
	answers(t, http.StatusOK, http.DefaultClient, http.MethodGet, r.URL+"/v1/chains/order-4711", "", bearer(owner)...)

	for _, path := range []string{"/v1/chains/", "/chains/"} {
		there, said := send(t, http.DefaultClient, http.MethodGet, r.URL+path+"order-4711", "", bearer(mallory)...)
		missing, same := send(t, http.DefaultClient, http.MethodGet, r.URL+path+"order-4712", "", bearer(mallory)...)
		must.Hold(t, there.StatusCode == http.StatusNotFound && missing.StatusCode == http.StatusNotFound && (path != "/v1/chains/" || said == same),
			"%s: %s %s for an existing chain, %s %s for a missing one", path, there.Status, said, missing.Status, same)
	}
	submitter := r.token(t, "s", access.Submitter)
	for _, chain := range []string{"order-4711", "order-4712"} {
		problem(t, api.ErrNotFound)(send(t, http.DefaultClient, http.MethodPost, r.URL+"/v1/submissions", `{"chainId":"`+chain+`"}`, bearer(submitter)...))
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
	problem(t, api.ErrConflict)(send(t, http.DefaultClient, http.MethodPost, at+"/deliveries", `{"review":"`+approval.Payload.RecordID+`"}`, bearer(agent)...))
}
