package trust

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

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
	switch {
	case err != nil:
		return "certificate", err
	case len(uris) != 1:
		return "certificate", fmt.Errorf("its certificate names %d actors by %s…: want one", len(uris), identityPrefix)
	case uris[0] == Identity(role, name):
		return "", nil
	case !isIdentity(uris[0]):
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

// isIdentity reports whether a URI names some actor in the one form.
func isIdentity(uri string) bool {
	_, _, err := ParseIdentity(uri)
	return err == nil
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
