package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/fault"
	"jurat/internal/ledger/storage"
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

func (s *LateStamp) by() string {
	if s.By == "" {
		return s.Authority
	}
	return s.By
}

// A settlement is one wait that a late stamp ends.
type settlement struct {
	record    evidence.Digest
	authority string
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
	seen := map[settlement]bool{}
	for i := range stamps {
		if err := stamps[i].check(); err != nil {
			return 0, err
		}
		wait := settlement{stamps[i].Record.Digest, stamps[i].Authority}
		if wait.authority != "" && seen[wait] { // the second would look like a conflict with another process
			return 0, fmt.Errorf("two stamps for record %s, which waits for one by %s", stamps[i].Record.Payload.RecordID, wait.authority)
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

// check returns an error if the record could not be read with this time stamp.
func (s *LateStamp) check() error {
	r := s.Record
	_, err := evidence.OpenParts(r.Canonical(), r.Signatures, append(slices.Clone(r.Timestamps), s.Timestamp))
	if err != nil {
		return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
	}
	return nil
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
	for _, s := range stamps {
		body.Stamps = append(body.Stamps, operator.LateStamped{Authority: s.by(), Kind: s.Timestamp.Kind,
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
	var late []storage.Stamp
	for _, s := range stamps {
		late = append(late, storage.Stamp{Index: s.Index, Authority: s.Authority, Timestamp: s.Timestamp})
	}
	_, err = l.sealWith(ctx, draft, by, late, nil)
	return err
}
