package keys

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/verify/trust"
)

var (
	// ErrEvent says that a key event contradicts the events before it.
	ErrEvent = errors.New("the event does not fit what the log says of keys")
	// ErrEnded says that a key was replaced, retired or revoked, and signs no longer.
	ErrEnded = errors.New("the key has ended")
	// ErrForeign says that a key may not sign for this actor in this role.
	ErrForeign = errors.New("the key belongs to another actor")
	// ErrIncomplete says that only one of two keys that sign together has signed.
	ErrIncomplete = errors.New("a signature is missing")
)

// Settling is a period of grace for readers. Records that were in progress when two keys became a pair or a key ended, or that were stamped
// by another clock, still count this long. The log itself accepts no late record.
const Settling = time.Minute

// Skew is a tolerance for readers, too. The clock that stamps a record may be this far behind the clock that dates the key. So a record
// that a new key signs at once may have a time stamp before the key's beginning.
const Skew = 5 * time.Minute

// A Key is a public key that the log names. Callers must not change its fields.
type Key struct {
	Name         string
	Role         evidence.Role
	Algorithm    evidence.Algorithm
	KeyID        evidence.KeyID
	PublicKey    []byte   // DER SubjectPublicKeyInfo
	Certificates [][]byte // DER: the key's own, then those above it, as they were registered last
	Custody      string   // operator.CustodyOwner or operator.CustodyOperator

	Card       evidence.Digest // the A2A agent card that belongs to the key; zero: the log names none
	CardRecord string          // the id of the record that names it

	From time.Time

	Until   time.Time // the end of the key; zero: it has none yet
	Sudden  bool      // the key ended at once, when the event was logged; records in progress had no time to settle
	Revoked time.Time // signatures from then on do not count; zero: it is not revoked

	With     evidence.KeyID // the key that signs together with this one; zero: it signs alone
	WithFrom time.Time      // the time since when they sign together; zero: always

	replaced   bool
	registered []certified // every list of certificates, in the order of the log
}

// A certified is a list of certificates, and the time from which the log names it for a key.
type certified struct {
	from         time.Time
	certificates [][]byte
}

// Ended reports whether the key has ended at a time. A sudden end is final: it holds even if the clock was set back afterwards.
func (k *Key) Ended(at time.Time) bool {
	return !k.Revoked.IsZero() || k.Sudden || !k.Until.IsZero() && !at.Before(k.Until)
}

// end sets the end of a key, unless the key has an earlier end.
func (k *Key) end(at time.Time, sudden bool) {
	if at.Before(k.From) {
		at = k.From
	}
	if k.Until.IsZero() || at.Before(k.Until) {
		k.Until, k.Sudden = at, sudden
	}
}

// A History is the state of all keys that the log names. Changing it is not safe for concurrent use.
type History struct {
	keys   []*Key // in the order of the log
	byID   map[evidence.KeyID]*Key
	latest map[place]*Key
	count  int64
	last   *evidence.Record
}

// NewHistory returns an empty history.
func NewHistory() *History {
	return &History{byID: map[evidence.KeyID]*Key{}, latest: map[place]*Key{}}
}

// ReadHistory reads a whole chain of key events, in the order of the log. Its errors have ErrEvent in their chain.
func ReadHistory(chain []*evidence.Record) (*History, error) {
	h := NewHistory()
	for _, r := range chain {
		if err := h.Apply(r); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Clone returns an independent copy.
func (h *History) Clone() *History {
	c := NewHistory()
	c.count, c.last = h.count, h.last
	for _, k := range h.keys { // an actor's latest key comes after those before it
		c.keep(new(*k))
	}
	return c
}

// Count returns the number of acts in the history.
func (h *History) Count() int64 { return h.count }

// Keys returns every key, in the order in which the log first names them.
func (h *History) Keys() []*Key { return h.keys }

// Key returns the key with this id, or nil.
func (h *History) Key(id evidence.KeyID) *Key { return h.byID[id] }

// Current returns an actor's latest key of this algorithm's kind, or nil. The key may have ended.
func (h *History) Current(role evidence.Role, name string, algorithm evidence.Algorithm) *Key {
	return h.latest[placeOf(role, name, algorithm)]
}

// Latest returns an actor's latest keys, the first before the second. They may have ended.
func (h *History) Latest(role evidence.Role, name string) []*Key {
	both := []*Key{h.latest[place{role, name, false}], h.latest[place{role, name, true}]}
	return slices.DeleteFunc(both, func(k *Key) bool { return k == nil })
}

// Active returns the keys that sign for an actor at a time, the first before the second.
func (h *History) Active(role evidence.Role, name string, at time.Time) []*Key {
	return slices.DeleteFunc(h.Latest(role, name), func(k *Key) bool { return k.Ended(at) })
}

// Apply adds the next act of the chain. After an error, which has ErrEvent in its chain, the caller must discard the history.
func (h *History) Apply(r *evidence.Record) error {
	if err := h.apply(r); err != nil {
		return fmt.Errorf("%w: record %s: %w", ErrEvent, r.Payload.RecordID, err)
	}
	return nil
}

func (h *History) apply(r *evidence.Record) error {
	p := &r.Payload
	if p.ActionType != evidence.KeyEvent || p.ChainID != operator.KeysChain {
		return fmt.Errorf("%s in chain %q is not a key event in chain %q", p.ActionType, p.ChainID, operator.KeysChain)
	}
	previous := evidence.Digest{}
	if h.last != nil {
		previous = h.last.Digest
	}
	if p.PreviousRecord != previous || p.ChainPosition != h.count+1 {
		return fmt.Errorf("previous_record and chain_position do not match event %d after the previous one", h.count+1)
	}
	b, err := operator.Read[operator.KeyEventBody](p)
	if err != nil {
		return err
	}
	from, err := evidence.ParseTime(b.From)
	if err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if b.Reason == "" || b.By == "" {
		return errors.New("reason or by is empty")
	}
	switch b.Event {
	case operator.KeyRegistered:
		err = h.register(b, from)
	case operator.KeyRotated:
		err = h.rotate(b, from)
	case operator.KeyRetired, operator.KeyRevoked:
		err = h.finish(b, from, p.Time())
	default:
		err = fmt.Errorf("unknown event %q", b.Event)
	}
	if k := h.byID[b.KeyID]; err == nil && !b.Card.IsZero() {
		k.Card, k.CardRecord = b.Card, p.RecordID
	}
	h.count, h.last = h.count+1, r
	return err
}

// register adds a key. An event that names a key of the actor again gives it other certificates, another card, or both.
func (h *History) register(b *operator.KeyEventBody, from time.Time) error {
	if err := checkAbout(b); err != nil {
		return err
	}
	if known := h.byID[b.KeyID]; known != nil && (len(b.Certificates) > 0 || !b.Card.IsZero()) {
		if err := known.is(b); err != nil {
			return err
		}
		if known.Ended(from) || !bytes.Equal(known.PublicKey, b.PublicKey) || !b.Replaces.IsZero() {
			return errors.New("the key has ended, or the event gives another public key, or it replaces a key")
		}
		if len(b.Certificates) > 0 {
			known.certify(b.Certificates, from)
		}
		return nil
	}
	if k := h.Current(b.Role, b.Name, b.Algorithm); k != nil && !k.Ended(from) {
		return fmt.Errorf("%s %q has the key %s already: rotate that key", b.Role, b.Name, k.KeyID)
	}
	return h.add(b, from)
}

// rotate replaces a key. The old key ends, and so does the key that signs together with it.
func (h *History) rotate(b *operator.KeyEventBody, from time.Time) error {
	old := h.byID[b.Replaces]
	if old == nil || old != h.Current(b.Role, b.Name, b.Algorithm) {
		return fmt.Errorf("the key %s is not the present key of %s %q", b.Replaces, b.Role, b.Name)
	}
	if old.Custody == operator.CustodyOwner && b.Custody != operator.CustodyOwner {
		return errors.New("the operator's key cannot replace an owner's")
	}
	if err := checkAbout(b); err != nil {
		return err
	}
	if from.Before(old.From) {
		return errors.New("the new key begins before the old one")
	}
	if !old.Ended(from) {
		h.endBoth(old, from, true)
	}
	old.replaced = true
	return h.add(b, from)
}

// finish retires or revokes a key. at is the time that the event's record claims.
func (h *History) finish(b *operator.KeyEventBody, from, at time.Time) error {
	k := h.byID[b.KeyID]
	if k == nil {
		return fmt.Errorf("the key %s is unknown", b.KeyID)
	}
	if err := k.is(b); err != nil {
		return err
	}
	if b.PublicKey != nil || b.Certificates != nil || b.Protection != nil || !b.Replaces.IsZero() || !b.Card.IsZero() {
		return errors.New("only events of new keys have public_key, certificates, protection, card and replaces")
	}
	if from.Before(k.From) {
		return fmt.Errorf("the key begins at %s, later than the event says", k.From.Format(time.RFC3339))
	}
	if b.Event == operator.KeyRetired {
		if k.Ended(from) {
			return errors.New("the key has ended already")
		}
		h.endBoth(k, from, !from.After(at))
		return nil
	}
	if !k.Revoked.IsZero() && !from.Before(k.Revoked) {
		return fmt.Errorf("the key is revoked from %s on already", k.Revoked.Format(time.RFC3339))
	}
	if from.After(at) {
		return errors.New("a revocation cannot begin in the future")
	}
	k.Revoked = from
	h.endBoth(k, at, true) // the other key is only ended: what both signed stands or falls with the revoked one
	return nil
}

// endBoth ends a key and the key that it signs together with.
func (h *History) endBoth(k *Key, at time.Time, sudden bool) {
	k.end(at, sudden)
	if other := h.byID[k.With]; other != nil {
		other.end(at, sudden)
	}
}

// is returns an error if an event does not describe this key.
func (k *Key) is(b *operator.KeyEventBody) error {
	if b.Name != k.Name || b.Role != k.Role || b.Algorithm != k.Algorithm || b.Custody != k.Custody {
		return fmt.Errorf("the key %s is the %s key of %s %q, held by the %s", k.KeyID, k.Algorithm, k.Role, k.Name, k.Custody)
	}
	return nil
}

// add adds a new key, and pairs it with the actor's other key.
func (h *History) add(b *operator.KeyEventBody, from time.Time) error {
	if h.byID[b.KeyID] != nil {
		return fmt.Errorf("the key %s is known already", b.KeyID)
	}
	if err := check(b); err != nil {
		return err
	}
	k := &Key{Name: b.Name, Role: b.Role, Algorithm: b.Algorithm, KeyID: b.KeyID, PublicKey: b.PublicKey, Custody: b.Custody, From: from}
	if len(b.Certificates) > 0 {
		k.certify(b.Certificates, from)
	}
	h.keep(k)
	other := h.latest[place{b.Role, b.Name, !b.Algorithm.PostQuantum()}]
	if other == nil || other.Ended(from) {
		return nil
	}
	k.With, other.With = other.KeyID, k.KeyID
	if b.Algorithm.PostQuantum() { // the first key signed alone until now
		other.WithFrom = from.Add(Settling)
	}
	return nil
}

func (h *History) keep(k *Key) {
	h.keys, h.byID[k.KeyID], h.latest[placeOf(k.Role, k.Name, k.Algorithm)] = append(h.keys, k), k, k
}

// check returns an error if an event does not describe a valid new key.
func check(b *operator.KeyEventBody) error {
	public, err := evidence.ParsePublicKey(b.PublicKey)
	if err != nil {
		return fmt.Errorf("public_key: %w", err)
	}
	if algorithm, err := evidence.AlgorithmOf(public); err != nil || algorithm != b.Algorithm {
		return fmt.Errorf("alg is %q, but the key signs with %q", b.Algorithm, algorithm)
	}
	if evidence.DigestOf(b.PublicKey) != b.KeyID {
		return errors.New("key_id does not match the public key")
	}
	if !slices.Contains(evidence.Roles(), b.Role) {
		return fmt.Errorf("unknown role %q, want one of %v", b.Role, evidence.Roles())
	}
	if err := evidence.CheckName(b.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	switch {
	case b.Custody != operator.CustodyOwner && b.Custody != operator.CustodyOperator:
		return fmt.Errorf("custody %q is neither %q nor %q", b.Custody, operator.CustodyOwner, operator.CustodyOperator)
	case b.Custody == operator.CustodyOwner && !MayOwn(b.Role):
		return fmt.Errorf("the operator holds the key of the %s", b.Role)
	case b.Event == operator.KeyRegistered && !b.Replaces.IsZero():
		return errors.New("a registered key cannot replace another; a rotated one can")
	}
	return nil
}

// The limits of a key's certificates. Within them, the certificates of two keys fit into a record that verifiers accept.
const (
	maxCertificates = 8
	maxCertificate  = 64 << 10 // bytes
)

// checkAbout checks what an event says about a new key beside its public half.
func checkAbout(b *operator.KeyEventBody) error {
	if b.Protection != nil {
		if err := b.Protection.Check(); err != nil {
			return err
		}
	}
	if len(b.Certificates) > maxCertificates {
		return fmt.Errorf("%d certificates: want at most %d", len(b.Certificates), maxCertificates)
	}
	for i, c := range b.Certificates {
		if len(c) == 0 || len(c) > maxCertificate {
			return fmt.Errorf("certificate %d has %d bytes: want 1 to %d", i+1, len(c), maxCertificate)
		}
	}
	return nil
}

// MayOwn reports whether actors of a role can hold their keys themselves: agents and reviewers, who act outside this installation.
func MayOwn(role evidence.Role) bool {
	return role == evidence.RoleAgent || role == evidence.RoleReviewer
}

// Admit returns an error if a payload may not be signed at this time by the keys that it names: ErrForeign, ErrEnded or ErrIncomplete. A
// key that the log does not name may sign if the log names no other key in its place: it was made on first use.
func (h *History) Admit(p *evidence.Payload, at time.Time) error {
	active := h.Active(p.Role(), p.Actor(), at)
	latest := h.Latest(p.Role(), p.Actor())
	for _, s := range p.Signers {
		known := h.byID[s.KeyID]
		switch {
		case known != nil && (known.Role != p.Role() || known.Name != p.Actor()):
			return fmt.Errorf("%w: %s is the key of %s %q, not of %s %q", ErrForeign, s.KeyID, known.Role, known.Name, p.Role(), p.Actor())
		case known != nil && known.Ended(at):
			return fmt.Errorf("%w: %s of %s %q is %s", ErrEnded, s.KeyID, known.Role, known.Name, known.State(at))
		case known != nil && at.Before(known.From.Add(-Skew)):
			return notYet(known.KeyID, known.From, at)
		case known == nil && len(latest) > 0 && !h.free(p, s.Algorithm, active):
			return fmt.Errorf("%w: %s: %s %q has another key", ErrForeign, s.KeyID, p.Role(), p.Actor())
		}
	}
	for _, k := range active {
		if !slices.ContainsFunc(p.Signers, func(s evidence.SignerInfo) bool { return s.KeyID == k.KeyID }) {
			return fmt.Errorf("%w: the key %s of %s %q has not signed", ErrIncomplete, k.KeyID, k.Role, k.Name)
		}
	}
	return nil
}

// free reports whether a key that the log does not name may sign beside those that it names: the operator made the actor's missing one.
func (h *History) free(p *evidence.Payload, algorithm evidence.Algorithm, active []*Key) bool {
	if h.Current(p.Role(), p.Actor(), algorithm) != nil || len(active) == 0 {
		return false
	}
	return !slices.ContainsFunc(active, func(k *Key) bool { return k.Custody == operator.CustodyOwner })
}

// CheckOwned returns an error unless a record is signed, at this time, by all keys of an actor that holds them itself, and by no others.
func (h *History) CheckOwned(r *evidence.Record, at time.Time) error {
	for i, s := range r.Payload.Signers {
		k := h.byID[s.KeyID]
		if k == nil || k.Custody != operator.CustodyOwner {
			return fmt.Errorf("%w: no owner has registered the key %s", ErrForeign, s.KeyID)
		}
		public, err := evidence.ParsePublicKey(k.PublicKey)
		if err != nil {
			return err
		}
		if err := r.CheckSignature(i, public); err != nil {
			return fmt.Errorf("signature %d: %w", i, err)
		}
	}
	return h.Admit(&r.Payload, at)
}

// mostCertificates is how many certificates a record may carry: a verifier looks at none of more.
const mostCertificates = 16

// Certificates returns certificates of a payload's signers, each once: those that the log named when the payload was signed, by its own claim, as
// those that came later need not have been valid then. The next ones stand beside them, because the record may have been stamped late.
func (h *History) Certificates(p *evidence.Payload) [][]byte {
	var list, next [][]byte
	for _, s := range p.Signers {
		if k := h.byID[s.KeyID]; k != nil {
			then, later := k.certificatesAt(p.Time())
			list, next = joined(list, then), append(next, later...)
		}
	}
	if all := joined(slices.Clone(list), next); len(all) <= mostCertificates {
		return all
	}
	return list
}

// joined adds what a list does not have yet.
func joined(list, more [][]byte) [][]byte {
	for _, c := range more {
		if !slices.ContainsFunc(list, func(has []byte) bool { return string(has) == string(c) }) {
			list = append(list, c)
		}
	}
	return list
}

// certify gives a key other certificates from a time on.
func (k *Key) certify(certificates [][]byte, from time.Time) {
	k.Certificates = certificates
	k.registered = append(slices.Clip(k.registered), certified{from, certificates}) // a clone has the same ones before
}

// certificatesAt returns the certificates that the log named at a time, or the first ones, and those that it named next.
func (k *Key) certificatesAt(at time.Time) (then, next [][]byte) {
	if len(k.registered) == 0 {
		return nil, nil
	}
	i := 0
	for i+1 < len(k.registered) && !k.registered[i+1].from.After(at) {
		i++
	}
	if i+1 < len(k.registered) {
		next = k.registered[i+1].certificates
	}
	return k.registered[i].certificates, next
}

// State describes in a few words whether a key is active, or how it ended.
func (k *Key) State(at time.Time) string {
	day := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
	switch {
	case !k.Revoked.IsZero():
		return "revoked from " + day(k.Revoked)
	case k.Until.IsZero():
		return "active"
	case !k.Ended(at):
		return "active until " + day(k.Until)
	case k.replaced:
		return "rotated at " + day(k.Until)
	}
	return "retired at " + day(k.Until)
}

// Trusted returns the keys in the form of a trust file: each key's actor, its period, and the keys that sign only together. The log decides
// about every key that it names. For other keys, their files decide. They are sorted by role and name, first keys before second ones, older before newer.
func Trusted(held []*Held, history *History) []trust.Key {
	var trusted []trust.Key
	for _, k := range history.Keys() {
		trusted = append(trusted, recordedKey(k))
	}
	for _, k := range held {
		if history.Key(k.KeyID) == nil {
			trusted = append(trusted, unrecordedKey(k, history))
		}
	}
	for _, k := range held {
		if history.Key(k.KeyID) == nil {
			pair(trusted, k, history)
		}
	}
	for n := range trusted {
		trusted[n].NotBefore = trusted[n].NotBefore.Add(-Skew)
	}
	slices.SortStableFunc(trusted, func(a, b trust.Key) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name), rank(a.Algorithm)-rank(b.Algorithm), a.NotBefore.Compare(b.NotBefore))
	})
	return trusted
}

func recordedKey(k *Key) trust.Key {
	t := trust.Key{Name: k.Name, Role: k.Role, Algorithm: k.Algorithm, KeyID: k.KeyID, PublicKey: k.PublicKey,
		Custody: trust.Custody(k.Custody), NotBefore: k.From, NotAfter: k.Until,
		Revoked: k.Revoked, WithFrom: k.WithFrom}
	if k.Sudden {
		t.NotAfter = k.Until.Add(Settling) // records in progress at that time count
	}
	if !k.With.IsZero() {
		t.With = []evidence.KeyID{k.With}
	}
	return t
}

// unrecordedKey returns the entry of a key that was made when its actor first signed, and that the log does not name. If the log names
// another key of the actor, two programs made a key at the same moment. The unrecorded key then ends soon after the other one begins.
func unrecordedKey(k *Held, history *History) trust.Key {
	t := trust.Key{Name: k.Name, Role: k.Role, Algorithm: k.Algorithm, KeyID: k.KeyID, PublicKey: k.PublicKey,
		Custody: trust.ByOperator, NotBefore: k.Created}
	for _, other := range history.Keys() {
		if other.Role == k.Role && other.Name == k.Name && other.Algorithm.PostQuantum() == k.Algorithm.PostQuantum() {
			t.NotAfter = later(k.Created, other.From.Add(Settling))
			break
		}
	}
	return t
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// pair pairs an actor's unrecorded key with the actor's other key. The second key never signs alone. The first may have signed alone until
// the second was made, unless it was made to sign with it.
func pair(trusted []trust.Key, k *Held, history *History) {
	find := func(second bool) *trust.Key {
		i := slices.IndexFunc(trusted, func(t trust.Key) bool {
			known := history.Key(t.KeyID)
			return t.Role == k.Role && t.Name == k.Name && t.Algorithm.PostQuantum() == second && t.With == nil &&
				(known == nil && t.NotAfter.IsZero() || known != nil && (known.Until.IsZero() || k.Created.Before(known.Until)))
		})
		if i < 0 {
			return nil
		}
		return &trusted[i]
	}
	first, second := find(false), find(true)
	if first == nil || second == nil {
		return
	}
	first.With, second.With = []evidence.KeyID{second.KeyID}, []evidence.KeyID{first.KeyID}
	if !k.Algorithm.PostQuantum() && k.With != second.KeyID || k.Algorithm.PostQuantum() && history.Key(first.KeyID) != nil {
		first.WithFrom = second.NotBefore.Add(Settling)
	}
}

// Forever changes a trust file so that no key ends, and returns it: the log checks that records are intact, and readers judge what they prove.
func Forever(t *trust.Trust) *trust.Trust {
	for n := range t.Keys {
		t.Keys[n].NotAfter, t.Keys[n].Revoked = time.Time{}, time.Time{}
	}
	return t
}
