package trustlist

import (
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"jurat/internal/must"
)

// realFile reads one of the lists that the EU and its member states have published. It skips the test if the lists are
// not here.
func realFile(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "shared", "lists", name))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("there is no ../shared/lists: the tests on real lists are skipped")
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func realList(t testing.TB, name string) *Unverified {
	t.Helper()
	return must.Get(Parse(realFile(t, name)))(t)
}

// journal returns the certificates of a publication in the Official Journal.
func journal(t testing.TB, name string) (signers Signers) {
	t.Helper()
	for rest := realFile(t, name); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return signers
		}
		signers = append(signers, sha256.Sum256(block.Bytes))
	}
}

func realPivots(t testing.TB) (pivots []*Unverified) {
	for _, n := range []string{"282", "300", "335", "341"} {
		pivots = append(pivots, realList(t, "eu-lotl-pivot-"+n+".xml"))
	}
	return pivots
}

// TestChain proves a published list of the lists, starting from the Official Journal.
func TestChain(t *testing.T) {
	old, recent := journal(t, "oj-0.cert.pem"), journal(t, "oj-1.cert.pem")
	list369, list388 := realList(t, "eu-lotl-old.xml"), realList(t, "eu-lotl.xml")
	pivots := realPivots(t)
	l, err := Chain(old, pivots, list369)
	if err != nil || l.Sequence != 369 || l.Territory != "EU" || len(l.Pointers) != 43 {
		t.Fatalf("%+v, %v", l, err)
	}
	for i := range pivots {
		without := append(append([]*Unverified{}, pivots[:i]...), pivots[i+1:]...)
		if _, err := Chain(old, without, list369); !errors.Is(err, ErrChain) {
			t.Errorf("without pivot %d: %v", pivots[i].list.Sequence, err)
		}
	}
	if l, err := Chain(recent, nil, list388); err != nil || l.Sequence != 388 {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := Chain(recent, nil, list369); !errors.Is(err, ErrChain) {
		t.Errorf("list 369 was accepted without the pivots that it names: %v", err)
	}
	if _, err := Chain(old, pivots, list388); err == nil {
		t.Error("list 388 was accepted under the publication of 2019 without pivot 378")
	}
	if _, err := Chain(nil, pivots, list369); !errors.Is(err, ErrSigner) {
		t.Errorf("without trusted signers: %v", err)
	}
}

// TestNationalLists reads two lists under the list of the lists that names their signers.
func TestNationalLists(t *testing.T) {
	old := must.Get(Chain(journal(t, "oj-0.cert.pem"), realPivots(t), realList(t, "eu-lotl-old.xml")))(t)
	recent := must.Get(Chain(journal(t, "oj-1.cert.pem"), nil, realList(t, "eu-lotl.xml")))(t)
	be := must.Get(realList(t, "tsl-be-v6.xml").Verify(recent.Signers("BE")))(t)
	if be.Sequence != 81 || len(be.Of(QualifiedTimeStamps)) != 20 || be.NextUpdate.IsZero() {
		t.Errorf("%d, %d, %s", be.Sequence, len(be.Of(QualifiedTimeStamps)), be.NextUpdate)
	}
	ee := must.Get(realList(t, "tsl-ee.xml").Verify(old.Signers("EE")))(t)
	if _, err := realList(t, "tsl-ee.xml").Verify(old.Signers("BE")); !errors.Is(err, ErrSigner) {
		t.Errorf("Estonia's by Belgium: %v", err)
	}
	services := ee.Of(QualifiedTimeStamps)
	if len(services) != 32 {
		t.Errorf("%d services", len(services))
	}
	checkHistory(t, services)
}

// checkHistory checks the answers about the first service of Estonia's list at several times.
func checkHistory(t *testing.T, services []Service) {
	t.Helper()
	for _, tt := range []struct {
		at        string
		qualified bool
	}{
		{"2016-06-30T21:59:59Z", false}, {"2016-06-30T22:00:59Z", false}, {"2016-06-30T22:01:00Z", true},
		{"2020-09-28T22:00:59Z", true}, {"2020-09-28T22:01:00Z", false}, {"1999-01-01T00:00:00Z", false},
	} {
		at := must.Get(time.Parse(time.RFC3339, tt.at))(t)
		if qualified, err := services[0].QualifiedAt(QualifiedTimeStamps, at); err != nil || qualified != tt.qualified {
			t.Errorf("%s: %v, %v", tt.at, qualified, err)
		}
	}
}
