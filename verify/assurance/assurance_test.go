package assurance_test

import (
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/verify/assurance"
)

// TestPolicyFile: a policy file is read strictly. Each error names the member.
func TestPolicyFile(t *testing.T) {
	for _, tt := range []struct{ doc, says string }{
		{`{"format":"jurat/policy/v1","name":"court","level":"independent","keys":"owner","time":"qualified","log":"witnessed","strict":true,"require":["configuration"],"demands":[{"demand":"in:/a=b","audience":"me"}]}`, ""},
		{"\ufeff{\"format\": \"jurat/policy/v1\",\r\n \"log\": \"compared\"}", ""},
		{`{"format":"jurat/policy/v2","level":"operator"}`, `format is "jurat/policy/v2"`},
		{`{"level":"operator"}`, "format is"},
		{`{"format":"jurat/policy/v1"}`, "it demands nothing"},
		{`{"format":"jurat/policy/v1","strict":false,"require":[]}`, "it demands nothing"},
		{`{"format":"jurat/policy/v1","level":"best"}`, `level is "best": want one of [signed operator independent independent-qualified]`},
		{`{"format":"jurat/policy/v1","keys":"mine"}`, `keys is "mine"`},
		{`{"format":"jurat/policy/v1","time":"noon"}`, `time is "noon"`},
		{`{"format":"jurat/policy/v1","log":"seen"}`, `log is "seen"`},
		{`{"format":"jurat/policy/v1","require":["truth"]}`, `require/0: unknown guarantee "truth"`},
		{`{"format":"jurat/policy/v1","require":["time","time"]}`, "require/1: time is there twice"},
		{`{"format":"jurat/policy/v1","demands":[{"demand":"in:/a=b","for_all":true}]}`, "for_all"},
		{`{"format":"jurat/policy/v1","demands":[{"demand":""}]}`, "demands/0: demand is empty"},
		{`{"format":"jurat/policy/v1","level":"operator","trust":"me"}`, "trust"},
		{`{"format":"jurat/policy/v1","Level":"operator"}`, "Level"},
		{`{"format":"jurat/policy/v1","level":"operator","level":"signed"}`, "level"},
		{`{"format":"jurat/policy/v1","level":"operator"} {}`, "reading policy"},
		{`[]`, "reading policy"},
		{``, "reading policy"},
	} {
		p, err := assurance.ParsePolicy([]byte(tt.doc))
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%s: %v", tt.doc, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%s: %v, %v; want %q", tt.doc, p, err, tt.says)
		}
	}
}

// TestBlankDemands: a demand that was left blank is an error, as a word that is none.
func TestBlankDemands(t *testing.T) {
	for _, name := range []string{"level", "keys", "time", "log"} {
		for _, blank := range []string{`""`, "null"} {
			doc := `{"format":"jurat/policy/v1","strict":true,"` + name + `":` + blank + `}`
			if p, err := assurance.ParsePolicy([]byte(doc)); err == nil || !strings.Contains(err.Error(), name+" is empty") {
				t.Errorf("%s: %v, %v", doc, p, err)
			}
		}
	}
}

// TestPolicyFingerprint: it is that of the canonical form, so spelling does not change it, and content does.
func TestPolicyFingerprint(t *testing.T) {
	of := func(doc string) string {
		p := must.Get(assurance.ParsePolicy([]byte(doc)))(t)
		return p.File().Fingerprint.String()
	}
	one := of(`{"format":"jurat/policy/v1","level":"operator","time":"independent"}`)
	if of("{ \"time\": \"independent\",\n \"level\": \"operator\", \"format\": \"jurat/policy/v1\" }") != one {
		t.Error("another spelling has another fingerprint")
	}
	if of(`{"format":"jurat/policy/v1","level":"operator","time":"qualified"}`) == one {
		t.Error("another demand has the same fingerprint")
	}
}

// TestNeedsAreJoined: of two demands on one part the stronger counts, and two levels are an error.
func TestNeedsAreJoined(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want assurance.Need
	}{
		{"keys=ca", "keys=owner", assurance.Need{Keys: assurance.ByOwner}}, {"keys=owner", "keys=ca", assurance.Need{Keys: assurance.ByOwner}},
		{"time=qualified", "time=operator", assurance.Need{Time: assurance.QualifiedClock}},
		{"log=witnessed", "log=compared", assurance.Need{Log: assurance.Both}}, {"log=alone", "log=compared", assurance.Need{Log: assurance.Compared}},
		{"log=compared", "log=alone", assurance.Need{Log: assurance.Compared}},
		{"independent", "log=witnessed", assurance.Need{Level: assurance.Independent, Log: assurance.Witness}},
	} {
		a, errA := assurance.ParseNeed(tt.a)
		b, errB := assurance.ParseNeed(tt.b)
		if got, err := a.With(b); err != nil || errA != nil || errB != nil || got != tt.want {
			t.Errorf("%s and %s: %+v, %v", tt.a, tt.b, got, err)
		}
	}
	if _, err := (assurance.Need{Level: assurance.Signed}).With(assurance.Need{Level: assurance.Operator}); err == nil {
		t.Error("two levels were accepted")
	}
	for _, bad := range []string{"keys=", "keys=mine", "log=x", "best", "place=here", ""} {
		if n, err := assurance.ParseNeed(bad); bad != "" && err == nil {
			t.Errorf("%q: %+v", bad, n)
		}
	}
}

// TestWhatCountsIsSaid: every guarantee that can stay unproved in a file that passes has a reason why it does not count.
func TestWhatCountsIsSaid(t *testing.T) {
	for _, kind := range []assurance.Kind{assurance.OneRecord, assurance.ManyRecords, assurance.Trial, assurance.SeveralFiles, assurance.OneCheckpoint} {
		for _, g := range assurance.Guarantees() {
			counts := func(policy assurance.Named, level assurance.Level) bool {
				return assurance.Counts(kind, g, policy, level)
			}
			if !counts(assurance.Default, "") && assurance.WhyUncounted(kind, g) == "" {
				t.Errorf("%s, %s: no reason", kind, g)
			}
			if counts(assurance.Default, "") != counts(assurance.Default, assurance.Operator) {
				t.Errorf("%s, %s: the level operator is not what counts by default", kind, g)
			}
			if counts(assurance.Default, assurance.Operator) && (!counts(assurance.Default, assurance.Independent) || !counts(assurance.Default, assurance.IndependentQualified)) {
				t.Errorf("%s, %s: a higher level counts less", kind, g)
			}
			if kind != assurance.OneCheckpoint && counts(assurance.Default, assurance.Signed) && !counts(assurance.Default, assurance.Operator) {
				t.Errorf("%s, %s: the lowest level counts more", kind, g)
			}
		}
	}
}
