package keys

import (
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
)

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

// free reports whether a key that the log does not name may sign beside those that it names: the operator made the actor's missing first or
// second key.
func (h *History) free(p *evidence.Payload, algorithm evidence.Algorithm, active []*Key) bool {
	if h.Current(p.Role(), p.Actor(), algorithm) != nil || len(active) == 0 {
		return false
	}
	return !slices.ContainsFunc(active, func(k *Key) bool { return k.Custody == operator.CustodyOwner })
}

// CheckOwned returns an error unless a record is signed, at this time, by all keys of an actor that holds its keys itself, and by no
// others.
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
