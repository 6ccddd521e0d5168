//go:build !js

package scitt

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/cbor"
	"jurat/internal/kit/sigkey"
)

// Sign makes the statement of a record, signed for the issuer, with receipts. If the record has certificates of the signer's key, the statement
// names them. It returns ErrAlgorithm for other keys, the errors of the signer, and an error for a record that evidence.Open would refuse.
func Sign(r *evidence.Record, issuer string, signer evidence.Signer, receipts ...[]byte) ([]byte, error) {
	file, err := r.Marshal()
	if err != nil {
		return nil, fmt.Errorf("making statement: %w", err)
	}
	algorithm, known := numbers[signer.Info().Algorithm]
	if !known {
		return nil, fmt.Errorf("making statement: %w, and this key signs by %s", ErrAlgorithm, signer.Info().Algorithm)
	}
	id := signer.Info().KeyID
	s := signing{
		protected: cbor.Map{{Key: labelAlg, Value: algorithm}, {Key: labelContentType, Value: ContentType}, {Key: labelKeyID, Value: id[:]},
			{Key: labelClaims, Value: cbor.Map{{Key: claimIssuer, Value: issuer}, {Key: claimSubject, Value: r.Payload.RecordID}}}, {Key: labelAbout, Value: About}},
		unprotected: cbor.Map{{Key: labelRecord, Value: file}},
		payload:     r.Canonical(),
	}
	s.protected = append(s.protected, certified(chainOf(r.Certificates, id))...)
	if len(receipts) > 0 {
		list := make([]any, len(receipts))
		for i, receipt := range receipts {
			list[i] = receipt
		}
		s.unprotected = append(s.unprotected, cbor.Pair{Key: labelReceipts, Value: list})
	}
	doc, err := s.by(func(signed []byte) ([]byte, error) {
		signature, err := signer.Sign(signed)
		if err != nil || signer.Info().Algorithm != evidence.ES256 {
			return signature, err
		}
		return sigkey.RawECDSA(signature)
	})
	if err != nil {
		return nil, fmt.Errorf("making statement: %w", err)
	}
	if len(doc) > MaxFile {
		return nil, fmt.Errorf("making statement: it would be longer than %d MiB", MaxFile>>20)
	}
	return doc, nil
}

// chainOf returns, of certificates in any order, one that names a key and those that issued it, one by the other. A root stays out: readers have theirs.
func chainOf(certificates [][]byte, key evidence.KeyID) (list [][]byte) {
	var at *x509.Certificate
	parsed := make([]*x509.Certificate, 0, len(certificates))
	for _, der := range certificates {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			continue // whoever reads the record passes over it, too
		}
		if parsed = append(parsed, c); at == nil && evidence.DigestOf(c.RawSubjectPublicKeyInfo) == key {
			at = c
		}
	}
	for at != nil && len(list) < MaxCertificates {
		list = append(list, at.Raw)
		at = issuerAmong(parsed, at)
	}
	return list
}

// issuerAmong returns the certificate that issued another; nil: it is not there, or a root.
func issuerAmong(list []*x509.Certificate, of *x509.Certificate) *x509.Certificate {
	for _, c := range list {
		isRoot := string(c.RawIssuer) == string(c.RawSubject)
		if !isRoot && string(c.RawSubject) == string(of.RawIssuer) && of.CheckSignatureFrom(c) == nil {
			return c
		}
	}
	return nil
}

// certified are the parameters of a protected header that name the signer's certificate.
func certified(list [][]byte) cbor.Map {
	if len(list) == 0 {
		return nil
	}
	var value any = list[0]
	if len(list) > 1 {
		all := make([]any, len(list))
		for i := range list {
			all[i] = list[i]
		}
		value = all
	}
	digest := sha256.Sum256(list[0])
	return cbor.Map{{Key: labelChain, Value: value}, {Key: labelThumbprint, Value: []any{sha256Algorithm, digest[:]}}}
}

// A signing makes a COSE_Sign1.
type signing struct {
	protected, unprotected cbor.Map
	payload                []byte
	detached               bool
}

// by returns the COSE_Sign1. sign gets the bytes to be signed, and returns the signature as COSE has it.
func (s signing) by(sign func([]byte) ([]byte, error)) ([]byte, error) {
	header, err := cbor.Encode(s.protected)
	if err != nil {
		return nil, err
	}
	signed, err := toBeSigned(header, s.payload)
	if err != nil {
		return nil, err
	}
	signature, err := sign(signed)
	if err != nil {
		return nil, err
	}
	var payload any = s.payload
	if s.detached {
		payload = nil
	}
	return cbor.Encode(cbor.Tag{Number: tagSign1, Content: []any{header, s.unprotected, payload, signature}})
}

// A Log signs receipts.
type Log struct {
	Key  string                               // the verifier key, as package note writes it
	Sign func(message []byte) ([]byte, error) // with the log's Ed25519 key, over the message itself
}

// SignReceipt makes a receipt for the record's entry, for the tree of the record's own checkpoint. It returns ErrNoReceipt if the
// record has none that this log signed, and the errors of Sign. So the log signs no other root than it has signed before.
func SignReceipt(r *evidence.Record, log Log) ([]byte, error) {
	verifier, err := note.NewVerifier(log.Key)
	if err != nil {
		return nil, fmt.Errorf("making receipt: %w", err)
	}
	if r.Log == nil || r.Log.Checkpoint == "" {
		return nil, fmt.Errorf("%w: the record carries no proof of its place in a log", ErrNoReceipt)
	}
	tree, err := operator.OpenCheckpoint(r.Log.Checkpoint, verifier)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoReceipt, err)
	}
	entry, p := r.LogEntry(r.Log.Counts()), Proof{Size: tree.Size, Index: r.Log.Index}
	for _, node := range r.Log.Proof {
		p.Path = append(p.Path, tlog.Hash(node))
	}
	if p.Index >= p.Size {
		return nil, fmt.Errorf("%w: the record's checkpoint does not cover it", ErrNoReceipt)
	}
	if root, err := p.Root(entry); err != nil || root != tree.Root {
		return nil, fmt.Errorf("%w: the record is not at its place in the log", ErrNoReceipt)
	}
	doc, err := log.sign(&p, entry, tree)
	if err != nil {
		return nil, fmt.Errorf("making receipt: %w", err)
	}
	return doc, nil
}

func (l Log) sign(p *Proof, entry []byte, tree operator.Checkpoint) ([]byte, error) {
	public, err := operator.LogPublicKey(l.Key)
	if err != nil {
		return nil, err
	}
	id, err := evidence.KeyIDOf(public)
	if err != nil {
		return nil, err
	}
	path := make([]any, len(p.Path))
	for i := range p.Path {
		path[i] = p.Path[i][:]
	}
	proof, err := cbor.Encode([]any{p.Size, p.Index, path})
	if err != nil {
		return nil, err
	}
	return signing{
		protected: cbor.Map{{Key: labelAlg, Value: numbers[evidence.Ed25519]}, {Key: labelKeyID, Value: id[:]}, {Key: labelStructure, Value: int64(RFC9162SHA256)},
			{Key: labelClaims, Value: cbor.Map{{Key: claimIssuer, Value: LogIssuer(tree.Origin)}}}},
		unprotected: cbor.Map{{Key: labelProofs, Value: cbor.Map{{Key: proofInclusion, Value: []any{proof}}}}, {Key: labelEntry, Value: entry}},
		payload:     tree.Root[:],
		detached:    true,
	}.by(l.Sign)
}
