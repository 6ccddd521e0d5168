package verify_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/dertest"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/verify"
	"jurat/verify/trust"
)

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
	change func(k *dertest.Token)
}

// oddTokens are tokens that must prove a time, and variants that cannot be judged.
func oddTokens() []oddToken {
	version := func(k *dertest.Token, n byte) { k.Data.At(0).Content = []byte{n} }
	opaque := func(tag byte) *dertest.Node { return &dertest.Node{Tag: tag, Content: []byte("not looked into")} }
	embed := func(n, tag byte) func(k *dertest.Token) {
		return func(k *dertest.Token) {
			version(k, n)
			k.Data.At(3).Members = append(k.Data.At(3).Members, opaque(tag))
		}
	}
	inform := func(n, tag byte) func(k *dertest.Token) {
		return func(k *dertest.Token) {
			version(k, n)
			k.Data.Members = slices.Insert(k.Data.Members, 4, &dertest.Node{Tag: 0xa1, Members: []*dertest.Node{opaque(tag)}})
		}
	}
	ordering := func(value ...byte) func(k *dertest.Token) {
		return func(k *dertest.Token) {
			k.Info.Members = slices.Insert(k.Info.Members, 5, &dertest.Node{Tag: 1, Content: value})
		}
	}
	extension := func(critical ...byte) func(k *dertest.Token) {
		return func(k *dertest.Token) {
			one := &dertest.Node{Tag: 0x30, Members: []*dertest.Node{{Tag: 6, Content: []byte{0x2a, 3}}, {Tag: 1, Content: critical}, {Tag: 4}}}
			k.Info.Members = append(k.Info.Members, &dertest.Node{Tag: 0xa1, Members: []*dertest.Node{one}})
		}
	}
	return []oddToken{
		{"token of version 1", true, func(k *dertest.Token) { version(k, 1) }},
		{"token of version 0", false, func(k *dertest.Token) { version(k, 0) }},
		{"token of version 4 without a reason", false, func(k *dertest.Token) { version(k, 4) }},
		{"token of version 5 without a reason", false, func(k *dertest.Token) { version(k, 5) }},
		{"token with an extended certificate", true, embed(3, 0xa0)},
		{"token with an attribute certificate of version 1", true, embed(3, 0xa1)},
		{"token with an attribute certificate of version 1 as version 4", true, embed(4, 0xa1)},
		{"token with an attribute certificate of version 1 as version 5", false, embed(5, 0xa1)},
		{"token with an attribute certificate of version 2", true, embed(4, 0xa2)},
		{"token with an attribute certificate of version 2 as version 3", false, embed(3, 0xa2)},
		{"token with another certificate", true, embed(5, 0xa3)},
		{"token with a certificate of no kind", false, embed(3, 0xa4)},
		{"token with a certificate that cannot be read", true, embed(3, 0x30)},
		{"token with the signer as an attribute certificate", false, func(k *dertest.Token) {
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
		{"token with attributes out of order", false, func(k *dertest.Token) { slices.Reverse(k.Signer.At(3).Members) }},
		{"token with empty unsigned attributes", false, func(k *dertest.Token) {
			k.Signer.Members = append(k.Signer.Members, &dertest.Node{Tag: 0xa1, Members: []*dertest.Node{}})
		}},
		{"token with another signer version", false, func(k *dertest.Token) { k.Signer.At(0).Content = []byte{3} }},
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
				if diff := cmp.Diff(honest.Times, report.Times); diff != "" || found.Status != verify.Proved {
					t.Errorf("%+v, %s", found, diff)
				}
				return
			}
			if found.Status != verify.NotProved || found.Rule != "authority" || found.Reason == "" || len(report.Times) > 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

// checkpointOfSize is a checkpoint of any size, signed by a log, and a trust file with the log's key.
func checkpointOfSize(t testing.TB, trusted *trust.Trust, size int64) (string, *trust.Trust) {
	t.Helper()
	private, public, err := note.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{9}, 64)), "hostile.example/log")
	if err != nil {
		t.Fatal(err)
	}
	signer := must.Get(note.NewSigner(private))(t)
	text := fmt.Sprintf("hostile.example/log\n%d\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n", size)
	with := *trusted
	with.Logs = append(slices.Clone(trusted.Logs), public)
	return string(must.Get(note.Sign(&note.Note{Text: text}, signer))(t)), &with
}
