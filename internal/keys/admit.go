package keys

import (
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// Admit says whether a payload may be signed, at this time, by those whom it names as its signers. A key of which the
// log says nothing may sign for whoever has no key in the log in its place: it is one that was made on first use.
func (h *History) Admit(p *evidence.Payload, at time.Time) error {
	active := h.Active(p.Role(), p.Actor(), at)
	latest := h.Latest(p.Role(), p.Actor())
	for _, s := range p.Signers {
		known := h.byID[s.KeyID]
		switch {
		case known != nil && (known.Role != p.Role() || known.Name != p.Actor()):
			return fmt.Errorf("%w: %s is the key of %s %q, and not of %s %q", ErrForeign, s.KeyID, known.Role, known.Name, p.Role(), p.Actor())
		case known != nil && known.Ended(at):
			return fmt.Errorf("%w: %s of %s %q is %s", ErrEnded, s.KeyID, known.Role, known.Name, known.State(at))
		case known == nil && len(latest) > 0 && !h.free(p, s.Algorithm, active):
			return fmt.Errorf("%w: %s, for which %s %q has another", ErrForeign, s.KeyID, p.Role(), p.Actor())
		}
	}
	for _, k := range active {
		if !slices.ContainsFunc(p.Signers, func(s evidence.SignerInfo) bool { return s.KeyID == k.KeyID }) {
			return fmt.Errorf("%w: the key %s of %s %q has not signed", ErrIncomplete, k.KeyID, k.Role, k.Name)
		}
	}
	return nil
}

// free reports whether a key that the log does not name can stand beside those that it names: the operator made a first
// or second key where there was none.
func (h *History) free(p *evidence.Payload, algorithm evidence.Algorithm, active []*Key) bool {
	if h.Current(p.Role(), p.Actor(), algorithm) != nil || len(active) == 0 {
		return false
	}
	return !slices.ContainsFunc(active, func(k *Key) bool { return k.Custody == operator.CustodyOwner })
}

// CheckOwned says whether a record is signed, at this time, by an actor that holds its keys itself: with all of these keys
// and with no other.
func (h *History) CheckOwned(r *evidence.Record, at time.Time) error {
	for i, s := range r.Payload.Signers {
		k := h.byID[s.KeyID]
		if k == nil || k.Custody != operator.CustodyOwner {
			return fmt.Errorf("%w: %s is registered for nobody", ErrForeign, s.KeyID)
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

// Certificates returns what is registered for the signers of a payload, each certificate once.
func (h *History) Certificates(p *evidence.Payload) [][]byte {
	var list [][]byte
	for _, s := range p.Signers {
		k := h.byID[s.KeyID]
		if k == nil {
			continue
		}
		for _, c := range k.Certificates {
			if !slices.ContainsFunc(list, func(has []byte) bool { return string(has) == string(c) }) {
				list = append(list, c)
			}
		}
	}
	return list
}

// State says in a few words what has become of a key.
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
