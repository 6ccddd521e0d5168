package bench

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"jurat/evidence"
	"jurat/timestamp"
)

// bare holds the basic operations that every record needs, each measured alone.
type bare struct {
	signer    evidence.Signer
	stamping  *ecdsa.PrivateKey
	authority *timestamp.Authority
	root      *x509.Certificate
	draft     *evidence.Draft
	document  []byte // a payload in its signed form
	file      *os.File
	page      []byte
	database  *sql.DB
	insert    *sql.Stmt
}

func newBare(ctx context.Context, h *house, dir string) (b *bare, err error) {
	b = &bare{signer: h.signers[0], draft: h.draft, page: make([]byte, 4096)}
	if b.stamping, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	names := timestamp.CertificateConfig{Key: b.stamping, Serial: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0)}
	if b.root, err = timestamp.NewRoot(names); err != nil {
		return nil, err
	}
	certificate, err := timestamp.NewCertificate(names, b.root, b.stamping)
	if err != nil {
		return nil, err
	}
	b.authority, err = timestamp.NewAuthority(timestamp.AuthorityConfig{Key: b.stamping, Certificate: certificate, Chain: []*x509.Certificate{b.root}})
	if err != nil {
		return nil, err
	}
	record, err := b.record()
	if err != nil {
		return nil, err
	}
	b.document = record.Canonical()
	if b.file, err = os.Create(filepath.Join(dir, "page")); err != nil {
		return nil, err
	}
	// The database has the ledger's settings, and one table with one data column.
	b.database, err = sql.Open("sqlite", filepath.Join(dir, "bare.db")+"?_pragma=page_size(8192)&_journal_mode=WAL&_synchronous=FULL")
	if err == nil {
		b.database.SetMaxOpenConns(1)
		if _, err = b.database.ExecContext(ctx, `CREATE TABLE bare (id INTEGER PRIMARY KEY, data BLOB)`); err == nil {
			b.insert, err = b.database.PrepareContext(ctx, `INSERT INTO bare (data) VALUES (?)`)
		}
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bare) close() error {
	errs := []error{b.file.Close()}
	if b.insert != nil {
		errs = append(errs, b.insert.Close())
	}
	if b.database != nil {
		errs = append(errs, b.database.Close())
	}
	return errors.Join(errs...)
}

// record makes a signed record, without a time stamp and a log.
func (b *bare) record() (*evidence.Record, error) {
	id, err := evidence.NewRecordID(time.Now(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return b.draft.Seal(evidence.Sealing{Signers: []evidence.Signer{b.signer}, Time: time.Now(), RecordID: id})
}

// sign makes one signature over a payload.
func (b *bare) sign(context.Context) error {
	_, err := b.signer.Sign(b.document)
	return err
}

// signToken makes only the signature of a token.
func (b *bare) signToken(context.Context) error {
	digest := sha256.Sum256(b.page[:64])
	_, err := b.stamping.Sign(rand.Reader, digest[:], crypto.SHA256)
	return err
}

// twoSignatures makes the two signatures of a record that has a token of its own.
func (b *bare) twoSignatures(ctx context.Context) error {
	return errors.Join(b.sign(ctx), b.signToken(ctx))
}

// canonical converts a payload to canonical form.
func (b *bare) canonical(context.Context) error {
	form, err := evidence.Canonical(b.document)
	if err == nil && len(form) != len(b.document) {
		err = errors.New("the canonical form of a canonical payload differs")
	}
	return err
}

// signed makes a canonical form and one signature: the least that a record in a batch of tokens needs.
func (b *bare) signed(ctx context.Context) error {
	return errors.Join(b.canonical(ctx), b.sign(ctx))
}

// token issues a time stamp that includes the certificate.
func (b *bare) token(context.Context) error {
	_, err := b.stamp(sha256.Sum256(b.document))
	return err
}

func (b *bare) stamp(imprint [32]byte) ([]byte, error) {
	return b.authority.Issue(&timestamp.Request{Imprint: imprint, CertReq: true})
}

// sealed makes a record with its token, without a log.
func (b *bare) sealed(context.Context) error {
	record, err := b.record()
	if err != nil {
		return err
	}
	_, err = b.stamp(record.Imprint())
	return err
}

// fsync writes a page and syncs it.
func (b *bare) fsync(context.Context) error {
	if _, err := b.file.Write(b.page); err != nil {
		return err
	}
	return b.file.Sync()
}

// commit commits one row of a payload's size to the database, durably.
func (b *bare) commit(ctx context.Context) error {
	if _, err := b.insert.ExecContext(ctx, b.document); err != nil {
		return fmt.Errorf("committing a row: %w", err)
	}
	return nil
}
