package certlog

import (
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/keys"
	"jurat/verify/trust"
)

// Kind is what a CA or an operator has done wrong with certificates.
type Kind string

const (
	UnknownKey  Kind = "unknown-key"  // a certificate for an actor whose key this is not, by the log's key events
	NotItsOwn   Kind = "not-its-own"  // an act about a certificate or list that the CA did not sign
	TwoLists    Kind = "two-lists"    // two lists with one number
	NumberBack  Kind = "number-back"  // a later list with a smaller number
	Unlogged    Kind = "unlogged"     // a certificate or list of the CA that no act names
	NotRevoked  Kind = "not-revoked"  // a list without a certificate that was revoked before, by the log
	SerialTwice Kind = "serial-twice" // two certificates with one serial number
)

// Meaning explains the kind to people.
func (k Kind) Meaning() string {
	return map[Kind]string{
		UnknownKey:  "the CA vouches for a key that the log does not know as this actor's: the key's holder can pass for the actor before every reader who trusts the CA",
		NotItsOwn:   "the log says that the CA did something that its key did not sign: the operator, or the person who gave it to the operator, made it up",
		TwoLists:    "the CA has signed two lists with one number: some readers may be shown one, and others the other",
		NumberBack:  "the numbers of the CA's lists do not grow with time: the CA was set back to an old copy, or keeps two series of lists",
		Unlogged:    "the CA has signed something that is not in the log, and those who watch the log never saw it",
		NotRevoked:  "the log says that the CA has revoked a certificate, and a later list of the CA does not: a reader of this list takes the certificate for good",
		SerialTwice: "the CA has signed two certificates with one serial number: no list can revoke only one of them",
	}[k]
}

// An Alarm says what an honest CA and an honest operator never do.
type Alarm struct {
	Kind    Kind           `json:"kind"`
	CA      evidence.KeyID `json:"ca"`
	Reason  string         `json:"reason"`
	Records []string       `json:"records,omitempty"` // ids of the acts that show it
}

// A Watch is what a reader holds against each other. The caller has verified the records, and that none is left out.
type Watch struct {
	Acts []*evidence.Record  // of the chain operator.CertificatesChain, in order
	Keys *keys.History       // by the same log, not older than Acts
	CAs  []*x509.Certificate // that the reader trusts; of other CAs, the log's word counts

	Lists        []*x509.RevocationList // that the reader got from elsewhere
	Certificates []*x509.Certificate    // likewise
}

// A watch is a Watch under way.
type watch struct {
	*Watch
	alarms  []Alarm
	cas     map[evidence.KeyID]*x509.Certificate
	issued  map[[2]string]issued // by CA and serial number
	logged  map[evidence.Digest]bool
	lists   map[evidence.KeyID][]numbered
	revoked []revoked
}

type issued struct {
	record string
	digest evidence.Digest
}

// numbered is a list that an act names, or that the reader has.
type numbered struct {
	number *big.Int
	digest evidence.Digest
	from   time.Time
	record string // "": the reader has it from elsewhere
}

type revoked struct {
	ca     evidence.KeyID
	serial string
	from   time.Time
	record string
}

// Alarms returns everything that an honest CA and an honest operator never do, in the order of the log. It returns an error for acts that
// cannot be read, and for lists and certificates from elsewhere that no known CA has signed.
func (w *Watch) Alarms() ([]Alarm, error) {
	if w.Keys == nil {
		return nil, errors.New("watching certificates: the log's key events are missing")
	}
	run := &watch{Watch: w, cas: map[evidence.KeyID]*x509.Certificate{}, issued: map[[2]string]issued{}, logged: map[evidence.Digest]bool{}, lists: map[evidence.KeyID][]numbered{}}
	for _, c := range w.CAs {
		run.cas[evidence.DigestOf(c.RawSubjectPublicKeyInfo)] = c
	}
	for _, r := range w.Acts {
		if err := run.act(r); err != nil {
			return nil, fmt.Errorf("watching certificates: record %s: %w", r.Payload.RecordID, err)
		}
	}
	run.registered()
	if err := run.elsewhere(); err != nil {
		return nil, fmt.Errorf("watching certificates: %w", err)
	}
	run.numbers()
	return run.alarms, nil
}

func (w *watch) alarm(kind Kind, ca evidence.KeyID, records []string, format string, args ...any) {
	w.alarms = append(w.alarms, Alarm{kind, ca, fmt.Sprintf(format, args...), records})
}

func (w *watch) act(r *evidence.Record) error {
	id := r.Payload.RecordID
	if r.Payload.ActionType == evidence.RevocationEvidence {
		b, err := operator.ReadRevocationEvidence(&r.Payload)
		if err != nil || b.Kind != operator.KindCRL {
			return err
		}
		return w.listed(b, id)
	}
	b, err := operator.ReadCertificateEvent(&r.Payload)
	if err != nil {
		return err
	}
	if b.Event == operator.CertificateIssued {
		w.certificate(b, id)
		return nil
	}
	from, err := evidence.ParseTime(b.From)
	w.revoked = append(w.revoked, revoked{b.CA, b.Serial, from, id})
	return err
}

func (w *watch) listed(b *operator.RevocationEvidenceBody, id string) error {
	number, is := new(big.Int).SetString(b.Number, 10)
	from, err := evidence.ParseTime(b.ThisUpdate)
	if !is || err != nil {
		return errors.Join(errors.New("the list has no number"), err)
	}
	w.logged[b.Digest] = true
	w.lists[b.CA] = append(w.lists[b.CA], numbered{number, b.Digest, from, id})
	return nil
}

// certificate looks at a certificate that was issued by the log's word.
func (w *watch) certificate(b *operator.CertificateEventBody, id string) {
	digest := evidence.DigestOf(b.Certificate)
	w.logged[digest] = true
	c, err := x509.ParseCertificate(b.Certificate)
	if err != nil {
		w.alarm(NotItsOwn, b.CA, []string{id}, "what the act calls a certificate cannot be read: %v", err)
		return
	}
	serial := [2]string{b.CA.String(), c.SerialNumber.Text(16)}
	if before, there := w.issued[serial]; there && before.digest != digest {
		w.alarm(SerialTwice, b.CA, []string{before.record, id}, "two certificates have the serial number %s", serial[1])
	}
	w.issued[serial] = issued{id, digest}
	if evidence.DigestOf(c.RawSubjectPublicKeyInfo) == b.CA {
		w.own(c, b.CA, id)
		return
	}
	if own := w.cas[b.CA]; own == nil {
		w.alarm(NotItsOwn, b.CA, []string{id}, "certificate %s is said to be issued by a CA whose own certificate is neither in the log before nor in the trust file", serial[1])
		return
	} else if err := c.CheckSignatureFrom(own); err != nil {
		w.alarm(NotItsOwn, b.CA, []string{id}, "certificate %s is not signed by the CA: %v", serial[1], err)
		return
	}
	w.names(c, b.CA, id)
}

// own takes in a CA's own certificate.
func (w *watch) own(c *x509.Certificate, ca evidence.KeyID, id string) {
	if err := c.CheckSignatureFrom(c); err != nil {
		w.alarm(NotItsOwn, ca, []string{id}, "the CA's own certificate is not signed by its key, or is not that of a CA: %v", err)
		return
	}
	if w.cas[ca] == nil {
		w.cas[ca] = c
	}
}

// names checks that the actor whom a certificate names has this key, by the log's key events.
func (w *watch) names(c *x509.Certificate, ca evidence.KeyID, id string) {
	serial := c.SerialNumber.Text(16)
	role, name, err := trust.Named(c)
	if err != nil {
		w.alarm(UnknownKey, ca, []string{id}, "certificate %s names no actor: %v", serial, err)
		return
	}
	key := evidence.DigestOf(c.RawSubjectPublicKeyInfo)
	k, made := w.Keys.Key(key), c.NotBefore.Add(keys.Skew)
	switch {
	case k == nil:
		w.alarm(UnknownKey, ca, []string{id}, "certificate %s says that %s is the key of %s %q, and the log knows no such key", serial, key, role, name)
	case k.Role != role || k.Name != name:
		w.alarm(UnknownKey, ca, []string{id}, "certificate %s says that %s is the key of %s %q, and by the log it is that of %s %q", serial, key, role, name, k.Role, k.Name)
	case !k.Until.IsZero() && !made.Before(k.Until):
		w.alarm(UnknownKey, ca, []string{id}, "certificate %s for %s %q was made at %s, and the key %s had ended at %s", serial, role, name, made.Format(time.RFC3339), key, k.Until.Format(time.RFC3339))
	}
}

// registered looks for certificates in key events that no act names, of CAs that the log or the reader knows.
func (w *watch) registered() {
	for _, k := range w.Keys.Keys() {
		for _, der := range k.Certificates {
			c, err := x509.ParseCertificate(der)
			if err != nil || w.logged[evidence.DigestOf(der)] {
				continue
			}
			if id, _ := w.issuer(c); !id.IsZero() && w.watched(id) {
				w.alarm(Unlogged, id, nil, "certificate %s of %s %q stands in a key event, and no act says that the CA issued it", c.SerialNumber.Text(16), k.Role, k.Name)
			}
		}
	}
}

// issuer returns the CA that signed a certificate, or a zero id.
func (w *watch) issuer(c *x509.Certificate) (evidence.KeyID, *x509.Certificate) {
	for id, own := range w.cas {
		if c.CheckSignatureFrom(own) == nil {
			return id, own
		}
	}
	return evidence.KeyID{}, nil
}

// watched reports whether the log has acts of a CA. A CA outside, which the log only knows from the reader's trust file, seals nothing here.
func (w *watch) watched(id evidence.KeyID) bool {
	_, lists := w.lists[id]
	for at := range w.issued {
		if at[0] == id.String() {
			return true
		}
	}
	return lists
}

// elsewhere holds what the reader got from elsewhere against the log.
func (w *watch) elsewhere() error {
	for _, c := range w.Certificates {
		id, _ := w.issuer(c)
		if id.IsZero() {
			return fmt.Errorf("certificate %s of %q is signed by no CA of the log or the trust file", c.SerialNumber.Text(16), c.Subject)
		}
		if w.watched(id) && !w.logged[evidence.DigestOf(c.Raw)] {
			w.alarm(Unlogged, id, nil, "certificate %s of %q is in no act", c.SerialNumber.Text(16), c.Subject)
			w.names(c, id, "")
		}
	}
	for _, list := range w.Lists {
		if err := w.list(list); err != nil {
			return err
		}
	}
	return nil
}

func (w *watch) list(list *x509.RevocationList) error {
	var id evidence.KeyID
	for candidate, own := range w.cas {
		if list.CheckSignatureFrom(own) == nil {
			id = candidate
		}
	}
	if id.IsZero() {
		return fmt.Errorf("the list of %s is signed by no CA of the log or the trust file", list.ThisUpdate.Format(time.RFC3339))
	}
	if list.Number == nil {
		return fmt.Errorf("the list of %s has no number", list.ThisUpdate.Format(time.RFC3339))
	}
	digest := evidence.DigestOf(list.Raw)
	if w.watched(id) && !w.logged[digest] {
		w.alarm(Unlogged, id, nil, "the list %s of %s is in no act", list.Number, list.ThisUpdate.Format(time.RFC3339))
		w.lists[id] = append(w.lists[id], numbered{list.Number, digest, list.ThisUpdate, ""})
	}
	for _, r := range w.revoked {
		named := slices.ContainsFunc(list.RevokedCertificateEntries, func(e x509.RevocationListEntry) bool { return e.SerialNumber.Text(16) == r.serial })
		if r.ca == id && !r.from.After(list.ThisUpdate) && !named {
			w.alarm(NotRevoked, id, []string{r.record}, "certificate %s is revoked from %s on, and the list %s of %s does not name it", r.serial, r.from.Format(time.RFC3339),
				list.Number, list.ThisUpdate.Format(time.RFC3339))
		}
	}
	return nil
}

// numbers compares all lists of each CA.
func (w *watch) numbers() {
	var cas []evidence.KeyID
	for id := range w.lists {
		cas = append(cas, id)
	}
	slices.SortFunc(cas, func(a, b evidence.KeyID) int { return slices.Compare(a[:], b[:]) })
	for _, id := range cas {
		lists := w.lists[id]
		slices.SortStableFunc(lists, func(a, b numbered) int { return a.number.Cmp(b.number) })
		for i := 1; i < len(lists); i++ {
			a, b := lists[i-1], lists[i]
			same := a.number.Cmp(b.number) == 0
			switch {
			case same && a.digest != b.digest:
				w.alarm(TwoLists, id, recordsOf(a, b), "two lists have the number %s, with the digests %s and %s", a.number, a.digest, b.digest)
			case !same && b.from.Before(a.from):
				w.alarm(NumberBack, id, recordsOf(a, b), "the list %s is of %s, and the list %s of %s", a.number, a.from.Format(time.RFC3339), b.number, b.from.Format(time.RFC3339))
			}
		}
	}
}

func recordsOf(lists ...numbered) (ids []string) {
	for _, l := range lists {
		if l.record != "" {
			ids = append(ids, l.record)
		}
	}
	return ids
}
