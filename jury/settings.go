package jury

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

const (
	minSeats  = 2
	maxSeats  = 12
	maxRounds = 20
	allPoints = 100

	maxWeight  = 1_000_000
	maxCeiling = 1_000_000_000_000 // a million dollars
)

// Offline is the provider of a seat that is decided by rules instead of a model.
const Offline = "offline"

// Validate returns the first error in the settings, as a *FieldError.
func (s *Settings) Validate() error {
	return cmp.Or(s.checkSeats(), s.checkJudge(), s.checkReading(), s.checkWeights(), s.checkRubric(), s.checkNumbers(), s.checkEncoding())
}

func (s *Settings) checkSeats() error {
	if n := len(s.Seats); n < minSeats || n > maxSeats {
		return wrong("seats", "%d: want %d to %d", n, minSeats, maxSeats)
	}
	taken := map[string]bool{}
	for i, seat := range s.Seats {
		field := fmt.Sprintf("seats[%d]", i)
		if err := seat.check(field); err != nil {
			return err
		}
		if taken[seat.JurorID] {
			return wrong(field+".jurorId", "%q has two seats", seat.JurorID)
		}
		taken[seat.JurorID] = true
	}
	return nil
}

func (s *Settings) checkJudge() error {
	if err := oneOf("method", s.Method, MajorityVote, WeightedAverage, FinalJudge, Median, Calibrated); err != nil {
		return err
	}
	if s.Method != FinalJudge {
		if s.Judge != nil {
			return wrong("judge", "must be left out: the method %s needs none", s.Method)
		}
		return nil
	}
	if s.Judge == nil {
		return wrong("judge", "missing: the method %s needs one", s.Method)
	}
	if slices.ContainsFunc(s.Seats, func(seat Seat) bool { return seat.JurorID == s.Judge.JurorID }) {
		return wrong("judge.jurorId", "%q is also a juror", s.Judge.JurorID)
	}
	return s.Judge.check("judge")
}

// checkReading requires a judge that is a model if the judge reads.
func (s *Settings) checkReading() error {
	switch {
	case !s.JudgeReads:
		return nil
	case s.Judge == nil:
		return wrong("judgeReads", "the method %s has no judge", s.Method)
	case s.Judge.Provider == Offline:
		return wrong("judgeReads", "the judge is rules, and reads nothing by itself")
	}
	return nil
}

func (seat *Seat) check(field string) error {
	if err := checkName(field+".jurorId", seat.JurorID); err != nil {
		return err
	}
	switch seat.Reading {
	case "", PolicyFirst, ActsFirst, ClaimsFirst:
	default:
		return wrong(field+".reading", "%q must be one of %s, %s, %s, or left out", abbreviate(string(seat.Reading)), PolicyFirst, ActsFirst, ClaimsFirst)
	}
	if seat.Parameters == nil {
		return nil
	}
	if _, err := object(seat.Parameters); err != nil {
		return wrong(field+".parameters", "%v", err)
	}
	return nil
}

func (s *Settings) checkRubric() error {
	sum, known := 0, map[string]bool{}
	for i, axis := range s.Rubric {
		field := fmt.Sprintf("rubric[%d]", i)
		if err := checkName(field+".id", axis.ID); err != nil {
			return err
		}
		if known[axis.ID] {
			return wrong(field+".id", "%q is there twice", axis.ID)
		}
		if axis.Max < 1 || axis.Max > allPoints {
			return wrong(field+".max", "%d: want 1 to %d points", axis.Max, allPoints)
		}
		if axis.Veto < 0 || axis.Veto > axis.Max {
			return wrong(field+".veto", "%d: want 0 to %d points", axis.Veto, axis.Max)
		}
		if err := axis.checkLevels(field); err != nil {
			return err
		}
		known[axis.ID] = true
		sum += axis.Max
	}
	if sum != allPoints {
		return wrong("rubric", "the maxima sum to %d: want %d", sum, allPoints)
	}
	return nil
}

func (s *Settings) checkNumbers() error {
	if s.MaxRounds < 0 || s.MaxRounds > maxRounds {
		return wrong("maxRounds", "%d: want 0 to %d", s.MaxRounds, maxRounds)
	}
	// Negative zero has no canonical form, so it could not be sealed.
	if math.IsNaN(s.Threshold) || math.IsInf(s.Threshold, 0) || math.Signbit(s.Threshold) {
		return wrong("threshold", "%v: want a finite number from 0", s.Threshold)
	}
	if s.CostCeiling < 0 || s.CostCeiling > maxCeiling {
		return wrong("costCeiling", "%d: want 0 to %d", s.CostCeiling, int64(maxCeiling))
	}
	if s.Shortening != nil {
		if err := checkName("shortening.rule", s.Shortening.Rule); err != nil {
			return err
		}
		if s.Shortening.Limit < 1 || s.Shortening.Limit > maxMessage {
			return wrong("shortening.limit", "%d: want 1 to %d bytes", s.Shortening.Limit, maxMessage)
		}
	}
	return nil
}

// checkWeights requires a weight for each juror and for no other if the method uses weights. Otherwise it requires
// that there are none.
func (s *Settings) checkWeights() error {
	if (s.Method == Calibrated) != (len(s.Weights) > 0) {
		return wrong("weights", "must be there exactly when the method is %s", Calibrated)
	}
	if s.Method != Calibrated {
		if math.Float64bits(s.EffectiveVotes) != 0 { // negative zero is not left out
			return wrong("effectiveVotes", "must be left out unless the method is %s", Calibrated)
		}
		return nil
	}
	if v := s.EffectiveVotes; math.Float64bits(v) != 0 && !(v >= 1 && v <= float64(len(s.Seats))) {
		return wrong("effectiveVotes", "%v: want 1 to %d, or none", v, len(s.Seats))
	}
	for _, seat := range s.Seats {
		weight, there := s.Weights[seat.JurorID]
		if !there {
			return wrong("weights."+seat.JurorID, "missing")
		}
		if weight < -maxWeight || weight > maxWeight {
			return wrong("weights."+seat.JurorID, "%d: want %d to %d", weight, -maxWeight, maxWeight)
		}
	}
	if len(s.Weights) != len(s.Seats) {
		return wrong("weights", "has jurors without a seat")
	}
	return nil
}

// weights are the weights of the votes, by seat.
func (s *Settings) weights() []int {
	weights := make([]int, len(s.Seats))
	for i, seat := range s.Seats {
		weights[i] = s.Weights[seat.JurorID]
	}
	return weights
}

// checkEncoding refuses text that JSON cannot carry.
func (s *Settings) checkEncoding() error {
	var err error
	for i := range s.Seats {
		err = cmp.Or(err, s.Seats[i].checkEncoding(fmt.Sprintf("seats[%d].", i)))
	}
	if s.Judge != nil {
		err = cmp.Or(err, s.Judge.checkEncoding("judge."))
	}
	for i, axis := range s.Rubric {
		err = cmp.Or(err, checkUTF8(fmt.Sprintf("rubric[%d].description", i), axis.Description))
	}
	return err
}

func (seat *Seat) checkEncoding(field string) error {
	var ended Ended
	if seat.Ended != nil {
		ended = *seat.Ended
	}
	return cmp.Or(checkUTF8(field+"roleName", seat.RoleName), checkUTF8(field+"roleFocus", seat.RoleFocus), checkUTF8(field+"provider", seat.Provider),
		checkUTF8(field+"model", seat.Model), checkUTF8(field+"ended.on", ended.On), checkUTF8(field+"ended.successor", ended.Successor))
}

// checkName applies the rules of sealed payloads to a name, so that no trial stops because a name cannot be sealed.
func checkName(field, name string) error {
	if err := evidence.CheckName(name); err != nil {
		return wrong(field, "%v", err)
	}
	return nil
}

// object returns the canonical form of a JSON object. An absent value gives the empty object.
func object(v jsontext.Value) (jsontext.Value, error) {
	if v == nil {
		return jsontext.Value("{}"), nil
	}
	form, err := evidence.Canonical(v)
	if err != nil {
		return nil, err
	}
	if jsontext.Value(form).Kind() != '{' {
		return nil, fmt.Errorf("want a JSON object")
	}
	return form, nil
}

// normal returns a copy of valid settings in the form in which they are recorded.
func (s *Settings) normal() Settings {
	n := clone(*s)
	for i := range n.Seats {
		n.Seats[i].Parameters, _ = object(n.Seats[i].Parameters) // Validate has checked that it is an object
	}
	if n.Judge != nil {
		n.Judge.Parameters, _ = object(n.Judge.Parameters)
	}
	return n
}

// Against says how these settings differ from those that a trial was opened with; "" if they are equal. Both must be
// valid. Its errors are those of EncodeBody.
func (s *Settings) Against(opened *Settings) (string, error) {
	then, err := EncodeBody(opened.normal())
	if err != nil {
		return "", err
	}
	now, err := EncodeBody(s.normal())
	if err != nil || bytes.Equal(then, now) {
		return "", err
	}
	c := compare("", then, now)
	return fmt.Sprintf("%s was %s, and is now %s", c.path, shown(c.left), shown(c.right)), nil
}

// offline reports whether the panel has no model.
func (s *Settings) offline() bool {
	return len(s.Seats) > 0 && !slices.ContainsFunc(s.Seats, func(seat Seat) bool { return seat.Provider != Offline })
}
