package judges

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/veraison/go-cose"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/scitt"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/verify/trust"
)

// exported makes a statement of the first of several records, with a receipt.
func exported(t *testing.T) (*evidence.Record, []byte, *trust.Trust) {
	t.Helper()
	h := jurattest.New(t)
	r := h.Seal(t, payload("a"))
	for range 6 {
		h.Seal(t, payload("b"))
	}
	r, err := h.Ledger.ProveOne(t.Context(), r)
	must.Do(t, err)
	receipt, err := h.SignReceipt(r)
	must.Do(t, err)
	signers, err := h.Keys.Signers(t.Context(), evidence.RoleOperator, "operator")
	must.Do(t, err)
	doc := must.Get(scitt.Sign(r, scitt.Issuer(evidence.RoleOperator, "operator"), signers[0], receipt))(t)
	return r, doc, h.Trust(t)
}

func payload(agent string) evidence.Payload {
	return evidence.Payload{AgentID: agent, RequestID: "r1", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "m-1",
		Prompt: jsontext.Value(`"Which route?"`), Response: jsontext.Value(`"The A9."`), Parameters: jsontext.Value(`{}`)}
}

// key returns the key that a hint names.
func key(t *testing.T, tr *trust.Trust, kid []byte) crypto.PublicKey {
	t.Helper()
	if _, log := tr.LogKey(kid); log != nil {
		return log
	}
	return tr.Key(evidence.KeyID(kid)).Public()
}

// TestGoCOSE has go-cose verify the statement, and its receipt over a root that package tlog computes.
func TestGoCOSE(t *testing.T) {
	r, doc, tr := exported(t)
	var m cose.Sign1Message
	must.Do(t, m.UnmarshalCBOR(doc))
	must.Hold(t, bytes.Equal(m.Payload, r.Canonical()), "payload %s", m.Payload)
	claims, ok := m.Headers.Protected[int64(15)].(map[any]any)
	must.Hold(t, ok && claims[int64(1)] == "urn:jurat:operator:operator" && claims[int64(2)] == r.Payload.RecordID,
		"claims %v", m.Headers.Protected[int64(15)])
	must.Hold(t, m.Headers.Protected[int64(-70001)] == scitt.About, "it does not say what the signature is")
	verify(t, tr, &m, nil)
	m.Payload = append(bytes.Clone(m.Payload), ' ')
	must.Hold(t, m.Verify(nil, verifierOf(t, tr, &m)) != nil, "go-cose accepts another payload")

	receipts, ok := m.Headers.Unprotected[int64(394)].([]any)
	must.Need(t, ok && len(receipts) == 1, "receipts %v", m.Headers.Unprotected[int64(394)])
	var receipt cose.Sign1Message
	must.Do(t, receipt.UnmarshalCBOR(receipts[0].([]byte)))
	must.Hold(t, receipt.Headers.Protected[int64(395)] == int64(1) && receipt.Payload == nil, "%+v", receipt.Headers.Protected)
	proofs := receipt.Headers.Unprotected[int64(396)].(map[any]any)[int64(-1)].([]any)
	var proof struct {
		_           struct{} `cbor:",toarray"`
		Size, Index int64
		Path        [][]byte
	}
	must.Do(t, cbor.Unmarshal(proofs[0].([]byte), &proof))
	var path tlog.RecordProof
	for _, node := range proof.Path {
		path = append(path, tlog.Hash(node))
	}
	root, entry := rootOf(t, r.Log.Checkpoint), receipt.Headers.Unprotected[int64(-70003)].([]byte)
	err := tlog.CheckRecord(path, proof.Size, root, proof.Index, tlog.RecordHash(entry))
	must.Hold(t, err == nil && bytes.Equal(entry, r.LogEntry(r.Log.Counts())), "%v: %+v", err, proof)
	verify(t, tr, &receipt, root[:])
}

func rootOf(t *testing.T, checkpoint string) tlog.Hash {
	t.Helper()
	var root tlog.Hash
	lines := bytes.Split([]byte(checkpoint), []byte("\n"))
	must.Do(t, root.UnmarshalJSON([]byte(`"`+string(lines[2])+`"`)))
	return root
}

func verifierOf(t *testing.T, tr *trust.Trust, m *cose.Sign1Message) cose.Verifier {
	t.Helper()
	algorithm, err := m.Headers.Protected.Algorithm()
	must.Do(t, err)
	verifier := must.Get(cose.NewVerifier(algorithm, key(t, tr, m.Headers.Protected[int64(4)].([]byte))))(t)
	return verifier
}

// verify checks a signature; payload is the detached one, nil: it is in the message.
func verify(t *testing.T, tr *trust.Trust, m *cose.Sign1Message, payload []byte) {
	t.Helper()
	if payload != nil {
		m.Payload = payload
	}
	must.Want(t, m.Verify(nil, verifierOf(t, tr, m)), nil, "go-cose")
}

// TestGoCOSEOnCertificates has go-cose verify a statement with the key of the certificate that it names.
func TestGoCOSEOnCertificates(t *testing.T) {
	h := jurattest.New(t)
	r, err := h.Ledger.ProveOne(t.Context(), h.Seal(t, payload("a")))
	must.Do(t, err)
	signers, err := h.Keys.Signers(t.Context(), evidence.RoleOperator, "operator")
	must.Do(t, err)
	tr := h.Trust(t)
	ca := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	template := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "operator"}, NotBefore: jurattest.Start, NotAfter: jurattest.Start.AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(nil, template, &x509.Certificate{Subject: pkix.Name{CommonName: "a CA"}}, tr.Key(signers[0].Info().KeyID).Public(), ca)
	must.Do(t, err)
	r.Certificates = [][]byte{der}
	doc, err := scitt.Sign(r, scitt.Issuer(evidence.RoleOperator, "operator"), signers[0])
	must.Do(t, err)
	var m cose.Sign1Message
	must.Do(t, m.UnmarshalCBOR(doc))
	named, err := x509.ParseCertificate(m.Headers.Protected[int64(33)].([]byte))
	must.Do(t, err)
	algorithm, err := m.Headers.Protected.Algorithm()
	must.Do(t, err)
	verifier := must.Get(cose.NewVerifier(algorithm, named.PublicKey))(t)
	must.Want(t, m.Verify(nil, verifier), nil, "go-cose, with the key of x5chain")
	thumbprint, digest := m.Headers.Protected[int64(34)].([]any), sha256.Sum256(der)
	must.Hold(t, thumbprint[0] == int64(-16) && bytes.Equal(thumbprint[1].([]byte), digest[:]), "x5t %v", thumbprint)
}

// TestDeterministic: fxamacker/cbor writes the same bytes of the same content, by RFC 8949, section 4.2.1.
func TestDeterministic(t *testing.T) {
	_, doc, _ := exported(t)
	mode, err := cbor.CoreDetEncOptions().EncMode()
	must.Do(t, err)
	reading, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden}.DecMode()
	must.Do(t, err)
	var value any
	must.Do(t, reading.Unmarshal(doc, &value))
	again, err := mode.Marshal(value)
	must.Hold(t, err == nil && bytes.Equal(again, doc), "%v: %x", err, again)
	header := value.(cbor.Tag).Content.([]any)[0].([]byte)
	var inner any
	must.Do(t, reading.Unmarshal(header, &inner))
	again, err = mode.Marshal(inner)
	must.Hold(t, err == nil && bytes.Equal(again, header), "%v: %x", err, again)
}

// TestStatementsOfGoCOSE: jurat reads and checks what go-cose signed.
func TestStatementsOfGoCOSE(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	must.Do(t, err)
	for _, tt := range []struct {
		algorithm cose.Algorithm
		key       crypto.Signer
	}{{cose.AlgorithmES256, ec}, {cose.AlgorithmEdDSA, ed}} {
		signer := must.Get(cose.NewSigner(tt.algorithm, tt.key))(t)
		for range 20 { // ECDSA signatures have a high S as often as a low one
			m := cose.NewSign1Message()
			m.Payload = []byte("Transfer 7 was paid.")
			m.Headers.Protected.SetAlgorithm(tt.algorithm)
			m.Headers.Protected[cose.HeaderLabelContentType] = "text/plain"
			must.Get(m.Headers.Protected.SetCWTClaims(cose.CWTClaims{cose.CWTClaimIssuer: "https://bank.example", cose.CWTClaimSubject: "transfer-7"}))(t)
			must.Do(t, m.Sign(rand.Reader, nil, signer))
			doc, err := m.MarshalCBOR()
			must.Do(t, err)
			s, err := scitt.Parse(doc)
			must.Do(t, err)
			err = s.Check(tt.key.Public())
			must.Hold(t, err == nil && s.Issuer == "https://bank.example" && s.Subject == "transfer-7" && s.ContentType == "text/plain", "%v, %+v", err, s)
		}
	}
}

// jwk is a public key as JavaScript's libraries want it.
func jwk(t *testing.T, public crypto.PublicKey) map[string]string {
	t.Helper()
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		point := must.Get(k.Bytes())(t)
		return map[string]string{"kty": "EC", "crv": "P-256", "alg": "ES256", "x": hex.EncodeToString(point[1:33]), "y": hex.EncodeToString(point[33:])}
	case ed25519.PublicKey:
		return map[string]string{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "x": hex.EncodeToString(k)}
	}
	t.Fatalf("%T", public)
	return nil
}

// TestTransmute has the packages @transmute/cose and @transmute/rfc9162 of npm judge a statement and its receipt, in judge.mjs.
func TestTransmute(t *testing.T) {
	folder := os.Getenv("JURAT_TEST_COSE")
	if folder == "" {
		must.Need(t, os.Getenv("CI") != "true", "JURAT_TEST_COSE names no folder with @transmute/cose: scripts/test installs it")
		t.Skip("JURAT_TEST_COSE names no folder with @transmute/cose: scripts/test installs it")
	}
	_, doc, tr := exported(t)
	s, err := scitt.Parse(doc)
	must.Do(t, err)
	script, err := os.ReadFile("judge.mjs")
	must.Do(t, err)
	// Node looks for packages beside the script.
	place := filepath.Join(folder, "judge-"+filepath.Base(t.TempDir())+".mjs")
	must.Do(t, os.WriteFile(place, script, 0o600))
	t.Cleanup(func() { os.Remove(place) })
	judge := func(doc []byte) (string, error) {
		in, err := json.Marshal(map[string]any{"statement": hex.EncodeToString(doc), "issuer": jwk(t, key(t, tr, s.KeyID)), "log": jwk(t, key(t, tr, s.Receipts[0].KeyID))})
		must.Do(t, err)
		cmd := exec.Command("node", place)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must.Give(judge(doc))(t, "statement valid\nreceipt valid\n")
	changed := bytes.Clone(doc) // the record beside it has the payload first
	changed[bytes.LastIndex(changed, []byte("Which route"))] ^= 1
	out, err := judge(changed)
	must.Hold(t, err != nil, "it accepts another payload: %s", out)
	changed = bytes.Clone(doc)
	changed[bytes.Index(changed, s.Receipts[0].Entry)+20] ^= 1
	out, err = judge(changed)
	must.Hold(t, err != nil, "it accepts another entry: %s", out)
}
