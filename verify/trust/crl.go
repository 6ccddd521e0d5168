package trust

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"time"

	"jurat/timestamp"
)

// MaxCRL is the size in bytes above which a revocation list is refused unread.
const MaxCRL = 16 << 20

// ParseCRL reads a certificate revocation list (RFC 5280, section 5) in DER, or in PEM that holds no second block. It
// does not check the signature; a Checker does. It returns an error for a list above MaxCRL, and for text beside the list.
func ParseCRL(doc []byte) (*x509.RevocationList, error) {
	list, err := parseCRL(doc)
	if err != nil {
		return nil, fmt.Errorf("reading revocation list: %w", err)
	}
	return list, nil
}

func parseCRL(doc []byte) (*x509.RevocationList, error) {
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
	list, err := x509.ParseRevocationList(der)
	if err != nil {
		return nil, err
	}
	if len(list.Raw) != len(der) {
		return nil, fmt.Errorf("there is more data after the list, at byte %d", len(list.Raw))
	}
	return list, nil
}

// A List is a revocation list of the reader's, indexed by serial number. It is safe for concurrent use.
type List struct {
	list     *x509.RevocationList
	entries  map[string]entry // by serialKey
	expired  time.Time        // certificates that expired from then on are still named in it; zero: it does not say
	unusable error            // why the list cannot be used; nil: it can

	digest [sha256.Size]byte // of the list

	mu     sync.Mutex                  // guards signed
	signed map[[sha256.Size]byte]error // whether an issuer signed it, by signedKey; a bounded cache
}

// An entry is what a list says of a certificate that it names.
type entry struct {
	since  time.Time // revoked then, or known to be compromised since this earlier time
	reason int       // CRLReason; noReason if none is stated
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
	l := &List{list: list, digest: sha256.Sum256(list.Raw), signed: map[[sha256.Size]byte]error{}, entries: make(map[string]entry, len(list.RevokedCertificateEntries))}
	l.unusable = l.read()
	return l
}

// read takes in a list that covers all certificates of its issuer and has no unknown critical extension. Such an extension can change
// what silence means, and would otherwise clear a revoked certificate.
func (l *List) read() error {
	for i, extension := range l.list.Extensions {
		switch {
		case extension.Id.Equal(oidDeltaCRL):
			return errors.New("it is a delta list, which names only changes")
		case extension.Id.Equal(oidDistributionPoint):
			return errors.New("it is a part of a list, or an indirect one (issuing distribution point)")
		case extension.Critical || twice(l.list.Extensions[:i], extension):
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
	read, serial := entry{since: e.RevocationTime, reason: noReason}, serialKey(e.SerialNumber)
	for i, extension := range e.Extensions {
		switch {
		case twice(e.Extensions[:i], extension):
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

func twice(before []pkix.Extension, extension pkix.Extension) bool {
	for _, other := range before {
		if other.Id.Equal(extension.Id) {
			return true
		}
	}
	return false
}

func generalizedTime(der []byte) (t time.Time, err error) {
	if rest, err := asn1.UnmarshalWithParams(der, &t, "generalized"); err != nil || len(rest) > 0 {
		return t, errors.New("a date in it is not a GeneralizedTime")
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

// usable returns an error if the list cannot tell what an issuer has revoked by a moment.
func (l *List) usable(share *timestamp.Share, issuer *x509.Certificate, at time.Time) error {
	key := signedKey(l, issuer)
	signed := share.Once(key, func() error { return l.signedBy(key, issuer) })
	named := fmt.Sprintf("the revocation list of %s", utc(l.list.ThisUpdate))
	switch {
	case errors.Is(signed, timestamp.ErrEffort):
		return fmt.Errorf("%s was not checked: %w", named, signed)
	case signed != nil:
		return fmt.Errorf("%s in its issuer's name is not signed by the issuer: %w", named, signed)
	case l.unusable != nil:
		return fmt.Errorf("%s cannot be used: %w", named, l.unusable)
	case l.list.ThisUpdate.After(at):
		return fmt.Errorf("%s begins after the moment of checking, %s", named, utc(at))
	case l.list.NextUpdate.IsZero():
		return fmt.Errorf("%s does not say how long it is valid", named)
	case l.list.NextUpdate.Before(at):
		return fmt.Errorf("%s is stale: a newer one was due by %s, and the moment of checking is %s", named, utc(l.list.NextUpdate), utc(at))
	}
	return nil
}

// signedKey is the cache key for whether an issuer signed a list.
func signedKey(l *List, issuer *x509.Certificate) [sha256.Size]byte {
	return sha256.Sum256(slices.Concat([]byte("revocation list"), l.digest[:], issuer.Raw))
}

// maxIssuers bounds the cache of issuers per list. The sender of a file controls how many there are.
const maxIssuers = 64

// signedBy checks the list's signature once for each issuer.
func (l *List) signedBy(key [sha256.Size]byte, issuer *x509.Certificate) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	signed, asked := l.signed[key]
	if !asked {
		signed = signedBy(l.list, issuer)
	}
	if len(l.signed) < maxIssuers {
		l.signed[key] = signed
	}
	return signed
}

// signedBy checks a list's signature. crypto/x509 still accepts SHA-1 there.
func signedBy(list *x509.RevocationList, issuer *x509.Certificate) error {
	switch list.SignatureAlgorithm {
	case x509.SHA1WithRSA, x509.ECDSAWithSHA1, x509.DSAWithSHA1, x509.DSAWithSHA256:
		return fmt.Errorf("signed with %s", list.SignatureAlgorithm)
	}
	return list.CheckSignatureFrom(issuer)
}

// revoked looks up in the reader's lists whether an issuer revoked its certificate. It returns nil if not. The error
// says why the lists do not tell. Of several lists the newest counts.
func (c *Checker) revoked(certificate, issuer *x509.Certificate) (*entry, error) {
	at := c.At
	if at.IsZero() {
		return nil, errors.New("no moment of checking was given, so no revocation list can be fresh")
	}
	var newest *List
	why := fmt.Errorf("no revocation list of %q was given", issuer.Subject)
	for _, l := range c.Lists {
		if !bytes.Equal(l.list.RawIssuer, issuer.RawSubject) {
			continue
		}
		if err := l.usable(c.Share, issuer, at); err != nil {
			why = err
		} else if newest == nil || l.list.ThisUpdate.After(newest.list.ThisUpdate) {
			newest = l
		}
	}
	if newest == nil {
		return nil, why
	}
	if e, named := newest.entries[serialKey(certificate.SerialNumber)]; named {
		return &e, nil
	}
	// Lists drop expired certificates, so the absence of one proves nothing.
	expired := certificate.NotAfter.Before(newest.list.ThisUpdate)
	if expired && (newest.expired.IsZero() || newest.expired.After(certificate.NotAfter)) {
		return nil, fmt.Errorf("the revocation list of %s need not name it any longer: the certificate of %q had expired on %s; give a list of before that, and its time as the moment of checking",
			utc(newest.list.ThisUpdate), certificate.Subject, utc(certificate.NotAfter))
	}
	return nil, nil
}
