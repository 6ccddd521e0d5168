package installation

import (
	"context"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/internal/stamping"
)

// After has a test told of each step of an erasure or of a change to keys when it is done.
func (i *Installation) After(told func(step string)) {
	i.after, i.texts.After = told, told
}

// Keep puts what a record discloses where it is kept, as if the record had been sealed here.
func (i *Installation) Keep(ctx context.Context, r *evidence.Record) error {
	return i.texts.Keep(ctx, r)
}

// BeginErasure leaves what somebody leaves who was about to erase, and came second.
func (i *Installation) BeginErasure(ctx context.Context, r *evidence.Record, act, pointer string) error {
	return createIntent(ctx, i.files, intent{Act: act, By: "Hana", Pointers: []string{pointer}, Reason: "request", Record: r.Digest,
		Timestamp: evidence.FormatTime(i.now())})
}

// of changes the settings of an installation that is not open.
func of(c Config) *stamping.Timekeeper {
	return &stamping.Timekeeper{Files: filestore.NewFolder(c.Dir)}
}

// AddOutside adds an authority to an installation that is not open.
func AddOutside(ctx context.Context, c Config, o stamping.Outside, untried bool) error {
	return of(c).Add(ctx, o, untried)
}

// ListOutside lists the authorities of an installation that is not open.
func ListOutside(ctx context.Context, c Config) ([]stamping.Outside, error) { return of(c).List(ctx) }

// Apart lists what is sealed apart of a draft that names these pointers.
func (i *Installation) Apart(ctx context.Context, draft *evidence.Draft, pointers []string) ([]string, error) {
	return texts{i.texts, i.ApartSettingOf}.Apart(ctx, draft.SealingApart(pointers...))
}
