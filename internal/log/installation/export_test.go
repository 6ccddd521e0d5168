package installation

import (
	"context"
	"fmt"
	"time"

	"jurat/evidence"
	"jurat/internal/log/erasure"
	"jurat/internal/log/filestore"
	"jurat/internal/log/ledger"
	"jurat/internal/log/stamping"
)

// After calls a function at each step of an erasure or of a key change.
func (i *Installation) After(told func(step string)) {
	i.after = told
}

// Keep stores the values that a record discloses, as sealing it here would.
func (i *Installation) Keep(ctx context.Context, r *evidence.Record) error {
	return i.Apart.Keep(ctx, r)
}

// BeginErasure stores the intent of a process that was about to erase, but came second.
func (i *Installation) BeginErasure(ctx context.Context, r *evidence.Record, act, pointer string) error {
	text := fmt.Sprintf(`{"act":%q,"by":"Hana","pointers":[%q],"reason":"request","record":%q,"timestamp":%q}`,
		act, pointer, r.Digest, evidence.FormatTime(i.now()))
	return i.Files.Create(ctx, fmt.Sprintf("%s/%x.json", erasure.IntentsFolder, r.Digest[:]), []byte(text))
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

// OpenAhead opens an installation whose ledger has another clock than its stampers.
func OpenAhead(ctx context.Context, c Config, now func() time.Time) (*Installation, error) {
	i, config, err := unlock(ctx, c)
	if err != nil {
		return nil, err
	}
	config.Now = now
	i.Ledger, err = ledger.Open(ctx, config)
	return i, err
}
