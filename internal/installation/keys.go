package installation

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/internal/keys"
	"jurat/internal/ledger"
	"jurat/verify"
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
	Public       []byte   // DER SubjectPublicKeyInfo
	Certificates [][]byte // DER: the key's, then those above it; may be empty
}

// Why is what a person says of what they do to keys.
type Why struct{ Reason, By string }

// change has the log told what plan makes of what it says of keys, and the files follow. It returns what the log says
// then. A crash before the log is told leaves nothing but perhaps a key that is to replace another, and is used when that
// is tried again; a crash after it leaves files that Open, or whatever touches them next, brings up to date.
func (i *Installation) change(ctx context.Context, why Why, plan func(*keys.History) ([]evidence.KeyEventBody, error)) (*keys.History, error) {
	_, err := i.operator().SealNext(ctx, evidence.KeysChain, func(chain []*evidence.Record) ([]evidence.Payload, error) {
		history, err := keys.ReadHistory(chain)
		if err != nil {
			return nil, err
		}
		events, err := plan(history)
		if err != nil {
			return nil, err
		}
		return payloads(events, why)
	})
	if err != nil {
		return nil, err
	}
	i.after("key event sealed")
	if err := i.Keys.Tidy(); err != nil {
		return nil, err
	}
	return i.Ledger.Keys(ctx)
}

func payloads(events []evidence.KeyEventBody, why Why) ([]evidence.Payload, error) {
	var list []evidence.Payload
	for _, e := range events {
		e.Reason, e.By = why.Reason, why.By
		p, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.KeyEvent}, e)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// RegisterKeys takes in the keys that an actor holds itself: one, or two that sign only together. From then on nobody here
// signs for it. Unless notAfter is zero they sign nothing from that time on.
func (i *Installation) RegisterKeys(ctx context.Context, role evidence.Role, name string, given []OwnerKey, notAfter time.Time, why Why) error {
	events, err := owned(role, name, given)
	if err != nil {
		return fmt.Errorf("registering key: %w", err)
	}
	if err := i.Keys.CheckName(role, name); err != nil {
		return fmt.Errorf("registering key of %q: %w", name, err)
	}
	_, err = i.change(ctx, why, func(h *keys.History) ([]evidence.KeyEventBody, error) {
		if err := i.mayRegister(h, events); err != nil {
			return nil, err
		}
		for n := range events {
			events[n].Event, events[n].From = evidence.KeyRegistered, written(i.since())
		}
		if notAfter.IsZero() {
			return events, nil
		}
		if !notAfter.After(i.now()) {
			return nil, fmt.Errorf("the key is to end at %s, and it is later than that", notAfter.UTC().Format(time.RFC3339))
		}
		last := events[len(events)-1] // with which the other one ends, if there are two
		last.Event, last.From, last.PublicKey, last.Certificates = evidence.KeyRetired, written(notAfter), nil, nil
		return append(slices.Clone(events), last), nil
	})
	if err != nil {
		return fmt.Errorf("registering key: %w", err)
	}
	return nil
}

// mayRegister refuses what would leave an actor with keys of two holders, or with a pair whose second half has signed alone.
func (i *Installation) mayRegister(h *keys.History, events []evidence.KeyEventBody) error {
	role, name := events[0].Role, events[0].Name
	unrecorded, err := i.Keys.Unrecorded(role, name)
	if err != nil {
		return err
	}
	if len(unrecorded) > 0 {
		return ErrHeld
	}
	for _, k := range h.Active(role, name, i.now()) {
		known := slices.ContainsFunc(events, func(e evidence.KeyEventBody) bool { return e.KeyID == k.KeyID })
		switch {
		case k.Custody != evidence.CustodyOwner:
			return ErrHeld
		case k.Algorithm.PostQuantum() && !known:
			return fmt.Errorf("%w: the %s key that it has has signed alone", ErrPair, k.Algorithm)
		}
	}
	return nil
}

// owned makes the events of an owner's keys, the second key first, so that the first never signed without it.
func owned(role evidence.Role, name string, given []OwnerKey) ([]evidence.KeyEventBody, error) {
	if !keys.MayOwn(role) {
		return nil, fmt.Errorf("the %s acts here, so its key is the operator's; agents and reviewers can hold theirs", role)
	}
	if len(given) == 0 || len(given) > 2 {
		return nil, fmt.Errorf("%d keys: want one, or two that sign together", len(given))
	}
	var events []evidence.KeyEventBody
	for n, k := range given {
		algorithm, err := k.check()
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", n+1, err)
		}
		if err := k.isOf(role, name); err != nil {
			return nil, fmt.Errorf("key %d: certificate 1: %w", n+1, err)
		}
		events = append(events, evidence.KeyEventBody{Algorithm: algorithm, KeyID: evidence.DigestOf(k.Public), Name: name, Role: role,
			Custody: evidence.CustodyOwner, PublicKey: k.Public, Certificates: k.Certificates})
	}
	if len(events) == 2 && events[0].Algorithm.PostQuantum() == events[1].Algorithm.PostQuantum() {
		return nil, fmt.Errorf("two keys of %s and %s: one of two is of ML-DSA-65, and the other is not", events[0].Algorithm, events[1].Algorithm)
	}
	slices.SortFunc(events, func(a, _ evidence.KeyEventBody) int {
		if a.Algorithm.PostQuantum() {
			return -1
		}
		return 1
	})
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
	return verify.CheckCertificate(own, role, name)
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

// A LoggedKeyEvent is an act of the operator on a key.
type LoggedKeyEvent struct {
	Record *evidence.Record
	Body   evidence.KeyEventBody
}

// KeyEvents returns what the log says was done to keys, in its order.
func (i *Installation) KeyEvents(ctx context.Context) ([]LoggedKeyEvent, error) {
	records, err := i.Ledger.Chain(ctx, evidence.KeysChain)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var events []LoggedKeyEvent
	for _, r := range records {
		body, err := evidence.ReadOperatorBody[evidence.KeyEventBody](&r.Payload)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		events = append(events, LoggedKeyEvent{Record: r, Body: *body})
	}
	return events, nil
}
