package sigma

import (
	"bytes"
	"encoding/hex"
	"os/exec"
	"testing"
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
