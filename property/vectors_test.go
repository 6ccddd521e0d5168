package property

import (
	"bytes"
	"crypto/sha3"
	"encoding/base64"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/must"
)

var update = flag.Bool("update", false, "write testdata/vectors/properties anew, after the format was changed on purpose")

var manifestFile = filepath.Join("..", "testdata", "vectors", "properties", "manifest.json")

// A vector is a proof, and whether it shows its statement.
type vector struct {
	Name       string         `json:"name"`
	Statement  string         `json:"statement"` // canonical JSON
	Opening    *vectorOpening `json:"opening,omitzero"`
	Commitment string         `json:"commitment"`
	Proof      string         `json:"proof"` // base64
	Refused    bool           `json:"refused,omitzero"`
}

type vectorOpening struct {
	Value string `json:"value"`
	Salt  string `json:"salt"` // base64
}

// TestVectors holds the proofs that other programs check, too.
func TestVectors(t *testing.T) {
	if *update {
		writeVectors(t)
	}
	doc := must.Get(os.ReadFile(manifestFile))(t)
	var manifest struct {
		Format     string   `json:"format"`
		Properties []vector `json:"properties"`
	}
	must.Do(t, json.Unmarshal(doc, &manifest, json.RejectUnknownMembers(true)))
	for _, v := range manifest.Properties {
		if err := v.verify(t); (err != nil) != v.Refused {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

func (v *vector) verify(t *testing.T) error {
	t.Helper()
	s, err := ParseStatement([]byte(v.Statement))
	if err != nil {
		return err
	}
	c, err := ParseCommitment(v.Commitment)
	if err != nil {
		return err
	}
	if v.Opening != nil {
		salt := must.Get(base64.StdEncoding.DecodeString(v.Opening.Salt))(t)
		opened, err := Commit(s.Kind, s.Members[0].Pointer, Opening{jsontext.Value(v.Opening.Value), [SaltSize]byte(salt)})
		if err != nil {
			return err
		}
		if !opened.Equal(c) {
			return errors.New("the opening is that of another commitment")
		}
	}
	proof := must.Get(base64.StdEncoding.DecodeString(v.Proof))(t)
	return Verify(s, c, proof)
}

// known is the same randomness at every run. Proofs that matter take theirs from crypto/rand.
func known() io.Reader { s := sha3.NewSHAKE256(); s.Write([]byte("known")); return s }

func makeVector(t *testing.T, name string, s *Statement, value string) vector {
	t.Helper()
	opening, commitment := open(t, s, value)
	proof, err := Prove(s, opening, known())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	doc := must.Get(s.Bytes())(t)
	return vector{Name: name, Statement: string(doc), Opening: &vectorOpening{string(opening.Value), base64.StdEncoding.EncodeToString(opening.Salt[:])}, Commitment: commitment.String(),
		Proof: base64.StdEncoding.EncodeToString(proof)}
}

func writeVectors(t *testing.T) {
	t.Helper()
	ageRule := about(AgeAtLeast, Date, func(s *Statement) { s.Years, s.At = 18, "2024-02-29" })
	audience := inRange(Integer, "18", "150")
	audience.Audience = "an auditor"
	honest := []vector{
		makeVector(t, "property: range", inRange(Integer, "0", "5000"), "5000"),
		makeVector(t, "property: range for an audience", audience, "42"),
		makeVector(t, "property: range of eight values", inRange(Integer, "-3", "4"), "0"),
		makeVector(t, "property: range below zero", inRange(Integer, "-9007199254740991", "-1"), "-3"),
		makeVector(t, "property: range of decimals", inRange("decimal:2", "0.01", "99.99"), "12.3"),
		makeVector(t, "property: range of dates", inRange(Date, `"0000-01-01"`, `"9999-12-31"`), `"1969-12-31"`),
		makeVector(t, "property: range of times", inRange(Time, `"1969-12-31T23:59:59.5Z"`, `"2026-01-31T16:15:00.123Z"`), `"1970-01-01T00:00:00Z"`),
		makeVector(t, "property: in, numbers", inSet(In, Integer, "-1", "0", "7"), "7"),
		makeVector(t, "property: in, texts", inSet(In, Text, `"quote"`, `"refund"`), `"quote"`),
		makeVector(t, "property: in, values of any type", inSet(In, Text, `"x"`, `{"a":[1,null]}`, "1.5"), `{"a":[1,null]}`),
		makeVector(t, "property: not in", inSet(NotIn, Text, `"delete"`, `"pay"`, `"sign"`), `"quote"`),
		makeVector(t, "property: age", ageRule, `"2006-02-28"`),
	}
	var all []vector
	for _, v := range honest {
		all = append(all, v)
		if len(v.Proof) < 1200 { // the second verifier takes long for long ones
			all = append(all, v.lies(t)...)
		}
	}
	doc := must.Get(json.Marshal(map[string]any{"format": "jurat/vectors/v1", "properties": all}, json.Deterministic(true), jsontext.Multiline(true), jsontext.WithIndent(" ")))(t)
	must.Do(t, os.MkdirAll(filepath.Dir(manifestFile), 0o755))
	must.Do(t, os.WriteFile(manifestFile, append(doc, '\n'), 0o644))
}

// lies returns changes of a vector that prove nothing.
func (v vector) lies(t *testing.T) (list []vector) {
	t.Helper()
	lie := func(what string, change func(*vector)) {
		changed := v
		changed.Name, changed.Refused, changed.Opening = v.Name+", "+what, true, nil
		change(&changed)
		list = append(list, changed)
	}
	proof := must.Get(base64.StdEncoding.DecodeString(v.Proof))(t)
	changed := func(change func([]byte) []byte) func(*vector) {
		return func(v *vector) { v.Proof = base64.StdEncoding.EncodeToString(change(bytes.Clone(proof))) }
	}
	lie("its first byte changed", changed(func(b []byte) []byte { b[0] ^= 1; return b }))
	lie("its last byte changed", changed(func(b []byte) []byte { b[len(b)-1] ^= 1; return b }))
	lie("a byte longer", changed(func(b []byte) []byte { return append(b, 0) }))
	lie("a byte shorter", changed(func(b []byte) []byte { return b[:len(b)-1] }))
	lie("its last number too large", changed(func(b []byte) []byte { return append(b[:len(b)-32], bytes.Repeat([]byte{0xff}, 32)...) }))
	lie("of another record", func(v *vector) { v.Statement = strings.Replace(v.Statement, "aa\"", "ab\"", 1) })
	lie("of another pointer", func(v *vector) { v.Statement = strings.Replace(v.Statement, "/metadata/amount", "/metadata/amounu", 1) })
	lie("for another audience", func(v *vector) {
		if strings.Contains(v.Statement, "auditor") {
			v.Statement = strings.Replace(v.Statement, "auditor", "auditos", 1)
			return
		}
		v.Statement = `{"audience":"me",` + v.Statement[1:]
		if strings.Contains(v.Statement, `"at":`) { // members are sorted
			v.Statement = strings.Replace(v.Statement, `{"audience":"me","at":"2024-02-29",`, `{"at":"2024-02-29","audience":"me",`, 1)
		}
	})
	lie("of another commitment", func(v *vector) { v.Commitment = Commitment{H()}.String() })
	lie("of a form that is unknown", func(v *vector) { v.Statement = strings.Replace(v.Statement, `"form":"`, `"form":"un`, 1) })
	return list
}
