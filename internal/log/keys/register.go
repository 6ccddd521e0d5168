package keys

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
	"jurat/internal/log/token"
	"jurat/verify/trust"
)

var (
	// ErrHeld says that an owner's key cannot be registered, because the operator holds a key of this actor.
	ErrHeld = errors.New("the operator holds a key of this actor")
	// ErrPair says that the caller tried to replace one key of a pair that signs together.
	ErrPair = errors.New("the actor has two keys that sign only together, and both are replaced at once")
	// ErrNoSuchKey says that this installation does not know the key.
	ErrNoSuchKey = errors.New("there is no such key")
)

// An OwnerKey is the public half of a key that its owner holds.
type OwnerKey struct {
	Public       []byte               // DER SubjectPublicKeyInfo
	Certificates [][]byte             // DER: the key's, then those above it; may be empty
	Protection   *operator.Protection // how the key is kept, as far as that is known here
	Card         evidence.Digest      // of the actor's A2A agent card; zero: nothing is said
}

// Why is the reason for a change to keys, and the name of the person who makes it.
type Why struct{ Reason, By string }

// change logs the events that plan returns, for this reason unless they state their own, and then updates the key files. A crash before the log has
// the events leaves at most a new key, which the next attempt uses. After a later crash, Tidy updates the files.
func (r *Ring) change(ctx context.Context, doing string, why Why, plan func(*History) ([]operator.KeyEventBody, error)) (err error) {
	defer fault.While(&err, "%s", doing)
	if r.config.Change == nil {
		return errors.New("this keyring has no log")
	}
	err = r.config.Change(ctx, func(h *History) ([]operator.KeyEventBody, error) {
		events, err := plan(h)
		for n := range events {
			events[n].Reason, events[n].By = cmp.Or(events[n].Reason, why.Reason), cmp.Or(events[n].By, why.By)
		}
		return events, err
	})
	if err != nil {
		return err
	}
	r.config.After("key event sealed")
	return r.Tidy(context.WithoutCancel(ctx)) // the change is in the log, so a cancelled caller must not stop this
}

// Register registers the keys that an actor holds itself: one, or two that sign only together. From then on this installation does not sign
// for the actor. Unless notAfter is zero, the keys end at that time. The errors include ErrHeld, ErrPair and those of a name that is
// refused.
func (r *Ring) Register(ctx context.Context, role evidence.Role, name string, given []OwnerKey, notAfter time.Time, why Why) error {
	if err := r.CheckName(ctx, role, name); err != nil {
		return fmt.Errorf("registering key of %q: %w", name, err)
	}
	return r.change(ctx, "registering key", why, func(h *History) ([]operator.KeyEventBody, error) {
		events, err := owned(role, name, given)
		if err == nil {
			err = r.mayRegister(ctx, h, events)
		}
		if err != nil {
			return nil, err
		}
		for n := range events {
			events[n].Event, events[n].From = operator.KeyRegistered, written(r.since())
		}
		if notAfter.IsZero() {
			return events, nil
		}
		if !notAfter.After(r.config.Now()) {
			return nil, fmt.Errorf("the key is to end at %s, which is in the past", notAfter.UTC().Format(time.RFC3339))
		}
		last := events[len(events)-1] // retiring this key ends the other one of a pair, too
		last.Event, last.From, last.PublicKey, last.Certificates, last.Protection = operator.KeyRetired, written(notAfter), nil, nil, nil
		last.Card = evidence.Digest{}
		return append(events, last), nil
	})
}

// mayRegister returns an error if registering would leave an actor with keys of two holders, or make a pair whose second key has signed
// alone. It returns ErrNotYet if a certificate begins later than the clock says it is: nothing would ever prove by it what is sealed until then.
func (r *Ring) mayRegister(ctx context.Context, h *History, events []operator.KeyEventBody) error {
	role, name := events[0].Role, events[0].Name
	unrecorded, err := r.Unrecorded(ctx, role, name)
	if err != nil {
		return err
	}
	if len(unrecorded) > 0 {
		return ErrHeld
	}
	for _, k := range h.Active(role, name, r.config.Now()) {
		known := slices.ContainsFunc(events, func(e operator.KeyEventBody) bool { return e.KeyID == k.KeyID })
		switch {
		case k.Custody != operator.CustodyOwner:
			return ErrHeld
		case k.Algorithm.PostQuantum() && !known:
			return fmt.Errorf("%w: the actor's %s key has signed alone", ErrPair, k.Algorithm)
		}
	}
	return begun(events, r.config.Now())
}

// begun returns ErrNotYet if a certificate begins later than the clock says it is.
func begun(events []operator.KeyEventBody, now time.Time) error {
	for _, e := range events {
		for n, der := range e.Certificates {
			c, err := x509.ParseCertificate(der)
			if err != nil {
				return fmt.Errorf("certificate %d: %w", n+1, err)
			}
			if c.NotBefore.After(now) {
				return fmt.Errorf("%w: certificate %d of %s begins at %s, and the clock says %s; correct the clock that is wrong, or register it then",
					ErrNotYet, n+1, e.KeyID, evidence.FormatTime(c.NotBefore), evidence.FormatTime(now))
			}
		}
	}
	return nil
}

// owned returns the events that register an owner's keys, the second key first, so that the first never signs without it.
func owned(role evidence.Role, name string, given []OwnerKey) ([]operator.KeyEventBody, error) {
	if !MayOwn(role) {
		return nil, fmt.Errorf("the operator holds the key of the %s; only agents and reviewers can hold their own keys", role)
	}
	if len(given) == 0 || len(given) > 2 {
		return nil, fmt.Errorf("%d keys: want one, or two that sign together", len(given))
	}
	var events []operator.KeyEventBody
	for n, k := range given {
		algorithm, err := k.check(role, name)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", n+1, err)
		}
		events = append(events, operator.KeyEventBody{Algorithm: algorithm, KeyID: evidence.DigestOf(k.Public), Name: name, Role: role,
			Custody: operator.CustodyOwner, PublicKey: k.Public, Certificates: k.Certificates, Protection: k.Protection, Card: k.Card})
	}
	if len(events) == 2 && events[0].Algorithm.PostQuantum() == events[1].Algorithm.PostQuantum() {
		return nil, fmt.Errorf("two keys of %s and %s: want exactly one ML-DSA-65 key", events[0].Algorithm, events[1].Algorithm)
	}
	if len(events) == 2 && events[1].Algorithm.PostQuantum() { // the ML-DSA-65 key comes first
		slices.Reverse(events)
	}
	return events, nil
}

// check parses a key and its certificates, and returns the key's algorithm. The first certificate must fit the actor: a verifier would
// otherwise prove nothing of what it signs, or refute it. Each reader decides which certificates to trust.
func (k *OwnerKey) check(role evidence.Role, name string) (evidence.Algorithm, error) {
	public, err := evidence.ParsePublicKey(k.Public)
	if err != nil {
		return "", err
	}
	for n, der := range k.Certificates {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return "", fmt.Errorf("certificate %d: %w", n+1, err)
		}
		if n > 0 {
			continue
		}
		if !slices.Equal(c.RawSubjectPublicKeyInfo, k.Public) {
			return "", errors.New("the first certificate is of another key")
		}
		if err := trust.CheckCertificate(c, role, name); err != nil {
			return "", fmt.Errorf("certificate 1: %w", err)
		}
	}
	return evidence.AlgorithmOf(public)
}

// AddCertificates assigns certificates to keys: one of a key begins its chain, and those after it follow. It refuses one before any key's own.
func AddCertificates(given []OwnerKey, certificates [][]byte) error {
	at := -1
	for n, der := range certificates {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("certificate %d: %w", n+1, err)
		}
		if own := slices.IndexFunc(given, func(k OwnerKey) bool { return slices.Equal(k.Public, c.RawSubjectPublicKeyInfo) }); own >= 0 {
			at = own
		}
		if at < 0 {
			return fmt.Errorf("certificate %d belongs to none of the given keys, and comes before any certificate that does", n+1)
		}
		given[at].Certificates = append(given[at].Certificates, der)
	}
	return nil
}

// SetCard logs which A2A agent card belongs to an actor's first key from now on, whoever holds it. The errors include ErrNoSuchKey and ErrEnded.
func (r *Ring) SetCard(ctx context.Context, role evidence.Role, name string, check func(evidence.KeyID) error, card evidence.Digest, why Why) error {
	return r.change(ctx, fmt.Sprintf("setting the card of %s %q", role, name), why, func(h *History) ([]operator.KeyEventBody, error) {
		before, old, err := r.present(ctx, h, role, name)
		if err != nil {
			return nil, err
		}
		first := func(e operator.KeyEventBody) bool { return !e.Algorithm.PostQuantum() }
		n := slices.IndexFunc(old, first)
		if n < 0 {
			return nil, fmt.Errorf("%w: %s %q has no key that signs cards", ErrNoSuchKey, role, name)
		}
		if err := check(old[n].KeyID); err != nil {
			return nil, err
		}
		if made := slices.IndexFunc(before, first); made >= 0 { // the log registers it now
			before[made].Card = card
			return before, nil
		}
		known := h.Key(old[n].KeyID)
		if known.Ended(r.config.Now()) {
			return nil, fmt.Errorf("%w: %s", ErrEnded, known.KeyID)
		}
		event := bodyOf(known)
		event.Event, event.From, event.PublicKey, event.Card = operator.KeyRegistered, written(r.since(event)), known.PublicKey, card
		return append(before, event), nil
	})
}

// RotateOwned replaces an actor's keys by keys that the actor holds itself. It does not matter who holds the old keys. From then on this
// installation does not sign for the actor. The errors include ErrNoSuchKey, and ErrPair if one key is to replace an owner's two.
func (r *Ring) RotateOwned(ctx context.Context, role evidence.Role, name string, given []OwnerKey, why Why) error {
	return r.change(ctx, "rotating key", why, func(h *History) ([]operator.KeyEventBody, error) {
		events, err := owned(role, name, given)
		if err != nil {
			return nil, err
		}
		before, old, err := r.present(ctx, h, role, name)
		if err != nil {
			return nil, err
		}
		if len(events) < len(old) && old[0].Custody == operator.CustodyOwner {
			return nil, ErrPair
		}
		return r.rotate(before, old, events)
	})
}

// Rotate makes new keys for an actor whose keys the operator holds. They replace the old keys, and Rotate destroys the old private halves.
// algorithm is that of the first key; "" keeps the old one. If on is not nil, the first key is the one on a token that on names. An old key
// on a token stays there, and no longer signs for this installation. The errors include ErrOwner and ErrNoSuchKey.
func (r *Ring) Rotate(ctx context.Context, role evidence.Role, name string, algorithm evidence.Algorithm, on *token.Reference, why Why) error {
	return r.change(ctx, "rotating key", why, func(h *History) ([]operator.KeyEventBody, error) {
		before, old, err := r.present(ctx, h, role, name)
		if err != nil {
			return nil, err
		}
		var events []operator.KeyEventBody
		for _, k := range old {
			if k.Custody == operator.CustodyOwner {
				return nil, ErrOwner
			}
			next, where := k.Algorithm, on
			if next.PostQuantum() {
				where = nil // a second key is always in a file
			} else if algorithm != "" {
				next = algorithm
			}
			key, err := r.Next(ctx, role, name, next, where)
			if err != nil {
				return nil, err
			}
			events = append(events, key.body())
		}
		return r.rotate(before, old, events)
	})
}

// present returns the keys of an actor that can be replaced, the second before the first. They are the keys that sign, or else the last
// that did. before holds the events for those among them that the log does not name yet; they must be logged first.
func (r *Ring) present(ctx context.Context, h *History, role evidence.Role, name string) (before, old []operator.KeyEventBody, err error) {
	keys := h.Active(role, name, r.config.Now())
	if len(keys) == 0 {
		keys = h.Latest(role, name)
	}
	for _, k := range keys {
		old = append(old, bodyOf(k))
	}
	made, err := r.Unrecorded(ctx, role, name)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range made { // the keys that the actor got when it first signed
		event := k.body()
		event.Event, event.From = operator.KeyRegistered, written(k.Created)
		before = append(before, event)
	}
	if old = append(old, before...); len(old) == 0 {
		return nil, nil, fmt.Errorf("%w: %s %q has none", ErrNoSuchKey, role, name)
	}
	slices.SortStableFunc(old, func(a, b operator.KeyEventBody) int { return rank(b.Algorithm) - rank(a.Algorithm) })
	return before, old, nil
}

// rotate returns the events by which each new key replaces the old key of its kind.
func (r *Ring) rotate(before, old, events []operator.KeyEventBody) ([]operator.KeyEventBody, error) {
	from, list := r.since(old...), slices.Clone(before)
	for _, e := range events {
		n := slices.IndexFunc(old, func(k operator.KeyEventBody) bool { return rank(k.Algorithm) == rank(e.Algorithm) })
		if n < 0 {
			return nil, fmt.Errorf("%w: %s %q has no key that one of %s can replace; rotate the other key, and register this one afterwards", ErrNoSuchKey, e.Role, e.Name, e.Algorithm)
		}
		e.Event, e.From, e.Replaces = operator.KeyRotated, written(from), old[n].KeyID
		list = append(list, e)
	}
	return list, nil
}

// Retire ends a key from now on. What it signed before stays valid. The errors include ErrNoSuchKey.
func (r *Ring) Retire(ctx context.Context, id evidence.KeyID, why Why) error {
	return r.endKey(ctx, "retiring key", id, operator.KeyRetired, time.Time{}, why)
}

// Revoke ends a key that others may have used. Signatures from the time from on do not count; zero means now. The errors include ErrNoSuchKey.
func (r *Ring) Revoke(ctx context.Context, id evidence.KeyID, from time.Time, why Why) error {
	return r.endKey(ctx, "revoking key", id, operator.KeyRevoked, from, why)
}

func (r *Ring) endKey(ctx context.Context, doing string, id evidence.KeyID, event operator.KeyChange, from time.Time, why Why) error {
	return r.change(ctx, doing, why, func(h *History) ([]operator.KeyEventBody, error) {
		role, name, err := r.whose(ctx, h, id)
		if err != nil {
			return nil, err
		}
		before, known, err := r.present(ctx, h, role, name)
		if err != nil {
			return nil, err
		}
		if k := h.Key(id); k != nil {
			known = []operator.KeyEventBody{bodyOf(k)}
		}
		n := slices.IndexFunc(known, func(e operator.KeyEventBody) bool { return e.KeyID == id })
		if n < 0 {
			return nil, fmt.Errorf("%w: %s", ErrNoSuchKey, id)
		}
		body := known[n]
		if role == evidence.RoleOperator && (h.Key(id) == nil || !h.Key(id).Ended(r.config.Now())) {
			return nil, errors.New("this key signs the operator's acts, this one included: rotate it first")
		}
		end := r.since(body)
		if !from.IsZero() {
			end = from
		}
		body.Event, body.From, body.PublicKey, body.Protection = event, written(end), nil, nil
		return append(before, body), nil
	})
}

// whose returns the actor that a key belongs to, or ErrNoSuchKey.
func (r *Ring) whose(ctx context.Context, h *History, id evidence.KeyID) (evidence.Role, string, error) {
	if k := h.Key(id); k != nil {
		return k.Role, k.Name, nil
	}
	files, err := r.Keys(ctx)
	if err != nil {
		return "", "", err
	}
	if i := slices.IndexFunc(files, func(k *Held) bool { return k.KeyID == id }); i >= 0 {
		return files[i].Role, files[i].Name, nil
	}
	return "", "", fmt.Errorf("%w: %s", ErrNoSuchKey, id)
}

// body returns an event body that describes a key that the operator holds.
func (k *Held) body() operator.KeyEventBody {
	return operator.KeyEventBody{Algorithm: k.Algorithm, KeyID: k.KeyID, Name: k.Name, Role: k.Role, Custody: operator.CustodyOperator,
		PublicKey: k.PublicKey, Protection: k.Protection}
}

// bodyOf returns an event body that describes a key of the log.
func bodyOf(k *Key) operator.KeyEventBody {
	return operator.KeyEventBody{Algorithm: k.Algorithm, KeyID: k.KeyID, Name: k.Name, Role: k.Role, Custody: k.Custody, From: written(k.From)}
}

// since returns the present second, or the later time at which one of the keys began: a key cannot end before it began.
func (r *Ring) since(keys ...operator.KeyEventBody) time.Time {
	at := r.config.Now().UTC().Truncate(time.Second)
	for _, k := range keys {
		if from, err := evidence.ParseTime(k.From); err == nil && from.After(at) {
			at = from
		}
	}
	return at
}

func written(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
