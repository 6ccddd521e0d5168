package trust

import (
	"time"

	"jurat/timestamp"
)

// A Checker answers questions of a Trust at a moment, with what the reader knows of revoked certificates: for whom certificates
// vouch, and what times tokens prove. One goroutine may use it at a time.
type Checker struct {
	Trust *Trust        // never nil; empty if the reader gave none
	At    time.Time     // the moment of checking; zero: none is given
	Lists []*List       // the reader's revocation lists
	Grace time.Duration // how long after a record's proved time a list must have been made to count as of its time; zero: DefaultGrace

	Memory *timestamp.Memory
	Share  *timestamp.Share // what the record may spend on searches

	// UnsafeAllowMock accepts the mock time-stamping authority, whose key is public. For tests.
	UnsafeAllowMock bool

	Unasked bool // whether a time rests on an authority whose revocation was not checked
}

// Alone returns a Checker for one record, with its own share of the work budget. It reads no field that a check of other records
// changes, so it may run beside one.
func (c *Checker) Alone(share *timestamp.Share) Checker {
	return Checker{Trust: c.Trust, At: c.At, Lists: c.Lists, Grace: c.Grace, Memory: c.Memory, Share: share,
		UnsafeAllowMock: c.UnsafeAllowMock}
}

// MaxSkew is how far the clocks of an authority, an actor and a reader may differ without contradicting each other.
const MaxSkew = 5 * time.Minute

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
