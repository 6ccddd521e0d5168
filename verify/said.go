package verify

import (
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// said is the value of a member of a payload, as far as the file shows it.
type said struct {
	value    jsontext.Value // canonical; nil: absent or withheld
	Withheld bool           // sealed apart and not disclosed, or disclosed wrongly
}

// saidIn reads a member that may be sealed apart. A disclosed value counts only if the payload commits to it.
func saidIn(r *evidence.Record, pointer string, value jsontext.Value) said {
	shown, withheld := r.Said(pointer, value)
	return said{value: shown, Withheld: withheld}
}

func response(r *evidence.Record) said { return saidIn(r, "/response", r.Payload.Response) }

func modified(r *evidence.Record) said {
	return saidIn(r, "/modified_response", r.Payload.ModifiedResponse)
}

// spoken holds digests of what a record gave out, for comparison.
type spoken struct {
	Response, Modified spokenText
	Names              evidence.Digest // the tag of the actor that its own text names as judged; zero: none
}

// A Text is a value that a record gave out, known by its digest only.
type spokenText struct {
	digest   evidence.Digest // of the canonical value; zero: absent or withheld
	Withheld bool
}

// spokenIn reads what a record gave out, as far as the file shows it.
func spokenIn(r *evidence.Record) spoken {
	return spoken{Response: response(r).digested(), Modified: modified(r).digested()}
}

func (s said) digested() spokenText {
	if s.value == nil {
		return spokenText{Withheld: s.Withheld}
	}
	return spokenText{digest: evidence.DigestOf(s.value)}
}

// Same compares by canonical value. If a text is withheld, known is false.
func (s spokenText) Same(other spokenText) (equal, known bool) {
	return s.digest == other.digest, !s.Withheld && !other.Withheld
}

// Or returns the text from whichever of two files shows it.
func (s spokenText) Or(other spokenText) spokenText {
	if s.Withheld {
		return other
	}
	return s
}
