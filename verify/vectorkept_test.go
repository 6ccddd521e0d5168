package verify_test

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/verify"
	"jurat/verify/trust"
)

// A keptVector cannot be made again, because its keys or signatures are random. Its committed files are only verified.
// To make one again, delete its file.
type keptVector struct {
	name    string
	produce func(t *testing.T) given
}

// keptVectors are the existing vectors. With -update, missing ones are made.
func keptVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	for _, plan := range [][]keptVector{certificateVectors(t), revokedAuthorityVectors()} {
		for _, kept := range plan {
			g, found := committedVector(t, kept.name)
			if !found && *update {
				g = kept.produce(t)
				g.name = kept.name
			} else if !found {
				t.Errorf("there is no vector %s: make it with -update", kept.name)
				continue
			}
			list = append(list, g)
		}
	}
	return list
}

// committedVector reads what was given in a vector back from its files.
func committedVector(t *testing.T, name string) (g given, found bool) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join(vectorsDir, "manifest.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return given{}, false
	}
	var m vectorManifest
	if err == nil {
		err = json.Unmarshal(doc, &m)
	}
	must.Do(t, err)
	for _, v := range m.Verifications {
		if v.Name != name {
			continue
		}
		files := map[string][]byte{}
		for _, file := range slices.Concat([]string{v.File, v.Trust}, v.CRLs) {
			if files[file], err = os.ReadFile(filepath.Join(vectorsDir, file)); err != nil && file != "" {
				return given{}, false
			}
		}
		return given{name, files[v.File], files[v.Trust], readerOf(t, files, v), nil}, true
	}
	return given{}, false
}

func certificateVectors(t *testing.T) []keptVector {
	t.Helper()
	var list []keptVector
	for _, tt := range slices.Concat(certificateCases(t), oldListCases(t)) {
		list = append(list, keptVector{slug("certificate", tt.name), func(t *testing.T) given {
			r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
			public := must.Get(evidence.ParsePublicKey(o.Trust.Keys[0].PublicKey))(t)
			w := newWorld()
			tt.change(w)
			return givenRecord(t, tt.name, r, w.build(t, r, o, public))
		}})
	}
	return list
}

// revokedAuthorityVectors are tokens of an authority whose certificate is on its CA's list from half an hour before the
// token's time, or from an hour after it.
func revokedAuthorityVectors() []keptVector {
	before, after := stamped.Add(30*time.Minute), stamped.Add(2*time.Hour)
	vector := func(name string, entries []x509.RevocationListEntry) keptVector {
		return keptVector{slug("revoked authority", name), func(t *testing.T) given {
			house := jurattest.NewForStrangers(t)
			r, o := standaloneIn(t, house, output("a"))
			elsewhere, elsewheres, root, rootKey := stampedElsewhere(t)
			must.Need(t, r.Imprint() == elsewhere.Imprint(), "the two houses do not seal the same records")
			r.Timestamps, o.At, o.CRLs = elsewhere.Timestamps, elsewheres.At, nil
			o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) { trusted.Authorities = elsewheres.Trust.Authorities })
			if entries != nil {
				o.CRLs = []*x509.RevocationList{signList(t, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped.Add(3 * time.Hour),
					NextUpdate: stamped.AddDate(0, 1, 0), RevokedCertificateEntries: entries}, root, rootKey)}
			}
			return givenRecord(t, name, r, o)
		}}
	}
	return []keptVector{
		vector("not on the list", []x509.RevocationListEntry{}),
		vector("without a list", nil),
		vector("replaced afterwards", []x509.RevocationListEntry{revocationOf(6, after, 4)}),
		vector("closed before", []x509.RevocationListEntry{revocationOf(6, before, 5)}),
		vector("key stolen afterwards", []x509.RevocationListEntry{revocationOf(6, after, 1)}),
	}
}

// hostileVectors are correctly signed files with content that no honest program writes.
func hostileVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	add := func(name string, change func(r *evidence.Record, o *verify.Options)) {
		r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
		change(r, &o)
		list = append(list, givenRecord(t, slug("hostile", name), r, o))
	}
	for _, size := range []int64{operator.MaxEntries, operator.MaxEntries + 1, 1<<62 + 1, math.MaxInt64} {
		add(fmt.Sprintf("checkpoint of %d", size), func(r *evidence.Record, o *verify.Options) {
			r.Log.Checkpoint, o.Trust = checkpointOfSize(t, o.Trust, size)
		})
	}
	for _, odd := range oddTokens() {
		add(odd.name, func(r *evidence.Record, _ *verify.Options) {
			r.Timestamps[0].Token = signedAnew(t, r.Timestamps[0].Token, odd.change)
		})
	}
	return list
}

// An oddToken is a correctly signed token in an unusual encoding.
type oddToken struct {
	name   string
	proved bool
	change func(k *derToken)
}

// oddTokens are tokens that must prove a time, and variants that cannot be judged.
func oddTokens() []oddToken {
	version := func(k *derToken, n byte) { k.Data.At(0).Content = []byte{n} }
	opaque := func(tag byte) *derNode { return &derNode{Tag: tag, Content: []byte("not looked into")} }
	embed := func(n, tag byte) func(k *derToken) {
		return func(k *derToken) {
			version(k, n)
			k.Data.At(3).Members = append(k.Data.At(3).Members, opaque(tag))
		}
	}
	inform := func(n, tag byte) func(k *derToken) {
		return func(k *derToken) {
			version(k, n)
			k.Data.Members = slices.Insert(k.Data.Members, 4, &derNode{Tag: 0xa1, Members: []*derNode{opaque(tag)}})
		}
	}
	ordering := func(value ...byte) func(k *derToken) {
		return func(k *derToken) {
			k.Info.Members = slices.Insert(k.Info.Members, 5, &derNode{Tag: 1, Content: value})
		}
	}
	extension := func(critical ...byte) func(k *derToken) {
		return func(k *derToken) {
			one := &derNode{Tag: 0x30, Members: []*derNode{{Tag: 6, Content: []byte{0x2a, 3}}, {Tag: 1, Content: critical}, {Tag: 4}}}
			k.Info.Members = append(k.Info.Members, &derNode{Tag: 0xa1, Members: []*derNode{one}})
		}
	}
	return []oddToken{
		{"token of version 1", true, func(k *derToken) { version(k, 1) }},
		{"token of version 0", false, func(k *derToken) { version(k, 0) }},
		{"token of version 4 without a reason", false, func(k *derToken) { version(k, 4) }},
		{"token of version 5 without a reason", false, func(k *derToken) { version(k, 5) }},
		{"token with an extended certificate", true, embed(3, 0xa0)},
		{"token with an attribute certificate of version 1", true, embed(3, 0xa1)},
		{"token with an attribute certificate of version 1 as version 4", true, embed(4, 0xa1)},
		{"token with an attribute certificate of version 1 as version 5", false, embed(5, 0xa1)},
		{"token with an attribute certificate of version 2", true, embed(4, 0xa2)},
		{"token with an attribute certificate of version 2 as version 3", false, embed(3, 0xa2)},
		{"token with another certificate", true, embed(5, 0xa3)},
		{"token with a certificate of no kind", false, embed(3, 0xa4)},
		{"token with a certificate that cannot be read", true, embed(3, 0x30)},
		{"token with the signer as an attribute certificate", false, func(k *derToken) {
			version(k, 4)
			k.Data.At(3, 0).Tag = 0xa2
		}},
		{"token with an ocsp response", true, inform(5, 0xa1)},
		{"token with an ocsp response as version 1", true, inform(1, 0xa1)},
		{"token with an ocsp response as version 3", false, inform(3, 0xa1)},
		{"token with a revocation list", true, inform(3, 0x30)},
		{"token with revocation information of no kind", false, inform(3, 0xa2)},
		{"token without ordering, said", true, ordering(0)},
		{"token with ordering", true, ordering(0xff)},
		{"token perhaps with ordering", false, ordering(1)},
		{"token with an extension that is not critical, said", true, extension(0)},
		{"token with an extension that is perhaps critical", false, extension(2)},
		{"token with a critical extension", false, extension(0xff)},
		{"token with attributes out of order", false, func(k *derToken) { slices.Reverse(k.Signer.At(3).Members) }},
		{"token with empty unsigned attributes", false, func(k *derToken) {
			k.Signer.Members = append(k.Signer.Members, &derNode{Tag: 0xa1, Members: []*derNode{}})
		}},
		{"token with another signer version", false, func(k *derToken) { k.Signer.At(0).Content = []byte{3} }},
	}
}

// TestOddTokens: an authority's encoding does not change what a token proves. Tokens that cannot be judged are named
// and never refuted. Unsigned parts change no answer.
func TestOddTokens(t *testing.T) {
	for _, odd := range oddTokens() {
		t.Run(odd.name, func(t *testing.T) {
			r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
			honest := verify.Record(r, o)
			r.Timestamps[0].Token = signedAnew(t, r.Timestamps[0].Token, odd.change)
			report := verify.Record(r, o)
			found := report.Of(verify.Time)
			if odd.proved {
				diff := cmp.Diff(honest.Times, report.Times)
				must.Hold(t, diff == "" && found.Status == verify.Proved, "%+v, %s", found, diff)
				return
			}
			must.Hold(t, found.Status == verify.NotProved && found.Rule == "authority" && found.Reason != "" && len(report.Times) == 0, "%+v", found)
		})
	}
}

// checkpointOfSize is a checkpoint of any size, signed by a log, and a trust file with the log's key.
func checkpointOfSize(t testing.TB, trusted *trust.Trust, size int64) (string, *trust.Trust) {
	t.Helper()
	private, public, err := note.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{9}, 64)), "hostile.example/log")
	must.Do(t, err)
	signer := must.Get(note.NewSigner(private))(t)
	text := fmt.Sprintf("hostile.example/log\n%d\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n", size)
	with := *trusted
	with.Logs = append(slices.Clone(trusted.Logs), public)
	return string(must.Get(note.Sign(&note.Note{Text: text}, signer))(t)), &with
}

// logVectors are about what a reader knows of the log: the file was cut at 6 entries, three of which are the chain's, and
// the log went on to 10.
func logVectors(t *testing.T) []given {
	t.Helper()
	k := &keeper{House: jurattest.NewForStrangers(t), t: t}
	k.speakTimes(2)
	early := k.checkpoint()
	k.speakTimes(1)
	file := k.bundle()
	k.speakTimes(2)
	late := k.checkpoint()
	grown := k.bundle()
	other := &keeper{House: jurattest.NewForStrangers(t), t: t} // another history under the same key
	other.speak("The A7.")
	other.speakTimes(1)
	forkedEarly := other.checkpoint()
	other.speakTimes(1)
	forked := other.checkpoint()

	var list []given
	add := func(name string, change func(b *evidence.Bundle, o *verify.Options)) {
		b, o := *file, k.Options(t)
		b.Records = slices.Clone(file.Records)
		change(&b, &o)
		list = append(list, givenBundle(t, slug("log", name), &b, o))
	}
	entries := func(n int64) *bytes.Reader { return bytes.NewReader(k.entries(n)) }
	add("a checkpoint alone", func(_ *evidence.Bundle, o *verify.Options) { o.Checkpoint = file.Checkpoint })
	add("an earlier checkpoint and the proof", func(_ *evidence.Bundle, o *verify.Options) {
		o.Checkpoint, o.Consistency = early, k.consistency(4, 6)
	})
	add("a later checkpoint and the proof", func(_ *evidence.Bundle, o *verify.Options) {
		o.Checkpoint, o.Consistency = late, k.consistency(6, 10)
	})
	add("a later checkpoint without a proof", func(_ *evidence.Bundle, o *verify.Options) { o.Checkpoint = late })
	add("a proof between other sizes", func(_ *evidence.Bundle, o *verify.Options) {
		o.Checkpoint, o.Consistency = late, k.consistency(4, 10)
	})
	add("a proof that does not hold", func(_ *evidence.Bundle, o *verify.Options) {
		o.Checkpoint, o.Consistency = late, k.consistency(6, 10)
		o.Consistency.Proof[1][7] ^= 1
	})
	add("a proof that does not hold, and entries that show it", func(_ *evidence.Bundle, o *verify.Options) {
		o.Checkpoint, o.Entries, o.Consistency = late, entries(10), k.consistency(6, 10)
		o.Consistency.Proof = o.Consistency.Proof[1:]
	})
	add("a proof that takes the earlier root of another history for granted", func(_ *evidence.Bundle, o *verify.Options) {
		o.Checkpoint, o.Consistency = forkedEarly, k.consistency(4, 6)
	})
	add("a proof that an earlier checkpoint is of another history", func(_ *evidence.Bundle, o *verify.Options) {
		o.Checkpoint, o.Consistency = forkedEarly, k.fork(early, 6)
	})
	add("a proof that a later checkpoint is of another history", func(b *evidence.Bundle, o *verify.Options) {
		whole := &keeper{House: jurattest.NewForStrangers(t), t: t}
		whole.speak("The A7.")
		whole.speakTimes(4)
		o.Checkpoint, o.Consistency = whole.checkpoint(), whole.consistency(6, 10)
	})
	add("a proof that a checkpoint is of another history, changed", func(b *evidence.Bundle, o *verify.Options) {
		o.Checkpoint, o.Consistency = forkedEarly, k.fork(early, 6)
		o.Consistency.Proof[1][7] ^= 1
	})
	add("a proof that takes no root for granted, of one history", func(b *evidence.Bundle, o *verify.Options) {
		o.Checkpoint, o.Consistency = early, k.fork(early, 6)
	})
	add("another history of the same size", func(_ *evidence.Bundle, o *verify.Options) { o.Checkpoint = forked })
	add("an empty log before", func(_ *evidence.Bundle, o *verify.Options) { o.Checkpoint = emptyCheckpoint(t) })
	add("an empty log with a root", func(_ *evidence.Bundle, o *verify.Options) {
		o.Checkpoint = signedCheckpoint(t, 0, evidence.DigestOf([]byte("x")))
	})
	add("a checkpoint of another log", func(_ *evidence.Bundle, o *verify.Options) {
		o.Checkpoint, o.Trust = checkpointOfOther(t, o.Trust)
	})
	add("a file without a checkpoint", func(b *evidence.Bundle, o *verify.Options) { b.Checkpoint, o.Checkpoint = "", late })
	add("all entries", func(_ *evidence.Bundle, o *verify.Options) { o.Entries = entries(6) })
	add("entries as other programs write them", func(_ *evidence.Bundle, o *verify.Options) {
		o.Entries = bytes.NewReader(append([]byte("\ufeff"), bytes.ReplaceAll(k.entries(6), []byte("\n"), []byte("\r\n"))...))
	})
	add("all entries of a later checkpoint", func(b *evidence.Bundle, o *verify.Options) {
		*b = *grown
		o.Checkpoint, o.Entries = late, entries(10)
	})
	add("a tail cut", func(_ *evidence.Bundle, o *verify.Options) { o.Checkpoint, o.Entries = late, entries(10) })
	add("entries of a shorter log", func(_ *evidence.Bundle, o *verify.Options) {
		o.Checkpoint, o.Entries, o.Consistency = early, entries(4), k.consistency(4, 6)
	})
	add("entries of another history", func(_ *evidence.Bundle, o *verify.Options) {
		other.speakTimes(2)
		o.Checkpoint, o.Entries = other.checkpoint(), bytes.NewReader(other.entries(10))
	})
	add("entries truncated", func(_ *evidence.Bundle, o *verify.Options) { o.Entries = entries(5) })
	add("too many entries", func(_ *evidence.Bundle, o *verify.Options) { o.Entries = entries(7) })
	add("an entry changed", func(_ *evidence.Bundle, o *verify.Options) {
		o.Entries = bytes.NewReader(bytes.Replace(k.entries(6), []byte(`"chain_seq":2`), []byte(`"chain_seq":3`), 1))
	})
	add("an entry without an end", func(_ *evidence.Bundle, o *verify.Options) {
		o.Entries = bytes.NewReader(bytes.TrimSuffix(k.entries(6), []byte("\n")))
	})
	add("an entry that is none", func(_ *evidence.Bundle, o *verify.Options) {
		o.Entries = bytes.NewReader(append([]byte("{}\n"), k.entries(5)...))
	})
	add("false counts", func(b *evidence.Bundle, o *verify.Options) {
		doc := bytes.Replace(k.entries(6), []byte(`"chain_seq":1,`), []byte(`"chain_seq":2,`), 1)
		b.Checkpoint = signedCheckpoint(t, 6, evidence.Digest(verify.RootOf(t, doc)))
		o.Entries = bytes.NewReader(doc)
	})
	alone := func(name, checkpoint string, change func(o *verify.Options)) {
		o := k.Options(t)
		change(&o)
		list = append(list, given{slug("checkpoint", name), []byte(checkpoint), trustOf(t, o), o, nil})
	}
	alone("alone", late, func(*verify.Options) {})
	alone("alone and changed", strings.Replace(late, "\n10\n", "\n11\n", 1), func(*verify.Options) {})
	alone("of a log that nobody knows", late, func(o *verify.Options) { o.Trust.Logs = nil })
	alone("with the proof", late, func(o *verify.Options) { o.Checkpoint, o.Consistency = early, k.consistency(4, 10) })
	alone("with entries", late, func(o *verify.Options) { o.Entries = entries(10) })
	odd := signedCheckpoint(t, 0, evidence.DigestOf([]byte("x")))
	alone("of an empty log with a root", odd, func(o *verify.Options) { o.Checkpoint = odd })
	alone("of another history", forked, func(o *verify.Options) { o.Checkpoint = file.Checkpoint })
	record := k.Options(t)
	record.Checkpoint = forked
	return append(list, givenRecord(t, "log-one-record-and-another-history", proveAt(t, file, k.steps[0]), record))
}

// proveAt makes a record file of a record in a bundle, with the bundle's checkpoint.
func proveAt(t *testing.T, b *evidence.Bundle, r *evidence.Record) *evidence.Record {
	t.Helper()
	i := slices.IndexFunc(b.Records, func(in *evidence.Record) bool { return in.Digest == r.Digest })
	alone := *b.Records[i]
	place := *alone.Log
	place.Checkpoint = b.Checkpoint
	alone.Log = &place
	return &alone
}

// checkpointOfOther is of a second log that the trust file names.
func checkpointOfOther(t *testing.T, trusted *trust.Trust) (string, *trust.Trust) {
	t.Helper()
	private, public, err := note.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{7}, 64)), "other.example/log")
	must.Do(t, err)
	signer := must.Get(note.NewSigner(private))(t)
	signed := must.Get(operator.SignCheckpoint(operator.Checkpoint{Origin: "other.example/log", Size: 2}, signer))(t)
	with := *trusted
	with.Logs = append(slices.Clone(trusted.Logs), public)
	return signed, &with
}
