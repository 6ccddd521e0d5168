package verify

import (
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// said is the value of a member of a payload, as far as the file shows it.
type said struct {
	value    jsontext.Value // canonical; nil: absent or withheld
	withheld bool           // sealed apart and not disclosed, or disclosed as what it is not
}

// saidIn reads a member that may be sealed apart. A disclosed value counts only if the payload commits to it.
func saidIn(r *evidence.Record, pointer string, value jsontext.Value) said {
	shown, withheld := r.Said(pointer, value)
	return said{value: shown, withheld: withheld}
}

// Said returns the value of the member at a pointer, whose value in the payload is given. Where the member is sealed
// apart, it is what a right disclosure shows; without one it is withheld.
func Said(r *evidence.Record, pointer string, value jsontext.Value) (disclosed jsontext.Value, withheld bool) {
	return r.Said(pointer, value)
}

func response(r *evidence.Record) said { return saidIn(r, "/response", r.Payload.Response) }

func modified(r *evidence.Record) said {
	return saidIn(r, "/modified_response", r.Payload.ModifiedResponse)
}

// spoken is what a record gave out, to be compared.
type spoken struct{ response, modified spokenText }

// A spokenText is a said whose value is known by its digest, which is all that comparing takes.
type spokenText struct {
	digest   evidence.Digest // of the canonical value; zero: absent or withheld
	withheld bool
}

func spokenIn(r *evidence.Record) spoken {
	return spoken{response: response(r).digested(), modified: modified(r).digested()}
}

func (s said) digested() spokenText {
	if s.value == nil {
		return spokenText{withheld: s.withheld}
	}
	return spokenText{digest: evidence.DigestOf(s.value)}
}

// same compares by canonical value. What is withheld equals nothing and differs from nothing.
func (s spokenText) same(other spokenText) (equal, known bool) {
	return s.digest == other.digest, !s.withheld && !other.withheld
}
