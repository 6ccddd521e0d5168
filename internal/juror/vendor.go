package juror

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/subject"
	"jurat/jury"
)

// A Vendor is the maker of models. The zero value stands for an unknown one.
type Vendor string

// vendorNames match how a vendor or its models are named.
var vendorNames = []struct {
	Vendor
	name *Pattern
}{
	{"openai", NewPattern(`(?i)\b(openai|chatgpt|gpt-?\d\w*|o[134](-mini|-pro|-preview)?(-\d[\d-]*)?$)`)},
	{"anthropic", NewPattern(`(?i)\b(anthropic|claude)\b`)},
	{"gemini", NewPattern(`(?i)\b(gemini|google (deepmind|ai)|vertex ai)\b|^google`)},
	{"meta", NewPattern(`(?i)\b(meta-)?llama`)},
	{"mistral", NewPattern(`(?i)\b(mistral|mixtral|magistral|ministral)`)},
	{"qwen", NewPattern(`(?i)\bqwen`)},
	{"deepseek", NewPattern(`(?i)\bdeepseek`)},
	{"xai", NewPattern(`(?i)\bgrok\b`)},
}

// VendorsIn returns the vendors that a text names.
func VendorsIn(text string) (list []Vendor) {
	for _, v := range vendorNames {
		if v.name.MatchString(text) {
			list = append(list, v.Vendor)
		}
	}
	return list
}

// vendorsOf returns the vendors of the accused's model: as its records name the model, and as its card names model or
// vendor. A card is what the agent says of itself, so no vendor in it proves nothing.
func vendorsOf(c *subject.Case) (list []Vendor) {
	var evidence struct {
		Card    jsontext.Value `json:"agentCard"`
		Records []struct {
			Payload struct {
				Model string `json:"model"`
			} `json:"payload"`
		} `json:"records"`
	}
	if json.Unmarshal(c.Material(), &evidence) != nil {
		return nil // not of this form: then it names nothing that could be found
	}
	list = append(VendorsIn(string(evidence.Card)), VendorsIn(c.Card.Organization)...)
	for _, r := range evidence.Records {
		list = append(list, VendorsIn(r.Payload.Model)...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// SameVendor lists the jurors, and the judge, whose model is of a vendor of the accused's model. Models tend to favour
// what is written like their own words. It returns nil if neither records nor the card name a model or vendor.
func SameVendor(s *jury.Settings, c *subject.Case) (ids []string) {
	seats := slices.Clone(s.Seats)
	if s.Judge != nil {
		seats = append(seats, *s.Judge)
	}
	accused := vendorsOf(c)
	for _, seat := range seats {
		if seat.Provider == jury.Offline {
			continue
		}
		own := VendorsIn(seat.Model)
		if len(own) == 0 {
			own = []Vendor{Vendor(strings.ToLower(seat.Provider))}
		}
		if slices.ContainsFunc(own, func(v Vendor) bool { return slices.Contains(accused, v) }) {
			ids = append(ids, seat.JurorID)
		}
	}
	return ids
}
