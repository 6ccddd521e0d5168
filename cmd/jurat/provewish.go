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
}

// wishes reads the flags.
func (c *proveCmd) wishes() (list []wish, err error) {
	for _, of := range []struct {
		form  property.Form
		flag  string
		texts []string
	}{{property.Range, "--range", c.Range}, {property.In, "--in", c.In}, {property.NotIn, "--not-in", c.NotIn}, {property.AgeAtLeast, "--age-at-least", c.AgeAtLeast}} {
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
	w.value = value
	return w, nil
}

// members are those of which the statement is to be proved. only names the records that it is asked of; nil: those that have the field provable.
func (w *wish) members(records []*evidence.Record, only []string) (list []proving.Member, err error) {
	for _, r := range records {
		m := proving.Member{Record: r, Pointer: w.pointer}
		_, err := m.Provable()
		named := slices.Contains(only, r.Payload.RecordID)
		switch {
		case len(only) > 0 && !named, len(records) > 1 && !named && err != nil:
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", w.flag, err)
		}
		list = append(list, m)
	}
	for _, id := range only {
		if !slices.ContainsFunc(records, func(r *evidence.Record) bool { return r.Payload.RecordID == id }) {
			return nil, fmt.Errorf("--record: the file has no record %q", id)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: no record has this field provable", w.flag)
	}
	return list, nil
}
