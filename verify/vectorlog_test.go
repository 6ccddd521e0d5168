package verify_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/verify"
	"jurat/verify/trust"
)

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
	if err != nil {
		t.Fatal(err)
	}
	signer := must.Get(note.NewSigner(private))(t)
	signed := must.Get(operator.SignCheckpoint(operator.Checkpoint{Origin: "other.example/log", Size: 2}, signer))(t)
	with := *trusted
	with.Logs = append(slices.Clone(trusted.Logs), public)
	return signed, &with
}
