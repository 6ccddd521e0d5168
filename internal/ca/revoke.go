package ca

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"golang.org/x/crypto/ocsp"

	"jurat/evidence/operator"
)

// The times of lists and OCSP responses.
const (
	Fresh     = Day     // a new list, or response, is made after this time
	NextAfter = 7 * Day // they say that the next one comes within this time
)

// Codes of RFC 5280, section 5.3.1.
var causeCodes = map[string]int{"unspecified": ocsp.Unspecified, "keyCompromise": ocsp.KeyCompromise, "affiliationChanged": ocsp.AffiliationChanged,
	"superseded": ocsp.Superseded, "cessationOfOperation": ocsp.CessationOfOperation, "privilegeWithdrawn": ocsp.PrivilegeWithdrawn}

// Causes are those for which this CA revokes. It puts nothing on hold: what a held key signs could never be told from what stands. The
// compromise of the CA itself ends the trust in it, and no list of its own can say so.
func Causes() []string {
	return slices.DeleteFunc(operator.Causes(), func(cause string) bool { _, known := causeCodes[cause]; return !known })
}

// Revoke revokes certificates, and makes the list that says so, in one act. invalidFrom is since when others may have had the keys; zero:
// it is not stated. A certificate that is revoked already may get an earlier invalidFrom. The errors include ErrUnknown and ErrRevoked;
// after an error nothing is revoked.
func (a *CA) Revoke(ctx context.Context, serials []string, cause string, invalidFrom time.Time, by, reason string) (*List, error) {
	if !slices.Contains(Causes(), cause) {
		return nil, fmt.Errorf("revoking: cause %q: want one of %v", cause, Causes())
	}
	if len(serials) == 0 {
		return nil, errors.New("revoking: no certificate is named")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.do(ctx, func(now time.Time) (*Act, error) {
		revoked, err := a.revocations(serials, Revocation{Cause: cause, From: now, InvalidFrom: invalidFrom.UTC().Truncate(time.Second)})
		if err != nil {
			return nil, err
		}
		list, err := a.nextList(ctx, now, revoked)
		return &Act{Revoked: revoked, CRL: list, By: by, Reason: reason}, err
	})
	if err != nil {
		return nil, fmt.Errorf("revoking: %w", err)
	}
	return new(a.list), nil
}

// revocations returns what an act says of each certificate. The caller holds the lock.
func (a *CA) revocations(serials []string, as Revocation) ([]Revocation, error) {
	if as.InvalidFrom.After(as.From) {
		return nil, errors.New("a revocation cannot begin in the future")
	}
	var list []Revocation
	for _, serial := range serials {
		one, err := a.find(serial)
		if err != nil {
			return nil, err
		}
		r := as
		r.Serial = serial
		if before := one.Revoked; before != nil {
			if as.InvalidFrom.IsZero() || !as.InvalidFrom.Before(before.Since()) {
				return nil, fmt.Errorf("%w: serial number %s, from %s on", ErrRevoked, serial, before.Since().Format(time.RFC3339))
			}
			r.From = before.From
		}
		if slices.ContainsFunc(list, func(other Revocation) bool { return other.Serial == serial }) {
			return nil, fmt.Errorf("serial number %s is named twice", serial)
		}
		list = append(list, r)
	}
	return list, nil
}

// Since is since when nothing that the key signed counts.
func (r *Revocation) Since() time.Time {
	if r.InvalidFrom.IsZero() {
		return r.From
	}
	return r.InvalidFrom
}

// List returns the list in force. If it is older than Fresh, or if anew is true, it makes another one.
func (a *CA) List(ctx context.Context, anew bool, by, reason string) (*List, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.do(ctx, func(now time.Time) (*Act, error) {
		if !anew && now.Before(a.list.ThisUpdate.Add(Fresh)) {
			return nil, nil
		}
		anew = false // if another process makes a list meanwhile, that one will do
		list, err := a.nextList(ctx, now, nil)
		return &Act{CRL: list, By: by, Reason: reason}, err
	})
	if err != nil {
		return nil, fmt.Errorf("making a revocation list: %w", err)
	}
	return new(a.list), nil
}

// nextList makes the list after the last, with what is revoked now. The caller holds the lock.
func (a *CA) nextList(ctx context.Context, now time.Time, revoked []Revocation) ([]byte, error) {
	if err := a.alive(now); err != nil {
		return nil, err
	}
	key, err := a.signer(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]Revocation{}
	for _, one := range a.issued {
		if one.Revoked != nil {
			all[one.Serial] = *one.Revoked
		}
	}
	for _, r := range revoked {
		all[r.Serial] = r
	}
	var entries []x509.RevocationListEntry
	for _, one := range a.issued { // in their order, so that equal states make equal lists
		r, is := all[one.Serial]
		if !is {
			continue
		}
		entry, err := listEntry(one.Certificate.SerialNumber, r)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	// A reader takes the list with the latest thisUpdate, so each must be later than the one before.
	from := latest(now, a.list.ThisUpdate.Add(time.Second))
	return sealList(a.Certificate, key, new(big.Int).Add(a.list.Number, big.NewInt(1)), from, entries)
}

func listEntry(serial *big.Int, r Revocation) (x509.RevocationListEntry, error) {
	entry := x509.RevocationListEntry{SerialNumber: serial, RevocationTime: r.From, ReasonCode: causeCodes[r.Cause]}
	extensions, err := invalidity(r)
	entry.ExtraExtensions = extensions
	return entry, err
}

// invalidity is the extension that says since when others may have had a key, if that is known.
func invalidity(r Revocation) ([]pkix.Extension, error) {
	if r.InvalidFrom.IsZero() {
		return nil, nil
	}
	value, err := asn1.MarshalWithParams(r.InvalidFrom.UTC(), "generalized")
	return []pkix.Extension{{Id: oidInvalidityDate, Value: value}}, err
}

// sealList signs a list that names also certificates that have expired since the CA began.
func sealList(own *x509.Certificate, key crypto.Signer, number *big.Int, from time.Time, entries []x509.RevocationListEntry) ([]byte, error) {
	expired, err := asn1.MarshalWithParams(own.NotBefore.UTC(), "generalized")
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: number, ThisUpdate: from, NextUpdate: from.Add(NextAfter),
		RevokedCertificateEntries: entries, ExtraExtensions: []pkix.Extension{{Id: oidExpiredCerts, Value: expired}}}, own, key)
	if err != nil {
		return nil, fmt.Errorf("signing revocation list: %w", err)
	}
	list, err := x509.ParseRevocationList(der)
	if err != nil {
		return nil, err
	}
	return der, list.CheckSignatureFrom(own)
}

// Answer returns an OCSP response about a certificate, signed by the CA itself. It makes one if the last is older than Fresh, or says
// something else. The errors include ErrUnknown: the CA says nothing of certificates that it has not issued.
func (a *CA) Answer(ctx context.Context, serial, by, reason string) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.do(ctx, func(now time.Time) (*Act, error) {
		one, err := a.find(serial)
		if err != nil {
			return nil, err
		}
		before, is := a.answers[serial]
		if is && now.Before(before.at.Add(Fresh)) && (one.Revoked == nil || before.after(one)) {
			return nil, nil
		}
		der, err := a.respond(ctx, one, latest(now, before.at.Add(time.Second)))
		return &Act{OCSP: der, By: by, Reason: reason}, err
	})
	if err != nil {
		return nil, fmt.Errorf("making an OCSP response: %w", err)
	}
	return a.answers[serial].der, nil
}

// after reports whether a response says what is known of a revoked certificate.
func (b answer) after(one *Issued) bool {
	response, err := ocsp.ParseResponse(b.der, nil)
	if err != nil || response.Status != ocsp.Revoked || !response.RevokedAt.Equal(one.Revoked.From) {
		return false
	}
	want, err := invalidity(*one.Revoked)
	if err != nil {
		return false
	}
	for _, extension := range want {
		if !slices.ContainsFunc(response.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(extension.Id) && slices.Equal(e.Value, extension.Value) }) {
			return false
		}
	}
	return true
}

// respond signs a response. The caller holds the lock.
func (a *CA) respond(ctx context.Context, one *Issued, from time.Time) ([]byte, error) {
	if err := a.alive(from); err != nil {
		return nil, err
	}
	key, err := a.signer(ctx)
	if err != nil {
		return nil, err
	}
	template := ocsp.Response{Status: ocsp.Good, SerialNumber: one.Certificate.SerialNumber, ThisUpdate: from, NextUpdate: from.Add(NextAfter), IssuerHash: crypto.SHA256}
	if r := one.Revoked; r != nil {
		template.Status, template.RevokedAt, template.RevocationReason = ocsp.Revoked, r.From, causeCodes[r.Cause]
		if template.ExtraExtensions, err = invalidity(*r); err != nil {
			return nil, err
		}
	}
	der, err := ocsp.CreateResponse(a.Certificate, a.Certificate, template, key)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	_, err = ocsp.ParseResponseForCert(der, one.Certificate, a.Certificate) // checks the signature
	return der, err
}
