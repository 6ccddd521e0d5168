package evidence

import (
	"crypto"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"jurat/internal/must"
)

// All records of these tests have this time, this record id and these salts.
var testTime = time.Date(2026, 1, 31, 16, 15, 0, 0, time.UTC)

const (
	testID      = "019c14d6-13a0-7000-8000-000000000001"
	testPayload = `{"agent_id":"a","model":"m","model_version":"m-1","parameters":{},"prompt":"p","request_id":"r",` +
		`"response":"s","timestamp":"2026-01-31T16:15:00Z"}`
)

// keyFiles are private keys that are published with the source. A signature by them proves nothing.
var keyFiles = map[Algorithm]string{
	ES256:   "worthless-test-key-es256.pem",
	RS256:   "worthless-test-key-rs256.pem",
	Ed25519: "worthless-test-key-ed25519.pem",
	MLDSA65: "worthless-test-key-mldsa65.pem", // the example of RFC 9881, appendix C.1.2
}

func testKey(t testing.TB, algorithm Algorithm) crypto.Signer {
	t.Helper()
	file := readFile(t, filepath.Join("testdata", "keys", keyFiles[algorithm]))
	block, _ := pem.Decode(file)
	if block == nil {
		t.Fatalf("the key for %s is not PEM", algorithm)
	}
	return must.Get(ParsePrivateKey(block.Bytes))(t)
}

func testSigner(t testing.TB, algorithm Algorithm) Signer {
	t.Helper()
	return must.Get(NewSigner(testKey(t, algorithm), nil))(t)
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(path))(t)
}

// counter is a predictable source of salts: 0, 1, 2, …
type counter byte

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(*c)
		*c++
	}
	return len(p), nil
}

// seal makes a record of a payload, signed with the Ed25519 key unless the caller gives other signers.
func seal(t testing.TB, doc string, apart []string, signers ...Signer) *Record {
	t.Helper()
	if signers == nil {
		signers = []Signer{testSigner(t, Ed25519)}
	}
	draft := must.Get(ParseDraft([]byte(doc)))(t)
	return must.Get(draft.Seal(Sealing{Signers: signers, Time: testTime, RecordID: testID, Apart: apart, Random: new(counter)}))(t)
}

func marshalRecord(t testing.TB, r *Record) []byte {
	t.Helper()
	return must.Get(r.Marshal())(t)
}

// wantField checks that err is a FieldError about this member.
func wantField(t testing.TB, err error, field string) {
	t.Helper()
	var wrong *FieldError
	if !errors.As(err, &wrong) || wrong.Field != field {
		t.Errorf("error is %v, want a FieldError about %q", err, field)
	}
}
