package openssl

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/timestamp"
	"jurat/verify/trust"
)

// certified returns how a CA of the trust file vouches for a signer whose key that does not list, and when the record existed. It does not ask
// whether anything was revoked or has ended since, and the script says so. Its errors include ErrNoKey and ErrActor.
func certified(r *evidence.Record, id evidence.KeyID, trusted *trust.Trust) (trust.Vouching, time.Time, error) {
	unasked := *trusted
	unasked.CAs, unasked.Authorities = slices.Clone(trusted.CAs), slices.Clone(trusted.Authorities)
	for i := range unasked.CAs {
		unasked.CAs[i].Revocation = trust.NotAsked
	}
	for i := range unasked.Authorities {
		unasked.Authorities[i].Revocation, unasked.Authorities[i].NotAfter = trust.NotAsked, time.Time{}
	}
	checker := trust.Checker{Trust: &unasked, Memory: timestamp.NewMemory(), Share: timestamp.NewShare()}
	var at trust.Proof
	for _, stamp := range r.Timestamps {
		if t, err := checker.Token(stamp.Token, r.Imprint(), trust.Proof{}); err == nil { // otherwise the script has openssl say what is wrong with it
			at.Add(t)
		}
	}
	given, err := trust.ReadCertificates(r, id)
	if err == nil && len(given.Signers) == 0 {
		err = fmt.Errorf("%w %s", ErrNoKey, id)
	}
	if err != nil {
		return trust.Vouching{}, time.Time{}, err
	}
	found := checker.Vouch(r, given, at)
	switch found.Rule {
	case "":
		return found, at.Earliest.Time, nil
	case "actor":
		return found, time.Time{}, fmt.Errorf("%w: it names %s %q as its actor: %w", ErrActor, r.Payload.Role(), r.Payload.Actor(), found.Err)
	}
	return found, time.Time{}, fmt.Errorf("%w %s, and none of its CAs vouches for that key: %w", ErrNoKey, id, found.Err)
}

// byCertificate writes the i-th signer's key and its certificates, and returns the command that checks them by the CA of the trust file.
func byCertificate(r *evidence.Record, i int, trusted *trust.Trust, public string, put Put) ([]command, error) {
	found, at, err := certified(r, r.Payload.Signers[i].KeyID, trusted)
	if err != nil {
		return nil, err
	}
	var chain, ca bytes.Buffer
	last := len(found.Path) - 1
	for _, c := range found.Path[:last] {
		err = errors.Join(err, pem.Encode(&chain, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	}
	err = errors.Join(err, pem.Encode(&ca, &pem.Block{Type: "CERTIFICATE", Bytes: found.Path[last].Raw}))
	certificate, root := numbered("certificate", i, ".pem"), numbered("ca", i, ".pem")
	return []command{
		{line: fmt.Sprintf("openssl verify -purpose any -partial_chain -no-CApath -no-CAstore -attime %d -CAfile %s -untrusted %s %s", at.Unix(), root, certificate, certificate)},
		{line: fmt.Sprintf("openssl x509 -in %s -noout -pubkey | cmp - %s", certificate, public)},
	}, errors.Join(err, put(certificate, chain.Bytes()), put(root, ca.Bytes()), put(public, publicPEM(found.Path[0].RawSubjectPublicKeyInfo)))
}

func publicPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}
