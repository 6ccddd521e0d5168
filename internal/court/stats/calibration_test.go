package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/test/must"
	"jurat/jury"
)

func read(t testing.TB, text string) []Ballot {
	t.Helper()
	return must.Get(Read(strings.NewReader(text)))(t)
}

// made returns a file of votes by jurors of known reliability, on items with two or three choices.
func made(items int, reliability map[string]float64, seed uint64) string {
	random := rand.New(rand.NewPCG(seed, 1))
	choices := []string{"safe_pass", "needs_review", "unsafe_fail"}
	names := []string{}
	for name := range reliability {
		names = append(names, name)
	}
	slices.Sort(names)
	var s strings.Builder
	for i := range items {
		label := choices[random.IntN(3)]
		for _, name := range names {
			vote := label
			for random.Float64() > reliability[name] && vote == label {
				vote = choices[random.IntN(3)]
			}
			fmt.Fprintf(&s, "{\"item\":\"i%04d\",\"juror\":%q,\"vote\":%q,\"label\":%q}\n", i, name, vote, label)
		}
	}
	return s.String()
}

// TestMajorityByHand compares majority with a count by hand.
func TestMajorityByHand(t *testing.T) {
	ballots := read(t, `{"item":"a","juror":"1","vote":"x","label":"x"}
{"item":"a","juror":"2","vote":"x"}
{"item":"a","juror":"3","vote":"y"}
{"item":"b","juror":"1","vote":"x","label":"y"}
{"item":"b","juror":"2","vote":"y"}

{"item":"c","juror":"1","vote":null,"label":"x"}
{"item":"c","juror":"2","vote":null}
{"item":"c","juror":"3","vote":"x"}
{"item":"d","juror":"1","vote":null}
{"item":"e","juror":"1","vote":1}
{"item":"e","juror":"2","vote":1.0}
{"item":"e","juror":"3","vote":true}
{"item":"e","juror":"4","vote":"1"}
`)
	got := must.Get(Aggregate(ballots, Majority, nil))(t)
	want := map[string]Choice{"a": `"x"`, "b": "", "c": `"x"`, "d": "", "e": "1"}
	must.Equal(t, cmp.Diff(want, got.Verdicts), "")
	must.Hold(t, got.Labelled == 3 && got.Correct == 2 && math.Abs(*got.Accuracy-2.0/3) <= 1e-12,
		"%d of %d, %v", got.Correct, got.Labelled, *got.Accuracy)
	doc := must.Get(json.Marshal(got, json.Deterministic(true)))(t)
	must.Equal(t, string(doc), `{"verdicts":{"a":"x","b":null,"c":"x","d":null,"e":1},"accuracy":0.6666666666666666,"labelled":3,"correct":2}`)
}

// TestOrderChangesNothing: lines and jurors in any order give the same calibration and the same verdicts, to the byte.
func TestOrderChangesNothing(t *testing.T) {
	text := made(60, map[string]float64{"a": 0.9, "b": 0.7, "c": 0.5, "d": 0.4}, 1)
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n")+"\n", "\n")
	lines = lines[:len(lines)-1]
	var first []string
	for seed := range uint64(20) {
		rand.New(rand.NewPCG(seed, 2)).Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		ballots := read(t, strings.Join(lines, ""))
		calibration := must.Get(Calibrate(ballots))(t)
		got := []string{encode(t, calibration)}
		for _, method := range []Method{Majority, Weighted, Calibrated} {
			verdicts := must.Get(Aggregate(ballots, method, nil))(t)
			got = append(got, encode(t, verdicts))
		}
		if first == nil {
			first = got
		}
		diff := cmp.Diff(first, got)
		must.Need(t, diff == "", "order %d:\n%s", seed, diff)
	}
}

func encode(t testing.TB, v any) string {
	t.Helper()
	doc := must.Get(json.Marshal(v, json.Deterministic(true)))(t)
	return string(doc)
}

// TestNoItemIsJudgedByItsOwnLabel changes the label of each item. The item's own verdict must not change, with or
// without a calibration from the same file.
func TestNoItemIsJudgedByItsOwnLabel(t *testing.T) {
	text := made(12, map[string]float64{"a": 0.6, "b": 0.6, "c": 0.6}, 3)
	for item := range 12 {
		name := fmt.Sprintf("i%04d", item)
		seen := map[Choice]bool{}
		for _, label := range []string{"safe_pass", "needs_review", "unsafe_fail", "something else"} {
			ballots := read(t, text)
			at := slices.IndexFunc(ballots, func(b Ballot) bool { return b.Item == name })
			ballots[at].Label = Choice(fmt.Sprintf("%q", label))
			calibration := must.Get(Calibrate(ballots))(t)
			for _, c := range []*Calibration{nil, calibration} {
				verdicts := must.Get(Aggregate(ballots, Calibrated, c))(t)
				seen[verdicts.Verdicts[name]] = true
			}
		}
		must.Hold(t, len(seen) == 1, "%s: the verdict follows its own label: %v", name, seen)
	}
	// If the label leaked, juror "a" would have more weight than the others, and the verdict would be "x".
	leak := read(t, `{"item":"1","juror":"a","vote":"x","label":"x"}
{"item":"1","juror":"b","vote":"y","label":"x"}
{"item":"1","juror":"c","vote":"z","label":"x"}
`)
	verdicts, err := Aggregate(leak, Calibrated, nil)
	must.Hold(t, err == nil && verdicts.Verdicts["1"] == "" && *verdicts.Accuracy == 0, "%+v, %v", verdicts, err)
}

// TestCalibratedBeatsMajority has one reliable juror and two unreliable ones.
func TestCalibratedBeatsMajority(t *testing.T) {
	text := made(400, map[string]float64{"good": 0.95, "poor": 0.55, "worse": 0.5}, 4)
	accuracy := map[Method]float64{}
	for _, method := range []Method{Majority, Calibrated} {
		verdicts := must.Get(Aggregate(read(t, text), method, nil))(t)
		accuracy[method] = *verdicts.Accuracy
	}
	must.Hold(t, accuracy[Calibrated] >= accuracy[Majority]+0.1, "%v", accuracy)
}

// TestMeasures compares the measures with values computed by hand.
func TestMeasures(t *testing.T) {
	var s strings.Builder
	for i, votes := range []string{"xxx", "xxx", "xyx", "xyy", "xxy", "yx-"} { // the label is x
		for j, vote := range votes {
			v := fmt.Sprintf("%q", string(vote))
			if vote == '-' {
				v = "null"
			}
			fmt.Fprintf(&s, "{\"item\":\"%d\",\"juror\":\"%c\",\"vote\":%s,\"label\":\"x\"}\n", i, 'a'+j, v)
		}
	}
	c := must.Get(Calibrate(read(t, s.String())))(t)
	a := c.Jurors[0]
	must.Hold(t, a.Votes == 6 && a.Correct == 5 && a.Reliability == 6.0/8 && a.Weight == int(math.Round(Unit*math.Log(3))), "%+v", a)
	must.Hold(t, math.Abs(a.Low-0.4365) <= 1e-3 && math.Abs(a.High-0.9699) <= 1e-3, "interval %v to %v", a.Low, a.High) // Wilson interval of 5 of 6
	third := c.Jurors[2]
	must.Hold(t, third.Votes == 5 && third.Abstentions == 1 && third.Correct == 3, "%+v", third)
	// b is wrong on 2 and 3, c on 3 and 4, of the five that both voted on.
	bc := c.Pairs[2]
	want := (1*2 - 1*1) / math.Sqrt(2*3*2*3)
	must.Hold(t, bc.A == "b" && bc.B == "c" && bc.Items == 5 && math.Abs(bc.Correlation-want) <= 1e-12, "%+v", bc)
	mean := (c.Pairs[0].Correlation + c.Pairs[1].Correlation + c.Pairs[2].Correlation) / 3
	want = 3 / (1 + 2*max(0, mean))
	must.Hold(t, math.Abs(c.EffectiveVotes-want) <= 1e-12, "effective votes %v, want %v", c.EffectiveVotes, want)
	must.Hold(t, c.Choices == 2 && c.Items == 6 && len(c.Known) == 6, "%+v", c)
}

// TestTwins: three jurors who always vote alike count as one effective vote.
func TestTwins(t *testing.T) {
	text := made(100, map[string]float64{"a": 0.7}, 5)
	ballots := read(t, text+strings.ReplaceAll(text, `"juror":"a"`, `"juror":"b"`)+strings.ReplaceAll(text, `"juror":"a"`, `"juror":"c"`))
	c := must.Get(Calibrate(ballots))(t)
	must.Hold(t, math.Abs(c.EffectiveVotes-1) <= 1e-9, "effective votes of three jurors who always vote alike: %v", c.EffectiveVotes)
}

func TestWorseThanChanceCountsAgainst(t *testing.T) {
	must.Equal(t, (Juror{Votes: 10, Correct: 2}).weight(2), -109861)
	must.Equal(t, (Juror{}).weight(3), 0)
	must.Equal(t, (Juror{Votes: 1 << 40, Correct: 1 << 40}).weight(2), MaxWeight)
}

func TestWeighted(t *testing.T) {
	ballots := read(t, `{"item":"a","juror":"1","vote":"x","confidence":0.9}
{"item":"a","juror":"2","vote":"y","confidence":0.3}
{"item":"a","juror":"3","vote":"y","confidence":0.6}
{"item":"b","juror":"1","vote":"x","confidence":0.9}
{"item":"b","juror":"2","vote":"y","confidence":0.3}
{"item":"b","juror":"3","vote":"y","confidence":0.5}
{"item":"c","juror":"1","vote":"x","confidence":0}
{"item":"c","juror":"2","vote":null,"confidence":1}
`)
	got := must.Get(Aggregate(ballots, Weighted, nil))(t)
	// 0.3 + 0.6 is 0.9 in decimal, but 0.8999999999999999 with doubles.
	must.Equal(t, cmp.Diff(map[string]Choice{"a": "", "b": `"x"`, "c": `"x"`}, got.Verdicts), "")
	if got.Accuracy != nil {
		t.Errorf("accuracy without labels: %v", *got.Accuracy)
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                                      "no votes",
		"\n":                                    "no votes",
		`{}`:                                    "line 1: item",
		`{"item":"a","juror":"","vote":"x"}`:    "juror: missing or empty",
		`{"item":"a","juror":"j"}`:              "vote: missing; null is an abstention",
		`{"item":"a","juror":"j","vote":["x"]}`: "want a string, a number, a boolean or null",
		`{"item":"a","juror":"j","vote":"x","more":1}`:                                                                          "unknown",
		`{"item":"a","juror":"j","vote":"x","confidence":1.5}`:                                                                  "confidence: 1.5",
		`{"item":"a","juror":"j","vote":"x","item":"b"}`:                                                                        "duplicate",
		`{"item":"a","juror":"j","vote":"x"} {}`:                                                                                "line 1",
		`{"item":1,"juror":"j","vote":"x"}`:                                                                                     "line 1",
		"{\"item\":\"a\",\"juror\":\"j\",\"vote\":\"x\"}\n" + `{"item":"a","juror":"j","vote":"y"}`:                             `line 2: a second vote of juror "j" on item "a"`,
		"{\"item\":\"a\",\"juror\":\"j\",\"vote\":\"x\",\"label\":\"x\"}\n" + `{"item":"a","juror":"k","vote":"y","label":"y"}`: "line 2: label: item",
	} {
		must.Refuse(t, want, text)(Read(strings.NewReader(text)))
	}
	must.Refuse(t, "", "an endless line")(Read(strings.NewReader(strings.Repeat("x", maxLine+1))))
	ballots := read(t, `{"item":"a","juror":"j","vote":"x"}`)
	must.Refuse(t, "labels")(Aggregate(ballots, Calibrated, nil))
	must.Refuse(t, "", "no such method")(Aggregate(ballots, "lots", nil))
}

// TestParse: a calibration file must agree with its items, or it is refused.
func TestParse(t *testing.T) {
	c := must.Get(Calibrate(read(t, made(20, map[string]float64{"a": 0.9, "b": 0.6}, 6))))(t)
	doc := encode(t, c)
	again := must.Get(Parse([]byte(doc)))(t)
	must.Equal(t, cmp.Diff(c, again), "")
	for old, spoilt := range map[string]string{
		Format: "jurat/calibration/v9",
		fmt.Sprintf(`"weight":%d`, c.Jurors[0].Weight): `"weight":1000000`,
		fmt.Sprintf(`"votes":%d`, c.Jurors[0].Votes):   `"votes":500`,
		`"items":20`:     `"items":21`,
		`"item":"i0003"`: `"item":"i0001"`,
		`"juror":"a"`:    `"juror":"z"`,
		`{"format"`:      `{"more":1,"format"`,
	} {
		must.Refuse(t, "", spoilt, "instead of", old, "is accepted")(Parse([]byte(strings.Replace(doc, old, spoilt, 1))))
	}
	weights, err := weightsOf(c, "b", "a")
	must.Hold(t, err == nil && weights["a"] == c.Jurors[0].Weight && len(weights) == 2, "%v, %v", weights, err)
	must.Refuse(t, "", "a juror without measured votes has a weight")(weightsOf(c, "a", "nobody"))
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(made(2, map[string]float64{"a": 0.9, "b": 0.6}, 7)))
	f.Add([]byte(`{"item":"a","juror":"j","vote":null}`))
	f.Add([]byte(`{"item":"a","juror":"j","vote":1e3,"confidence":0.5}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		ballots, err := Read(strings.NewReader(string(doc)))
		if err != nil {
			return
		}
		for _, method := range []Method{Majority, Weighted} {
			v, err := Aggregate(ballots, method, nil)
			must.Hold(t, err == nil && len(v.Verdicts) == len(ballots), "%s: %v", method, err)
		}
	})
}

func weightsOf(c *Calibration, names ...string) (map[string]int, error) {
	s := jury.Settings{}
	for _, name := range names {
		s.Seats = append(s.Seats, jury.Seat{JurorID: name})
	}
	_, err := c.Weigh(&s)
	return s.Weights, err
}

// panel returns ballots of jurors with these shares of right answers among two choices; label is the right one.
func panel(items int, seed uint64, right ...float64) []Ballot {
	random := rand.New(rand.NewPCG(seed, 2))
	choices := []Choice{`"safe_pass"`, `"unsafe_fail"`}
	var list []Ballot
	for i := range items {
		truth := random.IntN(2)
		b := Ballot{Item: fmt.Sprintf("i%05d", i), Label: choices[truth], Votes: map[string]Choice{}, Sure: map[string]float64{}, Made: map[string]Made{}}
		for j, p := range right {
			vote := truth
			if random.Float64() >= p {
				vote = 1 - truth
			}
			name := fmt.Sprintf("juror-%d", j)
			b.Votes[name], b.Sure[name] = choices[vote], 1
		}
		list = append(list, b)
	}
	return list
}

func accuracy(t *testing.T, ballots []Ballot, m Method) float64 {
	t.Helper()
	v := must.Get(Aggregate(ballots, m, nil))(t)
	return *v.Accuracy
}

// best is the share of right answers of the best juror.
func best(ballots []Ballot) float64 {
	right, most := map[string]int{}, 0
	for _, b := range ballots {
		for name, vote := range b.Votes {
			if vote == b.Label {
				right[name]++
			}
		}
	}
	for _, n := range right {
		most = max(most, n)
	}
	return float64(most) / float64(len(ballots))
}

// TestCalibratedIsNeverMuchWorseThanTheBest: over panels of unequal jurors, each ballot judged by what the others
// measured, calibrated is at least as good as the best juror less one point. With jurors worse than chance, weights that
// stop at 0 are not as good.
func TestCalibratedIsNeverMuchWorseThanTheBest(t *testing.T) {
	for i, right := range [][]float64{{0.6, 0.6, 0.95}, {0.55, 0.7, 0.85}, {0.2, 0.6, 0.8}, {0.1, 0.3, 0.6}, {0.5, 0.5, 0.9, 0.7, 0.3}, {0.8, 0.8, 0.8}, {0.4, 0.45, 0.55}} {
		ballots := panel(3000, uint64(i), right...)
		got, want := accuracy(t, ballots, Calibrated), best(ballots)
		must.Hold(t, got >= want-0.01, "%v: calibrated %.3f, the best juror %.3f", right, got, want)
	}
	contrary := panel(3000, 9, 0.1, 0.3, 0.6)
	got := accuracy(t, contrary, Calibrated)
	must.Hold(t, got >= 0.89, "a juror that is mostly wrong tells as much as one that is mostly right: %.3f", got)
}

// confusion is labelled Dawid-Skene for two choices: a juror's log-odds for each label by itself, and the share of the labels.
func confusion(train, test []Ballot) float64 {
	const labels = 2
	index := map[Choice]int{`"safe_pass"`: 0, `"unsafe_fail"`: 1}
	counts, base := map[string]*[labels][labels]float64{}, [labels]float64{1, 1}
	for _, b := range train {
		base[index[b.Label]]++
		for name, vote := range b.Votes {
			if counts[name] == nil {
				counts[name] = &[labels][labels]float64{{1, 1}, {1, 1}}
			}
			counts[name][index[b.Label]][index[vote]]++
		}
	}
	right := 0
	for _, b := range test {
		odds := math.Log(base[1] / base[0])
		for name, vote := range b.Votes {
			c := counts[name]
			odds += math.Log(c[1][index[vote]]/(c[1][0]+c[1][1])) - math.Log(c[0][index[vote]]/(c[0][0]+c[0][1]))
		}
		if (odds > 0) == (index[b.Label] == 1) {
			right++
		}
	}
	return float64(right) / float64(len(test))
}

// TestWhyLogOddsWithSign compares, cross-validated over simulated panels with contrary jurors, log-odds with a sign with
// labelled Dawid-Skene, which needs a table for each juror where this needs one number that a trial can seal. It is not
// better by as much as one point.
func TestWhyLogOddsWithSign(t *testing.T) {
	random, sign, tables, panels := rand.New(rand.NewPCG(3, 3)), 0.0, 0.0, 20
	for i := range panels {
		right := make([]float64, 3+random.IntN(5))
		for j := range right {
			right[j] = 0.15 + 0.8*random.Float64()
		}
		ballots := panel(400, uint64(100+i), right...)
		sign += accuracy(t, ballots, Calibrated)
		for fold := range 5 {
			n := len(ballots) / 5
			train := append(append([]Ballot{}, ballots[:fold*n]...), ballots[(fold+1)*n:]...)
			tables += confusion(train, ballots[fold*n:(fold+1)*n]) / 5
		}
	}
	t.Logf("log-odds with sign %.4f, labelled Dawid-Skene %.4f", sign/float64(panels), tables/float64(panels))
	must.Hold(t, tables/float64(panels) <= sign/float64(panels)+0.01,
		"labelled Dawid-Skene is better: %.3f against %.3f", tables/float64(panels), sign/float64(panels))
}

func TestLeader(t *testing.T) {
	for want, right := range map[string][]float64{"juror-2": {0.55, 0.55, 0.99}, "": {0.8, 0.8, 0.8}} {
		c := must.Get(Calibrate(panel(2000, 4, right...)))(t)
		got := c.Leader()
		must.Hold(t, got == want, "%v: %q leads, want %q", right, got, want)
	}
}

// TestWeightsBelongToModelAndTemplate: weights that were measured on another model or template are refused, and the error
// says what to do.
func TestWeightsBelongToModelAndTemplate(t *testing.T) {
	const template = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
	votes := `{"item":"1","juror":"a","vote":"x","label":"x","model":"gpt-4o-2024-11-20","template":"` + template + `"}
{"item":"1","juror":"b","vote":"x"}`
	c := must.Get(Calibrate(read(t, votes)))(t)
	s := seats(t, "a", "gpt-4o", template)
	if unbound, err := c.Weigh(s); err != nil || s.EffectiveVotes < 1 || len(unbound) != 1 || unbound[0] != "b" {
		t.Errorf("the model that was measured: %v, worth %v, unbound %v", err, s.EffectiveVotes, unbound)
	}
	for _, other := range [][2]string{{"gpt-4o-mini", template}, {"gpt-4o", strings.Replace(template, "0001", "0002", 1)}} {
		must.Refuse(t, "jurat-lab calibrate", other)(c.Weigh(seats(t, "a", other[0], other[1])))
	}
	_, err := Calibrate(read(t, votes+"\n"+`{"item":"2","juror":"a","vote":"x","model":"gpt-5"}`))
	must.Hold(t, err != nil, "the votes of one juror may be of two models")
}

// seats are settings in which juror a is this model with this template, and b another.
func seats(t *testing.T, name, model, template string) *jury.Settings {
	t.Helper()
	digest := must.Get(evidence.ParseDigest(template))(t)
	return &jury.Settings{Seats: []jury.Seat{{JurorID: name, Model: model, Template: digest}, {JurorID: "b"}}}
}
