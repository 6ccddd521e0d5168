package verify_test

import (
	"jurat/verify"
	"jurat/verify/trust"
	"testing"
)

// What several tests need.

func reread(t *testing.T, trusted *trust.Trust) *trust.Trust {
	t.Helper()
	doc, err := trusted.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if trusted, err = trust.Parse(doc); err != nil {
		t.Fatal(err)
	}
	return trusted
}

func verified(t *testing.T, file []byte, o verify.Options) *verify.Report {
	t.Helper()
	report, err := verify.File(file, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}
