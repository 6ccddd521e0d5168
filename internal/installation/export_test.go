package installation

import (
	"testing"
	"time"

	"jurat/evidence"
)

// After has a test told of each step of an erasure or of a change to keys when it is done.
func (i *Installation) After(told func(step string)) {
	i.after, i.vault.After = told, told
}

// Keep puts what a record discloses where it is kept, as if the record had been sealed here.
func (i *Installation) Keep(r *evidence.Record) error { return i.vault.Keep(r) }

// BeginErasure leaves what somebody leaves who was about to erase, and came second.
func (i *Installation) BeginErasure(r *evidence.Record, act, pointer string) error {
	return createIntent(i.Dir, intent{Act: act, By: "Hana", Pointers: []string{pointer}, Reason: "request", Record: r.Digest,
		Timestamp: evidence.FormatTime(i.now())})
}

// LessSealingTime gives authorities less time to answer in tests.
func LessSealingTime(d time.Duration) { sealingTime = d }

// SmallBatches lets one token be for n records only.
func SmallBatches(t testing.TB, n int) {
	batch, renewals := maxBatch, maxRenewals
	maxBatch, maxRenewals = n, n
	t.Cleanup(func() { maxBatch, maxRenewals = batch, renewals })
}
