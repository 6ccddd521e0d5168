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
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence/jsonform"
	"jurat/internal/test/must"
)

// testBundle has three records of one log.
func testBundle(t testing.TB) *Bundle {
	t.Helper()
	b := &Bundle{Checkpoint: "log.example\n9\nAAAA\n\n— log.example BBBB\n"}
	for i := range 3 {
		draft := must.Get(ParseDraft([]byte(richPayload)))(t)
		id := fmt.Sprintf("019c14d6-13a0-7000-8000-%012d", i)
		r := must.Get(draft.SealingApart(nil, "/prompt").Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: id, Random: new(counter)}))(t)
		r.Log = &LogProof{ChainSeq: int64(i + 1), Index: int64(2 * i), Proof: [][]byte{bytes.Repeat([]byte{byte(i)}, 32)}}
		r.Timestamps = []Timestamp{{Kind: RFC3161, Token: []byte("token")}}
		b.Records = append(b.Records, r)
	}
	return b
}

func marshalBundle(t testing.TB, b *Bundle) []byte {
	t.Helper()
	return must.Get(b.Marshal())(t)
}

func TestBundleFile(t *testing.T) {
	for name, b := range map[string]*Bundle{"three": testBundle(t), "none": {}} {
		file := marshalBundle(t, b)
		parsed, err := ParseBundle(file)
		must.Need(t, err == nil, "%v %v", name, err)
		again := marshalBundle(t, parsed)
		must.Hold(t, bytes.Equal(again, file), "%s: it marshals to %s\nwant %s", name, again, file)
		must.Give(canonicalOf(file))(t, string(file), name)
		must.Hold(t, parsed.Checkpoint == b.Checkpoint && len(parsed.Records) == len(b.Records),
			"%s: checkpoint %q, %d records", name, parsed.Checkpoint, len(parsed.Records))
		for i, r := range parsed.Records {
			diff := differences(b.Records[i], r)
			must.Hold(t, diff == nil && check(t, r) == nil, "%s: record %d differs in %v", name, i, diff)
		}
	}
}

// TestFlippedBundle changes every byte of a bundle file. The error gives the index and the record_id of the damaged
// record.
func TestFlippedBundle(t *testing.T) {
	b := testBundle(t)
	file := marshalBundle(t, b)
	owner := owners(t, b, file)
	outcomes := map[string]int{}
	for i := range file {
		for _, bits := range ways(i, 1, 0x22) {
			damaged := bytes.Clone(file)
			damaged[i] ^= bits
			parsed, err := ParseBundle(damaged)
			if err == nil {
				outcomes[wantOneRefuted(t, b, parsed, owner[i], i)]++
				continue
			}
			must.Need(t, parsed == nil, "byte %d: ParseBundle returned a bundle with the error", i)
			outcomes["refused"]++
			outcomes[wantNamed(t, b, file, err, owner[i], i)]++
		}
	}
	t.Log(outcomes)
	must.Hold(t, outcomes["without its name"] <= outcomes["with its name"]/100, "%v", "more than 1 % of the errors do not name the damaged record")
}

// owners returns for each byte of the file the index of the record that it belongs to, or -1.
func owners(t *testing.T, b *Bundle, file []byte) []int {
	t.Helper()
	owner := bytes.Repeat([]byte{0xff}, len(file))
	for i, r := range b.Records {
		doc := bytes.TrimSuffix(marshalRecord(t, r), []byte("\n"))
		at := bytes.Index(file, doc)
		must.Need(t, at >= 0, "the bundle does not contain record %d byte for byte", i)
		copy(owner[at:], bytes.Repeat([]byte{byte(i)}, len(doc)))
	}
	list := make([]int, len(file))
	for i, o := range owner {
		list[i] = int(int8(o))
	}
	return list
}

// wantNamed checks that an error says which record is damaged, and never names another.
func wantNamed(t *testing.T, b *Bundle, file []byte, err error, owner, at int) string {
	t.Helper()
	var named *RecordError
	if !errors.As(err, &named) {
		must.Need(t, owner < 0, "byte %d, in record %d: error is %v", at, owner, err)
		return "outside the records"
	}
	if owner < 0 {
		return "between the records"
	}
	if named.Index == owner+1 && strings.Contains(err.Error(), "not in log order") {
		return "the next record" // two places contradict each other, and the second is named
	}
	must.Need(t, named.Index == owner, "byte %d, in record %d: error is %v", at, owner, err)
	id := b.Records[owner].Payload.RecordID
	start := bytes.Index(file, []byte(`"record_id":"`+id+`"`))
	switch end := start + len(`"record_id":"`+id+`"`); {
	case start <= at && at < end:
		return "in its name"
	case named.RecordID == id:
		return "with its name"
	case named.RecordID == "" && at < start: // the damage hides the name
		return "without its name"
	}
	t.Fatalf("byte %d, in %s: error names %q", at, id, named.RecordID)
	return ""
}

// wantOneRefuted requires that a bundle with one changed byte differs in one record only, and passes that record to
// wantRefuted.
func wantOneRefuted(t *testing.T, b, parsed *Bundle, owner, at int) string {
	t.Helper()
	if owner < 0 {
		must.Need(t, parsed.Checkpoint != b.Checkpoint, "byte %d: the bundle parses, and nothing in it has changed", at)
		return "checkpoint"
	}
	for i, r := range parsed.Records {
		must.Need(t, i == owner || differences(b.Records[i], r) == nil, "byte %d, in record %d: record %d differs", at, owner, i)
	}
	return wantRefuted(t, b.Records[owner], parsed.Records[owner], at)
}

func TestBundleRefused(t *testing.T) {
	file := string(marshalBundle(t, testBundle(t)))
	for name, test := range map[string]struct{ file, want string }{
		"no line feed":     {strings.TrimSuffix(file, "\n"), "not in the one form"},
		"another format":   {strings.Replace(file, BundleFormat, "jurat/bundle/v2", 1), `at /format: want "jurat/bundle/v1"`},
		"no format":        {strings.Replace(file, `"format":"jurat/bundle/v1",`, "", 1), "at /format"},
		"empty checkpoint": {`{"checkpoint":"","format":"jurat/bundle/v1","records":[]}` + "\n", "not in the one form"},
		"null records":     {`{"format":"jurat/bundle/v1","records":null}` + "\n", "it has no array of records"},
		"no records":       {`{"format":"jurat/bundle/v1"}` + "\n", "it has no array of records"},
		"null record":      {`{"format":"jurat/bundle/v1","records":[null]}` + "\n", "record 0 of the bundle (unreadable id)"},
		"unknown member":   {`{"format":"jurat/bundle/v1","more":1,"records":[]}` + "\n", "at /more"},
		"order of members": {`{"records":[],"format":"jurat/bundle/v1"}` + "\n", "not in the one form"},
		"a record file":    {string(marshalRecord(t, richRecord(t))), "unknown"},
		"too deep":         {`{"format":"jurat/bundle/v1","records":[{"payload":` + strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5) + "}]}\n", "nested deeper"},
	} {
		must.Refuse(t, test.want, name)(ParseBundle([]byte(test.file)))
	}
}

// TestBundlePlaces checks the order of records, on reading and on writing.
func TestBundlePlaces(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(*Bundle)
		index  int
		want   string
	}{
		"order":                {func(b *Bundle) { b.Records[1].Log.Index = 0 }, 1, "index 0 after 0"},
		"order past a gap":     {func(b *Bundle) { b.Records[1].Log = nil; b.Records[2].Log.Index = 0 }, 2, "index 0 after 0"},
		"swapped":              {func(b *Bundle) { b.Records[0], b.Records[1] = b.Records[1], b.Records[0] }, 1, "index 0 after 2"},
		"a record twice":       {func(b *Bundle) { b.Records[2] = b.Records[1] }, 2, "has this record twice"},
		"an id twice":          {sameID, 2, "has this record twice"},
		"checkpoint of itself": {func(b *Bundle) { b.Records[2].Log.Checkpoint = "c" }, 2, "its own checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			b := testBundle(t)
			test.damage(b)
			form := bundleForm{Checkpoint: b.Checkpoint, Format: BundleFormat}
			for _, r := range b.Records {
				form.Records = append(form.Records, must.Get(jsonform.Encode(must.Get(r.form())(t)))(t))
			}
			file := must.Get(jsonform.Encode(form))(t)
			_, reading := ParseBundle(append(file, '\n'))
			_, writing := b.Marshal()
			for _, err := range []error{reading, writing} {
				var named *RecordError
				if !errors.As(err, &named) || named.Index != test.index || !strings.Contains(err.Error(), test.want) ||
					named.RecordID != b.Records[test.index].Payload.RecordID {
					t.Errorf("error is %v, want one of record %d: … %s …", err, test.index, test.want)
				}
			}
		})
	}
}

// sameID gives the last record another prompt and the id of the one before it.
func sameID(b *Bundle) {
	r, before := b.Records[2], b.Records[1]
	r.canonical = bytes.Replace(r.canonical, []byte(r.Payload.RecordID), []byte(before.Payload.RecordID), 1)
	r.canonical = bytes.Replace(r.canonical, []byte(`"agent_id":"`), []byte(`"agent_id":"other `), 1)
	r.Digest, r.Payload.RecordID = DigestOf(r.canonical), before.Payload.RecordID
}

// TestBundleBrokenOff cuts a bundle file at every byte. What is left is no bundle, and the error is not that of the file's end.
func TestBundleBrokenOff(t *testing.T) {
	file := marshalBundle(t, testBundle(t))
	for n := range len(file) - len("\n") {
		_, _, err := ReadWholeBundle(file[:n])
		syntax := (*SyntaxError)(nil)
		must.Need(t, errors.As(err, &syntax), "after %d bytes: %v", n, err)
	}
}

// TestBundleReadOnce: what proves the order of the records comes after them, where nobody can look ahead.
func TestBundleReadOnce(t *testing.T) {
	const checkpoint, anchors = `"checkpoint":"c"`, `"anchors":[{"checkpoint":"c","consistency":[],"timestamps":[["AA=="]]}]`
	const format = `"format":"` + BundleFormat + `"`
	for _, file := range []string{`{` + format + `,"records":[],` + checkpoint + `}`, `{` + checkpoint + `,` + format + `,"records":[],` + anchors + `}`} {
		b := must.Get(ReadBundle(iotest.OneByteReader(strings.NewReader(file))))(t)
		must.Fail(t, ErrBehind, file)(b.Next())
	}
}

func TestIsBundle(t *testing.T) {
	bundle := marshalBundle(t, testBundle(t))
	about := strings.Replace(testPayload, `"prompt":"p"`, `"prompt":"what is jurat/bundle/v1?"`, 1)
	for name, test := range map[string]struct {
		file []byte
		want bool
	}{
		"bundle":                    {bundle, true},
		"bundle without checkpoint": {marshalBundle(t, &Bundle{}), true},
		"bundle, first byte gone":   {bundle[1:], true},
		"record":                    {marshalRecord(t, richRecord(t)), false},
		"record about bundles":      {marshalRecord(t, seal(t, about, nil)), false},
		"nothing":                   {nil, false},
	} {
		must.Equal(t, IsBundle(test.file), test.want, name)
	}
}

// TestNameOfADamagedRecord checks that the error names the payload's own record_id, not one inside its metadata, while
// the own one is readable.
func TestNameOfADamagedRecord(t *testing.T) {
	const other = "019c14d6-13a0-7000-8000-999999999999"
	r := seal(t, strings.Replace(testPayload, `"model":`, `"metadata":{"record_id":"`+other+`"},"model":`, 1), nil)
	one := strings.TrimSuffix(string(marshalRecord(t, r)), "\n")
	file := `{"format":"` + BundleFormat + `","records":[` + one + "," + one + "]}\n"
	for index, damage := range map[int]func(string) string{
		0: func(file string) string { return strings.Replace(file, `"signatures":`, `"signature":`, 1) },
		1: func(file string) string { return replaceSecond(file, `"signatures":[`, `"signatures":{`) }, // not JSON any more
	} {
		_, err := ParseBundle([]byte(damage(file)))
		var named *RecordError
		must.Hold(t, errors.As(err, &named) && named.RecordID == testID && named.Index == index,
			"error is %v, want one of record %d that names %s", err, index, testID)
	}
}

func replaceSecond(text, old, new string) string {
	first := strings.Index(text, old) + len(old)
	return text[:first] + strings.Replace(text[first:], old, new, 1)
}

// TestBundleWriterWritesWhatMarshalDoes: a bundle written record by record has the same bytes as one that Marshal
// writes.
func TestBundleWriterWritesWhatMarshalDoes(t *testing.T) {
	for n := range 4 {
		bundle := testBundle(t)
		bundle.Records = bundle.Records[:n]
		want := must.Get(bundle.Marshal())(t)
		var got bytes.Buffer
		w := must.Get(NewBundleWriter(&got, bundle.Checkpoint, bundle.Anchors))(t)
		for _, r := range bundle.Records {
			must.Do(t, w.Add(r))
		}
		must.Do(t, w.Close())
		must.Hold(t, bytes.Equal(got.Bytes(), want), "of %d records it wrote\n%s\nwant\n%s", n, got.Bytes(), want)
		for _, r := range bundle.Records {
			bare := *r
			bare.Log = nil
			must.Hold(t, w.Add(r) != nil && w.Add(&bare) != nil, "the writer accepted a record twice, or without a place in the log")
		}
	}
}

const richPayload = `{"agent_id":"a","context":["c",{"d":1.5}],"metadata":{"a/b":1,"m~n":{"deep":[2]},"plain":"x","é":"y"},"model":"m",
	"model_version":"m-1","parameters":{"temperature":0.2},"prompt":"p\n","request_id":"r","response":{"text":"s"},
	"timestamp":"2026-01-31T16:15:00Z","tools_used":["t"],"chain_id":"chain","chain_position":2,"saw":["` + someDigest + `"]}`

// richRecord has every part that a record can have.
func richRecord(t testing.TB) *Record {
	t.Helper()
	r := seal(t, richPayload, []string{"/prompt", "/metadata/a~1b", "/metadata/m~0n", "/tools_used"},
		testSigner(t, Ed25519), testSigner(t, ES256), testSigner(t, RS256))
	r.Timestamps = []Timestamp{{Kind: RFC3161, Token: []byte("one token")}, {Kind: RFC3161, Token: []byte("another")}}
	r.Log = &LogProof{ChainSeq: 2, Index: 7, Proof: [][]byte{bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)},
		Checkpoint: "log.example\n8\nAAAA\n\n— log.example é\"\\/\n"}
	r.Certificates = [][]byte{[]byte("a certificate")}
	return r
}

func TestRecordFile(t *testing.T) {
	for name, r := range map[string]*Record{"plain": seal(t, testPayload, nil), "rich": richRecord(t)} {
		t.Run(name, func(t *testing.T) {
			file := marshalRecord(t, r)
			opened := must.Get(Open(file))(t)
			again := marshalRecord(t, opened)
			must.Hold(t, bytes.Equal(again, file), "it marshals to %s\nwant           %s", again, file)
			must.Give(canonicalOf(file))(t, string(file), "the file is not canonical")
			diff := differences(r, opened)
			must.Hold(t, diff == nil, "the record has other %s", diff)
			must.Equal(t, cmp.Diff(r.Payload, opened.Payload), "")
			must.Want(t, check(t, opened), nil)
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
				must.Need(t, opened == nil, "byte %d: Open returned a record with the error", i)
				continue
			}
			outcomes[wantRefuted(t, r, opened, i)]++
		}
	}
	t.Log(outcomes)
	for _, part := range []string{"refused", "signatures", "disclosures", "timestamps", "log", "certificates"} {
		must.Hold(t, outcomes[part] != 0, "no flipped byte ended as %s: the test does not reach it", part)
	}
}

// wantRefuted checks that a damaged record that opens is refuted. It returns the part that was damaged.
func wantRefuted(t *testing.T, r, opened *Record, at int) string {
	t.Helper()
	diff := differences(r, opened)
	must.Need(t, len(diff) == 1, "byte %d: the record opens and differs in %v", at, diff)
	switch part := diff[0]; part {
	case "signatures":
		err := check(t, opened)
		must.Need(t, errors.Is(err, ErrSignature), "byte %d: another signature, and the check says %v", at, err)
		must.Need(t, opened.Imprint() != r.Imprint(), "byte %d: another signature with the same imprint", at)
	case "disclosures":
		err := check(t, opened)
		must.Need(t, errors.Is(err, ErrDisclosure), "byte %d: another disclosure, and the check says %v", at, err)
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
	must.Hold(t, errors.As(err, &syntax) && syntax.Pointer == "/log/x", "error is %v, want one at /log/x", err)
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
	want := []string{"certificates", "disclosures", "log"}
	must.Hold(t, slices.Equal(diff, want), "differs in %v, want %v", diff, want)
	for i := range r.Canonical() { // a changed payload that parses has another digest, so its signatures must not hold
		damaged, err := OpenParts(flipped(r.Canonical(), i), r.Signatures, nil)
		must.Need(t, err != nil || damaged.Digest != r.Digest && check(t, damaged) != nil, "byte %d: accepted", i)
	}
}

func TestImprint(t *testing.T) {
	r := richRecord(t)
	must.Equal(t, r.Imprint(), sha256.Sum256(slices.Concat(r.Signatures[0], r.Signatures[1], r.Signatures[2])))
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
		must.Fail(t, nil, "apart", apart)(Open(marshalRecord(t, r)))
		bundle := &Bundle{Records: []*Record{r}}
		file := must.Get(bundle.Marshal())(t)
		must.Fail(t, nil, "apart", apart)(ParseBundle(file))
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
		must.Want(t, checkTimestamps(stamps), nil)
		must.Say(t, checkTimestamps(append(stamps, stamps[17])), "timestamp 500000: the same token twice")
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
		must.Want(t, checkApart(m, r.Payload.SealedApart, rules[ModelOutput]), nil)
		must.Want(t, r.CheckDisclosures(), nil)
		r.Disclosures[19_999].Value = []byte("2")
		must.Say(t, r.CheckDisclosures(), "", "the one false value was not detected")
	})
}
