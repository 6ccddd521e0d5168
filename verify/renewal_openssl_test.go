package verify_test

import (
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

const rsaAuthority = `
[req]
distinguished_name = name
x509_extensions = purpose
prompt = no
[name]
CN = An RSA authority of the tests
[purpose]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
[tsa]
default_tsa = authority
[authority]
serial = serial
crypto_device = builtin
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
clock_precision_digits = 3
ess_cert_id_alg = sha256
`

// TestRSAOutlived: OpenSSL stamps a record with RSA-2048 and SHA-256. An authority on P-256 renews that, and renews
// its own renewal with SHA-512. Then the RSA key is lost. The first time must still be proved.
func TestRSAOutlived(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("openssl is not installed, and CI must run this test")
		}
		t.Skip("openssl is not installed; it is the RSA authority of this test")
	}
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	openssl := func(args ...string) {
		t.Helper()
		cmd := exec.Command("openssl", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("openssl %v: %v\n%s", args, err, out)
		}
	}
	write := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(file(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, o := standalone(t, output("a"))
	write("config", []byte(rsaAuthority))
	write("serial", []byte("01"))
	write("query.tsq", must[[]byte](t)((&timestamp.Request{Imprint: r.Imprint(), CertReq: true}).Marshal()))
	openssl("req", "-x509", "-newkey", "rsa:2048", "-sha256", "-nodes", "-days", "3650", "-config", "config", "-keyout", "key.pem", "-out", "root.pem")
	openssl("ts", "-reply", "-queryfile", "query.tsq", "-config", "config", "-section", "authority", "-inkey", "key.pem", "-signer", "root.pem", "-out", "response.tsr")
	token := evidence.Timestamp{Kind: evidence.RFC3161,
		Token: must[[]byte](t)(timestamp.ParseResponse(must[[]byte](t)(os.ReadFile(file("response.tsr")))))}
	stamped := must[*timestamp.Unverified](t)(timestamp.Parse(token.Token)).UnverifiedInfo().GenTime
	root, _ := pem.Decode(must[[]byte](t)(os.ReadFile(file("root.pem"))))

	after := func(days int) time.Time { return stamped.Add(time.Duration(days) * day) }
	second := newTSA(t, "P-256", on(50_000))
	renewal := second.rehash(t, second.cover(t, r, after(100), token), after(150), objects(r, token)...)
	o.Trust = trusting(t, o.Trust, second.trusted(trust.Independent, time.Time{}),
		trust.Authority{Name: "RSA-2048", Certificate: root.Bytes, Clock: trust.Independent, NotAfter: after(200)})
	o.At = after(300)
	for _, tt := range []struct {
		name   string
		stamps []evidence.Timestamp
		status verify.Status
		rule   string
	}{
		{"renewed", []evidence.Timestamp{token, renewal}, verify.Proved, ""},
		{"not renewed", []evidence.Timestamp{token}, verify.NotProved, "renewal"},
	} {
		r.Timestamps = tt.stamps
		report := verify.Record(r, o)
		got := report.Of(verify.Time)
		at, proved := report.TimeOf(r.Payload.RecordID)
		if got.Status != tt.status || got.Rule != tt.rule || proved && (!at.Time.Equal(stamped) || at.Authority != "RSA-2048") {
			t.Errorf("%s: %+v, %+v", tt.name, got, at)
		}
	}
}
