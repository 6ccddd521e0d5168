package access_test

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/access"
	"jurat/internal/log/ledger"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
)

// clock is a clock that a test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func house(t *testing.T) (*jurattest.House, *clock, func() *access.Register) {
	h, c := jurattest.New(t), &clock{now: jurattest.Start.Add(time.Hour)}
	return h, c, func() *access.Register {
		return access.New(access.Config{Ledger: h.Ledger, Keys: h.Keys, Now: c.Now})
	}
}

func grant(t *testing.T, r *access.Register, o access.Order) string {
	t.Helper()
	o.For = cmp.Or(o.For, time.Hour)
	o.Reason, o.By = "a test", "tester"
	token, g, err := r.Grant(t.Context(), o)
	must.Need(t, err == nil && g.Name == o.Name, "%v %v", g, err)
	return token
}

func want(t *testing.T, r *access.Register, token string, want error) {
	t.Helper()
	must.Fail(t, want)(r.Who(t.Context(), token))
}

func TestGrants(t *testing.T) {
	_, clock, open := house(t)
	r, other := open(), open() // as in another process
	token := grant(t, r, access.Order{Name: "mia", Roles: []access.Role{access.Reviewer, access.Auditor, access.Reviewer}})
	g, err := other.Who(t.Context(), token)
	must.Need(t, err == nil && g.Name == "mia" && len(g.Roles) == 2 && g.Has(access.Auditor) && !g.Has(access.Operator), "%+v, %v", g, err)
	want(t, other, token+"x", access.ErrUnknown)
	want(t, other, "", access.ErrUnknown)
	must.Do(t, r.Revoke(t.Context(), g.Token, "left", "tester"))
	want(t, other, token, access.ErrRevoked)
	must.Want(t, other.Revoke(t.Context(), g.Token, "again", "tester"), nil)
	must.Want(t, other.Revoke(t.Context(), access.IDOf("x"), "never", "tester"), access.ErrUnknown)
	short := grant(t, r, access.Order{Name: "a", Roles: []access.Role{access.Agent}, For: time.Second})
	want(t, r, short, nil)
	clock.now = clock.now.Add(time.Second)
	want(t, r, short, access.ErrExpired)
}

// TestSessionsEndWithTheirToken: when a token ends, its sessions end, too.
func TestSessionsEndWithTheirToken(t *testing.T) {
	_, _, open := house(t)
	r := open()
	token := grant(t, r, access.Order{Name: "mia", Roles: []access.Role{access.Reviewer}})
	session := grant(t, r, access.Order{Name: "mia", Roles: []access.Role{access.Reviewer}, Under: access.IDOf(token), Session: true})
	want(t, r, session, nil)
	must.Do(t, r.Revoke(t.Context(), access.IDOf(token), "left", "tester"))
	want(t, r, session, access.ErrRevoked)
	list, err := r.Grants(t.Context())
	must.Hold(t, err == nil && len(list) == 2 && errors.Is(list[1].Ended, access.ErrRevoked) && list[1].Session, "%+v, %v", list, err)
}

func TestOrdersAreRefused(t *testing.T) {
	h, _, open := house(t)
	r := open()
	for name, o := range map[string]access.Order{
		"no name":           {Roles: []access.Role{access.Auditor}, For: time.Hour, Reason: "r", By: "b"},
		"no role":           {Name: "n", For: time.Hour, Reason: "r", By: "b"},
		"no such role":      {Name: "n", Roles: []access.Role{"juror"}, For: time.Hour, Reason: "r", By: "b"},
		"agent and another": {Name: "n", Roles: []access.Role{access.Agent, access.Reviewer}, For: time.Hour, Reason: "r", By: "b"},
		"no time":           {Name: "n", Roles: []access.Role{access.Auditor}, Reason: "r", By: "b"},
		"no reason":         {Name: "n", Roles: []access.Role{access.Auditor}, For: time.Hour, By: "b"},
		"nobody":            {Name: "n", Roles: []access.Role{access.Auditor}, For: time.Hour, Reason: "r"},
	} {
		_, _, err := r.Grant(t.Context(), o)
		must.Hold(t, errors.Is(err, access.ErrOrder), "%s: %v", name, err)
	}
	must.Give(h.Ledger.Size(t.Context()))(t, 0, "records in the log")
}

func TestPublicChains(t *testing.T) {
	_, _, open := house(t)
	r, other := open(), open()
	public := func(want bool) {
		t.Helper()
		must.Give(other.Public(t.Context(), access.What{Chain: "chain"}))(t, want, "public")
	}
	public(false)
	for _, on := range []bool{true, true, false, false, true} {
		must.Do(t, r.Publish(t.Context(), access.What{Chain: "chain"}, on, "r", "b"))
		public(on)
	}
	list, err := other.List(t.Context(), false)
	must.Hold(t, err == nil && len(list.Public) == 1, "%v %v", list, err)
}

// TestPublicAgents: a chain, a record and an agent of one name are three things.
func TestPublicAgents(t *testing.T) {
	_, _, open := house(t)
	r, other := open(), open()
	for _, on := range []bool{true, true, false, false, true} {
		must.Do(t, r.Publish(t.Context(), access.What{Agent: "desk"}, on, "r", "b"))
		must.Give(other.Public(t.Context(), access.What{Agent: "desk"}))(t, on, "public")
	}
	chain, err := other.Public(t.Context(), access.What{Chain: "desk"})
	if record, failed := other.Public(t.Context(), access.What{Record: "desk"}); chain || record || err != nil || failed != nil {
		t.Error("a chain or a record became public with the agent:", chain, record, err, failed)
	}
	list, err := other.List(t.Context(), false)
	must.Hold(t, err == nil && slices.Equal(list.Agents, []string{"desk"}), "%v %v", list, err)
}

// TestTokensAreNotInTheLog: reading the log does not give access to anyone.
func TestTokensAreNotInTheLog(t *testing.T) {
	h, _, open := house(t)
	token := grant(t, open(), access.Order{Name: "mia", Roles: []access.Role{access.Reviewer}})
	records, err := h.Ledger.Chain(t.Context(), operator.AccessChain)
	must.Need(t, err == nil && len(records) == 1, "%v %v", records, err)
	body, err := operator.ReadAccessEvent(&records[0].Payload)
	must.Hold(t, err == nil && body.Token == evidence.DigestOf([]byte(token)) && len(token) >= 43, "%v %v", body, err)
	must.Hold(t, access.FormKey(token) != access.FormKey(token+"x"), "two sessions have the same form key")
}

// TestUnreadableEventsLetNobodyIn: after an invalid access event in the log, no token is accepted. Only the operator's
// key can make such an event.
func TestUnreadableEventsLetNobodyIn(t *testing.T) {
	digest := evidence.DigestOf([]byte("x"))
	for name, event := range map[string]operator.AccessEventBody{
		"no such event":        {By: "b", Event: "lent", Reason: "r", Token: digest},
		"revoked, not granted": {By: "b", Event: operator.AccessRevoked, Reason: "r", Token: digest},
		"under nothing": {By: "b", Event: operator.AccessGranted, Reason: "r", Token: digest, Under: evidence.DigestOf([]byte("y")), Name: "n",
			Roles: []string{"operator"}, NotAfter: "2030-01-01T00:00:00Z"},
	} {
		h, _, open := house(t)
		r := open()
		token := grant(t, r, access.Order{Name: "mia", Roles: []access.Role{access.Reviewer}})
		response := must.Get(operator.Encode(event))(t)
		signers := must.Get(h.Keys.Signers(t.Context(), evidence.RoleOperator, "operator"))(t)
		if _, err := h.Ledger.SealLast(t.Context(), operator.AccessChain, signers,
			evidence.Payload{ActionType: evidence.AccessEvent, AgentID: "operator", Response: response}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := r.Who(t.Context(), token)
			must.Hold(t, err != nil && !errors.Is(err, access.ErrUnknown), "%s: %v", name, err)
		}
	}
}

// TestConcurrently grants and checks tokens from many goroutines.
func TestConcurrently(t *testing.T) {
	h, _, open := house(t)
	a, b := open(), open()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			token := grant(t, a, access.Order{Name: "mia", Roles: []access.Role{access.Reviewer}})
			want(t, b, token, nil)
		})
	}
	group.Wait()
	records, err := h.Ledger.Chain(t.Context(), operator.AccessChain)
	must.Need(t, err == nil && len(records) == 8, "%v %v", len(records), err)
	for i, r := range records {
		must.Hold(t, r.Payload.ChainPosition == int64(i+1) && (i <= 0 || r.Payload.PreviousRecord == records[i-1].Digest),
			"record %d stands at %d after %v", i, r.Payload.ChainPosition, r.Payload.PreviousRecord)
	}
}

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
		must.Hold(t, err != nil, "%+q was granted", name)
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
	must.Get(h.Ledger.SealLast(t.Context(), operator.AccessChain, signers, p))(t)
	r := open()
	g, err := r.Who(t.Context(), token)
	must.Need(t, err == nil && g.Name == name, "%+v, %v", g, err)
	session := grant(t, r, access.Order{Name: name, Roles: g.Roles, Under: g.Token, Session: true})
	want(t, r, session, nil)
}
