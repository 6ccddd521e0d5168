package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/ledger/brief"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/storage"
	"jurat/jurattest"
	"jurat/verify"
)

// blinded is a store that returns no payloads while it is blind.
type blinded struct {
	storage.Store
	blind bool
}

var errPayload = errors.New("a payload is read")

func (b *blinded) Rows(ctx context.Context, from, n int64) ([]storage.Row, error) {
	if b.blind {
		return nil, errPayload
	}
	return b.Store.Rows(ctx, from, n)
}

func (b *blinded) RowsAt(ctx context.Context, at []int64) ([]storage.Row, error) {
	if b.blind {
		return nil, errPayload
	}
	return b.Store.RowsAt(ctx, at)
}

func (b *blinded) ByRecordID(ctx context.Context, id string) (storage.Row, error) {
	if b.blind {
		return storage.Row{}, errPayload
	}
	return b.Store.ByRecordID(ctx, id)
}

func (b *blinded) InChain(ctx context.Context, chain string, from, n int64) ([]storage.Row, error) {
	if b.blind {
		return nil, errPayload
	}
	return b.Store.InChain(ctx, chain, from, n)
}

func listed(t testing.TB, l *ledger.Ledger, of brief.Listing) (list []string) {
	t.Helper()
	for b, err := range l.Briefs().List(t.Context(), of) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(b.Index, b.RecordID, b.Digest, b.ChainID, b.Action, b.Actor, b.Timestamp, b.RequestID))
	}
	return list
}

// TestListWithoutPayloads lists and gathers with a store that returns no payloads.
func TestListWithoutPayloads(t *testing.T) {
	l, c := alone(t)
	sealMany(t, l, 300)
	whole := seal(t, l, `,"chain_id":"order"`)
	seal(t, l, `,"saw":["`+whole.Digest.String()+`"]`)
	seal(t, l, `,"chain_id":"trials"`)
	want, chain := listed(t, l, brief.Listing{}), listed(t, l, brief.Listing{Chain: "order"})
	if len(want) != 303 || len(chain) != 1 || chain[0] != want[300] {
		t.Fatalf("%d and %q", len(want), chain)
	}
	store := &blinded{Store: c.Store}
	opened := must(ledger.Open(t.Context(), config(store)))
	store.blind = true
	if got := listed(t, opened, brief.Listing{}); !slices.Equal(got, want) {
		t.Errorf("%d are listed", len(got))
	}
	if got := listed(t, opened, brief.Listing{From: 7, Chain: "order"}); !slices.Equal(got, chain) {
		t.Errorf("%q is listed", got)
	}
	g, err := opened.Briefs().Gather(t.Context(), "order", nil)
	if err != nil || !slices.Equal(g.Indexes, []int64{300, 301}) || g.Cut != nil {
		t.Errorf("%+v, %v", g, err)
	}
	if b, err := opened.Briefs().ByID(t.Context(), whole.Payload.RecordID); err != nil || b.Index != 300 || b.Role() != evidence.RoleAgent {
		t.Errorf("%+v, %v", b, err)
	}
	fails(t, ledger.ErrNotFound)(opened.Briefs().ByID(t.Context(), "none"))
}

// TestBriefTampered checks that Fsck reports each brief that differs from its record, and that Reindex repairs all.
func TestBriefTampered(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	one := seal(t, l, "")
	seal(t, l, `,"saw":["`+one.Digest.String()+`"]`)
	sealMany(t, l, 3)
	l.Close()
	wantClean(t, f.fsck(t))
	for name, test := range map[string]struct {
		do string
		at int64
	}{
		"what is shown": {`UPDATE briefs SET line = replace(line, 'agent-7', 'agent-8') WHERE idx = 2`, 2},
		"unreadable":    {`UPDATE briefs SET line = '{' WHERE idx = 2`, 2},
		"names":         {`UPDATE briefs SET names = zeroblob(32) WHERE idx = 1`, 1},
		"no names":      {`UPDATE briefs SET names = x'' WHERE idx = 1`, 1},
		"gone":          {`DELETE FROM briefs WHERE idx = 3`, 3},
		"a key gone":    {`DELETE FROM links WHERE idx = 1 AND key = (SELECT max(key) FROM links WHERE idx = 1)`, 1},
		"a key more":    {`INSERT INTO links VALUES (0, 4711, 4)`, 4},
		"all keys gone": {`DELETE FROM links WHERE idx = 4`, 4},
	} {
		t.Run(name, func(t *testing.T) {
			copied := folder(t.TempDir())
			succeeds(t, os.CopyFS(string(copied), os.DirFS(string(f))))
			copied.exec(t, test.do)
			damages := copied.fsck(t)
			if len(damages) == 0 {
				t.Error("nothing is named")
			}
			for _, d := range damages {
				if d.Kind != fsck.DamageBrief || d.Index != test.at || !strings.Contains(d.String(), "jurat log fsck --reindex") {
					t.Errorf("damage: %v", d)
				}
			}
			l := must(copied.open(t))
			succeeds(t, l.Briefs().Reindex(t.Context(), nil))
			l.Close()
			wantClean(t, copied.fsck(t))
		})
	}
}

// TestNothingErasableInBriefs checks that no brief contains a value that is sealed apart.
func TestNothingErasableInBriefs(t *testing.T) {
	l, c := alone(t)
	draft := must(evidence.ParseDraft([]byte(`{"action_type":"human_review","reviewer_id":"u","timestamp":"2000-01-01T00:00:00Z","original_response_id":"x",
		"approval_status":"approved_with_modifications","modified_response":{"position":"safe_pass"},"changes":"secret-word"}`))).SealingApart("/modified_response", "/changes")
	must(l.Seal(t.Context(), draft, actor))
	stored := must(c.Store.Briefs(t.Context(), storage.BriefQuery{N: 1, Names: true}))
	if line := string(stored[0].Line); strings.Contains(line, "safe_pass") || strings.Contains(line, "secret-word") || !strings.Contains(line, "approved_with") {
		t.Errorf("the brief is %s", line)
	}
	open := must(evidence.ParseDraft([]byte(`{"action_type":"human_review","reviewer_id":"u","timestamp":"2000-01-01T00:00:00Z","original_response_id":"x",
		"approval_status":"approved_with_modifications","modified_response":{"position":"safe_pass"}}`)))
	must(l.Seal(t.Context(), open, actor))
	if line := string(must(c.Store.Briefs(t.Context(), storage.BriefQuery{From: 1, N: 1}))[0].Line); !strings.Contains(line, `"given":"safe_pass`) {
		t.Errorf("the brief is %s", line)
	}
}

// TestGatherIsCut checks that Gather limits and reports very many links: one record that names thousands, and
// thousands that name one.
func TestGatherIsCut(t *testing.T) {
	_, c := alone(t)
	c.UnsafeContradictions = true // with which a record can name more than may be held against the log
	l := must(ledger.Open(t.Context(), c))
	one := seal(t, l, "")
	var saw []string
	for i := range brief.MaxNames + 5 {
		saw = append(saw, `"`+evidence.DigestOf(fmt.Append(nil, i)).String()+`"`)
	}
	saw[3] = `"` + one.Digest.String() + `"`
	greedy := seal(t, l, `,"saw":[`+strings.Join(saw, ",")+`]`)
	for _, id := range []string{one.Payload.RecordID, greedy.Payload.RecordID} {
		g, err := l.Briefs().Gather(t.Context(), id, nil)
		if err != nil || !slices.Equal(g.Indexes, []int64{0, 1}) || !errors.Is(g.Cut, brief.ErrCut) {
			t.Errorf("%+v, %v", g, err)
		}
	}
	// The common links of many records are limited, too.
	root := seal(t, l, "")
	for n := range 25 {
		saw := []string{`"` + root.Digest.String() + `"`}
		for i := range 999 {
			saw = append(saw, `"`+evidence.DigestOf(fmt.Append(nil, n, "of", i)).String()+`"`)
		}
		seal(t, l, `,"saw":[`+strings.Join(saw, ",")+`]`)
	}
	if g, err := l.Briefs().Gather(t.Context(), root.Payload.RecordID, nil); err != nil || len(g.Indexes) != 26 || !errors.Is(g.Cut, brief.ErrCut) {
		t.Errorf("%d are gathered, cut: %v, %v", len(g.Indexes), g.Cut, err)
	}

	whole := seal(t, l, "")
	digest := whole.Digest.String()
	for range 30 {
		seal(t, l, `,"saw":["`+digest+`"]`)
	}
	g, err := l.Briefs().Gather(t.Context(), whole.Payload.RecordID, nil)
	if err != nil || len(g.Indexes) != 31 || g.Cut != nil {
		t.Errorf("%+v, %v", g, err)
	}
}

// TestGatherForAReader checks that records that a reader may not read are neither returned nor followed, and that
// chains are returned whole or not at all.
func TestGatherForAReader(t *testing.T) {
	l, _ := alone(t)
	one := seal(t, l, "")
	hidden := seal(t, l, `,"saw":["`+one.Digest.String()+`"]`)
	behind := seal(t, l, `,"saw":["`+hidden.Digest.String()+`"]`)
	step := seal(t, l, `,"chain_id":"order","saw":["`+one.Digest.String()+`"]`)
	part := seal(t, l, `,"chain_id":"order"`)
	but := func(ids ...string) brief.May {
		return func(_ context.Context, b *brief.Brief) (bool, error) { return !slices.Contains(ids, b.RecordID), nil }
	}
	for _, test := range []struct {
		name string
		may  brief.May
		want []int64
		err  error
	}{
		{one.Payload.RecordID, nil, []int64{0, 1, 2, 3, 4}, nil},
		{"order", nil, []int64{0, 1, 2, 3, 4}, nil},
		{one.Payload.RecordID, but(hidden.Payload.RecordID), []int64{0, 3, 4}, nil},
		{one.Payload.RecordID, but(part.Payload.RecordID), []int64{0, 1, 2}, nil},
		{behind.Payload.RecordID, but(hidden.Payload.RecordID), []int64{2}, nil},
		{one.Payload.RecordID, but(one.Payload.RecordID), nil, brief.ErrHidden},
		{step.Payload.RecordID, but(part.Payload.RecordID), nil, brief.ErrHidden},
		{"order", but(part.Payload.RecordID), nil, brief.ErrHidden},
		{"other", nil, nil, ledger.ErrNotFound},
	} {
		g, err := l.Briefs().Gather(t.Context(), test.name, test.may)
		if !errors.Is(err, test.err) || err == nil && (!slices.Equal(g.Indexes, test.want) || g.Cut != nil) {
			t.Errorf("of %s: %+v, %v; want %v, %v", test.name, g, err, test.want, test.err)
		}
	}
}

// TestLinked checks that all records that name each other, by digest, id, chain or parent request, are gathered from
// any of them, and no others.
func TestLinked(t *testing.T) {
	h := jurattest.New(t)
	said := func(request, parent, chain, response string) *evidence.Record {
		return h.Seal(t, evidence.Payload{ActionType: evidence.ModelOutput, AgentID: "a", RequestID: request, ParentRequestID: parent, ChainID: chain,
			Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "v", Prompt: jsontext.Value(`"p"`), Response: jsontext.Value(response),
			Parameters: jsontext.Value(`{}`)})
	}
	part := said("part", "whole", "", `"x"`) // a part is recorded before the whole
	stranger := said("else", "", "other", `"x"`)
	whole := said("whole", "", "", `"y"`)
	review := h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "u@example.com", Timestamp: "2026-01-01T00:00:05Z",
		OriginalResponseID: whole.Payload.RecordID, ApprovalStatus: evidence.Approved, Saw: []evidence.Digest{whole.Digest}})
	delivery := h.Seal(t, evidence.Payload{ActionType: evidence.Delivery, AgentID: "a", Timestamp: "2026-01-01T00:00:06Z", Response: jsontext.Value(`"y"`),
		OriginalResponseID: whole.Payload.RecordID, Saw: []evidence.Digest{whole.Digest, review.Digest}})
	said("else", "", "", `"x"`) // a request_id alone links nothing
	h.Seal(t, evidence.Payload{ActionType: evidence.Delivery, AgentID: "evil", Timestamp: "2026-01-01T00:00:07Z", Response: jsontext.Value(`"z"`),
		Saw: []evidence.Digest{whole.Digest}}) // nor does a delivery by another agent that has a copy

	want := []*evidence.Record{part, whole, review, delivery}
	for _, from := range want {
		got, cut, err := h.Ledger.Linked(t.Context(), from.Payload.RecordID)
		if err != nil || cut != nil {
			t.Fatal(err, cut)
		}
		if !slices.EqualFunc(got, want, func(a, b *evidence.Record) bool { return a.Digest == b.Digest }) {
			t.Errorf("from %s: %d records", from.Payload.ActionType, len(got))
		}
		if r := verify.Bundle(h.Bundle(t, got...), h.Options(t)); r.Outcome != verify.Proved {
			t.Errorf("from %s: %s, %+v", from.Payload.ActionType, r.Outcome, r.Details)
		}
	}
	if got, cut, err := h.Ledger.Linked(t.Context(), stranger.Payload.RecordID); err != nil || cut != nil || len(got) != 1 {
		t.Errorf("%d, %v", len(got), err)
	}
	if _, _, err := h.Ledger.Linked(t.Context(), "nothing"); !errors.Is(err, ledger.ErrNotFound) {
		t.Error(err)
	}
}

// TestLinkedByALaterActor checks that another actor's delivery counts once the case contains a record of that actor.
func TestLinkedByALaterActor(t *testing.T) {
	h := jurattest.New(t)
	said := func(agent, request, parent string) *evidence.Record {
		return h.Seal(t, evidence.Payload{ActionType: evidence.ModelOutput, AgentID: agent, RequestID: request, ParentRequestID: parent,
			Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "v", Prompt: jsontext.Value(`"p"`), Response: jsontext.Value(`"y"`),
			Parameters: jsontext.Value(`{}`)})
	}
	whole := said("a", "whole", "")
	delivery := h.Seal(t, evidence.Payload{ActionType: evidence.Delivery, AgentID: "b", Timestamp: "2026-01-01T00:00:07Z", Response: jsontext.Value(`"y"`),
		Saw: []evidence.Digest{whole.Digest}})
	if got, _, err := h.Ledger.Linked(t.Context(), whole.Payload.RecordID); err != nil || len(got) != 1 {
		t.Errorf("%d records, %v", len(got), err)
	}
	part := said("b", "part", "whole")
	for _, from := range []*evidence.Record{whole, delivery, part} {
		if got, cut, err := h.Ledger.Linked(t.Context(), from.Payload.RecordID); err != nil || cut != nil || len(got) != 3 {
			t.Errorf("%d records, %v, %v", len(got), cut, err)
		}
	}
}
