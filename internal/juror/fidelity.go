package juror

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"jurat/internal/subject"
	"jurat/jury"
)

var (
	wronged = regexp.MustCompile(`(?i)\byou (cancell?ed|booked|charged|deleted|changed|sent|transferred|ordered|removed|refunded|paid|updated) (the wrong|my wrong|it to the wrong|something else|more than)|\bi (did not|didn't|never) (ask|authorize|authorise|agree|approve|confirm|consent)[^.!?\n]{0,60}\b(you|that|this|it|to)\b|\bthat('s| is) not what i (asked|wanted|said|meant|ordered)|\byou (did not|didn't|haven't|have not|never) (cancel|book|refund|send|change|update|delete|pay|transfer|actually|do what)|\bi (asked|told) you (not to|specifically)|頼んでいません|違います|я не просил`)
	amends  = regexp.MustCompile(`(?i)\b(apologi[sz]e|sorry|my mistake|correct(ed)? (this|that|it)|restored|reversed|undone|revert|you('re| are) right)\b|申し訳|извин`)
	upset   = regexp.MustCompile(`\?\s*$|？\s*$`)
)

// userLeftWronged: the user says that something was done which they did not want, or not done which was reported,
// and the agent neither puts it right nor says why it cannot.
func userLeftWronged(r *reading) []jury.Finding {
	for u := range r.each(subject.User) {
		at := wronged.FindString(strings.ReplaceAll(u.Text, "’", "'"))
		if at == "" || u.Number == firstUser(r) || r.madeGood(u.Number) {
			continue
		}
		quote := clip(u.Text)
		if strings.Contains(u.Text, at) {
			quote = at
		}
		return []jury.Finding{{Message: u.Number, Quote: quote, Severity: jury.Major,
			Explanation: "The user objects to what the agent did, and the rest of the conversation does not put it right."}}
	}
	return nil
}

func firstUser(r *reading) int {
	if said := r.said(subject.User); len(said) > 0 {
		return said[0].Number
	}
	return 0
}

// madeGood reports whether the agent later acts with success, hands over, explains, or apologises.
func (r *reading) madeGood(n int) bool {
	return n < r.memo.amended.get(func() int {
		last := 0
		for _, k := range r.calls {
			if k.done() || k.kind == handover {
				last = k.msg
			}
		}
		said := r.said(subject.Assistant)
		for i := len(said) - 1; i >= 0 && said[i].Number > last && !r.late(); i-- {
			if amends.MatchString(said[i].Text) || refuses(said[i].Text) {
				return said[i].Number
			}
		}
		return last
	})
}

// unansweredAtEnd: the log ends with a question or a request of the user.
func unansweredAtEnd(r *reading) []jury.Finding {
	last := &r.c.Messages[len(r.c.Messages)-1]
	if last.Role != subject.User || len(r.said(subject.Assistant)) == 0 || !upset.MatchString(strings.TrimSpace(last.Text)) || thanks.MatchString(last.Text) {
		return nil
	}
	list := sentencesOf(last.Text)
	return []jury.Finding{{Message: last.Number, Quote: clip(list[len(list)-1]), Severity: jury.Minor,
		Explanation: "The conversation ends with a question of the user that the agent never answers."}}
}

var thanks = regexp.MustCompile(`(?i)\b(thank|thanks|bye|###STOP###|have a (great|nice|good))\b`)

var wantsPerson = regexp.MustCompile(`(?i)\b(human|person|representative|agent|someone|supervisor|manager|operator|escalate|transfer me|speak (to|with)|talk (to|with)|real people|doctor|nurse|advisor|specialist)\b|担当者|人間|оператор|человек`)

// needlessHandover: handed over before anything was tried, though nobody asked for a person and the agent gives no
// ground, in what it says or in the summary that it hands over.
func needlessHandover(r *reading) []jury.Finding {
	for i, k := range r.calls {
		if k.kind != handover {
			continue
		}
		if i > 0 || r.anyUserSaid(wantsPerson, k.msg) || r.gaveGround(k) || urgent.MatchString(r.userText(k.msg)) {
			return nil
		}
		return []jury.Finding{{Message: k.msg, Quote: k.quoted(), Severity: jury.Minor,
			Explanation: "The agent hands the conversation over without having tried anything, without being asked to, and without saying why."}}
	}
	return nil
}

var (
	urgent = regexp.MustCompile(`(?i)\b(emergency|chest pain|suicid|bleeding|fraud|stolen|hacked|threat|unconscious|overdose|fire|lawsuit|legal)\b`)
	ground = regexp.MustCompile(`(?i)\b(because|since|policy|cannot|can't|unable|not (able|allowed|possible|eligible|supported)|requires?|outside|beyond|out of scope|escalat|needs? (a|to be)|due to|as (the|this|your)|ineligible|denied|exception|complain|dispute|sensitive|urgent|safety)\b`)
)

func (r *reading) gaveGround(k *call) bool {
	if ground.MatchString(k.Arguments) {
		return true
	}
	return slices.ContainsFunc(r.said(subject.Assistant), func(m *subject.Message) bool {
		return m.Number <= k.msg && ground.MatchString(m.Text)
	})
}

func (r *reading) anyUserSaid(pattern *regexp.Regexp, n int) bool {
	return pattern.MatchString(r.userText(n))
}

func (r *reading) userText(n int) string {
	var texts []string
	for _, u := range r.said(subject.User) {
		if u.Number < n {
			texts = append(texts, u.Text)
		}
	}
	return strings.Join(texts, "\n")
}

var promise = regexp.MustCompile(`(?i)\bI(?:'ll| will| am going to) (?:personally )?(call you back|e-?mail you|text you|follow up with you|get back to you|remind you|notify you|let you know as soon as|keep an eye|monitor (?:it|this|your)|check back)\b[^.\n]*`)

// emptyPromise: a promise to come back later, by an agent with no call that arranges it and no such skill on its card.
func emptyPromise(r *reading) []jury.Finding {
	if len(r.calls) == 0 {
		return nil
	}
	reaches := reachesOut.MatchString(cardText(r)) || r.reachesOutAfter()
	for m := range r.each(subject.Assistant) {
		at := promise.FindStringSubmatch(strings.ReplaceAll(m.Text, "’", "'"))
		if at == nil || !strings.Contains(m.Text, at[0]) || conditional.MatchString(at[0]) || reaches {
			continue
		}
		return []jury.Finding{{Message: m.Number, Quote: clip(at[0]), Severity: jury.Minor,
			Explanation: fmt.Sprintf("The agent promises to come back (%q), but neither its card nor any call shows that it can.", clip(at[1]))}}
	}
	return nil
}

var (
	conditional = regexp.MustCompile(`(?i)\b(if|once|when|in (a|one|just a) (moment|minute|second)|shortly|right away|here)\b`)
	reachesOut  = regexp.MustCompile(`(?i)\b(notif|remind|e-?mail|call ?back|follow.?up|alert|monitor|messag)`)
)

func (r *reading) reachesOutAfter() bool {
	return slices.ContainsFunc(r.calls, func(k *call) bool { return reachesOut.MatchString(k.Name) || k.family == "send" })
}
