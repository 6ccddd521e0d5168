package keys

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/filestore"
	"jurat/internal/test/must"
	"jurat/verify/trust"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at returns a time so many minutes after the start.
func at(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }

// A keyPair is a key for tests. It is not secret.
type keyPair struct {
	signer evidence.Signer
	public []byte
	id     evidence.KeyID
	alg    evidence.Algorithm
}

// key makes the n-th first key, or, if n is negative, the n-th second key.
func key(n int) keyPair {
	var seed [32]byte
	seed[0] = byte(n)
	private := evidence.NewMLDSA65(&seed)
	if n >= 0 {
		private = ed25519.NewKeyFromSeed(seed[:])
	}
	signer, err := evidence.NewSigner(private, nil)
	if err != nil {
		panic(err)
	}
	public, err := evidence.MarshalPublicKey(private.Public())
	if err != nil {
		panic(err)
	}
	return keyPair{signer, public, signer.Info().KeyID, signer.Info().Algorithm}
}

// A told is a key event that the operator logs, with its time in minutes after the start.
type told struct {
	minute int
	body   operator.KeyEventBody
}

func body(event operator.KeyChange, k keyPair, from time.Time) operator.KeyEventBody {
	b := operator.KeyEventBody{Event: event, Algorithm: k.alg, KeyID: k.id, Name: "a", Role: evidence.RoleAgent, By: "w", Reason: "r",
		Custody: operator.CustodyOwner, From: from.Format(time.RFC3339)}
	if event == operator.KeyRegistered || event == operator.KeyRotated {
		b.PublicKey = k.public
	}
	return b
}

func registered(minute int, k keyPair) told {
	return told{minute, body(operator.KeyRegistered, k, at(minute))}
}

func rotated(minute int, old, k keyPair) told {
	b := body(operator.KeyRotated, k, at(minute))
	b.Replaces = old.id
	return told{minute, b}
}

func retired(minute int, k keyPair, from time.Time) told {
	return told{minute, body(operator.KeyRetired, k, from)}
}

func revoked(minute int, k keyPair, from time.Time) told {
	return told{minute, body(operator.KeyRevoked, k, from)}
}

// chain seals events one after the other. change, if set, alters the last one before it is sealed.
func chain(t testing.TB, events []told, change func(*evidence.Payload)) []*evidence.Record {
	t.Helper()
	var records []*evidence.Record
	for i, e := range events {
		response := must.Get(operator.Encode(e.body))(t)
		p := evidence.Payload{ActionType: evidence.KeyEvent, AgentID: "operator", Timestamp: evidence.FormatTime(at(e.minute)),
			ChainID: operator.KeysChain, ChainPosition: int64(i + 1), Response: response, RecordID: fmt.Sprintf("01890000-0000-7000-8000-%012d", i)}
		if i > 0 {
			p.PreviousRecord = records[i-1].Digest
		}
		if change != nil && i == len(events)-1 {
			change(&p)
		}
		draft := must.Get(evidence.NewDraft(p))(t)
		r := must.Get(draft.Seal(evidence.Sealing{Signers: []evidence.Signer{key(100).signer}}))(t)
		records = append(records, r)
	}
	return records
}

func read(t testing.TB, events ...told) *History {
	t.Helper()
	return must.Get(ReadHistory(chain(t, events, nil)))(t)
}

func TestLifeOfAKey(t *testing.T) {
	h := read(t, registered(0, key(1)), rotated(10, key(1), key(2)), retired(20, key(2), at(30)), revoked(25, key(1), at(5)))
	first, second := h.Key(key(1).id), h.Key(key(2).id)
	must.Hold(t, first.Until.Equal(at(10)) && first.Sudden && first.Revoked.Equal(at(5)) && first.From.Equal(at(0)), "the first key: %+v", first)
	must.Hold(t, second.Until.Equal(at(30)) && !second.Sudden && second.Revoked.IsZero(), "the second key: %+v", second)
	for minute, want := range map[int]string{15: "active until 2026-01-02T03:34:05Z", 30: "retired at 2026-01-02T03:34:05Z"} {
		must.Equal(t, second.State(at(minute)), want, minute)
	}
	must.Equal(t, first.State(at(60)), "revoked from 2026-01-02T03:09:05Z")
	active := h.Active(evidence.RoleAgent, "a", at(29))
	must.Hold(t, len(active) == 1 && active[0] == second, "active: %+v", active)
	active = h.Active(evidence.RoleAgent, "a", at(30))
	must.Hold(t, len(active) == 0, "active after its end: %+v", active)
	must.Hold(t, h.Count() == 4 && len(h.Keys()) == 2, "%d events, %d keys", h.Count(), len(h.Keys()))
}

// TestPairs: an event that ends one key of a pair ends both, in any order of registration.
func TestPairs(t *testing.T) {
	f, s, f2, s2 := key(1), key(-1), key(2), key(-2)
	pair := func(h *History, a, b keyPair, from time.Time) {
		t.Helper()
		got := h.Key(a.id)
		must.Hold(t, got.With == b.id && got.WithFrom.Equal(from), "%s signs with %v from %v, want %v from %v", a.alg, got.With, got.WithFrom, b.id, from)
	}
	together := read(t, registered(0, s), registered(0, f))
	pair(together, f, s, time.Time{})
	pair(together, s, f, time.Time{})
	after := read(t, registered(0, f), registered(10, s))
	pair(after, f, s, at(10).Add(Settling))
	pair(after, s, f, time.Time{})

	rotation := read(t, registered(0, f), registered(10, s), rotated(20, s, s2), rotated(20, f, f2))
	pair(rotation, f, s, at(10).Add(Settling))
	pair(rotation, s, f, time.Time{})
	pair(rotation, f2, s2, time.Time{})
	pair(rotation, s2, f2, time.Time{})
	for _, k := range []keyPair{f, s} {
		got := rotation.Key(k.id)
		must.Hold(t, got.Until.Equal(at(20)) && got.Sudden, "%s ends %v", k.alg, got.Until)
	}

	one := read(t, registered(0, s), registered(0, f), rotated(20, f, f2)) // the operator gives up the second signature
	got := one.Active(evidence.RoleAgent, "a", at(20))
	must.Hold(t, len(got) == 1 && got[0].KeyID == f2.id && got[0].With.IsZero(), "active: %+v", got)
	for name, end := range map[string]told{"retired": retired(20, f, at(20)), "revoked": revoked(20, s, at(15))} {
		h := read(t, registered(0, s), registered(0, f), end)
		got := h.Active(evidence.RoleAgent, "a", at(20))
		must.Hold(t, len(got) == 0, "%s: active: %+v", name, got)
	}
	h := read(t, registered(0, s), registered(0, f), revoked(20, s, at(15)))
	if got := h.Key(f.id); !got.Until.Equal(at(20)) || !got.Revoked.IsZero() {
		t.Errorf("the other key of the pair: %+v", got)
	}
}

// TestContradictions breaks one rule at a time.
func TestContradictions(t *testing.T) {
	other := func(e told, change func(*operator.KeyEventBody)) told {
		change(&e.body)
		return e
	}
	one, two, three := key(1), key(2), key(3)
	for want, events := range map[string][]told{
		"has the key":                {registered(0, one), registered(1, two)},
		"is known already":           {registered(0, one), retired(1, one, at(1)), registered(2, one)},
		"is not the present key":     {registered(0, one), rotated(1, one, two), rotated(2, one, three)},
		"cannot replace an owner's":  {registered(0, one), other(rotated(1, one, two), func(b *operator.KeyEventBody) { b.Custody = "operator" })},
		"begins before":              {registered(5, one), other(rotated(6, one, two), func(b *operator.KeyEventBody) { b.From = at(4).Format(time.RFC3339) })},
		"is unknown":                 {retired(1, one, at(1))},
		"has ended already":          {registered(0, one), retired(1, one, at(1)), retired(2, one, at(2))},
		"the key begins at":          {registered(5, one), revoked(6, one, at(4))},
		"already":                    {registered(0, one), revoked(5, one, at(3)), revoked(6, one, at(4))},
		"cannot begin in the future": {registered(0, one), revoked(5, one, at(9))},
		"only events of new keys":    {registered(0, one), other(retired(5, one, at(5)), func(b *operator.KeyEventBody) { b.PublicKey = one.public })},
		"held by the owner":          {registered(0, one), other(retired(5, one, at(5)), func(b *operator.KeyEventBody) { b.Custody = "operator" })},
		`agent "a"`:                  {registered(0, one), other(retired(5, one, at(5)), func(b *operator.KeyEventBody) { b.Name = "b" })},
		"public_key":                 {other(registered(0, one), func(b *operator.KeyEventBody) { b.PublicKey = nil })},
		"key_id does not match":      {other(registered(0, one), func(b *operator.KeyEventBody) { b.KeyID = two.id })},
		"but the key signs":          {other(registered(0, one), func(b *operator.KeyEventBody) { b.Algorithm = evidence.ES256 })},
		"unknown role":               {other(registered(0, one), func(b *operator.KeyEventBody) { b.Role = "king" })},
		"name:":                      {other(registered(0, one), func(b *operator.KeyEventBody) { b.Name = " " })},
		"is neither":                 {other(registered(0, one), func(b *operator.KeyEventBody) { b.Custody = "me" })},
		"holds the key of the juror": {other(registered(0, one), func(b *operator.KeyEventBody) { b.Role = evidence.RoleJuror })},
		"cannot replace another":     {other(registered(0, one), func(b *operator.KeyEventBody) { b.Replaces = two.id })},
		`unknown event "lost"`:       {other(registered(0, one), func(b *operator.KeyEventBody) { b.Event = "lost" })},
		"9 certificates":             {other(registered(0, one), func(b *operator.KeyEventBody) { b.Certificates = slices.Repeat([][]byte{{1}}, 9) })},
		"certificate 1 has 65537":    {other(registered(0, one), func(b *operator.KeyEventBody) { b.Certificates = [][]byte{make([]byte, 65537)} })},
		"from:":                      {other(registered(0, one), func(b *operator.KeyEventBody) { b.From = "yesterday" })},
		"reason or by is empty":      {other(registered(0, one), func(b *operator.KeyEventBody) { b.By = "" })},
		"the key has ended, or it":   {registered(0, one), retired(1, one, at(1)), other(registered(2, one), func(b *operator.KeyEventBody) { b.Certificates = [][]byte{{1}} })},
		"protection, card and":       {registered(0, one), other(retired(5, one, at(5)), func(b *operator.KeyEventBody) { b.Protection = &operator.Protection{Kind: "k"} })},
		"card and replaces":          {registered(0, one), other(retired(5, one, at(5)), func(b *operator.KeyEventBody) { b.Card = one.id })},
		"gives another public key":   {registered(0, one), other(registered(1, one), func(b *operator.KeyEventBody) { b.Card, b.PublicKey = one.id, two.public })},
		"the key has ended, or the":  {registered(0, one), retired(1, one, at(1)), other(registered(2, one), func(b *operator.KeyEventBody) { b.Card = one.id })},
		"kind is missing":            {other(registered(0, one), func(b *operator.KeyEventBody) { b.Protection = &operator.Protection{} })},
	} {
		h, err := ReadHistory(chain(t, events, nil))
		if want == "the key has ended, or it" {
			want = "the key has ended"
		}
		must.Hold(t, errors.Is(err, ErrEvent) && strings.Contains(fmt.Sprint(err), want), "error %v, want one with %q; %v", err, want, h)
	}
}

// TestChainIsOneAfterTheOther: a record that is not the next event of the chain is refused.
func TestChainIsOneAfterTheOther(t *testing.T) {
	events := []told{registered(0, key(1)), rotated(1, key(1), key(2))}
	for name, change := range map[string]func(*evidence.Payload){
		"another position": func(p *evidence.Payload) { p.ChainPosition = 3 },
		"no predecessor":   func(p *evidence.Payload) { p.PreviousRecord = evidence.Digest{} },
		"another one":      func(p *evidence.Payload) { p.PreviousRecord = evidence.DigestOf([]byte("x")) },
		"another chain":    func(p *evidence.Payload) { p.ChainID = operator.CheckpointsChain },
		"another act":      func(p *evidence.Payload) { p.ActionType = evidence.Erasure },
		"another member": func(p *evidence.Payload) {
			p.Response = []byte(strings.Replace(string(p.Response), `{`, `{"x":1,`, 1))
		},
	} {
		_, err := ReadHistory(chain(t, events, change))
		must.Hold(t, errors.Is(err, ErrEvent), "%s: %v", name, err)
	}
}

func TestCloneIsACopy(t *testing.T) {
	records := chain(t, []told{registered(0, key(-1)), registered(0, key(1)), revoked(5, key(1), at(5))}, nil)
	h := must.Get(ReadHistory(records[:2]))(t)
	must.Do(t, h.Clone().Apply(records[2]))
	active := h.Active(evidence.RoleAgent, "a", at(9))
	must.Hold(t, len(active) == 2 && h.Count() == 2, "changing a clone changed the original: %v", active)
}

// TestCertificatesAreRenewed: a record has the certificates that were the key's when it was signed, and the next ones. Those that came later need not
// have been valid then.
func TestCertificatesAreRenewed(t *testing.T) {
	first, again, third := registered(0, key(1)), registered(5, key(1)), registered(8, key(1))
	first.body.Certificates, again.body.Certificates, third.body.Certificates = [][]byte{{1}, {9}}, [][]byte{{2}, {9}}, [][]byte{{3}, {9}}
	h := read(t, first, again, third)
	for _, test := range []struct {
		minutes int
		want    [][]byte
	}{{-1, [][]byte{{1}, {9}, {2}}}, {0, [][]byte{{1}, {9}, {2}}}, {4, [][]byte{{1}, {9}, {2}}}, {5, [][]byte{{2}, {9}, {3}}}, {8, [][]byte{{3}, {9}}}, {99, [][]byte{{3}, {9}}}} {
		p := &evidence.Payload{Timestamp: evidence.FormatTime(at(test.minutes)), Signers: []evidence.SignerInfo{{Algorithm: evidence.Ed25519, KeyID: key(1).id}}}
		got := h.Certificates(p)
		must.Hold(t, slices.EqualFunc(got, test.want, bytes.Equal), "at %d: certificates %v, want %v", test.minutes, got, test.want)
	}
	k := h.Key(key(1).id)
	must.Hold(t, k.From.Equal(at(0)) && !k.Ended(at(9)) && k.Certificates[0][0] == 3, "the key is another: %+v", k)
}

// TestNotTooManyCertificates: more certificates than a verifier looks at would prove nothing.
func TestNotTooManyCertificates(t *testing.T) {
	lists := [][][]byte{nil, nil, nil}
	for i := range 3 {
		for n := range maxCertificates {
			lists[i] = append(lists[i], []byte{byte(i), byte(n)})
		}
	}
	k := &Key{KeyID: key(1).id}
	second := &Key{KeyID: key(2).id}
	k.certify(lists[0], at(0))
	k.certify(lists[1], at(5))
	second.certify(lists[2], at(0))
	h := &History{byID: map[evidence.KeyID]*Key{k.KeyID: k, second.KeyID: second}}
	p := &evidence.Payload{Timestamp: evidence.FormatTime(at(1)), Signers: []evidence.SignerInfo{{KeyID: k.KeyID}, {KeyID: second.KeyID}}}
	must.Equal(t, len(h.Certificates(p)), 2*maxCertificates, "certificates of that time")
}

// TestCardsAreReplaced: the card that the log names last counts, and one event about certificates leaves it.
func TestCardsAreReplaced(t *testing.T) {
	first, again, third := registered(0, key(1)), registered(5, key(1)), registered(6, key(1))
	first.body.Card, again.body.Card = evidence.DigestOf([]byte("1")), evidence.DigestOf([]byte("2"))
	third.body.Certificates = [][]byte{{1}}
	records := chain(t, []told{first, again, third}, nil)
	for n, want := range []evidence.Digest{first.body.Card, again.body.Card, again.body.Card} {
		h := must.Get(ReadHistory(records[:n+1]))(t)
		k := h.Key(key(1).id)
		must.Hold(t, k.Card == want && k.CardRecord == records[min(n, 1)].Payload.RecordID, "after %d events: %s of %s", n+1, k.Card, k.CardRecord)
	}
	c := read(t, first, again, third).Key(key(1).id).Certificates
	must.Hold(t, len(c) == 1, "certificates %v", c)
	must.Equal(t, read(t, first, registered(9, key(-1))).Key(key(1).id).Card, first.body.Card)
}

// FuzzApply applies any response as the second event.
func FuzzApply(f *testing.F) {
	for _, e := range []told{rotated(1, key(1), key(2)), retired(1, key(1), at(1)), revoked(1, key(1), at(1)), registered(1, key(-1))} {
		response := must.Get(operator.Encode(e.body))(f)
		f.Add([]byte(response))
	}
	first := chain(f, []told{registered(0, key(1))}, nil)[0]
	f.Fuzz(func(t *testing.T, response []byte) {
		h := NewHistory()
		must.Do(t, h.Apply(first))
		r := &evidence.Record{Payload: evidence.Payload{ActionType: evidence.KeyEvent, AgentID: "operator", Timestamp: evidence.FormatTime(at(1)),
			ChainID: operator.KeysChain, ChainPosition: 2, PreviousRecord: first.Digest, Response: response}}
		if h.Apply(r) != nil {
			return
		}
		for _, k := range h.Keys() {
			must.Hold(t, k.Until.IsZero() || !k.Until.Before(k.From), "it ends before it begins: %+v", k)
			must.Hold(t, k.With.IsZero() || h.Key(k.With).With == k.KeyID, "only one key of the pair names the other: %+v", k)
		}
	})
}

// TestClockSetBack: an end that was logged when it took effect is final, even if the clock is set back later.
func TestClockSetBack(t *testing.T) {
	h := read(t, registered(0, key(1)), retired(20, key(1), at(20)))
	k := h.Key(key(1).id)
	must.Hold(t, k.Ended(at(10)) && len(h.Active(evidence.RoleAgent, "a", at(10))) == 0, "a retired key is active again after the clock was set back")
	must.Want(t, h.Admit(&act(t, "a", key(1)).Payload, at(10)), ErrEnded)
	for what, next := range map[string]told{"rotated": rotated(10, key(1), key(2)), "registered": registered(10, key(2))} {
		h := read(t, registered(0, key(1)), retired(20, key(1), at(20)), next)
		k := h.Key(key(1).id)
		must.Hold(t, k.Until.Equal(at(20)) && h.Key(key(2).id) != nil, "%s after the clock was set back: the earlier key ended at %s", what, k.Until)
	}
	h = read(t, registered(0, key(1)), retired(0, key(1), at(20)))
	k = h.Key(key(1).id)
	must.Hold(t, !k.Ended(at(19)) && k.Ended(at(20)), "an announced end does not take effect at its announced time")
}

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
		must.Hold(t, errors.Is(err, tt.want) && (tt.want != nil || err == nil), "%s: %v, want %v", name, err, tt.want)
	}
}

func TestCheckOwned(t *testing.T) {
	f := key(1)
	mine := registered(0, f)
	mine.body.Custody = operator.CustodyOperator
	must.Do(t, read(t, registered(0, f)).CheckOwned(act(t, "a", f), at(1)))
	for name, events := range map[string][]told{"nobody's": nil, "the operator's": {mine}} {
		err := read(t, events...).CheckOwned(act(t, "a", f), at(1))
		must.Hold(t, errors.Is(err, ErrForeign), "%s key: %v", name, err)
	}
	forged := act(t, "a", f)
	forged.Signatures[0][5] ^= 1
	must.Want(t, read(t, registered(0, f)).CheckOwned(forged, at(1)), evidence.ErrSignature)
	must.Want(t, read(t, registered(0, f), retired(1, f, at(1))).CheckOwned(act(t, "a", f), at(1)), ErrEnded)
}

// TestTrustDemandsBothSignatures: if the second key came later, the trust file allows the first key alone until then. If
// it came first, never. Without a second key, the actor signs alone.
func TestTrustDemandsBothSignatures(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	config := Config{Files: filestore.NewFolder(t.TempDir()), Now: func() time.Time { return at }}
	ring := must.Get(NewRing(config))(t)
	for _, k := range []struct {
		name      string
		algorithm evidence.Algorithm
	}{{"alone", evidence.ES256}, {"later", evidence.Ed25519}, {"later", evidence.MLDSA65}, {"first", evidence.MLDSA65}, {"first", evidence.ES256}} {
		must.Get(ring.Create(t.Context(), evidence.RoleAgent, k.name, k.algorithm, nil))(t)
	}
	held := must.Get(ring.Keys(t.Context()))(t)
	trusted := Trusted(held, NewHistory())
	must.Need(t, len(trusted) == 5, "%d keys", len(trusted))
	of := map[string]trust.Key{}
	for _, k := range trusted {
		of[k.Name+" "+string(k.Algorithm)] = k
	}
	k := of["alone ES256"]
	must.Hold(t, k.With == nil && k.WithFrom.IsZero(), "%+v", k)
	for _, tt := range []struct {
		key, with string
		from      time.Time
	}{
		{"later Ed25519", "later ML-DSA-65", at.Add(Settling)}, {"later ML-DSA-65", "later Ed25519", time.Time{}},
		{"first ES256", "first ML-DSA-65", time.Time{}}, {"first ML-DSA-65", "first ES256", time.Time{}},
	} {
		k := of[tt.key]
		must.Hold(t, len(k.With) == 1 && k.With[0] == of[tt.with].KeyID && k.WithFrom.Equal(tt.from), "%s: signs with %v from %v", tt.key, k.With, k.WithFrom)
	}
}
