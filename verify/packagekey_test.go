package verify_test

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/aeptest"
	"jurat/jurattest"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// chosenLater makes a forged package: the forger has a number stamped and chooses the text afterwards. Neither the
// number nor the token depends on text or key: n = S^e − EM(text) makes S a signature of any text, under a key made
// for it.
func chosenLater(t *testing.T, s *big.Int, e int) (aeptest.Members, []byte) {
	t.Helper()
	m := aeptest.New(t, timestamp.NewMock())
	power := new(big.Int).Exp(s, big.NewInt(int64(e)), nil)
	size := (power.BitLen() + 7) / 8 // bytes of S^e, and of n
	for i := 0; ; i++ {
		text := fmt.Appendf(nil, "I said this before it happened (%d).\n", i)
		digest := sha256.Sum256(text)
		info := append([]byte("\x30\x2f\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x04\x20"), digest[:]...)
		n := new(big.Int).Sub(power, new(big.Int).SetBytes(padded(info, size)))
		if n.Bit(0) == 0 || (n.BitLen()+7)/8 != size {
			if i > 200 {
				t.Fatal("no text fits")
			}
			continue
		}
		public := aeptest.Public(t, &rsa.PublicKey{N: n, E: e})
		m["response.txt"], m["canonical.bin"], m["hash.sha256"] = text, text, []byte(hex.EncodeToString(digest[:]))
		m["public_key.pem"] = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
		m.SetSignature(t, timestamp.NewMock(), s.FillBytes(make([]byte, size)))
		return m, public
	}
}

// padded is the encoded message of RFC 8017, section 9.2.
func padded(info []byte, size int) []byte {
	return bytes.Join([][]byte{{0, 1}, bytes.Repeat([]byte{0xff}, size-3-len(info)), {0}, info}, nil)
}

// TestTextChosenAfterItsStamp: the stamped bytes name no key. So the stamp's time counts for a text only if the
// reader knew the key before.
func TestTextChosenAfterItsStamp(t *testing.T) {
	random := sha256.Sum256([]byte("a number that is stamped today"))
	cube := new(big.Int).SetBytes(bytes.Repeat(random[:], 8))
	cube.SetBit(cube, 2047, 1)
	for name, forged := range map[string]struct {
		s *big.Int
		e int
	}{
		"the cube of a number":    {cube, 3},
		"a power of two":          {big.NewInt(2), 6143},
		"a power of three":        {big.NewInt(3), 5167},
		"the power of a larger e": {new(big.Int).SetBytes(random[:30]), 33},
	} {
		m, public := chosenLater(t, forged.s, forged.e)
		for trusted, key := range map[string]*trust.Key{
			"a key that nobody knows":       nil,
			"a key without a beginning":     {},
			"a key that came after":         {NotBefore: jurattest.Start.Add(time.Hour)},
			"a key that was known by then":  {NotBefore: jurattest.Start.Add(-time.Hour)},
			"a key that ended, and a stamp": {NotAfter: jurattest.Start.Add(time.Hour)},
		} {
			t.Run(name+", "+trusted, func(t *testing.T) {
				_, o := packaged(t)
				trusted := *o.Trust
				trusted.Keys = nil
				if key != nil {
					k := keyOf("a", evidence.RS256, public)
					k.NotBefore, k.NotAfter = key.NotBefore, key.NotAfter
					trusted.Keys = []trust.Key{k}
				}
				o.Trust, o.Before = reread(t, &trusted), jurattest.Start.Add(time.Minute)
				report := verified(t, m.Zip(t), o)
				for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time, verify.Before} {
					if f := report.Of(g); f.Status == verify.Proved {
						t.Errorf("%s is proved: %+v", g, f)
					}
				}
				if report.Outcome == verify.Proved || len(report.Times) > 0 {
					t.Errorf("outcome %s, times %+v", report.Outcome, report.Times)
				}
			})
		}
	}
}
