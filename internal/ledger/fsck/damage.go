package fsck

import "fmt"

// Kind says what is wrong.
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
	DamageWaiting      Kind = "waiting_for_nothing"
	DamageSettled      Kind = "stamped_and_waiting"
	DamageLateStamp    Kind = "late_stamp_missing"
	DamageKeyEvents    Kind = "key_events"
	DamageStore        Kind = "store"
	DamageArchive      Kind = "archive"
	DamageExpired      Kind = "expired_without_act"
	DamageNotExpired   Kind = "not_expired"
	DamageStray        Kind = "stray_archive"

	DamageBrief Kind = "brief"

	DamageApartLost    Kind = "apart_lost"
	DamageApartChanged Kind = "apart_changed"
	DamageNotErased    Kind = "not_erased"
	DamageErasing      Kind = "erasure_begun"
	DamageOrphan       Kind = "apart_orphan"
)

var meanings = map[Kind]string{
	DamageMissingRow:   "a record that was logged is not in the store any more; its hash is still in the tree",
	DamageUnreadable:   "what stands in the row is not a record",
	DamageDigest:       "the payload is not the one that was signed: its digest is another than the row's",
	DamageKeys:         "the row can be found under an id, a digest or a chain that its payload does not have",
	DamageRow:          "the record is not the one that was logged at this place: payload or signatures were changed",
	DamageMoved:        "the record was logged at another place: the order was changed",
	DamageDuplicate:    "the same record or payload stands in the log twice",
	DamageLookup:       "the record is in the log and cannot be found by its id or digest",
	DamageCount:        "the log has counted another number of records in this chain, or of submissions of this case, than there are",
	DamageExtraRow:     "a row stands beyond the end of the log: it was never committed, or the head was set back",
	DamageMissingHash:  "a stored hash is missing; it can be computed again",
	DamageHash:         "a stored hash was changed: the records and the hashes around it agree on another value",
	DamageBelow:        "hashes were changed together with what is below them: the hash above still tells of other records",
	DamageExtraHash:    "a hash stands beyond the end of the log: the head was set back",
	DamageHead:         "the head is not the root of the records that are there",
	DamageNoCheckpoint: "the signed checkpoint is gone",
	DamageKey:          "the checkpoint is not signed by this log's key",
	DamageFork:         "the log's key has signed another history than this one",
	DamageCut:          "the log's key has signed for more records than there are: the end was cut off",
	DamageUnpublished:  "the log has signed checkpoints, and the place outside where the last one is kept is empty",
	DamagePublished:    "the published checkpoint is not signed by this log's key",
	DamageBehind:       "a checkpoint over more records was published: the store came back from a backup, or its end was cut off",
	DamagePublicFork:   "a checkpoint over another history was published: this is not the log that the public knows",
	DamageCheck:        "the record is the one that was logged, and does not hold what it must",
	DamageWaiting:      "a time stamp is awaited for a record that is not there",
	DamageSettled:      "a time stamp is still awaited that an act says was added",
	DamageLateStamp:    "a time stamp that an act says was added is not there",
	DamageKeyEvents:    "what the log says of keys contradicts itself, or cannot be read",
	DamageStore:        "the database complains",
	DamageArchive:      "an archive file is missing or is not what it was: put it back from a copy; the database has the hashes of its records",
	DamageExpired:      "a record was taken out of its archive, and no act of the log says so",
	DamageNotExpired:   "an act says that records were deleted, and the file that they were in, or what lists show of them, is still there: 'jurat archive expire' finishes it",
	DamageStray:        "an archive file that the log's database does not name: a run that was broken off left it; it does no harm",

	DamageBrief: "what lists show of the record, or what it is found by, is not what the record says; the record stands: 'jurat log reindex' makes it again",

	DamageApartLost:    "a text that was sealed apart is gone, and no act says that it was erased; the record still proves what it did",
	DamageApartChanged: "what is kept of a text that was sealed apart cannot be read, or is not what the record commits to",
	DamageNotErased:    "an act says that this text was erased, and something of it is there: a backup brought it back, or a crash came first",
	DamageErasing:      "an erasure was begun and is not finished",
	DamageOrphan:       "it belongs to no record of the log: a crash left it, or a record that was being sealed meanwhile; it proves nothing and does no harm",
}

// Meaning says in a sentence what such a damage means.
func (k Kind) Meaning() string { return meanings[k] }

// Harmless reports whether the log is whole all the same.
func (k Kind) Harmless() bool { return k == DamageOrphan || k == DamageStray }

// Damage is one thing that is wrong with a log.
type Damage struct {
	Kind     Kind
	Index    int64  // the record's place in the log; -1 when it is not about one record
	RecordID string // as the row says; "" when unknown
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
