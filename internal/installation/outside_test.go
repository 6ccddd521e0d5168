package installation_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/timestamp"
	"jurat/verify"
)

// outside is somebody else's authority on this machine's loopback.
func outside(t *testing.T) (description installation.Outside, down *atomic.Bool) {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	rootKey, leafKey := key(), key()
	from := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	validity := timestamp.CertificateConfig{Serial: big.NewInt(7), NotBefore: from, NotAfter: from.Add(24 * time.Hour), Key: rootKey}
	root, err := timestamp.NewRoot(validity)
	if err != nil {
		t.Fatal(err)
	}
	validity.Key = leafKey
	leaf, err := timestamp.NewCertificate(validity, root, rootKey)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: leafKey, Certificate: leaf, Chain: []*x509.Certificate{root}})
	if err != nil {
		t.Fatal(err)
	}
	down = new(atomic.Bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || down.Load() {
			w.WriteHeader(http.StatusNotFound) // final, so that the test need not wait for further attempts
			return
		}
		w.Header().Set("Content-Type", "application/timestamp-reply")
		w.Write(authority.Respond(body))
	}))
	t.Cleanup(server.Close)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw})
	return installation.Outside{Name: "outside", URL: server.URL, Roots: string(text)}, down
}

func sealRequest(t *testing.T, i *installation.Installation, request string) (*evidence.Record, error) {
	t.Helper()
	draft, err := evidence.ParseDraft([]byte(`{"agent_id":"a","request_id":"` + request + `","timestamp":"2026-01-31T16:15:00Z","model":"m",
		"model_version":"v","prompt":"p","response":"r","parameters":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	signers, err := i.Keys.Signers(evidence.RoleAgent, "a")
	if err != nil {
		t.Fatal(err)
	}
	return i.Ledger.Seal(t.Context(), draft, signers, nil)
}

// TestOutsideAuthority: it stamps beside the operator's clock, a reader may trust it alone, and without it nothing is
// sealed.
func TestOutsideAuthority(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	if err := installation.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	description, down := outside(t)
	if err := installation.AddOutside(t.Context(), c, description); err != nil {
		t.Fatal(err)
	}
	if err := installation.AddOutside(t.Context(), c, description); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("added twice: %v", err)
	}
	i, err := installation.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	r, err := sealRequest(t, i, "r1")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Timestamps) != 2 {
		t.Fatalf("%d time stamps, want the operator's and the outside one", len(r.Timestamps))
	}
	trust, err := i.Trust()
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []verify.Clock{verify.OperatorClock, verify.Independent} {
		only := *trust
		only.Authorities = trust.Authorities[n : n+1]
		report := verify.Record(r, verify.Options{Trust: &only})
		if at, ok := report.TimeOf(r.Payload.RecordID); !ok || at.Clock != want {
			t.Errorf("trusting only %s: %+v", trust.Authorities[n].Name, report.Of(verify.Time))
		}
	}
	down.Store(true)
	if _, err := sealRequest(t, i, "r2"); err == nil || !strings.Contains(err.Error(), "tsa http://127.0.0.1") {
		t.Errorf("sealed without the outside authority: %v", err)
	}
	if n, err := i.Ledger.Size(t.Context()); n != 1 || err != nil {
		t.Errorf("%d records in the log, %v", n, err)
	}
	if err := installation.RemoveOutside(c, "outside"); err != nil {
		t.Fatal(err)
	}
	if list, err := installation.ListOutside(c); len(list) != 0 || err != nil {
		t.Errorf("after removing: %v, %v", list, err)
	}
}

func TestOutsideAuthorityIsTriedFirst(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	if err := installation.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	good, down := outside(t)
	down.Store(true)
	other, _ := outside(t)
	for name, o := range map[string]installation.Outside{
		"down":                  good,
		"another's root":        {Name: "x", URL: other.URL, Roots: good.Roots},
		"no root":               {Name: "x", URL: other.URL},
		"no URL":                {Name: "x", Roots: good.Roots},
		"a name that is a path": {Name: "../x", URL: other.URL, Roots: other.Roots},
		"another policy":        {Name: "x", URL: other.URL, Roots: other.Roots, Policy: "1.2.3"},
		"no policy at all":      {Name: "x", URL: other.URL, Roots: other.Roots, Policy: "one"},
	} {
		if err := installation.AddOutside(t.Context(), c, o); err == nil {
			t.Errorf("%s: added", name)
		}
	}
	if list, err := installation.ListOutside(c); len(list) != 0 || err != nil {
		t.Errorf("listed: %v, %v", list, err)
	}
}
