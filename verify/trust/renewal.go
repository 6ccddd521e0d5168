package trust

import (
	"bytes"
	"time"

	"jurat/evidence"
	"jurat/timestamp"
)

// ShownBy holds, for each of a record's tokens, when evidence records prove that it existed. The key is the token's
// index in the record.
type ShownBy map[int]Proof

// evidenceRecord checks what an evidence record over a record proves. Each of its tokens stamps everything older, so
// each proves a time if the whole sequence is valid.
func (c *Checker) evidenceRecord(r *evidence.Record, i int, shown ShownBy) (proved []Stamped, err error) {
	e, err := timestamp.ParseEvidenceRecord(r.Timestamps[i].Token)
	if err != nil {
		return nil, err
	}
	group, places := groupOf(r)
	links, covered, err := e.Links(group)
	if err != nil {
		return nil, err
	}
	forged, next := false, Proof{}
	_, err = timestamp.VerifyLinks(links, func(l timestamp.Link, until time.Time) (*timestamp.Token, error) {
		t, token, err := c.attributed(l, until, next)
		if next = (Proof{}); err != nil {
			forged = forged || !Uncheckable(err)
			return nil, err
		}
		next.Add(t)
		proved = append(proved, t)
		return token, nil
	})
	switch {
	case forged:
		return nil, &forgedError{err}
	case err != nil:
		return nil, err
	}
	for j, place := range places {
		at := shown[place]
		for _, t := range proved {
			if covered[j] {
				at.Add(t)
			}
		}
		shown[place] = at
	}
	return proved, nil
}

// groupOf returns what an evidence record of a record covers, and the indexes of the tokens among it.
func groupOf(r *evidence.Record) (g timestamp.Group, places []int) {
	g.Required = [][]byte{bytes.Join(r.Signatures, nil), r.Canonical()}
	for i, stamp := range r.Timestamps {
		if stamp.Kind == evidence.RFC3161 {
			g.Optional, places = append(g.Optional, stamp.Token), append(places, i)
		}
	}
	return g, places
}
