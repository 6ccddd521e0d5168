package ca

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/crypto/ocsp"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/verify/trust"
)

// An Act is something that the CA did. It has a certificate, revocations with a list, a list, or an OCSP response. The first has the CA's
// own certificate, its settings and its first list.
type Act struct {
	At          time.Time    `json:"at"`
	By          string       `json:"by"`
	Certificate []byte       `json:"certificate,omitempty"` // DER
	CRL         []byte       `json:"crl,omitempty"`         // DER
	OCSP        []byte       `json:"ocsp,omitempty"`        // DER
	Reason      string       `json:"reason"`
	Revoked     []Revocation `json:"revoked,omitempty"`
	Settings    *Settings    `json:"settings,omitzero"` // written even if it is empty: the first act has it
}

func actFile(n int64) string { return fmt.Sprintf("%s/%010d.json", actsFolder, n) }

// Acts calls found for every act, in order, until found returns an error.
func (a *CA) Acts(ctx context.Context, found func(n int64, act *Act) error) error {
	for n := int64(1); ; n++ {
		act, err := a.read(ctx, n)
		if isMissing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := found(n, act); err != nil {
			return err
		}
	}
}

func (a *CA) read(ctx context.Context, n int64) (*Act, error) {
	doc, err := a.files.Read(ctx, actFile(n))
	if err != nil {
		return nil, err
	}
	act := new(Act)
	if err := json.Unmarshal(doc, act, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", a.files.Where(actFile(n)), err)
	}
	return act, nil
}

// refresh takes in the acts of this process and others that are new. The caller holds the lock.
func (a *CA) refresh(ctx context.Context) error {
	for {
		act, err := a.read(ctx, a.count+1)
		if isMissing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := a.apply(act); err != nil {
			return fmt.Errorf("reading %s: %w", a.files.Where(actFile(a.count+1)), err)
		}
	}
}

// open takes in all acts. It returns an error if one is missing and later ones are there, as in a folder that was copied in part: what the
// missing act revoked would be in no list any more. The caller holds the lock.
func (a *CA) open(ctx context.Context) error {
	if err := a.refresh(ctx); err != nil {
		return err
	}
	last := ""
	err := filestore.EachJSON(ctx, a.files, actsFolder, func(file string) error {
		last = max(last, file)
		return nil
	})
	if err != nil && !isMissing(err) {
		return err
	}
	if last <= actFile(a.count) {
		return nil
	}
	if err := a.refresh(ctx); err != nil || last <= actFile(a.count) { // another process acted meanwhile
		return err
	}
	return fmt.Errorf("%s is missing, and %s is there", a.files.Where(actFile(a.count+1)), a.files.Where(last))
}

// do makes the act that decide returns for the present state. If another process acts first, it calls decide again. If decide returns no
// act, nothing is done. The caller holds the lock.
func (a *CA) do(ctx context.Context, decide func(now time.Time) (*Act, error)) error {
	for {
		if err := a.refresh(ctx); err != nil {
			return err
		}
		now, err := a.now()
		if err != nil {
			return err
		}
		act, err := decide(now)
		if act == nil || err != nil {
			return err
		}
		if act.By == "" || act.Reason == "" {
			return errors.New("an act of a CA needs a reason, and the name of the person who decided it")
		}
		act.At = now
		doc, err := json.Marshal(act)
		if err != nil {
			return fmt.Errorf("encoding act: %w", err)
		}
		err = a.files.Create(ctx, actFile(a.count+1), doc)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("writing act: %w", err)
		}
		// From here on the act is done. A caller whose context ends now must still learn of it.
		return a.refresh(context.WithoutCancel(ctx))
	}
}

// apply takes in the next act. The caller holds the lock.
func (a *CA) apply(act *Act) error {
	if (a.count == 0) != (act.Settings != nil) {
		return errors.New("the first act has settings, and no other has")
	}
	var parts []func(*Act) error
	if act.Settings != nil {
		a.Settings = *act.Settings
		parts = append(parts, a.applyOwn)
	} else if act.Certificate != nil {
		parts = append(parts, a.applyCertificate)
	}
	if act.Revoked != nil {
		parts = append(parts, a.applyRevoked)
	}
	if act.CRL != nil {
		parts = append(parts, a.applyList)
	}
	if act.OCSP != nil {
		parts = append(parts, a.applyAnswer)
	}
	if len(parts) == 0 {
		return errors.New("it has nothing in it")
	}
	for _, part := range parts {
		if err := part(act); err != nil {
			return err
		}
	}
	a.count, a.last = a.count+1, act.At
	return nil
}

func (a *CA) applyOwn(act *Act) error {
	own, err := x509.ParseCertificate(act.Certificate)
	if err != nil {
		return err
	}
	a.Certificate, a.ID = own, evidence.DigestOf(own.RawSubjectPublicKeyInfo)
	return nil
}

func (a *CA) applyCertificate(act *Act) error {
	c, err := x509.ParseCertificate(act.Certificate)
	if err != nil {
		return err
	}
	role, name, err := trust.Named(c)
	if err != nil {
		return err
	}
	one := &Issued{Certificate: c, Serial: c.SerialNumber.Text(16), Role: role, Name: name, KeyID: evidence.DigestOf(c.RawSubjectPublicKeyInfo),
		At: act.At, By: act.By, Reason: act.Reason, Short: has(c, oidNoRevAvail)}
	if a.serials[one.Serial] != nil {
		return fmt.Errorf("the serial number %s was given before", one.Serial)
	}
	a.issued, a.serials[one.Serial] = append(a.issued, one), one
	return nil
}

func (a *CA) applyRevoked(act *Act) error {
	for _, r := range act.Revoked {
		one := a.serials[r.Serial]
		if one == nil {
			return fmt.Errorf("%w: serial number %q", ErrUnknown, r.Serial)
		}
		one.Revoked = new(r)
	}
	return nil
}

func (a *CA) applyList(act *Act) error {
	list, err := x509.ParseRevocationList(act.CRL)
	if err != nil {
		return err
	}
	if list.Number == nil || a.list.Number != nil && list.Number.Cmp(a.list.Number) <= 0 {
		return errors.New("the number of a list is not larger than that of the list before")
	}
	a.list = List{Number: list.Number, DER: act.CRL, ThisUpdate: list.ThisUpdate, NextTime: list.NextUpdate}
	return nil
}

func (a *CA) applyAnswer(act *Act) error {
	response, err := ocsp.ParseResponse(act.OCSP, a.Certificate)
	if err != nil {
		return err
	}
	a.answers[response.SerialNumber.Text(16)] = answer{der: act.OCSP, at: response.ThisUpdate}
	return nil
}

func has(c *x509.Certificate, id []int) bool {
	return slices.ContainsFunc(c.Extensions, func(e pkixExtension) bool { return slices.Equal(e.Id, id) })
}
