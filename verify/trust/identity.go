package trust

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
)

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
