package verify_test

import (
	"bytes"
	"fmt"
	"testing"

	"jurat/evidence"
	"jurat/internal/cbor"
	"jurat/jurattest"
	"jurat/scitt"
	"jurat/verify"
)

// TestSecondVerifierOnStatements compares the two verifiers on statements of records and of others, with receipts of inclusion and of consistency, and with single bytes changed.
func TestSecondVerifierOnStatements(t *testing.T) {
	var files []given
	take := func(name string, doc []byte, o verify.Options) {
		if _, err := verify.File(doc, o); err != nil {
			return // no file of this format: TestStatementsThatAreNone
		}
		files = append(files, given{fmt.Sprintf("%s-%d", name, len(files)), doc, trustOf(t, o), o, nil})
	}
	h := jurattest.NewForStrangers(t)
	r, included, consistent := grown(t, h)
	own := statementBy(t, h, r, evidence.RoleOperator, "operator", scitt.Issuer(evidence.RoleOperator, "operator"), included, consistent)
	o := h.Options(t)
	take("own", own, o)
	take("own-alone", statementBy(t, h, r, evidence.RoleOperator, "operator", scitt.Issuer(evidence.RoleOperator, "operator"), consistent), o)
	take("own-other-issuer", statementBy(t, h, r, evidence.RoleOperator, "operator", "urn:jurat:agent:a", included), o)
	take("own-actor", statementBy(t, h, r, evidence.RoleAgent, "a", scitt.Issuer(evidence.RoleAgent, "a"), included), h.Options(t))
	s := newStranger(t)
	others := verify.Options{Trust: s.known(t)}
	foreign := s.statement(t, s.receipt(t, nil))
	take("others", foreign, others)
	take("others-without", s.statement(t), others)
	take("others-unknown", foreign, o)
	for _, header := range []cbor.Map{{{Key: int64(33), Value: certificate(t, s.issuer)}}, {{Key: int64(33), Value: []any{certificate(t, s.service), certificate(t, s.issuer)}}}, {{Key: int64(33), Value: []byte("DER")}}} {
		certified := *s
		certified.header = append(certified.header[:len(certified.header):len(certified.header)], header...)
		take("others-certified", certified.statement(t), others)
		take("others-certified-unknown", certified.statement(t), o)
	}
	for _, pair := range unreadPairs {
		take("own-with-what-is-not-read", withPair(t, own, pair), o)
	}
	take("own-cut", own[:len(own)-1], o)
	stamps := bytes.Index(own, []byte(`"timestamps"`)) // to the end of the record: which damaged certificates in tokens can be read, libraries decide
	for i := range 60 {                                // every so many bytes, each bit in its turn
		for name, doc := range map[string][]byte{"own": own, "others": foreign} {
			at, with := (i*len(doc)/60+i)%len(doc), others
			if name == "own" {
				if with = o; at > stamps && at < stamps+bytes.IndexByte(own[stamps:], '\n') {
					continue
				}
			}
			changed := bytes.Clone(doc)
			changed[at] ^= 1 << (i % 8)
			take(name+"-changed", changed, with)
		}
	}
	if len(files) < 70 {
		t.Errorf("only %d files", len(files))
	}
	compareOver(t, files)
}
