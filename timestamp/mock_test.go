package timestamp

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/must"
)

var update = flag.Bool("update", false, "write the golden vectors of the mock authority anew")

const vectorsFile = "testdata/vectors.json"

// vector is a request and the mock's answer. The files are beside the manifest.
type vector struct {
	Name     string `json:"name"`
	Data     string `json:"data"`       // what is stamped, as text
	Nonce    string `json:"nonce_hex"`  // its magnitude; empty for no nonce
	Negative bool   `json:"negative"`   // of the nonce
	Policy   string `json:"policy"`     // requested; empty for none
	CertReq  bool   `json:"cert_req"`   //
	Imprint  string `json:"imprint"`    // SHA-256 of data
	Serial   string `json:"serial_hex"` // of the token
	GenTime  string `json:"gen_time"`
	Request  string `json:"request_sha256"` // of NAME.tsq
	Token    string `json:"token_sha256"`   // of NAME.tst
	Response string `json:"response_sha256"`
}

func (v *vector) path(kind string) string { return filepath.Join("testdata", v.Name+kind) }

func (v *vector) request(t testing.TB) *Request {
	r := &Request{Imprint: sha256.Sum256([]byte(v.Data)), CertReq: v.CertReq}
	if v.Nonce != "" {
		r.Nonce = new(big.Int).SetBytes(must.Get(hex.DecodeString(v.Nonce))(t))
		if v.Negative {
			r.Nonce.Neg(r.Nonce)
		}
	}
	if v.Policy != "" {
		r.Policy = must.Get(x509.ParseOID(v.Policy))(t)
	}
	return r
}

// loadVectors fails if there are no vectors: otherwise a test would pass without checking anything.
func loadVectors(t testing.TB) []*vector {
	t.Helper()
	data := must.Get(os.ReadFile(vectorsFile))(t)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var vectors []*vector
	must.Do(t, d.Decode(&vectors))
	if len(vectors) == 0 {
		t.Fatalf("%s holds no vectors", vectorsFile)
	}
	return vectors
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestGoldenVectors(t *testing.T) {
	mock := NewMock()
	vectors := loadVectors(t)
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			r := v.request(t)
			files := map[string][]byte{".tsq": must.Get(r.Marshal())(t), ".tst": must.Get(mock.Issue(r))(t)}
			files[".tsr"] = must.Get(MarshalResponse(files[".tst"]))(t)
			token := must.Get(must.Get(Parse(files[".tst"]))(t).Verify(r.Imprint, Options{
				Roots: mock.Certificates()[1:], Intermediates: mock.Certificates()[:1], Nonce: r.Nonce, UnsafeAllowMock: true,
			}))(t)
			want := *v
			want.Imprint, want.Serial, want.GenTime = hex.EncodeToString(r.Imprint[:]), token.Serial.Text(16), token.GenTime.Format(time.RFC3339Nano)
			want.Request, want.Token, want.Response = digest(files[".tsq"]), digest(files[".tst"]), digest(files[".tsr"])
			if *update {
				*v = want
			}
			if diff := cmp.Diff(*v, want); diff != "" {
				t.Errorf("manifest differs (-committed +made):\n%s", diff)
			}
			for kind, made := range files {
				if *update {
					must.Do(t, os.WriteFile(v.path(kind), made, 0o644))
				}
				if committed := must.Get(os.ReadFile(v.path(kind)))(t); !bytes.Equal(committed, made) {
					t.Errorf("%s differs from what the mock makes", v.path(kind))
				}
			}
			checkVectorByHand(t, v, r)
		})
	}
	if *update && !t.Failed() {
		data := must.Get(json.MarshalIndent(vectors, "", "\t"))(t)
		must.Do(t, os.WriteFile(vectorsFile, append(data, '\n'), 0o644))
	}
}

// checkVectorByHand computes the documented values again, without the mock's code.
func checkVectorByHand(t *testing.T, v *vector, r *Request) {
	t.Helper()
	imprint := sha256.Sum256([]byte(v.Data))
	input := imprint[:]
	if r.Nonce != nil {
		input = append(input, new(big.Int).Abs(r.Nonce).Bytes()...)
	}
	sum := sha256.Sum256(input)
	if want := new(big.Int).SetUint64(binary.BigEndian.Uint64(sum[:8])); v.Serial != want.Text(16) {
		t.Errorf("serial %s, want %x", v.Serial, want)
	}
	must.Equal(t, v.GenTime, "2026-01-01T00:00:00Z")
}

func TestMockIsRefused(t *testing.T) {
	mock := NewMock()
	root := mock.Certificates()[1]
	token := must.Get(mock.Issue(&Request{Imprint: testImprint, CertReq: true}))(t)
	otherRoot, otherKey := authorityCA(t, "ca", nil, nil)
	rootKey := mockKey(mockRootKeyWORTHLESS)
	key := mockKey(mockKeyWORTHLESS)
	ownLeaf := issueTest(t, leaf(), testKey("leaf").Public(), root, rootKey)
	ownCertificate := issueTest(t, leaf(), key.Public(), otherRoot, otherKey)

	for _, test := range []struct {
		name   string
		token  []byte
		opts   Options
		want   error // without UnsafeAllowMock
		unsafe error // with it
	}{
		{"its root listed", token, Options{Roots: []*x509.Certificate{root}}, ErrMock, nil},
		{"its certificate listed", token, Options{Roots: mock.Certificates()[:1]}, ErrMock, nil},
		{"not listed", token, Options{Roots: []*x509.Certificate{testRoot(t)}}, ErrMock, ErrUntrusted},
		{"another authority under its root", draftBy(ownLeaf, testKey("leaf")).build(t), Options{Roots: []*x509.Certificate{root}}, ErrMock, nil},
		{"its key under another root", draftBy(ownCertificate, key).build(t), Options{Roots: []*x509.Certificate{otherRoot}}, ErrMock, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := verifyToken(test.token, test.opts)
			checkError(t, err, test.want)
			test.opts.UnsafeAllowMock = true
			_, err = verifyToken(test.token, test.opts)
			checkError(t, err, test.unsafe)
		})
	}
}

func TestMockConstants(t *testing.T) {
	certificates := NewMock().Certificates()
	if len(certificates) != 2 {
		t.Fatalf("%d certificates", len(certificates))
	}
	for i, want := range []struct{ scalar, keyDigest string }{
		{mockKeyWORTHLESS, mockKeyDigest}, {mockRootKeyWORTHLESS, mockRootKeyDigest},
	} {
		raw := must.Get(hex.DecodeString(want.scalar))(t)
		key := must.Get(ecdsa.ParseRawPrivateKey(elliptic.P256(), raw))(t)
		if !key.PublicKey.Equal(certificates[i].PublicKey) {
			t.Errorf("certificate %d does not have its public key", i)
		}
		if digest(certificates[i].RawSubjectPublicKeyInfo) != want.keyDigest {
			t.Errorf("verifiers would not recognise certificate %d as the mock's", i)
		}
	}
}

func TestSameRequestSameBytes(t *testing.T) {
	r := &Request{Imprint: testImprint, Nonce: big.NewInt(7), CertReq: true}
	first := must.Get(NewMock().Issue(r))(t)
	if !bytes.Equal(first, must.Get(NewMock().Issue(r))(t)) {
		t.Error("the same request gave other bytes")
	}
	r.Nonce = big.NewInt(8)
	if bytes.Equal(first, must.Get(NewMock().Issue(r))(t)) {
		t.Error("another nonce gave the same bytes")
	}
}

// publicTokens are tokens of public authorities. Their roots are identified by the hashes that the authorities publish,
// not by what the tokens contain.
var publicTokens = []struct {
	file, imprint string
	genTime       string
	policy        string
	anchor        string // SHA-256 of the certificate that the path must end in
	embedded      int    // certificates in the token
}{
	{"globalsign.token", "8326f4709d401dfabfa78302fb1cdea0f18048a44040c212bd8e28da6bc651c7", "2021-09-17T14:09:10Z", "1.3.6.1.4.1.4146.2.3",
		"cbb522d7b7f127ad6a0113865bdf1cd4102e7d0759af635a7cf4720dc963c53b", 4},
	{"globalsign-without-certificate.token", "8326f4709d401dfabfa78302fb1cdea0f18048a44040c212bd8e28da6bc651c7", "2021-09-17T14:09:10Z", "1.3.6.1.4.1.4146.2.3",
		"cbb522d7b7f127ad6a0113865bdf1cd4102e7d0759af635a7cf4720dc963c53b", 0},
	{"microsoft.token", "24b787b4819f46f90027e72c1e944e59ebbb4d4c758e056aa309f0527475a4a2", "2024-06-21T07:12:05.884Z", "1.3.6.1.4.1.601.10.3.1",
		"36e731cfa9bfd69dafb643809f6dec500902f7197daeaad86ea0159a2268a2b8", 2}, // the hash of the CA's certificate: the token does not contain its root
}

// TestPublicAuthorities verifies tokens of public authorities: some contain their certificates, some do not, and of some
// the root is missing. A token whose signer's certificate is missing cannot be checked, but is not refuted.
func TestPublicAuthorities(t *testing.T) {
	pool := publicCertificates(t)
	for _, test := range publicTokens {
		t.Run(test.file, func(t *testing.T) {
			u := must.Get(Parse(publicFile(t, test.file)))(t)
			info := u.UnverifiedInfo()
			must.Equal(t, len(info.Certificates), test.embedded)
			if got := hex.EncodeToString(info.Imprint[:]); got != test.imprint {
				t.Fatalf("imprint %s", got)
			}
			anchor := pool[test.anchor]
			if anchor == nil {
				t.Fatal("no token contains the anchor")
			}
			var others []*x509.Certificate
			for _, c := range pool {
				others = append(others, c)
			}
			token, err := u.Verify(info.Imprint, Options{Roots: []*x509.Certificate{anchor}, Intermediates: others})
			if err != nil {
				t.Fatal(err)
			}
			if got := token.GenTime.Format(time.RFC3339Nano); got != test.genTime || token.Policy.String() != test.policy {
				t.Errorf("genTime %s, policy %s", got, token.Policy)
			}
			must.Fail(t, ErrImprint)(u.Verify(sha256.Sum256(nil), Options{Roots: []*x509.Certificate{anchor}, Intermediates: others}))
			_, err = u.Verify(info.Imprint, Options{Roots: []*x509.Certificate{anchor}})
			if (err == nil) != (test.embedded > 0) || err != nil && !errors.Is(err, ErrNoCertificate) {
				t.Errorf("with the embedded certificates alone: %v", err)
			}
		})
	}
}

// publicCertificates returns the certificates of all tokens, by their SHA-256.
func publicCertificates(t *testing.T) map[string]*x509.Certificate {
	t.Helper()
	pool := map[string]*x509.Certificate{}
	for _, test := range publicTokens {
		u := must.Get(Parse(publicFile(t, test.file)))(t)
		for _, c := range u.UnverifiedInfo().Certificates {
			hash := sha256.Sum256(c.Raw)
			pool[hex.EncodeToString(hash[:])] = c
		}
	}
	return pool
}

// TestPublicAuthorityWithAnotherHash reads a response whose token stamps a SHA-512 imprint and names its signer by
// SHA-1. The token verifies over that imprint, and is refused as a token over a record.
func TestPublicAuthorityWithAnotherHash(t *testing.T) {
	token := must.Get(ParseResponse(publicFile(t, "freetsa.response")))(t)
	u := must.Get(Parse(token))(t)
	info := u.UnverifiedInfo()
	if got := info.GenTime.Format(time.RFC3339); got != "2024-04-09T05:29:39Z" || len(info.Certificates) != 2 {
		t.Errorf("genTime %s, %d certificates", got, len(info.Certificates))
	}
	root := info.Certificates[1]
	if hash := sha256.Sum256(root.Raw); !bytes.HasPrefix(hash[:], []byte{0xa6, 0x37, 0x9e, 0x7c}) {
		t.Fatalf("the root is %x", hash)
	}
	must.Fail(t, ErrImprint)(u.Verify(sha256.Sum256([]byte("test")), Options{Roots: []*x509.Certificate{root}}))
}

func publicFile(t *testing.T, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join("testdata", "public", name)))(t)
}
