package verify

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/property"
)

// TestParseDemand: each error names the demand's field, the byte and the reason.
func TestParseDemand(t *testing.T) {
	for text, want := range map[string]DemandError{
		"range:/a=0..5":                    {},
		"range:/a=-1.5..2.25":              {},
		"range:/a=2026-01-01..2026-12-31":  {},
		`in:/a=x,"y, z",7,null`:            {},
		"not_in:/a/b=x":                    {},
		"age_at_least:/born=18@2026-01-01": {},

		"":                             {Field: "form"},
		"between:/a=0..5":              {Field: "form"},
		"equal:/a=/b":                  {Field: "form"},
		"at_most_sum:/a=5":             {Field: "form"},
		"range:a=0..5":                 {Field: "pointer", Position: 6},
		"range:/a~2=0..5":              {Field: "pointer", Position: 6},
		"range:/a":                     {Field: "pointer", Position: 8},
		"range:/a=5":                   {Field: "range", Position: 9},
		"range:/a=5..5":                {Field: "range", Position: 9},
		"range:/a=x..y":                {Field: "range", Position: 9},
		"range:/a=0..1e999":            {Field: "range", Position: 9},
		"in:/a=":                       {Field: "set", Position: 6},
		"in:/a=x,x":                    {Field: "set", Position: 6},
		`in:/a="x`:                     {Field: "set", Position: 6},
		`in:/a="x"y`:                   {Field: "set", Position: 6},
		"age_at_least:/a=x@2026-01-01": {Field: "years", Position: 16},
		"age_at_least:/a=18":           {Field: "age", Position: 16},
		"age_at_least:/a=18@soon":      {Field: "age", Position: 16},
	} {
		_, err := ParseDemand(text)
		var found *DemandError
		if errors.As(err, &found); (err != nil) != (want.Field != "") || found != nil && (found.Field != want.Field || found.Position != want.Position || found.Reason == "") {
			t.Errorf("%q: %v, want %+v", text, err, want)
		}
	}
}

// TestImplied: a proof counts for a demand only with the same audience, and of the same member.
func TestImplied(t *testing.T) {
	const a, b = "sha256:aa", "sha256:bb"
	in := &property.Statement{Format: property.Format, Kind: property.Text, Form: property.In, Set: []jsontext.Value{jsontext.Value(`"x"`), jsontext.Value(`"y"`)},
		Members: []property.Member{{Record: a, Pointer: "/p"}}}
	forOne := *in
	forOne.Audience = "auditor"
	for n, c := range []struct {
		demand, audience string
		statement        *property.Statement
		record           string
		want             bool
	}{
		{"in:/p=x,y,z", "", in, a, true},
		{"in:/p=x", "", in, a, false},
		{"in:/p=x,y", "", in, b, false},
		{"in:/q=x,y", "", in, a, false},
		{"in:/p=x,y", "", &forOne, a, false},
		{"in:/p=x,y", "auditor", &forOne, a, true},
		{"in:/p=x,y", "auditor", in, a, false},
		{"not_in:/p=z", "", in, a, true},
		{"not_in:/p=y", "", in, a, false},
		{"range:/p=0..5", "", in, a, false},
	} {
		d, err := ParseDemand(c.demand)
		if err != nil {
			t.Fatal(err)
		}
		d.Audience = c.audience
		if got := d.implied(c.statement, c.record); got != c.want {
			t.Errorf("%d: %s: %v", n, c.demand, got)
		}
	}
}
