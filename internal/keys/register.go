package keys

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/verify/trust"
)

var (
	// ErrHeld says that the operator holds a key of an actor whose owner's key was to be registered.
	ErrHeld = errors.New("the operator holds a key of this actor")
	// ErrPair says that of two keys that sign only together one alone was to be replaced.
	ErrPair = errors.New("the actor has two keys that sign only together, and both are replaced at once")
	// ErrNoSuchKey says that there is no such key here.
	ErrNoSuchKey = errors.New("there is no such key")
)

// An OwnerKey is the public half of a key that its owner holds.
type OwnerKey struct {
	Public       []byte               // DER SubjectPublicKeyInfo
	Certificates [][]byte             // DER: the key's, then those above it; may be empty
	Protection   *operator.Protection // how the key is kept, as far as that is known here
}

// Why is what a person says of what they do to keys.
type Why struct{ Reason, By string }

// A Log takes in acts on keys.
type Log interface {
	// ChangeKeys logs the events that plan makes of what the log says of keys. It may call plan more than once.
	ChangeKeys(ctx context.Context, plan func(*History) ([]operator.KeyEventBody, error)) error
}

// A Registrar registers, replaces and ends keys: it tells the log, and makes the key files follow. All its fields are required.
type Registrar struct {
	Ring  *Ring
	Log   Log
	Now   func() time.Time
	After func(step string) // told when a step is done; tests crash there
}

// change logs the events that plan makes, and makes the files follow. A crash before the log knows leaves at most a key that is to
// replace another, which the next attempt uses. A crash after it leaves files that Tidy brings up to date.
func (r *Registrar) change(ctx context.Context, why Why, plan func(*History) ([]operator.KeyEventBody, error)) error {
	err := r.Log.ChangeKeys(ctx, func(h *History) ([]operator.KeyEventBody, error) {
		events, err := plan(h)
		for n := range events {
			events[n].Reason, events[n].By = why.Reason, why.By
		}
		return events, err
	})
	if err != nil {
		return err
	}
	r.After("key event sealed")
	return r.Ring.Tidy(context.WithoutCancel(ctx)) // the caller can no longer take it back
}

// Register takes in the keys that an actor holds itself: one, or two that sign only together. From then on nobody here
// signs for it. Unless notAfter is zero they sign nothing from that time on.
func (r *Registrar) Register(ctx context.Context, role evidence.Role, name string, given []OwnerKey, notAfter time.Time, why Why) error {
	events, err := owned(role, name, given)
	if err != nil {
		return fmt.Errorf("registering key: %w", err)
	}
	if err := r.Ring.CheckName(ctx, role, name); err != nil {
		return fmt.Errorf("registering key of %q: %w", name, err)
	}
	err = r.change(ctx, why, func(h *History) ([]operator.KeyEventBody, error) {
		if err := r.mayRegister(ctx, h, events); err != nil {
			return nil, err
		}
		for n := range events {
			events[n].Event, events[n].From = operator.KeyRegistered, written(r.since())
		}
		if notAfter.IsZero() {
			return events, nil
		}
		if !notAfter.After(r.Now()) {
			return nil, fmt.Errorf("the key is to end at %s, and it is later than that", notAfter.UTC().Format(time.RFC3339))
		}
		last := events[len(events)-1] // with which the other one ends, if there are two
		last.Event, last.From, last.PublicKey, last.Certificates, last.Protection = operator.KeyRetired, written(notAfter), nil, nil, nil
		return append(slices.Clone(events), last), nil
	})
	if err != nil {
		return fmt.Errorf("registering key: %w", err)
	}
	return nil
}

// mayRegister refuses what would leave an actor with keys of two holders, or with a pair whose second half has signed alone.
func (r *Registrar) mayRegister(ctx context.Context, h *History, events []operator.KeyEventBody) error {
	role, name := events[0].Role, events[0].Name
	unrecorded, err := r.Ring.Unrecorded(ctx, role, name)
	if err != nil {
		return err
	}
	if len(unrecorded) > 0 {
		return ErrHeld
	}
	for _, k := range h.Active(role, name, r.Now()) {
		known := slices.ContainsFunc(events, func(e operator.KeyEventBody) bool { return e.KeyID == k.KeyID })
		switch {
		case k.Custody != operator.CustodyOwner:
			return ErrHeld
		case k.Algorithm.PostQuantum() && !known:
			return fmt.Errorf("%w: the %s key that it has has signed alone", ErrPair, k.Algorithm)
		}
	}
	return nil
}

// owned makes the events of an owner's keys, the second key first, so that the first never signed without it.
func owned(role evidence.Role, name string, given []OwnerKey) ([]operator.KeyEventBody, error) {
	if !MayOwn(role) {
		return nil, fmt.Errorf("the %s acts here, so its key is the operator's; agents and reviewers can hold theirs", role)
	}
	if len(given) == 0 || len(given) > 2 {
		return nil, fmt.Errorf("%d keys: want one, or two that sign together", len(given))
	}
	var events []operator.KeyEventBody
	for n, k := range given {
		algorithm, err := k.check()
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", n+1, err)
		}
		if err := k.isOf(role, name); err != nil {
			return nil, fmt.Errorf("key %d: certificate 1: %w", n+1, err)
		}
		events = append(events, operator.KeyEventBody{Algorithm: algorithm, KeyID: evidence.DigestOf(k.Public), Name: name, Role: role,
			Custody: operator.CustodyOwner, PublicKey: k.Public, Certificates: k.Certificates, Protection: k.Protection})
	}
	if len(events) == 2 && events[0].Algorithm.PostQuantum() == events[1].Algorithm.PostQuantum() {
		return nil, fmt.Errorf("two keys of %s and %s: one of two is of ML-DSA-65, and the other is not", events[0].Algorithm, events[1].Algorithm)
	}
	if len(events) == 2 && events[1].Algorithm.PostQuantum() { // which comes first
		slices.Reverse(events)
	}
	return events, nil
}

// isOf refuses a certificate that would prove nothing of what the actor signs, or refute it, wherever it is handed out with a record.
func (k *OwnerKey) isOf(role evidence.Role, name string) error {
	if len(k.Certificates) == 0 {
		return nil
	}
	own, err := x509.ParseCertificate(k.Certificates[0])
	if err != nil {
		return err
	}
	return trust.CheckCertificate(own, role, name)
}

// check reads a key and its certificates. Whether anybody should believe the certificates is for readers to say.
func (k *OwnerKey) check() (evidence.Algorithm, error) {
	public, err := evidence.ParsePublicKey(k.Public)
	if err != nil {
		return "", err
	}
	for n, der := range k.Certificates {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return "", fmt.Errorf("certificate %d: %w", n+1, err)
		}
		if n == 0 && !slices.Equal(c.RawSubjectPublicKeyInfo, k.Public) {
			return "", errors.New("the first certificate is of another key")
		}
	}
	return evidence.AlgorithmOf(public)
}

// AddCertificates gives each key the certificates that begin with its own, in the order in which they are given.
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
			return fmt.Errorf("certificate %d is of another key than those that are given, and stands before any of theirs", n+1)
		}
		given[at].Certificates = append(given[at].Certificates, der)
	}
	return nil
}
