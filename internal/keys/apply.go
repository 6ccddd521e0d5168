package keys

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// Apply adds the next act of the chain to the history. If it returns an error, which has ErrEvent in its chain, the caller must discard the
// history.
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
	who := actor{b.Role, b.Name}
	has := h.actors[who]
	has[rank(b.Algorithm)] = k
	h.actors[who], h.byID[k.KeyID], h.keys = has, k, append(h.keys, k)
	h.pair(has, k)
	return nil
}

// pair marks a new key and the actor's other key as signing together.
func (h *History) pair(has hands, k *Key) {
	first, second := has[0], has[1]
	if other := has[1-rank(k.Algorithm)]; other == nil || other.Ended(k.From) {
		return
	}
	first.With, second.With = second.KeyID, first.KeyID
	if k == second { // the first key signed alone until now
		first.WithFrom = second.From.Add(Settling)
	}
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
