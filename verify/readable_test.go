package verify_test

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	strict "github.com/go-json-experiment/json"

	"jurat/internal/dertest"
	"jurat/internal/must"
	"jurat/verify/trust"
)

// A readableVector says whether DER can be read as what CAs sign.
type readableVector struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Value   []byte `json:"value"`
	Refused bool   `json:"refused,omitzero"`
}

var readers = map[string]func(der []byte) error{
	"certificate": func(der []byte) error { _, err := x509.ParseCertificate(der); return err },
	"crl":         func(der []byte) error { _, err := trust.ParseCRL(der); return err },
}

// TestCertificatesAreReadAlike lets both verifiers read mutants of certificates and revocation lists. What one of them cannot read
// may be none for the other neither: a file would be refused by one, or a signer unknown.
func TestCertificatesAreReadAlike(t *testing.T) {
	n, seed, _ := chanceOfTest(t, 150, 20_000)
	m := newMutator(t)
	m.Rand = rand.New(rand.NewPCG(seed, 0))
	all := signedByCAs(m)
	var list []readableVector
	refused := 0
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		for i := range n {
			der := slices.Clone(all[kind][m.IntN(len(all[kind]))])
			if i > 0 {
				der = m.der(der)
			}
			if len(der) == 0 || der[0] != 0x30 { // a list may also be in PEM
				continue
			}
			v := readableVector{fmt.Sprint(kind, " ", i), kind, der, readers[kind](der) != nil}
			if list = append(list, v); v.Refused {
				refused++
			}
		}
	}
	if refused == 0 || refused == len(list) {
		t.Errorf("%d of %d are refused", refused, len(list))
	}
	doc := must.Get(strict.Marshal(map[string]any{"format": "jurat/vectors/v1", "readable": list}))(t)
	folder := t.TempDir()
	write(t, folder, "readable.json", doc)
	var complaints bytes.Buffer
	run := exec.Command(python(t), filepath.Join("..", "testdata", "second-verifier", "vectors.py"), filepath.Join(folder, "readable.json"))
	run.Stderr = &complaints
	out, err := run.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, complaints.String()[:min(complaints.Len(), 4000)])
		for _, v := range list {
			if strings.Contains(complaints.String(), v.Name+":\n") {
				t.Logf("%s: %v: %s", v.Name, readers[v.Kind](v.Value), base64.StdEncoding.EncodeToString(v.Value))
			}
		}
	}
	if read := bytes.Count(out, []byte("\n")); read != len(list) {
		t.Errorf("the second verifier read %d of %d", read, len(list))
	}
}

// signedByCAs are the certificates, lists and responses in all vectors.
func signedByCAs(m *mutator) map[string][][]byte {
	found := map[string]map[string]bool{}
	add := func(der []byte) {
		for kind, read := range readers {
			if len(der) > 0 && der[0] == 0x30 && read(der) == nil {
				if found[kind] == nil {
					found[kind] = map[string]bool{}
				}
				found[kind][string(der)] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		root, is := treeOf(m.files[name]).(map[string]any)
		if !is {
			add(m.files[name])
			continue
		}
		m.walk(root, func(value any, _ func(any)) {
			text, is := value.(string)
			if !is || !strings.HasPrefix(text, "MI") {
				return
			}
			der, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return
			}
			add(der)
			if token, err := dertest.Parse(der); err == nil {
				if set := token.At(1, 0, 3); set != nil && set.Tag == 0xA0 {
					for _, certificate := range set.Members {
						add(certificate.Bytes())
					}
				}
			}
		})
	}
	all := map[string][][]byte{}
	for kind, ders := range found {
		for _, der := range slices.Sorted(maps.Keys(ders)) {
			all[kind] = append(all[kind], []byte(der))
		}
	}
	return all
}
