package sigma

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"testing"

	"github.com/go-json-experiment/json"
)

// A vector is one of the draft's, as its authors publish them.
type vector struct {
	ID         string `json:"Id"`
	Flavor     string
	Tag        string
	SessionID  string `json:"SessionId"`
	Instance   string
	Witness    string
	NargString string
	Expected   string
	Comment    string
}

func vectors(t *testing.T, file string) []vector {
	t.Helper()
	doc, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	if err := json.Unmarshal(doc, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPublishedProofs(t *testing.T) {
	for _, file := range []string{"sigma-proofs_Shake128_P256.json", "sigma-proofs-invalid_Shake128_P256.json"} {
		for _, v := range vectors(t, file) {
			t.Run(v.ID, func(t *testing.T) {
				relation, err := parseRelation(unhex(t, v.Instance))
				if err == nil && v.SessionID != "" {
					if id := sessionID(v.Tag); hex.EncodeToString(id[:]) != v.SessionID {
						t.Errorf("session id %x, want %s", id, v.SessionID)
					}
				}
				if err == nil {
					if again := hex.EncodeToString(relation.Bytes()); again != v.Instance {
						t.Errorf("the relation is written as %s, and was read from %s", again, v.Instance)
					}
					check := Verify
					if v.Flavor == "batchable" {
						check = verifyBatchable
					}
					err = check(v.Tag, relation, unhex(t, v.NargString))
				}
				if (err == nil) != (v.Expected == "accept") {
					t.Errorf("%v, want %s: %s", err, v.Expected, v.Comment)
				}
			})
		}
	}
}

// TestBatchableIsNoProof: the draft's other form of proofs is not taken, whether it is given as it is or shortened to the size of a proof.
func TestBatchableIsNoProof(t *testing.T) {
	tried := 0
	for _, v := range vectors(t, "sigma-proofs_Shake128_P256.json") {
		relation, err := parseRelation(unhex(t, v.Instance))
		if v.Flavor != "batchable" || err != nil {
			continue
		}
		tried++
		proof := unhex(t, v.NargString)
		for _, given := range [][]byte{proof, proof[:min(len(proof), relation.Size())], proof[len(proof)-min(len(proof), relation.Size()):]} {
			if Verify(v.Tag, relation, given) == nil {
				t.Errorf("%s: it holds", v.ID)
			}
		}
	}
	if tried < 3 {
		t.Errorf("%d proofs of this form were tried", tried)
	}
}

// Our own proofs of the published statements hold, and those of other scalars are refused.
func TestProvePublishedStatements(t *testing.T) {
	for _, v := range vectors(t, "sigma-proofs_Shake128_P256.json") {
		relation, err := parseRelation(unhex(t, v.Instance))
		if err != nil {
			t.Fatal(err)
		}
		var scalars []Scalar
		for b := unhex(t, v.Witness); len(b) > 0; b = b[ScalarSize:] {
			s, err := ParseScalar(b[:ScalarSize])
			if err != nil {
				t.Fatal(err)
			}
			scalars = append(scalars, s)
		}
		proof, err := Prove("a tag", relation, scalars, zeros{})
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify("a tag", relation, proof); err != nil {
			t.Errorf("%s: %v", v.ID, err)
		}
		if err := Verify("another tag", relation, proof); !errors.Is(err, ErrFalse) {
			t.Errorf("%s: under another tag: %v", v.ID, err)
		}
		scalars[0] = scalars[0].Add(One)
		if _, err := Prove("a tag", relation, scalars, zeros{}); !errors.Is(err, ErrWitness) {
			t.Errorf("%s: with another scalar: %v", v.ID, err)
		}
	}
}

// A prover who does not test the scalars, as an attacker does not, makes no proof that holds.
func TestWrongScalarsProveNothing(t *testing.T) {
	for _, v := range vectors(t, "sigma-proofs_Shake128_P256.json") {
		r, err := parseRelation(unhex(t, v.Instance))
		if err != nil {
			t.Fatal(err)
		}
		scalars := make([]Scalar, r.Scalars())
		for i := range scalars {
			scalars[i] = ScalarOf(uint64(i) + 1)
		}
		nonces, err := makeNonces("a tag", r, scalars, zeros{})
		if err != nil {
			t.Fatal(err)
		}
		var commitments []Point
		for i := range r.equations {
			commitments = append(commitments, r.sum(&r.equations[i], nonces))
		}
		if err := Verify("a tag", r, respond("a tag", r, scalars, nonces, commitments)); !errors.Is(err, ErrFalse) {
			t.Errorf("%s: %v, want ErrFalse", v.ID, err)
		}
	}
}

// A prover who chooses challenge and responses first can compute commitments that fit the equations, without knowing any scalar. That is no proof: its
// challenge is not the one that follows from them.
func TestChosenChallengesProveNothing(t *testing.T) {
	for _, v := range vectors(t, "sigma-proofs_Shake128_P256.json") {
		r, err := parseRelation(unhex(t, v.Instance))
		if err != nil {
			t.Fatal(err)
		}
		var proof []byte
		for i := range 1 + r.Scalars() {
			s := ScalarOf(uint64(i) + 99)
			proof = append(proof, s[:]...)
		}
		if err := Verify("a tag", r, proof); !errors.Is(err, ErrFalse) {
			t.Errorf("%s: %v, want ErrFalse", v.ID, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// parseRelation reads a relation as the draft serialises it. Vectors carry relations; this program never does.
func parseRelation(b []byte) (*Relation, error) {
	short := errors.New("the relation ends early")
	number := func() (n int) {
		if len(b) < 4 {
			return -1
		}
		n, b = int(binary.LittleEndian.Uint32(b)), b[4:]
		return n
	}
	factor := func() (s Scalar, err error) {
		if len(b) < ScalarSize {
			return s, short
		}
		s, err = ParseScalar(b[:ScalarSize])
		b = b[ScalarSize:]
		return s, err
	}
	r, last := NewRelation(), 0
	for range number() {
		var image []Part
		for range number() {
			p := Part{Point: number()}
			var err error
			if p.Factor, err = factor(); err != nil {
				return nil, err
			}
			image, last = append(image, p), max(last, p.Point)
		}
		var terms []Term
		for range number() {
			term := Term{Scalar: number(), Point: number()}
			var err error
			if term.Factor, err = factor(); err != nil {
				return nil, err
			}
			terms, last, r.scalars = append(terms, term), max(last, term.Point), max(r.scalars, term.Scalar+1)
		}
		r.Equate(image, terms...)
	}
	if len(b) != PointSize*last {
		return nil, short
	}
	for ; len(b) > 0; b = b[PointSize:] {
		p, err := ParsePoint(b[:PointSize])
		if err != nil {
			return nil, err
		}
		r.Point(p)
	}
	return r, nil
}

// verifyBatchable checks the draft's other form of proofs: the commitments, then the responses. This program does not take it.
func verifyBatchable(tag string, r *Relation, proof []byte) error {
	if err := r.Check(); err != nil {
		return err
	}
	n := PointSize * len(r.equations)
	if len(proof) != n+ScalarSize*r.scalars {
		return errors.New("another length")
	}
	var commitments []Point
	for i := range r.equations {
		p, err := ParsePoint(proof[PointSize*i : PointSize*(i+1)])
		if err != nil {
			return err
		}
		commitments = append(commitments, p)
	}
	var responses []Scalar
	for i := range r.scalars {
		s, err := ParseScalar(proof[n+ScalarSize*i : n+ScalarSize*(i+1)])
		if err != nil {
			return err
		}
		responses = append(responses, s)
	}
	c := challenge(tag, r, commitments)
	for i := range r.equations {
		e := &r.equations[i]
		if !r.sum(e, responses).Equal(commitments[i].Add(r.image(e).Mul(c))) {
			return ErrFalse
		}
	}
	return nil
}
