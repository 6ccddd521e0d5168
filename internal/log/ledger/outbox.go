package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
	"jurat/internal/log/ledger/storage"
)

// OperatorName is the agent_id of the operator's acts, and the name of the key that signs them: a log has one operator.
const OperatorName = "operator"

// neverWaits reports whether acts of this type are stored without the stamps of authorities that do not answer. They
// are about stamps. If they waited for stamps themselves, each late stamp would need another act, without end.
func neverWaits(action evidence.ActionType) bool {
	return action == evidence.LateStamp || action == evidence.CheckpointStamp
}

// waits makes a record wait for the authorities that have not stamped it.
func waits(index int64, missing []Missing, since time.Time) (list []storage.Wait) {
	for _, m := range missing {
		list = append(list, storage.Wait{Index: index, Authority: m.Authority, Since: since.UTC().Truncate(time.Millisecond)})
	}
	return list
}

// A Pending is a record and a time stamp that it waits for.
type Pending struct {
	storage.Wait
	Record *evidence.Record
}

// Owing returns for each authority, sorted by name, how many records wait for it, and since when.
func (l *Ledger) Owing(ctx context.Context) (_ []storage.Owed, err error) {
	defer fault.While(&err, "reading the records that wait for time stamps")
	return l.cfg.Store.Owing(ctx)
}

// MaxHeld is about how many bytes of payloads are in memory at once when many records are processed together. One
// record can have MaxDocument bytes.
const MaxHeld = 32 << 20

// Waiting returns, in log order, the first records from index from on that wait for this authority: at most n, and
// none after MaxHeld bytes. It returns an empty list only if none wait.
func (l *Ledger) Waiting(ctx context.Context, authority string, from, n int64) (pending []Pending, err error) {
	defer fault.While(&err, "reading the records that wait for %s", authority)
	waits, err := l.cfg.Store.Waiting(ctx, authority, from, n)
	if err != nil {
		return nil, err
	}
	held := 0
	for _, w := range waits {
		rows, err := l.RowsFrom(ctx, w.Index, 1)
		if err != nil {
			return nil, err
		}
		record, err := rows[0].Record()
		if err != nil {
			return nil, err
		}
		pending = append(pending, Pending{Wait: w, Record: record})
		if held += len(record.Canonical()); held >= MaxHeld {
			break
		}
	}
	return pending, nil
}

// Forget drops this authority from every waiting record that already has a time stamp, and returns how many it
// dropped.
func (l *Ledger) Forget(ctx context.Context, authority string) (_ int64, err error) {
	defer fault.While(&err, "dropping the authority %s from waiting records", authority)
	return l.cfg.Store.Forget(ctx, authority)
}

// A LateStamp is a time stamp for a record that waits for it, or, if its Authority is "", a renewal for a record that
// does not.
type LateStamp struct {
	Pending
	Timestamp evidence.Timestamp
	By        string // the authority that gave it; "": the one that the record waits for
}

// Settle adds time stamps to the records that wait for them, or renewals, at most operator.MaxLateStamps. It seals a
// late_stamp act about them in the same transaction: a crash leaves all of it or nothing. The caller has verified the
// stamps. Settle leaves out a record that another process has stamped meanwhile, and returns how many it stamped.
//
// Config.Settler stamps the act itself, if it answers. The act never waits for a stamp. Settle refuses too many
// stamps, two stamps for one wait, and a stamp with which the record could not be read. Its other errors are those of
// Seal.
func (l *Ledger) Settle(ctx context.Context, stamps []LateStamp, by []evidence.Signer) (_ int, err error) {
	defer fault.While(&err, "adding late time stamps")
	if len(stamps) > operator.MaxLateStamps {
		return 0, fmt.Errorf("%d stamps at once, want at most %d", len(stamps), operator.MaxLateStamps)
	}
	seen := map[string]bool{}
	for _, s := range stamps {
		r := s.Record
		if _, err := evidence.OpenParts(r.Canonical(), r.Signatures, append(slices.Clone(r.Timestamps), s.Timestamp)); err != nil {
			return 0, fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		wait := r.Digest.String() + s.Authority
		if s.Authority != "" && seen[wait] { // the second would look like a conflict with another process
			return 0, fmt.Errorf("two stamps for record %s, which waits for one by %s", r.Payload.RecordID, s.Authority)
		}
		seen[wait] = true
	}
	for {
		still, err := l.stillWaiting(ctx, stamps)
		if err != nil || len(still) == 0 {
			return 0, err
		}
		if err = l.sealLateStamp(ctx, still, by); err == nil {
			return len(still), nil
		}
		if !errors.Is(err, ErrConflict) {
			return 0, err
		}
		// Another process has stamped one of them meanwhile, so this loop ends.
	}
}

func (l *Ledger) stillWaiting(ctx context.Context, stamps []LateStamp) ([]LateStamp, error) {
	var still []LateStamp
	for _, s := range stamps {
		if s.Authority == "" {
			still = append(still, s)
			continue
		}
		waits, err := l.cfg.Store.Waiting(ctx, s.Authority, s.Index, 1)
		if err != nil {
			return nil, err
		}
		if len(waits) == 1 && waits[0].Index == s.Index {
			still = append(still, s)
		}
	}
	return still, nil
}

// sealLateStamp seals the act and adds its stamps. It returns ErrConflict, wrapped, if a record does not wait any
// more.
func (l *Ledger) sealLateStamp(ctx context.Context, stamps []LateStamp, by []evidence.Signer) error {
	var body operator.LateStampBody
	var saw []evidence.Digest
	var late []storage.Stamp
	for _, s := range stamps {
		late = append(late, storage.Stamp{Index: s.Index, Authority: s.Authority, Timestamp: s.Timestamp})
		body.Stamps = append(body.Stamps, operator.LateStamped{Authority: cmp.Or(s.By, s.Authority), Kind: s.Timestamp.Kind,
			Record: s.Record.Digest, Token: evidence.DigestOf(s.Timestamp.Token)})
		if !slices.Contains(saw, s.Record.Digest) {
			saw = append(saw, s.Record.Digest)
		}
	}
	p, err := OperatorAct(evidence.Payload{ActionType: evidence.LateStamp, Timestamp: evidence.FormatTime(l.cfg.Now()), Saw: saw}, body)
	if err != nil {
		return err
	}
	draft, err := evidence.NewDraft(p)
	if err != nil {
		return err
	}
	_, err = l.sealWith(ctx, draft, by, late)
	return err
}

// Unanchored returns the checkpoint that an authority should stamp next. It returns "" if the authority has stamped
// one over every record that a checkpoint of this log covers. It ignores the acts about stamped checkpoints at the
// end of the log, because each would require another stamp.
//
// If another authority has stamped a checkpoint that covers enough, Unanchored returns that one, so that one
// checkpoint gets several stamps.
func (l *Ledger) Unanchored(ctx context.Context, authority, checkpoint string) (_ string, err error) {
	defer fault.While(&err, "looking for a stamped checkpoint")
	size, err := l.SizeAt(ctx, checkpoint)
	if err != nil {
		return "", err
	}
	if size, err = l.withoutStamps(ctx, size); err != nil || size == 0 {
		return "", err
	}
	for stamped, err := range l.stampedFrom(ctx, size) {
		switch {
		case err != nil:
			return "", err
		case stamped.head.Size < size || len(stamped.body.Renews) > 0:
		case stamped.body.Authority == authority:
			return "", nil
		default:
			checkpoint = stamped.body.Checkpoint
		}
	}
	return checkpoint, nil
}

// withoutStamps returns size, less the checkpoint_stamp acts at the end of the first size records.
func (l *Ledger) withoutStamps(ctx context.Context, size int64) (int64, error) {
	for size > 0 {
		from := max(0, size-pageSize)
		rows, err := l.RowsFrom(ctx, from, size-from)
		if err != nil {
			return 0, err
		}
		for i := range slices.Backward(rows) {
			if rows[i].Entry != nil { // an expired record was no such act
				return size, nil
			}
			record, err := rows[i].Record()
			if err != nil || record.Payload.ActionType != evidence.CheckpointStamp {
				return size, err
			}
			size--
		}
	}
	return size, nil
}

type stamped struct {
	body *operator.CheckpointStampBody
	head storage.Head
}

// stampedFrom yields the checkpoint_stamp acts from an index on. An act about a checkpoint comes after all records
// that the checkpoint covers. The error is ErrDamaged if one cannot be read, and that of a checkpoint which is not of this log.
func (l *Ledger) stampedFrom(ctx context.Context, from int64) iter.Seq2[stamped, error] {
	acts := paged(from, func(from int64) ([]storage.Row, error) {
		return l.cfg.Store.InChain(ctx, operator.CheckpointsChain, from, pageSize)
	})
	return opened(acts, func(row *storage.Row) (s stamped, err error) {
		act, err := row.Record()
		if err != nil {
			return s, err
		}
		if s.body, err = operator.Read[operator.CheckpointStampBody](&act.Payload); err != nil {
			return s, fmt.Errorf("%w: record %s: %w", ErrDamaged, row.RecordID, err)
		}
		if s.head, err = l.cfg.open(s.body.Checkpoint); err != nil {
			err = fmt.Errorf("record %s: %w", row.RecordID, err)
		}
		return s, err
	}, "reading chain %q", operator.CheckpointsChain)
}

// Anchor seals the fact that an authority has stamped a checkpoint of this log, or renewed its stamps. The caller has verified
// the token. From then on Prove uses it. If an authority does not
// stamp the act itself, the act is stored without waiting for it. It returns ErrCheckpoint, wrapped, for a checkpoint
// that the log's key did not sign, and the errors of Seal.
func (l *Ledger) Anchor(ctx context.Context, body operator.CheckpointStampBody, by []evidence.Signer) (_ *evidence.Record, err error) {
	defer fault.While(&err, "sealing that a checkpoint was stamped")
	if err := l.mayAppend(); err != nil {
		return nil, err
	}
	if _, err := l.cfg.open(body.Checkpoint); err != nil {
		return nil, err
	}
	if err := evidence.CheckAnchors(body.Checkpoint, []evidence.Anchor{body.Anchor()}); err != nil {
		return nil, err
	}
	p, err := OperatorAct(evidence.Payload{ActionType: evidence.CheckpointStamp, ChainID: operator.CheckpointsChain}, body)
	if err != nil {
		return nil, err
	}
	records, err := l.SealLast(ctx, operator.CheckpointsChain, by, p)
	if err != nil {
		return nil, err
	}
	return records[0], nil
}

// Anchors returns all stamped checkpoints, the smallest first. They have no proofs of consistency.
func (l *Ledger) Anchors(ctx context.Context) (list []evidence.Anchor, err error) {
	defer fault.While(&err, "reading stamped checkpoints")
	all, err := l.anchorsFrom(ctx, 0)
	for _, a := range all {
		list = append(list, a.stamps...)
	}
	return list, err
}

// An anchored is a checkpoint with what was stamped over it.
type anchored struct {
	signed string
	head   storage.Head
	by     []string          // the authorities that stamped the checkpoint itself
	stamps []evidence.Anchor // without consistency; several where a token came after a renewal
}

// anchorsFrom returns the stamped checkpoints, the smallest first, by the acts from an index on.
func (l *Ledger) anchorsFrom(ctx context.Context, from int64) ([]*anchored, error) {
	known := map[string]*anchored{}
	var all []*anchored
	for act, err := range l.stampedFrom(ctx, from) {
		if err != nil {
			return nil, err
		}
		a := known[act.body.Checkpoint]
		if a == nil {
			a = &anchored{signed: act.body.Checkpoint, head: act.head}
			known[act.body.Checkpoint] = a
			all = append(all, a)
		}
		a.add(act.body)
	}
	slices.SortStableFunc(all, func(a, b *anchored) int { return cmp.Compare(a.head.Size, b.head.Size) })
	return all, nil
}

// add adds the token of an act beside others over the same, or after what it renews.
func (a *anchored) add(body *operator.CheckpointStampBody) {
	if len(body.Renews) == 0 {
		a.by = append(a.by, body.Authority)
	}
	at := len(body.Renews)
	for i := range a.stamps {
		has := a.stamps[i].Timestamps
		switch {
		case len(has) < at || len(has) > at+1 || !slices.EqualFunc(has[:at], body.Renews, sameTokens):
		case len(has) == at:
			a.stamps[i].Timestamps = append(has, [][]byte{body.Token})
			return
		default:
			if !slices.ContainsFunc(has[at], func(token []byte) bool { return bytes.Equal(token, body.Token) }) {
				has[at] = append(has[at], body.Token)
			}
			return
		}
	}
	a.stamps = append(a.stamps, body.Anchor())
}

func sameTokens(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

// anchors returns the stamped checkpoints for records at these indexes, which are in log order: for each record, of each authority, the
// smallest over it. They come with the proofs of their consistency with a checkpoint over all these records. Of more than a file may have, some are
// left out, and the records below them have the next larger one.
func (l *Ledger) anchors(ctx context.Context, at []int64, under storage.Head) ([]evidence.Anchor, error) {
	if len(at) == 0 {
		return nil, nil
	}
	all, err := l.anchorsFrom(ctx, at[0]+1)
	if err != nil {
		return nil, err
	}
	hashes := cached(l.cfg.hashes(ctx))
	var list []evidence.Anchor
	for _, a := range timing(all, at) {
		proof, err := consistency(a.head, under, hashes)
		if err != nil {
			return nil, err
		}
		for _, stamps := range a.stamps {
			stamps.Consistency = proof
			list = append(list, stamps)
		}
	}
	for len(list) > 0 && evidence.CheckAnchors("any", list) != nil {
		n, last := 0, len(list)-1
		list = slices.DeleteFunc(list, func(evidence.Anchor) bool { n++; return (last-n)%2 == 0 || last == 0 })
	}
	return list, nil
}

// timing returns those of the stamped checkpoints that are, for a record at one of these indexes and an authority, the smallest over it.
func timing(all []*anchored, at []int64) []*anchored {
	by := map[string][]*anchored{}
	for _, a := range all {
		for _, authority := range a.by {
			by[authority] = append(by[authority], a)
		}
	}
	wanted := map[*anchored]bool{}
	for _, list := range by {
		for _, index := range at {
			n, _ := slices.BinarySearchFunc(list, index+1, func(a *anchored, size int64) int { return cmp.Compare(a.head.Size, size) })
			for _, a := range list[n:] {
				if a.head.Size > list[n].head.Size {
					break
				}
				wanted[a] = true
			}
		}
	}
	return slices.DeleteFunc(all, func(a *anchored) bool { return !wanted[a] })
}

// consistency proves that of two heads of the log one is the beginning of the other, and verifies that as a reader does.
func consistency(a, b storage.Head, hashes tlog.HashReader) ([][]byte, error) {
	if a.Size > b.Size {
		a, b = b, a
	}
	nodes := [][]byte{}
	if a.Size == b.Size || a.Size == 0 {
		return nodes, nil
	}
	proof, err := tlog.ProveTree(b.Size, a.Size, hashes)
	if err != nil {
		return nil, err
	}
	if err := tlog.CheckTree(proof, b.Size, b.Root, a.Size, a.Root); err != nil {
		return nil, fmt.Errorf("%w: the log of %d records is not the beginning of that of %d: %w", ErrDamaged, a.Size, b.Size, err)
	}
	for _, node := range proof {
		nodes = append(nodes, bytes.Clone(node[:]))
	}
	return nodes, nil
}
