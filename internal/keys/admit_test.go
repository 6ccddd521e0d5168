package keys

import (
	"errors"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/must"
)

// act returns a record of agent a or another agent, signed with these keys.
func act(t *testing.T, name string, keys ...keyPair) *evidence.Record {
	t.Helper()
	draft := must.Get(evidence.ParseDraft([]byte(`{"agent_id":"` + name + `","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m",
		"model_version":"v","prompt":"p","response":"r","parameters":{}}`)))(t)
	var signers []evidence.Signer
	for _, k := range keys {
		signers = append(signers, k.signer)
	}
	return must.Get(draft.Seal(evidence.Sealing{Signers: signers, RecordID: "01890000-0000-7000-8000-000000000000", Time: start}))(t)
}

func TestAdmit(t *testing.T) {
	f, s, f2, unknown, unknownSecond := key(1), key(-1), key(2), key(3), key(-3)
	mine := registered(0, f)
	mine.body.Custody = operator.CustodyOperator
	theirs := registered(1, s)
	theirs.body.Name = "b"
	second := registered(0, s)
	second.body.Custody = operator.CustodyOperator
	for name, tt := range map[string]struct {
		events []told
		actor  string
		keys   []keyPair
		at     time.Time
		want   error
	}{
		"nothing is known":                        {nil, "a", []keyPair{f}, at(1), nil},
		"the registered key":                      {[]told{registered(0, f)}, "a", []keyPair{f}, at(1), nil},
		"a key that is not registered":            {[]told{registered(0, f)}, "a", []keyPair{unknown}, at(1), ErrForeign},
		"one beside it":                           {[]told{registered(0, f)}, "a", []keyPair{f, unknown}, at(1), ErrForeign},
		"a second key beside an owner's":          {[]told{registered(0, f)}, "a", []keyPair{f, unknownSecond}, at(1), ErrForeign},
		"a second key beside the operator's":      {[]told{mine}, "a", []keyPair{f, unknownSecond}, at(1), nil},
		"a first key beside the operator's":       {[]told{second}, "a", []keyPair{unknown, s}, at(1), nil},
		"the first alone, where the second is":    {[]told{second}, "a", []keyPair{unknown}, at(1), ErrIncomplete},
		"another actor's key":                     {[]told{registered(0, f)}, "b", []keyPair{f}, at(1), ErrForeign},
		"an actor without, another actor's key":   {[]told{registered(0, f), theirs}, "a", []keyPair{f, s}, at(1), ErrForeign},
		"a rotated key":                           {[]told{registered(0, f), rotated(5, f, f2)}, "a", []keyPair{f}, at(5), ErrEnded},
		"the one in its place":                    {[]told{registered(0, f), rotated(5, f, f2)}, "a", []keyPair{f2}, at(5), nil},
		"before its end":                          {[]told{registered(0, f), retired(1, f, at(5))}, "a", []keyPair{f}, at(4), nil},
		"at its end":                              {[]told{registered(0, f), retired(1, f, at(5))}, "a", []keyPair{f}, at(5), ErrEnded},
		"a revoked key":                           {[]told{registered(0, f), revoked(2, f, at(2))}, "a", []keyPair{f}, at(1), ErrEnded},
		"an unknown key after the last was ended": {[]told{mine, {2, func() operator.KeyEventBody { b := retired(2, f, at(2)).body; b.Custody = "operator"; return b }()}}, "a", []keyPair{unknown}, at(9), ErrForeign},
		"a pair":                     {[]told{registered(0, s), registered(0, f)}, "a", []keyPair{f, s}, at(1), nil},
		"a pair the other way round": {[]told{registered(0, s), registered(0, f)}, "a", []keyPair{s, f}, at(1), nil},
		"the first of a pair alone":  {[]told{registered(0, s), registered(0, f)}, "a", []keyPair{f}, at(1), ErrIncomplete},
		"the second of a pair alone": {[]told{registered(0, s), registered(0, f)}, "a", []keyPair{s}, at(1), ErrIncomplete},
	} {
		err := read(t, tt.events...).Admit(&act(t, tt.actor, tt.keys...).Payload, tt.at)
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

func TestCheckOwned(t *testing.T) {
	f := key(1)
	mine := registered(0, f)
	mine.body.Custody = operator.CustodyOperator
	must.Do(t, read(t, registered(0, f)).CheckOwned(act(t, "a", f), at(1)))
	for name, events := range map[string][]told{"nobody's": nil, "the operator's": {mine}} {
		if err := read(t, events...).CheckOwned(act(t, "a", f), at(1)); !errors.Is(err, ErrForeign) {
			t.Errorf("%s key: %v", name, err)
		}
	}
	forged := act(t, "a", f)
	forged.Signatures[0][5] ^= 1
	if err := read(t, registered(0, f)).CheckOwned(forged, at(1)); !errors.Is(err, evidence.ErrSignature) {
		t.Errorf("another signature: %v", err)
	}
	if err := read(t, registered(0, f), retired(1, f, at(1))).CheckOwned(act(t, "a", f), at(1)); !errors.Is(err, ErrEnded) {
		t.Errorf("a retired key: %v", err)
	}
}
