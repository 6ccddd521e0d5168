package verify_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
)

// A keeper keeps what its reader may hold of a house's log.
type keeper struct {
	*jurattest.House
	t     testing.TB
	steps []*evidence.Record // of the chain that speak goes on with
}

func newKeeper(t testing.TB) *keeper { return &keeper{House: jurattest.New(t), t: t} }

// speak seals the next step of one chain, and then a record of no chain.
func (k *keeper) speak(text string) {
	k.t.Helper()
	p := output("a")
	p.RequestID, p.ChainID, p.ChainPosition = fmt.Sprint("r", len(k.steps)), "chain-1", int64(len(k.steps)+1)
	p.Response = jsontext.Value(fmt.Sprintf("%q", text))
	if len(k.steps) > 0 {
		p.PreviousRecord = k.steps[len(k.steps)-1].Digest
	}
	k.steps = append(k.steps, k.Seal(k.t, p))
	k.Seal(k.t, output("b"))
}

func (k *keeper) speakTimes(n int) {
	for range n {
		k.speak("The A9.")
	}
}

func (k *keeper) checkpoint() string {
	k.t.Helper()
	signed := must.Get(k.Ledger.Checkpoint(k.t.Context()))(k.t)
	return signed
}

// bundle is the chain under a new checkpoint.
func (k *keeper) bundle() *evidence.Bundle {
	k.t.Helper()
	k.checkpoint()
	return k.Bundle(k.t, k.steps...)
}

func (k *keeper) consistency(from, to int64) *operator.Consistency {
	k.t.Helper()
	proof := must.Get(k.Ledger.Consistency(k.t.Context(), from, to))(k.t)
	return proof
}

// fork is a proof that another checkpoint of the same size is of another history.
func (k *keeper) fork(from string, to int64) *operator.Consistency {
	k.t.Helper()
	head := must.Get(k.Options(k.t).Trust.OpenCheckpoint(from))(k.t)
	proof := k.consistency(head.Size, to)
	if head.Size&(head.Size-1) == 0 {
		proof.Proof = append([]tlog.Hash{head.Root}, proof.Proof...)
	}
	return proof
}

func (k *keeper) entries(to int64) []byte {
	k.t.Helper()
	var doc []byte
	for entry, err := range k.Ledger.Entries(k.t.Context(), 0, to) {
		must.Do(k.t, err)
		doc = append(append(doc, entry...), '\n')
	}
	return doc
}

// TestEveryRuleOfAKnownLog breaks one thing at a time in what the reader holds, or in the file. The file was cut at 6
// entries, three of which are the chain's; the log went on to 10.
func TestEveryRuleOfAKnownLog(t *testing.T) {
	k := newKeeper(t)
	k.speakTimes(2)
	early := k.checkpoint()
	k.speakTimes(1)
	file := k.bundle()
	k.speakTimes(2)
	late := k.checkpoint()
	grown := k.bundle()
	impostor := newKeeper(t) // another history under the same key
	impostor.speak("The A7.")
	impostor.speakTimes(1)
	forkedEarly := impostor.checkpoint()
	impostor.speakTimes(1)
	forkedSame := impostor.checkpoint()
	impostor.speakTimes(2)
	forkedLate := impostor.checkpoint()

	tests := []struct {
		name   string
		change func(b *evidence.Bundle, o *verify.Options)
		status verify.Status
		rule   string
		says   string
	}{
		{"a checkpoint alone says nothing of the tail", func(b *evidence.Bundle, o *verify.Options) { o.Checkpoint = file.Checkpoint },
			verify.NotProved, "tail", "only the log's entries"},
		{"an earlier checkpoint, and the proof", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Consistency = early, k.consistency(4, 6)
		}, verify.NotProved, "tail", "lost nothing of the 4 entries"},
		{"a later checkpoint, and the proof", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Consistency = late, k.consistency(6, 10)
		}, verify.NotProved, "tail", "cut at 6 of the 10 entries"},
		{"an earlier checkpoint without a proof", func(b *evidence.Bundle, o *verify.Options) { o.Checkpoint = early },
			verify.NotProved, "consistency", "there is no consistency proof"},
		{"a later checkpoint without a proof", func(b *evidence.Bundle, o *verify.Options) { o.Checkpoint = late },
			verify.NotProved, "consistency", "there is no consistency proof"},
		{"a proof between other sizes", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Consistency = late, k.consistency(4, 10)
		}, verify.NotProved, "consistency", "from 4 to 10"},
		{"a proof of another log", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Consistency = late, k.consistency(6, 10)
			o.Consistency.Origin = "other.example/log"
		}, verify.NotProved, "consistency", "other.example"},
		{"a proof that does not hold", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Consistency = late, k.consistency(6, 10)
			o.Consistency.Proof[1][7] ^= 1
		}, verify.NotProved, "consistency", "does not hold"},
		{"a proof that does not hold, to an earlier checkpoint", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Consistency = early, k.consistency(4, 6)
			o.Consistency.Proof[0][7] ^= 1
		}, verify.NotProved, "consistency", "says nothing against the log: get the proof from 4 to 6"},
		{"a proof without nodes", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Consistency = late, &operator.Consistency{Origin: jurattest.Origin, From: 6, To: 10}
		}, verify.NotProved, "consistency", "does not hold"},
		{"a proof of another history", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Consistency = late, impostor.consistency(6, 10)
		}, verify.NotProved, "consistency", "does not hold"},
		{"a proof that does not hold, and entries that show more", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Entries, o.Consistency = forkedLate, bytes.NewReader(impostor.entries(10)), k.consistency(6, 10)
			o.Consistency.Proof[1][7] ^= 1
		}, verify.Refuted, "fork", "another root than the file's checkpoint"},
		{"another history of the same size", func(b *evidence.Bundle, o *verify.Options) { o.Checkpoint = forkedSame },
			verify.Refuted, "fork", "different roots"},
		{"another history, earlier, with a proof that takes the earlier root for granted", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Consistency = forkedEarly, k.consistency(4, 6)
		}, verify.NotProved, "consistency", "does not hold"},
		{"another history, earlier, with the root of the file's", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Consistency = forkedEarly, k.fork(early, 6)
		}, verify.Refuted, "fork", "the first 4 of the 6 entries have another root"},
		{"another history, later, with its own proof", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Consistency = forkedLate, impostor.consistency(6, 10)
		}, verify.Refuted, "fork", "the first 6 of the 10 entries have another root"},
		{"another history, later, with the file's proof", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Consistency = forkedLate, k.consistency(6, 10)
		}, verify.NotProved, "consistency", "does not hold"},
		{"another history by its entries", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Entries = forkedLate, bytes.NewReader(impostor.entries(10))
		}, verify.Refuted, "fork", "another root than the file's checkpoint"},
		{"an empty log before", func(b *evidence.Bundle, o *verify.Options) { o.Checkpoint = emptyCheckpoint(t) },
			verify.NotProved, "tail", "lost nothing of the 0 entries"},
		{"an empty log with a root", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint = signedCheckpoint(t, 0, evidence.DigestOf([]byte("x")))
		},
			verify.Refuted, "fork", "not that of an empty log"},
		{"a checkpoint that nobody trusted signed", func(b *evidence.Bundle, o *verify.Options) { o.Checkpoint = checkpointOfAnother(t, late) },
			verify.NotProved, "checkpoint", "no log that the trust file names"},
		{"a checkpoint that was changed", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint = strings.Replace(late, "\n10\n", "\n11\n", 1)
		},
			verify.NotProved, "checkpoint", "the reader's checkpoint:"},
		{"a file without a checkpoint", func(b *evidence.Bundle, o *verify.Options) { b.Checkpoint, o.Checkpoint = "", late },
			verify.NotProved, "checkpoint", "the file has no valid checkpoint"},
		{"all entries of the file's checkpoint", func(b *evidence.Bundle, o *verify.Options) { o.Entries = bytes.NewReader(k.entries(6)) },
			verify.Proved, "", "every record that these 6 entries have of its 1 chain"},
		{"all entries of the same checkpoint, held elsewhere", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Entries = file.Checkpoint, bytes.NewReader(k.entries(6))
		}, verify.Proved, "", "the reader's own checkpoint of 6"},
		{"the whole chain by a later checkpoint", func(b *evidence.Bundle, o *verify.Options) {
			*b = *grown
			o.Checkpoint, o.Entries = late, bytes.NewReader(k.entries(10))
		}, verify.Proved, "", "every record that these 10 entries have"},
		{"a tail cut", func(b *evidence.Bundle, o *verify.Options) {
			*b = *grown
			b.Records = b.Records[:3]
			o.Checkpoint, o.Entries = late, bytes.NewReader(k.entries(10))
		}, verify.Refuted, "cut", "has 5 records of chain \"chain-1\", the file has 3 of them; missing chain_seq 4, 5"},
		{"a tail cut, under the checkpoint of that time", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Entries = late, bytes.NewReader(k.entries(10))
		}, verify.Refuted, "cut", "so the file is older or was cut"},
		{"entries that end before the file", func(b *evidence.Bundle, o *verify.Options) {
			o.Checkpoint, o.Entries, o.Consistency = early, bytes.NewReader(k.entries(4)), k.consistency(4, 6)
		}, verify.NotProved, "tail", "only the log's entries"},
		{"a record of before missing, by such entries", func(b *evidence.Bundle, o *verify.Options) {
			b.Records = slices.Delete(b.Records, 1, 2)
			o.Checkpoint, o.Entries, o.Consistency = early, bytes.NewReader(k.entries(4)), k.consistency(4, 6)
		}, verify.Refuted, "cut", "missing chain_seq 2"},
		{"entries truncated", func(b *evidence.Bundle, o *verify.Options) { o.Entries = bytes.NewReader(k.entries(5)) },
			verify.NotProved, "entries", "there are 5, and the checkpoint covers 6"},
		{"entries of too long a log", func(b *evidence.Bundle, o *verify.Options) { o.Entries = bytes.NewReader(k.entries(7)) },
			verify.NotProved, "entries", "more than the 6"},
		{"entries reordered", func(b *evidence.Bundle, o *verify.Options) {
			lines := bytes.SplitAfter(k.entries(6), []byte("\n"))
			lines[0], lines[2] = lines[2], lines[0]
			o.Entries = bytes.NewReader(bytes.Join(lines, nil))
		}, verify.NotProved, "entries", "their root is not"},
		{"entries of a later checkpoint, reordered, and no proof", func(b *evidence.Bundle, o *verify.Options) {
			lines := bytes.SplitAfter(k.entries(10), []byte("\n"))
			lines[0], lines[2] = lines[2], lines[0]
			o.Checkpoint, o.Entries = late, bytes.NewReader(bytes.Join(lines, nil))
		}, verify.NotProved, "entries", "their root is not"},
		{"one entry changed", func(b *evidence.Bundle, o *verify.Options) {
			o.Entries = bytes.NewReader(bytes.Replace(k.entries(6), []byte(`"chain_seq":2`), []byte(`"chain_seq":3`), 1))
		}, verify.NotProved, "entries", "their root is not"},
		{"an entry that is none", func(b *evidence.Bundle, o *verify.Options) {
			o.Entries = bytes.NewReader(append([]byte("{}\n"), k.entries(5)...))
		}, verify.NotProved, "entries", "entry 0"},
		{"an entry without an end", func(b *evidence.Bundle, o *verify.Options) {
			o.Entries = bytes.NewReader(bytes.TrimSuffix(k.entries(6), []byte("\n")))
		}, verify.NotProved, "entries", "entry 5 does not end"},
		{"an entry without end", func(b *evidence.Bundle, o *verify.Options) {
			o.Entries = bytes.NewReader(bytes.Repeat([]byte("x"), evidence.MaxEntry+2))
		}, verify.NotProved, "entries", "longer than"},
		{"entries that cannot be read", func(b *evidence.Bundle, o *verify.Options) { o.Entries = unreadable{} },
			verify.NotProved, "entries", "the disk is on fire"},
		{"records of no chain", func(b *evidence.Bundle, o *verify.Options) {
			*b = *k.Bundle(t, k.Seal(t, output("a")))
			o.Entries = bytes.NewReader(k.entries(11))
		}, verify.NotProved, "tail", "only the log's entries"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, o := *file, k.Options(t)
			b.Records = slices.Clone(file.Records)
			tt.change(&b, &o)
			report := verify.Bundle(&b, o)
			got := report.Of(verify.Completeness)
			must.Hold(t, got.Status == tt.status && got.Rule == tt.rule && strings.Contains(got.Reason, tt.says),
				"%+v; want %s by rule %q, saying %q", got, tt.status, tt.rule, tt.says)
			order := report.Of(verify.Order)
			must.Hold(t, (order.Rule == "fork") == (tt.rule == "fork"), "order: %+v", order)
			lost := slices.ContainsFunc(report.Details, func(f verify.Finding) bool { return strings.Contains(f.Reason, "has lost nothing") })
			must.Hold(t, lost == strings.Contains(tt.says, "lost nothing") || tt.rule == "tail",
				"the report states something that was not shown: %+v", report.Details)
			must.Hold(t, report.Outcome == tt.status || report.Outcome == verify.Refuted, "outcome %s", report.Outcome)
			tail := slices.Contains(report.NotShown, "that nothing came after the last record of a chain")
			must.Hold(t, tail == (tt.status != verify.Proved), "does not prove: %v", report.NotShown)
		})
	}
}

type unreadable struct{}

func (unreadable) ReadAt([]byte, int64) (int, error) { return 0, errors.New("the disk is on fire") }

// signedCheckpoint is signed with the key of every house's log.
func signedCheckpoint(t *testing.T, size int64, root evidence.Digest) string {
	t.Helper()
	return must.Get(jurattest.New(t).SignCheckpoint(operator.Checkpoint{Origin: jurattest.Origin, Size: size, Root: [32]byte(root)}))(t)
}

func emptyCheckpoint(t *testing.T) string { return signedCheckpoint(t, 0, evidence.DigestOf(nil)) }

// checkpointOfAnother signs the text of a checkpoint with an untrusted key.
func checkpointOfAnother(t *testing.T, checkpoint string) string {
	t.Helper()
	private, _, err := note.GenerateKey(nil, jurattest.Origin)
	must.Do(t, err)
	signer := must.Get(note.NewSigner(private))(t)
	text, _, _ := strings.Cut(checkpoint, "\n\n")
	signed := must.Get(note.Sign(&note.Note{Text: text + "\n"}, signer))(t)
	return string(signed)
}

// TestKnownLogOfAnotherName: a checkpoint of one trusted log proves nothing about another trusted log.
func TestKnownLogOfAnotherName(t *testing.T) {
	k := newKeeper(t)
	k.speakTimes(1)
	b, o := k.bundle(), k.Options(t)
	private, public, err := note.GenerateKey(nil, "other.example/log")
	must.Do(t, err)
	signer := must.Get(note.NewSigner(private))(t)
	o.Checkpoint = must.Get(operator.SignCheckpoint(operator.Checkpoint{Origin: "other.example/log", Size: 2}, signer))(t)
	o.Trust.Logs = append(o.Trust.Logs, public)
	got := verify.Bundle(b, o).Of(verify.Completeness)
	must.Hold(t, got.Status == verify.NotProved && got.Rule == "checkpoint", "%+v", got)
}

// TestFalseCounts: a reader of the whole log detects a number that is left out or given twice.
func TestFalseCounts(t *testing.T) {
	for _, tt := range []struct{ member, says string }{{"chain_seq", "records of chain"}, {"case_seq", "submissions of this case"}} {
		h := jurattest.New(t)
		b := h.Bundle(t, h.Try(t, jury.MajorityVote).Records...)
		k := &keeper{House: h, t: t}
		doc := bytes.Replace(k.entries(int64(len(b.Records))), []byte(`"`+tt.member+`":1,`), []byte(`"`+tt.member+`":2,`), 1)
		o := h.Options(t)
		o.Entries = bytes.NewReader(doc)
		o.Checkpoint = signedCheckpoint(t, int64(len(b.Records)), evidence.Digest(verify.RootOf(t, doc)))
		b.Checkpoint = o.Checkpoint // the log's key has signed the false counts
		got := verify.Bundle(b, o).Of(verify.Completeness)
		must.Hold(t, got.Status == verify.Refuted && got.Rule == "count" && strings.Contains(got.Reason, tt.says), "%s: %+v", tt.member, got)
	}
}

// TestTrialByAKnownLog: a closed trial is complete without entries. Entries show how often its case was tried.
func TestTrialByAKnownLog(t *testing.T) {
	k := newKeeper(t)
	b := k.Bundle(t, k.Try(t, jury.MajorityVote).Records...)
	k.Try(t, jury.MajorityVote)
	n := int64(len(b.Records))
	o := k.Options(t)
	o.Checkpoint, o.Consistency = k.checkpoint(), k.consistency(n, 2*n)
	r := verify.Bundle(b, o)
	want := fmt.Sprintf("cut at %d of the %d entries", n, 2*n)
	got := r.Of(verify.Completeness)
	must.Hold(t, r.Outcome == verify.Proved && strings.Contains(got.Reason, want), "with a checkpoint: %s, %+v", r.Outcome, got)
	must.Hold(t, r.Log != nil && *r.Log == (verify.LogState{Origin: jurattest.Origin, Size: n}), "log: %+v", r.Log)
	o.Entries = bytes.NewReader(k.entries(2 * n))
	r = verify.Bundle(b, o)
	got = r.Of(verify.Completeness)
	must.Hold(t, r.Outcome == verify.Proved && strings.Contains(got.Reason, "submitted 2 times"), "with entries: %s, %+v", r.Outcome, got)
	o.Consistency = nil
	o.Entries = nil
	got = verify.Bundle(b, o).Of(verify.Completeness)
	must.Hold(t, got.Status == verify.NotProved && got.Rule == "consistency", "without a proof: %+v", got)
	b.Records = b.Records[:n-1]
	r = verify.Bundle(b, k.Options(t))
	must.Hold(t, slices.Contains(r.NotShown, "that nothing came after the last record of a chain"),
		"the report on an open trial does not prove: %v", r.NotShown)
}

// TestDecisionCutOff: a person rejects the verdict, and the case file leaves the decision out.
func TestDecisionCutOff(t *testing.T) {
	k := newKeeper(t)
	done := k.Try(t, jury.MajorityVote)
	b := k.Bundle(t, done.Records...)
	last := done.Records[len(done.Records)-1]
	k.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "user@example.com", Timestamp: "2026-01-01T00:00:02Z",
		OriginalResponseID: last.Payload.RecordID, ApprovalStatus: evidence.Rejected, ChainID: done.ID, Case: last.Payload.Case, Saw: []evidence.Digest{last.Digest}})
	o := k.Options(t)
	o.Checkpoint, o.Entries = k.checkpoint(), bytes.NewReader(k.entries(int64(len(b.Records)+1)))
	got := verify.Bundle(b, o).Of(verify.Completeness)
	must.Hold(t, got.Status == verify.Refuted && got.Rule == "cut" && strings.Contains(got.Reason, "after the file's checkpoint"), "%+v", got)
}

// TestRecordByAKnownLog: Completeness does not apply to a single record. For it, the reader's log counts under Order.
func TestRecordByAKnownLog(t *testing.T) {
	k, impostor := newKeeper(t), newKeeper(t)
	k.speakTimes(2)
	k.checkpoint()
	r := must.Get(k.Ledger.ProveOne(t.Context(), k.steps[0]))(t)
	impostor.speak("The A7.")
	impostor.speakTimes(1)
	for _, tt := range []struct {
		checkpoint string
		entries    []byte
		status     verify.Status
		rule       string
	}{
		{k.checkpoint(), nil, verify.Proved, ""},
		{k.checkpoint(), k.entries(4), verify.Proved, ""},
		{k.checkpoint(), k.entries(3), verify.NotProved, "entries"},
		{impostor.checkpoint(), nil, verify.Refuted, "fork"},
		{checkpointOfAnother(t, k.checkpoint()), nil, verify.NotProved, "checkpoint"},
	} {
		o := k.Options(t)
		o.Checkpoint = tt.checkpoint
		if tt.entries != nil {
			o.Entries = bytes.NewReader(tt.entries)
		}
		report := verify.Record(r, o)
		if got := report.Of(verify.Order); got.Status != tt.status || got.Rule != tt.rule || report.Outcome != tt.status {
			t.Errorf("%s, %+v; want %s by %q", report.Outcome, got, tt.status, tt.rule)
		}
		got := report.Of(verify.Completeness)
		must.Hold(t, got.Reason == "not asked", "completeness of one record: %+v", got)
	}
}

// TestCheckpointAsFile: a reader has only two checkpoints and the proof.
func TestCheckpointAsFile(t *testing.T) {
	k, impostor := newKeeper(t), newKeeper(t)
	k.speakTimes(2)
	old := k.checkpoint()
	k.speakTimes(1)
	now := k.checkpoint()
	impostor.speak("The A7.")
	impostor.speakTimes(1)
	forked := impostor.checkpoint()
	impostor.speakTimes(1)
	odd := signedCheckpoint(t, 0, evidence.DigestOf([]byte("x")))
	for _, tt := range []struct {
		name, file string
		change     func(o *verify.Options)
		status     verify.Status
		guarantee  verify.Guarantee
		rule       string
	}{
		{"alone", now, func(o *verify.Options) {}, verify.Proved, verify.Order, ""},
		{"alone, of nobody", checkpointOfAnother(t, now), func(o *verify.Options) {}, verify.NotProved, verify.Order, "checkpoint"},
		{"alone, changed", strings.Replace(now, "\n6\n", "\n7\n", 1), func(o *verify.Options) {}, verify.Refuted, verify.Order, "checkpoint"},
		{"with the proof", now, func(o *verify.Options) { o.Checkpoint, o.Consistency = old, k.consistency(4, 6) }, verify.Proved, verify.Completeness, ""},
		{"the other way round", old, func(o *verify.Options) { o.Checkpoint, o.Consistency = now, k.consistency(4, 6) }, verify.Proved, verify.Completeness, ""},
		{"with entries", now, func(o *verify.Options) { o.Entries = bytes.NewReader(k.entries(6)) }, verify.Proved, verify.Completeness, ""},
		{"without a proof", now, func(o *verify.Options) { o.Checkpoint = old }, verify.NotProved, verify.Completeness, "consistency"},
		{"a fork, by the other history's nodes", impostor.checkpoint(), func(o *verify.Options) { o.Checkpoint, o.Consistency = old, impostor.fork(forked, 6) }, verify.Refuted, verify.Completeness, "fork"},
		{"a fork, by a proof that shows nothing", impostor.checkpoint(), func(o *verify.Options) { o.Checkpoint, o.Consistency = old, k.consistency(4, 6) }, verify.NotProved, verify.Completeness, "consistency"},
		{"an empty log with a root, twice", odd, func(o *verify.Options) { o.Checkpoint = odd }, verify.Refuted, verify.Completeness, "fork"},
		{"an empty log, twice", emptyCheckpoint(t), func(o *verify.Options) { o.Checkpoint = emptyCheckpoint(t) }, verify.Proved, verify.Completeness, ""},
		{"with another's entries", now, func(o *verify.Options) { o.Entries = bytes.NewReader(impostor.entries(6)) }, verify.NotProved, verify.Completeness, "entries"},
	} {
		o := k.Options(t)
		tt.change(&o)
		r := check(t, []byte(tt.file), o)
		if got := r.Of(tt.guarantee); r.Kind != verify.OneCheckpoint || r.Outcome != tt.status || got.Status != tt.status || got.Rule != tt.rule {
			t.Errorf("%s: %s %s, %+v; want %s by %q", tt.name, r.Kind, r.Outcome, got, tt.status, tt.rule)
		}
		got := r.Of(verify.Content)
		must.Hold(t, got.Reason == "not asked", "%s: content: %+v", tt.name, got)
	}
}

// FuzzKnownLog verifies arbitrary entries and checkpoints. It must not panic, and only the log's own bytes may prove
// anything.
func FuzzKnownLog(f *testing.F) {
	k := newKeeper(f)
	k.speakTimes(2)
	b := k.bundle()
	entries, checkpoint := k.entries(4), k.checkpoint()
	f.Add(entries, checkpoint)
	f.Add(entries[:len(entries)-1], checkpoint)
	f.Add([]byte("{}\n"), "")
	f.Add([]byte("\n"), checkpoint[1:])
	o := k.Options(f)
	f.Fuzz(func(t *testing.T, doc []byte, known string) {
		o := o
		o.Entries, o.Checkpoint = bytes.NewReader(doc), known
		r := verify.Bundle(b, o)
		must.Need(t, r.Of(verify.Completeness).Status != verify.Proved || bytes.Equal(doc, entries), "proved by %q", doc)
	})
}

// shown is a log whose records are all known, by chain or by id; "?" is not known.
type logShown map[string]*evidence.Record

func (s logShown) First(chain string) (*verify.LoggedRecord, error) { return s.Named(chain) }

func (s logShown) Named(id string) (*verify.LoggedRecord, error) {
	if id == "?" {
		return nil, verify.ErrLogUnknown
	}
	if r := s[id]; r != nil {
		return verify.Logged(r, verify.NamedActor(&r.Payload)), nil
	}
	return nil, nil
}

func record(p evidence.Payload) *evidence.Record {
	return &evidence.Record{Payload: p, Digest: evidence.DigestOf([]byte(p.RecordID))}
}

// TestJudges goes through the rules of whom a record judges.
func TestJudges(t *testing.T) {
	submission := func(response string) *evidence.Record {
		return record(evidence.Payload{ActionType: evidence.Submission, ChainID: "trial-1", AgentID: "s", Response: []byte(response)})
	}
	act := record(evidence.Payload{ActionType: evidence.Message, AgentID: "a", RecordID: "act"})
	seen := func(id string, judged evidence.Judged) *evidence.Record {
		return record(evidence.Payload{ActionType: evidence.ObservedTool, AgentID: "w", RecordID: id, Observed: &evidence.Observed{Agent: "o", Judged: judged}})
	}
	log := logShown{"seen": seen("seen", evidence.JudgedAgent), "seen-earlier": seen("seen-earlier", ""),
		"lied":    record(evidence.Payload{ActionType: evidence.Message, AgentID: "a", RecordID: "lied", Observed: &evidence.Observed{Agent: "o", Judged: evidence.JudgedAgent}}),
		"trial-1": submission(`{"agentCard":{"name":"c"}}`), "trial-odd": act, "act": act,
		"verdict": record(evidence.Payload{ActionType: evidence.FinalJudgment, ChainID: "trial-1", AgentID: "clerk", RecordID: "verdict"})}
	agent := func(name string) evidence.Digest { return evidence.SubjectTag(evidence.RoleAgent, name) }
	none := evidence.Digest{}
	review := func(chain, of string, saw ...evidence.Digest) evidence.Payload {
		return evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "u", ChainID: chain, OriginalResponseID: of, Saw: saw}
	}
	key := func(body string) evidence.Payload {
		return evidence.Payload{ActionType: evidence.KeyEvent, AgentID: "operator", Response: []byte(body)}
	}
	judgment := func(chain string) evidence.Payload {
		return evidence.Payload{ActionType: evidence.FinalJudgment, ChainID: chain}
	}
	other := evidence.DigestOf([]byte("other"))
	for name, c := range map[string]struct {
		payload evidence.Payload
		want    evidence.Digest
		unknown bool
	}{
		"a message":                   {act.Payload, none, false},
		"a submission":                {log["trial-1"].Payload, none, false},
		"a judgment":                  {judgment("trial-1"), agent("c"), false},
		"a judgment of another chain": {judgment("trial-2"), none, false},
		"a chain that begins with something else":   {judgment("trial-odd"), none, false},
		"a chain that the file does not show":       {judgment("?"), none, true},
		"a review by id":                            {review("", "act"), agent("a"), false},
		"a review by digest":                        {review("c", "act", other, act.Digest), agent("a"), false},
		"a review of another version":               {review("c", "act", other), none, false},
		"a review of what is not there":             {review("c", "gone"), none, false},
		"a review of what the file does not show":   {review("c", "?"), none, true},
		"a review of what a recorder saw":           {review("", "seen"), agent("o"), false},
		"a review of what an earlier recorder saw":  {review("", "seen-earlier"), evidence.SubjectTag(evidence.RoleRecorder, "w"), false},
		"a review of an act of no recorder":         {review("", "lied"), agent("a"), false},
		"what a recorder saw":                       {seen("seen", evidence.JudgedAgent).Payload, none, false},
		"a review of a verdict":                     {review("", "verdict"), agent("c"), false},
		"a review in a trial, of what is not there": {review("trial-1", "gone"), agent("c"), false},
		"a revoked key":                             {key(`{"event":"revoked","name":"j","role":"juror"}`), evidence.SubjectTag(evidence.RoleJuror, "j"), false},
		"a rotated key":                             {key(`{"event":"rotated","name":"j","role":"juror"}`), none, false},
		"a key of nobody":                           {key(`{"event":"revoked","name":"","role":"juror"}`), none, false},
		"a key of no role":                          {key(`{"event":"revoked","name":"j"}`), none, false},
		"a name that is a number":                   {key(`{"event":"revoked","name":7,"role":"juror"}`), none, false},
		"no object":                                 {key(`[]`), none, false},
	} {
		got, err := verify.JudgedActor(&c.payload, verify.NamedActor(&c.payload), log)
		must.Hold(t, got == c.want && errors.Is(err, verify.ErrLogUnknown) == c.unknown, "%s: %v, %v; want %v", name, got, err, c.want)
	}
}

// TestOnTrial checks which name a submission gives, also one that no honest author would write.
func TestOnTrial(t *testing.T) {
	message := `{"payload":{"action_type":"message","agent_id":"a"}}`
	for response, want := range map[string]string{
		`{"agentCard":{"name":"c"}}`:                                                                                                                                                    "c",
		`{"agentCard":{"name":"c"},"records":[` + message + `]}`:                                                                                                                        "a",
		`{"records":[` + message + `,{"payload":{"action_type":"message","agent_id":"b"}}]}`:                                                                                            "a",
		`{"records":[{"payload":{"action_type":"human_review","agent_id":"r"}},` + message + `]}`:                                                                                       "a",
		`{"records":[{"payload":{"action_type":"unknown","agent_id":"r"}},` + message + `]}`:                                                                                            "a",
		`{"records":[1,null,[],{},{"payload":1},{"payload":{"action_type":7}},{"payload":{"action_type":"message","agent_id":{}}},` + message + `]}`:                                    "a",
		`{"records":[{"payload":{"action_type":"recorder_event","agent_id":"w"}},{"payload":{"action_type":"observed_call","agent_id":"w","observed":{"agent":"o"}}},` + message + `]}`: "o",
		`{"records":[{"payload":{"action_type":"observed_call","agent_id":"w","observed":{}}},{"payload":{"action_type":"observed_call","agent_id":"w"}},` + message + `]}`:             "a",
		`{"agentCard":{"name":"c"},"records":[]}`:                                                                                                                                       "c",
		`{"agentCard":{"name":"c"},"records":{"payload":1}}`:                                                                                                                            "c",
		`{"agentCard":{"name":""}}`:                     "",
		`{"agentCard":{"name":1}}`:                      "",
		`{"agentCard":[]}`:                              "",
		`"hmac-sha256:` + strings.Repeat("0", 64) + `"`: "",
		`null`: "", `[]`: "", `7`: "", ``: "", `{`: "",
	} {
		must.Equal(t, verify.AgentOnTrial([]byte(response)), want, response)
	}
}
