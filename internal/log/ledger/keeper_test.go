package ledger_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/storage"
	expect "jurat/internal/test/must"
)

// keeper is a Keeper in memory. It can fail, and reads the log at each call.
type keeper struct {
	store  storage.Store
	kept   map[evidence.Digest][]evidence.Disclosure
	early  []bool // of each call of Keep: whether the record was in the log already
	broken error
	leave  func()   // called at the end of Keep, if set
	always []string // what it has sealed apart without being told
}

func (k *keeper) Keep(ctx context.Context, r *evidence.Record) error {
	_, err := k.store.ByDigest(context.Background(), r.Digest)
	k.early = append(k.early, errors.Is(err, ledger.ErrNotFound))
	k.kept[r.Digest] = r.Disclosures // a keeper may fail when it has half done it
	if k.leave != nil {
		k.leave()
	}
	return k.broken
}

func (k *keeper) Apart(ctx context.Context, draft *evidence.Draft) (*evidence.Draft, error) {
	return draft.SealingApart(nil, k.always...), nil
}

func (k *keeper) Forget(ctx context.Context, r *evidence.Record) error {
	if ctx.Err() == nil {
		delete(k.kept, r.Digest)
	}
	return ctx.Err()
}

func keeping(t *testing.T, store storage.Store) (*ledger.Ledger, *keeper) {
	t.Helper()
	c, k := config(store), &keeper{store: store, kept: map[evidence.Digest][]evidence.Disclosure{}}
	c.Apart = k
	return must(ledger.Create(t.Context(), c)), k
}

func TestKeptBeforeAppended(t *testing.T) {
	l, k := keeping(t, fresh(t))
	r := must(l.Seal(t.Context(), act("").SealingApart(nil, "/prompt", "/response"), actor))
	expect.Hold(t, len(r.Disclosures) == 2 && slices.Equal(k.early, []bool{true}) && len(k.kept[r.Digest]) == 2,
		"disclosed %v, kept %v, before it was appended: %v", r.Disclosures, k.kept, k.early)
	if seal(t, l, ""); len(k.early) != 1 {
		t.Error("the keeper was called for a record that seals nothing apart")
	}
}

// TestNothingAppendedThatIsNotKept checks that no record is appended whose values were not kept.
func TestNothingAppendedThatIsNotKept(t *testing.T) {
	l, k := keeping(t, fresh(t))
	for n, broken := range []error{errFault, nil} {
		k.broken = broken
		fails(t, broken)(l.Seal(t.Context(), act("").SealingApart(nil, "/prompt"), actor))
		size := must(l.Size(t.Context()))
		expect.Hold(t, size == int64(n) && len(k.kept) == n, "%d records in the log, %v kept", size, k.kept)
	}
}

// TestNobodyWaitsForAKeeperThatPanics: the call that waits for it ends.
func TestNobodyWaitsForAKeeperThatPanics(t *testing.T) {
	l, k := keeping(t, fresh(t))
	k.leave = func() { panic(errFault) }
	fails(t, errFault)(l.Seal(t.Context(), act("").SealingApart(nil, "/prompt"), actor))
	k.leave = nil
	must(l.Seal(t.Context(), act("").SealingApart(nil, "/prompt"), actor))
	expect.Equal(t, must(l.Size(t.Context())), 1)
}

// A signing is a signer that calls first before it signs.
type signing struct {
	evidence.Signer
	first func() error
}

func (s signing) Sign(payload []byte) ([]byte, error) {
	if err := s.first(); err != nil {
		return nil, err
	}
	return s.Signer.Sign(payload)
}

// A stamping is a stamper that calls first before it stamps.
type stamping struct{ first func() error }

func (s stamping) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	if err := s.first(); err != nil {
		return ledger.Stamped{}, err
	}
	return clock{}.Stamp(ctx, imprint)
}

// TestKeptWhileStamped: the values of a record are kept while it is stamped, not before it is signed and judged. If stamping fails, they are
// removed, and nothing is in the log.
func TestKeptWhileStamped(t *testing.T) {
	good, bad := func() error { return nil }, func() error { return fmt.Errorf("%w: %w", errFault, ledger.ErrDamaged) }
	for name, test := range map[string]struct {
		more        string
		sign, stamp func() error
		err         error
		keeps       int // calls of Keep
	}{
		"stamped":     {"", good, good, nil, 1},
		"not signed":  {"", bad, good, errFault, 0},
		"wrong link":  {`,"chain_id":"c","chain_position":2`, good, good, ledger.ErrContradicts, 0},
		"not stamped": {"", good, bad, errFault, 1},
		"panic":       {"", good, func() error { panic(errFault) }, errFault, 1},
	} {
		t.Run(name, func(t *testing.T) {
			began := make(chan struct{})
			c, k := config(fresh(t)), &keeper{kept: map[evidence.Digest][]evidence.Disclosure{}, leave: func() { close(began) }}
			k.store, c.Apart, c.Stamper = c.Store, k, stamping{func() error { <-began; return test.stamp() }}
			l := must(ledger.Create(t.Context(), c))
			expect.Want(t, fault.Guard(func() error {
				return only(l.Seal(t.Context(), act(test.more).SealingApart(nil, "/prompt"), []evidence.Signer{signing{actor[0], test.sign}}))
			}), test.err)
			expect.Equal(t, len(k.early), test.keeps)
			size := must(l.Size(t.Context()))
			expect.Equal(t, size == 1, test.err == nil)
			expect.Equal(t, int64(len(k.kept)), size)
		})
	}
}

// TestForgottenThoughTheCallerHasLeft checks that the values of a record that was not appended are removed, even if
// the caller's context has ended.
func TestForgottenThoughTheCallerHasLeft(t *testing.T) {
	l, k := keeping(t, fresh(t))
	ctx, leave := context.WithCancel(t.Context())
	k.leave = leave
	fails(t, context.Canceled)(l.Seal(ctx, act("").SealingApart(nil, "/prompt"), actor))
	size := must(l.Size(t.Context()))
	expect.Hold(t, size == 0 && len(k.kept) == 0, "%d records in the log, %v kept", size, k.kept)
}

// TestKeptAsTheLogHasIt fails the append. Values of a record that is not in the log are removed; values of a record
// that may be in it stay.
func TestKeptAsTheLogHasIt(t *testing.T) {
	for _, f := range []faulty{{early: true}, {stored: false}, {stored: true}, {stored: false, blind: true}, {stored: true, blind: true}} {
		t.Run(fmt.Sprintf("early %v, stored %v, blind %v", f.early, f.stored, f.blind), func(t *testing.T) {
			f.Store = fresh(t)
			l, k := keeping(t, &f)
			f.n = 1
			_, err := l.Seal(t.Context(), act("").SealingApart(nil, "/prompt"), actor)
			expect.Need(t, (err == nil) == (f.stored && !f.blind), "%v", err)
			expect.Equal(t, len(k.kept) == 1, f.stored || f.blind, "kept", k.kept, "want some values")
		})
	}
}

// TestSealedApartAgain seals a draft twice: the values in the log stay, the others are removed.
func TestSealedApartAgain(t *testing.T) {
	l, k := keeping(t, fresh(t))
	draft := act(`,"record_id":"01890000-0000-7000-8000-000000000001"`)
	r := must(l.Seal(t.Context(), draft.SealingApart(nil, "/prompt"), actor))
	fails(t, ledger.ErrDuplicate)(l.Seal(t.Context(), draft.SealingApart(nil, "/prompt"), actor))
	expect.Hold(t, len(k.kept) == 1 && len(k.kept[r.Digest]) == 1, "kept %v", k.kept)
}

// garbled fails after it has stored, and returns damaged rows from then on.
type garbled struct{ storage.Store }

func (g garbled) Append(ctx context.Context, plan storage.Plan) error {
	return errors.Join(g.Store.Append(ctx, plan), errFault)
}

func (g garbled) ByRecordID(ctx context.Context, id string) (storage.Row, error) {
	row, err := g.Store.ByRecordID(ctx, id)
	row.Payload = append([]byte(" "), row.Payload...)
	return row, err
}

// TestKeptThoughTheLogIsDamaged checks that the values of a stored record that cannot be read are not removed.
func TestKeptThoughTheLogIsDamaged(t *testing.T) {
	l, k := keeping(t, garbled{fresh(t)})
	fails(t, ledger.ErrDamaged)(l.Seal(t.Context(), act("").SealingApart(nil, "/prompt"), actor))
	expect.Equal(t, len(k.kept), 1)
}

// TestKeeperIsAsked checks that a member that must always be sealed apart is sealed apart for every caller, and is
// refused if it is open.
func TestKeeperIsAsked(t *testing.T) {
	l, k := keeping(t, fresh(t))
	k.always = []string{"/prompt"}
	r := must(l.Seal(t.Context(), act("").SealingApart(nil, "/response"), actor))
	expect.Hold(t, slices.Equal(r.Payload.SealedApart, []string{"/prompt", "/response"}) && len(k.kept[r.Digest]) == 2,
		"sealed apart %v, kept %v", r.Payload.SealedApart, k.kept)
	k.always = nil
	a := newOwner(t, "a", false)
	a.register(t, l)
	open := a.says(t, "")
	k.always = []string{"/prompt"}
	var field *evidence.FieldError
	_, err := l.Accept(t.Context(), open)
	expect.Hold(t, errors.As(err, &field) && field.Field == "prompt", "signed open: %v", err)
	k.always = nil
	fails(t, nil)(l.Accept(t.Context(), open))
}

// An owner holds keys that the ledger's operator does not have.
type owner struct {
	name    string
	signers []evidence.Signer
	public  [][]byte
}

func newOwner(t *testing.T, name string, pair bool) *owner {
	t.Helper()
	o := &owner{name: name}
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	o.add(must(evidence.NewSigner(private, nil)), must(evidence.MarshalPublicKey(private.Public())))
	if pair {
		var seed [32]byte
		rand.Read(seed[:])
		second := evidence.NewMLDSA65(&seed)
		o.add(must(evidence.NewSigner(second, nil)), must(evidence.MarshalPublicKey(second.Public())))
	}
	return o
}

func (o *owner) add(s evidence.Signer, public []byte) {
	o.signers, o.public = append(o.signers, s), append(o.public, public)
}

// event returns the key event for the owner's n-th key.
func (o *owner) event(event operator.KeyChange, n int, role evidence.Role) operator.KeyEventBody {
	b := operator.KeyEventBody{Event: event, Algorithm: o.signers[n].Info().Algorithm, KeyID: o.signers[n].Info().KeyID, Name: o.name,
		Role: role, Custody: operator.CustodyOwner, By: "w", Reason: "r", From: time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)}
	if event == operator.KeyRegistered {
		b.PublicKey = o.public[n]
	}
	return b
}

// tell seals key events. It seals the last of an owner's keys first.
func tell(l *ledger.Ledger, t *testing.T, events ...operator.KeyEventBody) error {
	t.Helper()
	_, err := l.SealNext(t.Context(), operator.KeysChain, actor, func([]*evidence.Record) ([]evidence.Payload, error) {
		var payloads []evidence.Payload
		for _, e := range events {
			payloads = append(payloads, evidence.Payload{ActionType: evidence.KeyEvent, AgentID: "operator", Response: must(operator.Encode(e))})
		}
		return payloads, nil
	})
	return err
}

func (o *owner) register(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	var events []operator.KeyEventBody
	for n := len(o.signers) - 1; n >= 0; n-- {
		events = append(events, o.event(operator.KeyRegistered, n, evidence.RoleAgent))
	}
	succeeds(t, tell(l, t, events...))
}

// says returns a record of the owner's agent, signed with the owner's keys.
func (o *owner) says(t *testing.T, more string) *evidence.Record {
	t.Helper()
	draft := must(evidence.ParseDraft([]byte(`{"agent_id":"` + o.name + `","request_id":"r","timestamp":"2000-01-01T00:00:00Z","model":"m",
		"model_version":"v","prompt":"p","response":"r","parameters":{}` + more + `}`)))
	return o.sign(t, draft)
}

func (o *owner) sign(t *testing.T, draft *evidence.Draft) *evidence.Record {
	t.Helper()
	now := time.Now()
	return must(draft.Seal(evidence.Sealing{Signers: o.signers, Time: now, RecordID: must(evidence.NewRecordID(now, rand.Reader))}))
}

func TestAccept(t *testing.T) {
	for name, pair := range map[string]bool{"one key": false, "two keys": true} {
		t.Run(name, func(t *testing.T) {
			l := folder(t.TempDir()).create(t)
			o := newOwner(t, "a", pair)
			o.register(t, l)
			signed := o.says(t, "")
			accepted := must(l.Accept(t.Context(), signed))
			expect.Hold(t, string(accepted.Canonical()) == string(signed.Canonical()) && len(accepted.Timestamps) == 1 && len(signed.Timestamps) == 0,
				"accepted %+v of %+v", accepted, signed)
			expect.Give(l.Index(t.Context(), signed))(t, int64(len(o.signers)))
			var duplicate *ledger.DuplicateError
			_, err := l.Accept(t.Context(), signed)
			expect.Hold(t, errors.As(err, &duplicate) && duplicate.Field == "digest", "a second time: %v", err)
			same := o.says(t, `,"context":"another","record_id":"`+signed.Payload.RecordID+`"`)
			_, err = l.Accept(t.Context(), same)
			expect.Hold(t, errors.As(err, &duplicate) && duplicate.Field == "record_id", "another with its id: %v", err)
			fails(t, nil)(l.Accept(t.Context(), o.says(t, "")))
			counted := seqs(t, l.OfActor(t.Context(), evidence.RoleAgent, o.name), actorSeq)
			expect.Hold(t, slices.Equal(counted, upTo(2)), "what was refused is counted: %v", counted)
			fails(t, keys.ErrForeign)(l.Seal(t.Context(), must(evidence.ParseDraft(signedDraft(o.name))), actor))
		})
	}
}

func signedDraft(name string) []byte {
	return []byte(`{"agent_id":"` + name + `","request_id":"r","timestamp":"2000-01-01T00:00:00Z","model":"m",
		"model_version":"v","prompt":"p","response":"r","parameters":{}}`)
}

// TestAcceptRefuses checks that a refused record from elsewhere leaves no trace.
func TestAcceptRefuses(t *testing.T) {
	l, _ := alone(t)
	a, b, pair, gone, revoked := newOwner(t, "a", false), newOwner(t, "b", false), newOwner(t, "pair", true), newOwner(t, "gone", false), newOwner(t, "revoked", false)
	reviewer, nobody := newOwner(t, "a", false), newOwner(t, "nobody", false)
	for _, o := range []*owner{a, b, pair, gone, revoked} {
		o.register(t, l)
	}
	succeeds(t, tell(l, t, reviewer.event(operator.KeyRegistered, 0, evidence.RoleReviewer), gone.event(operator.KeyRetired, 0, evidence.RoleAgent),
		revoked.event(operator.KeyRevoked, 0, evidence.RoleAgent)))
	as := func(name string, o *owner) *owner { return &owner{name, o.signers, o.public} }
	only := func(o *owner, n int) *owner { return &owner{o.name, o.signers[n : n+1], o.public[n : n+1]} }
	changed := func(r *evidence.Record, change func(*evidence.Record)) *evidence.Record {
		change(r)
		return r
	}
	size := must(l.Size(t.Context()))
	for name, tt := range map[string]struct {
		record *evidence.Record
		want   error  // nil: any
		says   string // in the error
	}{
		"a key registered for another name": {as("a", b).says(t, ""), keys.ErrForeign, `is the key of agent "b", not of agent "a"`},
		"a key registered for another role": {reviewer.says(t, ""), keys.ErrForeign, `is the key of reviewer "a", not of agent "a"`},
		"a key that is not registered":      {nobody.says(t, ""), keys.ErrForeign, "no owner has registered the key"},
		"a name with another key":           {as("a", nobody).says(t, ""), keys.ErrForeign, "no owner has registered the key"},
		"a retired key":                     {gone.says(t, ""), keys.ErrEnded, "is retired at"},
		"a revoked key":                     {revoked.says(t, ""), keys.ErrEnded, "is revoked from"},
		"without the second signature":      {only(pair, 0).says(t, ""), keys.ErrIncomplete, "has not signed"},
		"without the first signature":       {only(pair, 1).says(t, ""), keys.ErrIncomplete, "has not signed"},
		"a second signature taken away":     {changed(pair.says(t, ""), func(r *evidence.Record) { r.Signatures = r.Signatures[:1] }), ledger.ErrRefused, "2 signers, but there are 1"},
		"a signature of something else":     {changed(a.says(t, ""), func(r *evidence.Record) { r.Signatures = a.says(t, "").Signatures }), evidence.ErrSignature, "signature 0"},
		"no signature in DER":               {changed(a.says(t, ""), func(r *evidence.Record) { r.Signatures = [][]byte{{1, 2, 3}} }), ledger.ErrRefused, "not in DER"},
		"a wrong second signature":          {changed(pair.says(t, ""), func(r *evidence.Record) { r.Signatures[1][7] ^= 1 }), evidence.ErrSignature, "signature 1"},
		"a time stamp": {changed(a.says(t, ""), func(r *evidence.Record) {
			r.Timestamps = []evidence.Timestamp{{Kind: evidence.RFC3161, Token: []byte{1}}}
		}), ledger.ErrRefused, "brings time stamps"},
		"a place in a log":                   {changed(a.says(t, ""), func(r *evidence.Record) { r.Log = &evidence.LogProof{} }), ledger.ErrRefused, "brings a place in a log"},
		"certificates":                       {changed(a.says(t, ""), func(r *evidence.Record) { r.Certificates = [][]byte{{1}} }), ledger.ErrRefused, "brings certificates"},
		"a time far in the future":           {a.says(t, `,"metadata":{}`), nil, ""},
		"a juror's act":                      {as("a", a).sign(t, must(evidence.ParseDraft([]byte(jurorsAct)))), keys.ErrForeign, `not of juror "a"`},
		"an operator's act in the key chain": {a.sign(t, must(evidence.ParseDraft([]byte(operatorsAct)))), keys.ErrForeign, `not of operator "a"`},
	} {
		if name == "a time far in the future" {
			late := evidence.FormatTime(time.Now().Add(6 * time.Minute))
			tt.record = a.sign(t, must(evidence.ParseDraft([]byte(strings.Replace(string(signedDraft("a")), "2000-01-01T00:00:00Z", late, 1)))))
			tt.says = "field timestamp"
		}
		_, err := l.Accept(t.Context(), tt.record)
		expect.Hold(t, err != nil && (tt.want == nil || errors.Is(err, tt.want)) && strings.Contains(err.Error(), tt.says),
			"%s: %v, want %v with %q", name, err, tt.want, tt.says)
	}
	expect.Equal(t, must(l.Size(t.Context())), size)
	soon := evidence.FormatTime(time.Now().Add(4 * time.Minute))
	if _, err := l.Accept(t.Context(), a.sign(t, must(evidence.ParseDraft([]byte(strings.Replace(string(signedDraft("a")), "2000-01-01T00:00:00Z", soon, 1)))))); err != nil {
		t.Errorf("a little in the future: %v", err)
	}
}

const (
	jurorsAct = `{"action_type":"evaluation","agent_id":"a","request_id":"r","timestamp":"2000-01-01T00:00:00Z","model":"m","model_version":"v",
		"parameters":{},"response":{},"chain_id":"c","chain_position":2,"case":"sha256:0000000000000000000000000000000000000000000000000000000000000001",
		"previous_record":"sha256:0000000000000000000000000000000000000000000000000000000000000001",
		"saw":["sha256:0000000000000000000000000000000000000000000000000000000000000001"],
		"request_digest":"sha256:0000000000000000000000000000000000000000000000000000000000000001"}`
	operatorsAct = `{"action_type":"key_event","agent_id":"a","timestamp":"2000-01-01T00:00:00Z","chain_id":"operator-keys","chain_position":1,"response":{}}`
)

// TestAcceptHighS checks that Accept replaces a signature with a high S by its low-S form before stamping and logging.
func TestAcceptHighS(t *testing.T) {
	l, _ := alone(t)
	a := newOwner(t, "a", false)
	a.register(t, l)
	signed := a.says(t, "")
	low := signed.Signatures[0]
	var parts struct{ R, S *big.Int }
	must(asn1.Unmarshal(low, &parts))
	parts.S.Sub(elliptic.P256().Params().N, parts.S)
	high := must(asn1.Marshal(parts))
	signed.Signatures = [][]byte{high}
	accepted := must(l.Accept(t.Context(), signed))
	expect.Hold(t, string(accepted.Signatures[0]) == string(low) && string(signed.Signatures[0]) == string(high),
		"accepted with %x, given with %x; want %x and %x", accepted.Signatures[0], signed.Signatures[0], low, high)
	signed.Signatures = [][]byte{low}
	fails(t, ledger.ErrDuplicate)(l.Accept(t.Context(), signed))
}

// TestNextAgentThatDeceives checks that no way into the log admits a next agent whose name looks like another one.
func TestNextAgentThatDeceives(t *testing.T) {
	l := folder(t.TempDir()).create(t)
	a := newOwner(t, "a", false)
	a.register(t, l)
	const chained = `,"chain_id":"c","chain_position":1`
	for _, next := range []string{`b\u200b`, "."} {
		_, accepting := l.Accept(t.Context(), a.says(t, chained+`,"next_agent":"`+next+`"`))
		_, sealing := said(t, l, "b", chained+`,"next_agent":"`+next+`"`)
		for _, err := range []error{accepting, sealing} {
			var refused *evidence.FieldError
			expect.Hold(t, errors.As(err, &refused) && refused.Field == "next_agent", "%s: %v", next, err)
		}
	}
	fails(t, nil)(l.Accept(t.Context(), a.says(t, chained+`,"next_agent":"b"`)))
}

// TestKeyEndsBetween checks that a key that ends while a record is being stamped is refused when the record is
// appended.
func TestKeyEndsBetween(t *testing.T) {
	store := folder(t.TempDir())
	store.create(t)
	elsewhere := must(store.open(t)) // as in another process
	a := newOwner(t, "a", false)
	l := must(store.open(t))
	a.register(t, l)
	must(l.Accept(t.Context(), a.says(t, "")))
	succeeds(t, tell(elsewhere, t, a.event(operator.KeyRevoked, 0, evidence.RoleAgent)))
	fails(t, keys.ErrEnded)(l.Seal(t.Context(), must(evidence.ParseDraft(signedDraft("a"))), a.signers))
}

// TestSealNext checks that each act follows the one before it, however many callers add to the chain.
func TestSealNext(t *testing.T) {
	f := folder(t.TempDir())
	f.create(t)
	const each = 6
	done := make(chan error)
	for range 2 {
		l := must(f.open(t))
		go func() {
			for range each {
				o := newOwner(t, "agent "+must(evidence.NewRecordID(time.Now(), rand.Reader)), false)
				if err := tell(l, t, o.event(operator.KeyRegistered, 0, evidence.RoleAgent), o.event(operator.KeyRetired, 0, evidence.RoleAgent)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 2 {
		expect.Want(t, <-done, nil)
	}
	l := must(f.open(t))
	history, err := l.Keys(t.Context()) // reads the whole chain by its rules
	if err != nil || history.Count() != 4*each {
		t.Errorf("%d events: %v", history.Count(), err)
	}
	stop := errors.New("stop")
	fails(t, stop)(l.SealNext(t.Context(), operator.KeysChain, actor, func([]*evidence.Record) ([]evidence.Payload, error) { return nil, stop }))
}

// TestLogRefusesEvents checks that a key event that does not fit is refused, whichever way it comes.
func TestLogRefusesEvents(t *testing.T) {
	l, _ := alone(t)
	a := newOwner(t, "a", false)
	wantError(t, tell(l, t, a.event(operator.KeyRetired, 0, evidence.RoleAgent)), keys.ErrEvent)
	a.register(t, l)
	wantError(t, tell(l, t, a.event(operator.KeyRegistered, 0, evidence.RoleAgent)), keys.ErrEvent)
	for name, doc := range map[string]string{
		"beside the chain": strings.Replace(operatorsAct, `"agent_id":"a"`, `"agent_id":"operator"`, 1),
		"outside of it":    strings.Replace(strings.Replace(operatorsAct, `"agent_id":"a"`, `"agent_id":"operator"`, 1), `"chain_id":"operator-keys","chain_position":1,`, "", 1),
		"another act":      `{"action_type":"erasure","agent_id":"operator","timestamp":"2000-01-01T00:00:00Z","chain_id":"operator-keys","response":{}}`,
	} {
		expect.Fail(t, keys.ErrEvent, name)(l.Seal(t.Context(), must(evidence.ParseDraft([]byte(doc))), actor))
	}
	expect.Equal(t, must(l.Size(t.Context())), 1)
}

// apart returns a record of the owner's agent. The owner has sealed its prompt apart, and alone keeps the value.
func (o *owner) apart(t *testing.T) *evidence.Record {
	t.Helper()
	now := time.Now()
	r := must(must(evidence.ParseDraft(signedDraft(o.name))).SealingApart(nil, "/prompt").Seal(evidence.Sealing{Signers: o.signers, Time: now,
		RecordID: must(evidence.NewRecordID(now, rand.Reader)), Random: rand.Reader}))
	r.Disclosures = nil
	return r
}

// meanwhile is a clock that runs another function first, once.
type meanwhile struct{ do func() }

func (m *meanwhile) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return clock{}.Stamp(context.WithoutCancel(ctx), imprint)
}

// TestAcceptApart checks that the note about a value sealed apart comes before the record. A failed Accept does not
// remove the note, because a concurrent Accept of the same record may rely on it.
func TestAcceptApart(t *testing.T) {
	store, between := fresh(t), &meanwhile{}
	k := &keeper{store: store, kept: map[evidence.Digest][]evidence.Disclosure{}}
	c := config(store)
	c.Apart, c.Stamper = k, between
	l := must(ledger.Create(t.Context(), c))
	o := newOwner(t, "a", false)
	o.register(t, l)
	r := o.apart(t)
	ctx, cancel := context.WithCancel(t.Context())
	between.do = func() {
		fails(t, nil)(l.Accept(t.Context(), r))
		cancel()
	}
	fails(t, context.Canceled)(l.Accept(ctx, r))
	_, noted := k.kept[r.Digest]
	expect.Hold(t, noted && k.early[0], "noted: %v, before the record was in the log: %v", noted, k.early)
	_, err := l.Accept(t.Context(), r)
	expect.Hold(t, errors.Is(err, ledger.ErrDuplicate) && len(k.kept) == 1, "again: %v, noted: %v", err, k.kept)
	k.broken = errFault
	fails(t, errFault)(l.Accept(t.Context(), o.apart(t)))
	expect.Equal(t, must(l.Size(t.Context())), 2)
}
