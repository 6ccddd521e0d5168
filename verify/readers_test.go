package verify_test

import (
	"testing"

	"jurat/evidence/observed"
	"jurat/jurattest"
	"jurat/verify"
)

// TestReadersOfOneMessage: what a recorder decoded is proved only where the side that got it had to decode it, too. Both verifiers say the same.
func TestReadersOfOneMessage(t *testing.T) {
	encoded := func(encoding, accepts string) func(*observed.Act) {
		return func(a *observed.Act) {
			a.Response.Encoding = encoding
			if accepts != "" {
				a.Request.Headers = map[string]string{"accept-encoding": accepts}
			}
		}
	}
	tests := map[string]struct {
		change func(*observed.Act)
		proved bool
	}{
		"plain":                  {func(*observed.Act) {}, true},
		"one-of-several":         {encoded("br", "gzip, deflate, br;q=0.9"), true},
		"the-other-name":         {encoded("x-gzip", "gzip"), true},
		"a-star":                 {encoded("zstd", "gzip, *;q=0.1"), true},
		"two-after-each-other":   {encoded("gzip, br", "br,gzip"), true},
		"two-and-one-offered":    {encoded("gzip,br", "gzip"), false},
		"none-offered":           {encoded("gzip", ""), false},
		"another-offered":        {encoded("gzip", "deflate, br, zstd"), false},
		"identity-offered":       {encoded("gzip", "identity"), false},
		"weight-nought":          {encoded("gzip", "gzip;q=0, *"), false},
		"weight-0.000":           {encoded("gzip", "gzip; q=0.000 "), false},
		"weight-of-another-kind": {encoded("gzip", "gzip;Q=0"), false},
		"star-of-nought":         {encoded("gzip", "*;q=0"), false},
		"offered-and-refused":    {encoded("gzip", "gzip, gzip;q=0"), false},
		"refused-and-offered":    {encoded("gzip", "gzip;q=0, gzip"), false},
		"twice":                  {encoded("gzip,gzip", "gzip"), false},
		"twice-by-two-names":     {encoded("gzip, x-gzip", "gzip"), false},
		"unknown":                {encoded("compress", "compress, *"), false},
		"of-two-headers":         {encoded("gzip and br", "gzip, br, *"), false},
		"an-identity-in-it":      {encoded("gzip, identity", "gzip, identity"), false},
		"in-other-letters":       {encoded("gzİp", "gzip, *"), false},
		"an-encoded-request":     {func(a *observed.Act) { a.Request.Encoding = "gzip" }, false},
		"an-empty-request-encoded": {func(a *observed.Act) {
			a.Request, a.Protocol = passed(""), aTool
			a.Request.Encoding = "gzip"
		}, true},
		"a-refused-request":   {func(a *observed.Act) { a.Request.Encoding, a.Request.Refused = "br", true }, false},
		"a-refused-response":  {func(a *observed.Act) { encoded("gzip", "gzip")(a); a.Response.Refused = true }, false},
		"two-types":           {func(a *observed.Act) { a.Response.Type = "application/json, text/event-stream" }, false},
		"a-request-two-types": {func(a *observed.Act) { a.Request.Type = "application/json, text/plain" }, false},
	}
	var files []given
	for name, test := range tests {
		h := jurattest.New(t)
		act := with(call, test.change)()
		b := h.Bundle(t, h.Seal(t, payloadOf(t, act)))
		want, rule := verify.Proved, ""
		if !test.proved {
			want, rule = verify.NotProved, "readers"
		}
		if got := verify.Bundle(b, h.Options(t)).Of(verify.Vantage); got.Status != want || got.Rule != rule {
			t.Errorf("%s: %+v", name, got)
		}
		files = append(files, givenBundle(t, name, b, verify.Options{}))
	}
	compareOver(t, files)
}
