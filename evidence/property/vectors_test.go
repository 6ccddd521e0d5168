package property

import (
	"bytes"
	"crypto/rand"
	"crypto/sha3"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/test/must"
)

var update = flag.Bool("update", false, "write testdata/vectors/properties anew, after the format was changed on purpose")

var manifestFile = filepath.Join("..", "..", "testdata", "vectors", "properties", "manifest.json")

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
		err := v.verify(t)
		must.Hold(t, (err != nil) == v.Refused, "%s: %v", v.Name, err)
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
	must.Need(t, err == nil, "%s: %v", name, err)
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
	lie("of another commitment", func(v *vector) { v.Commitment = Commitment{h}.String() })
	lie("of a form that is unknown", func(v *vector) { v.Statement = strings.Replace(v.Statement, `"form":"`, `"form":"un`, 1) })
	return list
}

// A sample is a statement with a proof that holds.
type sample struct {
	name       string
	statement  *Statement
	commitment Commitment
	proof      []byte
	points     int // with which the proof begins
}

func samples(t testing.TB) []sample {
	t.Helper()
	made := []sample{}
	add := func(name string, s *Statement, value string, points int) {
		t.Helper()
		proof, commitment := prove(t, s, value)
		made = append(made, sample{name, s, commitment, proof, points})
	}
	add("0 to 3", inRange(Integer, "0", "3"), "2", 2)
	add("0 to 3, another value", inRange(Integer, "0", "3"), "1", 2)
	add("7 or 8", inRange(Integer, "7", "8"), "8", 1)
	add("one of two", inSet(In, Text, `"refund"`, `"quote"`), `"quote"`, 1)
	add("one of two, the other", inSet(In, Text, `"refund"`, `"quote"`), `"refund"`, 1)
	add("neither of two", inSet(NotIn, Text, `"refund"`, `"quote"`), `"pay"`, 1)
	return made
}

// A forger changes proofs at random, as somebody does who knows their form.
type forger struct {
	*mathrand.Rand
	all []sample
}

func (f *forger) scalar() scalar {
	var wide [48]byte
	for i := range wide {
		wide[i] = byte(f.IntN(256))
	}
	return reduceScalar(wide)
}

func (f *forger) point() point { return mulGenerator(f.scalar()) }

// scalars returns the part of a proof that has numbers: the challenge and the responses.
func (s *sample) scalars(proof []byte) []byte { return proof[s.points*pointSize:] }

func (f *forger) pickScalar(s *sample, proof []byte) []byte {
	all := s.scalars(proof)
	i := f.IntN(len(all) / scalarSize)
	return all[i*scalarSize : (i+1)*scalarSize]
}

func (f *forger) pickPoint(s *sample, proof []byte) []byte {
	i := f.IntN(s.points)
	return proof[i*pointSize : (i+1)*pointSize]
}

func plus(b []byte, d scalar) {
	s, err := parseScalar(b)
	if err == nil {
		s = s.Add(d)
		copy(b, s[:])
	}
}

// forge changes a copy of the proof of a sample. It returns what it did, and another statement or another commitment where it changed these.
func (f *forger) forge(s *sample) (how string, statement *Statement, commitment Commitment, proof []byte) {
	statement, commitment, proof = s.statement, s.commitment, bytes.Clone(s.proof)
	points := s.points > 0
	switch way := f.IntN(14); {
	case way == 0:
		for i := range proof {
			proof[i] = byte(f.IntN(256))
		}
		return "random bytes", statement, commitment, proof
	case way == 1:
		for i := range s.points {
			copy(proof[i*pointSize:], f.point().Bytes())
		}
		all := s.scalars(proof)
		for i := 0; i < len(all); i += scalarSize {
			one := f.scalar()
			copy(all[i:], one[:])
		}
		return "random points and numbers", statement, commitment, proof
	case way == 2:
		plus(f.pickScalar(s, proof), f.scalar())
		return "a number changed", statement, commitment, proof
	case way == 3: // all responses as if the challenge were larger
		d := smallScalar(uint64(1 + f.IntN(3)))
		all := s.scalars(proof)
		for i := 0; i < len(all); i += scalarSize {
			plus(all[i:i+scalarSize], d)
		}
		return "all numbers moved", statement, commitment, proof
	case way == 4:
		plus(s.scalars(proof)[:scalarSize], smallScalar(uint64(1+f.IntN(1000))))
		return "the challenge moved", statement, commitment, proof
	case way == 5 && points:
		b := f.pickPoint(s, proof)
		p, err := parsePoint(b)
		if err != nil {
			panic(err)
		}
		copy(b, p.Add(generator()).Bytes())
		return "a digit one more", statement, commitment, proof
	case way == 6 && points:
		b := f.pickPoint(s, proof)
		b[0] ^= 1
		return "a point negated", statement, commitment, proof
	case way == 7 && s.points > 1:
		a, b := bytes.Clone(f.pickPoint(s, proof)), f.pickPoint(s, proof)
		copy(b, a)
		return "a point twice", statement, commitment, proof
	case way == 8:
		a, b := bytes.Clone(f.pickScalar(s, proof)), f.pickScalar(s, proof)
		copy(b, a)
		return "a number twice", statement, commitment, proof
	case way == 9:
		other := &f.all[f.IntN(len(f.all))]
		return "another's proof", statement, commitment, bytes.Clone(other.proof)
	case way == 10:
		other := &f.all[f.IntN(len(f.all))]
		commitment = other.commitment
		return "another's values", statement, commitment, proof
	case way == 11:
		changed := *statement
		changed.Audience = fmt.Sprint("auditor ", f.IntN(100))
		return "for another audience", &changed, commitment, proof
	case way == 12:
		if f.IntN(2) == 0 {
			return "cut", statement, commitment, proof[:f.IntN(len(proof))]
		}
		return "longer", statement, commitment, append(proof, proof[:1+f.IntN(pointSize)]...)
	}
	// A number that is written as itself plus the order of the group, where that fits, or as the order itself.
	b := f.pickScalar(s, proof)
	for i := range b {
		b[i] = 0xff
	}
	return "a number above the order", statement, commitment, proof
}

// TestRandomForgeries: of random forgeries, made by somebody who knows the form of proofs, none holds. The short form tries a fifth of them.
func TestRandomForgeries(t *testing.T) {
	n := 10_000
	if os.Getenv("JURAT_TEST_LONG") == "" {
		n = 2_000
	}
	f := &forger{mathrand.New(mathrand.NewPCG(15, 1)), samples(t)}
	ways := map[string]int{}
	for i := 0; i < n; {
		s := &f.all[f.IntN(len(f.all))]
		how, statement, commitment, proof := f.forge(s)
		if statement == s.statement && bytes.Equal(proof, s.proof) && commitment == s.commitment {
			continue // nothing was changed
		}
		i++
		ways[how]++
		err := Verify(statement, commitment, proof)
		must.Need(t, errors.Is(err, ErrProof), "forgery %d of %q, %s: %v", i, s.name, how, err)
	}
	must.Hold(t, len(ways) == 15, "%d ways: %v", len(ways), ways)
	for _, s := range f.all {
		must.Want(t, Verify(s.statement, s.commitment, s.proof), nil, s.name)
	}
}

// TestEveryByteOfEveryForm: a bit of each byte of the proof of each form changed, in long tests all of them.
func TestEveryByteOfEveryForm(t *testing.T) {
	long := os.Getenv("JURAT_TEST_LONG") != ""
	for _, s := range samples(t) {
		for i := range s.proof {
			for bit := range 8 {
				if !long && bit != i%8 {
					continue
				}
				changed := bytes.Clone(s.proof)
				changed[i] ^= 1 << bit
				err := Verify(s.statement, s.commitment, changed)
				must.Need(t, errors.Is(err, ErrProof), "%s, byte %d, bit %d: %v", s.name, i, bit, err)
			}
		}
	}
}

// TestRangesBelow64: in each range from 0 to less than 64, the values at its ends and a random one are proved, and those beside it are not. Long tests
// take every value from -1 to 64.
func TestRangesBelow64(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(15, 2))
	long := os.Getenv("JURAT_TEST_LONG") != ""
	for hi := 1; hi < 64; hi++ {
		s := inRange(Integer, "0", fmt.Sprint(hi))
		values := []int{-1, 0, hi, hi + 1, random.IntN(hi + 1)}
		if long {
			values = nil
			for v := -1; v <= 64; v++ {
				values = append(values, v)
			}
		}
		for _, v := range values {
			opening, commitment := open(t, s, fmt.Sprint(v))
			proof, err := Prove(s, opening, rand.Reader)
			inside := v >= 0 && v <= hi
			must.Need(t, inside == (err == nil) && (inside || errors.Is(err, ErrFalse)), "%d in 0 to %d: %v", v, hi, err)
			must.Need(t, err != nil || Verify(s, commitment, proof) == nil, "%d in 0 to %d: the proof does not hold", v, hi)
		}
	}
}
