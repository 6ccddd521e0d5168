package operator

import (
	"maps"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/test/must"
)

func TestOperatorBodies(t *testing.T) {
	digest := evidence.DigestOf([]byte("a record"))
	body(t, evidence.LateStamp, LateStampBody{Stamps: []LateStamped{{Authority: "a", Kind: evidence.RFC3161, Record: digest, Token: digest}}})
	body(t, evidence.CheckpointStamp, CheckpointStampBody{Authority: "a", Checkpoint: "c", Token: []byte{1}})
	body(t, evidence.KeyEvent, KeyEventBody{Algorithm: evidence.ES256, By: "b", Card: digest, Certificates: [][]byte{{1}}, Custody: "owner", Event: KeyRotated, Protection: &Protection{Kind: "pkcs11", Serial: "1"}, From: "2026-01-31T16:15:00Z",
		KeyID: digest, Name: "n", PublicKey: []byte{1}, Reason: "r", Replaces: digest, Role: evidence.RoleAgent})
	body(t, evidence.Erasure, ErasureBody{By: "b", Pointers: []string{"/prompt"}, Reason: "r", Record: digest})
}

func TestLateStampsAreBounded(t *testing.T) {
	for n, good := range map[int]bool{0: false, 1: true, MaxLateStamps: true, MaxLateStamps + 1: false} {
		body := LateStampBody{Stamps: make([]LateStamped, n)}
		for i := range body.Stamps {
			digest := evidence.DigestOf([]byte{byte(i), byte(i >> 8)})
			body.Stamps[i] = LateStamped{Authority: "a", Kind: evidence.RFC3161, Record: digest, Token: digest}
		}
		doc := must.Get(Encode(body))(t)
		_, err := Read[LateStampBody](&evidence.Payload{ActionType: evidence.LateStamp, Response: doc})
		must.Hold(t, (err == nil) == good, "%d stamps: %v", n, err)
	}
}

// body writes a body and reads it back. It checks that no member can be added or left out.
func body[B Body](t *testing.T, action evidence.ActionType, b B) {
	t.Helper()
	doc := must.Get(Encode(b))(t)
	p := &evidence.Payload{ActionType: action, Response: doc}
	got := must.Get(Read[B](p))(t)
	must.Equal(t, cmp.Diff(&b, got), "", action)
	var m map[string]jsontext.Value
	must.Do(t, json.Unmarshal(doc, &m))
	for name := range m {
		if name == "public_key" || name == "replaces" || name == "certificates" || name == "card" || name == "protection" ||
			name == "reason" && action == evidence.TrialEvent {
			continue // which depend on the event
		}
		fewer := maps.Clone(m)
		delete(fewer, name)
		p.Response = must.Get(json.Marshal(fewer, json.Deterministic(true)))(t)
		must.Refuse(t, "", action, "accepted without", name)(Read[B](p))
	}
	p.Response = []byte(strings.Replace(string(doc), "{", `{"other":1,`, 1))
	must.Refuse(t, "", action)(Read[B](p))
}

func TestReadErasure(t *testing.T) {
	digest := evidence.DigestOf(nil)
	read := func(b ErasureBody, saw ...evidence.Digest) error {
		doc := must.Get(Encode(b))(t)
		_, err := ReadErasure(&evidence.Payload{ActionType: evidence.Erasure, Saw: saw, Response: doc})
		return err
	}
	good := ErasureBody{By: "b", Pointers: []string{"/context", "/prompt"}, Reason: "r", Record: digest}
	must.Want(t, read(good, digest), nil)
	for name, change := range map[string]func(*ErasureBody){
		"nobody":      func(b *ErasureBody) { b.By = "" },
		"no reason":   func(b *ErasureBody) { b.Reason = "" },
		"no record":   func(b *ErasureBody) { b.Record = evidence.Digest{} },
		"no pointer":  func(b *ErasureBody) { b.Pointers = nil },
		"not sorted":  func(b *ErasureBody) { b.Pointers = []string{"/prompt", "/context"} },
		"twice":       func(b *ErasureBody) { b.Pointers = []string{"/prompt", "/prompt"} },
		"no pointers": func(b *ErasureBody) { b.Pointers = []string{"prompt"} },
	} {
		b := good
		change(&b)
		must.Hold(t, read(b, b.Record) != nil, "%s: accepted", name)
	}
	must.Hold(t, read(good) != nil && read(good, digest, evidence.DigestOf([]byte("x"))) != nil, "saw is not looked at")
	must.Refuse(t, "", "an act of another type was read as an erasure")(ReadErasure(&evidence.Payload{ActionType: evidence.LateStamp}))
}

// FuzzReadErasure: an erasure that ReadErasure accepts marshals back to the same bytes.
func FuzzReadErasure(f *testing.F) {
	digest := evidence.DigestOf(nil)
	f.Add(`{"by":"b","pointers":["/context","/prompt"],"reason":"r","record":"` + digest.String() + `"}`)
	f.Add(`{"by":"b","pointers":[],"reason":"r","record":"` + digest.String() + `"}`)
	f.Add(`{"pointers":null}`)
	f.Fuzz(func(t *testing.T, response string) {
		p := &evidence.Payload{ActionType: evidence.Erasure, Saw: []evidence.Digest{digest}, Response: []byte(response)}
		body, err := ReadErasure(p)
		if err != nil {
			return
		}
		again, err := Encode(*body)
		must.Hold(t, err == nil && string(again) == response && body.Record == digest,
			"%q is read as %+v, and written as %q, %v", response, body, again, err)
	})
}

func TestProtection(t *testing.T) {
	good := Protection{Kind: "pkcs11", Manufacturer: "Zürich HSM", Model: "m", Serial: strings.Repeat("1", 64)}
	must.Want(t, good.Check(), nil)
	for name, spoil := range map[string]func(p *Protection){
		"no kind":       func(p *Protection) { p.Kind = "" },
		"a long serial": func(p *Protection) { p.Serial += "1" },
		"a line feed":   func(p *Protection) { p.Model = "m\n" },
		"an escape":     func(p *Protection) { p.Manufacturer = "\x1b[2J" },
		"a C1 control":  func(p *Protection) { p.Model = "\u009b" },
		"not UTF-8":     func(p *Protection) { p.Model = "\xff" },
	} {
		p := good
		if spoil(&p); p.Check() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestTrialEvents(t *testing.T) {
	good := TrialEventBody{By: "b", Event: TrialCancelled, Reason: "r", Trial: evidence.TrialPrefix + "1"}
	body(t, evidence.TrialEvent, good)
	taken := TrialEventBody{By: "otto", Event: TrialTaken, Trial: evidence.TrialPrefix + "1", Reviewer: "mia", Record: "019b76da-a800-7af4-9dc1-0b1e7f1aa123"}
	take := func(change func(*TrialEventBody)) func(*TrialEventBody) {
		return func(b *TrialEventBody) { *b = taken; change(b) }
	}
	for name, c := range map[string]struct {
		change func(*TrialEventBody)
		good   bool
	}{
		"cancelled":    {func(*TrialEventBody) {}, true},
		"resumed":      {func(b *TrialEventBody) { b.Event = TrialResumed }, true},
		"no event":     {func(b *TrialEventBody) { b.Event = "" }, false},
		"other event":  {func(b *TrialEventBody) { b.Event = "paused" }, false},
		"nobody":       {func(b *TrialEventBody) { b.By = "" }, false},
		"no reason":    {func(b *TrialEventBody) { b.Reason = "" }, false},
		"no trial":     {func(b *TrialEventBody) { b.Trial = "" }, false},
		"no trial's":   {func(b *TrialEventBody) { b.Trial = "chain-1" }, false},
		"no name":      {func(b *TrialEventBody) { b.Trial = evidence.TrialPrefix + "a\nb" }, false},
		"operator's":   {func(b *TrialEventBody) { b.Trial = TrialsChain }, false},
		"not the form": {func(b *TrialEventBody) { b.Trial = "Trial-1" }, false},

		"taken":                   {take(func(*TrialEventBody) {}), true},
		"taken for a reason":      {take(func(b *TrialEventBody) { b.Reason = "r" }), true},
		"left":                    {take(func(b *TrialEventBody) { b.Event = TrialLeft }), true},
		"taken, nobody says":      {take(func(b *TrialEventBody) { b.By = "" }), false},
		"taken by nobody":         {take(func(b *TrialEventBody) { b.Reviewer = "" }), false},
		"taken by no name":        {take(func(b *TrialEventBody) { b.Reviewer = "m\nia" }), false},
		"nothing taken":           {take(func(b *TrialEventBody) { b.Record = "" }), false},
		"what is no record taken": {take(func(b *TrialEventBody) { b.Record = "trial-1" }), false},
		"of no trial taken":       {take(func(b *TrialEventBody) { b.Trial = "chain-1" }), false},
		"cancelled, a reviewer":   {func(b *TrialEventBody) { b.Reviewer = "mia" }, false},
		"cancelled, a record":     {func(b *TrialEventBody) { b.Record = taken.Record }, false},
	} {
		b := good
		c.change(&b)
		doc := must.Get(Encode(b))(t)
		_, err := ReadTrialEvent(&evidence.Payload{ActionType: evidence.TrialEvent, ChainID: TrialsChain, Response: doc})
		must.Hold(t, (err == nil) == c.good, "%s: %v", name, err)
	}
	doc := must.Get(Encode(good))(t)
	_, err := ReadTrialEvent(&evidence.Payload{ActionType: evidence.TrialEvent, ChainID: AccessChain, Response: doc})
	must.Hold(t, err != nil, "a trial event was accepted in another chain")
}

// TestAccessEvents breaks one rule of an access_event at a time.
func TestAccessEvents(t *testing.T) {
	digest := evidence.DigestOf([]byte("a record"))
	granted := AccessEventBody{By: "b", Event: AccessGranted, Name: "n", NotAfter: "2026-01-31T16:15:00Z", Reason: "r",
		Roles: []string{"auditor", "reviewer"}, Session: true, Token: digest, Under: digest}
	published := AccessEventBody{By: "b", Chain: "c", Event: AccessPublished, Reason: "r"}
	change := func(b AccessEventBody, do func(*AccessEventBody)) AccessEventBody { do(&b); return b }
	read := func(b AccessEventBody) error {
		doc := must.Get(Encode(b))(t)
		_, err := ReadAccessEvent(&evidence.Payload{ActionType: evidence.AccessEvent, ChainID: AccessChain, Response: doc})
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
		must.Want(t, read(good), nil, name)
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
		must.Say(t, read(bad), "", name)
	}
	doc := must.Get(Encode(granted))(t)
	for _, p := range []evidence.Payload{{ActionType: evidence.AccessEvent, ChainID: KeysChain}, {ActionType: evidence.TrialEvent, ChainID: AccessChain}} {
		p.Response = doc
		must.Refuse(t, "", "accepted as", p.ActionType, "in the chain", p.ChainID)(ReadAccessEvent(&p))
	}
}
