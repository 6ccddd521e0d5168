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

// ages finds out when records were sealed, by time stamps that verify.
type ages struct{ options verify.Options }

func (a *Archivist) newAges(ctx context.Context) (*ages, error) {
	trust, err := a.Trust(ctx)
	if err != nil {
		return nil, err
	}
	return &ages{verify.Options{Trust: keys.Forever(trust), Memory: timestamp.NewMemory()}}, nil
}

// sealed returns the time by which a record is proved to have existed. It ignores what the record claims. It returns
// an error if no time is proved.
func (a *ages) sealed(r *evidence.Record) (time.Time, error) {
	report := verify.Record(r, a.options)
	f := report.Of(verify.Time)
	t, ok := report.TimeOf(r.Payload.RecordID)
	if !ok || f.Status == verify.Refuted { // an actor's clock that was ahead of the authority's does not matter here
		return time.Time{}, fmt.Errorf("the time of its sealing is not proved: %s", f.Reason)
	}
	return t.Time, nil
}
