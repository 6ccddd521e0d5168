package fsck

import "fmt"

// Kind is a kind of damage.
type Kind string

const (
	DamageMissingRow   Kind = "missing_row"
	DamageUnreadable   Kind = "unreadable_row"
	DamageDigest       Kind = "payload_changed"
	DamageKeys         Kind = "keys_changed"
	DamageRow          Kind = "row_changed"
	DamageMoved        Kind = "row_moved"
	DamageDuplicate    Kind = "duplicate"
	DamageLookup       Kind = "lookup"
	DamageCount        Kind = "count"
	DamageExtraRow     Kind = "row_beyond_head"
	DamageMissingHash  Kind = "missing_hash"
	DamageHash         Kind = "hash_changed"
	DamageBelow        Kind = "history_changed"
	DamageExtraHash    Kind = "hash_beyond_head"
	DamageHead         Kind = "head"
	DamageNoCheckpoint Kind = "checkpoint_missing"
	DamageKey          Kind = "checkpoint_not_ours"
	DamageFork         Kind = "checkpoint_contradicts"
	DamageCut          Kind = "tail_cut"
	DamageUnpublished  Kind = "published_missing"
	DamagePublished    Kind = "published_not_ours"
	DamageBehind       Kind = "published_ahead"
	DamagePublicFork   Kind = "published_contradicts"
	DamageCheck        Kind = "check_failed"
	DamageClock        Kind = "clock"
	DamageWaiting      Kind = "waiting_for_nothing"
	DamageSettled      Kind = "stamped_and_waiting"
	DamageLateStamp    Kind = "late_stamp_missing"
	DamageKeyEvents    Kind = "key_events"
	DamageStore        Kind = "store"
	DamageExpired      Kind = "expired_without_act"
	DamageNotExpired   Kind = "not_expired"

	DamageBrief Kind = "brief"

	DamageApartLost    Kind = "apart_lost"
	DamageApartChanged Kind = "apart_changed"
	DamageApart        Kind = "apart_store"
	DamageNotErased    Kind = "not_erased"
	DamageErasing      Kind = "erasure_begun"
	DamageOrphan       Kind = "apart_orphan"
)

var meanings = map[Kind]string{
	DamageMissingRow:   "a logged record is missing from the store; its hash is still in the tree",
	DamageUnreadable:   "the row does not contain a record",
	DamageDigest:       "the payload was changed: its digest differs from the digest in the row",
	DamageKeys:         "the row is found under an id, a digest or a chain that its payload does not have",
	DamageRow:          "the record differs from the one logged at this place: its payload or signatures were changed",
	DamageMoved:        "the record was logged at another place: the order was changed",
	DamageDuplicate:    "the same record or payload is in the log twice",
	DamageLookup:       "the record is in the log, but is not found by its id or digest",
	DamageCount:        "a number that the log gave this record is wrong",
	DamageExtraRow:     "there is a row after the end of the log: it was never committed, or the head was set back",
	DamageMissingHash:  "a stored hash is missing; it can be computed from the records",
	DamageHash:         "a stored hash was changed: the records and hashes around it require another value",
	DamageBelow:        "hashes were changed together with the records below them: the hash above still belongs to other records",
	DamageExtraHash:    "there is a hash after the end of the log: the head was set back",
	DamageHead:         "the root in the head does not fit the records",
	DamageNoCheckpoint: "the signed checkpoint is missing",
	DamageKey:          "the checkpoint is not signed by this log's key",
	DamageFork:         "the log's key has signed a different history",
	DamageCut:          "the log's key has signed for more records than there are: the end of the log was removed",
	DamageUnpublished:  "the log has signed checkpoints, but the published checkpoint is missing",
	DamagePublished:    "the published checkpoint is not signed by this log's key",
	DamageBehind:       "a checkpoint over more records was published: the store was restored from a backup, or its end was removed",
	DamagePublicFork:   "a checkpoint over a different history was published: this is not the published log",
	DamageCheck:        "the record is unchanged, but fails a check",
	DamageClock:        "the record is as it was sealed, but its clock was behind the one that dated its key: readers refute who sealed it; the log is whole, and can be backed up and restored",
	DamageWaiting:      "the outbox waits for a time stamp for a record that is missing",
	DamageSettled:      "the outbox still waits for a time stamp that an act says was added",
	DamageLateStamp:    "a time stamp that an act says was added is missing",
	DamageKeyEvents:    "the log's key events contradict each other, or cannot be read",
	DamageStore:        "the database reports a problem",
	DamageExpired:      "the content of a record was removed, but no act in the log says so",
	DamageNotExpired:   "an act says that records were deleted, but some of them or their briefs are still there: 'jurat log expire' completes the deletion",

	DamageBrief: "the record's brief or its search keys differ from the record; the record is intact: 'jurat log fsck --reindex' makes them again",

	DamageApartLost:    "a text that was sealed apart is missing, but no act says that it was erased; the record still proves all that it proved",
	DamageApartChanged: "a text that was sealed apart cannot be read, or does not fit the record's commitment",
	DamageApart:        "the file that keeps the texts is damaged: texts that are named as changed may be in that part, and more may be there that belong to no record",
	DamageNotErased:    "an act says that this text was erased, but a part of it is there: a backup was restored, or a crash interrupted the erasure",
	DamageErasing:      "an erasure was begun but is not complete",
	DamageOrphan:       "it belongs to no record in the log: a crash left it, or its record was being sealed during this check; it proves nothing and does no harm",
}

// Meaning describes the kind of damage in a sentence.
func (k Kind) Meaning() string { return meanings[k] }

// Harmless reports whether the log is complete and unchanged despite this.
func (k Kind) Harmless() bool { return k == DamageOrphan || k == DamageClock }

// A ClockError is an error of Options.Check: a record is as it was sealed, and fails the check because a clock was behind.
type ClockError struct{ Err error }

func (e *ClockError) Error() string { return e.Err.Error() }
func (e *ClockError) Unwrap() error { return e.Err }

// Damage is one damage of a log.
type Damage struct {
	Kind     Kind
	Index    int64  // the record's place in the log; -1 if it is not about one record
	RecordID string // as in the row; "" if unknown
	Detail   string
}

func (d Damage) String() string {
	where := ""
	if d.Index >= 0 {
		where = fmt.Sprintf(" at %d", d.Index)
	}
	if d.RecordID != "" {
		where += fmt.Sprintf(" (record %s)", d.RecordID)
	}
	return fmt.Sprintf("%s%s: %s: %s", d.Kind, where, d.Kind.Meaning(), d.Detail)
}
