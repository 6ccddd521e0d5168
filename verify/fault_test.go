package verify_test

import (
	"crypto/x509"
	"errors"
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/timestamp"
	"jurat/verify"
)

// TestFaultIsAnAnswer makes the program fail on a file, in the caller's goroutine and in others. The program goes on,
// and nothing is proved or refuted.
func TestFaultIsAnAnswer(t *testing.T) {
	h := jurattest.New(t)
	record := h.Seal(t, output("a"))
	bundle := h.Bundle(t, record, h.Seal(t, output("b")))
	asFile := func(marshal func() ([]byte, error)) []byte { return must.Get(marshal())(t) }
	files := map[string][]byte{"record": asFile(record.Marshal), "bundle": asFile(bundle.Marshal)}
	for name, fail := range map[string]func(o *verify.Options){
		"where a record is examined": func(o *verify.Options) { o.Memory = new(timestamp.Memory) }, // its maps are nil
		"before":                     func(o *verify.Options) { o.CRLs = []*x509.RevocationList{nil} },
		"where a record is shown":    func(o *verify.Options) { o.Each = func(*evidence.Record) { panic("no") } },
	} {
		o := h.Options(t)
		fail(&o)
		for kind, file := range files {
			if r, err := verify.File(file, o); !errors.Is(err, verify.ErrFault) || r != nil {
				t.Errorf("%s, file of a %s: %+v, %v", name, kind, r, err)
			}
		}
		for _, r := range []*verify.Report{verify.Record(record, o), verify.Bundle(bundle, o)} {
			if r.Outcome != verify.NotProved || r.Of(verify.Content).Status != verify.NotProved || r.Of(verify.Content).Reason == "" {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if f := verify.Sealed(record, o); f.Status != verify.NotProved && name != "where a record is shown" {
			t.Errorf("%s: sealed: %+v", name, f)
		}
	}
}
