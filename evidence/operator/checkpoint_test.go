package operator

import (
	"crypto/ed25519"
	"crypto/sha256"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/internal/must"
)

func logKey(t *testing.T, name string) (note.Signer, note.Verifier) {
	t.Helper()
	seed := strings.NewReader(strings.Repeat(name+" key of a test ", 8))
	private, public, err := note.GenerateKey(seed, name)
	if err != nil {
		t.Fatal(err)
	}
	signer := must.Get(note.NewSigner(private))(t)
	verifier := must.Get(note.NewVerifier(public))(t)
	return signer, verifier
}

// vector is the empty log's checkpoint, written by hand from C2SP tlog-checkpoint.
const vector = "jurat.example/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"

func TestCheckpointText(t *testing.T) {
	text, err := FormatCheckpoint(Checkpoint{Origin: "jurat.example/log", Root: sha256.Sum256(nil)})
	if err != nil || text != vector {
		t.Fatalf("FormatCheckpoint = %q, %v; want %q", text, err, vector)
	}
	c, err := ParseCheckpoint(text)
	if err != nil || c != (Checkpoint{Origin: "jurat.example/log", Root: sha256.Sum256(nil)}) {
		t.Fatalf("ParseCheckpoint = %+v, %v", c, err)
	}
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
		if c, err := ParseCheckpoint(text); err == nil {
			t.Errorf("%s: parsed as %+v", name, c)
		}
	}
}

// TestLargestCheckpoint: a checkpoint's size may be at most the number of entries that a log can index.
func TestLargestCheckpoint(t *testing.T) {
	largest := Checkpoint{Origin: "a", Size: MaxEntries}
	text := must.Get(FormatCheckpoint(largest))(t)
	if c, err := ParseCheckpoint(text); err != nil || c != largest {
		t.Errorf("%+v, %v", c, err)
	}
	largest.Size++
	if text, err := FormatCheckpoint(largest); err == nil {
		t.Errorf("formatted: %q", text)
	}
}

func TestCheckpointSignature(t *testing.T) {
	signer, verifier := logKey(t, "jurat.example/log")
	other, otherVerifier := logKey(t, "other.example/log")
	c := Checkpoint{Origin: "jurat.example/log", Size: 7, Root: tlog.RecordHash([]byte("x"))}
	signed := must.Get(SignCheckpoint(c, signer))(t)
	if got, err := OpenCheckpoint(signed, verifier); err != nil || got != c {
		t.Fatalf("OpenCheckpoint = %+v, %v", got, err)
	}
	if _, err := OpenCheckpoint(signed, otherVerifier); err == nil {
		t.Error("opened with another log's key")
	}
	if _, err := SignCheckpoint(c, other); err == nil {
		t.Error("signed with a key of another name")
	}
	foreign := must.Get(note.Sign(&note.Note{Text: strings.Replace(vector, "jurat.", "third.", 1)}, signer))(t)
	if _, err := OpenCheckpoint(string(foreign), verifier); err == nil {
		t.Error("opened another log's text under this log's key")
	}
	for i := range len(signed) {
		changed := []byte(signed)
		changed[i] ^= 1
		if got, err := OpenCheckpoint(string(changed), verifier); err == nil && got != c {
			t.Errorf("byte %d changed: opened as %+v", i, got)
		}
	}
}

func TestLogKeysAreReadStrictly(t *testing.T) {
	good := testLogKey(t)
	if key, err := LogPublicKey(good); err != nil || len(key) != ed25519.PublicKeySize {
		t.Fatalf("%x, %v", key, err)
	}
	name, rest, _ := strings.Cut(good, "+")
	for _, bad := range []string{"", name, name + "+" + rest[:9], name + "+00000000" + rest[8:], name + "+" + strings.ToUpper(rest[:8]) + rest[8:], good + "\n",
		good[:len(good)-4], testCosigners[0].String()} {
		if key, err := LogPublicKey(bad); err == nil {
			t.Errorf("%q is %x", bad, key)
		}
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
		if _, err := OpenCheckpoint(note, testLogVerifier(t)); err == nil {
			t.Errorf("%s: opened", name)
		}
		if _, err := Cosignatures(note, &one.Witness); err == nil && strings.Contains(note, one.Name()) {
			t.Errorf("%s: the cosignature is taken", name)
		}
	}
	if _, err := OpenCheckpoint(cosigned+"— who.example AAAAAAAA\n", testLogVerifier(t)); err != nil {
		t.Error(err)
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add(vector)
	f.Add("a\n18\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCheckpoint(text)
		if err != nil {
			return
		}
		if again, err := FormatCheckpoint(c); err != nil || again != text {
			t.Errorf("%q parsed, and formats as %q, %v", text, again, err)
		}
	})
}
