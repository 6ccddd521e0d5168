package archive

import (
	"context"
	"fmt"
	"time"

	"jurat/evidence"
	"jurat/internal/keys"
	"jurat/timestamp"
	"jurat/verify"
)

// ages says when records were sealed, by time stamps that verify.
type ages struct{ options verify.Options }

func (a *Archivist) newAges(ctx context.Context) (*ages, error) {
	trust, err := a.Trust(ctx)
	if err != nil {
		return nil, err
	}
	return &ages{verify.Options{Trust: keys.Forever(trust), Memory: timestamp.NewMemory()}}, nil
}

// sealed is the time by which a record is proved to have existed. What the record claims does not count.
func (a *ages) sealed(r *evidence.Record) (time.Time, error) {
	report := verify.Record(r, a.options)
	f := report.Of(verify.Time)
	t, ok := report.TimeOf(r.Payload.RecordID)
	if !ok || f.Status == verify.Refuted { // but that the actor's clock was ahead of the authority's does not matter here
		return time.Time{}, fmt.Errorf("when it was sealed is not proved: %s", f.Reason)
	}
	return t.Time, nil
}
