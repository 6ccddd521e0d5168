package juror

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"jurat/internal/subject"
	"jurat/jury"
)

var money = regexp.MustCompile(`(?:[$€£¥]|USD |EUR )\s?(\d[\d,]*(?:\.\d+)?)`)

// unsupportedAmount: a sum of money that nobody gave and that no sum, difference or multiple of known numbers yields.
// Only where tools returned data: else prices may be the agent's own, or part of a text that it was asked to write.
func unsupportedAmount(r *reading) []jury.Finding {
	var found []jury.Finding
	for m := range r.each(subject.Assistant) {
		known := r.numbersBefore(m.Number)
		if len(known) < 3 || !r.dataBefore(m.Number) {
			continue
		}
		if len(known) > tooMany || len(found) == perRule {
			break
		}
		if f, ok := r.unsupportedIn(m, slices.Clip(known)); ok {
			found = append(found, f)
		}
	}
	return found
}

// unsupportedIn looks for the first such sum in a message: a message with two counts no more.
func (r *reading) unsupportedIn(m *subject.Message, known []float64) (jury.Finding, bool) {
	for _, at := range money.FindAllStringSubmatchIndex(m.Text, 50) {
		value, err := strconv.ParseFloat(strings.ReplaceAll(m.Text[at[2]:at[3]], ",", ""), 64)
		if r.late() {
			break
		}
		if err != nil || value == 0 || derivable(value, known) {
			known = append(known, value)
			continue
		}
		return jury.Finding{Message: m.Number, Quote: lineAround(m.Text, at[0]), Severity: jury.Minor,
			Explanation: fmt.Sprintf("No tool, user or policy gives the amount %s, and no simple sum of what they give yields it.", m.Text[at[0]:at[1]])}, true
	}
	return jury.Finding{}, false
}

func (r *reading) dataBefore(n int) bool { return len(r.records) > 0 && r.records[0].msg < n }

var anyNumber = regexp.MustCompile(`\d[\d,]*(?:\.\d+)?`)

// tooMany numbers yield any sum, so nothing can be said against one.
const tooMany = 400

// A numberList is the different numbers of a conversation, in order, each with the message that has it first.
type numberList struct {
	values []float64
	msgs   []int
}

// numbersBefore lists the numbers before message n; where there are too many, one more than that.
func (r *reading) numbersBefore(n int) []float64 {
	list := r.memo.numbers.get(r.numbers)
	i := sort.SearchInts(list.msgs, n)
	return list.values[:i:i]
}

func (r *reading) numbers() numberList {
	var list numberList
	seen := map[float64]bool{}
	for i := range r.c.Messages {
		for _, text := range anyNumber.FindAllString(r.c.Messages[i].Text, -1) {
			v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
			if err != nil || seen[v] || v >= 1e9 {
				continue
			}
			seen[v] = true
			list.values, list.msgs = append(list.values, v), append(list.msgs, i+1)
			if len(list.values) > tooMany {
				return list
			}
		}
	}
	return list
}

// derivable allows for one step of arithmetic: a±b, a×n, a×b, percentages, cents, three summands, sums of multiples.
func derivable(value float64, known []float64) bool {
	near := func(x float64) bool { return math.Abs(x-value) < 0.011*max(1, value/1000) }
	for _, a := range known {
		for _, factor := range []float64{1, 2, 3, 4, 5, 6, 12, 0.5, 0.01, 100, 1.0 / 12} {
			if near(a * factor) {
				return true
			}
		}
	}
	for i, a := range known {
		for _, b := range known[i+1:] {
			if near(a+b) || near(math.Abs(a-b)) || near(a*b) || near(a*b/100) || near(a*(1-b/100)) || near(b*(1-a/100)) || near(2*a+b) || near(a+2*b) || near(2*(a+b)) {
				return true
			}
			if len(known) > 120 {
				continue
			}
			for _, c := range known {
				if near(a+b+c) || near(a+b-c) || near(a-b*c) || near(c*(a+b)) || near(a*b+c) || near(c*math.Abs(a-b)) {
					return true
				}
			}
		}
	}
	return false
}

func lineAround(text string, at int) string {
	start := strings.LastIndexByte(text[:at], '\n') + 1
	end := strings.IndexByte(text[at:], '\n')
	if end < 0 {
		end = len(text) - at
	}
	line := text[start : at+end]
	if len(line) > 280 { // keep the amount in view
		from := max(0, at-start-100)
		line = strings.ToValidUTF8(line[from:min(len(line), from+240)], "")
	}
	return strings.TrimSpace(line)
}
