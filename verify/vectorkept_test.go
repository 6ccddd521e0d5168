package verify_test

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/verify/trust"
)

// A keptVector cannot be made again, because its keys or signatures are random. Its committed files are only verified.
// To make one again, delete its file.
type keptVector struct {
	name    string
	produce func(t *testing.T) given
}

// keptVectors are the existing vectors. With -update, missing ones are made.
func keptVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	for _, plan := range [][]keptVector{certificateVectors(t), revokedAuthorityVectors()} {
		for _, kept := range plan {
			g, found := committedVector(t, kept.name)
			if !found && *update {
				g = kept.produce(t)
				g.name = kept.name
			} else if !found {
				t.Errorf("there is no vector %s: make it with -update", kept.name)
				continue
			}
			list = append(list, g)
		}
	}
	return list
}

// committedVector reads what was given in a vector back from its files.
func committedVector(t *testing.T, name string) (g given, found bool) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join(vectorsDir, "manifest.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return given{}, false
	}
	var m vectorManifest
	if err == nil {
		err = json.Unmarshal(doc, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range m.Verifications {
		if v.Name != name {
			continue
		}
		files := map[string][]byte{}
		for _, file := range slices.Concat([]string{v.File, v.Trust}, v.CRLs) {
			if files[file], err = os.ReadFile(filepath.Join(vectorsDir, file)); err != nil && file != "" {
				return given{}, false
			}
		}
		return given{name, files[v.File], files[v.Trust], readerOf(t, files, v), nil}, true
	}
	return given{}, false
}

func certificateVectors(t *testing.T) []keptVector {
	t.Helper()
	var list []keptVector
	for _, tt := range slices.Concat(certificateCases(t), oldListCases(t)) {
		list = append(list, keptVector{slug("certificate", tt.name), func(t *testing.T) given {
			r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
			public := must.Get(evidence.ParsePublicKey(o.Trust.Keys[0].PublicKey))(t)
			w := newWorld()
			tt.change(w)
			return givenRecord(t, tt.name, r, w.build(t, r, o, public))
		}})
	}
	return list
}

// revokedAuthorityVectors are tokens of an authority whose certificate is on its CA's list from half an hour before the
// token's time, or from an hour after it.
func revokedAuthorityVectors() []keptVector {
	before, after := stamped.Add(30*time.Minute), stamped.Add(2*time.Hour)
	vector := func(name string, entries []x509.RevocationListEntry) keptVector {
		return keptVector{slug("revoked authority", name), func(t *testing.T) given {
			house := jurattest.NewForStrangers(t)
			r, o := standaloneIn(t, house, output("a"))
			elsewhere, elsewheres, root, rootKey := stampedElsewhere(t)
			if r.Imprint() != elsewhere.Imprint() {
				t.Fatal("the two houses do not seal the same records")
			}
			r.Timestamps, o.At, o.CRLs = elsewhere.Timestamps, elsewheres.At, nil
			o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) { trusted.Authorities = elsewheres.Trust.Authorities })
			if entries != nil {
				o.CRLs = []*x509.RevocationList{signList(t, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped.Add(3 * time.Hour),
					NextUpdate: stamped.AddDate(0, 1, 0), RevokedCertificateEntries: entries}, root, rootKey)}
			}
			return givenRecord(t, name, r, o)
		}}
	}
	return []keptVector{
		vector("not on the list", []x509.RevocationListEntry{}),
		vector("without a list", nil),
		vector("replaced afterwards", []x509.RevocationListEntry{revocationOf(6, after, 4)}),
		vector("closed before", []x509.RevocationListEntry{revocationOf(6, before, 5)}),
		vector("key stolen afterwards", []x509.RevocationListEntry{revocationOf(6, after, 1)}),
	}
}
