package eutrust

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"jurat/verify/trust"
)

// Into puts what was derived into a trust file, in the place of what was derived before. An authority that the reader had named keeps its
// name and what the reader believes of it, and gets its services.
func (d *Derived) Into(file *trust.Trust) {
	file.Lists = d.Lists
	var kept []trust.Authority
	for _, a := range file.Authorities {
		wasDerived := len(a.Services) > 0 && a.Name == label(&a.Services[0])
		i := d.find(a.Certificate)
		if a.Services = nil; i >= 0 {
			a.Services = d.Authorities[i].Services
		}
		if i >= 0 || !wasDerived {
			kept = append(kept, a)
		}
	}
	for _, a := range d.Authorities {
		if !slices.ContainsFunc(kept, func(b trust.Authority) bool { return bytes.Equal(a.Certificate, b.Certificate) }) {
			kept = append(kept, a)
		}
	}
	file.Authorities = kept
}

// find is the place of the authority with a certificate; -1 if there is none.
func (d *Derived) find(certificate []byte) int {
	return slices.IndexFunc(d.Authorities, func(a trust.Authority) bool { return bytes.Equal(a.Certificate, certificate) })
}

// Check holds a trust file against what was derived anew, and returns in what they differ.
func (d *Derived) Check(file *trust.Trust) (differences []string) {
	if !same(file.Lists, d.Lists) {
		differences = append(differences, "the list of the lists is another, or was issued at another time")
	}
	var seen int
	for _, a := range file.Authorities {
		i := d.find(a.Certificate)
		switch {
		case i >= 0:
			seen++
			if !same(a.Services, d.Authorities[i].Services) {
				differences = append(differences, fmt.Sprintf("%s: the lists say something else of it", a.Name))
			}
		case len(a.Services) > 0:
			differences = append(differences, fmt.Sprintf("%s: the lists do not have it", a.Name))
		}
	}
	if missing := len(d.Authorities) - seen; missing > 0 {
		differences = append(differences, fmt.Sprintf("%d authorities of the lists are not in the trust file", missing))
	}
	return differences
}

// same compares as files do: times that are written alike are the same.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Overdue says of which lists a newer one should be there at a moment.
func (d *Derived) Overdue(now time.Time) (notes []string) {
	for _, territory := range slices.Sorted(maps.Keys(d.NextUpdate)) {
		if due := d.NextUpdate[territory]; now.After(due) {
			notes = append(notes, fmt.Sprintf("the list of %s is out of date: a newer one was due on %s", territory, due.Format(time.DateOnly)))
		}
	}
	return notes
}
