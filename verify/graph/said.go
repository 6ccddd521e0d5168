package graph

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

// Spoken holds digests of what a record gave out, for comparison.
type Spoken struct {
	Response, Modified Text
	Names              evidence.Digest // the tag of the actor that its own text names as judged; zero: none
}

// A Text is a value that a record gave out, known by its digest only.
type Text struct {
	digest   evidence.Digest // of the canonical value; zero: absent or withheld
	Withheld bool
}

// SpokenIn reads what a record gave out, as far as the file shows it.
func SpokenIn(r *evidence.Record) Spoken {
	return Spoken{Response: response(r).digested(), Modified: modified(r).digested()}
}

func (s said) digested() Text {
	if s.value == nil {
		return Text{Withheld: s.Withheld}
	}
	return Text{digest: evidence.DigestOf(s.value)}
}

// Same compares by canonical value. If a text is withheld, known is false.
func (s Text) Same(other Text) (equal, known bool) {
	return s.digest == other.digest, !s.Withheld && !other.Withheld
}

// Or returns the text from whichever of two files shows it.
func (s Text) Or(other Text) Text {
	if s.Withheld {
		return other
	}
	return s
}
