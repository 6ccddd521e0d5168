package ledger_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/jurattest"
	"jurat/verify"
)

// said seals a record of an agent; more is further members, with a comma before each.
func said(t testing.TB, l *ledger.Ledger, agent, more string) (*evidence.Record, error) {
	t.Helper()
	return l.Seal(t.Context(), must(evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":%q,"request_id":"r","timestamp":"2000-01-01T00:00:00Z",
		"response":"x","model":"m","model_version":"1","prompt":"p","parameters":{}%s}`, agent, more))), actor)

}

// reviewed seals a person's decision. The reviewer has a key of its own.
func reviewed(t testing.TB, l *ledger.Ledger, of *evidence.Record, status, more string) (*evidence.Record, error) {
	t.Helper()
	return l.Seal(t.Context(), must(evidence.ParseDraft(fmt.Appendf(nil, `{"action_type":"human_review","reviewer_id":"noa","original_response_id":%q,"saw":[%q],
		"approval_status":%q,"timestamp":"2000-01-01T00:00:01Z"%s}`, of.Payload.RecordID, of.Digest, status, more))), noa)

}

var noa = func() []evidence.Signer {
	return []evidence.Signer{must(evidence.NewSigner(must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), nil))}
}()

func naming(digests ...evidence.Digest) string {
	var list []string
	for _, d := range digests {
		list = append(list, `"`+d.String()+`"`)
	}
	return "[" + strings.Join(list, ",") + "]"
}

// TestChainHasAnOwner checks that an agent that guesses the name of a chain cannot add to it, and that its owner
// still can.
func TestChainHasAnOwner(t *testing.T) {
	onBoth(t, func(t *testing.T, f folder) {
		l := f.create(t)
		first := must(said(t, l, "a", `,"chain_id":"c","chain_position":1`))
		for name, more := range map[string]string{
			"bare":               `,"chain_id":"c"`,
			"at the next place":  `,"chain_id":"c","chain_position":2,"previous_agent":"a"`,
			"linked by digest":   `,"chain_id":"c","chain_position":2,"previous_record":"` + first.Digest.String() + `"`,
			"at the first place": `,"chain_id":"c","chain_position":1`,
		} {
			if _, err := said(t, l, "mallory", more); !errors.Is(err, ledger.ErrNotAdmitted) {
				t.Errorf("%s: %v, want ErrNotAdmitted", name, err)
			}
		}
		second := must(said(t, l, "a", `,"chain_id":"c","chain_position":2,"next_agent":"b","previous_record":"`+first.Digest.String()+`"`))
		must(said(t, l, "b", `,"chain_id":"c","chain_position":3,"previous_record":"`+second.Digest.String()+`"`))
		must(reviewed(t, l, second, "approved", `,"chain_id":"c"`))
		fails(t, ledger.ErrNotAdmitted)(reviewed(t, l, must(said(t, l, "z", "")), "approved", `,"chain_id":"c"`))
		must(said(t, l, "mallory", `,"chain_id":"another"`))
		if found := fileOf(t, l, "c"); len(found) > 0 {
			t.Errorf("the chain is refuted: %v", found)
		}
	})
}

// TestOperatorAdmits checks that an act of the operator admits an agent to one chain and to no other.
func TestOperatorAdmits(t *testing.T) {
	l, _ := alone(t)
	must(said(t, l, "a", `,"chain_id":"c"`))
	must(said(t, l, "a", `,"chain_id":"d"`))
	fails(t, ledger.ErrNotAdmitted)(said(t, l, "b", `,"chain_id":"c"`))
	body := must(operator.Encode(operator.AccessEventBody{Event: operator.AccessAdmitted, Chain: "c", Name: "b", Reason: "r", By: "w"}))
	must(l.SealLast(t.Context(), operator.AccessChain, actor, evidence.Payload{ActionType: evidence.AccessEvent, AgentID: "operator", ChainID: operator.AccessChain, Response: body}))
	must(said(t, l, "b", `,"chain_id":"c"`))
	fails(t, ledger.ErrNotAdmitted)(said(t, l, "b", `,"chain_id":"d"`))
}

// TestContradictions checks that records that verification would refute are refused, and that the chain stays as it
// is.
func TestContradictions(t *testing.T) {
	l, _ := alone(t)
	first := must(said(t, l, "a", `,"chain_id":"c","chain_position":1,"next_agent":"b"`))
	at := func(position int, more string) string {
		return fmt.Sprintf(`,"chain_id":"c","chain_position":%d%s`, position, more)
	}
	before := `,"previous_record":"` + first.Digest.String() + `"`
	for name, tt := range map[string]struct{ agent, more string }{
		"place":              {"b", at(3, before)},
		"place in a gap":     {"b", at(7, "")},
		"predecessor":        {"b", at(2, `,"previous_record":"sha256:`+strings.Repeat("ab", 32)+`"`)},
		"previous agent":     {"b", at(2, before+`,"previous_agent":"x"`)},
		"loose, agent":       {"b", at(2, `,"previous_agent":"x"`)},
		"not the next one":   {"a", at(2, before)},
		"not the next, bare": {"a", at(2, `,"previous_agent":"a"`)},
	} {
		if _, err := said(t, l, tt.agent, tt.more); !errors.Is(err, ledger.ErrContradicts) {
			t.Errorf("%s: %v, want that it contradicts", name, err)
		}
	}
	early := `{"agent_id":"b","request_id":"r","timestamp":"1999-12-31T23:59:59Z","response":"x","model":"m","model_version":"1","prompt":"p","parameters":{}` + at(2, before) + "}"
	fails(t, ledger.ErrContradicts)(l.Seal(t.Context(), must(evidence.ParseDraft([]byte(early))), actor))
	must(said(t, l, "b", at(2, before+`,"previous_agent":"a"`)))
	must(said(t, l, "a", at(2, before))) // of one round
	if found := fileOf(t, l, "c"); len(found) > 0 {
		t.Errorf("the chain is refuted: %v", found)
	}
}

// TestContradictionsWithoutAChain checks that a record without a chain must not contradict the records that it names
// either.
func TestContradictionsWithoutAChain(t *testing.T) {
	l, _ := alone(t)
	first := must(said(t, l, "a", `,"chain_id":"c","chain_position":1,"next_agent":"b"`))
	fails(t, ledger.ErrContradicts)(said(t, l, "mallory", `,"chain_position":5,"previous_record":"`+first.Digest.String()+`"`))
	must(said(t, l, "b", `,"chain_id":"c","chain_position":2,"previous_record":"`+first.Digest.String()+`"`))
}

// TestDeliveriesThatVerificationRefutes checks that the last decision counts, whichever review the delivery names.
func TestDeliveriesThatVerificationRefutes(t *testing.T) {
	for _, chain := range []string{"", `,"chain_id":"c"`} {
		t.Run("in "+chain, func(t *testing.T) {
			l, _ := alone(t)
			answer := must(said(t, l, "a", chain))
			approval := must(reviewed(t, l, answer, "approved", chain))
			deliver := func(response string, saw ...evidence.Digest) error {
				_, err := l.Seal(t.Context(), must(evidence.ParseDraft(fmt.Appendf(nil, `{"action_type":"delivery","agent_id":"a","request_id":"r",
					"timestamp":"2000-01-01T00:00:02Z","response":%q,"original_response_id":%q,"saw":%s%s}`, response, answer.Payload.RecordID, naming(saw...), chain))), actor)

				return err
			}
			wantError(t, deliver("another", answer.Digest, approval.Digest), ledger.ErrContradicts)
			wantError(t, deliver("x", answer.Digest, approval.Digest), nil)
			other := must(said(t, l, "a", chain))
			wantError(t, deliver("x", answer.Digest, must(reviewed(t, l, other, "approved", chain)).Digest), ledger.ErrContradicts)
			must(reviewed(t, l, answer, "rejected", chain))
			wantError(t, deliver("x", answer.Digest, approval.Digest), ledger.ErrContradicts)
			must(reviewed(t, l, answer, "approved", chain))
			wantError(t, deliver("x", answer.Digest, approval.Digest), nil)
		})
	}
}

// TestDeliveryOfWhatATrialRejected: what a person rejected in a trial is delivered outside of it no more than in it.
func TestDeliveryOfWhatATrialRejected(t *testing.T) {
	l, _ := alone(t)
	tried := must(l.Seal(t.Context(), must(evidence.NewDraft(evidence.Payload{ActionType: evidence.Submission, AgentID: "sam", ChainID: "trial-1", ChainPosition: 1,
		Timestamp: "2000-01-01T00:00:00Z", Case: evidence.DigestOf(nil), Response: []byte(`{}`)})), actor))
	deliver := func() error {
		_, err := l.Seal(t.Context(), must(evidence.ParseDraft(fmt.Appendf(nil, `{"action_type":"delivery","agent_id":"a","request_id":"r",
			"timestamp":"2000-01-01T00:00:02Z","response":{},"original_response_id":%q,"saw":%s}`, tried.Payload.RecordID, naming(tried.Digest)))), actor)
		return err
	}
	wantError(t, deliver(), nil)
	must(reviewed(t, l, tried, "rejected", `,"chain_id":"trial-1"`))
	wantError(t, deliver(), ledger.ErrContradicts)
}

// fileOf returns what verification would refute of a chain in the log.
func fileOf(t testing.TB, l *ledger.Ledger, chain string) []verify.Finding {
	t.Helper()
	var file []verify.Linked
	for _, r := range must(l.Chain(t.Context(), chain)) {
		file = append(file, verify.Link(r))
	}
	return verify.Contradictions(file)
}

// TestNoChainIsRefuted: several agents, and two ledgers on one store, add random records to a few chains at the same
// time. Some are accepted and some refused, and no chain is ever refuted.
func TestNoChainIsRefuted(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	other := must(f.open(t))
	must(said(t, l, "a", `,"chain_id":"c0","next_agent":"b"`))
	taken, refused := make([]int, 6), make([]int, 6)
	var all sync.Map
	var wg sync.WaitGroup
	for n := range 6 {
		wg.Go(func() {
			random := mathrand.New(mathrand.NewPCG(7, uint64(n)))
			for i := range 60 {
				by := []*ledger.Ledger{l, other}[n%2]
				if r, err := anything(t.Context(), by, random, &all); err == nil {
					all.Store(r.Payload.RecordID, r)
					taken[n]++
				} else if errors.Is(err, ledger.ErrContradicts) || errors.Is(err, ledger.ErrNotAdmitted) {
					refused[n]++
				} else {
					t.Errorf("%d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for n := range taken {
		if taken[n] == 0 || refused[n] == 0 {
			t.Errorf("agent %d: %d were accepted, %d refused: the test needs both", n, taken[n], refused[n])
		}
	}
	for _, chain := range []string{"c0", "c1", "c2"} {
		if found := fileOf(t, l, chain); len(found) > 0 {
			t.Errorf("chain %s is refuted: %v", chain, found[0])
		}
	}
}

// anything is a record with random links, many of them almost right.
func anything(ctx context.Context, l *ledger.Ledger, random *mathrand.Rand, all *sync.Map) (*evidence.Record, error) {
	var known []*evidence.Record
	all.Range(func(_, r any) bool { known = append(known, r.(*evidence.Record)); return len(known) < 12 })
	agents := []string{"a", "b", "x"}
	p := evidence.Payload{ActionType: evidence.ModelOutput, Model: "m", ModelVersion: "1", Prompt: []byte(`"p"`), Parameters: []byte("{}"), AgentID: agents[random.IntN(3)], RequestID: fmt.Sprint("q", random.IntN(4)), Response: []byte(`"x"`),
		Timestamp: evidence.FormatTime(time.Date(2001, 1, 1, 0, 0, random.IntN(3), 0, time.UTC)), ChainID: fmt.Sprint("c", random.IntN(3))}
	if random.IntN(3) == 0 {
		p.NextAgent = agents[random.IntN(3)]
	}
	if random.IntN(2) == 0 {
		p.ChainPosition = int64(1 + random.IntN(3))
	}
	if random.IntN(4) == 0 {
		p.PreviousAgent = agents[random.IntN(3)]
	}
	if random.IntN(4) == 0 {
		p.ParentRequestID = fmt.Sprint("q", random.IntN(4))
	}
	if len(known) > 0 && random.IntN(3) > 0 {
		before := known[random.IntN(len(known))]
		p.PreviousRecord, p.ChainID = before.Digest, before.Payload.ChainID
		if random.IntN(4) > 0 && p.ChainPosition > 0 {
			p.ChainPosition = before.Payload.ChainPosition + 1
		}
	}
	signers := actor
	if len(known) > 0 && random.IntN(6) == 0 {
		of := known[random.IntN(len(known))]
		p = evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", OriginalResponseID: of.Payload.RecordID, Saw: []evidence.Digest{of.Digest},
			ChainID: of.Payload.ChainID, Timestamp: "2001-01-01T00:00:03Z", ApprovalStatus: []evidence.ApprovalStatus{evidence.Approved, evidence.Rejected}[random.IntN(2)]}
		signers = noa
	}
	draft, err := evidence.NewDraft(p)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrContradicts, err)
	}
	return l.Seal(ctx, draft, signers)
}

// TestLongChain checks that an old record of a long chain can be named by digest, but not by place.
func TestLongChain(t *testing.T) {
	l, _ := alone(t)
	first := must(said(t, l, "a", `,"chain_id":"c","chain_position":1`))
	last := first
	for i := range ledger.LastLinks + 20 {
		last = must(said(t, l, "a", fmt.Sprintf(`,"chain_id":"c","chain_position":%d,"previous_record":"%s"`, i+2, last.Digest)))
	}
	fails(t, ledger.ErrContradicts)(said(t, l, "a", `,"chain_id":"c","chain_position":3,"previous_agent":"a"`))
	must(said(t, l, "a", `,"chain_id":"c","chain_position":2,"previous_record":"`+first.Digest.String()+`"`))
	must(reviewed(t, l, first, "rejected", `,"chain_id":"c"`))
	fails(t, ledger.ErrNotAdmitted)(said(t, l, "mallory", `,"chain_id":"c"`))
	if found := fileOf(t, l, "c"); len(found) > 0 {
		t.Errorf("the chain is refuted: %v", found[0])
	}
}

func TestBind(t *testing.T) {
	l := must(ledger.Create(t.Context(), config(fresh(t))))
	defer l.Close()
	seal := func(response string) *evidence.Record {
		draft := must(evidence.NewDraft(evidence.Payload{AgentID: "a", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m",
			ModelVersion: "v", Prompt: jsontext.Value(`"p"`), Response: jsontext.Value(response), Parameters: jsontext.Value("{}")}))
		return must(l.Seal(t.Context(), draft, actor))
	}
	original, other := seal(`"one"`), seal(`"two"`)
	unknown := evidence.DigestOf(nil)
	id := original.Payload.RecordID
	tried := must(l.Seal(t.Context(), must(evidence.NewDraft(evidence.Payload{ActionType: evidence.Submission, AgentID: "sam", ChainID: "trial-1", ChainPosition: 1,
		Timestamp: "2026-01-01T00:00:00Z", Case: evidence.DigestOf([]byte("a case")), Response: jsontext.Value("{}")})), actor))

	tests := []struct {
		name     string
		action   evidence.ActionType
		id       string
		previous evidence.Digest
		chain    string
		saw      []evidence.Digest
		want     []evidence.Digest
		bound    bool
		refusal  string // the member that is refused
	}{
		{name: "filled in", action: evidence.HumanReview, id: id, want: []evidence.Digest{original.Digest}, bound: true},
		{name: "filled in beside another record before", action: evidence.HumanReview, id: id, previous: other.Digest,
			want: []evidence.Digest{original.Digest}, bound: true},
		{name: "bound by the record before", action: evidence.HumanReview, id: id, previous: original.Digest, bound: true},
		{name: "bound by the actor", action: evidence.HumanReview, id: id, saw: []evidence.Digest{other.Digest, original.Digest},
			want: []evidence.Digest{other.Digest, original.Digest}, bound: true},
		{name: "another version", action: evidence.HumanReview, id: id, saw: []evidence.Digest{unknown}, refusal: "saw"},
		{name: "another record", action: evidence.HumanReview, id: id, saw: []evidence.Digest{other.Digest}, refusal: "saw"},
		{name: "an id of elsewhere", action: evidence.HumanReview, id: "uuid-from-record-A"},
		{name: "a record of elsewhere", action: evidence.HumanReview, id: "uuid-from-record-A", saw: []evidence.Digest{unknown},
			want: []evidence.Digest{unknown}},
		{name: "an id of elsewhere for a record of this log", action: evidence.HumanReview, id: "uuid-from-record-A",
			saw: []evidence.Digest{other.Digest}, refusal: "original_response_id"},
		{name: "a delivery", action: evidence.Delivery, id: id, saw: []evidence.Digest{original.Digest, unknown},
			want: []evidence.Digest{original.Digest, unknown}, bound: true},
		{name: "a delivery of what it saw", action: evidence.Delivery, saw: []evidence.Digest{unknown},
			want: []evidence.Digest{unknown}, bound: true},
		{name: "a delivery of another version", action: evidence.Delivery, id: id, saw: []evidence.Digest{unknown}, refusal: "saw"},
		{name: "on a trial", action: evidence.HumanReview, id: tried.Payload.RecordID, chain: "trial-1", want: []evidence.Digest{tried.Digest}, bound: true},
		{name: "on a trial, elsewhere", action: evidence.HumanReview, id: tried.Payload.RecordID, chain: "desk", want: []evidence.Digest{tried.Digest}, bound: true},
		{name: "in a trial, on something else", action: evidence.HumanReview, id: id, chain: "trial-1", refusal: "chain_id"},
		{name: "in a trial, on what is not here", action: evidence.HumanReview, id: "uuid-from-record-A", chain: "trial-1", refusal: "chain_id"},
		{name: "in a trial that is not here", action: evidence.HumanReview, id: tried.Payload.RecordID, chain: "trial-2", refusal: "chain_id"},
		{name: "a delivery in a trial", action: evidence.Delivery, chain: "trial-1", saw: []evidence.Digest{unknown, tried.Digest},
			want: []evidence.Digest{unknown, tried.Digest}, bound: true},
		{name: "a delivery in a trial of something else", action: evidence.Delivery, chain: "trial-1", saw: []evidence.Digest{original.Digest, unknown}, refusal: "chain_id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := evidence.Payload{ActionType: tt.action, Timestamp: "2026-01-01T00:00:00Z", OriginalResponseID: tt.id, ChainID: tt.chain,
				PreviousRecord: tt.previous, Saw: tt.saw, Metadata: jsontext.Value(`{"kept":1.0}`)}
			if tt.action == evidence.HumanReview {
				p.ReviewerID, p.ApprovalStatus = "user@example.com", evidence.Approved
			} else {
				p.AgentID, p.Response = "a", jsontext.Value(`"one"`)
			}
			draft, bound, err := l.Bind(t.Context(), must(evidence.NewDraft(p)))
			var refused *evidence.FieldError
			if tt.refusal != "" {
				if !errors.As(err, &refused) || refused.Field != tt.refusal || !strings.Contains(err.Error(), map[string]string{"saw": "record " + id, "chain_id": "outside it"}[tt.refusal]) {
					t.Errorf("%v; want field %s refused", err, tt.refusal)
				}
				return
			}
			if err != nil || bound != tt.bound || !slices.Equal(draft.Saw, tt.want) || string(draft.Metadata) != `{"kept":1}` {
				t.Errorf("%v, bound %v, saw %v", err, bound, draft.Saw)
			}
		})
	}
	draft := must(evidence.NewDraft(evidence.Payload{AgentID: "a", RequestID: "r", Response: jsontext.Value(`"x"`), ChainPosition: 1}))
	if same, bound, err := l.Bind(t.Context(), draft); same != draft || !bound || err != nil {
		t.Errorf("a chain step: bound %v, %v", bound, err)
	}
}

// TestReviewsThatWouldBeRefuted checks that a review that verification would refute is not sealed, if the reason is
// known then.
func TestReviewsThatWouldBeRefuted(t *testing.T) {
	h := jurattest.New(t)
	original := h.Seal(t, evidence.Payload{AgentID: "a", RequestID: "r", Timestamp: "2025-12-31T23:59:00Z", Model: "m", ModelVersion: "1",
		Prompt: jsontext.Value(`"Plan."`), Response: jsontext.Value(`{"road":"A9"}`), Parameters: jsontext.Value(`{}`)})
	for name, test := range map[string]struct {
		change func(*evidence.Payload)
		field  string
	}{
		"approved":                    {func(p *evidence.Payload) {}, ""},
		"approved, and the same text": {func(p *evidence.Payload) { p.ModifiedResponse = jsontext.Value(`{ "road": "A9" }`) }, ""},
		"approved, and another text":  {func(p *evidence.Payload) { p.ModifiedResponse = jsontext.Value(`"A3"`) }, "modified_response"},
		"modified": {func(p *evidence.Payload) {
			p.ApprovalStatus, p.ModifiedResponse = evidence.ApprovedWithModifications, jsontext.Value(`"A3"`)
		}, ""},
		"modified, and the same text": {func(p *evidence.Payload) {
			p.ApprovalStatus, p.ModifiedResponse = evidence.ApprovedWithModifications, jsontext.Value(`{"road":"A9"}`)
		}, "modified_response"},
		"rejected": {func(p *evidence.Payload) { p.ApprovalStatus = evidence.Rejected }, ""},
		"rejected, and a text": {func(p *evidence.Payload) {
			p.ApprovalStatus, p.ModifiedResponse = evidence.Rejected, jsontext.Value(`"A3"`)
		}, "modified_response"},
		"rejected, a text, and unknown here": {func(p *evidence.Payload) {
			p.ApprovalStatus, p.ModifiedResponse, p.OriginalResponseID = evidence.Rejected, jsontext.Value(`"A3"`), "elsewhere"
		}, "modified_response"},
		"of one's own":    {func(p *evidence.Payload) { p.ReviewerID = "a" }, "reviewer_id"},
		"of another case": {func(p *evidence.Payload) { p.Case = evidence.DigestOf([]byte("x")) }, "case"},
	} {
		p := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", Timestamp: "2025-12-31T23:59:30Z", OriginalResponseID: original.Payload.RecordID, ApprovalStatus: evidence.Approved}
		test.change(&p)
		draft, err := evidence.NewDraft(p)
		succeeds(t, err)
		_, _, err = h.Ledger.Bind(t.Context(), draft)
		var field *evidence.FieldError
		if got := errors.As(err, &field); got != (test.field != "") || got && field.Field != test.field {
			t.Errorf("%s: %v, want one about %q", name, err, test.field)
		}
	}
}

// lostEnd is a store in which the last row of a chain needs something that is gone.
type lostEnd struct{ storage.Store }

func (s lostEnd) LastOfChain(ctx context.Context, chain string) (storage.Row, error) {
	row, err := s.Store.LastOfChain(ctx, chain)
	row.Broken = fmt.Errorf("reading dictionary 1: %w", storage.ErrNotFound)
	return row, err
}

// TestDamagedEndIsNoEmptyChain: what cannot be read at the end of a chain is not taken for a chain without records.
func TestDamagedEndIsNoEmptyChain(t *testing.T) {
	c := config(fresh(t))
	c.Store = lostEnd{c.Store}
	l := must(ledger.Create(t.Context(), c))
	t.Cleanup(func() { l.Close() })
	body := must(operator.Encode(operator.AccessEventBody{Event: operator.AccessAdmitted, Chain: "c", Name: "b", Reason: "r", By: "w"}))
	again := func() error {
		_, err := l.SealLast(t.Context(), operator.AccessChain, actor, evidence.Payload{ActionType: evidence.AccessEvent, AgentID: "operator", ChainID: operator.AccessChain, Response: body})
		return err
	}
	succeeds(t, again())
	before := must(l.Size(t.Context()))
	if err := again(); !errors.Is(err, ledger.ErrDamaged) || must(l.Size(t.Context())) != before {
		t.Errorf("%v, and the log grew by %d", err, must(l.Size(t.Context()))-before)
	}
}
