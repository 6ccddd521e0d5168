package main

import (
	"fmt"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/property"
	"jurat/property/proving"
)

// A wish is one statement that is to be proved, as flags say it.
type wish struct {
	flag    string // for messages
	form    property.Form
	pointer string
	value   string
	other   string // of equal: the id of the other record
	pointed string // of equal: the field of that
}

// wishes reads the flags.
func (c *proveCmd) wishes() (list []wish, err error) {
	for _, of := range []struct {
		form  property.Form
		flag  string
		texts []string
	}{{property.Range, "--range", c.Range}, {property.In, "--in", c.In}, {property.NotIn, "--not-in", c.NotIn}, {property.AgeAtLeast, "--age-at-least", c.AgeAtLeast},
		{property.Equal, "--equal", c.Equal}, {property.AtMostSum, "--at-most-sum", c.AtMostSum}} {
		for _, text := range of.texts {
			w, err := readWish(of.form, of.flag, text)
			if err != nil {
				return nil, err
			}
			list = append(list, w)
		}
	}
	return list, nil
}

func readWish(form property.Form, flag, text string) (wish, error) {
	w := wish{flag: flag + " " + text, form: form}
	field, value, there := strings.Cut(text, "=")
	if !there {
		return w, fmt.Errorf("%s: want POINTER=…, as /metadata/amount=…", w.flag)
	}
	var err error
	if w.pointer, err = evidence.Pointer(field); err != nil {
		return w, fmt.Errorf("%s: %w", flag, err)
	}
	if form != property.Equal {
		w.value = value
		return w, nil
	}
	other, pointed, there := strings.Cut(value, ":")
	if !there || evidence.CheckRecordID(other) != nil {
		return w, fmt.Errorf("%s: want POINTER=RECORD:POINTER, with the id of the other record", w.flag)
	}
	w.other = other
	if w.pointed, err = evidence.Pointer(pointed); err != nil {
		return w, fmt.Errorf("%s: %w", flag, err)
	}
	return w, nil
}

// members are those of each statement to prove. only names the records that it is asked of; nil: those that have the field provable.
func (w *wish) members(records []*evidence.Record, only []string) ([][]proving.Member, error) {
	var sets [][]proving.Member
	for _, r := range records {
		m := proving.Member{Record: r, Pointer: w.pointer}
		_, err := m.Provable()
		named := slices.Contains(only, r.Payload.RecordID)
		switch {
		case len(only) > 0 && !named, len(records) > 1 && !named && err != nil, len(only) == 0 && r.Payload.RecordID == w.other && w.pointed == w.pointer:
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", w.flag, err)
		}
		sets = append(sets, []proving.Member{m})
	}
	for _, id := range only {
		if !slices.ContainsFunc(records, func(r *evidence.Record) bool { return r.Payload.RecordID == id }) {
			return nil, fmt.Errorf("--record: the file has no record %q", id)
		}
	}
	if len(sets) == 0 {
		return nil, fmt.Errorf("%s: no record has this field provable", w.flag)
	}
	switch w.form {
	case property.AtMostSum:
		return [][]proving.Member{slices.Concat(sets...)}, nil
	case property.Equal:
		return w.pairs(sets, records)
	}
	return sets, nil
}

// pairs adds the other member to each set.
func (w *wish) pairs(sets [][]proving.Member, records []*evidence.Record) ([][]proving.Member, error) {
	i := slices.IndexFunc(records, func(r *evidence.Record) bool { return r.Payload.RecordID == w.other })
	if i < 0 {
		return nil, fmt.Errorf("%s: there is no record %q here: name both records, or a case file that has both", w.flag, w.other)
	}
	other := proving.Member{Record: records[i], Pointer: w.pointed}
	if _, err := other.Provable(); err != nil {
		return nil, fmt.Errorf("%s: %w", w.flag, err)
	}
	for n := range sets {
		sets[n] = append(sets[n], other)
	}
	return sets, nil
}
