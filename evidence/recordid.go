package evidence

import (
	"io"
	"time"
)

// NewRecordID makes a UUIDv7, so that ids sort by time. If random is nil, it uses crypto/rand. It returns an error for
// times before 1970 or after the year 10889, and the errors of random.
func NewRecordID(t time.Time, random io.Reader) (string, error) {
	return NewID(t, randomOr(random))
}

// RecordIDFor makes a record id from words that identify what is recorded. The same words give the same id, so it is
// recorded once. The id has the time of the UUIDv7 in like, or the beginning of 1970 if like is not a UUIDv7.
func RecordIDFor(like string, words ...string) string { return IDFor(like, words...) }

// CheckRecordID returns an error if id is not a UUIDv7 in lower case.
func CheckRecordID(id string) error { return CheckID(id) }
