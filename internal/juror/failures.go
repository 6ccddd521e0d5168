package juror

import (
	"fmt"

	"jurat/internal/subject"
	"jurat/jury"
)

// repeatedCall: the same call, to the letter, three times or more without a word of the user in between and with the
// same answer each time. Polling whose answer changes is not meant.
func repeatedCall(r *reading) []jury.Finding {
	var found []jury.Finding
	type key struct{ name, args string }
	count := map[key]int{}
	answer := map[key]string{}
	turn := 0
	for k := range r.eachCall() {
		if u := r.before(k.msg, subject.User); u != nil && u.Number != turn {
			turn = u.Number
			count = map[key]int{} // not cleared: that would take the time of the largest turn in each
		}
		if k.result == nil {
			continue
		}
		args := k.Arguments
		if k.Args != nil {
			args = string(k.Args)
		}
		id := key{k.Name, args}
		if count[id] > 0 && answer[id] != k.result.Text {
			count[id] = 0
		}
		count[id]++
		answer[id] = k.result.Text
		if count[id] != 3 {
			continue
		}
		severity := jury.Minor
		if k.failed && k.kind == writeCall {
			severity = jury.Major
		}
		found = append(found, jury.Finding{Message: k.msg, Quote: k.quoted(), Severity: severity,
			Explanation: fmt.Sprintf("The third identical call to %s in a row with the same answer (%q).", k.Name, clip(k.result.Text))})
	}
	return found
}
