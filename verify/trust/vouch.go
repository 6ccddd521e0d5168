package trust

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/timestamp"
)

// maxCertificates bounds the certificates of a record. Vouch searches paths among all of them, and the sender of the
// file controls how many there are.
const maxCertificates = 16

var (
	oidKeyUsage       = asn1.ObjectIdentifier{2, 5, 29, 15}
	oidSubjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidExtKeyUsage    = asn1.ObjectIdentifier{2, 5, 29, 37}
	// oidDocumentSigning is id-kp-documentSigning of RFC 9336: for signing what people read.
	oidDocumentSigning = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 36}
)

// A Vouching says whether a CA of the trust file vouches for a signer's key. Rule and Err say why not.
type Vouching struct {
	CA   *CA
	Rule string // "": it vouches
	Err  error

	Path    []*x509.Certificate // by which it vouches, from the signer's certificate to the CA's
	OwnWord bool                // that a certificate counted then, only the operator's clock says
	Revoked *Revoked            // a certificate of the path that was revoked later; nil: none
	AsOf    time.Time           // up to then no other is known to be revoked; zero: nothing was asked
}

// vouchingOrder ranks the answers of several CAs and certificates, best first. The best counts, so a bad certificate
// beside a good one does no harm.
var vouchingOrder = []string{"", "revoked", "revocation", "effort", "actor", "certificate"}

func (v Vouching) better(than Vouching) bool {
	return slices.Index(vouchingOrder, v.Rule) < slices.Index(vouchingOrder, than.Rule)
}

// Certificates are the readable certificates of a record. They are unverified: anyone can have added them.
type Certificates struct {
	Key     crypto.PublicKey    // the signer's
	Signers []*x509.Certificate // of the signer's key
	between []*x509.Certificate // of CAs
}

// ReadCertificates reads the certificates of a record, and finds those of the signer with this key id. It leaves out
// what it cannot parse. It returns an error if the record has too many certificates, if the signer's key cannot sign
// payloads, and if it is an ML-DSA-65 key, which only the trust file can list.
func ReadCertificates(r *evidence.Record, id evidence.KeyID) (*Certificates, error) {
	if n := len(r.Certificates); n > maxCertificates {
		return nil, fmt.Errorf("the record has %d certificates; with more than %d, none is checked", n, maxCertificates)
	}
	given := new(Certificates)
	for _, der := range r.Certificates {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			continue // an unreadable certificate proves nothing, and does not count against others
		}
		if evidence.DigestOf(certificate.RawSubjectPublicKeyInfo) == id {
			given.Signers = append(given.Signers, certificate)
		}
		if mayCertify(certificate) {
			given.between = append(given.between, certificate)
		}
	}
	given.between = timestamp.Between(given.between)
	if len(given.Signers) == 0 {
		return given, nil
	}
	key, err := evidence.ParsePublicKey(given.Signers[0].RawSubjectPublicKeyInfo)
	if err != nil {
		return nil, err
	}
	given.Key = key
	switch algorithm, _ := evidence.AlgorithmOf(key); algorithm {
	case evidence.RS256, evidence.ES256, evidence.Ed25519:
		return given, nil
	default:
		return nil, fmt.Errorf("a certificate for a key that signs %s: the trust file must list such keys themselves", algorithm)
	}
}

// Vouch tries every certificate of the signer's key with every CA that may vouch for the record's role, and returns
// the best answer.
func (c *Checker) Vouch(r *evidence.Record, given *Certificates, at Proof) Vouching {
	role := r.Payload.Role()
	best := Vouching{Rule: "certificate", Err: fmt.Errorf("the trust file has neither this key nor a CA that may vouch for the role %s", role)}
	if by := at.By(); by == nil || by.Time.IsZero() { // crypto/x509 treats the zero time as now
		best.Err = errors.New("its time is not proved, so no certificate is proved to have been valid")
		if at.Proved() {
			best.Err = errors.New("no clock that you demand proves its time, so no certificate is proved to have been valid")
		}
		return best
	}
	first := true
	for i := range c.Trust.CAs {
		ca := &c.Trust.CAs[i]
		if !slices.Contains(ca.Roles, role) {
			continue
		}
		for _, certificate := range given.Signers {
			found := c.vouchBy(ca, certificate, given.between, r, at)
			if first || found.better(best) {
				best, first = found, false
			}
		}
	}
	return best
}

// vouchBy checks one certificate with one CA: is there a path, is it for signing documents, does it name the actor,
// was it revoked.
func (c *Checker) vouchBy(ca *CA, signer *x509.Certificate, between []*x509.Certificate, r *evidence.Record, at Proof) Vouching {
	paths, err := c.Share.Find(timestamp.Search{From: signer, Between: between, Roots: []*x509.Certificate{ca.certificate},
		At: at.By().Time, Usage: x509.ExtKeyUsageAny, Memory: c.Memory}) // purposes are checked below: crypto/x509 does not know this one
	if errors.Is(err, timestamp.ErrEffort) {
		return Vouching{CA: ca, Rule: "effort", Err: fmt.Errorf("checking its certificate path to %s: %w", ca.Name, err)}
	}
	if err != nil {
		return Vouching{CA: ca, Rule: "certificate", Err: fmt.Errorf("no certificate path to %s that was valid at %s: %w", ca.Name, utc(at.By().Time), err)}
	}
	if err := forSigning(signer); err != nil {
		return Vouching{CA: ca, Rule: "certificate", Err: err}
	}
	if rule, err := names(signer, r.Payload.Role(), r.Payload.Actor()); err != nil {
		return Vouching{CA: ca, Rule: rule, Err: err}
	}
	best := Vouching{CA: ca, Rule: "certificate", Err: fmt.Errorf("the CAs on the path to %s do not certify keys that sign documents (extended key usage)", ca.Name)}
	for _, path := range paths {
		if slices.ContainsFunc(path, func(c *x509.Certificate) bool { return c.NotBefore.After(at.Earliest.Time) }) {
			best.Err = fmt.Errorf("no certificate path to %s that was valid at %s, when the operator's clock proves that it existed", ca.Name, utc(at.Earliest.Time))
			continue
		}
		excludesSigning := func(ca *x509.Certificate) bool { // it was itself certified for other purposes only
			return has(ca, oidExtKeyUsage) && !slices.Contains(ca.ExtKeyUsage, x509.ExtKeyUsageAny) && !slices.ContainsFunc(ca.UnknownExtKeyUsage, oidDocumentSigning.Equal)
		}
		if !slices.ContainsFunc(path[1:], excludesSigning) {
			if found := c.unrevoked(ca, path, at); found.better(best) {
				best = found
			}
		}
	}
	return best
}

// forSigning checks the purpose of a signer's certificate. It must name the signing of documents.
func forSigning(c *x509.Certificate) error {
	switch {
	case c.IsCA:
		return errors.New("its certificate is that of a CA, which may sign nothing else")
	case has(c, oidKeyUsage) && c.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return errors.New("its certificate is not for digital signatures (key usage)")
	case !slices.ContainsFunc(c.UnknownExtKeyUsage, oidDocumentSigning.Equal):
		return errors.New("its certificate is not for signing documents (extended key usage id-kp-documentSigning)")
	}
	return nil
}

func has(c *x509.Certificate, extension asn1.ObjectIdentifier) bool {
	return extensionOf(c, extension) != nil
}

func extensionOf(c *x509.Certificate, id asn1.ObjectIdentifier) []byte {
	for _, extension := range c.Extensions {
		if extension.Id.Equal(id) {
			return extension.Value
		}
	}
	return nil
}

// unrevoked checks every certificate of a path except the CA's own, which the reader trusts directly. "Revoked"
// outranks "not known".
func (c *Checker) unrevoked(ca *CA, path []*x509.Certificate, at Proof) Vouching {
	best := Vouching{CA: ca, Path: path, OwnWord: slices.ContainsFunc(path, func(c *x509.Certificate) bool { return ownWord(at, c.NotAfter) })}
	if !ca.Asked() {
		return best
	}
	for i, certificate := range path[:len(path)-1] {
		if ca.Revocation == ShortLived && shortLived(certificate) {
			continue
		}
		known, err := c.revoked(certificate, path[i+1], c.after(at))
		switch {
		case err != nil:
			best.Rule, best.Err = "revocation", err
		case known.entry == nil:
			if best.AsOf.IsZero() || known.from.Before(best.AsOf) {
				best.AsOf = known.from
			}
		case !at.IndependentlyBefore(known.entry.since):
			// A thief of the key may have the operator's clock, too, and could backdate with both.
			return Vouching{CA: ca, Rule: "revoked", Err: fmt.Errorf("the certificate of %q is revoked from %s on, "+
				"and no independent authority proves that it existed before", certificate.Subject, utc(known.entry.since))}
		default:
			best.Revoked = known.entry.after(certificate, *at.Independent).Later(best.Revoked)
		}
	}
	return best
}

func ownWord(at Proof, last time.Time) bool {
	_, own := at.Within(last)
	return own
}

// after returns the moment after which a list that is no longer good must have been made to count; zero if none counts. It begins at a time
// that neither the operator nor a thief of the key can have chosen.
func (c *Checker) after(at Proof) time.Time {
	if at.Independent == nil {
		return time.Time{}
	}
	return at.Independent.Time.Add(cmp.Or(c.Grace, DefaultGrace))
}

// A CA is a certification authority that may vouch for keys of actors.
type CA struct {
	Name        string          `json:"name"`
	Certificate []byte          `json:"certificate"` // DER of the root, or of the issuing CA
	Roles       []evidence.Role `json:"roles"`       // of the actors for whom it may vouch
	Custody     Custody         `json:"custody"`     // what the reader believes about the keys that it certifies
	Revocation  Revocation      `json:"revocation,omitzero"`

	certificate *x509.Certificate
}

// Revocation says how a Checker finds out whether a certificate was revoked.
type Revocation string

const (
	ByCRL      Revocation = "crl"   // by revocation lists; what they do not show is not proved
	ShortLived Revocation = "short" // the same, but certificates that end too soon to be revoked are not asked about; only of a CA
	NotAsked   Revocation = "none"  // not at all
)

// check refuses every other word.
func (r Revocation) check(words ...Revocation) error {
	if r != "" && !slices.Contains(words, r) {
		return fmt.Errorf("revocation %q: want one of %q", r, words)
	}
	return nil
}

// Asked reports whether the revocation of certificates is checked. The default is yes.
func (ca *CA) Asked() bool { return ca.Revocation != NotAsked }

// Asked reports whether the revocation of the authority's certificates is checked. The default is no.
func (a *Authority) Asked() bool { return a.Revocation == ByCRL }

func (ca *CA) prepare() (identity []byte, err error) {
	if ca.Name == "" {
		return nil, errors.New("name is empty")
	}
	if ca.Custody != ByOwner && ca.Custody != ByOperator {
		return nil, fmt.Errorf("custody %q: want %q or %q", ca.Custody, ByOwner, ByOperator)
	}
	if err := ca.Revocation.check(ByCRL, ShortLived, NotAsked); err != nil {
		return nil, err
	}
	if len(ca.Roles) == 0 {
		return nil, errors.New("roles is empty: name the roles for which it may vouch")
	}
	for i, role := range ca.Roles {
		if !slices.Contains(evidence.Roles(), role) {
			return nil, fmt.Errorf("roles: unknown role %q: expected one of %v", role, evidence.Roles())
		}
		if slices.Contains(ca.Roles[:i], role) {
			return nil, fmt.Errorf("roles: %q is there twice", role)
		}
	}
	if ca.certificate, err = x509.ParseCertificate(ca.Certificate); err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	if !mayCertify(ca.certificate) {
		return nil, errors.New("certificate: it is not that of a CA")
	}
	return ca.certificate.Raw, nil
}

// mayCertify reports whether a certificate says that its key signs certificates.
func mayCertify(c *x509.Certificate) bool {
	return c.BasicConstraintsValid && c.IsCA && (!has(c, oidKeyUsage) || c.KeyUsage&x509.KeyUsageCertSign != 0)
}

// maxShort is the longest validity of a certificate that a reader takes without asking whether it was revoked.
const maxShort = 7 * 24 * time.Hour

var (
	oidNoRevAvail         = asn1.ObjectIdentifier{2, 5, 29, 56} // RFC 9608
	oidDistributionPoints = asn1.ObjectIdentifier{2, 5, 29, 31}
	oidFreshestCRL        = asn1.ObjectIdentifier{2, 5, 29, 46}
	null                  = []byte{5, 0}
)

// shortLived reports whether a certificate says that its CA will never say whether it was revoked (noRevAvail), and is valid for a week at most.
// RFC 9608 forbids the extension in certificates of CAs, and in those that say where to ask.
func shortLived(c *x509.Certificate) bool {
	return bytes.Equal(extensionOf(c, oidNoRevAvail), null) && c.NotAfter.Sub(c.NotBefore) <= maxShort &&
		!c.IsCA && !has(c, oidDistributionPoints) && !has(c, oidFreshestCRL) && len(c.OCSPServer) == 0
}

// identityPrefix begins the URI by which a certificate names an actor.
const identityPrefix = "urn:jurat:"

// Identity returns the URI by which the certificate of an actor's key names the actor: urn:jurat:ROLE:NAME, with every
// byte of the name escaped but letters, digits and -._~.
func Identity(role evidence.Role, name string) string {
	const unescaped = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	var b strings.Builder
	b.WriteString(identityPrefix + string(role) + ":")
	for i := range len(name) {
		if strings.IndexByte(unescaped, name[i]) >= 0 {
			b.WriteByte(name[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", name[i])
		}
	}
	return b.String()
}

// names checks whether a certificate names this actor. Another actor's name refutes. No name, or a name in another
// form, proves nothing.
func names(c *x509.Certificate, role evidence.Role, name string) (rule string, err error) {
	uris, err := identities(c)
	if len(uris) == 1 && uris[0] == Identity(role, name) {
		return "", nil
	}
	switch {
	case err != nil:
		return "certificate", err
	case len(uris) != 1:
		return "certificate", fmt.Errorf("its certificate names %d actors by %s…: want one", len(uris), identityPrefix)
	}
	if _, _, err := ParseIdentity(uris[0]); err != nil {
		return "certificate", fmt.Errorf("its certificate names its actor in another form than the only valid one: %q", uris[0])
	}
	return "actor", fmt.Errorf("its certificate is that of %q", uris[0])
}

// identities returns the subject alternative names that are jurat's URIs, as they are written. crypto/x509 offers
// them only parsed.
func identities(c *x509.Certificate) ([]string, error) {
	const uri = 6 // uniformResourceIdentifier (RFC 5280, section 4.2.1.6)
	value := extensionOf(c, oidSubjectAltName)
	if value == nil {
		return nil, nil
	}
	var alternatives []asn1.RawValue
	if _, err := asn1.Unmarshal(value, &alternatives); err != nil {
		return nil, errors.New("its certificate's alternative names cannot be read")
	}
	var found []string
	for _, n := range alternatives {
		text := string(n.Bytes)
		if n.Class == asn1.ClassContextSpecific && n.Tag == uri && len(text) >= len(identityPrefix) && strings.EqualFold(text[:len(identityPrefix)], identityPrefix) {
			found = append(found, text)
		}
	}
	return found, nil
}

// CheckCertificate returns an error unless a certificate is for signing documents and names this actor. The issuer does not matter. Any
// other certificate proves nothing for this actor, or refutes.
func CheckCertificate(c *x509.Certificate, role evidence.Role, name string) error {
	if err := forSigning(c); err != nil {
		return err
	}
	if _, err := names(c, role, name); err != nil {
		return fmt.Errorf("%w; want %q among its subject alternative names", err, Identity(role, name))
	}
	return nil
}

// ParseIdentity returns the actor that a URI names. It returns an error for every URI that Identity does not write.
func ParseIdentity(uri string) (role evidence.Role, name string, err error) {
	text, escaped, _ := strings.Cut(strings.TrimPrefix(uri, identityPrefix), ":")
	role = evidence.Role(text)
	if name, err = url.PathUnescape(escaped); err == nil {
		err = evidence.CheckName(name)
	}
	if err != nil || !slices.Contains(evidence.Roles(), role) || Identity(role, name) != uri {
		return "", "", fmt.Errorf("%q does not name an actor as %sROLE:NAME, with each byte of the name but letters, digits and -._~ written as %% and two hexadecimal digits in capitals", evidence.Abbreviate(uri), identityPrefix)
	}
	return role, name, nil
}

// Named returns the actor that a certificate names. It returns an error unless the certificate names one actor in the one form.
func Named(c *x509.Certificate) (role evidence.Role, name string, err error) {
	uris, err := identities(c)
	if err != nil {
		return "", "", err
	}
	if len(uris) != 1 {
		return "", "", fmt.Errorf("the certificate names %d actors: want one", len(uris))
	}
	return ParseIdentity(uris[0])
}

// MaxIdentified is how many signers a report lists.
const MaxIdentified = 1000

// Identified says who stands behind a signature, and by whose word.
type Identified struct {
	Role    evidence.Role  `json:"role"`
	Name    string         `json:"name"`
	KeyID   evidence.KeyID `json:"key_id"`
	By      Source         `json:"by"`
	CA      string         `json:"ca,omitzero"` // the CA's name, if By is ByCA
	Custody Custody        `json:"custody"`
	Revoked *Revoked       `json:"revoked,omitempty"` // what was revoked after that; nil: nothing, as far as known
}

// Revoked says that a key or certificate was revoked after what it signed existed.
type Revoked struct {
	Certificate string     `json:"certificate,omitzero"` // its subject, or its serial number if that is empty; "": it is the key that the trust file lists
	On          time.Time  `json:"on"`
	Since       time.Time  `json:"since,omitzero"`  // it is known to be compromised since this earlier time; zero: none is stated
	Reason      string     `json:"reason,omitzero"` // as RFC 5280 (section 5.3.1) names it; "": none is stated
	Existed     ProvedTime `json:"existed"`         // of what it signed in several records, the latest
}

// Later returns that of two of which the signed existed later, by its proof; nil is neither.
func (r *Revoked) Later(than *Revoked) *Revoked {
	if r == nil || than != nil && !than.Existed.Time.Before(r.Existed.Time) {
		return than
	}
	return r
}

// Source is the part of a trust file that says whose a key is.
type Source string

const (
	ByKey Source = "keys" // the trust file has the key itself
	ByCA  Source = "cas"  // a CA of the trust file certified it
)

// Identified says that the trust file has the key.
func (k *Key) Identified() *Identified {
	return &Identified{Role: k.Role, Name: k.Name, KeyID: k.KeyID, By: ByKey, Custody: k.Custody}
}

// IdentifiedAt says the same of what the key signed, and whether the key was revoked after that.
func (k *Key) IdentifiedAt(at Proof) *Identified {
	made := k.Identified()
	if !k.Revoked.IsZero() && at.IndependentlyBefore(k.Revoked) {
		made.Revoked = &Revoked{On: k.Revoked.UTC(), Existed: *at.Independent}
	}
	return made
}

// Identified says that the CA certified an actor's key.
func (ca *CA) Identified(role evidence.Role, name string, key evidence.KeyID) *Identified {
	return &Identified{Role: role, Name: name, KeyID: key, By: ByCA, CA: ca.Name, Custody: ca.Custody}
}

// AddIdentified adds signers to a list, each once, up to MaxIdentified.
func AddIdentified(list []Identified, more ...Identified) []Identified {
	for _, one := range more {
		same := func(known Identified) bool {
			return known.KeyID == one.KeyID && known.Role == one.Role && known.Name == one.Name && known.CA == one.CA
		}
		if i := slices.IndexFunc(list, same); i >= 0 {
			list[i].Revoked = one.Revoked.Later(list[i].Revoked)
		} else if len(list) < MaxIdentified {
			list = append(list, one)
		}
	}
	return list
}
