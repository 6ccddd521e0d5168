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

// LessSealingTime gives authorities less time to answer in tests.
func LessSealingTime(d time.Duration) { sealingTime = d }

// SmallBatches lets one token be for n records only.
func SmallBatches(t testing.TB, n int) {
	batch, renewals := maxBatch, maxRenewals
	maxBatch, maxRenewals = n, n
	t.Cleanup(func() { maxBatch, maxRenewals = batch, renewals })
}
