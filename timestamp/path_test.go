package timestamp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	stdasn1 "encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/test/must"
)

// scalarKey returns a key on a curve that is the same in every run.
func scalarKey(t *testing.T, curve elliptic.Curve, size int) crypto.Signer {
	scalar := slices.Repeat([]byte{1}, size)
	return must.Get(ecdsa.ParseRawPrivateKey(curve, scalar))(t)
}

// TestCertificateRules breaks one rule at a time about the signer's certificate.
func TestCertificateRules(t *testing.T) {
	root, rootKey := authorityCA(t, "ca", nil, nil)
	unknown := func(critical bool) pkix.Extension {
		return pkix.Extension{Id: stdasn1.ObjectIdentifier{1, 2, 3}, Critical: critical, Value: null()}
	}
	keyUsage := func(bits byte) func(c *x509.Certificate) {
		return func(c *x509.Certificate) {
			c.KeyUsage = 0
			c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{
				Id: stdasn1.ObjectIdentifier{2, 5, 29, 15}, Critical: true, Value: []byte{3, 2, 0, bits}})
		}
	}
	purposes := func(critical bool, purposes ...stdasn1.ObjectIdentifier) func(c *x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtraExtensions = []pkix.Extension{usage(critical, purposes...)} }
	}
	for _, rule := range []struct {
		name   string
		change func(c *x509.Certificate)
		want   error
	}{
		{"correct", func(c *x509.Certificate) {}, nil},
		{"no extended key usage", func(c *x509.Certificate) { c.ExtraExtensions = nil }, ErrUsage},
		{"extended key usage not critical", purposes(false, timeStamping), ErrUsage},
		{"extended key usage for two purposes", purposes(true, timeStamping, codeSigning), ErrUsage},
		{"extended key usage for an unknown purpose too", purposes(true, timeStamping, stdasn1.ObjectIdentifier{1, 2, 3}), ErrUsage},
		{"extended key usage twice the same", purposes(true, timeStamping, timeStamping), ErrUsage},
		{"extended key usage for another purpose", purposes(true, codeSigning), ErrUsage},
		{"no key usage", func(c *x509.Certificate) { c.KeyUsage = 0 }, nil},
		{"key usage nonRepudiation", keyUsage(0x40), nil},
		{"key usage keyEncipherment", keyUsage(0x20), ErrUsage},
		{"key usage for nothing", func(c *x509.Certificate) {
			c.KeyUsage = 0
			c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{
				Id: stdasn1.ObjectIdentifier{2, 5, 29, 15}, Critical: true, Value: []byte{3, 1, 0}})
		}, ErrUsage},
		{"unknown extension", func(c *x509.Certificate) { c.ExtraExtensions = append(c.ExtraExtensions, unknown(false)) }, nil},
		{"unknown critical extension", func(c *x509.Certificate) { c.ExtraExtensions = append(c.ExtraExtensions, unknown(true)) }, ErrUntrusted},
		{"expired before genTime", func(c *x509.Certificate) { c.NotAfter = testTime.Add(-time.Second) }, ErrUntrusted},
		{"valid only after genTime", func(c *x509.Certificate) { c.NotBefore = testTime.Add(time.Second) }, ErrUntrusted},
		{"expired since", func(c *x509.Certificate) { c.NotAfter = testTime.Add(time.Second) }, nil},
	} {
		t.Run(rule.name, func(t *testing.T) {
			template := leaf()
			rule.change(template)
			c := issueTest(t, template, testKey("leaf").Public(), root, rootKey)
			_, err := verifyToken(draftBy(c, testKey("leaf")).build(t), Options{Roots: []*x509.Certificate{root}})
			checkError(t, err, rule.want)
		})
	}
}

// TestKeyRules signs with every kind of key, accepted and not.
func TestKeyRules(t *testing.T) {
	root, rootKey := authorityCA(t, "ca", nil, nil)
	pss := func(hash, mask string, salt int64) []byte {
		return seq(oid(oidRSAPSS), seq(
			tlv(context0Constructed, seq(oid(hash))),
			tlv(context1Constructed, seq(oid(oidMGF1), seq(oid(mask)))),
			tlv(context2Constructed, integer(salt)),
		))
	}
	pssOptions := &rsa.PSSOptions{SaltLength: 32, Hash: crypto.SHA256}
	p256, p384, p521 := testKey("leaf"), scalarKey(t, elliptic.P384(), 48), scalarKey(t, elliptic.P521(), 66)
	long := rsaKey(2048)

	for _, rule := range []struct {
		name   string
		key    crypto.Signer
		change func(f *draft)
		want   error
	}{
		{"P-256", p256, func(f *draft) {}, nil},
		{"P-384", p384, func(f *draft) { f.digests(crypto.SHA384, oidSHA384, oidECDSAWithSHA384) }, nil},
		{"P-521", p521, func(f *draft) { f.digests(crypto.SHA512, oidSHA512, oidECDSAWithSHA512) }, ErrAlgorithm},
		{"RSA-2048", long, func(f *draft) { f.signatureAlgorithm = seq(oid(oidRSA), null()) }, nil},
		{"RSA-2048 with SHA-512", long, func(f *draft) { f.digests(crypto.SHA512, oidSHA512, oidSHA512WithRSA) }, nil},
		{"RSA-2048 with SHA-384", long, func(f *draft) { f.digests(crypto.SHA384, oidSHA384, oidSHA384WithRSA) }, nil},
		{"RSA-2048, digest of another", long, func(f *draft) { f.signatureAlgorithm = seq(oid(oidSHA384WithRSA), null()) }, ErrAlgorithm},
		{"RSA-2048, parameters of another kind", long, func(f *draft) { f.signatureAlgorithm = seq(oid(oidRSA), integer(0)) }, ErrAlgorithm},
		{"RSA-2048 spoilt", long, func(f *draft) {
			f.signatureAlgorithm = seq(oid(oidRSA), null())
			f.spoil = func(s []byte) []byte { s[9] ^= 1; return s }
		}, ErrSignature},
		{"RSA-1024", rsaKey(1024), func(f *draft) { f.signatureAlgorithm = seq(oid(oidRSA), null()) }, ErrAlgorithm},
		{"RSA-PSS", long, func(f *draft) { f.options, f.signatureAlgorithm = pssOptions, pss(oidSHA256, oidSHA256, 32) }, nil},
		{"RSA-PSS, another salt", long, func(f *draft) { f.options, f.signatureAlgorithm = pssOptions, pss(oidSHA256, oidSHA256, 31) }, ErrSignature},
		{"RSA-PSS, salt automatic", long, func(f *draft) { f.options, f.signatureAlgorithm = pssOptions, pss(oidSHA256, oidSHA256, 0) }, ErrAlgorithm},
		{"RSA-PSS, salt negative", long, func(f *draft) { f.options, f.signatureAlgorithm = pssOptions, pss(oidSHA256, oidSHA256, -1) }, ErrAlgorithm},
		{"RSA-PSS, another mask", long, func(f *draft) { f.options, f.signatureAlgorithm = pssOptions, pss(oidSHA256, oidSHA512, 32) }, ErrAlgorithm},
		{"RSA-PSS, another digest", long, func(f *draft) { f.options, f.signatureAlgorithm = pssOptions, pss(oidSHA512, oidSHA256, 32) }, ErrAlgorithm},
		{"RSA-PSS without parameters", long, func(f *draft) { f.options, f.signatureAlgorithm = pssOptions, seq(oid(oidRSAPSS)) }, ErrAlgorithm},
	} {
		t.Run(rule.name, func(t *testing.T) {
			f := draftFor(t, rule.key, root, rootKey)
			rule.change(f)
			_, err := verifyToken(f.build(t), Options{Roots: []*x509.Certificate{root}})
			checkError(t, err, rule.want)
		})
	}
	t.Run("Ed25519", func(t *testing.T) {
		key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
		f := draftFor(t, key, root, rootKey)
		f.options = crypto.Hash(0)
		_, err := verifyToken(f.build(t), Options{Roots: []*x509.Certificate{root}})
		checkError(t, err, ErrAlgorithm)
	})
}

func draftFor(t *testing.T, key crypto.Signer, root *x509.Certificate, rootKey crypto.Signer) *draft {
	return draftBy(issueTest(t, leaf(), key.Public(), root, rootKey), key)
}

// TestConstrainedAuthority: what a CA above an authority may certify. verify has the whole table.
func TestConstrainedAuthority(t *testing.T) {
	root, rootKey := authorityCA(t, "ca", nil, nil)
	of := func(list asn1.Tag, base ...byte) []byte { return tlv(48, tlv(list, tlv(48, base))) }
	directory := func(name pkix.RDNSequence) []byte {
		return tlv(0xa4, must.Get(stdasn1.Marshal(name))(t))
	}
	others := directory(pkix.Name{CommonName: "another"}.ToRDNSequence())
	own := directory(leaf().Subject.ToRDNSequence())
	for _, tt := range []struct {
		name  string
		value []byte
		key   crypto.Signer
		want  error
	}{
		{"none", nil, testKey("middle"), nil},
		{"its name is permitted", of(0xa0, own...), testKey("middle"), nil},
		{"another name is permitted", of(0xa0, others...), testKey("middle"), ErrUntrusted},
		{"its name is excluded", of(0xa1, own...), testKey("middle"), ErrUntrusted},
		{"another name is excluded", of(0xa1, others...), testKey("middle"), nil},
		{"only hosts are limited", of(0xa0, tlv(0x82, []byte("a.example"))...), testKey("middle"), nil},
		{"a kind that is not checked", of(0xa1, tlv(0x88, []byte{42, 3, 4})...), testKey("middle"), ErrUntrusted},
		{"RSA-2048", nil, rsaKey(2048), nil},
		{"RSA-1024", nil, rsaKey(1024), ErrUntrusted},
	} {
		for _, critical := range []bool{false, true} {
			template := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "middle"}, NotBefore: testNotBefore, NotAfter: testNotAfter,
				BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign}
			if tt.value != nil {
				template.ExtraExtensions = []pkix.Extension{{Id: stdasn1.ObjectIdentifier{2, 5, 29, 30}, Critical: critical, Value: tt.value}}
			}
			middle := issueTest(t, template, tt.key.Public(), root, rootKey)
			_, err := verifyToken(draftFor(t, testKey("leaf"), middle, tt.key).build(t), Options{Roots: []*x509.Certificate{root}, Intermediates: []*x509.Certificate{middle}})
			t.Run(tt.name, func(t *testing.T) { checkError(t, err, tt.want) })
		}
	}
}

func TestPaths(t *testing.T) {
	root, rootKey := authorityCA(t, "ca", nil, nil)
	middle, middleKey := authorityCA(t, "middle", root, rootKey)
	c := issueTest(t, leaf(), testKey("leaf").Public(), middle, middleKey)
	roots := []*x509.Certificate{root}
	token := draftBy(c, testKey("leaf")).build(t)

	t.Run("intermediate missing", func(t *testing.T) {
		_, err := verifyToken(token, Options{Roots: roots})
		checkError(t, err, ErrUntrusted)
	})
	t.Run("intermediate given", func(t *testing.T) {
		got, err := verifyToken(token, Options{Roots: roots, Intermediates: []*x509.Certificate{middle}})
		checkError(t, err, nil)
		must.Hold(t, len(got.Chain) == 3 && got.Chain[0].Equal(c) && got.Chain[1].Equal(middle) && got.Chain[2].Equal(root), "chain %v", got.Chain)
	})
	t.Run("intermediate embedded", func(t *testing.T) {
		f := draftBy(c, testKey("leaf"))
		f.certificates = tlv(context0Constructed, middle.Raw, c.Raw)
		_, err := verifyToken(f.build(t), Options{Roots: roots})
		checkError(t, err, nil)
	})
	t.Run("root embedded is not trusted", func(t *testing.T) {
		f := draftBy(c, testKey("leaf"))
		f.certificates = tlv(context0Constructed, c.Raw, middle.Raw, root.Raw)
		_, err := verifyToken(f.build(t), Options{})
		checkError(t, err, ErrUntrusted)
	})
	t.Run("intermediate for another purpose", func(t *testing.T) {
		template := &x509.Certificate{
			SerialNumber: middle.SerialNumber, Subject: middle.Subject, NotBefore: testNotBefore, NotAfter: testNotAfter,
			BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		web := issueTest(t, template, middleKey.Public(), root, rootKey)
		_, err := verifyToken(token, Options{Roots: roots, Intermediates: []*x509.Certificate{web}})
		checkError(t, err, ErrUntrusted)
	})
	t.Run("another certificate with the signer's issuer and serial number first", func(t *testing.T) {
		decoy := issueTest(t, leaf(), testKey("decoy").Public(), middle, middleKey)
		f := draftBy(c, testKey("leaf"))
		f.certificates = tlv(context0Constructed, decoy.Raw, c.Raw, middle.Raw)
		got, err := verifyToken(f.build(t), Options{Roots: roots})
		checkError(t, err, nil)
		must.Hold(t, got.Signer.Equal(c), "Verify took the other certificate for the signer's")
	})
	t.Run("a forger's own certificate with the same names", func(t *testing.T) {
		forged, forgedKey := authorityCA(t, "forger", nil, nil)
		f := draftFor(t, testKey("forger's leaf"), forged, forgedKey)
		_, err := verifyToken(f.build(t), Options{Roots: roots})
		checkError(t, err, ErrUntrusted)
	})
	t.Run("the zero time, which crypto/x509 takes for now", func(t *testing.T) {
		template := leaf()
		template.NotBefore, template.NotAfter = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
		valid := issueTest(t, template, testKey("leaf").Public(), middle, middleKey)
		f := draftBy(valid, testKey("leaf"))
		f.genTime = genTime("00010101000000Z")
		_, err := verifyToken(f.build(t), Options{Roots: []*x509.Certificate{valid}})
		checkError(t, err, ErrUntrusted)
	})
}

// TestBetween: of the certificates that a stranger supplies, Between leaves out those whose check takes too long, and
// keeps only a few of the slow ones.
func TestBetween(t *testing.T) {
	ca := func(name string, bits uint, exponent int) *x509.Certificate {
		key := &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), bits-1), E: exponent}
		return &x509.Certificate{Subject: pkix.Name{CommonName: name}, PublicKey: key}
	}
	elliptic := &x509.Certificate{Subject: pkix.Name{CommonName: "elliptic"}, PublicKey: testKey("x").Public()}
	given := []*x509.Certificate{ca("too long", 8193, 65537), ca("slow 1", 8192, 65537), ca("odd", 2048, 3), ca("exponent", 8192, 1<<31-1),
		elliptic, ca("slow 2", 4097, 65537), ca("slow 3", 8192, 65537), ca("small exponent", 2048, 65539), ca("plain", 4096, 65537)}
	var got []string
	for _, c := range Between(given) {
		got = append(got, c.Subject.CommonName)
	}
	want := []string{"slow 1", "odd", "elliptic", "slow 2", "plain"}
	must.Hold(t, slices.Equal(got, want), "%v, want %v", got, want)
}

// TestCertificatesOfATokenAreCounted: a token can contain a thousand certificates; Verify reads only the first ones.
func TestCertificatesOfATokenAreCounted(t *testing.T) {
	other, _ := authorityCA(t, "not needed", nil, nil)
	for before, want := range map[int]error{0: nil, 15: nil, 16: ErrNoCertificate} {
		f := newDraft(t)
		certificates := append(slices.Repeat([][]byte{other.Raw}, before), testCertificate(t).Raw, seq(), other.Raw)
		f.certificates = tlv(context0Constructed, certificates...)
		_, err := verifyToken(f.build(t), Options{Roots: []*x509.Certificate{testRoot(t)}})
		checkError(t, err, want)
	}
}

// namedAlike makes CA certificates that all have the same subject and issuer name, and signatures by keys that no
// verifier knows.
func namedAlike(t testing.TB, root *x509.Certificate, tag string, n int) (list []*x509.Certificate) {
	t.Helper()
	for i := range n {
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), RawSubject: root.RawSubject, NotBefore: testNotBefore,
			NotAfter: testNotAfter, BasicConstraintsValid: true, IsCA: true}
		key := testKey(fmt.Sprint(tag, i))
		list = append(list, issueTest(t, template, key.Public(), &x509.Certificate{RawSubject: root.RawSubject}, key))
	}
	return list
}

// TestSteps checks the number of steps that a search may take by the names in it. Find tries the certificates only if
// that number is small enough.
func TestSteps(t *testing.T) {
	root, rootKey := authorityCA(t, "ca", nil, nil)
	elsewhere, _ := authorityCA(t, "elsewhere", nil, nil)
	c := issueTest(t, leaf(), testKey("leaf").Public(), root, rootKey)
	many := namedAlike(t, root, "alike", 4)
	for _, tt := range []struct {
		name    string
		between []*x509.Certificate
		roots   []*x509.Certificate
		steps   int
		want    error
	}{
		{"the root alone", nil, []*x509.Certificate{root}, 1, nil},
		{"the root between, too, and twice", []*x509.Certificate{root, root, c}, []*x509.Certificate{root}, 1, nil},
		{"one more of its name", many[:1], []*x509.Certificate{root}, 3, nil},
		{"the same twice", append(many[:1:1], many[0]), []*x509.Certificate{root}, 3, nil},
		{"three more", many[:3], []*x509.Certificate{root}, 31, nil},
		{"four more", many, []*x509.Certificate{root}, maxOfRecord + 1, ErrEffort},
		{"names that lead nowhere", many, []*x509.Certificate{elsewhere}, 0, x509.UnknownAuthorityError{}},
		{"no root", many, nil, 0, x509.UnknownAuthorityError{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := Search{From: c, Between: tt.between, Roots: tt.roots, At: testTime, Usage: x509.ExtKeyUsageTimeStamping}
			share := NewShare()
			paths, err := share.Find(q)
			var unknown x509.UnknownAuthorityError
			switch {
			case tt.want == nil && (err != nil || len(paths) != 1):
				t.Errorf("%d paths, %v", len(paths), err)
			case tt.want == ErrEffort && !errors.Is(err, ErrEffort):
				t.Error(err)
			case errors.As(tt.want, &unknown) && !errors.As(err, &unknown):
				t.Error(err)
			}
			must.Hold(t, tt.want != nil || share.spent == tt.steps, "%d steps, want %d", share.spent, tt.steps)
			q.Between = q.candidates()
			got := q.count()
			must.Hold(t, tt.want != ErrEffort || got >= tt.steps, "%d steps, want %d", got, tt.steps)
			must.Hold(t, tt.steps != 0 || share.spent == 0, "%d steps although the names rule out every path", share.spent)
		})
	}
}

// A request is a search with a number, and the steps that it takes.
type request struct{ key, steps int }

// run makes the searches of a record, and returns for each whether it has an answer.
func run(s *Share, requests []request) (answers string) {
	for _, r := range requests {
		a := s.once([32]byte{byte(r.key), byte(r.key >> 8)}, r.steps, nil, func() answer { return answer{} })
		answers += fmt.Sprint(a.err == nil, " ")
	}
	return answers
}

// TestBudget checks the limit for one record, which pays for a search once, and the limit for all records.
func TestBudget(t *testing.T) {
	b := NewBudget()
	next := func(want string, requests ...request) {
		t.Helper()
		s := b.Share()
		got := run(s, requests)
		must.Hold(t, got == want && b.Settle(s), "%v: %s, want %s", requests, got, want)
	}
	next("true true false true true ", request{1, 100}, request{2, 20}, request{3, 9}, request{4, 8}, request{1, 100})
	next("true false true ", request{1, 100}, request{3, 29}, request{3, 28})
	for b.left >= 96 {
		next("true ", request{1, maxOfRecord})
	}
	left := b.left + addedByEach
	next("false true true false ", request{5, left + 1}, request{2, 20}, request{6, left - 20}, request{7, 1})
	next("true false ", request{6, addedByEach}, request{7, 1})
}

// TestBudgetInAnyOrder: records that are examined before their turn get the same answers as in sequence.
func TestBudgetInAnyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	anew := 0
	for round := range 300 {
		one := &Budget{random.IntN(600)}
		many := &Budget{one.left}
		for i := range 20 {
			var record []request
			for range random.IntN(6) {
				key := random.IntN(40)
				record = append(record, request{key, 1 + key*key%100})
			}
			turn, ahead := one.Share(), NewShare()
			want, got := run(turn, record), run(ahead, record)
			one.Settle(turn)
			if !many.Settle(ahead) {
				anew++
				ahead = many.Share()
				got = run(ahead, record)
				must.Need(t, many.Settle(ahead), "Settle refused a share that was taken in its turn")
			}
			must.Need(t, got == want && one.left == many.left, "round %d, record %d: %s and %d left, want %s and %d", round, i, got, many.left, want, one.left)
		}
	}
	must.Hold(t, anew != 0, "no record was examined again")
}

// TestHostileCertificates: if a token has more certificates than Verify may try, the error says so, and the token is not
// refuted.
func TestHostileCertificates(t *testing.T) {
	root, rootKey := authorityCA(t, "ca", nil, nil)
	c := issueTest(t, leaf(), testKey("leaf").Public(), root, rootKey)
	for n, want := range map[int]error{3: nil, 4: ErrEffort} {
		f := draftBy(c, testKey("leaf"))
		members := [][]byte{c.Raw}
		for _, other := range namedAlike(t, root, "hostile", n) {
			members = append(members, other.Raw)
		}
		f.certificates = tlv(context0Constructed, members...)
		_, err := verifyToken(f.build(t), Options{Roots: []*x509.Certificate{root}})
		checkError(t, err, want)
	}
}

// TestMemory: with a memory, each question gets the same answer as without.
func TestMemory(t *testing.T) {
	key, root := testKey("tsa"), testRoot(t)
	certificate := must.Get(NewCertificate(CertificateConfig{
		Key: key, Serial: big.NewInt(3), NotBefore: testNotBefore, NotAfter: testTime.Add(time.Hour)}, root, testKey("root")))(t)
	authority := must.Get(NewAuthority(AuthorityConfig{Key: key, Certificate: certificate, Now: func() time.Time { return testTime }}))(t)
	issue := func() []byte { return must.Get(authority.Issue(&Request{Imprint: testImprint, CertReq: true}))(t) }
	early := issue()

	m := NewMemory()
	verify := func(token []byte, o Options) error {
		o.Memory = m
		u := must.Get(m.Parse(token))(t)
		got, err := u.Verify(testImprint, o)
		o.Memory = nil
		plain := must.Get(Parse(token))(t)
		want, wantErr := plain.Verify(testImprint, o)
		must.Need(t, (err == nil) == (wantErr == nil) && (err == nil || err.Error() == wantErr.Error()), "with a memory %v, without %v", err, wantErr)
		must.Need(t, err != nil || slices.EqualFunc(got.Chain, want.Chain, (*x509.Certificate).Equal), "with a memory, Verify returned another path")
		return err
	}
	trusted := Options{Roots: []*x509.Certificate{root}}
	for range 2 {
		must.Do(t, verify(early, trusted))
	}
	must.Hold(t, len(m.answers) == 1 && len(m.certificates) == 1, "%d paths, %d certificates", len(m.answers), len(m.certificates))
	must.Want(t, verify(early, Options{}), ErrUntrusted)
	// The same token, renewed while the certificate was valid, and renewed later.
	renewed := Options{Roots: []*x509.Certificate{root}, Until: testTime.Add(time.Minute)}
	must.Want(t, verify(early, renewed), nil)
	renewed.Until = testTime.Add(2 * time.Hour)
	must.Want(t, verify(early, renewed), ErrExpired)
	// A token of the same certificate from after its end.
	f := draftBy(certificate, key)
	f.genTime = tlv(asn1.GeneralizedTime, []byte(formatGenTime(testTime.Add(2*time.Hour))))
	late := f.build(t)
	must.Want(t, verify(late, trusted), ErrUntrusted)
	must.Do(t, verify(early, trusted))
}

// TestMemoryIsBounded: new certificates in each token must not fill the memory.
func TestMemoryIsBounded(t *testing.T) {
	m := NewMemory()
	for i := range 2 * maxAnswers {
		a := m.remember([32]byte{byte(i), byte(i >> 8), 1}, func() answer { return answer{paths: Paths{{{}}}} })
		must.Need(t, a.err == nil && len(a.paths) == 1, "%v", a)
	}
	must.Hold(t, len(m.answers) <= maxAnswers, "%d answers", len(m.answers))
}
