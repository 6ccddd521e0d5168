package find

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"jurat/evidence"
)

// Terms that say what a record is. Other terms are longer or shorter.
const (
	trialTerm    = "trial"    // it is in a trial
	recordedTerm = "recorded" // a recorder saw it, in a chain
	recorderTerm = "recorder" // a recorder sealed it
)

// What a hashed term stands for.
const (
	pieceOf  = 'p' // of a text
	nameOf   = 'n' // who acted, or whose act a recorder saw
	ownOf    = 'o' // an agent sealed it for itself
	actionOf = 'a'
	chainOf  = 'c'
)

var termEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// appendTerm appends the term of a value: a hash of 30 bits under the key of the file. So the file has no word of a record. Two
// values with one term are candidates together, and told apart in the records.
func (x *Index) appendTerm(out []byte, kind byte, value []byte) []byte {
	var room [64]byte
	sum := sha256.Sum256(append(append(append(room[:0], x.key...), kind), value...))
	return termEncoding.AppendEncode(out, sum[:5])[:len(out)+termLength]
}

const termLength = 6

func (x *Index) term(kind byte, value string) string {
	return string(x.appendTerm(nil, kind, []byte(value)))
}

func (x *Index) appendPiece(out []byte, p piece) []byte {
	var value [8]byte
	binary.BigEndian.PutUint64(value[:], uint64(p))
	return x.appendTerm(out, pieceOf, value[:])
}

// A cachedPiece has the term of a piece, and the place of the last record with it.
type cachedPiece struct {
	term  []byte
	place int64
}

// maxCached is how many pieces are in a cache.
const maxCached = 1 << 18

// termsOf lists the terms of a record, with a space after each.
func (x *Index) termsOf(d *doc, cache map[piece]*cachedPiece) []byte {
	var out []byte
	add := func(kind byte, value string) {
		if value != "" {
			out = append(x.appendTerm(out, kind, []byte(value)), ' ')
		}
	}
	add(nameOf, d.actor)
	add(nameOf, d.agent)
	add(actionOf, string(d.action))
	add(chainOf, d.chain)
	if d.role == evidence.RoleAgent {
		add(ownOf, d.actor)
	}
	for term, is := range map[string]bool{trialTerm: inTrial(d.chain), recordedTerm: d.Sight != nil, recorderTerm: d.role == evidence.RoleRecorder} {
		if is {
			out = append(append(out, term...), ' ')
		}
	}
	for _, text := range d.texts {
		pieces(text, func(p piece) {
			c := cache[p]
			if c == nil {
				if len(cache) == maxCached {
					clear(cache)
				}
				c = &cachedPiece{append(x.appendPiece(nil, p), ' '), -1}
				cache[p] = c
			}
			if c.place != d.place {
				c.place, out = d.place, append(out, c.term...)
			}
		})
	}
	return out
}

// piecesOf returns the terms of pieces that a text has: at most maxQuery of them, evenly from all of the text.
func (x *Index) piecesOf(folded string) (terms []string) {
	var all []piece
	pieces(folded, func(p piece) {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	})
	step := max(1, (len(all)+maxQuery-1)/maxQuery)
	for i := 0; i < len(all); i += step {
		terms = append(terms, string(x.appendPiece(nil, all[i])))
	}
	return terms
}

// with returns what words has to match for records that have all of these terms.
func with(terms ...string) string { return strings.Join(terms, " AND ") }

// withText returns the places of the records with a term that may have a text, by chain.
func (x *Index) withText(ctx context.Context, term, text string) (map[string][]int64, error) {
	type at struct {
		place int64
		chain string
	}
	found, err := list(ctx, x.db, func(a *at) []any { return []any{&a.place, &a.chain} },
		"SELECT place, chain FROM words CROSS JOIN records ON place = words.rowid WHERE words MATCH ? ORDER BY words.rowid",
		with(append(x.piecesOf(text), term)...))
	if err != nil {
		return nil, fmt.Errorf("searching the log: %w", err)
	}
	places := map[string][]int64{}
	for _, a := range found {
		places[a.chain] = append(places[a.chain], a.place)
	}
	return places, nil
}

// anyHas reports whether one of these records has a text.
func (x *Index) anyHas(ctx context.Context, places []int64, text string) (bool, error) {
	for _, place := range places {
		records, err := x.open(ctx, []int64{place})
		if err != nil {
			return false, fmt.Errorf("searching the log: %w", err)
		}
		if r := records[0]; r != nil && docOf(place, &r.Payload).has(text) {
			return true, nil
		}
	}
	return false, nil
}
