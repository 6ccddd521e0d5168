package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jury"
)

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
		if got, want := accuracy(t, ballots, Calibrated), best(ballots); got < want-0.01 {
			t.Errorf("%v: calibrated %.3f, the best juror %.3f", right, got, want)
		}
	}
	contrary := panel(3000, 9, 0.1, 0.3, 0.6)
	if got := accuracy(t, contrary, Calibrated); got < 0.89 {
		t.Errorf("a juror that is mostly wrong tells as much as one that is mostly right: %.3f", got)
	}
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
	if tables/float64(panels) > sign/float64(panels)+0.01 {
		t.Errorf("labelled Dawid-Skene is better: %.3f against %.3f", tables/float64(panels), sign/float64(panels))
	}
}

func TestLeader(t *testing.T) {
	for want, right := range map[string][]float64{"juror-2": {0.55, 0.55, 0.99}, "": {0.8, 0.8, 0.8}} {
		c := must.Get(Calibrate(panel(2000, 4, right...)))(t)
		if got := c.Leader(); got != want {
			t.Errorf("%v: %q leads, want %q", right, got, want)
		}
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
	if err := c.Weigh(s); err != nil || s.EffectiveVotes < 1 {
		t.Errorf("the model that was measured: %v, worth %v", err, s.EffectiveVotes)
	}
	if got := c.Unbound(s); len(got) != 1 || got[0] != "b" {
		t.Errorf("unbound: %v", got)
	}
	for _, other := range [][2]string{{"gpt-4o-mini", template}, {"gpt-4o", strings.Replace(template, "0001", "0002", 1)}} {
		if err := c.Weigh(seats(t, "a", other[0], other[1])); err == nil || !strings.Contains(err.Error(), "jurat-lab calibrate") {
			t.Errorf("%v: %v", other, err)
		}
	}
	if _, err := Calibrate(read(t, votes+"\n"+`{"item":"2","juror":"a","vote":"x","model":"gpt-5"}`)); err == nil {
		t.Error("the votes of one juror may be of two models")
	}
}

// seats are settings in which juror a is this model with this template, and b another.
func seats(t *testing.T, name, model, template string) *jury.Settings {
	t.Helper()
	digest := must.Get(evidence.ParseDigest(template))(t)
	return &jury.Settings{Seats: []jury.Seat{{JurorID: name, Model: model, Template: digest}, {JurorID: "b"}}}
}
