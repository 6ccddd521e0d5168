package evidence

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/must"
)

const richPayload = `{"agent_id":"a","context":["c",{"d":1.5}],"metadata":{"a/b":1,"m~n":{"deep":[2]},"plain":"x","é":"y"},"model":"m",
	"model_version":"m-1","parameters":{"temperature":0.2},"prompt":"p\n","request_id":"r","response":{"text":"s"},
	"timestamp":"2026-01-31T16:15:00Z","tools_used":["t"],"chain_id":"chain","chain_position":2,"saw":["` + someDigest + `"]}`

// richRecord has every part that a record can have.
func richRecord(t testing.TB) *Record {
	t.Helper()
	r := seal(t, richPayload, []string{"/prompt", "/metadata/a~1b", "/metadata/m~0n", "/tools_used"},
		testSigner(t, Ed25519), testSigner(t, ES256), testSigner(t, RS256))
	r.Timestamps = []Timestamp{{Kind: RFC3161, Token: []byte("one token")}, {Kind: RFC3161, Token: []byte("another")}}
	r.Log = &LogProof{LogCounts: LogCounts{ChainSeq: 2}, Index: 7, Proof: [][]byte{bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)},
		Checkpoint: "log.example\n8\nAAAA\n\n— log.example é\"\\/\n"}
	r.Certificates = [][]byte{[]byte("a certificate")}
	return r
}

func TestRecordFile(t *testing.T) {
	for name, r := range map[string]*Record{"plain": seal(t, testPayload, nil), "rich": richRecord(t)} {
		t.Run(name, func(t *testing.T) {
			file := marshalRecord(t, r)
			opened := must.Get(Open(file))(t)
			if again := marshalRecord(t, opened); !bytes.Equal(again, file) {
				t.Errorf("it marshals to %s\nwant           %s", again, file)
			}
			if form, err := canonicalOf(file); err != nil || form != string(file) {
				t.Errorf("the file is not canonical: %v", err)
			}
			if diff := differences(r, opened); diff != nil {
				t.Errorf("the record has other %s", diff)
			}
			if diff := cmp.Diff(r.Payload, opened.Payload); diff != "" {
				t.Errorf("payload (-sealed +opened):\n%s", diff)
			}
			if err := check(t, opened); err != nil {
				t.Error(err)
			}
		})
	}
}

// canonicalOf makes the canonical form with Canonical. Marshal uses other code.
func canonicalOf(file []byte) (string, error) {
	form, err := Canonical(file)
	return string(form) + "\n", err
}

// check verifies what a record shows without a trust file: its signatures and its disclosures.
func check(t testing.TB, r *Record) error {
	var errs []error
	for i, signer := range r.Payload.Signers {
		errs = append(errs, r.CheckSignature(i, testKey(t, signer.Algorithm).Public()))
	}
	return errors.Join(append(errs, r.CheckDisclosures())...)
}

// differences names the parts in which two records differ.
func differences(a, b *Record) []string {
	var names []string
	for name, same := range map[string]bool{
		"payload":      bytes.Equal(a.canonical, b.canonical),
		"digest":       a.Digest == b.Digest,
		"signatures":   slices.EqualFunc(a.Signatures, b.Signatures, bytes.Equal),
		"timestamps":   slices.EqualFunc(a.Timestamps, b.Timestamps, func(a, b Timestamp) bool { return cmp.Equal(a, b) }),
		"log":          cmp.Equal(a.Log, b.Log),
		"disclosures":  slices.EqualFunc(a.Disclosures, b.Disclosures, func(a, b Disclosure) bool { return cmp.Equal(a, b) }),
		"certificates": slices.EqualFunc(a.Certificates, b.Certificates, bytes.Equal),
	} {
		if !same {
			names = append(names, name)
		}
	}
	return names
}

// everyByte is whether tests change every byte in every way. The short form changes each in one of the ways, in turn.
var everyByte = os.Getenv("JURAT_TEST_LONG") != ""

// ways are those of several ways in which the byte at a place is changed.
func ways(at int, all ...byte) []byte {
	if everyByte {
		return all
	}
	return all[at%len(all):][:1]
}

// TestFlippedRecord changes every byte of a record file in four ways. A changed file that still opens differs from the
// record in one part. Either the record itself refutes that part, or others prove it: authorities prove time stamps, the
// log proves the log proof, and CAs prove certificates.
func TestFlippedRecord(t *testing.T) {
	r := richRecord(t)
	file := marshalRecord(t, r)
	outcomes := map[string]int{}
	for i := range file {
		for _, bits := range ways(i, 1, 2, 0x20, 0x80) {
			damaged := bytes.Clone(file)
			damaged[i] ^= bits
			opened, err := Open(damaged)
			if err != nil {
				outcomes["refused"]++
				if opened != nil {
					t.Fatalf("byte %d: Open returned a record with the error", i)
				}
				continue
			}
			outcomes[wantRefuted(t, r, opened, i)]++
		}
	}
	t.Log(outcomes)
	for _, part := range []string{"refused", "signatures", "disclosures", "timestamps", "log", "certificates"} {
		if outcomes[part] == 0 {
			t.Errorf("no flipped byte ended as %s: the test does not reach it", part)
		}
	}
}

// wantRefuted checks that a damaged record that opens is refuted. It returns the part that was damaged.
func wantRefuted(t *testing.T, r, opened *Record, at int) string {
	t.Helper()
	diff := differences(r, opened)
	if len(diff) != 1 {
		t.Fatalf("byte %d: the record opens and differs in %v", at, diff)
	}
	switch part := diff[0]; part {
	case "signatures":
		if err := check(t, opened); !errors.Is(err, ErrSignature) {
			t.Fatalf("byte %d: another signature, and the check says %v", at, err)
		}
		if opened.Imprint() == r.Imprint() {
			t.Fatalf("byte %d: another signature with the same imprint", at)
		}
	case "disclosures":
		if err := check(t, opened); !errors.Is(err, ErrDisclosure) {
			t.Fatalf("byte %d: another disclosure, and the check says %v", at, err)
		}
	case "timestamps", "log", "certificates":
	default:
		t.Fatalf("byte %d: the record opens and has another %s", at, part)
	}
	return diff[0]
}

// TestErrorsPointIntoTheFile checks that an error in the payload gives its place in the file, not in the payload.
func TestErrorsPointIntoTheFile(t *testing.T) {
	file := string(marshalRecord(t, richRecord(t)))
	damaged := strings.Replace(file, `"temperature":0.2`, `"temperature":-0`, 1)
	_, err := Open([]byte(damaged))
	wantSyntax(t, err, "/payload/parameters/temperature", int64(strings.Index(damaged, `-0}`)), "negative zero")

	damaged = strings.Replace(file, `"log":{`, `"log":{"x":1,`, 1)
	_, err = Open([]byte(damaged))
	var syntax *SyntaxError
	if !errors.As(err, &syntax) || syntax.Pointer != "/log/x" {
		t.Errorf("error is %v, want one at /log/x", err)
	}
	damaged = strings.Replace(file, `"digest":`, ` "digest":`, 1)
	_, err = Open([]byte(damaged))
	wantSyntax(t, err, "/digest", int64(strings.Index(damaged, ` "digest"`)), "not in the one form")
	_, err = Open([]byte(file[:100]))
	wantSyntax(t, err, "", 100, "must end with a line feed")
}

func TestOpenParts(t *testing.T) {
	r := richRecord(t)
	parts := must.Get(OpenParts(r.Canonical(), r.Signatures, r.Timestamps))(t)
	diff := differences(r, parts)
	slices.Sort(diff)
	if want := []string{"certificates", "disclosures", "log"}; !slices.Equal(diff, want) {
		t.Errorf("differs in %v, want %v", diff, want)
	}
	for i := range r.Canonical() { // a changed payload that parses has another digest, so its signatures must not hold
		damaged, err := OpenParts(flipped(r.Canonical(), i), r.Signatures, nil)
		if err == nil && (damaged.Digest == r.Digest || check(t, damaged) == nil) {
			t.Fatalf("byte %d: accepted", i)
		}
	}
}

func TestImprint(t *testing.T) {
	r := richRecord(t)
	if r.Imprint() != sha256.Sum256(slices.Concat(r.Signatures[0], r.Signatures[1], r.Signatures[2])) {
		t.Error("the imprint is not the hash of the joined signatures")
	}
}

// TestSignersAreSigned checks that removing a signature together with its signer's name is detected.
func TestSignersAreSigned(t *testing.T) {
	r := seal(t, testPayload, nil, testSigner(t, Ed25519), testSigner(t, ES256))
	m := must.Get(membersOf(r.Canonical()))(t)
	m["signers"] = marshal(r.Payload.Signers[:1])
	stripped := must.Get(OpenParts(m.canonical(), r.Signatures[:1], nil))(t)
	wantBadSignature(t, stripped.CheckSignature(0, testKey(t, Ed25519).Public()))
}

// TestDeepest seals a payload with the maximum nesting, apart and not. The record file around it is nested deeper, and
// must open.
func TestDeepest(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1)
	doc := strings.Replace(testPayload, `"prompt":"p"`, `"prompt":`+deep, 1)
	for _, apart := range [][]string{nil, {"/prompt"}} {
		r := seal(t, doc, apart)
		if _, err := Open(marshalRecord(t, r)); err != nil {
			t.Errorf("apart %v: %v", apart, err)
		}
		bundle := &Bundle{Records: []*Record{r}}
		file := must.Get(bundle.Marshal())(t)
		if _, err := ParseBundle(file); err != nil {
			t.Errorf("apart %v: %v", apart, err)
		}
	}
	_, err := ParseDraft([]byte(strings.Replace(doc, deep, "["+deep+"]", 1)))
	wantSyntax(t, err, "/prompt"+strings.Repeat("/0", MaxDepth-1), int64(strings.Index(doc, deep)+MaxDepth-1), "nested deeper")
}

// TestFloods checks records with very many time stamps or commitments. The time must grow linearly with their number.
// With quadratic time, these sizes took minutes.
func TestFloods(t *testing.T) {
	t.Run("time stamps", func(t *testing.T) {
		stamps := make([]Timestamp, 500_000)
		for i := range stamps {
			stamps[i] = Timestamp{Kind: RFC3161, Token: fmt.Append(nil, i)}
		}
		if err := checkTimestamps(stamps); err != nil {
			t.Error(err)
		}
		if err := checkTimestamps(append(stamps, stamps[17])); err == nil || !strings.Contains(err.Error(), "timestamp 500000: the same token twice") {
			t.Error(err)
		}
	})
	t.Run("commitments", func(t *testing.T) {
		r := &Record{}
		var metadata, pointers []string
		for i := range 20_000 {
			d := Disclosure{Pointer: fmt.Sprintf("/metadata/%06d", i), Salt: make([]byte, saltSize), Value: []byte("1")}
			metadata = append(metadata, fmt.Sprintf("%q:%q", strings.TrimPrefix(d.Pointer, "/metadata/"), d.commitment()))
			pointers = append(pointers, fmt.Sprintf("%q", d.Pointer))
			r.Payload.SealedApart, r.Disclosures = append(r.Payload.SealedApart, d.Pointer), append(r.Disclosures, d)
		}
		r.canonical = []byte(`{"metadata":{` + strings.Join(metadata, ",") + `},"sealed_apart":[` + strings.Join(pointers, ",") + `]}`)
		m := must.Get(membersOf(r.canonical))(t)
		if err := checkApart(m, r.Payload.SealedApart, rules[ModelOutput]); err != nil {
			t.Error(err)
		}
		if err := r.CheckDisclosures(); err != nil {
			t.Error(err)
		}
		r.Disclosures[19_999].Value = []byte("2")
		if err := r.CheckDisclosures(); err == nil {
			t.Error("the one false value was not detected")
		}
	})
}
