package operator

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/internal/must"
)

var (
	testCosigners = []*Cosigner{testCosigner(1, "witness.example/w1"), testCosigner(2, "witness.example/w2")}
	cosignTime    = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func testCosigner(seed byte, name string) *Cosigner {
	c, err := GenerateCosigner(bytes.NewReader(bytes.Repeat([]byte{seed}, 32)), name)
	if err != nil {
		panic(err)
	}
	return c
}

// TestSpecifiedCosignature: the signed bytes equal the example in C2SP tlog-cosignature.
func TestSpecifiedCosignature(t *testing.T) {
	text := "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
	want := "cosignature/v1\ntime 1679315147\n" + text
	if got := cosigned([]byte(text), 1679315147); string(got) != want {
		t.Errorf("%q", got)
	}
	c := testCosigners[0]
	line := c.Cosign(text, time.Unix(1679315147, 0))
	data, err := base64.StdEncoding.DecodeString(strings.Fields(line)[2])
	if err != nil || len(data) != 4+8+64 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	if !ed25519.Verify(c.PublicKey(), []byte(want), data[12:]) {
		t.Error("the signature is not over the specified bytes")
	}
}

func TestCosignatures(t *testing.T) {
	one, two := testCosigners[0], testCosigners[1]
	plain := signedTestCheckpoint(t)
	text, _, _ := strings.Cut(plain, "\n\n")
	text += "\n"
	both := plain + one.Cosign(text, cosignTime) + two.Cosign(text, cosignTime.Add(time.Second))
	for name, test := range map[string]struct {
		signed string
		want   []string
		wrong  bool
	}{
		"none":                {plain, nil, false},
		"both":                {both, []string{one.Name(), two.Name()}, false},
		"of nobody known":     {plain + testCosigner(3, "witness.example/w3").Cosign(text, cosignTime), nil, false},
		"twice":               {both + one.Cosign(text, cosignTime.Add(time.Hour)), []string{one.Name(), two.Name()}, false},
		"another's name":      {plain + testCosigner(3, one.Name()).Cosign(text, cosignTime), nil, false},
		"over something else": {plain + one.Cosign(strings.Replace(text, "\n", "x\n", 1), cosignTime), nil, true},
		"another time":        {plain + atAnotherTime(t, one.Cosign(text, cosignTime)), nil, true},
		"a log's signature":   {plain + signedAsLog(t, one, text), nil, true},
		"too short":           {plain + "— " + one.Name() + " " + base64.StdEncoding.EncodeToString(hashAnd(one, make([]byte, 71))) + "\n", nil, true},
		"before 1970":         {plain + "— " + one.Name() + " " + base64.StdEncoding.EncodeToString(hashAnd(one, bytes.Repeat([]byte{0xff}, 72))) + "\n", nil, true},
		"no note":             {"what", nil, true},
	} {
		found, err := Cosignatures(test.signed, &one.Witness, &two.Witness)
		if (err != nil) != test.wrong {
			t.Errorf("%s: %v", name, err)
		}
		var names []string
		for _, c := range found {
			names = append(names, c.Witness.Name())
			if !strings.Contains(test.signed, c.Line) || c.At.Before(cosignTime) || c.At.After(cosignTime.Add(time.Second)) {
				t.Errorf("%s: %s at %v", name, c.Line, c.At)
			}
		}
		if strings.Join(names, " ") != strings.Join(test.want, " ") {
			t.Errorf("%s: %v", name, names)
		}
	}
	if _, err := OpenCheckpoint(both, testLogVerifier(t)); err != nil {
		t.Errorf("a reader who knows no witness refuses the checkpoint: %v", err)
	}
}

// TestEveryByteOfACosignatureCounts flips each byte in turn.
func TestEveryByteOfACosignatureCounts(t *testing.T) {
	one := testCosigners[0]
	text := "log\n1\n" + base64.StdEncoding.EncodeToString(make([]byte, 32)) + "\n"
	data, err := base64.StdEncoding.DecodeString(strings.Fields(one.Cosign(text, cosignTime))[2])
	if err != nil || !one.Verify([]byte(text), data[4:]) {
		t.Fatal(err)
	}
	for i := range data[4:] {
		changed := bytes.Clone(data[4:])
		changed[i] ^= 1
		if one.Verify([]byte(text), changed) {
			t.Errorf("byte %d", i)
		}
	}
	for i := range text {
		changed := []byte(text)
		changed[i] ^= 1
		if one.Verify(changed, data[4:]) {
			t.Errorf("byte %d of the text", i)
		}
	}
}

func TestWitnessKeysAreReadStrictly(t *testing.T) {
	c := testCosigners[0]
	w, err := ParseWitness(c.String())
	if err != nil || w.String() != c.String() || w.Name() != c.Name() || w.KeyHash() != c.KeyHash() {
		t.Fatalf("%v, %v", w, err)
	}
	again, err := ParseCosigner(c.MarshalPrivate())
	if err != nil || again.String() != c.String() {
		t.Fatalf("%v, %v", again, err)
	}
	for n := range 64 { // some of them have a plus sign in their base64
		some := testCosigner(byte(n), "w")
		again, err := ParseCosigner(some.MarshalPrivate())
		if err != nil || again.String() != some.String() {
			t.Errorf("%s: %v", some, err)
		}
		if w, err := ParseWitness(some.String()); err != nil || w.String() != some.String() {
			t.Errorf("%s: %v", some, err)
		}
	}
	name, rest, _ := strings.Cut(c.String(), "+")
	small := append([]byte{cosignatureType}, make([]byte, ed25519.PublicKeySize)...) // a point of small order
	log := testLogKey(t)
	for _, bad := range []string{"", name, name + "+" + strings.ToUpper(rest), name + "+00000000" + rest[8:], "x" + c.String(), c.String() + "+", c.String() + "\n", c.String()[:len(c.String())-1],
		log, "a b+" + rest, "+" + rest, "w+00000000+" + base64.StdEncoding.EncodeToString(small)} {
		if w, err := ParseWitness(bad); err == nil {
			t.Errorf("%q is %v", bad, w)
		}
	}
	for _, bad := range []string{"", c.String(), c.MarshalPrivate() + "+", strings.Replace(c.MarshalPrivate(), "PRIVATE", "private", 1), strings.Replace(c.MarshalPrivate(), "w1", "w2", 1)} {
		if _, err := ParseCosigner(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, bad := range []string{"", "a b", "a+b", "a\nb", "a\u00a0b", "a\xff"} {
		if _, err := GenerateCosigner(nil, bad); err == nil {
			t.Errorf("the name %q is taken", bad)
		}
	}
}

func hashAnd(c *Cosigner, rest []byte) []byte {
	h := c.KeyHash()
	return append([]byte{byte(h >> 24), byte(h >> 16), byte(h >> 8), byte(h)}, rest...)
}

func atAnotherTime(t *testing.T, line string) string {
	t.Helper()
	fields := strings.Fields(line)
	data := must.Get(base64.StdEncoding.DecodeString(fields[2]))(t)
	data[11] ^= 1
	return "— " + fields[1] + " " + base64.StdEncoding.EncodeToString(data) + "\n"
}

// signedAsLog signs only the text with the witness's key, as logs sign, and adds a time that is not signed.
func signedAsLog(t *testing.T, c *Cosigner, text string) string {
	t.Helper()
	return "— " + c.Name() + " " + base64.StdEncoding.EncodeToString(hashAnd(c, append(make([]byte, 8), ed25519.Sign(c.private, []byte(text))...))) + "\n"
}

func testLog(t *testing.T) (note.Signer, string) {
	t.Helper()
	private, public, err := note.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{9}, 64)), "example.com/log")
	if err != nil {
		t.Fatal(err)
	}
	signer := must.Get(note.NewSigner(private))(t)
	return signer, public
}

func testLogKey(t *testing.T) string { _, public := testLog(t); return public }

func testLogVerifier(t *testing.T) note.Verifier {
	t.Helper()
	return must.Get(note.NewVerifier(testLogKey(t)))(t)
}

func signedTestCheckpoint(t *testing.T) string {
	t.Helper()
	signer, _ := testLog(t)
	return must.Get(SignCheckpoint(Checkpoint{Origin: "example.com/log", Size: 7}, signer))(t)
}
