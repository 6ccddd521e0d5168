package verify_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence/operator"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/verify"
	"jurat/verify/trust"
)

// cosigner is a witness whose key is derived from a number.
func cosigner(t testing.TB, seed byte, name string) *operator.Cosigner {
	t.Helper()
	return must.Get(operator.GenerateCosigner(bytes.NewReader(bytes.Repeat([]byte{seed}, 32)), name))(t)
}

func threeWitnesses(t testing.TB) []*operator.Cosigner {
	t.Helper()
	return []*operator.Cosigner{cosigner(t, 1, "witness.example/w1"), cosigner(t, 2, "witness.example/w2"), cosigner(t, 3, "other.example")}
}

// cosigned is the time at which witnesses cosign.
var cosigned = time.Date(2026, 1, 1, 0, 0, 7, 0, time.UTC)

// cosign adds the witnesses' cosignatures to a checkpoint.
func cosign(signed string, by ...*operator.Cosigner) string { return cosignAt(signed, cosigned, by...) }

func cosignAt(signed string, at time.Time, by ...*operator.Cosigner) string {
	text, _, _ := strings.Cut(signed, "\n\n")
	for _, c := range by {
		signed += c.Cosign(text+"\n", at)
	}
	return signed
}

// asWitness is a line in a witness's name with other content.
func asWitness(c *operator.Cosigner, said []byte) string {
	hash := c.KeyHash()
	line := append([]byte{byte(hash >> 24), byte(hash >> 16), byte(hash >> 8), byte(hash)}, said...)
	return "— " + c.Name() + " " + base64.StdEncoding.EncodeToString(line) + "\n"
}

// A witnessCase is a checkpoint with lines beside the log's signature, for a reader who demands two of three
// witnesses.
type witnessCase struct {
	name   string
	signed func(checkpoint string, w []*operator.Cosigner) string
	quorum int // 0: 2
	status verify.Status
	rule   string
	at     time.Time // the moment of checking; zero: none
}

var witnessCases = []witnessCase{
	{"as many as are demanded", func(s string, w []*operator.Cosigner) string { return cosign(s, w[0], w[2]) }, 0, verify.Proved, "", time.Time{}},
	{"all of them", func(s string, w []*operator.Cosigner) string { return cosign(s, w...) }, 0, verify.Proved, "", time.Time{}},
	{"beside somebody unknown", func(s string, w []*operator.Cosigner) string {
		return cosign(s, w[0]) + "— who.example AAAAAAAA\n" + strings.TrimPrefix(cosign(s, w[1]), s)
	}, 0, verify.Proved, "", time.Time{}},
	{"none", func(s string, _ []*operator.Cosigner) string { return s }, 0, verify.NotProved, "witnesses", time.Time{}},
	{"one too few", func(s string, w []*operator.Cosigner) string { return cosign(s, w[1]) }, 0, verify.NotProved, "witnesses", time.Time{}},
	{"one of them twice", func(s string, w []*operator.Cosigner) string { return cosign(s, w[1], w[1]) }, 0, verify.NotProved, "witnesses", time.Time{}},
	{"two of three", func(s string, w []*operator.Cosigner) string { return cosign(s, w[:2]...) }, 3, verify.NotProved, "witnesses", time.Time{}},
	{"over another checkpoint", func(s string, w []*operator.Cosigner) string {
		return s + strings.TrimPrefix(cosign(strings.Replace(s, "\n", "x\n", 1), w...), strings.Replace(s, "\n", "x\n", 1))
	}, 0, verify.Refuted, "cosignature", time.Time{}},
	{"made up in the name of one", func(s string, w []*operator.Cosigner) string {
		return cosign(s, w[:2]...) + asWitness(w[2], make([]byte, 72))
	}, 0, verify.Refuted, "cosignature", time.Time{}},
	{"too short in the name of one", func(s string, w []*operator.Cosigner) string {
		return cosign(s, w[:2]...) + asWitness(w[2], make([]byte, 64))
	}, 0, verify.Refuted, "cosignature", time.Time{}},
	{"good and then made up in the same name", func(s string, w []*operator.Cosigner) string {
		return cosign(s, w[:2]...) + asWitness(w[1], make([]byte, 72))
	}, 0, verify.Proved, "", time.Time{}},
	{"by another key in the name of one", func(s string, w []*operator.Cosigner) string {
		other := strings.Fields(strings.TrimPrefix(cosign(s, w[2]), s))[2]
		return cosign(s, w[0]) + "— " + w[1].Name() + " " + other + "\n"
	}, 0, verify.NotProved, "witnesses", time.Time{}},
	{"as late as clocks explain", func(s string, w []*operator.Cosigner) string { return cosign(s, w[0], w[2]) }, 0, verify.Proved, "", cosigned.Add(-5 * time.Minute)},
	{"one of them from the future", func(s string, w []*operator.Cosigner) string {
		return cosignAt(cosign(s, w[0]), cosigned.Add(time.Second), w[2])
	}, 0, verify.NotProved, "witnesses", cosigned.Add(-5 * time.Minute)},
	{"one of them from the future, by parts of a second", func(s string, w []*operator.Cosigner) string { return cosign(s, w[0], w[2]) },
		0, verify.NotProved, "witnesses", cosigned.Add(-5*time.Minute - time.Millisecond)},
	{"enough beside one from the future", func(s string, w []*operator.Cosigner) string {
		return cosign(cosignAt(s, cosigned.AddDate(1, 0, 0), w[1]), w[0], w[2])
	}, 0, verify.Proved, "", cosigned},
	{"from the future and then again in the same name", func(s string, w []*operator.Cosigner) string {
		return cosign(cosignAt(s, cosigned.AddDate(1, 0, 0), w[1]), w[0], w[1])
	}, 0, verify.NotProved, "witnesses", cosigned},
	{"one of them from the end of time", func(s string, w []*operator.Cosigner) string {
		return cosignAt(cosign(s, w[0]), time.Unix(math.MaxInt64, 0), w[1])
	}, 0, verify.NotProved, "witnesses", cosigned},
	{"one of them from the end of time, and nobody says what time it is", func(s string, w []*operator.Cosigner) string {
		return cosignAt(cosign(s, w[0]), time.Unix(math.MaxInt64, 0), w[1])
	}, 0, verify.Proved, "", time.Time{}},
	{"one of them from long ago", func(s string, w []*operator.Cosigner) string { return cosignAt(cosign(s, w[0]), time.Unix(0, 0), w[1]) },
		0, verify.Proved, "", cosigned},
}

// demand makes a reader require so many of the witnesses.
func demand(o verify.Options, quorum int, witnesses ...*operator.Cosigner) verify.Options {
	trusted := *o.Trust
	trusted.Quorum = quorum
	for _, w := range witnesses {
		trusted.Witnesses = append(trusted.Witnesses, w.String())
	}
	o.Trust = &trusted
	return o
}

// asRead parses the trust file again, as its reader would.
func asRead(t *testing.T, o verify.Options) verify.Options {
	t.Helper()
	o.Trust = reread(t, o.Trust)
	return o
}

// TestEveryRuleOfWitnesses: without a quorum the order is not proved.
func TestEveryRuleOfWitnesses(t *testing.T) {
	k := newKeeper(t)
	k.speakTimes(2)
	file, w := k.bundle(), threeWitnesses(t)
	for _, test := range witnessCases {
		b := *file
		b.Checkpoint = test.signed(file.Checkpoint, w)
		o := asRead(t, demand(k.Options(t), cmp.Or(test.quorum, 2), w...))
		o.At = test.at
		report := verify.Bundle(&b, o)
		if f := report.Of(verify.Order); f.Status != test.status || f.Rule != test.rule {
			t.Errorf("%s: %+v", test.name, f)
		} else if test.status == verify.Proved && !strings.Contains(f.Reason, "cosigned it: witness.example/w1") {
			t.Errorf("%s: it is not said who: %s", test.name, f.Reason)
		}
		f := verify.Checkpoint(b.Checkpoint, o).Of(verify.Order)
		must.Hold(t, f.Status == test.status && f.Rule == test.rule, "%s, alone: %+v", test.name, f)
		alone := verify.Record(proveAt(t, &b, k.steps[0]), o)
		f = alone.Of(verify.Order)
		must.Hold(t, f.Status == test.status && f.Rule == test.rule, "%s, one record: %+v", test.name, f)
		f = verify.Bundle(&b, k.Options(t)).Of(verify.Order)
		must.Hold(t, f.Status == verify.Proved, "%s: a reader who knows no witnesses gets another answer: %+v", test.name, f)
		must.Hold(t, report.Log != nil, "%s: the log is not named", test.name)
	}
}

// TestWitnessed: what a monitor asks of a trust file.
func TestWitnessed(t *testing.T) {
	k, w := newKeeper(t), threeWitnesses(t)
	k.speak("The A9.")
	trusted := asRead(t, demand(k.Options(t), 2, w...)).Trust
	signed := k.checkpoint()
	must.Fail(t, nil)(trusted.OpenCheckpoint(signed))
	found, err := trusted.Witnessed(cosign(signed, w[0]), time.Time{})
	must.Hold(t, errors.Is(err, trust.ErrNotWitnessed) && len(found) == 1 && strings.Contains(err.Error(), "witness.example/w2, other.example"),
		"%v, %v", found, err)
	found, err = trusted.Witnessed(cosign(signed, w...), time.Time{})
	must.Hold(t, err == nil && len(found) == 3, "%v, %v", found, err)
	late := cosign(cosignAt(cosign(signed, w[0]), cosigned.Add(time.Hour), w[1]), w[2])
	found, err = trusted.Witnessed(late, cosigned)
	must.Hold(t, err == nil && len(found) == 2 && found[1].Witness.Name() == w[2].Name(), "%v, %v", found, err)
	found, err = trusted.Witnessed(cosignAt(cosignAt(signed, cosigned.Add(time.Hour), w[1]), time.Unix(math.MaxInt64, 0), w[0]), cosigned)
	must.Hold(t, errors.Is(err, trust.ErrNotWitnessed) && len(found) == 0, "%v, %v", found, err)
	for _, says := range []string{"w1 (its cosignature is of second 9223372036854775807 since 1970", "w2 (its cosignature is of 2026-01-01T01:00:07Z, and it is checked at 2026-01-01T00:00:07Z"} {
		must.Hold(t, err != nil && strings.Contains(err.Error(), says), "%v does not say %q", err, says)
	}
	_, err = trusted.Witnessed(signed+asWitness(w[0], make([]byte, 72)), time.Time{})
	must.Hold(t, err != nil && !errors.Is(err, trust.ErrNotWitnessed), "%v", err)
	_, err = new(trust.Trust).OpenCheckpoint(signed)
	must.Hold(t, err != nil, "a log that the trust file does not name")
}

// refusedWitnesses are demands that are meaningless, or weaker than they seem.
func refusedWitnesses(t testing.TB) [][3]string {
	t.Helper()
	w := threeWitnesses(t)
	log := jurattest.New(t).Options(t).Trust.Logs[0]
	data := must.Get(base64.StdEncoding.DecodeString(strings.SplitN(log, "+", 3)[2]))(t)
	own := must.Get(operator.NewWitness("witness.example/w1", data[1:]))(t)
	list := func(quorum string, keys ...string) string {
		return `"witnesses": ["` + strings.Join(keys, `","`) + `"],` + quorum + `"format":`
	}
	two := cosigner(t, 1, "another.name").String()
	return [][3]string{
		{"with witnesses and no quorum", `"format":`, list("", w[0].String())},
		{"with a quorum and no witnesses", `"format":`, `"quorum":1,"format":`},
		{"with more than all witnesses", `"format":`, list(`"quorum":3,`, w[0].String(), w[1].String())},
		{"with a quorum below nothing", `"format":`, list(`"quorum":-1,`, w[0].String())},
		{"with a quorum of a half", `"format":`, list(`"quorum":0.5,`, w[0].String())},
		{"with a witness twice", `"format":`, list(`"quorum":2,`, w[0].String(), w[0].String())},
		{"with a witness under two names", `"format":`, list(`"quorum":2,`, w[0].String(), two)},
		{"with a witness that is a log", `"format":`, list(`"quorum":1,`, log)},
		{"with the log for its own witness", `"format":`, list(`"quorum":1,`, own.String())},
		{"with a witness with another hash", `"format":`, list(`"quorum":1,`, strings.Replace(w[0].String(), "w1+", "w1+0", 1))},
		{"with a witness of no name", `"format":`, list(`"quorum":1,`, w[0].String()[strings.Index(w[0].String(), "+"):])},
	}
}

func TestTrustDemandsOnlyWitnessesThatCanBe(t *testing.T) {
	doc := trustFile(t)
	for _, bad := range refusedWitnesses(t) {
		changed := strings.Replace(doc, bad[1], bad[2], 1)
		if _, err := trust.Parse([]byte(changed)); err == nil || !strings.Contains(err.Error(), "reading trust file") {
			t.Errorf("%s: %v", bad[0], err)
		}
	}
	odd := strings.Replace(doc, `"format":`, `"quorum": 1.0e0, "witnesses": ["`+threeWitnesses(t)[0].String()+`"], "format":`, 1)
	trusted, err := trust.Parse([]byte(odd))
	must.Hold(t, err == nil && trusted.Quorum == 1, "%v", err)
}

// witnessVectors are the cases of witnessCases, for verifiers in other languages.
func witnessVectors(t *testing.T) []given {
	t.Helper()
	k := &keeper{House: jurattest.NewForStrangers(t), t: t}
	k.speakTimes(1)
	file, w := k.bundle(), threeWitnesses(t)
	var list []given
	for _, test := range witnessCases {
		b := *file
		b.Records = slices.Clone(file.Records)
		b.Checkpoint = test.signed(file.Checkpoint, w)
		o := demand(k.Options(t), cmp.Or(test.quorum, 2), w...)
		o.At = test.at
		list = append(list, givenBundle(t, slug("witnesses", test.name), &b, o))
	}
	o := demand(k.Options(t), 1, w[0])
	list = append(list, given{slug("checkpoint", "witnessed"), []byte(cosign(file.Checkpoint, w...)), trustOf(t, o), o, nil},
		given{slug("checkpoint", "not witnessed"), []byte(cosign(file.Checkpoint, w[1])), trustOf(t, o), o, nil})
	return list
}
