package trust

import (
	"time"

	"jurat/timestamp"
)

// A Checker asks, by a trust file and at a moment, whose key a certificate vouches for and when a token shows that something existed.
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

// maxSkew is how much two clocks may differ that show the same time: of an authority, an actor or a reader.
const MaxSkew = 5 * time.Minute

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
