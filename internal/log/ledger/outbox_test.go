package ledger_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/ledger/storage"
	expect "jurat/internal/test/must"
)

var errSilent = errors.New("no answer")

// silent is the clock beside an authority that does not answer.
func silent(names ...string) outage {
	var o outage
	for _, name := range names {
		o.missing = append(o.missing, ledger.Missing{Authority: name, Reason: errSilent})
	}
	return o
}

// halfSilent returns the clock's token, and makes records wait for other authorities.
type halfSilent struct{ outage }

func (h halfSilent) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	stamped, err := clock{}.Stamp(ctx, imprint)
	stamped.Missing = h.missing
	return stamped, err
}

// lateStamp is the late stamp that the fixture's authorities give.
func lateStamp(p ledger.Pending) ledger.LateStamp {
	imprint := p.Record.Imprint()
	return ledger.LateStamp{Pending: p, Timestamp: evidence.Timestamp{Kind: evidence.RFC3161,
		Token: append([]byte("late by "+p.Authority+" "), imprint[:]...)}}
}

func lateStamps(pending []ledger.Pending) (stamps []ledger.LateStamp) {
	for _, p := range pending {
		stamps = append(stamps, lateStamp(p))
	}
	return stamps
}

func owing(t testing.TB, l *ledger.Ledger) string {
	t.Helper()
	var lines []string
	for _, o := range must(l.Owing(t.Context())) {
		lines = append(lines, fmt.Sprint(o.Authority, " ", o.Records))
	}
	return strings.Join(lines, ", ")
}

func wantOwing(t testing.TB, l *ledger.Ledger, want string) {
	t.Helper()
	expect.Equal(t, owing(t, l), want)
}

// lateActs returns the log's late_stamp acts, after checking each against the records that it names.
func lateActs(t testing.TB, l *ledger.Ledger) (acts []*evidence.Record) {
	t.Helper()
	for r, err := range l.Records(t.Context(), 0) {
		succeeds(t, err)
		if r.Payload.ActionType != evidence.LateStamp {
			continue
		}
		acts = append(acts, r.Record)
		body := must(operator.Read[operator.LateStampBody](&r.Payload))
		for _, s := range body.Stamps {
			stamped := must(l.RecordByDigest(t.Context(), s.Record))
			expect.Hold(t, slices.ContainsFunc(stamped.Timestamps, func(t evidence.Timestamp) bool { return evidence.DigestOf(t.Token) == s.Token }),
				"act %s names a stamp that record %s does not have", r.Payload.RecordID, stamped.Payload.RecordID)
			expect.Hold(t, slices.Contains(r.Payload.Saw, s.Record), "act %s does not have %v in saw", r.Payload.RecordID, s.Record)
		}
	}
	return acts
}

// TestWaiting seals while authorities are silent, with and without another authority's token, and stamps later.
func TestWaiting(t *testing.T) {
	f := folder(t.TempDir())
	f.create(t).Close()
	l := f.with(t, halfSilent{silent("one", "two")})
	half := seal(t, l, `,"chain_id":"c"`)
	l.Close()
	l = f.with(t, silent("one"))
	bare := seal(t, l, `,"chain_id":"c"`)
	expect.Hold(t, len(half.Timestamps) == 1 && len(bare.Timestamps) == 0,
		"%d and %d time stamps, want 1 and 0", len(half.Timestamps), len(bare.Timestamps))
	wantOwing(t, l, "one 2, two 1")
	wantClean(t, f.fsck(t))
	l.Close()

	l = f.with(t, clock{})
	pending := must(l.Waiting(t.Context(), "one", 0, 10))
	expect.Need(t, len(pending) == 2 && pending[0].Record.Digest == half.Digest && pending[1].Record.Digest == bare.Digest, "waiting %v", pending)
	since := pending[0].Since
	expect.Hold(t, !since.After(time.Now()) && !since.Before(time.Now().Add(-time.Hour)), "waiting since %v", since)
	expect.Give(l.Settle(t.Context(), lateStamps(pending), actor))(t, 2)
	wantOwing(t, l, "two 1")
	expect.Give(l.Settle(t.Context(), lateStamps(pending), actor))(t, 0)
	acts := lateActs(t, l)
	expect.Need(t, len(acts) == 1 && acts[0].Payload.AgentID == ledger.OperatorName && len(acts[0].Timestamps) == 1, "acts %v", acts)
	// What was returned by Seal is proved with all the time stamps that the log has by now.
	bundle := must(l.Prove(t.Context(), half, bare))
	for i, want := range []int{2, 1} {
		expect.Equal(t, len(bundle.Records[i].Timestamps), want)
	}
	found := must(fsck.Run(t.Context(), examined(f.config(must(f.store(t)))), fsck.Options{}))
	wantClean(t, found)
	expect.Give(l.Forget(t.Context(), "two"))(t, 1)
	wantOwing(t, l, "")
}

// TestActsNeverWait checks that an act about stamps waits for no authority, and is not sealed without any token.
func TestActsNeverWait(t *testing.T) {
	store := fresh(t)
	c := config(store)
	c.Stamper = silent("one")
	l := must(ledger.Create(t.Context(), c))
	seal(t, l, "")
	pending := must(l.Waiting(t.Context(), "one", 0, 10))
	fails(t, errSilent)(l.Settle(t.Context(), lateStamps(pending), actor))
	wantOwing(t, l, "one 1")

	c.Settler = halfSilent{silent("one")}
	l = must(ledger.Open(t.Context(), c))
	expect.Give(l.Settle(t.Context(), lateStamps(pending), actor))(t, 1)
	wantOwing(t, l, "")
	expect.Equal(t, len(lateActs(t, l)), 1, "acts")
}

func TestSettleRefuses(t *testing.T) {
	l, _ := alone(t)
	waiting := func(n int) []ledger.LateStamp {
		stamps := make([]ledger.LateStamp, n)
		for i := range stamps {
			stamps[i] = lateStamp(ledger.Pending{Wait: storage.Wait{Authority: "one"}, Record: seal(t, l, "")})
		}
		return stamps
	}
	expect.Give(l.Settle(t.Context(), waiting(2), actor))(t, 0)
	many := slices.Repeat(waiting(1), operator.MaxLateStamps+1)
	expect.Refuse(t, "501 stamps", "too many")(l.Settle(t.Context(), many, actor))
	expect.Refuse(t, "two stamps for record", "twice")(l.Settle(t.Context(), slices.Repeat(waiting(1), 2), actor))
	sundial := waiting(1)
	sundial[0].Timestamp.Kind = "sundial"
	expect.Refuse(t, "sundial", "another kind")(l.Settle(t.Context(), sundial, actor))
	expect.Equal(t, len(lateActs(t, l)), 0, "acts")
}

// TestSettledByTwo lets two processes bring the same stamps: each record gets its stamp once, and one act says so.
func TestSettledByTwo(t *testing.T) {
	store := fresh(t)
	c := config(store)
	c.Stamper, c.Settler = silent("one"), clock{}
	l := must(ledger.Create(t.Context(), c))
	sealMany(t, l, 3)
	pending := must(l.Waiting(t.Context(), "one", 0, 10))
	race := &racing{Store: store}
	race.first = func() {
		other := must(ledger.Open(t.Context(), c))
		expect.Give(other.Settle(t.Context(), lateStamps(pending[1:2]), actor))(t, 1)
	}
	c.Store = race
	mine := must(ledger.Open(t.Context(), c))
	expect.Give(mine.Settle(t.Context(), lateStamps(pending), actor))(t, 2)
	expect.Equal(t, len(lateActs(t, l)), 2, "acts")
	wantOwing(t, l, "")
	for r := range l.Records(t.Context(), 0) {
		expect.Equal(t, len(r.Timestamps), 1)
	}
}

// racing lets another caller go first, once.
type racing struct {
	storage.Store
	first func()
}

func (r *racing) Append(ctx context.Context, plan storage.Plan) error {
	if first := r.first; first != nil {
		r.first = nil
		first()
	}
	return r.Store.Append(ctx, plan)
}

// TestOutboxFaults fails every write of sealing and settling in turn, stored or not, and tries again as a caller would.
func TestOutboxFaults(t *testing.T) {
	runs := 0
	for _, stored := range []bool{false, true} {
		for n := 3; ; n++ { // the first two writes are of Create
			f := &faulty{Store: fresh(t), n: n, stored: stored}
			c := config(f)
			c.Stamper, c.Settler = silent("one", "two"), clock{}
			c.Published = &outside{f: f}
			t.Run(fmt.Sprintf("write %d, stored %v", n, stored), func(t *testing.T) {
				l := must(ledger.Create(t.Context(), c))
				for i := range 3 {
					again(t, func() error {
						_, err := l.Seal(t.Context(), act(fmt.Sprintf(`,"record_id":"01890000-0000-7000-8000-%012d"`, i)), actor)
						if errors.Is(err, ledger.ErrDuplicate) {
							err = nil
						}
						return err
					})
				}
				wantOwing(t, l, "one 3, two 3")
				for _, authority := range []string{"one", "two"} {
					for range 2 { // two at a time
						again(t, func() error {
							return only(l.Settle(t.Context(), lateStamps(must(l.Waiting(t.Context(), authority, 0, 2))), actor))
						})
					}
				}
				wantOwing(t, l, "")
				expect.Equal(t, len(lateActs(t, l)), 4, "acts")
				for r := range l.Records(t.Context(), 0) {
					want := map[bool]int{true: 1, false: 2}[r.Payload.ActionType == evidence.LateStamp]
					expect.Hold(t, len(r.Timestamps) == want, "%s has %d time stamps, want %d", r.Payload.ActionType, len(r.Timestamps), want)
				}
				found := must(fsck.Run(t.Context(), examined(c), fsck.Options{}))
				wantClean(t, found)
			})
			if !f.failed {
				break
			}
			runs++
		}
	}
	expect.Hold(t, runs >= 14, "only %d writes failed", runs)
}

// again repeats an operation after a fault.
func again(t *testing.T, try func() error) {
	t.Helper()
	if err := try(); err != nil {
		wantError(t, err, errFault)
		wantError(t, try(), nil)
	}
}

// with opens the ledger with another stamper. The clock stamps that ledger's own acts.
func (f folder) with(t testing.TB, s ledger.Stamper) *ledger.Ledger {
	t.Helper()
	c := f.config(must(f.store(t)))
	c.Stamper, c.Settler = s, clock{}
	l := must(ledger.Open(t.Context(), c))
	t.Cleanup(func() { l.Close() })
	return l
}

// TestWaitingIsBounded checks that at most a fixed amount of waiting records is in memory at once, and that none is
// left out.
func TestWaitingIsBounded(t *testing.T) {
	c := config(fresh(t))
	c.Stamper, c.Settler = silent("one"), clock{}
	l := must(ledger.Create(t.Context(), c))
	const size, n = 5 << 20, 9
	large := act(`,"context":"` + strings.Repeat("x", size) + `"`)
	for range n {
		must(l.Seal(t.Context(), large, actor))
	}
	found := 0
	for from := int64(0); ; {
		page := must(l.Waiting(t.Context(), "one", from, 500))
		if len(page) == 0 {
			break
		}
		held := len(page) * size
		expect.Hold(t, held <= ledger.MaxHeld+size, "%d bytes at once", held)
		found, from = found+len(page), page[len(page)-1].Index+1
	}
	expect.Equal(t, found, n)
}

// anchor has an authority stamp the checkpoint that it has not stamped yet, as the fixture's authorities do.
func anchor(t testing.TB, l *ledger.Ledger, authority string) (*evidence.Record, bool) {
	t.Helper()
	checkpoint := must(l.Unanchored(t.Context(), authority, must(l.Checkpoint(t.Context()))))
	if checkpoint == "" {
		return nil, false
	}
	digest := sha256.Sum256([]byte(checkpoint))
	body := operator.CheckpointStampBody{Authority: authority, Checkpoint: checkpoint, Token: tokenBy(authority, digest)}
	return must(l.Anchor(t.Context(), body, actor)), true
}

// wantUnder checks the proof of a record, and which authorities stamped which checkpoints over it, as "authority size".
func wantUnder(t *testing.T, l *ledger.Ledger, r *evidence.Record, want ...string) {
	t.Helper()
	one := must(l.ProveOne(t.Context(), r))
	checkProof(t, one, one.Log.Checkpoint)
	wantAnchors(t, one.Log.Checkpoint, one.Log.Anchors, want...)
}

func wantAnchors(t *testing.T, checkpoint string, anchors []evidence.Anchor, want ...string) {
	t.Helper()
	own := must(operator.OpenCheckpoint(checkpoint, logVerifier))
	var got []string
	for _, a := range anchors {
		at := must(operator.OpenCheckpoint(a.Checkpoint, logVerifier))
		proof := operator.Consistency{Origin: own.Origin, From: min(at.Size, own.Size), To: max(at.Size, own.Size)}
		for _, node := range a.Consistency {
			proof.Proof = append(proof.Proof, tlog.Hash(node))
		}
		small, large := at, own
		if small.Size > large.Size {
			small, large = large, small
		}
		wantError(t, proof.Check(small, large), nil)
		imprints := must(a.Imprints())
		for i, generation := range a.Timestamps {
			for _, token := range generation {
				authority, over, _ := strings.Cut(string(token), "\x00")
				expect.Equal(t, over, string(imprints[i][:]))
				got = append(got, fmt.Sprint(strings.Repeat("renewed by ", i), authority, " ", at.Size))
			}
		}
	}
	expect.Hold(t, slices.Equal(got, want), "stamped by %q, want %q", got, want)
}

// renew has an authority renew a stamped checkpoint.
func renew(t testing.TB, l *ledger.Ledger, a evidence.Anchor, authority string) {
	t.Helper()
	imprint := must(a.Imprints())[len(a.Timestamps)]
	must(l.Anchor(t.Context(), operator.CheckpointStampBody{Authority: authority, Checkpoint: a.Checkpoint, Renews: a.Timestamps, Token: tokenBy(authority, imprint)}, actor))
}

func tokenBy(authority string, imprint [32]byte) []byte {
	return append([]byte(authority+"\x00"), imprint[:]...)
}

// TestAnchor checks that a record is proved under the earliest stamped checkpoint over it, and that acts about stamps
// cause no further stamps.
func TestAnchor(t *testing.T) {
	l, c := alone(t)
	act, ok := anchor(t, l, "one")
	expect.Need(t, !ok, "an empty log was stamped: %v", act)
	records := sealMany(t, l, 40)
	wantUnder(t, l, records[0])
	first, _ := anchor(t, l, "one") // at 40
	expect.Hold(t, first.Payload.ChainID == operator.CheckpointsChain && first.Payload.PreviousRecord.IsZero(),
		"chain %q, previous record %v", first.Payload.ChainID, first.Payload.PreviousRecord)
	for range 3 {
		act, ok := anchor(t, l, "one")
		expect.Need(t, !ok, "stamped again: %v", act)
	}
	second, _ := anchor(t, l, "two") // at 41: the same checkpoint
	expect.Equal(t, second.Payload.PreviousRecord, first.Digest)
	for _, authority := range []string{"one", "two"} {
		act, ok := anchor(t, l, authority)
		expect.Need(t, !ok, "stamped again: %v", act)
	}
	wantUnder(t, l, records[0], "one 40", "two 40")
	wantUnder(t, l, records[39], "one 40", "two 40")

	later := seal(t, l, "") // at 42
	wantUnder(t, l, later)
	anchor(t, l, "two") // at 43, over 43
	wantUnder(t, l, later, "two 43")
	wantUnder(t, l, records[7], "one 40", "two 40")
	third := seal(t, l, "") // at 44
	anchor(t, l, "one")     // at 45, over 45
	wantUnder(t, l, later, "two 43", "one 45")
	wantUnder(t, l, records[7], "one 40", "two 40")
	wantUnder(t, l, first, "two 43", "one 45")
	wantUnder(t, l, third, "one 45")
	bundle := must(l.Prove(t.Context(), records[7], later))
	wantAnchors(t, bundle.Checkpoint, bundle.Anchors, "one 40", "two 40", "two 43", "one 45")
	again, err := evidence.ParseBundle(must(bundle.Marshal()))
	expect.Hold(t, err == nil && len(again.Anchors) == 3, "the bundle: %v", err)
	file := must(l.CaseFile(t.Context(), []int64{7, 42}))
	wantAnchors(t, file.Checkpoint, file.Anchors, "one 40", "two 40", "two 43", "one 45")
	wantClean(t, damagesOf(t, c))
}

// TestRenewedAnchors: a renewal covers the tokens that were there; one that came after it stands by itself, and has its own renewal.
func TestRenewedAnchors(t *testing.T) {
	l, c := alone(t)
	r := seal(t, l, "")
	anchor(t, l, "one")
	anchor(t, l, "two")
	all := must(l.Anchors(t.Context()))
	renew(t, l, all[0], "three")
	wantUnder(t, l, r, "one 1", "two 1", "renewed by three 1")
	renew(t, l, all[0], "four") // beside three
	wantUnder(t, l, r, "one 1", "two 1", "renewed by three 1", "renewed by four 1")
	anchor(t, l, "late")
	wantUnder(t, l, r, "one 1", "two 1", "renewed by three 1", "renewed by four 1", "late 1")
	for _, a := range must(l.Anchors(t.Context())) {
		renew(t, l, a, "five")
	}
	wantUnder(t, l, r, "one 1", "two 1", "renewed by three 1", "renewed by four 1", "renewed by renewed by five 1", "late 1", "renewed by five 1")
	_, ok := anchor(t, l, "one")
	expect.Hold(t, !ok, "acts about renewals are stamped")
	wantClean(t, damagesOf(t, c))
}

// TestTooManyAnchors: of more stamped checkpoints than a file may have, some are left out, and the records have the next one.
func TestTooManyAnchors(t *testing.T) {
	l, _ := alone(t)
	var at []int64
	for n := range evidence.MaxAnchorTokens + 2 {
		at = append(at, int64(2*n))
		seal(t, l, "")
		anchor(t, l, "one")
	}
	file := must(l.CaseFile(t.Context(), at))
	n := len(file.Anchors)
	expect.Hold(t, n >= evidence.MaxAnchorTokens/2 && n <= evidence.MaxAnchorTokens && evidence.CheckAnchors("x", file.Anchors) == nil, "%d anchors", n)
	expect.Equal(t, must(operator.OpenCheckpoint(file.Anchors[len(file.Anchors)-1].Checkpoint, logVerifier)).Size, at[len(at)-1]+1)
}

func over(size int, authorities ...string) (want []string) {
	for _, a := range authorities {
		want = append(want, fmt.Sprint(a, " ", size))
	}
	return want
}

// TestManyAnchors checks that acts after the first page are found.
func TestManyAnchors(t *testing.T) {
	l, _ := alone(t)
	r := seal(t, l, "")
	var names []string
	for i := range 70 {
		names = append(names, fmt.Sprintf("authority-%02d", i))
		anchor(t, l, names[i])
	}
	wantUnder(t, l, r, over(1, names...)...)
	act, ok := anchor(t, l, names[0])
	expect.Hold(t, !ok, "stamped again: %v", act)
	next := seal(t, l, "")
	anchor(t, l, names[0])
	wantUnder(t, l, next, over(72, names[0])...)
	wantUnder(t, l, r, over(1, names...)...)
}

// TestAnchorRefuses checks that a checkpoint of another log is not sealed, and not used for proofs if it was sealed
// nevertheless.
func TestAnchorRefuses(t *testing.T) {
	l, _ := alone(t)
	r := seal(t, l, "")
	foreign := must(operator.SignCheckpoint(operator.Checkpoint{Origin: otherSigner.Name(), Size: 7}, otherSigner))
	body := operator.CheckpointStampBody{Authority: "one", Checkpoint: foreign, Token: []byte{1}}
	fails(t, ledger.ErrCheckpoint)(l.Anchor(t.Context(), body, actor))
	draft := func(response []byte) *evidence.Draft {
		return must(evidence.NewDraft(evidence.Payload{ActionType: evidence.CheckpointStamp, AgentID: "x", Timestamp: "2026-01-01T00:00:00Z",
			ChainID: operator.CheckpointsChain, Response: response}))
	}
	must(l.Seal(t.Context(), draft(must(operator.Encode(body))), actor))
	fails(t, ledger.ErrCheckpoint)(l.ProveOne(t.Context(), r))
	fails(t, ledger.ErrCheckpoint)(l.Unanchored(t.Context(), "two", must(l.Checkpoint(t.Context()))))

	l, _ = alone(t)
	r = seal(t, l, "")
	must(l.Seal(t.Context(), draft([]byte(`{"authority":"one"}`)), actor))
	fails(t, ledger.ErrDamaged)(l.ProveOne(t.Context(), r))

	// A checkpoint over another history of this log proves nothing, and is not returned.
	fork := must(operator.SignCheckpoint(operator.Checkpoint{Origin: logSigner.Name(), Size: 1}, logSigner))
	l, _ = alone(t)
	r = seal(t, l, "")
	body.Checkpoint = fork
	must(l.Anchor(t.Context(), body, actor))
	fails(t, ledger.ErrDamaged)(l.ProveOne(t.Context(), r))
}

// TestAnchorsNeverWait checks that acts about stamps do not cause each other without end while an authority comes and
// goes.
func TestAnchorsNeverWait(t *testing.T) {
	c := config(fresh(t))
	c.Stamper, c.Settler = halfSilent{silent("one")}, halfSilent{silent("one")}
	l := must(ledger.Create(t.Context(), c))
	seal(t, l, "")
	steps := 0
	for ; steps < 10; steps++ { // as a schedule would
		_, stamped := anchor(t, l, "two")
		n := must(l.Settle(t.Context(), lateStamps(must(l.Waiting(t.Context(), "one", 0, 10))), actor))
		if !stamped && n == 0 {
			break
		}
	}
	expect.Equal(t, steps, 2)
}

// TestAnchorFaults fails every write while a checkpoint is stamped.
func TestAnchorFaults(t *testing.T) {
	for _, stored := range []bool{false, true} {
		runs := 0
		for n := 4; ; n++ { // after those of Create and of the record
			f := &faulty{Store: fresh(t), n: n, stored: stored}
			c := config(f)
			c.Published = &outside{f: f}
			l := must(ledger.Create(t.Context(), c))
			r := seal(t, l, "")
			for range 3 {
				checkpoint, err := l.Checkpoint(t.Context())
				if err == nil {
					checkpoint, err = l.Unanchored(t.Context(), "one", checkpoint)
				}
				if err == nil && checkpoint != "" {
					_, err = l.Anchor(t.Context(), operator.CheckpointStampBody{Authority: "one", Checkpoint: checkpoint, Token: []byte("t")}, actor)
				}
				expect.Need(t, err == nil || errors.Is(err, errFault), "%v", err)
			}
			act, ok := anchor(t, l, "one")
			expect.Hold(t, !ok, "write %d, stored %v: stamped again: %v", n, stored, act)
			one := must(l.ProveOne(t.Context(), r))
			expect.Equal(t, len(one.Log.Anchors), 1)
			wantClean(t, damagesOf(t, c))
			if !f.failed {
				break
			}
			runs++
		}
		expect.Hold(t, runs >= 3, "stored %v: only %d writes failed", stored, runs)
	}
}

// TestAnchoredByTwo checks two processes that anchor at the same time. Each act follows another one, and none claims
// to be earlier than the one before it, although a clock was set back.
func TestAnchoredByTwo(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	seal(t, l, "")
	c := f.config(must(f.store(t)))
	race := &racing{Store: c.Store}
	c.Store = race
	c.Now = func() time.Time { return time.Now().Add(-time.Hour) }
	mine := must(ledger.Open(t.Context(), c))
	var first *evidence.Record
	race.first = func() { first, _ = anchor(t, l, "one") }
	second, _ := anchor(t, mine, "two")
	if second.Payload.PreviousRecord != first.Digest || second.Payload.Time().Before(first.Payload.Time()) {
		t.Errorf("it follows %v at %s, and the one before is %v at %s", second.Payload.PreviousRecord, second.Payload.Timestamp,
			first.Digest, first.Payload.Timestamp)
	}
	wantUnder(t, l, must(l.Record(t.Context(), second.Payload.RecordID)))
	wantClean(t, f.fsck(t))
}
