package mandate

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"strings"

	"jurat/trustlist"
)

// Qualified certificates (ETSI EN 319 412-5).
var (
	oidQCStatements = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 3}
	oidQcCompliance = asn1.ObjectIdentifier{0, 4, 0, 1862, 1, 1}
	oidQcType       = asn1.ObjectIdentifier{0, 4, 0, 1862, 1, 6}
	oidQcTypeESeal  = asn1.ObjectIdentifier{0, 4, 0, 1862, 1, 6, 2}

	oidOrganisationIdentifier = asn1.ObjectIdentifier{2, 5, 4, 97}
)

// statements are what a certificate says of itself as a qualified one.
type statements struct {
	compliance bool
	types      []asn1.ObjectIdentifier
}

// statement is a QCStatement (RFC 3739, section 3.2.6).
type statement struct {
	ID   asn1.ObjectIdentifier
	Info asn1.RawValue `asn1:"optional"`
}

// readStatements reads the extension qcStatements. A certificate without it says nothing.
func readStatements(c *x509.Certificate) (s statements, err error) {
	for _, extension := range c.Extensions {
		if !extension.Id.Equal(oidQCStatements) {
			continue
		}
		var list []statement
		if rest, err := asn1.Unmarshal(extension.Value, &list); err != nil || len(rest) > 0 {
			return s, errors.New("what the certificate says of itself as a qualified one cannot be read (qcStatements)")
		}
		for _, one := range list {
			switch {
			case one.ID.Equal(oidQcCompliance):
				s.compliance = true
			case one.ID.Equal(oidQcType):
				if rest, err := asn1.Unmarshal(one.Info.FullBytes, &s.types); err != nil || len(rest) > 0 {
					return s, errors.New("the certificate's QcType cannot be read")
				}
			}
		}
	}
	return s, nil
}

// Qualifiers of ETSI TS 119 612, section 5.5.9.2.
const (
	extensions       = "http://uri.etsi.org/TrstSvc/TrustedList/SvcInfoExt/"
	forSeals         = extensions + "ForeSeals"
	qcStatement      = extensions + "QCStatement"
	notQualified     = extensions + "NotQualified"
	qcForSeal        = extensions + "QCForESeal"
	qcForSignature   = extensions + "QCForESig"
	qcForWebsite     = extensions + "QCForWSA"
	qcForLegalPerson = extensions + "QCForLegalPerson"
)

// silent are qualifiers that say nothing of whether a certificate is qualified, and for what: they say where its key is kept.
var silent = []string{"QCWithSSCD", "QCNoSSCD", "QCSSCDStatusAsInCert", "QCWithQSCD", "QCNoQSCD", "QCQSCDStatusAsInCert", "QCQSCDManagedOnBehalf"}

// qualifiedSeal returns an error unless a certificate is one for qualified seals, by what it says and by what the list says of it (ETSI TS
// 119 615, section 4.4). What the list says goes before. It returns trustlist.ErrCriteria if the list cannot be understood.
func qualifiedSeal(c *x509.Certificate, state *trustlist.State) error {
	says, err := readStatements(c)
	if err != nil {
		return err
	}
	qualifiers, err := state.Qualifiers(c)
	if err != nil {
		return err
	}
	qualified := says.compliance
	seal := len(says.types) == 1 && says.types[0].Equal(oidQcTypeESeal)
	var kinds []string
	for _, uri := range qualifiers {
		switch uri {
		case notQualified:
			return errors.New("the list says that certificates such as this are not qualified")
		case qcStatement:
			qualified = true
		case qcForSeal, qcForSignature, qcForWebsite:
			kinds = append(kinds, uri)
		case qcForLegalPerson: // of before the Regulation: it tells persons apart, not purposes
		default:
			if name, ok := strings.CutPrefix(uri, extensions); !ok || !slices.Contains(silent, name) {
				return fmt.Errorf("%w: the qualifier %s", trustlist.ErrCriteria, uri)
			}
		}
	}
	if len(kinds) > 0 {
		seal = len(kinds) == 1 && kinds[0] == qcForSeal
	}
	switch {
	case !qualified:
		return errors.New("it does not say that it is qualified (QcCompliance), and the list does not say so, either")
	case !seal:
		return errors.New("it is not for seals alone (QcType 0.4.0.1862.1.6.2)")
	}
	return nil
}

// seals returns an error unless a certificate is that of a key that may seal: not a CA's, and with a key usage for signatures.
func seals(c *x509.Certificate) error {
	switch {
	case c.IsCA:
		return errors.New("it is that of a CA")
	case c.KeyUsage&(x509.KeyUsageDigitalSignature|x509.KeyUsageContentCommitment) == 0:
		return errors.New("it is not for signatures (key usage)")
	}
	return nil
}

// organisation returns the name, country and identifier of whom a certificate names.
func organisation(c *x509.Certificate) (name, country, identifier string, err error) {
	if len(c.Subject.Organization) != 1 || len(c.Subject.Country) != 1 {
		return "", "", "", errors.New("it does not name one organisation and one country")
	}
	for _, attribute := range c.Subject.Names {
		if attribute.Type.Equal(oidOrganisationIdentifier) {
			if identifier != "" {
				return "", "", "", errors.New("it has two organizationIdentifier")
			}
			identifier, _ = attribute.Value.(string)
		}
	}
	return c.Subject.Organization[0], c.Subject.Country[0], identifier, nil
}
