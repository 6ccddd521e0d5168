package evidence

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Reveal returns the members of a payload in canonical form. In place of what was sealed apart stand the values that the
// disclosures open, each held against its commitment; the pointers of what they do not open come beside, and the commitments
// stay in their place. Whether anybody signed the payload is not asked.
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
