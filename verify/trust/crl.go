package trust

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"golang.org/x/crypto/cryptobyte"
	tags "golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/kit/fault"
	"jurat/timestamp"
)

// MaxCRL is the size in bytes above which a revocation list is refused unread.
const MaxCRL = 16 << 20

// ParseCRL reads a certificate revocation list (RFC 5280, section 5) in DER, or in PEM that holds no second block. It
// does not check the signature; a Checker does. It returns an error for a list above MaxCRL, and for text beside the list.
func ParseCRL(doc []byte) (list *x509.RevocationList, err error) {
	defer fault.While(&err, "reading revocation list")
	const sequence = 0x30 // with which every list in DER begins
	if len(doc) > MaxCRL {
		return nil, fmt.Errorf("%d bytes: want at most %d", len(doc), MaxCRL)
	}
	der := doc
	if len(doc) == 0 || doc[0] != sequence {
		block, rest := pem.Decode(doc)
		switch {
		case block == nil:
			return nil, errors.New("neither DER nor PEM")
		case block.Type != "X509 CRL":
			return nil, fmt.Errorf("the PEM block is a %q: want %q", block.Type, "X509 CRL")
		case len(bytes.TrimSpace(rest)) > 0:
			return nil, errors.New("there is more text after the PEM block: want one list in a file")
		}
		der = block.Bytes
	}
	if list, err = x509.ParseRevocationList(der); err != nil {
		return nil, err
	}
	if len(list.Raw) != len(der) {
		return nil, fmt.Errorf("there is more data after the list, at byte %d", len(list.Raw))
	}
	return list, nil
}

// A List is a revocation list, indexed by serial number. It is safe for concurrent use.
type List struct {
	list     *x509.RevocationList // without its entries
	entries  map[string]entry     // by serialKey
	expired  time.Time            // certificates that expired from then on are still named in it; zero: it does not say
	unusable error                // why the list cannot be used; nil: it can

	digest [sha256.Size]byte // of the list
}

// Reasons of RFC 5280, section 5.3.1.
const (
	noReason             = -1
	unspecified          = 0
	affiliationChanged   = 3
	superseded           = 4
	cessationOfOperation = 5
	removeFromCRL        = 8
)

var (
	oidReasonCode        = asn1.ObjectIdentifier{2, 5, 29, 21}
	oidInvalidityDate    = asn1.ObjectIdentifier{2, 5, 29, 24}
	oidDeltaCRL          = asn1.ObjectIdentifier{2, 5, 29, 27}
	oidDistributionPoint = asn1.ObjectIdentifier{2, 5, 29, 28}
	oidCertificateIssuer = asn1.ObjectIdentifier{2, 5, 29, 29}
	oidExpiredCerts      = asn1.ObjectIdentifier{2, 5, 29, 60}
)

// NewList makes a revocation list ready for a Checker.
func NewList(list *x509.RevocationList) *List {
	l := &List{digest: sha256.Sum256(list.Raw), entries: make(map[string]entry, len(list.RevokedCertificateEntries))}
	slim := *list // the entries take far more room as the library has them
	l.list = &slim
	l.unusable = l.read()
	slim.RevokedCertificateEntries = nil
	//lint:ignore SA1019 the library fills it, too
	slim.RevokedCertificates = nil
	return l
}

// read takes in a list that covers all certificates of its issuer and has no unknown critical extension. Such an extension can change
// what silence means, and would otherwise clear a revoked certificate.
func (l *List) read() error {
	before := map[string]bool{} // anyone can send a list with very many
	for _, extension := range l.list.Extensions {
		id := extension.Id.String()
		twice := before[id]
		before[id] = true
		switch {
		case extension.Id.Equal(oidDeltaCRL):
			return errors.New("it is a delta list, which names only changes")
		case extension.Id.Equal(oidDistributionPoint):
			return errors.New("it is a part of a list, or an indirect one (issuing distribution point)")
		case extension.Critical || twice:
			return fmt.Errorf("it has the extension %s, critical and unknown here, or twice", extension.Id)
		case extension.Id.Equal(oidExpiredCerts):
			var err error
			if l.expired, err = generalizedTime(extension.Value); err != nil {
				return err
			}
		}
	}
	for i := range l.list.RevokedCertificateEntries {
		if err := l.readEntry(&l.list.RevokedCertificateEntries[i]); err != nil {
			return err
		}
	}
	return nil
}

func (l *List) readEntry(e *x509.RevocationListEntry) error {
	read, serial := entry{on: e.RevocationTime, since: e.RevocationTime, reason: noReason}, serialKey(e.SerialNumber)
	before := map[string]bool{} // anyone can send a list with very many
	for _, extension := range e.Extensions {
		id := extension.Id.String()
		twice := before[id]
		before[id] = true
		switch {
		case twice:
			return fmt.Errorf("an entry has the extension %s twice", extension.Id)
		case extension.Id.Equal(oidCertificateIssuer):
			return errors.New("it is an indirect list: it names certificates of other issuers")
		case extension.Id.Equal(oidReasonCode):
			read.reason = e.ReasonCode
		case extension.Id.Equal(oidInvalidityDate):
			since, err := generalizedTime(extension.Value)
			if err != nil {
				return err
			}
			if since.Before(read.since) {
				read.since = since
			}
		case extension.Critical:
			return fmt.Errorf("an entry has the critical extension %s, which is unknown here", extension.Id)
		}
	}
	if read.reason == removeFromCRL {
		return errors.New("an entry says removeFromCRL, which is allowed only in delta lists")
	}
	if _, there := l.entries[serial]; there {
		return errors.New("it names a certificate twice")
	}
	l.entries[serial] = read
	return nil
}

func generalizedTime(der []byte) (t time.Time, err error) {
	const form = "20060102150405Z"
	in, text := cryptobyte.String(der), cryptobyte.String(nil)
	read := in.ReadASN1(&text, tags.GeneralizedTime) && in.Empty()
	t, err = time.Parse(form, string(text))
	if !read || err != nil || t.Format(form) != string(text) {
		return t, errors.New("a date in it is not a GeneralizedTime in whole seconds of UTC")
	}
	return t, nil
}

// serialKey is a serial number as a map key. RFC 5280 forbids negative ones, but they occur.
func serialKey(n *big.Int) string {
	if n.Sign() < 0 {
		return "-" + string(n.Bytes())
	}
	return "+" + string(n.Bytes())
}

// about returns what the list says of a certificate, if it is in the name of its issuer.
func (l *List) about(certificate *x509.Certificate) (claim, bool) {
	if !bytes.Equal(l.list.RawIssuer, certificate.RawIssuer) {
		return claim{}, false
	}
	found := claim{name: fmt.Sprintf("the revocation list of %s", utc(l.list.ThisUpdate)), from: l.list.ThisUpdate, until: l.list.NextUpdate, by: l}
	if l.unusable != nil {
		found.err = fmt.Errorf("%s cannot be used: %w", found.name, l.unusable)
		return found, true
	}
	if e, named := l.entries[serialKey(certificate.SerialNumber)]; named {
		found.entry = &e
		return found, true
	}
	// Lists drop expired certificates, so the absence of one proves nothing.
	if expired := certificate.NotAfter.Before(found.from); expired && (l.expired.IsZero() || l.expired.After(certificate.NotAfter)) {
		found.err = fmt.Errorf("%s need not name it any longer: the certificate of %q had expired on %s; "+
			"give a list of before that, and its time as the moment of checking", found.name, certificate.Subject, utc(certificate.NotAfter))
	}
	return found, true
}

// signedBy checks the list's signature.
func (l *List) signedBy(issuer *x509.Certificate) error {
	weak := []x509.SignatureAlgorithm{x509.MD5WithRSA, x509.SHA1WithRSA, x509.ECDSAWithSHA1, x509.DSAWithSHA1, x509.DSAWithSHA256}
	if slices.Contains(weak, l.list.SignatureAlgorithm) { // crypto/x509 still accepts SHA-1 there
		return fmt.Errorf("signed with %s", l.list.SignatureAlgorithm)
	}
	return l.list.CheckSignatureFrom(issuer)
}

// DefaultGrace is how long after a record's proved time a list must have been made to say of itself what was revoked when the record existed,
// if the reader does not say otherwise. It gives the owner of a stolen key the time to report the theft, and the CA the time to publish it.
const DefaultGrace = 24 * time.Hour

// A claim is what a list says of one certificate.
type claim struct {
	name  string    // of the list, for people
	from  time.Time // thisUpdate
	until time.Time // nextUpdate; zero: it does not say
	entry *entry    // nil: not revoked
	err   error     // why it does not tell; nil: it does
	by    *List
}

// An entry is what a list says of a revoked certificate.
type entry struct {
	on     time.Time // when it was revoked
	since  time.Time // revoked then, or known to be compromised since this earlier time
	reason int       // CRLReason; noReason if none is stated
}

// reasons are the names of CRLReason in RFC 5280, section 5.3.1.
var reasons = []string{"unspecified", "keyCompromise", "cACompromise", "affiliationChanged", "superseded", "cessationOfOperation", "certificateHold", "",
	"removeFromCRL", "privilegeWithdrawn", "aACompromise"}

// after says that it revoked a certificate after what that signed existed.
func (e *entry) after(certificate *x509.Certificate, existed ProvedTime) *Revoked {
	r := &Revoked{Certificate: cmp.Or(certificate.Subject.String(), "serial number "+certificate.SerialNumber.String()), On: e.on.UTC(), Existed: existed}
	if e.since.Before(e.on) {
		r.Since = e.since.UTC()
	}
	if e.reason >= 0 && e.reason < len(reasons) {
		r.Reason = reasons[e.reason]
	}
	return r
}

// revoked looks up in the reader's lists whether an issuer revoked its certificate. A list counts while it is good, and later as of its own time, if
// that is after a moment; the zero moment means that it does not. The error says why the lists do not tell. The newest usable list counts.
func (c *Checker) revoked(certificate, issuer *x509.Certificate, after time.Time) (*claim, error) {
	if c.At.IsZero() {
		return nil, errors.New("no moment of checking was given, so no revocation list can be fresh")
	}
	var newest *claim
	why := fmt.Errorf("no revocation list of %q was given", issuer.Subject)
	for i, found := range c.claims(certificate) {
		if newest != nil && found.from.Before(newest.from) {
			break
		}
		switch err := c.usable(&found, issuer, after); {
		case errors.Is(err, timestamp.ErrEffort): // an older one must not count in its place: the sender of the file controls what is left
			return nil, err
		case err != nil && newest == nil && i == 0:
			why = err
		case err != nil:
		case newest == nil:
			newest = &found
		case !same(newest.entry, found.entry):
			return nil, fmt.Errorf("%s contradicts %s about the certificate of %q", found.name, newest.name, certificate.Subject)
		}
	}
	if newest == nil {
		return nil, why
	}
	return newest, nil
}

func same(a, b *entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.since.Equal(b.since) && a.reason == b.reason
}

// claims returns what all lists claim of a certificate, the newest first, and those of equal age in the order in which they were given.
func (c *Checker) claims(certificate *x509.Certificate) (list []claim) {
	for _, l := range c.Lists {
		if found, speaks := l.about(certificate); speaks {
			list = append(list, found)
		}
	}
	slices.SortStableFunc(list, func(a, b claim) int { return b.from.Compare(a.from) })
	return list
}

// usable returns an error if a claim does not count. The signature is checked last, because that costs most.
func (c *Checker) usable(s *claim, issuer *x509.Certificate, after time.Time) error {
	if err := cmp.Or(s.err, s.counts(c.At, after)); err != nil {
		return err
	}
	key := sha256.Sum256(slices.Concat([]byte("revocation"), s.by.digest[:], issuer.Raw))
	err := c.Share.Once(c.Memory, key, func() error { return s.by.signedBy(issuer) })
	switch {
	case errors.Is(err, timestamp.ErrEffort):
		return fmt.Errorf("%s was not checked: %w", s.name, err)
	case err != nil:
		return fmt.Errorf("%s in its issuer's name is not signed by the issuer: %w", s.name, err)
	}
	return nil
}

// counts returns an error unless a list is good at the moment of checking, or was made after a moment. One that is neither hides every
// revocation that came between it and the record.
func (s *claim) counts(at, after time.Time) error {
	var late string
	if !after.IsZero() {
		late = fmt.Sprintf("; only one of after %s still shows what was revoked when the record existed, or soon after", utc(after))
	}
	switch {
	case s.from.After(at):
		return fmt.Errorf("%s begins after the moment of checking, %s", s.name, utc(at))
	case late != "" && s.from.After(after):
		return nil
	case s.until.IsZero():
		return fmt.Errorf("%s does not say how long it is valid%s", s.name, late)
	case s.until.Before(at):
		return fmt.Errorf("%s is stale: a newer one was due by %s, and the moment of checking is %s%s", s.name, utc(s.until), utc(at), late)
	}
	return nil
}
