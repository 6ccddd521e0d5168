package brief_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/ledger/brief"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/must"
)

// encoded returns a brief as a store returns it.
func encoded(t *testing.T, b *brief.Brief) *brief.Brief {
	t.Helper()
	s := must.Get(b.Stored())(t)
	must.Hold(t, len(s.Line) <= 4096 && len(s.Names) <= 32*brief.MaxNames, "a brief of %d bytes, and names of %d", len(s.Line), len(s.Names))
	s.RecordID, s.Digest, s.ChainID, s.Case = b.RecordID, b.Digest, b.ChainID, b.Case
	return brief.Read(&s)
}

// TestBounds checks that the brief of any payload is small, and is read back as it was.
func TestBounds(t *testing.T) {
	long := strings.Repeat("é", 100) // as long as a name may be
	p := &evidence.Payload{RecordID: "r", ActionType: evidence.ModelOutput, AgentID: long, RequestID: long, ParentRequestID: long, ChainID: long,
		Timestamp: "2026-01-31T16:15:00.123456789Z", Response: jsontext.Value(`"` + strings.Repeat("x", 1<<20) + `"`)}
	for i := range 5000 {
		p.Saw = append(p.Saw, evidence.DigestOf(fmt.Append(nil, i/2)))
	}
	b := brief.Of(p, evidence.DigestOf(nil))
	must.Equal(t, cmp.Diff(b, encoded(t, b)), "")
	must.Hold(t, b.More && len(b.Names) == brief.MaxNames && b.Names[1] == p.Saw[2] && len(b.Keys()) == brief.MaxNames+2,
		"more: %v, %d names, %d keys", b.More, len(b.Names), len(b.Keys()))
	name := strings.Repeat("界", 5000)
	submission := brief.Of(&evidence.Payload{RecordID: "r", ActionType: evidence.Submission, AgentID: "s", ChainID: evidence.TrialPrefix + "1", Case: evidence.DigestOf(nil),
		Response: jsontext.Value(`{"agentCard":{"name":"` + name + `"}}`)}, evidence.DigestOf(nil))
	back := encoded(t, submission)
	must.Hold(t, back.Trial != nil && len([]rune(back.Trial.Agent)) == 200 && !back.Case.IsZero() && len(back.Keys()) == 0, "%+v", back)
	fault := brief.Of(&evidence.Payload{RecordID: "r", ActionType: evidence.FinalJudgment, ChainID: evidence.TrialPrefix + "1",
		Response: jsontext.Value(`{"` + name + `":1}`)}, evidence.DigestOf(nil))
	back = encoded(t, fault)
	must.Hold(t, back.Trial != nil && back.Trial.Fault != "", "%+v", back)
}

// TestReadRefuses checks that text that Stored would not write is refused.
func TestReadRefuses(t *testing.T) {
	for _, bad := range [][2]string{{"", ""}, {"[]", ""}, {`{"unknown":1}`, ""}, {`{"at":1}`, ""}, {"{}", "x"}, {`{}`, strings.Repeat("x", 32*(brief.MaxNames+1))}, {`{}{}`, ""}} {
		if brief.Read(&storage.StoredBrief{Line: []byte(bad[0]), Names: []byte(bad[1])}) != nil {
			t.Errorf("Read accepted %.40q with %d bytes of names", bad[0], len(bad[1]))
		}
	}
	b := brief.Read(&storage.StoredBrief{Line: []byte("{}")})
	must.Hold(t, b != nil && b.Expired() && b.Keys() == nil, "an empty brief does not decode to the brief of an expired record")
}

// TestApartKeysLeadNowhere checks that records in chains that are complete without links have no keys.
func TestApartKeysLeadNowhere(t *testing.T) {
	for _, p := range []*evidence.Payload{
		{ActionType: evidence.HumanReview, ReviewerID: "u", ChainID: evidence.TrialPrefix + "1", OriginalResponseID: "x", Saw: []evidence.Digest{evidence.DigestOf(nil)}},
		{ActionType: evidence.KeyEvent, AgentID: "operator", ChainID: operator.KeysChain},
	} {
		keys := brief.Of(p, evidence.DigestOf(nil)).Keys()
		must.Hold(t, len(keys) == 0, "%s has %d keys", p.ActionType, len(keys))
	}
}
