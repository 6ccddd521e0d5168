package jury

import (
	"fmt"
	"slices"

	"jurat/evidence"
)

// Digest is the SHA-256 of the request in canonical JSON. An opening announces it, and the answer names it. Digest
// fails only for a seat or rubric that Settings.Validate refuses.
func (r Request) Digest() (evidence.Digest, error) {
	parameters, err := object(r.Seat.Parameters)
	if err != nil {
		return evidence.Digest{}, wrong("seat.parameters", "%v", err)
	}
	r.Seat.Parameters = parameters
	doc, err := EncodeBody(r)
	if err != nil {
		return evidence.Digest{}, fmt.Errorf("request of %s: %w", r.Seat.JurorID, err)
	}
	return evidence.DigestOf(doc), nil
}

// Request rebuilds what an opening says that a seat was asked, from the digest of the evidence and of the acts that
// the seat was given. Its digest must equal the announced one: see Announced. It returns an error if the juror has no
// seat in the phase of the opening.
func (o *Opening) Request(jurorID string, material evidence.Digest, saw []evidence.Digest) (Request, error) {
	for _, seat := range o.Settings.asked(o.Phase) {
		if seat.JurorID == jurorID {
			return clone(Request{Format: RequestFormat, Phase: o.Phase, RoundNumber: o.RoundNumber, Seat: seat, Rubric: o.Settings.Rubric, Evidence: material,
				Shortening: o.Settings.Shortening, Saw: saw, Tables: o.Settings.wantsTables(&seat, o.Phase)}), nil
		}
	}
	return Request{}, fmt.Errorf("%q has no seat in phase %s", jurorID, o.Phase)
}

// wantsTables reports whether a seat must fill in tables in a phase: a model that reads the case for itself. A judge that
// was to read it in phase 1 need not do so again in phase 3.
func (s *Settings) wantsTables(seat *Seat, phase Phase) bool {
	return s.Tables && seat.Provider != Offline && phase != Discussion && !(phase == Judging && s.JudgeReads)
}

// Announced returns the digest of the request that the opening announced for a seat, and false if it announced none.
func (o *Opening) Announced(jurorID string) (evidence.Digest, bool) {
	i := slices.IndexFunc(o.Requests, func(a SeatAsked) bool { return a.JurorID == jurorID })
	if i < 0 {
		return evidence.Digest{}, false
	}
	return o.Requests[i].RequestDigest, true
}

// asked lists who may be asked in a phase, in seat order.
func (s *Settings) asked(phase Phase) []Seat {
	switch {
	case phase == Initial && s.JudgeReads:
		return append(slices.Clone(s.Seats), *s.Judge)
	case phase != Judging:
		return s.Seats
	case s.Judge == nil:
		return nil
	}
	return []Seat{*s.Judge}
}

// placesOf returns the place of each seat on the panel.
func (s *Settings) placesOf(seats []Seat) []int {
	places := make([]int, len(seats))
	for i, seat := range seats { // judgePlace is -1, which says that the panel has no such seat
		places[i] = slices.IndexFunc(s.Seats, func(other Seat) bool { return other.JurorID == seat.JurorID })
	}
	return places
}
