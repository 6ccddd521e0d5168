package installation

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/inorder"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/brief"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/log/lock"
	"jurat/timestamp"
	"jurat/verify"
)

// An ExpiryOrder says what is to expire.
type ExpiryOrder struct {
	Before     time.Time // records that are proved to have been sealed before this
	Except     []string  // chains that stay
	Reason, By string
	DryRun     bool // only count

	// Stays returns chains that stay, and single records, by digest. It is called again before the act is sealed. nil: there are none.
	Stays    func(context.Context) (*ExpiryStaying, error)
	Progress func(step string, done, total int64) // nil: nothing is told
}

// ExpiryStaying is what somebody still needs.
type ExpiryStaying struct {
	Chains  map[string]bool
	Records map[evidence.Digest]bool
}

// ExpiryDone is the result of Expire.
type ExpiryDone struct {
	Records  int64  `json:"records"`       // how many expired
	Act      string `json:"act,omitempty"` // record id; "": none was sealed
	Excepted int64  `json:"excepted"`      // old enough, but of excepted chains
	Needed   int64  `json:"needed"`        // old enough, but a trial or a person needs them
	Waiting  int64  `json:"waiting"`       // kept because they wait for a time stamp
	Unproved int64  `json:"unproved"`      // kept because the time of their sealing is not proved
	Finished int64  `json:"finished"`      // of an interrupted run
}

// ErrTooYoung means that the records of an order must be kept for longer.
var ErrTooYoung = errors.New("that is shorter than records must be kept")

// lockName is held by the one process that removes content.
const lockName = "expiry"

// Expire removes the content of old records, and the keys of their texts that are sealed apart. The next call finishes an interrupted one first. It
// returns ErrTooYoung, wrapped, if Order.Before is too recent, and lock.ErrTaken if another process removes content now.
func (i *Installation) Expire(ctx context.Context, o ExpiryOrder) (*ExpiryDone, error) {
	r := &run{Installation: i, order: o, done: new(ExpiryDone)}
	if o.Before.IsZero() || strings.TrimSpace(o.Reason) == "" || strings.TrimSpace(o.By) == "" {
		return r.done, errors.New("expiring records: it needs a time, a reason, and the name of the person who decided it")
	}
	if err := r.alone(ctx, r.all); err != nil {
		return r.done, fmt.Errorf("expiring records: %w", err)
	}
	return r.done, nil
}

// Expired returns how many records have expired, as the acts in the log say. Its errors are those of the log.
func (i *Installation) Expired(ctx context.Context) (n int64, err error) {
	acts, err := i.Ledger.Chain(ctx, operator.ExpiryChain)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return 0, err
	}
	for _, act := range acts {
		body, err := operator.ReadExpiry(&act.Payload)
		if err != nil {
			return 0, fmt.Errorf("%w: record %s: %w", ledger.ErrDamaged, act.Payload.RecordID, err)
		}
		n += body.Count
	}
	return n, nil
}

// FinishExpiry removes what an act in the log says is gone, after a crash. It does nothing while another process does it.
func (i *Installation) FinishExpiry(ctx context.Context) error {
	left, err := i.Ledger.Expiry().Expiring(ctx, 0, 1)
	if err != nil || len(left) == 0 {
		return err
	}
	r := &run{Installation: i, done: new(ExpiryDone)}
	err = r.alone(ctx, r.finish)
	if errors.Is(err, lock.ErrTaken) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finishing an interrupted expiry: %w", err)
	}
	return nil
}

func (r *run) alone(ctx context.Context, do func(context.Context) error) error {
	held, release, err := r.Locks.Lock(ctx, lockName)
	if err != nil {
		return err
	}
	defer release()
	err = do(held)
	if cause := context.Cause(held); err != nil && errors.Is(cause, lock.ErrLost) {
		return cause
	}
	return err
}

// A run is one call of Expire or FinishExpiry.
type run struct {
	*Installation
	order   ExpiryOrder
	done    *ExpiryDone
	options verify.Options // of the log's own trust
	today   time.Time      // by the clock and the log's newest time stamp
	stays   *ExpiryStaying
}

func (r *run) tell(step string, done, total int64) {
	if r.order.Progress != nil {
		r.order.Progress(step, done, total)
	}
}

func (r *run) all(ctx context.Context) error {
	if err := r.Ledger.CanAppend(ctx); err != nil {
		return err
	}
	if !r.order.DryRun {
		if err := r.finish(ctx); err != nil {
			return err
		}
		r.done.Finished, r.done.Records = r.done.Records, 0
	}
	trusted, err := r.Trust(ctx)
	if err != nil {
		return err
	}
	r.options = verify.Options{Trust: keys.Forever(trusted), Memory: timestamp.NewMemory()}
	if err := r.mayGo(ctx); err != nil {
		return err
	}
	act, err := evidence.NewRecordID(r.now(), nil)
	if err != nil {
		return err
	}
	for {
		body, err := r.choose(ctx, act)
		if err != nil || r.order.DryRun {
			return err
		}
		if body.Count == 0 {
			return r.reclaim(ctx)
		}
		r.step("noted")
		same, err := r.staysSame(ctx)
		if err != nil {
			return err
		}
		if same {
			if err := r.seal(ctx, act, body); err != nil {
				return err
			}
			r.done.Act = act
			return r.carryOut(ctx, act, body.Count)
		}
		if err := r.Ledger.Expiry().DropExpiring(ctx, act); err != nil {
			return err
		}
	}
}

// mayGo returns ErrTooYoung unless records that were sealed before the order's time may go today.
func (r *run) mayGo(ctx context.Context) (err error) {
	if r.today, err = r.provedToday(ctx); err != nil {
		return err
	}
	if from := r.order.Before.AddDate(0, 0, operator.MinRetention); from.After(r.today) {
		return fmt.Errorf("%w: records are kept for %d days, so those sealed before %s may go from %s on; by the clock and the log's newest time stamp, today is %s",
			ErrTooYoung, operator.MinRetention, r.order.Before.UTC().Format(time.DateOnly), from.UTC().Format(time.DateOnly), r.today.UTC().Format(time.DateOnly))
	}
	return nil
}

// mostUnstamped is how many of the last records provedToday reads to find one with a time stamp.
const mostUnstamped = 1024

// provedToday returns the clock's time, or the time of the log's newest time stamp if the clock is ahead of it.
func (r *run) provedToday(ctx context.Context) (time.Time, error) {
	size, err := r.Ledger.Size(ctx)
	if err != nil {
		return time.Time{}, err
	}
	now := r.now()
	for index := size - 1; index >= 0 && index >= size-mostUnstamped; index-- {
		rows, err := r.Ledger.RowsFrom(ctx, index, 1)
		if err != nil {
			return time.Time{}, err
		}
		record, err := rows[0].Record()
		if err != nil {
			continue // it has expired, or is damaged
		}
		stamped, err := r.sealed(record)
		if err != nil {
			continue // it waits for its time stamp
		}
		if stamped.Before(now) {
			return stamped, nil
		}
		return now, nil
	}
	return time.Time{}, fmt.Errorf("%w: none of the log's last %d records has a proved time, so today's date is not proved", ErrTooYoung, min(size, mostUnstamped))
}

// sealed returns the time by which a record is proved to have existed. It ignores what the record claims.
func (r *run) sealed(record *evidence.Record) (time.Time, error) {
	report := verify.Record(record, r.options)
	f := report.Of(verify.Time)
	t, ok := report.TimeOf(record.Payload.RecordID)
	if !ok || f.Status == verify.Refuted { // an actor's clock that was ahead of the authority's does not matter here
		return time.Time{}, fmt.Errorf("the time of its sealing is not proved: %s", f.Reason)
	}
	return t.Time, nil
}

// page is how many records are read at once, on each core: each can be as large as a record may be, and has signatures
// to verify. batch is how many are noted, or removed, in one transaction, which writes little of each.
const (
	page  = 64
	batch = 128
)

// choose notes which records are to go, and returns what the act says of them.
func (r *run) choose(ctx context.Context, act string) (*operator.ExpiryBody, error) {
	var err error
	if r.stays, err = r.staying(ctx); err != nil {
		return nil, err
	}
	*r.done = ExpiryDone{Finished: r.done.Finished}
	except := slices.Compact(slices.Sorted(slices.Values(r.order.Except)))
	body := &operator.ExpiryBody{Before: evidence.FormatTime(r.order.Before), By: strings.TrimSpace(r.order.By), Reason: strings.TrimSpace(r.order.Reason), Except: except}
	size, err := r.Ledger.Size(ctx)
	if err != nil {
		return nil, err
	}
	var gone, starts []int64
	for from := int64(0); from < size; from += page {
		starts = append(starts, from)
	}
	examined := int64(0)
	judge := func(from int64) (list []judged, err error) {
		rows, err := r.Ledger.RowsFrom(ctx, from, min(page, size-from))
		for i := range rows {
			list = append(list, judged{rows[i].Index, r.judge(&rows[i])})
		}
		return list, err
	}
	err = inorder.Each(starts, judge, func(list []judged) error {
		some, err := r.going(ctx, list)
		gone, examined = append(gone, some...), examined+int64(len(list))
		r.tell("records examined", examined, size)
		return err
	})
	if err != nil || len(gone) == 0 {
		return body, err
	}
	r.done.Records = int64(len(gone))
	body.Count, body.From, body.To, body.Places = r.done.Records, gone[0], gone[len(gone)-1]+1, placesOf(gone)
	if r.order.DryRun {
		return body, nil
	}
	for noted := range slices.Chunk(gone, batch) {
		if err := r.Ledger.Expiry().PutExpiring(ctx, act, noted); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// judged says what becomes of a record.
type judged struct {
	index int64
	as    *int64 // what counts those of which the same becomes, of which Records is of those that go; nil: it is kept, and not counted
}

// going counts verdicts, and returns the places of the records that go.
func (r *run) going(ctx context.Context, list []judged) (gone []int64, err error) {
	waits, err := r.Ledger.Waits(ctx, list[0].index, list[len(list)-1].index+1-list[0].index)
	if err != nil {
		return nil, err
	}
	for _, j := range list {
		switch {
		case j.as == &r.done.Records && waits[j.index]:
			r.done.Waiting++
		case j.as == &r.done.Records:
			gone = append(gone, j.index)
		case j.as != nil:
			*j.as++
		}
	}
	return gone, ctx.Err()
}

// judge decides about one record. A damaged one proves no time, and stays: package fsck reports it.
func (r *run) judge(row *storage.Row) *int64 {
	if row.Entry != nil || r.claimsYoung(row) {
		return nil
	}
	record, err := row.Record()
	if err != nil {
		return &r.done.Unproved
	}
	if record.Payload.ActionType.ByOperator() {
		return nil
	}
	sealed, err := r.sealed(record)
	switch {
	case err != nil:
		return &r.done.Unproved
	case !sealed.Before(r.order.Before) || sealed.AddDate(0, 0, operator.MinRetention).After(r.today):
		return nil
	case row.ChainID != "" && slices.Contains(r.order.Except, row.ChainID):
		return &r.done.Excepted
	case r.stays.Chains[row.ChainID] || r.stays.Records[row.Digest]:
		return &r.done.Needed
	}
	return &r.done.Records
}

// claimsYoung reports whether no time stamp even claims to be from before the order's time. Such a record stays, and need not be verified.
func (r *run) claimsYoung(row *storage.Row) bool {
	for _, t := range row.Timestamps {
		token, err := r.options.Memory.Parse(t.Token)
		if err != nil || token.UnverifiedInfo().GenTime.Before(r.order.Before) {
			return false
		}
	}
	return len(row.Timestamps) > 0
}

func (r *run) staying(ctx context.Context) (*ExpiryStaying, error) {
	if r.order.Stays == nil {
		return new(ExpiryStaying), nil
	}
	return r.order.Stays(ctx)
}

// staysSame reports whether nothing more is needed than when the records were chosen.
func (r *run) staysSame(ctx context.Context) (bool, error) {
	now, err := r.staying(ctx)
	if err != nil {
		return false, err
	}
	for chain := range now.Chains {
		if !r.stays.Chains[chain] {
			return false, nil
		}
	}
	for digest := range now.Records {
		if !r.stays.Records[digest] {
			return false, nil
		}
	}
	return true, nil
}

func (r *run) seal(ctx context.Context, act string, body *operator.ExpiryBody) error {
	_, err := r.operator().SealNext(ctx, operator.ExpiryChain, func([]*evidence.Record) ([]evidence.Payload, error) {
		p, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.Expiry, ChainID: operator.ExpiryChain, RecordID: act}, *body)
		return []evidence.Payload{p}, err
	})
	if err == nil {
		r.step("act sealed")
	}
	return err
}

// finish carries out acts that were interrupted, and drops notes for which no act was sealed.
func (r *run) finish(ctx context.Context) error {
	for {
		left, err := r.Ledger.Expiry().Expiring(ctx, 0, 1)
		if err != nil || len(left) == 0 {
			return err
		}
		act := left[0].Act
		record, err := r.Ledger.Record(ctx, act)
		if errors.Is(err, ledger.ErrNotFound) {
			if err := r.Ledger.Expiry().DropExpiring(ctx, act); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		body, err := operator.ReadExpiry(&record.Payload)
		if err != nil {
			return fmt.Errorf("%w: record %s: %w", ledger.ErrDamaged, act, err)
		}
		if err := r.carryOut(ctx, act, body.Count); err != nil {
			return err
		}
	}
}

// carryOut removes the content of the records that are noted for an act. It can be repeated after a crash: a record's note goes with its content.
func (r *run) carryOut(ctx context.Context, act string, count int64) error {
	for done := int64(0); ; {
		left, err := r.Ledger.Expiry().Expiring(ctx, 0, batch)
		if err != nil {
			return err
		}
		var places []int64
		for _, e := range left {
			if e.Act == act {
				places = append(places, e.Index)
			}
		}
		if len(places) == 0 {
			break
		}
		if err := r.remove(ctx, act, places); err != nil {
			return err
		}
		done += int64(len(places))
		r.done.Records = max(r.done.Records, done)
		r.tell("records removed", done, max(done, count))
	}
	r.step("removed")
	return r.reclaim(ctx)
}

// reclaim frees the room of what was removed. A run with nothing to remove does it too: an earlier one may have been interrupted in it.
func (r *run) reclaim(ctx context.Context) error {
	return r.Ledger.Expiry().Reclaim(ctx, func(done, total int64) { r.tell("pages freed", done, total) })
}

// remove removes the content of records, and what their briefs say. The keys of their texts go first, because the payload names them.
func (r *run) remove(ctx context.Context, act string, places []int64) error {
	var left []storage.Row
	var briefs []storage.StoredBrief
	for some := range slices.Chunk(places, page) {
		rows, err := r.Ledger.RowsAt(ctx, some)
		if err != nil {
			return err
		}
		for i := range rows {
			row, short, err := r.empty(ctx, act, &rows[i])
			if err != nil {
				return err
			}
			left, briefs = append(left, row), append(briefs, short)
		}
	}
	r.step("texts destroyed")
	if err := r.Ledger.Expiry().Expire(ctx, act, left, briefs); err != nil {
		return err
	}
	r.step("content removed")
	return nil
}

// empty destroys a record's texts that are sealed apart, and returns what stays of the record.
func (r *run) empty(ctx context.Context, act string, row *storage.Row) (left storage.Row, short storage.StoredBrief, err error) {
	if row.Entry == nil {
		record, err := row.Record()
		if err != nil {
			return left, short, err
		}
		for _, pointer := range record.Payload.SealedApart {
			if err := r.Apart.Destroy(ctx, row.Digest, pointer); err != nil {
				return left, short, err
			}
		}
	}
	if left, err = row.ExpiredRow(act); err != nil {
		return left, short, err
	}
	b, err := brief.OfRow(&left)
	if err == nil {
		short, err = b.Stored()
	}
	return left, short, err
}

// An expiryFsck compares expired records with the acts about them.
type expiryFsck struct {
	store storage.Store

	mu    sync.Mutex         // guards byAct: many goroutines add records
	byAct map[string][]int64 // the places of the records that name an act
}

// Expired adds an expired record and the act that it names. Run says whether that act explains it.
func (f *expiryFsck) Expired(index int64, _, act string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byAct[act] = append(f.byAct[act], index)
	return nil
}

// Run returns the damage, once it has all expired records: those that no act explains, and acts whose records are still there.
func (f *expiryFsck) Run(ctx context.Context) (found []fsck.Damage, err error) {
	report := func(kind fsck.Kind, index int64, format string, args ...any) {
		found = append(found, fsck.Damage{Kind: kind, Index: index, Detail: fmt.Sprintf(format, args...)})
	}
	acts, err := f.acts(ctx)
	if errors.Is(err, storage.ErrDamaged) {
		report(fsck.DamageCheck, -1, "the acts on expiry: %v", err)
	} else if err != nil {
		return nil, err
	}
	left, err := f.left(ctx)
	if err != nil {
		return nil, err
	}
	for _, act := range slices.Sorted(maps.Keys(f.byAct)) {
		body, there := acts[act]
		gone := slices.Sorted(slices.Values(f.byAct[act]))
		all := slices.Sorted(slices.Values(slices.Concat(gone, left[act])))
		switch {
		case !there:
			report(fsck.DamageExpired, gone[0], "%d records from here on name the act %q", len(gone), act)
		case placesOf(all) == body.Places:
		case int64(len(all)) < body.Count:
			report(fsck.DamageNotExpired, -1, "act %s is about %d records, of which %d have expired", act, body.Count, len(gone))
		default:
			report(fsck.DamageExpired, gone[0], "act %s is about other records than the %d that name it, from here on", act, len(gone))
		}
	}
	for _, act := range slices.Sorted(maps.Keys(acts)) {
		if len(f.byAct[act]) == 0 && len(left[act]) == 0 {
			report(fsck.DamageNotExpired, -1, "act %s is about %d records, and none of them has expired", act, acts[act].Count)
		}
		if len(left[act]) > 0 {
			report(fsck.DamageNotExpired, left[act][0], "act %s is about %d records from here on, whose content is still there", act, len(left[act]))
		}
	}
	return found, nil
}

// acts reads the acts on expiry, by their record ids.
func (f *expiryFsck) acts(ctx context.Context) (map[string]*operator.ExpiryBody, error) {
	acts := map[string]*operator.ExpiryBody{}
	rows, err := f.store.ByChain(ctx, operator.ExpiryChain)
	if errors.Is(err, storage.ErrNotFound) {
		return acts, nil
	}
	for i := range rows {
		record, err := rows[i].Record()
		if err != nil {
			return acts, err
		}
		body, err := operator.ReadExpiry(&record.Payload)
		if err != nil {
			return acts, fmt.Errorf("%w: record %s: %w", storage.ErrDamaged, rows[i].RecordID, err)
		}
		acts[rows[i].RecordID] = body
	}
	return acts, err
}

// left returns the places whose content is still to go, by the act.
func (f *expiryFsck) left(ctx context.Context) (map[string][]int64, error) {
	left := map[string][]int64{}
	for from := int64(0); from >= 0; { // the number after the last one is negative
		list, err := f.store.Expiring(ctx, from, 1024)
		if err != nil || len(list) == 0 {
			return left, err
		}
		for _, e := range list {
			left[e.Act], from = append(left[e.Act], e.Index), e.Index+1
		}
	}
	return left, nil
}

// placesOf is what an act says of the places of its records.
func placesOf(places []int64) evidence.Digest {
	sum := sha256.New()
	for _, p := range places {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(p)))
	}
	return evidence.Digest(sum.Sum(nil))
}
