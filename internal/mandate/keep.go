package mandate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/filestore"
	"jurat/internal/ledger"
)

// Folder is the part of an installation that keeps signed mandates.
const Folder = "mandates"

// A Keeper keeps signed mandates in an installation, and logs them. All its fields are required.
type Keeper struct {
	Files    filestore.Store
	Operator ledger.Operator
}

func fileOf(digest evidence.Digest) string {
	return path.Join(Folder, strings.TrimPrefix(digest.String(), "sha256:")+".json")
}

// Seal keeps a mandate and logs an act that names it. It refuses one whose signature is not by the key of its certificate, and checks no more: for
// whom the mandate counts is for each reader to check. A crash between the two leaves a file that no act names, which the next call uses.
func (k *Keeper) Seal(ctx context.Context, f *File, by, reason string) (digest evidence.Digest, err error) {
	if err := f.signed(); err != nil {
		return digest, fmt.Errorf("sealing mandate: the signature is not by the key of the first certificate: %w", err)
	}
	name, _, _, err := organisation(f.Certificates[0])
	if err != nil {
		return digest, fmt.Errorf("sealing mandate: the certificate of the seal: %w", err)
	}
	if digest, err = f.Digest(); err != nil {
		return digest, err
	}
	doc, err := f.Marshal()
	if err != nil {
		return digest, err
	}
	if err := k.Files.Create(ctx, fileOf(digest), doc); err != nil && !errors.Is(err, fs.ErrExist) {
		return digest, fmt.Errorf("sealing mandate: %w", err)
	}
	m := f.Mandate
	act, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.Mandate, ChainID: operator.MandatesChain}, operator.MandateBody{By: by, Reason: reason,
		CA: m.CA, Digest: digest, Organisation: name, Roles: m.Roles, Names: m.Names, From: m.From.UTC().Format(time.RFC3339Nano), To: m.To.UTC().Format(time.RFC3339Nano)})
	if err != nil {
		return digest, fmt.Errorf("sealing mandate: %w", err)
	}
	if err := k.Operator.SealLast(ctx, act); err != nil {
		return digest, fmt.Errorf("sealing mandate: %w", err)
	}
	return digest, nil
}

// Show returns a mandate that was kept. The error wraps fs.ErrNotExist if there is none with this digest, and ErrForm if the file was changed.
func (k *Keeper) Show(ctx context.Context, digest evidence.Digest) ([]byte, error) {
	doc, err := k.Files.Read(ctx, fileOf(digest))
	if err != nil {
		return nil, fmt.Errorf("mandate %s: %w", digest, err)
	}
	if evidence.DigestOf(bytes.TrimSuffix(doc, []byte("\n"))) != digest {
		return nil, fmt.Errorf("mandate %s: %w: the file has another digest", digest, ErrForm)
	}
	return doc, nil
}
