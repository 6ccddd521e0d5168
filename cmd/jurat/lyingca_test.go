package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/access"
	"jurat/internal/ca"
	"jurat/internal/certlog"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/server"
)

// TestLyingOperatorOfCertificates: a monitor asks a server for the operator's chains. It alarms when the operator seals what the CA did not
// do, and it does not take a chain that ends early for the whole one.
func TestLyingOperatorOfCertificates(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	i, _, err := installation.OpenOrCreate(t.Context(), installation.Config{Dir: path("data")})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	a, err := ca.Create(t.Context(), ca.Config{Dir: path("ca")}, ca.Plan{Name: "Agents", By: "A. Person", Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	issueFor(t, i, a, "mia")
	s, err := server.New(t.Context(), server.Config{Installation: i, Log: slog.New(slog.DiscardHandler), Local: true})
	if err != nil {
		t.Fatal(err)
	}
	running := httptest.NewServer(s)
	defer running.Close()
	token, _, err := access.New(access.Config{Ledger: i.Ledger, Keys: i.Keys}).Grant(t.Context(), access.Order{Name: "ada", Roles: []access.Role{access.Auditor}, For: time.Hour, Reason: "r", By: "b"})
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := i.Trust(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := trusted.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"token": token, "trust.json": string(doc)} {
		if err := os.WriteFile(path(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	watch := func(code int, more ...string) string {
		t.Helper()
		return doing(t, code, append([]string{"log", "certificates", "--trust", path("trust.json")}, more...)...)
	}
	remote := []string{"--log", running.URL + "/log", "--token-file", path("token")}
	if said := watch(0, remote...); !strings.Contains(said, "nothing was found in 3 acts") {
		t.Error(said)
	}
	before := keep(t, i, path, "before")
	// The operator seals a certificate that another CA signed, as if it were this one's.
	other, err := ca.Create(t.Context(), ca.Config{Dir: path("other")}, ca.Plan{Name: "Agents", By: "b", Reason: "r"})
	if err != nil {
		t.Fatal(err)
	}
	forged, err := other.Issue(t.Context(), orderFor(t, "mia", nil).Order)
	if err != nil {
		t.Fatal(err)
	}
	body, err := operator.Encode(operator.CertificateEventBody{Event: operator.CertificateIssued, CA: a.ID, Certificate: forged.Certificate.Raw, By: "b", Reason: "r"})
	if err != nil {
		t.Fatal(err)
	}
	p := evidence.Payload{ActionType: evidence.CertificateEvent, AgentID: ledger.OperatorName, Response: body}
	lying := ledger.Operator{Ledger: i.Ledger, Keys: i.Keys}
	if _, err := lying.SealNext(t.Context(), operator.CertificatesChain, func([]*evidence.Record) ([]evidence.Payload, error) { return []evidence.Payload{p}, nil }); err != nil {
		t.Fatal(err)
	}
	if said := watch(1, remote...); !strings.Contains(said, "ALARM: NOT-ITS-OWN") {
		t.Error(said)
	}
	// The operator shows the chain as it was before the lie. By itself the file is right; with the log's entries it lacks an act.
	if said := watch(0, before...); !strings.Contains(said, "nothing was found") {
		t.Error(said)
	}
	watch(1, append(before, "--checkpoint", write(t, path("now.checkpoint"), checkpointOf(t, i)), "--consistency", consistencyOf(t, i, path, before[0]), "--entries", entriesOf(t, i, path))...)
}

func orderFor(t *testing.T, name string, challenge *ca.Challenge) certlog.Order {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := ca.MakeRequest(key, evidence.RoleAgent, name, challenge)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ca.ParseRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	return certlog.Order{Order: ca.Order{Request: r, By: "A. Person", Reason: "asked for"}, AnyAge: challenge == nil}
}

func issueFor(t *testing.T, i *installation.Installation, a *ca.CA, name string) {
	t.Helper()
	if _, err := i.Certificates.Issue(t.Context(), a, orderFor(t, name, nil)); err != nil {
		t.Fatal(err)
	}
}

// keep writes both chains into files, and returns their names.
func keep(t *testing.T, i *installation.Installation, path func(string) string, as string) (files []string) {
	t.Helper()
	for _, chain := range []string{operator.CertificatesChain, operator.KeysChain} {
		records, err := i.Ledger.Chain(t.Context(), chain)
		if err != nil {
			t.Fatal(err)
		}
		bundle, err := i.Ledger.ProveLatest(t.Context(), records...)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := bundle.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, write(t, path(as+chain), string(doc)))
	}
	return files
}

func write(t *testing.T, file, content string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func checkpointOf(t *testing.T, i *installation.Installation) string {
	t.Helper()
	signed, err := i.Ledger.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// consistencyOf proves that the log of a bundle is the beginning of the log as it is.
func consistencyOf(t *testing.T, i *installation.Installation, path func(string) string, file string) string {
	t.Helper()
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := evidence.ParseBundle(doc)
	if err != nil {
		t.Fatal(err)
	}
	from, err := i.Ledger.SizeAt(t.Context(), bundle.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	to, err := i.Ledger.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	proof, err := i.Ledger.Consistency(t.Context(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	text, err := proof.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return write(t, path("consistency.json"), string(text))
}

func entriesOf(t *testing.T, i *installation.Installation, path func(string) string) string {
	t.Helper()
	size, err := i.Ledger.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for entry, err := range i.Ledger.Entries(t.Context(), 0, size) {
		if err != nil {
			t.Fatal(err)
		}
		all.Write(entry)
		all.WriteByte('\n')
	}
	return write(t, path("entries"), all.String())
}
