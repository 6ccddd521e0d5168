package access_test

import (
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/ledger"
)

func TestSameName(t *testing.T) {
	for _, same := range [][2]string{
		{"mia", "Mia"}, {"mia", " m i a\u00a0"}, {"mia", "mi\u200ba"}, {"mia", "mia\ufe0f"}, {"mia", "m\U000e0101ia"}, {"mia", "mia\u3164"}, {"mia", "\u115fmia"},
		{"mia", "m\u1160ia"}, {"mia", "mia\uffa0"}, {"mia", "mia\u2800"}, {"mia", "mi\u034fa"}, {"mia", "mia\u180b"}, {"mia", "mia\u17b4"}, {"mia", "mia\U000e0061"},
		{"mia", "mia\u2060\ufeff\u00ad"}, {"STRASSE", "straße"}, {"STRAẞE", "straße"}, {"ﬁn", "FIN"}, {"jose\u0301", "JOSÉ"}, {"e\u034f\u0301", "é"}, {"ｍｉａ", "mia"},
		{"\u212bsa", "åsa"}, {"ὈΔΥΣΣΕΎΣ", "ὀδυσσεύς"}, {"ǅ", "dž"}, {"ᾳ", "ΑΙ"},
	} {
		if !access.SameName(same[0], same[1]) || !access.SameName(same[1], same[0]) {
			t.Errorf("%+q and %+q pass for different people", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{"mia", "mía"}, {"mia", "mja"}, {"mia.s", "mias"}, {"mia1", "mia2"}, {"ミア", "ミヤ"}, {"か", "が"}} {
		if access.SameName(other[0], other[1]) {
			t.Errorf("%+q and %+q pass for one person", other[0], other[1])
		}
	}
}

// TestNamesThatAreGranted: a name that does not show as it is, or not at all, is given to nobody anew.
func TestNamesThatAreGranted(t *testing.T) {
	_, _, open := house(t)
	r := open()
	for _, name := range []string{"mia@example.org", "Mia O’Hara-Straße 2", "José", "jose\u0301", "山田 太郎", "Ольга", "logistics-agent-v1", "urn:agent/1", "نامه\u200cای", "agent 🤖", "क्\u200dष"} {
		grant(t, r, access.Order{Name: name, Roles: []access.Role{access.Reviewer}})
	}
	for _, name := range []string{"\u3164", "\u115f\u1160", "\uffa0", "\u2800\u2800", "\ufe0f", "\u200b", "\u00ad", "\U000e0020", " \u2060 ", "\u0301", "\u200d", "mia\u3164", "mia\ufe0f", "mi\u200ba",
		"mia\u2800", "mi\u200da", "m\u034fia", "mia\ue000", "mia\ufdd0", "mia\U000e0041"} {
		_, _, err := r.Grant(t.Context(), access.Order{Name: name, Roles: []access.Role{access.Reviewer}, For: 1e12, Reason: "a test", By: "tester"})
		if err == nil {
			t.Errorf("%+q was granted", name)
		}
	}
}

// TestGrantOfEarlier: a grant under a name that would not be given out today goes on, and so do the sessions under it.
func TestGrantOfEarlier(t *testing.T) {
	h, clock, open := house(t)
	const token, name = "jurat_of_earlier", "mia\u3164"
	response, err := evidence.EncodeOperatorBody(evidence.AccessEventBody{Event: evidence.AccessGranted, Token: access.IDOf(token), Name: name,
		Roles: []string{"reviewer"}, NotAfter: evidence.FormatTime(clock.now.Add(time.Hour)), Reason: "a test", By: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	signers, err := h.Keys.Signers(evidence.RoleOperator, ledger.OperatorName)
	if err != nil {
		t.Fatal(err)
	}
	p := evidence.Payload{ActionType: evidence.AccessEvent, AgentID: ledger.OperatorName, ChainID: evidence.AccessChain, Response: response}
	if _, err := h.Ledger.SealLast(t.Context(), evidence.AccessChain, signers, p); err != nil {
		t.Fatal(err)
	}
	r := open()
	g, err := r.Who(t.Context(), token)
	if err != nil || g.Name != name {
		t.Fatalf("%+v, %v", g, err)
	}
	session := grant(t, r, access.Order{Name: name, Roles: g.Roles, Under: g.Token, Session: true})
	want(t, r, session, nil)
	if !access.SameName(name, "Mia") {
		t.Error("they decide on their own work")
	}
}
