package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"jurat/client"
	"jurat/evidence"
	"jurat/internal/atomicfile"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/plural"
	"jurat/scitt"
	"jurat/verify"
)

// statements writes each record as a SCITT Signed Statement.
func (c *exportCmd) statements(ctx context.Context, a *app, io stdio, doc []byte) error {
	if err := c.separate("--scitt", c.SCITT); err != nil {
		return err
	}
	m, records, err := openMarshaler(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	s := &statementExport{out: func(*evidence.Record) string { return c.SCITT }}
	if b, many := m.(*evidence.Bundle); many {
		for _, r := range records {
			alone(r, b)
		}
		if err := os.MkdirAll(c.SCITT, 0o755); err != nil {
			return err
		}
		s.out = func(r *evidence.Record) string { return filepath.Join(c.SCITT, r.Payload.RecordID+".scitt") }
	}
	if err := c.writeStatements(ctx, a, io, s, records); err != nil {
		return err
	}
	s.tell(io)
	return nil
}

// writeStatements writes with the installation in the data folder. An owner who signs with --key may have none, and then no log.
func (c *exportCmd) writeStatements(ctx context.Context, a *app, io stdio, s *statementExport, records []*evidence.Record) error {
	write := func(i *installation.Installation) error {
		s.log = i
		return s.all(ctx, io, records)
	}
	if c.Key == "" {
		return hint(a.with(ctx, func(i *installation.Installation) error {
			signers, err := i.Keys.Signers(ctx, evidence.RoleOperator, ledger.OperatorName)
			if err != nil {
				return err
			}
			if err := s.signWith(signers); err != nil {
				return err
			}
			return write(i)
		}), "or give a private key with --key FILE")
	}
	signers, err := readKeys([]string{c.Key}, client.ParseKey)
	if err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	if err := s.signWith(signers); err != nil {
		return err
	}
	if err := a.with(ctx, write); !errors.Is(err, installation.ErrNone) {
		return err
	}
	return s.all(ctx, io, records)
}

// openMarshaler opens a record or a bundle file as such; records in an envelope or a statement come by themselves.
func openMarshaler(doc []byte) (marshaler, []*evidence.Record, error) {
	if evidence.IsBundle(doc) {
		return openFile(doc)
	}
	records, err := openRecords(doc)
	if err != nil {
		return nil, nil, err
	}
	if len(records) != 1 {
		return &evidence.Bundle{Records: records}, records, nil
	}
	return records[0], records, nil
}

// alone gives a record of a bundle the checkpoints that the bundle has for all of them.
func alone(r *evidence.Record, b *evidence.Bundle) {
	if r.Log != nil {
		r.Log.Checkpoint, r.Log.Anchors = b.Checkpoint, b.Anchors
	}
}

// A statementExport writes statements, and remembers which got no receipt.
type statementExport struct {
	signer  evidence.Signer
	log     *installation.Installation // nil: none, and then no receipts
	out     func(*evidence.Record) string
	written int
	without int   // receipts
	why     error // of the first one without a receipt
}

// signWith takes the first of an actor's keys that statements can be signed with.
func (s *statementExport) signWith(signers []evidence.Signer) error {
	i := slices.IndexFunc(signers, func(s evidence.Signer) bool {
		return s.Info().Algorithm == evidence.ES256 || s.Info().Algorithm == evidence.Ed25519
	})
	if i < 0 {
		return fmt.Errorf("%w, and this key signs by %s", scitt.ErrAlgorithm, signers[0].Info().Algorithm)
	}
	s.signer = signers[i]
	return nil
}

func (s *statementExport) all(ctx context.Context, io stdio, records []*evidence.Record) error {
	tell := progress(io, "records")
	for i, r := range records {
		if err := s.write(ctx, r); err != nil {
			return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		tell(int64(i+1), int64(len(records)))
	}
	return nil
}

func (s *statementExport) write(ctx context.Context, r *evidence.Record) error {
	var receipts [][]byte
	receipt, err := s.receipt(ctx, r)
	switch {
	case err == nil:
		receipts = append(receipts, receipt)
	case errors.Is(err, scitt.ErrNoReceipt):
		if s.without++; s.why == nil {
			s.why = err
		}
	default:
		return err
	}
	doc, err := scitt.Sign(r, s.issuer(r), s.signer, receipts...)
	if err != nil {
		return err
	}
	s.written++
	return atomicfile.Replace(s.out(r), doc, 0o644)
}

func (s *statementExport) receipt(ctx context.Context, r *evidence.Record) ([]byte, error) {
	if s.log == nil {
		return nil, fmt.Errorf("%w: the data folder has no log", scitt.ErrNoReceipt)
	}
	return s.log.Receipt(ctx, r)
}

// issuer is the record's actor if the key is one of the record's, and otherwise the operator.
func (s *statementExport) issuer(r *evidence.Record) string {
	if slices.ContainsFunc(r.Payload.Signers, func(info evidence.SignerInfo) bool { return info.KeyID == s.signer.Info().KeyID }) {
		return scitt.Issuer(r.Payload.Role(), r.Payload.Actor())
	}
	return scitt.Issuer(evidence.RoleOperator, ledger.OperatorName)
}

func (s *statementExport) tell(io stdio) {
	if s.without > 0 {
		fmt.Fprintf(io.err, "jurat: %d of %s got no receipt: %v\n", s.without, plural.Of(s.written, "statement"), s.why)
		fmt.Fprintln(io.err, "jurat: hint: what 'jurat log prove' wrote gets one, from the operator of that log")
	}
}

// statement prints what a SCITT statement states.
func (p *printer) statement(s *verify.Statement) {
	if s == nil {
		return
	}
	p.text("  ", inert(fmt.Sprintf("a statement of the issuer %q about %q, of the type %q", s.Issuer, s.Subject, s.ContentType)))
	for _, r := range s.Receipts {
		p.text("  ", inert(fmt.Sprintf("receipt: %s: %s", r.Status, r.Reason)))
	}
}
