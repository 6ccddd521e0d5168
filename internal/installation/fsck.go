package installation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/storage"
)

// An expiryFsck compares expired records with the acts about them.
type expiryFsck struct {
	store storage.Store

	mu    sync.Mutex         // guards byAct: many goroutines add records
	byAct map[string][]int64 // the places of the records that name an act
}

// newExpiryFsck begins an examination.
func newExpiryFsck(store storage.Store) *expiryFsck {
	return &expiryFsck{store: store, byAct: map[string][]int64{}}
}

// Expired adds an expired record and the act that it names. Run says whether that act explains it.
func (f *expiryFsck) Expired(index int64, _, act string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byAct[act] = append(f.byAct[act], index)
	return nil
}

// Run returns the damage, after all expired records have been added: records without an act that explains them, and
// acts whose records are still there.
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
	for from := int64(0); ; {
		list, err := f.store.Expiring(ctx, from, 1024)
		if err != nil || len(list) == 0 {
			return left, err
		}
		for _, e := range list {
			left[e.Act], from = append(left[e.Act], e.Index), e.Index+1
		}
	}
}

// placesOf is what an act says of the places of its records.
func placesOf(places []int64) evidence.Digest {
	sum := sha256.New()
	addPlaces(sum, places)
	return evidence.Digest(sum.Sum(nil))
}
