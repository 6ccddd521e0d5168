package sigma

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/go-json-experiment/json"
)

// The group of browsers gives the same answers to the same vectors as that of other machines.
func TestGroupOfBrowsers(t *testing.T) {
	list := exec.Command("go", "list", "-tags", "affine", "-f", "{{.GoFiles}}", ".")
	if files, err := list.Output(); err != nil || !bytes.Contains(files, []byte("affine.go")) || bytes.Contains(files, []byte("constant.go")) {
		t.Fatalf("the tag affine chooses %s, %v", files, err)
	}
	test := exec.Command("go", "test", "-count=1", "-tags", "affine", "-v", "-run", "Published|Vectors|GroupLaws|Encodings", ".", "../property")
	out, err := test.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"TestGroupLaws", "TestEncodings", "TestPublishedProofs", "TestProvePublishedStatements", "TestVectors"} {
		if !bytes.Contains(out, []byte("--- PASS: "+name)) {
			t.Errorf("%s did not run", name)
		}
	}
}

// The tests of both groups run this one.
func TestGroupLaws(t *testing.T) {
	g, last := Generator(), ScalarOf(1).Negate() // n − 1
	seven := ScalarOf(7)
	p := g.Mul(seven)
	for name, same := range map[string][2]Point{
		"7·G":              {p, MulGenerator(seven)},
		"P + 0":            {p.Add(identity()), p},
		"0 + P":            {identity().Add(p), p},
		"P − 0":            {p.Sub(identity()), p},
		"0 − P":            {identity().Sub(p), p.Mul(last)},
		"P + P":            {p.Add(p), p.Mul(ScalarOf(2))},
		"P − P":            {p.Sub(p), identity()},
		"P + (−P)":         {p.Add(p.Mul(last)), identity()},
		"0·P":              {p.Mul(Scalar{}), identity()},
		"0·G":              {MulGenerator(Scalar{}), identity()},
		"5·0":              {identity().Mul(ScalarOf(5)), identity()},
		"0 + 0":            {identity().Add(identity()), identity()},
		"(n−1)·G + G":      {MulGenerator(last).Add(g), identity()},
		"(1/7)·7·G":        {p.Mul(seven.Inverse()), g},
		"(7·(n−1) + 7)·G":  {MulGenerator(seven.Mul(last).Add(seven)), identity()},
		"(1/0)·G":          {MulGenerator(Scalar{}.Inverse()), identity()},
		"3·G + 4·G is 7·G": {MulGenerator(ScalarOf(3)).Add(MulGenerator(ScalarOf(4))), p},
	} {
		if !same[0].Equal(same[1]) || !bytes.Equal(same[0].Bytes(), same[1].Bytes()) {
			t.Errorf("%s: %x and %x", name, same[0].Bytes(), same[1].Bytes())
		}
	}
	if identity().IsIdentity() != true || p.IsIdentity() || p.Equal(g) || p.Equal(identity()) {
		t.Error("points are confused")
	}
}

func TestEncodings(t *testing.T) {
	// From SEC 2: the generator.
	const g = "036b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
	const y = "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
	if text := hex.EncodeToString(Generator().Bytes()); text != g {
		t.Errorf("G is %s", text)
	}
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
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParsePoint(b); err == nil {
			t.Errorf("a point %s is read", name)
		}
	}
	if _, err := ParseScalar(order); err == nil {
		t.Error("n is read as a scalar")
	}
	one := ScalarOf(1)
	last := one.Negate()
	if s, err := ParseScalar(last[:]); err != nil || s != last {
		t.Errorf("n − 1 is not read: %v", err)
	}
	var wide [48]byte
	copy(wide[16:], order)
	if !ReduceScalar(wide).IsZero() {
		t.Error("n modulo n is not 0")
	}
}

// twoWays is the relation that a committed value is 0 or 1, and scalars of both cases. That needs the number that nobody knows for the H of
// property: here it is known, so the same points open both ways.
func twoWays(random *rand.Rand) (r *Relation, witnesses [2][]Scalar) {
	h, opening := anyScalar(random), anyScalar(random)
	r = NewRelation()
	base := r.Point(MulGenerator(h))
	c := r.Point(MulGenerator(opening)) // 0·G + (opening / h)·H, and 1·G + ((opening − 1) / h)·H
	b, s, t := r.Scalar(), r.Scalar(), r.Scalar()
	image := []Part{{Factor: One, Point: c}}
	r.Equate(image, Term{b, One, 0}, Term{s, One, base})
	r.Equate(image, Term{b, One, c}, Term{t, One, base})
	whole := opening.Mul(h.Inverse())
	witnesses[0] = []Scalar{{}, whole, whole}
	witnesses[1] = []Scalar{One, opening.Sub(One).Mul(h.Inverse()), {}}
	return r, witnesses
}

func anyScalar(random *rand.Rand) Scalar {
	var wide [48]byte
	for i := range wide {
		wide[i] = byte(random.Uint32())
	}
	return ReduceScalar(wide)
}

// TestSimulator: without the scalars, for each challenge and each responses there are commitments that fit, and a prover of either value makes
// exactly this transcript from exactly one choice of nonces. Nonces are uniform, so no transcript is likelier for one value than for the other.
func TestSimulator(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		r, witnesses := twoWays(random)
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		challenge := anyScalar(random)
		var responses []Scalar
		for range r.Scalars() {
			responses = append(responses, anyScalar(random))
		}
		for value, scalars := range witnesses {
			var nonces []Scalar
			for i, s := range scalars {
				nonces = append(nonces, responses[i].Sub(challenge.Mul(s)))
			}
			for i := range r.equations {
				e := &r.equations[i]
				if simulated := r.commitment(e, responses, challenge); !r.sum(e, nonces).Equal(simulated) {
					t.Fatalf("equation %d: the prover of %d commits to another point than the simulator", i, value)
				}
			}
		}
	}
}

// TestNoncesAreUniform: whatever is proved, each byte of each nonce is as likely as any other, and no two proofs share a nonce, even if the
// randomness repeats itself: nonces depend on what is proved, too.
func TestNoncesAreUniform(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	r, witnesses := twoWays(random)
	seen := map[Scalar]bool{}
	const draws = 4_000
	for value, scalars := range witnesses {
		var first, last [256]int
		source := rand.NewChaCha8([32]byte{1}) // the same for both
		for range draws {
			nonces, err := makeNonces("a tag", r, scalars, source)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range nonces {
				if seen[n] {
					t.Fatal("a nonce was used before")
				}
				seen[n] = true
				first[n[0]]++
				last[n[ScalarSize-1]]++
			}
		}
		for name, counts := range map[string][256]int{"first": first, "last": last} {
			want, distance := float64(draws*len(scalars))/256, 0.0
			for _, n := range counts {
				distance += (float64(n) - want) * (float64(n) - want) / want
			}
			if distance > 350 { // chi square of 255 degrees: one uniform sample in 30,000 is above
				t.Errorf("the %s bytes of the nonces that prove %d are not uniform: %.0f", name, value, distance)
			}
		}
	}
}

// The draft's vectors of the transformation by Fiat and Shamir with SHAKE128.
func TestPublishedSponge(t *testing.T) {
	doc, err := os.ReadFile("testdata/fiatShamirShake128Vectors.json")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := json.Unmarshal(doc, &list); err != nil {
		t.Fatal(err)
	}
	done := 0
	for _, v := range list {
		switch v.Function {
		case "DeriveSessionID":
			if id := sessionID(string(unhex(t, v.Tag))); hex.EncodeToString(id[:]) != v.Output {
				t.Errorf("%s: %x, want %s", v.ID, id, v.Output)
			}
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
				if got := squeezeScalar(s); new(big.Int).SetBytes(got[:]).Cmp(want) != 0 {
					t.Errorf("%s: %x, want %x", v.ID, got, want)
				}
				break
			}
			out := make([]byte, squeezed)
			s.Read(out)
			if want := v.Output; len(want) > 0 && hex.EncodeToString(out)[len(out)*2-len(want):] != want {
				t.Errorf("%s: %x, want %s", v.ID, out, want)
			}
		default:
			continue // Sumcheck is another protocol
		}
		done++
	}
	if done < 8 {
		t.Errorf("%d vectors were used", done)
	}
}
