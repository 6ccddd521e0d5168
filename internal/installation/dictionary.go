package installation

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/internal/ledger/storage"
	"jurat/internal/stamping"
	"jurat/timestamp"
)

// synthetic are drafts of records that nobody ever sealed.
//
//go:embed dictionary.jsonl
var synthetic []byte

// words are frequent in English, Russian and Japanese texts.
//
//go:embed words.txt
var words string

// addDictionary adds what the log's rows are compressed with, unless the newest dictionary has the present certificate
// of the built-in authority. A dictionary consists of synthetic records with time stamps of this authority. It never
// holds a user's record, because a dictionary has its texts verbatim, and must stay for as long as a row needs it.
func addDictionary(ctx context.Context, store storage.Store, files filestore.Store, authority *stamping.Own, now time.Time) error {
	certificate, err := readCertificate(ctx, files, authorityCertificate)
	if err != nil {
		return err
	}
	newest, err := store.NewestDictionary(ctx)
	if err != nil {
		return err
	}
	if newest > 0 {
		if text, err := store.Dictionary(ctx, newest); err != nil || bytes.Contains(text, certificate.Raw) {
			return err
		}
	}
	text, err := makeDictionary(authority, now)
	if err != nil {
		return fmt.Errorf("making a dictionary: %w", err)
	}
	err = store.PutDictionary(ctx, newest+1, text)
	if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrDiskFull) || errors.Is(err, storage.ErrBusy) {
		return nil // another process was first, or the next opening adds it: until then rows need more room
	}
	return err
}

// makeDictionary seals the synthetic records, with a key that is then thrown away.
func makeDictionary(authority *stamping.Own, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := evidence.NewSigner(key, rand.Reader)
	if err != nil {
		return nil, err
	}
	var rows []storage.Row
	for line := range bytes.Lines(synthetic) {
		draft, err := evidence.ParseDraft(line)
		if err != nil {
			return nil, err
		}
		id, err := evidence.NewRecordID(now, nil)
		if err != nil {
			return nil, err
		}
		r, err := draft.Seal(evidence.Sealing{Signers: []evidence.Signer{signer}, Time: now, RecordID: id})
		if err != nil {
			return nil, err
		}
		token, err := authority.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true})
		if err != nil {
			return nil, err
		}
		r.Timestamps = []evidence.Timestamp{{Kind: evidence.RFC3161, Token: token}}
		rows = append(rows, storage.RowOf(r))
	}
	return storage.NewDictionary(words, rows), nil
}
