package verify_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/property"
	"jurat/verify"
)

// FuzzCarriedProof puts a foreign statement and a foreign proof on a genuine record. Whatever they are, nothing else that the file proves changes; a
// statement that counts as proved is true of the value, which the fuzz target knows; and one is refuted only if it says something of this very
// record, in a form that can be proved.
func FuzzCarriedProof(f *testing.F) {
	p := newPurse(f, "12.5", "30")
	made := p.prove(p.rangeOf(0, "0", "50"), 0)
	f.Add([]byte(made.Statement), made.Proof)
	f.Add([]byte(made.Statement), made.Proof[:40])
	set := p.statement(property.In, 0)
	set.Kind, set.Set = property.Text, []jsontext.Value{jsontext.Value(`"quote"`), jsontext.Value(`"refund"`)}
	set.Members[0].Pointer = "/metadata/action"
	in := p.prove(set, 0)
	f.Add([]byte(in.Statement), in.Proof)
	f.Add([]byte(`{"form":"is_true"}`), []byte{0})
	o := p.Options(f)
	plain := p.file(nil)
	want := verify.Bundle(plain, o)
	values := map[string]string{"/metadata/amount": "12.5", "/metadata/action": `"quote"`}
	f.Fuzz(func(t *testing.T, statement, proof []byte) {
		form, err := evidence.Canonical(statement)
		if err != nil || len(proof) == 0 {
			t.Skip()
		}
		first, b := *plain.Records[0], *plain
		first.Properties = []evidence.PropertyProof{{Proof: proof, Statement: form}}
		b.Records = append([]*evidence.Record{&first}, plain.Records[1:]...)
		file, err := b.Marshal()
		if err != nil {
			t.Skip()
		}
		read, err := evidence.ParseBundle(file)
		if err != nil {
			return // what the format does not allow is no bundle
		}
		r := verify.Bundle(read, o)
		for _, g := range want.Guarantees {
			if have := r.Of(g.Guarantee); have.Status != g.Status && g.Guarantee != verify.Property {
				t.Errorf("%s: %s, and without the proof %s", g.Guarantee, have.Status, g.Status)
			}
		}
		s, err := property.ParseStatement(form)
		about := err == nil && len(s.Members) > 0 && s.Members[0].Record == p.records[0].Digest.String()
		switch found := r.Of(verify.Property); {
		case found.Status == verify.Refuted && (err != nil || found.Rule != "proof"):
			t.Errorf("refuted by %q: %v", found.Rule, err)
		case found.Status != verify.Proved:
		case !about || len(s.Members) != 1:
			t.Errorf("%s is proved", form)
		default:
			value := values[s.Members[0].Pointer]
			if isTrue, err := s.Allows(jsontext.Value(value)); err != nil || !isTrue {
				t.Errorf("%s is proved of %s: %v", form, value, err)
			}
		}
	})
}
