package operator

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/test/must"
)

func logKey(t *testing.T, name string) (note.Signer, note.Verifier) {
	t.Helper()
	seed := strings.NewReader(strings.Repeat(name+" key of a test ", 8))
	private, public, err := note.GenerateKey(seed, name)
	must.Do(t, err)
	signer := must.Get(note.NewSigner(private))(t)
	verifier := must.Get(note.NewVerifier(public))(t)
	return signer, verifier
}

// vector is the empty log's checkpoint, written by hand from C2SP tlog-checkpoint.
const vector = "jurat.example/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"

func TestCheckpointText(t *testing.T) {
	text, err := FormatCheckpoint(Checkpoint{Origin: "jurat.example/log", Root: sha256.Sum256(nil)})
	must.Need(t, err == nil && text == vector, "FormatCheckpoint = %q, %v; want %q", text, err, vector)
	c, err := ParseCheckpoint(text)
	must.Need(t, err == nil && c == (Checkpoint{Origin: "jurat.example/log", Root: sha256.Sum256(nil)}), "ParseCheckpoint = %+v, %v", c, err)
}

func TestCheckpointRefused(t *testing.T) {
	const root = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	for name, text := range map[string]string{
		"empty":             "",
		"no origin":         "\n0\n" + root + "\n",
		"control in origin": "a\tb\n0\n" + root + "\n",
		"bad UTF-8":         "a\xff\n0\n" + root + "\n",
		"negative size":     "a\n-1\n" + root + "\n",
		"plus sign":         "a\n+1\n" + root + "\n",
		"leading zero":      "a\n01\n" + root + "\n",
		"huge size":         "a\n9223372036854775808\n" + root + "\n",
		"more than a log":   "a\n9007199254740992\n" + root + "\n",
		"beyond tlog":       "a\n4611686018427387905\n" + root + "\n",
		"hex size":          "a\n0x1\n" + root + "\n",
		"short root":        "a\n0\nAAAA\n",
		"loose bits":        "a\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=\n",
		"carriage return":   "a\n0\n" + root[:8] + "\r" + root[8:] + "\n",
		"no last line feed": "a\n0\n" + root,
		"extension line":    "a\n0\n" + root + "\nmore\n",
		"text of tlog":      string(tlog.FormatTree(tlog.Tree{N: 0, Hash: sha256.Sum256(nil)})) + "x",
	} {
		c, err := ParseCheckpoint(text)
		must.Hold(t, err != nil, "%s: parsed as %+v", name, c)
	}
}

// TestLargestCheckpoint: a checkpoint's size may be at most the number of entries that a log can index.
func TestLargestCheckpoint(t *testing.T) {
	largest := Checkpoint{Origin: "a", Size: MaxEntries}
	text := must.Get(FormatCheckpoint(largest))(t)
	must.Give(ParseCheckpoint(text))(t, largest)
	largest.Size++
	text, err := FormatCheckpoint(largest)
	must.Hold(t, err != nil, "formatted: %q", text)
}

func TestCheckpointSignature(t *testing.T) {
	signer, verifier := logKey(t, "jurat.example/log")
	other, otherVerifier := logKey(t, "other.example/log")
	c := Checkpoint{Origin: "jurat.example/log", Size: 7, Root: tlog.RecordHash([]byte("x"))}
	signed := must.Get(SignCheckpoint(c, signer))(t)
	got, err := OpenCheckpoint(signed, verifier)
	must.Need(t, err == nil && got == c, "OpenCheckpoint = %+v, %v", got, err)
	must.Refuse(t, "", "opened with another log's key")(OpenCheckpoint(signed, otherVerifier))
	must.Refuse(t, "", "signed with a key of another name")(SignCheckpoint(c, other))
	foreign := must.Get(note.Sign(&note.Note{Text: strings.Replace(vector, "jurat.", "third.", 1)}, signer))(t)
	must.Refuse(t, "", "opened another log's text under this log's key")(OpenCheckpoint(string(foreign), verifier))
	for i := range len(signed) {
		changed := []byte(signed)
		changed[i] ^= 1
		got, err := OpenCheckpoint(string(changed), verifier)
		must.Hold(t, err != nil || got == c, "byte %d changed: opened as %+v", i, got)
	}
}

func TestLogKeysAreReadStrictly(t *testing.T) {
	good := testLogKey(t)
	key, err := LogPublicKey(good)
	must.Need(t, err == nil && len(key) == ed25519.PublicKeySize, "%x, %v", key, err)
	name, rest, _ := strings.Cut(good, "+")
	for _, bad := range []string{"", name, name + "+" + rest[:9], name + "+00000000" + rest[8:], name + "+" + strings.ToUpper(rest[:8]) + rest[8:], good + "\n",
		good[:len(good)-4], testCosigners[0].String()} {
		key, err := LogPublicKey(bad)
		must.Hold(t, err != nil, "%q is %x", bad, key)
	}
}

// TestNotesAreReadStrictly: a checkpoint with a line that verifiers refute is not taken, whoever signed the line.
func TestNotesAreReadStrictly(t *testing.T) {
	one, strict := testCosigners[0], signedTestCheckpoint(t)
	text, line, _ := strings.Cut(strict, "\n\n")
	cosigned := strict + one.Cosign(text+"\n", cosignTime)
	loose := func(lines string) string { // with unused bits that are set
		bare := strings.TrimRight(lines, "=\n")
		return bare[:len(bare)-1] + string(bare[len(bare)-1]+1) + lines[len(bare):]
	}
	for name, note := range map[string]string{
		"the log's":               loose(strict),
		"the log's, again":        strict + loose(line),
		"a witness's":             loose(cosigned),
		"a witness's, again":      cosigned + loose(one.Cosign(text+"\n", cosignTime)),
		"a stranger's":            cosigned + "— who.example AAAAAAAAAB==\n",
		"with a carriage return":  cosigned + "— who.example AAAA\rAAAA\n",
		"a stranger's, the first": text + "\n\n— who.example AAAAAAAAAB==\n" + line,
	} {
		must.Refuse(t, "", name)(OpenCheckpoint(note, testLogVerifier(t)))
		_, err := Cosignatures(note, &one.Witness)
		must.Hold(t, err != nil || !strings.Contains(note, one.Name()), "%s: the cosignature is taken", name)
	}
	must.Fail(t, nil)(OpenCheckpoint(cosigned+"— who.example AAAAAAAA\n", testLogVerifier(t)))
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add(vector)
	f.Add("a\n18\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCheckpoint(text)
		if err != nil {
			return
		}
		must.Give(FormatCheckpoint(c))(t, text)
	})
}

// grownLog is a log of n entries as tlog stores it: its roots at each size, and its hashes.
func grownLog(t testing.TB, n int64) ([]Checkpoint, tlog.HashReader) {
	t.Helper()
	var hashes []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		list := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			list[i] = hashes[index]
		}
		return list, nil
	})
	roots := []Checkpoint{{Origin: "jurat.example/log", Root: EmptyRoot()}}
	for i := range n {
		more := must.Get(tlog.StoredHashes(i, fmt.Appendf(nil, "entry %d", i), reader))(t)
		hashes = append(hashes, more...)
		root := must.Get(tlog.TreeHash(i+1, reader))(t)
		roots = append(roots, Checkpoint{Origin: "jurat.example/log", Size: i + 1, Root: root})
	}
	return roots, reader
}

func proofBetween(t testing.TB, from, to int64, hashes tlog.HashReader) *Consistency {
	t.Helper()
	c := &Consistency{Origin: "jurat.example/log", From: from, To: to}
	if from > 0 {
		proof := must.Get(tlog.ProveTree(to, from, hashes))(t)
		c.Proof = proof
	}
	return c
}

// TestConsistency checks every pair of sizes against the proof of every other pair. Only the right proof fits.
func TestConsistency(t *testing.T) {
	const n = 9
	roots, hashes := grownLog(t, n)
	for from := int64(0); from <= n; from++ {
		for to := from; to <= n; to++ {
			c := proofBetween(t, from, to, hashes)
			file := must.Get(c.Marshal())(t)
			again, err := ParseConsistency(file)
			must.Need(t, err == nil, "%s: %v", file, err)
			must.Want(t, again.Check(roots[from], roots[to]), nil, from, "to", to)
			for i := range again.Proof {
				again.Proof[i][3] ^= 1
				must.Hold(t, again.Check(roots[from], roots[to]) != nil, "%d to %d: node %d is not looked at", from, to, i)
				again.Proof[i][3] ^= 1
			}
			again.Proof = append(again.Proof, tlog.Hash{})
			must.Hold(t, again.Check(roots[from], roots[to]) != nil, "%d to %d: a node too many", from, to)
			must.Hold(t, (from >= n || c.Check(roots[from+1], roots[to]) != nil) && (to >= n || c.Check(roots[from], roots[to+1]) != nil),
				"%d to %d: fits other sizes", from, to)
			forged := roots[from]
			forged.Root[0] ^= 1
			must.Hold(t, c.Check(forged, roots[to]) != nil, "%d to %d: fits another root", from, to)
		}
	}
}

// TestConsistencyIsOfTheseCheckpoints: a proof shows nothing about checkpoints of another log, or of another size.
func TestConsistencyIsOfTheseCheckpoints(t *testing.T) {
	roots, hashes := grownLog(t, 9)
	for name, change := range map[string]func(small, large *Checkpoint){
		"the smaller is another log's": func(small, large *Checkpoint) { small.Origin = "other.example/log" },
		"the larger is another log's":  func(small, large *Checkpoint) { large.Origin = "other.example/log" },
		"the smaller has another size": func(small, large *Checkpoint) { *small = roots[4] },
		"the larger has another size":  func(small, large *Checkpoint) { large.Size = 8 },
	} {
		small, large := roots[5], roots[9]
		change(&small, &large)
		err := proofBetween(t, 5, 9, hashes).Check(small, large)
		must.Hold(t, err != nil && !errors.Is(err, ErrFork), "%s: %v", name, err)
	}
}

// TestConsistencyShowsForks changes the smaller root at every size. A proof from the larger log's own nodes must show
// the fork. A changed proof must not show one, and nor must a proof about a log with one history.
func TestConsistencyShowsForks(t *testing.T) {
	const n = 17
	roots, hashes := grownLog(t, n)
	for from := int64(1); from < n; from++ {
		other := roots[from]
		other.Root[0] ^= 1
		for to := from + 1; to <= n; to++ {
			c := proofBetween(t, from, to, hashes)
			power := from&(from-1) == 0
			err := c.Check(other, roots[to])
			must.Hold(t, err != nil && errors.Is(err, ErrFork) != power, "%d to %d, as RFC 9162 has it: %v", from, to, err)
			if power {
				c.Proof = append([]tlog.Hash{roots[from].Root}, c.Proof...)
			}
			must.Want(t, c.Check(other, roots[to]), ErrFork, from, "to", to)
			must.Want(t, c.Check(roots[from], roots[to]), nil, from, "to", to)
			for i := range c.Proof {
				c.Proof[i][3] ^= 1
				for _, small := range []Checkpoint{roots[from], other} {
					err := c.Check(small, roots[to])
					must.Hold(t, err != nil && !errors.Is(err, ErrFork), "%d to %d, with node %d changed: %v", from, to, i, err)
				}
				c.Proof[i][3] ^= 1
			}
			for _, nodes := range [][]tlog.Hash{nil, c.Proof[1:], c.Proof[:len(c.Proof)-1], append(c.Proof[:len(c.Proof):len(c.Proof)], tlog.Hash{})} {
				made := *c
				made.Proof = nodes
				err := made.Check(other, roots[to])
				must.Hold(t, err != nil && !errors.Is(err, ErrFork), "%d to %d, with %d nodes instead of %d: %v", from, to, len(nodes), len(c.Proof), err)
			}
		}
	}
	same := roots[5]
	same.Root[0] ^= 1
	must.Want(t, proofBetween(t, 5, 5, hashes).Check(same, roots[5]), ErrFork)
	begun := roots[0]
	begun.Root[0] ^= 1
	must.Want(t, proofBetween(t, 0, 5, hashes).Check(begun, roots[5]), ErrFork)
}

func TestConsistencyRefused(t *testing.T) {
	node := strings.Repeat("A", 43) + "="
	tests := []struct{ name, doc, says string }{
		{"no line feed", `{"format":"jurat/consistency/v1","from":1,"origin":"a","proof":[],"to":1}`, "line feed"},
		{"another format", `{"format":"jurat/bundle/v1","from":1,"origin":"a","proof":[],"to":1}` + "\n", "/format"},
		{"sizes the wrong way round", `{"format":"jurat/consistency/v1","from":2,"origin":"a","proof":[],"to":1}` + "\n", "the smaller first"},
		{"a size too large", `{"format":"jurat/consistency/v1","from":1,"origin":"a","proof":[],"to":9007199254740992}` + "\n", "the smaller first"},
		{"a negative size", `{"format":"jurat/consistency/v1","from":-2,"origin":"a","proof":[],"to":1}` + "\n", "the smaller first"},
		{"no name", `{"format":"jurat/consistency/v1","from":1,"origin":"","proof":[],"to":1}` + "\n", "origin"},
		{"a node of other length", `{"format":"jurat/consistency/v1","from":1,"origin":"a","proof":["AAAA"],"to":2}` + "\n", "/proof/0"},
		{"too many nodes", `{"format":"jurat/consistency/v1","from":1,"origin":"a","proof":["` + strings.Repeat(node+`","`, 64) + node + `"],"to":2}` + "\n", "at most 64"},
		{"more members", `{"format":"jurat/consistency/v1","from":1,"more":1,"origin":"a","proof":[],"to":1}` + "\n", "more"},
		{"a size twice", `{"format":"jurat/consistency/v1","from":1,"from":1,"origin":"a","proof":[],"to":1}` + "\n", "twice"},
		{"another order", `{"from":1,"format":"jurat/consistency/v1","origin":"a","proof":[],"to":1}` + "\n", "one form"},
		{"null for a list", `{"format":"jurat/consistency/v1","from":1,"origin":"a","proof":null,"to":1}` + "\n", "one form"},
		{"a space", `{"format":"jurat/consistency/v1","from":1,"origin":"a","proof":[], "to":1}` + "\n", "one form"},
	}
	for _, tt := range tests {
		c, err := ParseConsistency([]byte(tt.doc))
		must.Hold(t, err != nil && c == nil && strings.Contains(err.Error(), tt.says), "%s: %+v, error %v; want one about %q", tt.name, c, err, tt.says)
	}
	var syntax *evidence.SyntaxError
	_, err := ParseConsistency([]byte(tests[1].doc))
	must.Hold(t, errors.As(err, &syntax), "%v names no place", err)
}

// FuzzParseConsistency: a proof that parses marshals back to the same bytes, and Check does not panic on it.
func FuzzParseConsistency(f *testing.F) {
	roots, hashes := grownLog(f, 7)
	file := must.Get(proofBetween(f, 3, 7, hashes).Marshal())(f)
	f.Add(file)
	f.Add([]byte(`{"format":"jurat/consistency/v1","from":0,"origin":"a","proof":[],"to":9007199254740991}` + "\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		c, err := ParseConsistency(file)
		if err != nil {
			return
		}
		again, err := c.Marshal()
		must.Need(t, err == nil && bytes.Equal(again, file), "%q parses and marshals to %q, %v", file, again, err)
		must.Need(t, c.Check(roots[3], roots[7]) != nil || c.From == 3 && c.To == 7, "%q fits other sizes", file)
		small, large := roots[3], roots[7]
		small.Origin, small.Size, large.Origin, large.Size = c.Origin, c.From, c.Origin, c.To
		c.Check(small, large) // must not panic
	})
}

// TestLongEntries: a line that no entry can have is wrong, and no error of reading.
func TestLongEntries(t *testing.T) {
	for _, n := range []int{evidence.MaxEntry, evidence.MaxEntry + 1, evidence.MaxEntry + spelling, 2 * evidence.MaxEntry} {
		for _, end := range []string{"", "\n"} {
			must.Want(t, ReadEntries(strings.NewReader(strings.Repeat(" ", n)+end), nil), ErrEntries, n, "bytes and", end)
		}
	}
}

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
	got := cosigned([]byte(text), 1679315147)
	must.Hold(t, string(got) == want, "%q", got)
	c := testCosigners[0]
	line := c.Cosign(text, time.Unix(1679315147, 0))
	data, err := base64.StdEncoding.DecodeString(strings.Fields(line)[2])
	must.Need(t, err == nil && len(data) == 4+8+64, "%d bytes, %v", len(data), err)
	must.Hold(t, ed25519.Verify(c.PublicKey(), []byte(want), data[12:]), "the signature is not over the specified bytes")
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
		must.Hold(t, (err != nil) == test.wrong, "%s: %v", name, err)
		var names []string
		for _, c := range found {
			names = append(names, c.Witness.Name())
			must.Hold(t, strings.Contains(test.signed, c.Line) && !c.At.Before(cosignTime) && !c.At.After(cosignTime.Add(time.Second)),
				"%s: %s at %v", name, c.Line, c.At)
		}
		must.Hold(t, strings.Join(names, " ") == strings.Join(test.want, " "), "%s: %v", name, names)
	}
	must.Fail(t, nil)(OpenCheckpoint(both, testLogVerifier(t)))
}

// TestEveryByteOfACosignatureCounts flips each byte in turn.
func TestEveryByteOfACosignatureCounts(t *testing.T) {
	one := testCosigners[0]
	text := "log\n1\n" + base64.StdEncoding.EncodeToString(make([]byte, 32)) + "\n"
	data, err := base64.StdEncoding.DecodeString(strings.Fields(one.Cosign(text, cosignTime))[2])
	must.Need(t, err == nil && one.Verify([]byte(text), data[4:]), "%v", err)
	for i := range data[4:] {
		changed := bytes.Clone(data[4:])
		changed[i] ^= 1
		must.Hold(t, !one.Verify([]byte(text), changed), "byte %d", i)
	}
	for i := range text {
		changed := []byte(text)
		changed[i] ^= 1
		must.Hold(t, !one.Verify(changed, data[4:]), "byte %d of the text", i)
	}
}

func TestWitnessKeysAreReadStrictly(t *testing.T) {
	c := testCosigners[0]
	w, err := ParseWitness(c.String())
	must.Need(t, err == nil && w.String() == c.String() && w.Name() == c.Name() && w.KeyHash() == c.KeyHash(), "%v, %v", w, err)
	again, err := ParseCosigner(c.MarshalPrivate())
	must.Need(t, err == nil && again.String() == c.String(), "%v, %v", again, err)
	for n := range 64 { // some of them have a plus sign in their base64
		some := testCosigner(byte(n), "w")
		again, err := ParseCosigner(some.MarshalPrivate())
		must.Hold(t, err == nil && again.String() == some.String(), "%s: %v", some, err)
		w, err := ParseWitness(some.String())
		must.Hold(t, err == nil && w.String() == some.String(), "%s: %v", some, err)
	}
	name, rest, _ := strings.Cut(c.String(), "+")
	small := append([]byte{cosignatureType}, make([]byte, ed25519.PublicKeySize)...) // a point of small order
	log := testLogKey(t)
	for _, bad := range []string{"", name, name + "+" + strings.ToUpper(rest), name + "+00000000" + rest[8:], "x" + c.String(), c.String() + "+", c.String() + "\n", c.String()[:len(c.String())-1],
		log, "a b+" + rest, "+" + rest, "w+00000000+" + base64.StdEncoding.EncodeToString(small)} {
		w, err := ParseWitness(bad)
		must.Hold(t, err != nil, "%q is %v", bad, w)
	}
	for _, bad := range []string{"", c.String(), c.MarshalPrivate() + "+", strings.Replace(c.MarshalPrivate(), "PRIVATE", "private", 1), strings.Replace(c.MarshalPrivate(), "w1", "w2", 1)} {
		must.Refuse(t, "", bad)(ParseCosigner(bad))
	}
	for _, bad := range []string{"", "a b", "a+b", "a\nb", "a\u00a0b", "a\xff"} {
		must.Refuse(t, "", "the name", bad)(GenerateCosigner(nil, bad))
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
	must.Do(t, err)
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
