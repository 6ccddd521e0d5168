package property

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/internal/test/must"
)

// The group of browsers gives the same answers to the same vectors as that of other machines.
func TestGroupOfBrowsers(t *testing.T) {
	list := exec.Command("go", "list", "-tags", "affine", "-f", "{{.GoFiles}}", ".")
	if files, err := list.Output(); err != nil || !bytes.Contains(files, []byte("affine.go")) || bytes.Contains(files, []byte("constant.go")) {
		t.Fatalf("the tag affine chooses %s, %v", files, err)
	}
	test := exec.Command("go", "test", "-count=1", "-tags", "affine", "-v", "-run", "Published|Vectors|GroupLaws|Encodings", ".")
	out, err := test.CombinedOutput()
	must.Need(t, err == nil, "%v\n%s", err, out)
	for _, name := range []string{"TestGroupLaws", "TestEncodings", "TestPublishedProofs", "TestProvePublishedStatements", "TestVectors"} {
		must.Hold(t, bytes.Contains(out, []byte("--- PASS: "+name)), "%s did not run", name)
	}
}

// The tests of both groups run this one.
func TestGroupLaws(t *testing.T) {
	g, last := generator(), smallScalar(1).Negate() // n − 1
	seven := smallScalar(7)
	p := g.Mul(seven)
	for name, same := range map[string][2]point{
		"7·G":              {p, mulGenerator(seven)},
		"P + 0":            {p.Add(identity()), p},
		"0 + P":            {identity().Add(p), p},
		"P − 0":            {p.Sub(identity()), p},
		"0 − P":            {identity().Sub(p), p.Mul(last)},
		"P + P":            {p.Add(p), p.Mul(smallScalar(2))},
		"P − P":            {p.Sub(p), identity()},
		"P + (−P)":         {p.Add(p.Mul(last)), identity()},
		"0·P":              {p.Mul(scalar{}), identity()},
		"0·G":              {mulGenerator(scalar{}), identity()},
		"5·0":              {identity().Mul(smallScalar(5)), identity()},
		"0 + 0":            {identity().Add(identity()), identity()},
		"(n−1)·G + G":      {mulGenerator(last).Add(g), identity()},
		"(1/7)·7·G":        {p.Mul(seven.Inverse()), g},
		"(7·(n−1) + 7)·G":  {mulGenerator(seven.Mul(last).Add(seven)), identity()},
		"(1/0)·G":          {mulGenerator(scalar{}.Inverse()), identity()},
		"3·G + 4·G is 7·G": {mulGenerator(smallScalar(3)).Add(mulGenerator(smallScalar(4))), p},
	} {
		must.Hold(t, same[0].Equal(same[1]) && bytes.Equal(same[0].Bytes(), same[1].Bytes()), "%s: %x and %x", name, same[0].Bytes(), same[1].Bytes())
	}
	must.Hold(t, identity().IsIdentity() == true && !p.IsIdentity() && !p.Equal(g) && !p.Equal(identity()), "points are confused")
}

func TestEncodings(t *testing.T) {
	// From SEC 2: the generator.
	const g = "036b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
	const y = "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
	must.Equal(t, hex.EncodeToString(generator().Bytes()), g, "G is")
	field := "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff"
	for name, text := range map[string]string{
		"of the identity":          "00",
		"without a point at x = 1": "020000000000000000000000000000000000000000000000000000000000000001",
		"with x not in the field":  "02" + field,
		"all ones":                 "02ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"hybrid in its first byte": "06" + g[2:],
		"hybrid":                   "07" + g[2:] + y,
		"uncompressed":             "04" + g[2:] + y,
		"with a byte more":         g + "00",
		"with a byte less":         g[:64],
		"empty":                    "",
	} {
		b := must.Get(hex.DecodeString(text))(t)
		must.Refuse(t, "", "a point", name)(parsePoint(b))
	}
	must.Refuse(t, "", "n is read as a scalar")(parseScalar(order))
	one := smallScalar(1)
	last := one.Negate()
	must.Give(parseScalar(last[:]))(t, last, "n − 1 is not read")
	var wide [48]byte
	copy(wide[16:], order)
	must.Hold(t, reduceScalar(wide).IsZero(), "n modulo n is not 0")
}

// twoWays is the relation that a committed value is 0 or 1, and scalars of both cases. That needs the number that nobody knows for the H of
// property: here it is known, so the same points open both ways.
func twoWays(random *rand.Rand) (r *relation, witnesses [2][]scalar) {
	h, opening := anyScalar(random), anyScalar(random)
	r = newRelation()
	base := r.Point(mulGenerator(h))
	c := r.Point(mulGenerator(opening)) // 0·G + (opening / h)·H, and 1·G + ((opening − 1) / h)·H
	b, s, t := r.Scalar(), r.Scalar(), r.Scalar()
	image := []part{{Factor: one, Point: c}}
	r.Equate(image, term{b, one, 0}, term{s, one, base})
	r.Equate(image, term{b, one, c}, term{t, one, base})
	whole := opening.Mul(h.Inverse())
	witnesses[0] = []scalar{{}, whole, whole}
	witnesses[1] = []scalar{one, opening.Sub(one).Mul(h.Inverse()), {}}
	return r, witnesses
}

func anyScalar(random *rand.Rand) scalar {
	var wide [48]byte
	for i := range wide {
		wide[i] = byte(random.Uint32())
	}
	return reduceScalar(wide)
}

// TestSimulator: without the scalars, for each challenge and each responses there are commitments that fit, and a prover of either value makes
// exactly this transcript from exactly one choice of nonces. Nonces are uniform, so no transcript is likelier for one value than for the other.
func TestSimulator(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		r, witnesses := twoWays(random)
		must.Do(t, r.Check())
		challenge := anyScalar(random)
		var responses []scalar
		for range r.scalars {
			responses = append(responses, anyScalar(random))
		}
		for value, scalars := range witnesses {
			var nonces []scalar
			for i, s := range scalars {
				nonces = append(nonces, responses[i].Sub(challenge.Mul(s)))
			}
			for i := range r.equations {
				e := &r.equations[i]
				simulated := r.commitment(e, responses, challenge)
				must.Need(t, r.sum(e, nonces).Equal(simulated), "equation %d: the prover of %d commits to another point than the simulator", i, value)
			}
		}
	}
}

// TestNoncesAreUniform: whatever is proved, each byte of each nonce is as likely as any other, and no two proofs share a nonce, even if the
// randomness repeats itself: nonces depend on what is proved, too.
func TestNoncesAreUniform(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	r, witnesses := twoWays(random)
	seen := map[scalar]bool{}
	const draws = 4_000
	for value, scalars := range witnesses {
		var first, last [256]int
		source := rand.NewChaCha8([32]byte{1}) // the same for both
		for range draws {
			nonces := must.Get(makeNonces("a tag", r, scalars, source))(t)
			for _, n := range nonces {
				must.Need(t, !seen[n], "a nonce was used before")
				seen[n] = true
				first[n[0]]++
				last[n[scalarSize-1]]++
			}
		}
		for name, counts := range map[string][256]int{"first": first, "last": last} {
			want, distance := float64(draws*len(scalars))/256, 0.0
			for _, n := range counts {
				distance += (float64(n) - want) * (float64(n) - want) / want
			}
			must.Hold(t, distance <= 350,
				"the %s bytes of the nonces that prove %d are not uniform: %.0f", name, value, distance) // chi square of 255 degrees: one uniform sample in 30,000 is above
		}
	}
}

// The draft's vectors of the transformation by Fiat and Shamir with SHAKE128.
func TestPublishedSponge(t *testing.T) {
	doc := must.Get(os.ReadFile("testdata/fiatShamirShake128Vectors.json"))(t)
	var list []struct {
		ID         string `json:"Id"`
		Function   string
		Tag        string
		SessionID  string `json:"SessionId"`
		Operations []struct {
			Type   string `json:"type"`
			Length int    `json:"length"`
			Data   string `json:"data"`
		}
		Output    string
		Challenge string
	}
	must.Do(t, json.Unmarshal(doc, &list))
	done := 0
	for _, v := range list {
		switch v.Function {
		case "DeriveSessionID":
			id := sessionID(string(unhex(t, v.Tag)))
			must.Hold(t, hex.EncodeToString(id[:]) == v.Output, "%s: %x, want %s", v.ID, id, v.Output)
		case "DuplexSponge", "DecodeUint":
			var absorbed []byte
			squeezed := 0
			for _, o := range v.Operations {
				if o.Type == "absorb" && squeezed == 0 {
					absorbed = append(absorbed, unhex(t, o.Data)...)
				} else {
					squeezed += o.Length
				}
				if o.Type == "absorb" && squeezed > 0 {
					squeezed = -1 // the sponge of this package absorbs first: what absorbs again is not used
					break
				}
			}
			if squeezed < 0 {
				continue
			}
			s := sponge([32]byte(unhex(t, v.SessionID)))
			s.Write(absorbed)
			if v.Function == "DecodeUint" {
				want, _ := new(big.Int).SetString(v.Challenge[2:], 16)
				got := squeezeScalar(s)
				must.Hold(t, new(big.Int).SetBytes(got[:]).Cmp(want) == 0, "%s: %x, want %x", v.ID, got, want)
				break
			}
			out := make([]byte, squeezed)
			s.Read(out)
			want := v.Output
			must.Hold(t, len(want) == 0 || hex.EncodeToString(out)[len(out)*2-len(want):] == want, "%s: %x, want %s", v.ID, out, want)
		default:
			continue // Sumcheck is another protocol
		}
		done++
	}
	must.Hold(t, done >= 8, "%d vectors were used", done)
}

// TestRelationsThatSayNothing breaks each rule of relations, and gives a proof whose commitment is the identity.
func TestRelationsThatSayNothing(t *testing.T) {
	good := func() *relation {
		r := newRelation()
		r.Equate([]part{{one, r.Point(mulGenerator(smallScalar(7)))}}, term{r.Scalar(), one, 0})
		return r
	}
	must.Do(t, good().Check())
	for _, rule := range []struct {
		says  string
		lacks func(r *relation, e *equation)
	}{
		{"at least one equation", func(r *relation, e *equation) { r.equations = nil }},
		{"0 is not the generator", func(r *relation, e *equation) { r.points[0] = r.points[1] }},
		{"point 1 is the identity", func(r *relation, e *equation) { r.points[1] = identity() }},
		{"nothing uses point 2", func(r *relation, e *equation) { r.Point(generator()) }},
		{"scalar 1 has no effect", func(r *relation, e *equation) { r.Scalar() }},
		{"0 parts and 1 terms", func(r *relation, e *equation) { e.image = nil }},
		{"1 parts and 0 terms", func(r *relation, e *equation) { e.terms = nil }},
		{"no scalar -1", func(r *relation, e *equation) { e.terms[0].Scalar = -1 }},
		{"no scalar 1", func(r *relation, e *equation) { e.terms[0].Scalar = 1 }},
		{"no point -1", func(r *relation, e *equation) { e.image[0].Point = -1 }},
		{"no point 2", func(r *relation, e *equation) { e.terms[0].Point = 2 }},
		{"scalar 0 has no effect", func(r *relation, e *equation) { e.terms[0].Factor = scalar{} }},
		{"its image is the identity", func(r *relation, e *equation) { e.image[0].Factor = scalar{} }},
	} {
		r := good()
		rule.lacks(r, &r.equations[0])
		must.Say(t, r.Check(), rule.says)
	}
	must.Refuse(t, "0 scalars", "without its scalars")(proveRelation("a tag", good(), nil, zeros{}))
	c, response := smallScalar(1), smallScalar(7)
	err := verifyRelation("a tag", good(), slices.Concat(c[:], response[:]))
	must.Hold(t, errors.Is(err, errNotShown) && strings.Contains(err.Error(), "identity"), "7·G − 1·(7·G): %v", err)
}

// A publishedVector is one of the draft's, as its authors publish them.
type publishedVector struct {
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

func published(t *testing.T, file string) []publishedVector {
	t.Helper()
	doc := must.Get(os.ReadFile("testdata/" + file))(t)
	var list []publishedVector
	must.Do(t, json.Unmarshal(doc, &list))
	return list
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b := must.Get(hex.DecodeString(text))(t)
	return b
}

func TestPublishedProofs(t *testing.T) {
	for _, file := range []string{"sigma-proofs_Shake128_P256.json", "sigma-proofs-invalid_Shake128_P256.json"} {
		for _, v := range published(t, file) {
			t.Run(v.ID, func(t *testing.T) {
				relation, err := parseRelation(unhex(t, v.Instance))
				if err == nil && v.SessionID != "" {
					id := sessionID(v.Tag)
					must.Hold(t, hex.EncodeToString(id[:]) == v.SessionID, "session id %x, want %s", id, v.SessionID)
				}
				if err == nil {
					must.Equal(t, hex.EncodeToString(relation.Bytes()), v.Instance, "the relation is written as")
					check := verifyRelation
					if v.Flavor == "batchable" {
						check = verifyBatchable
					}
					err = check(v.Tag, relation, unhex(t, v.NargString))
				}
				must.Hold(t, (err == nil) == (v.Expected == "accept"), "%v, want %s: %s", err, v.Expected, v.Comment)
			})
		}
	}
}

// TestBatchableIsNoProof: the draft's other form of proofs is not taken, whether it is given as it is or shortened to the size of a proof.
func TestBatchableIsNoProof(t *testing.T) {
	tried := 0
	for _, v := range published(t, "sigma-proofs_Shake128_P256.json") {
		relation, err := parseRelation(unhex(t, v.Instance))
		if v.Flavor != "batchable" || err != nil {
			continue
		}
		tried++
		proof := unhex(t, v.NargString)
		for _, given := range [][]byte{proof, proof[:min(len(proof), relation.Size())], proof[len(proof)-min(len(proof), relation.Size()):]} {
			must.Hold(t, verifyRelation(v.Tag, relation, given) != nil, "%s: it holds", v.ID)
		}
	}
	must.Hold(t, tried >= 3, "%d proofs of this form were tried", tried)
}

// Our own proofs of the published statements hold, and those of other scalars are refused.
func TestProvePublishedStatements(t *testing.T) {
	for _, v := range published(t, "sigma-proofs_Shake128_P256.json") {
		relation := must.Get(parseRelation(unhex(t, v.Instance)))(t)
		var scalars []scalar
		for b := unhex(t, v.Witness); len(b) > 0; b = b[scalarSize:] {
			s := must.Get(parseScalar(b[:scalarSize]))(t)
			scalars = append(scalars, s)
		}
		proof := must.Get(proveRelation("a tag", relation, scalars, zeros{}))(t)
		must.Want(t, verifyRelation("a tag", relation, proof), nil, v.ID)
		must.Want(t, verifyRelation("another tag", relation, proof), errNotShown, v.ID)
		scalars[0] = scalars[0].Add(one)
		must.Fail(t, errWitness, v.ID)(proveRelation("a tag", relation, scalars, zeros{}))
	}
}

// A prover who does not test the scalars, as an attacker does not, makes no proof that holds.
func TestWrongScalarsProveNothing(t *testing.T) {
	for _, v := range published(t, "sigma-proofs_Shake128_P256.json") {
		r := must.Get(parseRelation(unhex(t, v.Instance)))(t)
		scalars := make([]scalar, r.scalars)
		for i := range scalars {
			scalars[i] = smallScalar(uint64(i) + 1)
		}
		nonces := must.Get(makeNonces("a tag", r, scalars, zeros{}))(t)
		var commitments []point
		for i := range r.equations {
			commitments = append(commitments, r.sum(&r.equations[i], nonces))
		}
		must.Want(t, verifyRelation("a tag", r, respond("a tag", r, scalars, nonces, commitments)), errNotShown, v.ID)
	}
}

// A prover who chooses challenge and responses first can compute commitments that fit the equations, without knowing any scalar. That is no proof: its
// challenge is not the one that follows from them.
func TestChosenChallengesProveNothing(t *testing.T) {
	for _, v := range published(t, "sigma-proofs_Shake128_P256.json") {
		r := must.Get(parseRelation(unhex(t, v.Instance)))(t)
		var proof []byte
		for i := range 1 + r.scalars {
			s := smallScalar(uint64(i) + 99)
			proof = append(proof, s[:]...)
		}
		must.Want(t, verifyRelation("a tag", r, proof), errNotShown, v.ID)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// parseRelation reads a relation as the draft serialises it. Vectors carry relations; this program never does.
func parseRelation(b []byte) (*relation, error) {
	short := errors.New("the relation ends early")
	number := func() (n int) {
		if len(b) < 4 {
			return -1
		}
		n, b = int(binary.LittleEndian.Uint32(b)), b[4:]
		return n
	}
	factor := func() (s scalar, err error) {
		if len(b) < scalarSize {
			return s, short
		}
		s, err = parseScalar(b[:scalarSize])
		b = b[scalarSize:]
		return s, err
	}
	r, last := newRelation(), 0
	for range number() {
		var image []part
		for range number() {
			p := part{Point: number()}
			var err error
			if p.Factor, err = factor(); err != nil {
				return nil, err
			}
			image, last = append(image, p), max(last, p.Point)
		}
		var terms []term
		for range number() {
			term := term{Scalar: number(), Point: number()}
			var err error
			if term.Factor, err = factor(); err != nil {
				return nil, err
			}
			terms, last, r.scalars = append(terms, term), max(last, term.Point), max(r.scalars, term.Scalar+1)
		}
		r.Equate(image, terms...)
	}
	if len(b) != pointSize*last {
		return nil, short
	}
	for ; len(b) > 0; b = b[pointSize:] {
		p, err := parsePoint(b[:pointSize])
		if err != nil {
			return nil, err
		}
		r.Point(p)
	}
	return r, nil
}

// verifyBatchable checks the draft's other form of proofs: the commitments, then the responses. This program does not take it.
func verifyBatchable(tag string, r *relation, proof []byte) error {
	if err := r.Check(); err != nil {
		return err
	}
	n := pointSize * len(r.equations)
	if len(proof) != n+scalarSize*r.scalars {
		return errors.New("another length")
	}
	var commitments []point
	for i := range r.equations {
		p, err := parsePoint(proof[pointSize*i : pointSize*(i+1)])
		if err != nil {
			return err
		}
		commitments = append(commitments, p)
	}
	var responses []scalar
	for i := range r.scalars {
		s, err := parseScalar(proof[n+scalarSize*i : n+scalarSize*(i+1)])
		if err != nil {
			return err
		}
		responses = append(responses, s)
	}
	c := challenge(tag, r, commitments)
	for i := range r.equations {
		e := &r.equations[i]
		if !r.sum(e, responses).Equal(commitments[i].Add(r.total(e.image).Mul(c))) {
			return errNotShown
		}
	}
	return nil
}
