package evidence

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Reveal returns the members of a payload in canonical form. It replaces commitments by disclosed values that match
// them. withheld lists the pointers of the commitments that stay. It does not check signatures. Its errors are those
// of ParsePayload, Canonical and CheckDisclosures.
func Reveal(canonical []byte, disclosures []Disclosure) (revealed map[string]jsontext.Value, withheld []string, err error) {
	payload, err := ParsePayload(canonical)
	if err != nil {
		return nil, nil, err
	}
	disclosures = slices.Clone(disclosures)
	for i := range disclosures {
		d := &disclosures[i]
		if d.Value, err = Canonical(d.Value); err != nil {
			return nil, nil, fmt.Errorf("disclosures: %s: %w", d.Pointer, err)
		}
	}
	r := &Record{Payload: *payload, canonical: canonical, Disclosures: disclosures}
	if err := r.CheckDisclosures(); err != nil {
		return nil, nil, err
	}
	m, err := membersOf(canonical)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range disclosures {
		if err := m.set(d.Pointer, d.Value); err != nil {
			return nil, nil, err
		}
	}
	for _, pointer := range payload.SealedApart {
		if r.disclosure(pointer) < 0 {
			withheld = append(withheld, pointer)
		}
	}
	return m, withheld, nil
}

// Said returns the value of the member at a pointer; value is its value in the payload. If the member is sealed
// apart, Said returns the disclosed value if it matches, and otherwise reports that it is withheld.
func (r *Record) Said(pointer string, value jsontext.Value) (said jsontext.Value, withheld bool) {
	if !slices.Contains(r.Payload.SealedApart, pointer) {
		return value, false
	}
	if i := r.disclosure(pointer); i >= 0 {
		alone := *r // another false disclosure does not hide this one
		if alone.Disclosures = r.Disclosures[i : i+1]; alone.CheckDisclosures() == nil {
			return r.Disclosures[i].Value, false
		}
	}
	return nil, true
}
