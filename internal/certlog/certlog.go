// Package certlog carries what a CA does into a log, and finds there what no honest CA and no honest operator does.
//
// # The log decides what is carried already
//
// Publish compares the CA's acts with the chain operator.CertificatesChain, and seals what is missing, in order. There is no mark in the
// CA's folder that could be lost or wrong. So it can be repeated at any time, after a crash or by two processes, and nothing stands in the
// log twice. The bytes of lists and OCSP responses are in the installation's file store before the act that has their digest.
//
// # A certificate is in the log before it is used
//
// A certificate registers its key (key_event), and is sealed itself (certificate_event), in this order: a monitor that reads the
// certificates first and the keys afterwards then never sees a certificate whose key the log does not know. Publish seals also certificates
// that the log's rules would refuse to register. Those are the ones that readers must see.
package certlog

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ocsp"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ca"
	"jurat/internal/filestore"
	"jurat/internal/keys"
	"jurat/internal/ledger"
	"jurat/internal/names"
)

// Folder is the folder of lists and OCSP responses in an installation's file store.
const Folder = "revocation"

var (
	// ErrOther says that the name has a key of another owner, by the log.
	ErrOther = errors.New("the name has another key, by the log's key events")
	// ErrStale says that a request does not prove that it was made lately.
	ErrStale = errors.New("the request does not prove that it was made lately")
	// ErrBehind says that the log knows of acts of the CA that its folder lacks.
	ErrBehind = errors.New("the log knows of acts of this CA that its folder lacks")
)

// A Log is where acts of CAs are sealed. All its fields are required.
type Log struct {
	Ledger    *ledger.Ledger
	Operator  ledger.Operator
	Registrar *keys.Registrar
	Files     filestore.Store
	Now       func() time.Time
}

// An Order is a request for a certificate, and how it is to be issued.
type Order struct {
	ca.Order
	AnyAge bool // also if the request does not prove that it was made lately
}

// Issue issues a certificate, and publishes it with all that the CA did before. The errors include keys.ErrHeld, ErrOther, ErrStale,
// ca.ErrTaken, and an *evidence.FieldError for a name that is refused. If Issue returns a certificate and an error, the CA has issued it,
// and Publish can be repeated.
func (l *Log) Issue(ctx context.Context, a *ca.CA, o Order) (*ca.Issued, error) {
	history, err := l.may(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("issuing certificate: %w", err)
	}
	o.Over = func(other evidence.KeyID) bool {
		k := history.Key(other)
		return history.Key(o.Request.KeyID) != nil || k != nil && k.Ended(l.Now())
	}
	made, err := a.Issue(ctx, o.Order)
	if err != nil {
		return nil, err
	}
	return made, l.published(ctx, a, made)
}

// Renew renews a certificate, and publishes it. Its errors are those of Issue and of ca.CA.Renew; the request's age does not matter.
func (l *Log) Renew(ctx context.Context, a *ca.CA, serial, by, reason string) (*ca.Issued, error) {
	one, err := a.Find(ctx, serial)
	if err != nil {
		return nil, err
	}
	if _, err := l.mayName(ctx, &ca.Request{Role: one.Role, Name: one.Name, KeyID: one.KeyID}); err != nil {
		return nil, fmt.Errorf("renewing certificate %s: %w", serial, err)
	}
	made, err := a.Renew(ctx, serial, by, reason)
	if err != nil {
		return nil, err
	}
	return made, l.published(ctx, a, made)
}

// published publishes a certificate that was just made. The certificate exists now. A caller whose context ends must not keep it out of the
// log.
func (l *Log) published(ctx context.Context, a *ca.CA, made *ca.Issued) error {
	done, err := l.Publish(context.WithoutCancel(ctx), a)
	if err == nil {
		err = done.refusal(made.KeyID)
	}
	return err
}

// may returns an error if a request's name is another's, or the request may be old, and otherwise the log's keys.
func (l *Log) may(ctx context.Context, o Order) (*keys.History, error) {
	r := o.Request
	history, err := l.mayName(ctx, r)
	if err != nil || o.AnyAge {
		return history, err
	}
	return history, l.fresh(ctx, r.Challenge)
}

// mayName returns an error unless a name is free, or the key is its owner's, by the log's keys, which it returns.
func (l *Log) mayName(ctx context.Context, r *ca.Request) (*keys.History, error) {
	if !keys.MayOwn(r.Role) {
		return nil, &evidence.FieldError{Field: "subjectAltName", Reason: fmt.Sprintf("the operator holds the key of the %s; only agents and reviewers have certificates here", r.Role)}
	}
	if err := l.Registrar.Ring.CheckName(ctx, r.Role, r.Name); err != nil {
		return nil, err
	}
	held, err := l.Registrar.Ring.Unrecorded(ctx, r.Role, r.Name)
	if err != nil {
		return nil, err
	}
	if len(held) > 0 {
		return nil, fmt.Errorf("%w: %s %q", keys.ErrHeld, r.Role, r.Name)
	}
	history, err := l.Ledger.Keys(ctx)
	if err != nil {
		return nil, err
	}
	return history, owns(history, r, l.Now())
}

func owns(history *keys.History, r *ca.Request, now time.Time) error {
	if k := history.Key(r.KeyID); k != nil {
		switch {
		case k.Role != r.Role || k.Name != r.Name:
			return fmt.Errorf("%w: %s is the key of %s %q", keys.ErrForeign, r.KeyID, k.Role, k.Name)
		case k.Ended(now):
			return fmt.Errorf("%w: %s is %s", keys.ErrEnded, r.KeyID, k.State(now))
		case k.Custody != operator.CustodyOwner:
			return fmt.Errorf("%w: %s", keys.ErrHeld, r.KeyID)
		}
		return nil
	}
	for _, k := range history.Keys() {
		switch {
		case k.Role == r.Role && k.Name != r.Name && names.Same(k.Name, r.Name):
			return fmt.Errorf("%w: %q is the same to readers as %q", ErrOther, r.Name, k.Name)
		case k.Role != r.Role || k.Name != r.Name || k.Ended(now):
		case k.Custody != operator.CustodyOwner:
			return fmt.Errorf("%w: %s %q", keys.ErrHeld, r.Role, r.Name)
		default:
			return fmt.Errorf("%w: %s %q has the key %s", ErrOther, r.Role, r.Name, k.KeyID)
		}
	}
	return nil
}

// MaxAge is how long a checkpoint counts as recent after another one took its place.
const MaxAge = 72 * time.Hour

// fresh returns ErrStale, wrapped, unless a challenge names a checkpoint of this log that was the latest at some time in MaxAge.
func (l *Log) fresh(ctx context.Context, c *ca.Challenge) error {
	if c == nil {
		return fmt.Errorf("%w: it has no challengePassword with the log's latest checkpoint", ErrStale)
	}
	size, err := l.Ledger.Size(ctx)
	if err != nil {
		return err
	}
	if c.Size > size {
		return fmt.Errorf("%w: the log has %d records, and the request names a checkpoint over %d", ErrStale, size, c.Size)
	}
	want, err := l.challenge(ctx, c.Size)
	if err != nil {
		return err
	}
	if *c != want {
		return fmt.Errorf("%w: it names a checkpoint over %d records that is not this log's", ErrStale, c.Size)
	}
	if c.Size == size {
		return nil // no request can be newer
	}
	replaced, err := l.noEarlier(ctx, c.Size)
	if err != nil {
		return err
	}
	if age := l.Now().Sub(replaced); age > MaxAge {
		return fmt.Errorf("%w: it names the checkpoint over %d records, which was not the latest any more %s ago; want at most %s", ErrStale, c.Size, age.Truncate(time.Hour), MaxAge)
	}
	return nil
}

// challenge is what the checkpoint over the first records of the log is named by.
func (l *Log) challenge(ctx context.Context, size int64) (ca.Challenge, error) {
	root, err := l.Ledger.Root(ctx, size)
	if err != nil {
		return ca.Challenge{}, err
	}
	return ca.ChallengeOf(operator.Checkpoint{Origin: l.Ledger.Origin(), Size: size, Root: root})
}

// noEarlier returns a time before which the record at an index was not sealed. A record that its owner signed may claim an earlier time
// than that at which the log took it, so the records before it are asked, too.
func (l *Log) noEarlier(ctx context.Context, index int64) (time.Time, error) {
	const before = 16
	var at []int64
	for i := max(0, index-before); i <= index; i++ {
		at = append(at, i)
	}
	var latest time.Time
	for placed, err := range l.Ledger.At(ctx, at) {
		if err != nil {
			return latest, err
		}
		if claimed := placed.Payload.Time(); claimed.After(latest) {
			latest = claimed
		}
	}
	return latest, nil
}

// Published says what Publish did.
type Published struct {
	Acts     int        // how many acts it sealed
	Keys     int        // how many keys it registered, or gave another certificate
	Refusals []*Refusal // keys that the log's rules do not let it register
}

// A Refusal is a certificate that is in the log, and whose key the log does not know as its actor's.
type Refusal struct {
	Serial string
	KeyID  evidence.KeyID
	Err    error
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("certificate %s is sealed, and its key is not registered: %v", r.Serial, r.Err)
}

// Unwrap returns the log's rule that the key breaks.
func (r *Refusal) Unwrap() error { return r.Err }

func (p *Published) refusal(key evidence.KeyID) error {
	for _, r := range p.Refusals {
		if r.KeyID == key {
			return r
		}
	}
	return nil
}

// Publish registers the keys of a CA's certificates, and seals what the log does not have of what the CA did. It returns ErrBehind, wrapped,
// if the log has more than the CA's folder: then it is an old copy, and its next list would have a number that was given before.
func (l *Log) Publish(ctx context.Context, a *ca.CA) (*Published, error) {
	done := new(Published)
	if err := l.publish(ctx, a, done); err != nil {
		return done, fmt.Errorf("publishing the CA's acts: %w", err)
	}
	return done, nil
}

func (l *Log) publish(ctx context.Context, a *ca.CA, done *Published) error {
	sealed, err := l.sealed(ctx)
	if err != nil {
		return err
	}
	all, err := entries(ctx, a)
	if err != nil {
		return err
	}
	if err := covers(all, sealed, a.ID); err != nil {
		return err
	}
	missing := slices.DeleteFunc(all, func(e entry) bool { return sealed[e.key] })
	if len(missing) == 0 {
		return nil
	}
	if err := l.register(ctx, a, missing, done); err != nil {
		return err
	}
	for part := range slices.Chunk(missing, atOnce) {
		if err := l.seal(ctx, part, done); err != nil {
			return err
		}
	}
	return nil
}

// An entry is one record's worth of what a CA did.
type entry struct {
	key      string // the same for equal entries only
	ca       evidence.KeyID
	payload  evidence.Payload
	document []byte // DER of evidence, which is kept; nil: there is none
}

// sealed returns the keys of all entries in the log.
func (l *Log) sealed(ctx context.Context) (map[string]bool, error) {
	chain, err := l.Ledger.Chain(ctx, operator.CertificatesChain)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return nil, err
	}
	return keysOf(chain)
}

func keysOf(chain []*evidence.Record) (map[string]bool, error) {
	found := map[string]bool{}
	for _, r := range chain {
		key, _, err := keyOf(&r.Payload)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		found[key] = true
	}
	return found, nil
}

// keyOf says what an act is about: not who decided it, and why.
func keyOf(p *evidence.Payload) (key string, by evidence.KeyID, err error) {
	if p.ActionType == evidence.RevocationEvidence {
		b, err := operator.ReadRevocationEvidence(p)
		if err != nil {
			return "", by, err
		}
		return strings.Join([]string{b.CA.String(), string(b.Kind), b.Digest.String()}, " "), b.CA, nil
	}
	b, err := operator.ReadCertificateEvent(p)
	if err != nil {
		return "", by, err
	}
	about := evidence.DigestOf(b.Certificate).String()
	if b.Event == operator.CertificateRevoked {
		about = strings.Join([]string{b.Serial, b.From, b.InvalidFrom}, " ")
	}
	return strings.Join([]string{b.CA.String(), string(b.Event), about}, " "), b.CA, nil
}

// covers returns ErrBehind, wrapped, if the log has an entry of the CA that its folder lacks.
func covers(all []entry, sealed map[string]bool, id evidence.KeyID) error {
	own := map[string]bool{}
	for _, e := range all {
		own[e.key] = true
	}
	for key := range sealed {
		if strings.HasPrefix(key, id.String()+" ") && !own[key] {
			return fmt.Errorf("%w: such as %q", ErrBehind, key)
		}
	}
	return nil
}

// entries returns what is to be sealed of all that a CA did.
func entries(ctx context.Context, a *ca.CA) ([]entry, error) {
	var all []entry
	err := a.Acts(ctx, func(n int64, act *ca.Act) error {
		of, err := entriesOf(a, act)
		if err != nil {
			return fmt.Errorf("act %d of %s: %w", n, a.Where(), err)
		}
		all = append(all, of...)
		return nil
	})
	return all, err
}

func entriesOf(a *ca.CA, act *ca.Act) ([]entry, error) {
	var list []entry
	add := func(p evidence.Payload, document []byte, err error) error {
		if err != nil {
			return err
		}
		key, _, err := keyOf(&p)
		list = append(list, entry{key: key, ca: a.ID, payload: p, document: document})
		return err
	}
	if act.Certificate != nil {
		p, err := made(evidence.CertificateEvent, operator.CertificateEventBody{Event: operator.CertificateIssued, CA: a.ID, Certificate: act.Certificate, By: act.By, Reason: act.Reason})
		if err := add(p, nil, err); err != nil {
			return nil, err
		}
	}
	for _, r := range act.Revoked {
		body := operator.CertificateEventBody{Event: operator.CertificateRevoked, CA: a.ID, Serial: r.Serial, From: written(r.From), Cause: r.Cause, By: act.By, Reason: act.Reason}
		if !r.InvalidFrom.IsZero() {
			body.InvalidFrom = written(r.InvalidFrom)
		}
		p, err := made(evidence.CertificateEvent, body)
		if err := add(p, nil, err); err != nil {
			return nil, err
		}
	}
	for _, document := range []struct {
		der  []byte
		read func(der []byte) (operator.RevocationEvidenceBody, error)
	}{{act.CRL, listBody}, {act.OCSP, responseBody}} {
		if document.der == nil {
			continue
		}
		body, err := document.read(document.der)
		if err != nil {
			return nil, err
		}
		body.CA, body.Digest, body.By, body.Reason = a.ID, evidence.DigestOf(document.der), act.By, act.Reason
		p, err := made(evidence.RevocationEvidence, body)
		if err := add(p, document.der, err); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func made[B operator.Body](action evidence.ActionType, body B) (evidence.Payload, error) {
	return ledger.OperatorAct(evidence.Payload{ActionType: action, ChainID: operator.CertificatesChain}, body)
}

func listBody(der []byte) (operator.RevocationEvidenceBody, error) {
	list, err := x509.ParseRevocationList(der)
	if err != nil {
		return operator.RevocationEvidenceBody{}, err
	}
	return operator.RevocationEvidenceBody{Kind: operator.KindCRL, Number: list.Number.String(), ThisUpdate: written(list.ThisUpdate), NextUpdate: written(list.NextUpdate)}, nil
}

func responseBody(der []byte) (operator.RevocationEvidenceBody, error) {
	response, err := ocsp.ParseResponse(der, nil)
	if err != nil {
		return operator.RevocationEvidenceBody{}, err
	}
	return operator.RevocationEvidenceBody{Kind: operator.KindOCSP, Serial: response.SerialNumber.Text(16), ThisUpdate: written(response.ThisUpdate), NextUpdate: written(response.NextUpdate)}, nil
}

func written(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// register gives keys their certificates. Of several new certificates of one key the last counts. What the log's rules refuse is noted.
func (l *Log) register(ctx context.Context, a *ca.CA, missing []entry, done *Published) error {
	now := map[string]bool{}
	for _, e := range missing {
		now[e.key] = true
	}
	issued, err := a.Issued(ctx)
	if err != nil {
		return err
	}
	last := map[evidence.KeyID]*ca.Issued{}
	for i := range issued {
		one := &issued[i]
		key := strings.Join([]string{a.ID.String(), string(operator.CertificateIssued), evidence.DigestOf(one.Certificate.Raw).String()}, " ")
		if now[key] && one.Revoked == nil && l.Now().Before(one.Certificate.NotAfter) {
			last[one.KeyID] = one
		}
	}
	var todo []keys.Registration
	named := map[string]bool{} // actors of this call
	for i := range issued {
		one := &issued[i]
		if last[one.KeyID] != one {
			continue
		}
		registration, err := l.registration(ctx, one)
		who := string(one.Role) + " " + one.Name
		if err == nil && registration != nil && named[who] {
			err = fmt.Errorf("%w: another certificate of this CA gives it one", ErrOther)
		}
		switch {
		case refused(err):
			done.Refusals = append(done.Refusals, &Refusal{one.Serial, one.KeyID, err})
		case err != nil:
			return err
		case registration != nil:
			todo, named[who] = append(todo, *registration), true
		}
	}
	for part := range slices.Chunk(todo, atOnce) {
		if err := l.Registrar.RegisterMany(ctx, part); err != nil {
			return err // keys changed meanwhile: the next call decides anew
		}
		done.Keys += len(part)
	}
	return nil
}

// atOnce is how many records go into one transaction.
const atOnce = 100

// refused reports whether an error says that the log's rules do not let a key be registered for an actor.
func refused(err error) bool {
	var field *evidence.FieldError
	for _, rule := range []error{ErrOther, keys.ErrHeld, keys.ErrForeign, keys.ErrEnded, keys.ErrPair, keys.ErrEvent} {
		if errors.Is(err, rule) {
			return true
		}
	}
	return errors.As(err, &field)
}

// registration gives a certificate's key this certificate. It returns nil if the key has it.
func (l *Log) registration(ctx context.Context, one *ca.Issued) (*keys.Registration, error) {
	history, err := l.Ledger.Keys(ctx)
	if err != nil {
		return nil, err
	}
	der := one.Certificate.Raw
	if k := history.Key(one.KeyID); k != nil && len(k.Certificates) == 1 && slices.Equal(k.Certificates[0], der) {
		return nil, nil
	}
	if _, err := l.mayName(ctx, &ca.Request{Role: one.Role, Name: one.Name, KeyID: one.KeyID}); err != nil {
		return nil, err
	}
	owner := keys.OwnerKey{Public: one.Certificate.RawSubjectPublicKeyInfo, Certificates: [][]byte{der}}
	return &keys.Registration{Role: one.Role, Name: one.Name, Keys: []keys.OwnerKey{owner}, Why: keys.Why{Reason: one.Reason, By: one.By}}, nil
}

// seal seals entries that the log still lacks, with the documents that they are about.
func (l *Log) seal(ctx context.Context, list []entry, done *Published) error {
	for _, e := range list {
		if e.document == nil {
			continue
		}
		if err := l.Files.Create(ctx, fileOf(evidence.DigestOf(e.document)), e.document); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	records, err := l.Operator.SealNext(ctx, operator.CertificatesChain, func(chain []*evidence.Record) ([]evidence.Payload, error) {
		there, err := keysOf(chain) // another process may have been faster
		if err != nil {
			return nil, err
		}
		var payloads []evidence.Payload
		for _, e := range list {
			if !there[e.key] {
				payloads, there[e.key] = append(payloads, e.payload), true
			}
		}
		return payloads, nil
	})
	done.Acts += len(records)
	return err
}

func fileOf(digest evidence.Digest) string {
	return path.Join(Folder, strings.TrimPrefix(digest.String(), "sha256:")+".der")
}

// Document returns the list or OCSP response with a digest that an act names. The error wraps fs.ErrNotExist if it is not kept.
func (l *Log) Document(ctx context.Context, digest evidence.Digest) ([]byte, error) {
	der, err := l.Files.Read(ctx, fileOf(digest))
	if err != nil {
		return nil, fmt.Errorf("reading evidence of revocation %s: %w", digest, err)
	}
	if evidence.DigestOf(der) != digest {
		return nil, fmt.Errorf("%s is damaged: it has another digest than its name says", l.Files.Where(fileOf(digest)))
	}
	return der, nil
}
