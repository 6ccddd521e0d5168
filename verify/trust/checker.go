package trust

import (
	"time"

	"jurat/timestamp"
)

// A Checker answers questions of a Trust at a moment, with what the reader knows of revoked certificates: for whom certificates
// vouch, and what times tokens prove. One goroutine may use it at a time.
type Checker struct {
	Trust     *Trust        // never nil; empty if the reader gave none
	At        time.Time     // the moment of checking; zero: none is given
	Lists     []*List       // the reader's revocation lists
	Responses []*Response   // the reader's OCSP responses
	Carried   *Carried      // what came with the file; nil: nothing
	Grace     time.Duration // how long after a record's proved time what came with the file must have been made; zero: DefaultGrace

	Memory *timestamp.Memory
	Share  *timestamp.Share // share of the work budget of the file

	// UnsafeAllowMock accepts the mock time-stamping authority, whose key is public. For tests.
	UnsafeAllowMock bool

	Unasked   bool // whether a time rests on an authority whose revocation was not checked
	Consulted bool // whether an answer rests on Carried
}

// Alone returns a Checker for one record, with its own share of the work budget. It reads no field that a check of other records
// changes, so it may run beside one. The caller says what came with the file up to this record.
func (c *Checker) Alone(share *timestamp.Share, came *Carried) Checker {
	return Checker{Trust: c.Trust, At: c.At, Lists: c.Lists, Responses: c.Responses, Carried: came, Grace: c.Grace, Memory: c.Memory, Share: share,
		UnsafeAllowMock: c.UnsafeAllowMock}
}

// MaxSkew is how far the clocks of an authority, an actor and a reader may differ without contradicting each other.
const MaxSkew = 5 * time.Minute

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
