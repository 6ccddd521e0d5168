package verify_test

import (
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/verify"
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
		p, err := verify.ParsePolicy([]byte(tt.doc))
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
			if p, err := verify.ParsePolicy([]byte(doc)); err == nil || !strings.Contains(err.Error(), name+" is empty") {
				t.Errorf("%s: %v, %v", doc, p, err)
			}
		}
	}
}

// TestPolicyFingerprint: it is that of the canonical form, so spelling does not change it, and content does.
func TestPolicyFingerprint(t *testing.T) {
	of := func(doc string) string {
		p := must.Get(verify.ParsePolicy([]byte(doc)))(t)
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
		want verify.Need
	}{
		{"keys=ca", "keys=owner", verify.Need{Keys: verify.KeysByOwner}}, {"keys=owner", "keys=ca", verify.Need{Keys: verify.KeysByOwner}},
		{"time=qualified", "time=operator", verify.Need{Time: verify.QualifiedClock}},
		{"log=witnessed", "log=compared", verify.Need{Log: verify.LogBoth}}, {"log=alone", "log=compared", verify.Need{Log: verify.LogCompared}},
		{"log=compared", "log=alone", verify.Need{Log: verify.LogCompared}},
		{"independent", "log=witnessed", verify.Need{Level: verify.LevelIndependent, Log: verify.LogWitnessed}},
	} {
		a, errA := verify.ParseNeed(tt.a)
		b, errB := verify.ParseNeed(tt.b)
		if got, err := a.With(b); err != nil || errA != nil || errB != nil || got != tt.want {
			t.Errorf("%s and %s: %+v, %v", tt.a, tt.b, got, err)
		}
	}
	if _, err := (verify.Need{Level: verify.LevelSigned}).With(verify.Need{Level: verify.LevelOperator}); err == nil {
		t.Error("two levels were accepted")
	}
	for _, bad := range []string{"keys=", "keys=mine", "log=x", "best", "place=here", ""} {
		if n, err := verify.ParseNeed(bad); bad != "" && err == nil {
			t.Errorf("%q: %+v", bad, n)
		}
	}
}

// TestWhatCountsIsSaid: every guarantee that can stay unproved in a file that passes has a reason why it does not count.
func TestWhatCountsIsSaid(t *testing.T) {
	for _, kind := range []verify.Kind{verify.OneRecord, verify.ManyRecords, verify.Trial, verify.SeveralFiles, verify.OneCheckpoint} {
		for _, g := range verify.Guarantees() {
			counts := func(policy verify.Policy, level verify.Level) bool {
				return verify.Counts(kind, g, policy, level)
			}
			if !counts(verify.Default, "") && verify.WhyUncounted(kind, g) == "" {
				t.Errorf("%s, %s: no reason", kind, g)
			}
			if counts(verify.Default, "") != counts(verify.Default, verify.LevelOperator) {
				t.Errorf("%s, %s: the level operator is not what counts by default", kind, g)
			}
			if counts(verify.Default, verify.LevelOperator) && (!counts(verify.Default, verify.LevelIndependent) || !counts(verify.Default, verify.LevelQualified)) {
				t.Errorf("%s, %s: a higher level counts less", kind, g)
			}
			if kind != verify.OneCheckpoint && counts(verify.Default, verify.LevelSigned) && !counts(verify.Default, verify.LevelOperator) {
				t.Errorf("%s, %s: the lowest level counts more", kind, g)
			}
		}
	}
}
