package access_test

import (
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/access"
	"jurat/internal/ledger"
	"jurat/internal/must"
)

// TestNamesThatAreGranted: a name with invisible or deceptive characters gets no new grant.
func TestNamesThatAreGranted(t *testing.T) {
	_, _, open := house(t)
	r := open()
	for _, name := range []string{"mia@example.org", "Mia O’Hara-Straße 2", "José", "rene\u0301", "山田 太郎", "Ольга", "logistics-agent-v1", "urn:agent/1", "نامه\u200cای", "agent 🤖", "क्\u200dष"} {
		grant(t, r, access.Order{Name: name, Roles: []access.Role{access.Reviewer}})
	}
	for _, name := range []string{"\u3164", "\u115f\u1160", "\uffa0", "\u2800\u2800", "\ufe0f", "\u200b", "\u00ad", "\U000e0020", " \u2060 ", "\u0301", "\u200d", "mia\u3164", "mia\ufe0f", "mi\u200ba",
		"mia\u2800", "mi\u200da", "m\u034fia", "mia\ue000", "mia\ufdd0", "mia\U000e0041", ".", "-_-", "🤖", " mia", "mia ", "mia  s",
		"Mia@Example.org", "m\u0456a@example.org", "ｍia@example.org", "jose\u0301", "О\u043bьг\u0061", "\u039cia@example.org", "Urn:agent/1"} {
		_, _, err := r.Grant(t.Context(), access.Order{Name: name, Roles: []access.Role{access.Reviewer}, For: 1e12, Reason: "a test", By: "tester"})
		if err == nil {
			t.Errorf("%+q was granted", name)
		}
	}
}

// TestGrantOfEarlier: an older grant under such a name stays valid, and so do its sessions.
func TestGrantOfEarlier(t *testing.T) {
	h, clock, open := house(t)
	const token, name = "jurat_of_earlier", "mia\u3164"
	response := must.Get(operator.Encode(operator.AccessEventBody{Event: operator.AccessGranted, Token: access.IDOf(token), Name: name,
		Roles: []string{"reviewer"}, NotAfter: evidence.FormatTime(clock.now.Add(time.Hour)), Reason: "a test", By: "tester"}))(t)
	signers := must.Get(h.Keys.Signers(t.Context(), evidence.RoleOperator, ledger.OperatorName))(t)
	p := evidence.Payload{ActionType: evidence.AccessEvent, AgentID: ledger.OperatorName, ChainID: operator.AccessChain, Response: response}
	if _, err := h.Ledger.SealLast(t.Context(), operator.AccessChain, signers, p); err != nil {
		t.Fatal(err)
	}
	r := open()
	g, err := r.Who(t.Context(), token)
	if err != nil || g.Name != name {
		t.Fatalf("%+v, %v", g, err)
	}
	session := grant(t, r, access.Order{Name: name, Roles: g.Roles, Under: g.Token, Session: true})
	want(t, r, session, nil)
}
