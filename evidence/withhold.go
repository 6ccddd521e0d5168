package evidence

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrNotApart says that a member cannot be withheld or erased. It was not sealed apart, so its text is part of what
// was signed, and every proof needs it. It cannot be sealed apart afterwards.
var ErrNotApart = errors.New("not sealed apart: its text is part of what was signed, and every proof needs it")

// Pointer reads the pointer to a member that can be sealed apart, such as /metadata/user_id. A bare name is a member
// of the payload: prompt is /prompt. Its error is that of CheckPointer.
func Pointer(text string) (string, error) {
	if !strings.HasPrefix(text, "/") && text != "" {
		text = "/" + text
	}
	_, _, err := splitPointer(text)
	return text, err
}

// ApartMembers lists the pointers of the members that some action type can seal apart, without those of metadata.
func ApartMembers() []string {
	var pointers []string
	for _, r := range rules {
		for _, name := range r.apart {
			if name != "metadata" {
				pointers = append(pointers, "/"+name)
			}
		}
	}
	slices.Sort(pointers)
	return slices.Compact(pointers)
}

// InMetadata reports whether a pointer names a member of metadata.
func InMetadata(pointer string) bool {
	name, inner, err := splitPointer(pointer)
	return err == nil && name == "metadata" && inner != ""
}

// Has reports whether a draft has the member at a pointer.
func (d *Draft) Has(pointer string) bool {
	_, err := d.members.get(pointer)
	return err == nil
}

// IsApart reports whether the member at a pointer is sealed apart. If the member is in clear, it returns an error
// with ErrNotApart in its chain.
func (r *Record) IsApart(pointer string) (bool, error) {
	if slices.Contains(r.Payload.SealedApart, pointer) {
		return true, nil
	}
	name, inner, err := splitPointer(pointer)
	if err != nil {
		return false, err
	}
	m, err := membersOf(r.canonical)
	if err != nil {
		return false, err
	}
	value, there := m[name]
	if there && inner != "" && value.Kind() == '{' {
		_, err := m.get(pointer)
		there = err == nil
	}
	switch {
	case !there:
		return false, nil
	case inner == "" && name == "metadata":
		return false, fmt.Errorf("record %s: field %s: %w; single members of it may be sealed apart", r.Payload.RecordID, pointer, ErrNotApart)
	}
	return false, fmt.Errorf("record %s: field %s: %w", r.Payload.RecordID, pointer, ErrNotApart)
}

// A Withheld is one member that the caller asked to withhold.
type Withheld struct {
	RecordID string
	Pointer  string
	Already  bool // it was withheld before
}

// Withhold removes the disclosures of these members from all records that have them. Every proof stays valid. If a
// record has such a member in clear, or no record has it, Withhold changes nothing and returns an error.
func Withhold(records []*Record, pointers []string) ([]Withheld, error) {
	var list []Withheld
	for _, pointer := range slices.Compact(slices.Sorted(slices.Values(pointers))) {
		before := len(list)
		for _, r := range records {
			apart, err := r.IsApart(pointer)
			if err != nil {
				return nil, err
			}
			if apart {
				list = append(list, Withheld{RecordID: r.Payload.RecordID, Pointer: pointer, Already: r.disclosure(pointer) < 0})
			}
		}
		if len(list) == before {
			return nil, &FieldError{Field: pointer, Reason: "there is no such member"}
		}
	}
	for _, r := range records {
		r.Disclosures = slices.DeleteFunc(slices.Clone(r.Disclosures), func(d Disclosure) bool { return slices.Contains(pointers, d.Pointer) })
	}
	return list, nil
}

// disclosure returns the index of the member's disclosure, or -1 if the record does not have it.
func (r *Record) disclosure(pointer string) int {
	return slices.IndexFunc(r.Disclosures, func(d Disclosure) bool { return d.Pointer == pointer })
}

// Members returns the members of the payload as they were signed. Members that are sealed apart have their
// commitments. It returns an error only for a Record that this package did not make.
func (r *Record) Members() (map[string]jsontext.Value, error) { return membersOf(r.canonical) }
