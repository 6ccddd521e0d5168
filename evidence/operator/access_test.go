package operator

import (
	"slices"
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
)

// TestAccessEvents breaks one rule of an access_event at a time.
func TestAccessEvents(t *testing.T) {
	digest := evidence.DigestOf([]byte("a record"))
	granted := AccessEventBody{By: "b", Event: AccessGranted, Name: "n", NotAfter: "2026-01-31T16:15:00Z", Reason: "r",
		Roles: []string{"auditor", "reviewer"}, Session: true, Token: digest, Under: digest}
	published := AccessEventBody{By: "b", Chain: "c", Event: AccessPublished, Reason: "r"}
	change := func(b AccessEventBody, do func(*AccessEventBody)) AccessEventBody { do(&b); return b }
	read := func(b AccessEventBody) error {
		doc, err := Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ReadAccessEvent(&evidence.Payload{ActionType: evidence.AccessEvent, ChainID: AccessChain, Response: doc})
		return err
	}
	for name, good := range map[string]AccessEventBody{
		"granted":         granted,
		"alone":           change(granted, func(b *AccessEventBody) { b.Under, b.Session = evidence.Digest{}, false }),
		"revoked":         {By: "b", Event: AccessRevoked, Reason: "r", Token: digest},
		"published":       published,
		"published agent": change(published, func(b *AccessEventBody) { b.Chain, b.Agent = "", "desk" }),
		"withdrawn agent": change(published, func(b *AccessEventBody) { b.Event, b.Chain, b.Agent = AccessWithdrawn, "", "desk" }),
		"withdrawn":       change(published, func(b *AccessEventBody) { b.Event = AccessWithdrawn }),
	} {
		if err := read(good); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, bad := range map[string]AccessEventBody{
		"nobody":                     change(granted, func(b *AccessEventBody) { b.By = "" }),
		"no reason":                  change(granted, func(b *AccessEventBody) { b.Reason = "" }),
		"no name":                    change(granted, func(b *AccessEventBody) { b.Name = "" }),
		"no end":                     change(granted, func(b *AccessEventBody) { b.NotAfter = "" }),
		"no time":                    change(granted, func(b *AccessEventBody) { b.NotAfter = "tomorrow" }),
		"no roles":                   change(granted, func(b *AccessEventBody) { b.Roles = nil }),
		"unsorted":                   change(granted, func(b *AccessEventBody) { b.Roles = []string{"b", "a"} }),
		"token, chain and agent":     change(granted, func(b *AccessEventBody) { b.Chain, b.Agent = "c", "desk" }),
		"published until":            change(published, func(b *AccessEventBody) { b.NotAfter = granted.NotAfter }),
		"published to roles":         change(published, func(b *AccessEventBody) { b.Roles = granted.Roles }),
		"published in a session":     change(published, func(b *AccessEventBody) { b.Session = true }),
		"twice":                      change(granted, func(b *AccessEventBody) { b.Roles = []string{"a", "a"} }),
		"nameless role":              change(granted, func(b *AccessEventBody) { b.Roles = []string{""} }),
		"no token":                   change(granted, func(b *AccessEventBody) { b.Token = evidence.Digest{} }),
		"token and chain":            change(granted, func(b *AccessEventBody) { b.Chain = "c" }),
		"another event":              change(granted, func(b *AccessEventBody) { b.Event = "lent" }),
		"revoked with roles":         change(granted, func(b *AccessEventBody) { b.Event = AccessRevoked }),
		"published without":          change(published, func(b *AccessEventBody) { b.Chain = "" }),
		"published chain and agent":  change(published, func(b *AccessEventBody) { b.Agent = "desk" }),
		"published record and agent": change(published, func(b *AccessEventBody) { b.Chain, b.Record, b.Agent = "", "r", "desk" }),
		"published agent of no name": change(published, func(b *AccessEventBody) { b.Chain, b.Agent = "", "\x00" }),
		"agent admitted to itself":   change(published, func(b *AccessEventBody) { b.Event, b.Chain, b.Agent, b.Name = AccessAdmitted, "", "desk", "desk" }),
		"agent revoked":              change(published, func(b *AccessEventBody) { b.Event, b.Chain, b.Agent = AccessRevoked, "", "desk" }),
		"published with a token":     change(published, func(b *AccessEventBody) { b.Token = digest }),
		"published to a name":        change(published, func(b *AccessEventBody) { b.Name = "n" }),
		"published under":            change(published, func(b *AccessEventBody) { b.Under = digest }),
	} {
		if err := read(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	doc := must.Get(Encode(granted))(t)
	for _, p := range []evidence.Payload{{ActionType: evidence.AccessEvent, ChainID: KeysChain}, {ActionType: evidence.TrialEvent, ChainID: AccessChain}} {
		p.Response = doc
		if _, err := ReadAccessEvent(&p); err == nil {
			t.Errorf("accepted as %s in the chain %s", p.ActionType, p.ChainID)
		}
	}
}

func TestRefusalsAreChecked(t *testing.T) {
	digest := evidence.DigestOf([]byte("a record"))
	known := Refused{Count: 1, From: "a", Name: "n", Problem: "p", Route: "r", To: "b", Token: digest}
	unknown := Refused{Count: 7, From: "a", Problem: "p", Route: "r", To: "b"}
	for name, c := range map[string]struct {
		body RefusalBody
		good bool
	}{
		"both":         {RefusalBody{[]Refused{known, unknown}}, true},
		"none":         {RefusalBody{}, false},
		"too many":     {RefusalBody{slices.Repeat([]Refused{known}, MaxRefusals+1)}, false},
		"many":         {RefusalBody{slices.Repeat([]Refused{known}, MaxRefusals)}, true},
		"no count":     {RefusalBody{[]Refused{{From: "a", Problem: "p", Route: "r", To: "b"}}}, false},
		"no route":     {RefusalBody{[]Refused{{Count: 1, From: "a", Problem: "p", To: "b"}}}, false},
		"name alone":   {RefusalBody{[]Refused{{Count: 1, From: "a", Name: "n", Problem: "p", Route: "r", To: "b"}}}, false},
		"token alone":  {RefusalBody{[]Refused{{Count: 1, From: "a", Token: digest, Problem: "p", Route: "r", To: "b"}}}, false},
		"no beginning": {RefusalBody{[]Refused{{Count: 1, Problem: "p", Route: "r", To: "b"}}}, false},
		"no end":       {RefusalBody{[]Refused{{Count: 1, From: "a", Problem: "p", Route: "r"}}}, false},
		"no problem":   {RefusalBody{[]Refused{{Count: 1, From: "a", Route: "r", To: "b"}}}, false},
	} {
		doc := must.Get(Encode(c.body))(t)
		if _, err := Read[RefusalBody](&evidence.Payload{ActionType: evidence.Refusal, Response: doc}); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
