package trust

import (
	"time"

	"jurat/timestamp"
)

// A Checker asks a Trust, at a moment and with the reader's revocation lists, whom certificates vouch for and what times tokens prove. One
// goroutine uses it at a time.
type Checker struct {
	Trust *Trust    // never nil; empty when the reader gave none
	At    time.Time // the moment of checking; zero: none is given
	Lists []*List   // the reader's revocation lists

	Memory *timestamp.Memory
	Share  *timestamp.Share // of the effort that the file may cause

	// UnsafeAllowMock accepts the mock time-stamping authority, whose key everybody knows. For tests.
	UnsafeAllowMock bool

	Unasked bool // whether a time rests on an authority whose revocation was not asked
}

// MaxSkew is how far the clocks of an authority, an actor and a reader may differ without contradicting each other.
const MaxSkew = 5 * time.Minute

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
