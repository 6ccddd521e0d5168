package storage

import "context"

// Expiry removes the content of rows. First it is noted which rows an act of the log is about, then the act is
// appended, then their content goes: so a process that is interrupted, or another one, can finish what the act says.
type Expiry interface {
	// PutExpiring notes rows that an act will be about, durably. It returns ErrConflict, and does nothing, if a row
	// waits for a time stamp or is noted for another act.
	PutExpiring(ctx context.Context, act string, indexes []int64) error
	// Expiring returns, in log order, the first n rows that are noted, from index from on.
	Expiring(ctx context.Context, from, n int64) ([]Expiring, error)
	// Expire replaces the content of rows by what the log hashed for them (Row.ExpiredRow), and their briefs, and
	// removes all their time stamps and their notes. It returns ErrConflict, and does nothing, if a row is not noted
	// for this act.
	Expire(ctx context.Context, act string, rows []Row, briefs []StoredBrief) error
	// DropExpiring removes the notes for an act that was not appended.
	DropExpiring(ctx context.Context, act string) error
	// Reclaim frees the room of what has expired, and overwrites it where the store can.
	Reclaim(ctx context.Context, progress func(done, total int64)) error
}

// Expiring is a row whose content is to be removed.
type Expiring struct {
	Index int64
	Act   string // record id
}

// ExpiredRow returns what stays of a row whose content an act has removed. It returns ErrDamaged, wrapped, if the row
// is not a record.
func (row *Row) ExpiredRow(act string) (Row, error) {
	entry, err := row.LogEntry()
	if err != nil || row.Entry != nil {
		return *row, err
	}
	left := *row
	left.Payload, left.Signatures, left.Timestamps, left.Packed = nil, nil, nil, Packed{}
	left.Entry, left.ExpiredBy = entry, act
	return left, nil
}
