package timestamp

import (
	"bytes"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/must"
)

// region is a range of bytes of a token.
type region struct{ start, end int }

func find(t *testing.T, der, part []byte) region {
	t.Helper()
	i := bytes.Index(der, part)
	if i < 0 || bytes.Count(der, part) != 1 {
		t.Fatalf("the token does not contain the part exactly once")
	}
	return region{i, i + len(part)}
}

// survivors flips every single bit of der, and all bits of every byte, and returns the positions at which a changed
// token still verifies.
func survivors(der []byte, opts Options) (positions []int) {
	mutant := bytes.Clone(der)
	for i := range der {
		for _, flip := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255} {
			mutant[i] ^= flip
			if _, err := verifyToken(mutant, opts); err == nil && !slices.Contains(positions, i) {
				positions = append(positions, i)
			}
			mutant[i] ^= flip
		}
	}
	return positions
}

// TestEveryByteCounts: a token with a changed bit or byte does not verify, except in the parts that the package
// documentation lists as not covered.
func TestEveryByteCounts(t *testing.T) {
	root, certificate := testRoot(t), testCertificate(t)
	opts := Options{Roots: []*x509.Certificate{root}}
	given := Options{Roots: opts.Roots, Intermediates: []*x509.Certificate{certificate}}
	authority := testAuthority(t)
	issue := func(certReq bool) []byte {
		return must.Get(authority.Issue(&Request{Imprint: testImprint, CertReq: certReq}))(t)
	}
	other, _ := authorityCA(t, "not needed", nil, nil)
	unsigned := attribute("\x2a\x03", octets([]byte("unsigned")))
	revocations := seq(octets([]byte("revocations")))

	draftWith := func(change func(f *draft)) []byte {
		f := newDraft(t)
		f.imprint = imprintElement(seq(oid(oidSHA256), null()), testImprint[:])
		f.digestAlgorithm = seq(oid(oidSHA256), null())
		f.digestAlgorithms = set(f.digestAlgorithm)
		change(f)
		return f.build(t)
	}
	for _, test := range []struct {
		name      string
		token     []byte
		opts      Options
		uncovered []byte // the one part in which changes may survive
	}{
		{"certificate embedded", issue(true), opts, nil},
		{"certificate given", issue(false), given, nil},
		{"NULL parameters", draftWith(func(f *draft) {}), opts, nil},
		// With the certificate given by the caller, Verify does not need the embedded one. Even its tag may change to
		// that of revocation lists.
		{"certificate embedded and given", issue(true), given, tlv(context0Constructed, certificate.Raw)},
		{"further certificate embedded", draftWith(func(f *draft) {
			f.certificates = tlv(context0Constructed, certificate.Raw, other.Raw)
		}), opts, other.Raw},
		{"unsigned attributes", draftWith(func(f *draft) { f.unsigned = tlv(context1Constructed, unsigned) }), opts, unsigned},
		{"revocation lists", draftWith(func(f *draft) { f.revocations = tlv(context1Constructed, revocations) }), opts, revocations},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := verifyToken(test.token, test.opts); err != nil {
				t.Fatal(err)
			}
			// Nothing covers the version, and versions 1 and 3 are read in the same way.
			version := find(t, test.token, slices.Concat(integer(3), set(digestAlgorithm(test.token)))).start + 2
			got := slices.DeleteFunc(survivors(test.token, test.opts), func(i int) bool { return i == version })
			if test.uncovered == nil {
				if len(got) > 0 {
					t.Errorf("changes survive at %v", got)
				}
				return
			}
			if len(got) == 0 {
				t.Error("no change survives: the part is covered, and the package documentation is wrong")
			}
			free := find(t, test.token, test.uncovered)
			for _, i := range got {
				if i < free.start || i >= free.end {
					t.Errorf("a change survives at %d, outside %v", i, free)
				}
			}
		})
	}
}

// digestAlgorithm returns the digest algorithm of SignedData.
func digestAlgorithm(token []byte) []byte {
	if bytes.Contains(token, set(seq(oid(oidSHA256), null()))) {
		return seq(oid(oidSHA256), null())
	}
	return seq(oid(oidSHA256))
}

func TestTruncatedAndExtended(t *testing.T) {
	token := newDraft(t).build(t)
	for n := range token {
		if _, err := Parse(token[:n]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("%d bytes of %d: %v", n, len(token), err)
		}
	}
	for i := range 256 {
		if _, err := Parse(append(bytes.Clone(token), byte(i))); !errors.Is(err, ErrMalformed) {
			t.Fatalf("with %#x after it: %v", i, err)
		}
	}
}

// TestDroppedAndDoubledStretches removes parts of a token, and puts parts in twice.
func TestDroppedAndDoubledStretches(t *testing.T) {
	token := newDraft(t).build(t)
	opts := Options{Roots: []*x509.Certificate{testRoot(t)}}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		i := random.IntN(len(token))
		j := min(i+1+random.IntN(64), len(token))
		for _, mutant := range [][]byte{
			slices.Concat(token[:i], token[j:]),
			slices.Concat(token[:j], token[i:]),
		} {
			if _, err := verifyToken(mutant, opts); err == nil {
				t.Fatalf("survives a change at %d to %d", i, j)
			}
		}
	}
}

func TestSizeCaps(t *testing.T) {
	f := newDraft(t)
	f.unsigned = tlv(context1Constructed, attribute("\x2a\x03", octets(make([]byte, 60<<10))))
	opts := Options{Roots: []*x509.Certificate{testRoot(t)}}
	if _, err := verifyToken(f.build(t), opts); err != nil {
		t.Errorf("below the cap: %v", err)
	}
	f.unsigned = tlv(context1Constructed, attribute("\x2a\x03", octets(make([]byte, 64<<10))))
	large := f.build(t)
	for name, err := range map[string]error{
		"token":            second(Parse(large)),
		"response":         second(ParseResponse(make([]byte, MaxResponseSize+1))),
		"token to wrap":    second(MarshalResponse(large)),
		"token in between": second(ParseResponse(seq(seq(integer(0)), tlv(0x30, make([]byte, MaxTokenSize))))),
	} {
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s above the cap: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestNesting gives the parsers deeply nested data, on which a recursive parser runs out of stack.
func TestNesting(t *testing.T) {
	indefinite, _ := hex.DecodeString("3080")
	var definite []byte
	for len(definite) < MaxRequestSize-8 {
		definite = tlv(0x30, definite)
	}
	for name, bomb := range map[string][]byte{
		"indefinite, small": bytes.Repeat(indefinite, MaxRequestSize/2),
		"indefinite":        bytes.Repeat(indefinite, MaxTokenSize/2),
		"indefinite, large": bytes.Repeat(indefinite, 5<<20),
		"definite":          definite,
	} {
		for _, err := range []error{second(Parse(bomb)), second(ParseResponse(bomb))} {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestIndefiniteLengthsRefused: the same content in BER with indefinite lengths is refused.
func TestIndefiniteLengthsRefused(t *testing.T) {
	token := newDraft(t).build(t)
	header := len(token) - len(contentsOf(token))
	ber := slices.Concat([]byte{0x30, 0x80}, token[header:], []byte{0, 0})
	must.Fail(t, ErrMalformed)(Parse(ber))
	long := slices.Concat([]byte{0x30, 0x83, 0}, token[2:])
	must.Fail(t, ErrMalformed)(Parse(long))
}

func contentsOf(der []byte) []byte {
	d, s := decode(der, len(der), "element")
	return d.read(&s, 0x30, "element")
}

// seed adds the golden vectors of one kind as seeds. testdata/fuzz has further seeds.
func seed(f *testing.F, kind string) {
	for _, v := range loadVectors(f) {
		data := must.Get(os.ReadFile(v.path(kind)))(f)
		f.Add(data)
	}
	f.Add(bytes.Repeat([]byte{0x30, 0x80}, 100))
}

// FuzzParseResponse: a token that is taken out of a response and wrapped again is the same token.
func FuzzParseResponse(f *testing.F) {
	seed(f, ".tsr")
	f.Add(seq(seq(integer(2), seq(tlv(asn1.UTF8String, []byte("no"))), tlv(asn1.BIT_STRING, []byte{7, 0x80}))))
	f.Fuzz(func(t *testing.T, data []byte) {
		token, err := ParseResponse(data)
		if err != nil {
			return
		}
		again := must.Get(ParseResponse(must.Get(MarshalResponse(token))(t)))(t)
		if !bytes.Equal(again, token) || !bytes.Contains(data, token) {
			t.Errorf("%x became %x", token, again)
		}
	})
}

// FuzzParse: a token that parses gives the same result when parsed again, and a token that verifies was signed by the
// mock.
func FuzzParse(f *testing.F) {
	seed(f, ".tst")
	mock := NewMock()
	opts := Options{Roots: mock.Certificates()[1:], Intermediates: mock.Certificates()[:1], UnsafeAllowMock: true}
	signed := map[string]bool{}
	for _, v := range loadVectors(f) {
		signed[v.Imprint+v.Serial] = true
	}
	compareCertificates := cmp.Comparer(func(a, b *x509.Certificate) bool { return a.Equal(b) })
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := Parse(data)
		if err != nil {
			return
		}
		info := u.UnverifiedInfo()
		again := must.Get(Parse(data))(t).UnverifiedInfo()
		if diff := cmp.Diff(info, again, compareInts, compareOIDs, compareCertificates); diff != "" {
			t.Error(diff)
		}
		if !bytes.Contains(data, genTime(formatGenTime(info.GenTime))) {
			t.Errorf("genTime %v does not occur in the token in this form", info.GenTime)
		}
		token, err := u.Verify(info.Imprint, opts)
		if err == nil && !signed[hex.EncodeToString(info.Imprint[:])+token.Serial.Text(16)] {
			t.Errorf("%x verifies", data)
		}
	})
}
