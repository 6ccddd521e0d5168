package server_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"jurat/api"
	"jurat/client"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/access"
	"jurat/internal/ca"
	"jurat/internal/certlog"
	"jurat/internal/server"
	"jurat/verify/trust"
)

// startCA starts a server with a CA.
func startCA(t *testing.T) *running {
	t.Helper()
	a, err := ca.Create(t.Context(), ca.Config{Dir: t.TempDir() + "/ca"}, ca.Plan{Name: "Agents", By: "A. Person", Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, func(c *server.Config) {
		c.Certificates = &certlog.Issuer{Log: c.Installation.Certificates, CA: a}
	})
}

func agentKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// latest is the challenge of the server's latest checkpoint.
func (r *running) latest(t *testing.T) *ca.Challenge {
	t.Helper()
	_, signed := send(t, http.DefaultClient, "GET", r.URL+"/log/checkpoint", "")
	text, _, _ := strings.Cut(signed, "\n\n")
	checkpoint, err := operator.ParseCheckpoint(text + "\n")
	if err != nil {
		t.Fatal(err)
	}
	challenge, err := ca.ChallengeOf(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	return &challenge
}

func requestPEM(t *testing.T, key crypto.Signer, role evidence.Role, name string, challenge *ca.Challenge) string {
	t.Helper()
	der, err := ca.MakeRequest(key, role, name, challenge)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: ca.PEMRequest, Bytes: der}))
}

func asked(t *testing.T, request string) string {
	t.Helper()
	body, err := json.Marshal(api.CertificateRequest{Request: request})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestAgentsGetCertificates: with its own token an agent gets a certificate for its own key and name, the key is registered, and a
// repeated request gets the same certificate.
func TestAgentsGetCertificates(t *testing.T) {
	r := startCA(t)
	token, key := r.token(t, "mia", access.Agent), agentKey(t)
	c, err := client.NewClient(client.Config{URL: r.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	request := requestPEM(t, key, evidence.RoleAgent, "mia", r.latest(t))
	made, err := c.Certificate(t.Context(), []byte(request))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(made.Certificate))
	own, _ := pem.Decode([]byte(made.CA))
	if block == nil || own == nil {
		t.Fatalf("%+v", made)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	root, err := x509.ParseCertificate(own.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := leaf.CheckSignatureFrom(root); err != nil {
		t.Error(err)
	}
	if err := trust.CheckCertificate(leaf, evidence.RoleAgent, "mia"); err != nil || leaf.SerialNumber.Text(16) != made.Serial {
		t.Errorf("%+v, %v", made, err)
	}
	history, err := r.Installation.Ledger.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if k := history.Key(evidence.DigestOf(leaf.RawSubjectPublicKeyInfo)); k == nil || k.Name != "mia" || k.Custody != operator.CustodyOwner || string(k.Certificates[0]) != string(leaf.Raw) {
		t.Errorf("%+v", k)
	}
	answer, body := send(t, http.DefaultClient, "POST", r.URL+"/v1/certificates", asked(t, request), bearer(token)...)
	var again api.Certificate
	if err := json.Unmarshal([]byte(body), &again); err != nil || answer.StatusCode != http.StatusOK || again != *made {
		t.Errorf("%s: %s, %v", answer.Status, body, err)
	}
	// What the key signs is taken, and has the certificate.
	signed, err := evidence.NewSigner(key, nil)
	if err != nil {
		t.Fatal(err)
	}
	record, err := client.Sign([]byte(strings.ReplaceAll(action, "logistics-agent-v1", "mia")), signed)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := c.Deposit(t.Context(), record)
	if err != nil || len(stored.Certificates) != 1 || string(stored.Certificates[0]) != string(leaf.Raw) {
		t.Errorf("%v", err)
	}
}

// TestCertificatesAreRefused: each request that must not get a certificate, and the reason that it gets.
func TestCertificatesAreRefused(t *testing.T) {
	r := startCA(t)
	mias, token := agentKey(t), r.token(t, "mia", access.Agent)
	if answer, body := send(t, http.DefaultClient, "POST", r.URL+"/v1/certificates", asked(t, requestPEM(t, mias, evidence.RoleAgent, "mia", r.latest(t))), bearer(token)...); answer.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s", answer.Status, body)
	}
	held := r.token(t, "logistics-agent-v1", access.Agent)
	post(t, r.URL+"/v1/records", action, bearer(held)...) // the operator makes its key
	fresh := r.latest(t)
	good := requestPEM(t, agentKey(t), evidence.RoleAgent, "mia", fresh)
	for name, test := range map[string]struct {
		token, body string
		means       error
		says        string
	}{
		"another's name":         {token, asked(t, requestPEM(t, agentKey(t), evidence.RoleAgent, "ben", fresh)), api.ErrForbidden, "own name only"},
		"another role":           {token, asked(t, requestPEM(t, mias, evidence.RoleReviewer, "mia", fresh)), api.ErrForbidden, "own name only"},
		"another key":            {token, asked(t, good), api.ErrConflict, "another key"},
		"a key of the operator":  {held, asked(t, requestPEM(t, agentKey(t), evidence.RoleAgent, "logistics-agent-v1", fresh)), api.ErrConflict, "operator holds"},
		"no checkpoint":          {token, asked(t, requestPEM(t, mias, evidence.RoleAgent, "mia", nil)), api.ErrInvalid, "made lately"},
		"no request":             {token, `{"request":""}`, api.ErrInvalid, "field request"},
		"a certificate":          {token, asked(t, strings.ReplaceAll(good, "CERTIFICATE REQUEST", "CERTIFICATE")), api.ErrInvalid, "field request"},
		"a signature that fails": {token, asked(t, flipLast(t, good)), api.ErrInvalid, "field"},
		"a member more":          {token, strings.Replace(asked(t, good), "{", `{"role":"clerk",`, 1), api.ErrInvalid, "role"},
		"too large":              {token, asked(t, strings.Repeat("x", 40<<10)), api.ErrTooLarge, ""},
		"a person":               {r.token(t, "rita", access.Reviewer), asked(t, good), api.ErrForbidden, ""},
	} {
		answer, body := send(t, http.DefaultClient, "POST", r.URL+"/v1/certificates", test.body, bearer(test.token)...)
		t.Run(name, func(t *testing.T) {
			problem(t, answer, body, test.means)
			if !strings.Contains(body, test.says) {
				t.Errorf("%s does not say %q", body, test.says)
			}
		})
	}
	if chain, err := r.Installation.Ledger.Chain(t.Context(), operator.CertificatesChain); err != nil || len(chain) != 3 { // the CA, its list, one certificate
		t.Errorf("%d acts, %v", len(chain), err)
	}
	without := start(t, nil)
	answer, body := send(t, http.DefaultClient, "POST", without.URL+"/v1/certificates", asked(t, good), bearer(without.token(t, "mia", access.Agent))...)
	problem(t, answer, body, api.ErrNotFound)
}

// flipLast changes the last byte of a request's signature.
func flipLast(t *testing.T, request string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(request))
	block.Bytes[len(block.Bytes)-1] ^= 1
	return string(pem.EncodeToMemory(block))
}
