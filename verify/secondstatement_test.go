package verify_test

import (
	"bytes"
	"fmt"
	"testing"

	"jurat/evidence"
	"jurat/internal/cbor"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/scitt"
	"jurat/verify"
)

// TestSecondVerifierOnStatements compares the two verifiers on statements of records, with receipts, certificates and what is not read, and with single bytes changed.
func TestSecondVerifierOnStatements(t *testing.T) {
	var files []given
	take := func(name string, doc []byte, o verify.Options) {
		if _, err := verify.File(doc, o); err != nil {
			return // no file of this format: TestStatementsThatAreNone
		}
		files = append(files, given{fmt.Sprintf("%s-%d", name, len(files)), doc, trustOf(t, o), o, nil})
	}
	h := jurattest.NewForStrangers(t)
	r, own, o := stated(t, h, evidence.RoleOperator, "operator")
	included := must.Get(h.SignReceipt(r))(t)
	take("own", own, o)
	take("own-alone", statementBy(t, h, r, evidence.RoleOperator, "operator", scitt.Issuer(evidence.RoleOperator, "operator")), o)
	take("own-other-issuer", statementBy(t, h, r, evidence.RoleOperator, "operator", "urn:jurat:agent:a", included), o)
	take("own-actor", statementBy(t, h, r, evidence.RoleAgent, "a", scitt.Issuer(evidence.RoleAgent, "a"), included), h.Options(t))
	mine, other := worthless(t, "an operator"), worthless(t, "somebody else")
	for _, value := range []any{certificate(t, mine), certificate(t, other), []any{certificate(t, mine), certificate(t, other)}, []any{certificate(t, other), certificate(t, mine)}, []byte("DER")} {
		certified, known := exported(t, r, mine, o, cbor.Pair{Key: int64(33), Value: value})
		take("own-certified", certified, known)
		take("own-certified-unknown", certified, o)
	}
	for _, pair := range unreadPairs {
		take("own-with-what-is-not-read", withPair(t, own, pair), o)
	}
	take("own-cut", own[:len(own)-1], o)
	stamps := bytes.Index(own, []byte(`"timestamps"`)) // to the end of the record: which damaged certificates in tokens can be read, libraries decide
	for i := range 120 {                               // every so many bytes, each bit in its turn
		at := (i*len(own)/120 + i) % len(own)
		if at > stamps && at < stamps+bytes.IndexByte(own[stamps:], '\n') {
			continue
		}
		changed := bytes.Clone(own)
		changed[at] ^= 1 << (i % 8)
		take("own-changed", changed, o)
	}
	if len(files) < 70 {
		t.Errorf("only %d files", len(files))
	}
	compareOver(t, files)
}
