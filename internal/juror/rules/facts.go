package rules

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"jurat/internal/juror/phrase"
	"jurat/internal/subject"
	"jurat/jury"
)

var (
	window  = regexp.MustCompile(`(?i)\b(within|in|inside|less than|outside|beyond|more than|over|no longer within|not within) (?:the |our |your )?(?:last |past |previous )?(` + phrase.Numerals + `)[- ](hour|day)s?\b`)
	outside = regexp.MustCompile(`(?i)^(outside|beyond|more|over|no|not)`)
	begun   = regexp.MustCompile(`(?i)\b(?:was|were|is|are|been|has|have) (?:only |just |already )?(made|placed|created|opened|booked|bought|purchased|ordered|issued|signed|submitted|filed|registered|posted)\b`)
	// What makes a sentence a condition, a question or a rule, wherever it stands in it; and what does so beside the dates.
	supposing = regexp.MustCompile(`(?i)\b(if|unless|whether|check|verify|ensure|confirm|see|policy|rules?|only|once|when|any|assuming|provided|suppose|depends?|it (?:seems|appears|looks)|according to you|you (?:said|say|mentioned|told))\b|\?\s*$`)
	modal     = regexp.MustCompile(`(?i)\b(not|can be|must|need|will|would|should|may|might|could|business|expect|takes?|allowed)\b|n't\b`)
)

// A contradiction is a statement of the agent that a record contradicts.
type contradiction struct {
	msg               int
	sentence, against string
}

// factContradicted: "it was made within the last 14 days", or beyond them, although the record's date and the present
// that the policy states show otherwise. Conditions and questions are no statements, wherever they stand in the
// sentence. An act that follows on that ground is a finding of its own.
func factContradicted(r *reading) []jury.Finding {
	var found []jury.Finding
	for _, one := range r.contradictions() {
		found = append(found, jury.Finding{Message: one.msg, Quote: clip(one.sentence), Severity: jury.Major, Explanation: one.against})
		if k := r.actedOn(one); k != nil {
			found = append(found, jury.Finding{Message: k.msg, Quote: k.quoted(), Severity: jury.Major,
				Explanation: fmt.Sprintf("%s was called on the ground given in message %d, %q, which the tools' data contradict.", k.Name, one.msg, clip(one.sentence))})
		}
	}
	return found
}

// actedOn returns the consequential call that follows the user's reply to a statement; nil if there is none.
func (r *reading) actedOn(one contradiction) *call {
	for k := range r.eachCall() {
		if k.msg <= one.msg || k.kind != writeCall || !k.done() {
			continue
		}
		if said := r.before(r.turn(k.msg), subject.Assistant); said != nil && said.Number == one.msg {
			return k
		}
		return nil // the next act is about something else
	}
	return nil
}

func (r *reading) contradictions() []contradiction {
	if r.now.IsZero() {
		return nil
	}
	var list []contradiction
	var dates dates
	for m := range r.each() {
		switch m.Role {
		case subject.Tool:
			dates.add(m)
		case subject.Assistant:
			for _, s := range phrase.Sentences(m.Text) {
				if against := r.windowWrong(&dates, m, s); against != "" {
					list = append(list, contradiction{m.Number, s, against})
				}
			}
		}
	}
	return list
}

func (r *reading) windowWrong(dates *dates, m *subject.Message, s string) string {
	at := window.FindStringSubmatch(s)
	if at == nil || supposing.MatchString(phrase.Plain(s)) {
		return ""
	}
	clause := clauseWith(s, at[0])
	if !begun.MatchString(clause) || modal.MatchString(phrase.Plain(clause)) {
		return ""
	}
	begin, msg, ok := dates.of(m)
	if !ok {
		return ""
	}
	age, limit := r.now.Sub(begin), time.Duration(phrase.Numeral(at[2]))*24*time.Hour
	if strings.EqualFold(at[3], "hour") {
		limit /= 24
	}
	const slack = 24 * time.Hour // for time zones, and dates without a time
	how := ""
	switch beyond := outside.MatchString(at[1]); {
	case !beyond && age > limit+slack:
		how = "not within the window"
	case beyond && age >= 0 && age < limit-min(slack, limit/4):
		how = "still within the window"
	default:
		return ""
	}
	return fmt.Sprintf("The record in message %d has the date %s, and the policy states the present as %s: that is %s.",
		msg, begin.Format(time.DateOnly), r.now.Format(time.DateOnly), how)
}

// clauseWith returns the part between commas that holds a text: "since it was made within the last day" of "Since it was
// made within the last day, you would get …".
func clauseWith(s, text string) string {
	for clause := range strings.SplitSeq(s, ", ") {
		if strings.Contains(clause, text) {
			return clause
		}
	}
	return s
}

// dates holds the dates at which the records so far were made: all of them, and by each record's ids.
type dates struct {
	all  dated
	byID map[string]dated // by bare id
}

// dated is a date that a message gives. It marks that there are several different ones.
type dated struct {
	at      time.Time
	msg     int
	several bool
}

// madeKey matches the names of members that say when a record was made.
var madeKey = regexp.MustCompile(`(?i)creat|^(placed|opened|booked|bought|purchased?|ordered|order|booking|issued?|signed|submitted|filed|registered|transaction|made)_?(at|on|date)$|^(purchased|bought|ordered|placed|booked|issued|filed|posted)$|^date_of_(purchase|issue)$`)

func (d *dates) add(m *subject.Message) {
	if d.byID == nil {
		d.byID = map[string]dated{}
	}
	for _, one := range recordsOf(m) {
		for _, key := range sortedKeys(one.fields) {
			at, ok := phrase.Date(one.text(key))
			if !ok || !madeKey.MatchString(key) {
				continue
			}
			made := dated{at: at, msg: m.Number}
			d.all = d.all.and(made)
			for _, id := range one.ids() {
				d.byID[phrase.Bare(one.text(id))] = d.byID[phrase.Bare(one.text(id))].and(made)
			}
		}
	}
}

func (d dated) and(other dated) dated {
	switch {
	case d.msg == 0:
		return other
	case other.msg == 0:
		return d
	}
	other.several = d.several || other.several || !d.at.Equal(other.at)
	return other
}

// of finds the date that a message speaks of: the date of the records that it names, or of all records if it names
// none. It fails if they have different dates, because the message does not say which one it means.
func (d *dates) of(m *subject.Message) (time.Time, int, bool) {
	var named dated
	for _, mark := range phrase.Marks(m.Text) {
		named = named.and(d.byID[mark])
	}
	if named.msg == 0 {
		named = d.all
	}
	return named.at, named.msg, named.msg > 0 && !named.several
}
