// Package ltv adds to records what CAs said about the revocation of their certificates, so that readers can verify them long after the CA
// has stopped saying so.
//
// # The newest statement, and each once
//
// Of what a CA said about a certificate, the newest statement that still speaks of it shows most: it names every revocation up to its time. Lists drop
// certificates that have expired, so for such a certificate it is the newest from before its end. What one record of a file carries counts for
// those after it, so nothing is added twice.
package ltv

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/certlog"
	"jurat/verify/trust"
)

// A Source is a statement of a CA that can be added.
type Source struct {
	Kind   evidence.RevocationKind
	CA     string    // lists of one CA have one; it is not compared with anything else
	From   time.Time // thisUpdate; zero: not known before it is read
	Serial string    // of an OCSP response: of its certificate, as operator acts write it; "": it can be about any
	Open   func(ctx context.Context) ([]byte, error)

	statement *trust.Statement // nil: not yet read
}

// A Missing is a certificate of a record for which there was nothing to add. Why says so for people.
type Missing struct {
	RecordID string
	Subject  string
	Why      string
}

// FromLog returns the statements of CAs whose acts are in an installation's log.
func FromLog(ctx context.Context, l *certlog.Log) ([]*Source, error) {
	var list []*Source
	for r, err := range l.Ledger.ChainRecords(ctx, operator.CertificatesChain) {
		if err != nil {
			return nil, err
		}
		if r.Payload.ActionType != evidence.RevocationEvidence {
			continue
		}
		body, err := operator.ReadRevocationEvidence(&r.Payload)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		from, err := evidence.ParseTime(body.ThisUpdate)
		if err != nil {
			return nil, fmt.Errorf("record %s: this_update: %w", r.Payload.RecordID, err)
		}
		list = append(list, &Source{Kind: evidence.RevocationKind(body.Kind), CA: body.CA.String(), From: from, Serial: body.Serial,
			Open: func(ctx context.Context) ([]byte, error) { return l.Document(ctx, body.Digest) }})
	}
	return list, nil
}

// FromFolder reads the lists (DER or PEM) and the OCSP responses (DER) of a folder, and nothing in folders below. It returns an error that
// names the file if one is neither.
func FromFolder(folder fs.FS) ([]*Source, error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, err
	}
	var list []*Source
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		doc, err := fs.ReadFile(folder, entry.Name())
		if err != nil {
			return nil, err
		}
		source, err := fromFile(doc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		list = append(list, source)
	}
	return list, nil
}

func fromFile(doc []byte) (*Source, error) {
	s := &Source{}
	if crl, err := trust.ParseCRL(doc); err == nil {
		s.Kind, s.CA, s.From, doc = evidence.CRL, string(crl.RawIssuer), crl.ThisUpdate, crl.Raw
	} else if _, other := trust.ParseOCSP(doc); other == nil {
		s.Kind = evidence.OCSP
	} else {
		return nil, fmt.Errorf("neither a revocation list nor an OCSP response: %w; %w", err, other)
	}
	s.Open = func(context.Context) ([]byte, error) { return doc, nil }
	return s, nil
}

// Add adds to each record the statements that show most about its certificates, unless a record before it has them. The records are in
// the order of the file that they will be in. The errors are those of Source.Open.
func Add(ctx context.Context, records []*evidence.Record, sources []*Source) ([]Missing, error) {
	a := &adding{ctx: ctx, sources: slices.Clone(sources), found: map[string]*found{}, carried: map[*Source]bool{}}
	slices.SortStableFunc(a.sources, func(x, y *Source) int { return y.From.Compare(x.From) })
	var missing []Missing
	for _, r := range records {
		for _, der := range r.Certificates {
			certificate, err := x509.ParseCertificate(der)
			if err != nil || bytes.Equal(certificate.RawIssuer, certificate.RawSubject) { // a root's own: readers do not ask about it
				continue
			}
			why, err := a.add(r, certificate)
			if err != nil {
				return missing, err
			}
			if why != "" {
				missing = append(missing, Missing{r.Payload.RecordID, certificate.Subject.String(), why})
			}
		}
	}
	return missing, nil
}

// adding is the work of one Add.
type adding struct {
	ctx     context.Context
	sources []*Source         // the newest first
	found   map[string]*found // by certificate
	carried map[*Source]bool
}

// found is what is known of a certificate. Without a source, why says so.
type found struct {
	source *Source
	why    string
}

// add adds the statement about one certificate to a record, and says why not.
func (a *adding) add(r *evidence.Record, certificate *x509.Certificate) (why string, err error) {
	known := a.found[string(certificate.Raw)]
	if known == nil {
		if known, err = a.find(certificate); err != nil {
			return "", err
		}
		a.found[string(certificate.Raw)] = known
	}
	s := known.source
	switch {
	case s == nil:
		return known.why, nil
	case a.carried[s]:
		return "", nil
	}
	more := append(slices.Clone(r.Revocations), s.statement.Revocation)
	if err := evidence.CheckRevocations(more); err != nil {
		return err.Error(), nil
	}
	r.Revocations, a.carried[s] = more, true
	return "", nil
}

// find looks for the newest statement that speaks of a certificate.
func (a *adding) find(certificate *x509.Certificate) (*found, error) {
	best, newest := &found{why: "no list and no response about it is here"}, time.Time{}
	others, dropped := map[string]bool{}, map[string]bool{} // CAs of other names, and CAs whose newer lists need not name it any longer
	for _, s := range a.sources {
		list := s.Kind == evidence.CRL
		switch {
		case best.source != nil && !s.From.IsZero() && !s.From.After(newest):
			continue
		case s.Serial != "" && s.Serial != certificate.SerialNumber.Text(16), list && others[s.CA]:
			continue
		case list && dropped[s.CA] && s.From.After(certificate.NotAfter):
			continue
		}
		if err := s.load(a.ctx); err != nil {
			return nil, err
		}
		from, err := s.statement.Of(certificate)
		size := len(s.statement.Value)
		switch {
		case errors.Is(err, trust.ErrSilent):
			others[s.CA] = list
		case err == nil && size > evidence.MaxRevocation:
			err = fmt.Errorf("the list of %s has %d bytes, and a record can carry %d: ask the CA for OCSP responses", from.UTC().Format(time.RFC3339), size, evidence.MaxRevocation)
			fallthrough
		case err != nil:
			dropped[s.CA] = dropped[s.CA] || list
			if best.source == nil {
				best.why = err.Error()
			}
		case best.source == nil || from.After(newest):
			best, newest = &found{source: s}, from
		}
	}
	return best, nil
}

// load reads a statement once.
func (s *Source) load(ctx context.Context) error {
	if s.statement != nil {
		return nil
	}
	der, err := s.Open(ctx)
	if err == nil {
		s.statement = &trust.Statement{Revocation: evidence.Revocation{Kind: s.Kind, Value: der}}
	}
	return err
}
