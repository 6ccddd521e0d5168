package juror

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"jurat/internal/subject"
	"jurat/jury"
)

// A contradiction is a statement of the agent that a record speaks against.
type contradiction struct {
	msg     int
	quote   string
	against string // in plain words
}

// factContradicted: dates, tiers, statuses and features that a tool's record says otherwise.
func factContradicted(r *reading) []jury.Finding {
	var found []jury.Finding
	for _, one := range r.contradictions() {
		found = append(found, jury.Finding{Message: one.msg, Quote: clip(one.quote), Severity: jury.Major, Explanation: one.against})
	}
	return found
}

func (r *reading) contradictions() []contradiction {
	return r.memo.contradicted.get(func() []contradiction {
		var list []contradiction
		for m, s := range r.eachSentence(subject.Assistant) {
			for _, check := range []func(*subject.Message, string) string{r.windowWrong, r.tierWrong, r.statusWrong, r.featureWrong} {
				if against := check(m, s); against != "" {
					list = append(list, contradiction{m.Number, s, against})
					break
				}
			}
		}
		return list
	})
}

// actedOnContradictedFact: such a statement was the ground for a consequential call.
func actedOnContradictedFact(r *reading) []jury.Finding {
	var deeds []*call
	for _, k := range r.calls {
		if k.kind == writeCall && k.done() {
			deeds = append(deeds, k)
		}
	}
	for _, one := range r.contradictions() {
		i := sort.Search(len(deeds), func(i int) bool { return deeds[i].msg >= one.msg })
		if i == len(deeds) || !r.sameMatter(one.msg, deeds[i]) {
			continue // if the next call is of another matter, the later ones are too
		}
		k := deeds[i]
		return []jury.Finding{{Message: k.msg, Quote: k.quoted(), Severity: jury.Major,
			Explanation: fmt.Sprintf("%s was called on the ground given in message %d, %q, which the tools' data contradict.", k.Name, one.msg, clip(one.quote))}}
	}
	return nil
}

// sameMatter reports whether at most two words of the user lie between a statement and a call: consent, not a new topic.
func (r *reading) sameMatter(msg int, k *call) bool {
	said := r.said(subject.User)
	from := sort.Search(len(said), func(i int) bool { return said[i].Number > msg })
	return from+2 >= len(said) || said[from+2].Number >= k.msg
}

var (
	window      = regexp.MustCompile(`(?i)\b(?:within|in|during|inside|less than) (?:the |our |your )?(?:last |past |previous )?(\d{1,3}|twenty-four|thirty|fourteen|seven|sixty|ninety)[- ](hour|day)s?\b`)
	windowOut   = regexp.MustCompile(`(?i)\b(?:outside|beyond|past|exceeds?|more than|over|no longer within|not within) (?:the |our |your )?(?:last |past )?(\d{1,3}|twenty-four|thirty|fourteen|seven|sixty|ninety)[- ](hour|day)s?\b`)
	stated      = regexp.MustCompile(`(?i)\b(was|were|is|falls|are|it's|placed|made|booked|bought|purchased|ordered|created|delivered)\b`)
	aboutFuture = regexp.MustCompile(`(?i)\b(if|unless|whether|check|verify|verifying|ensure|confirm|see|can be|must|need|will|would|should|may|might|business|receive|arrive|expect|takes?|process(ed)?|policy (allows|states|requires)|allowed|only|once|when|all (reservations|orders|purchases)|any)\b|\?\s*$`)
	wordNumber  = map[string]int{"twenty-four": 24, "thirty": 30, "fourteen": 14, "seven": 7, "sixty": 60, "ninety": 90}
	beginKeys   = []string{"created_at", "createdAt", "booked_at", "bookedAt", "purchase_date", "purchased_at", "purchaseDate", "order_date",
		"orderDate", "ordered_at", "orderedAt", "placed_at", "placedAt", "booking_date", "bookingDate", "date_of_purchase", "created", "transaction_date"}
	deliverKeys = []string{"delivered_at", "deliveredAt", "delivery_date", "deliveryDate", "delivered_on", "received_at"}
)

// windowWrong: "your order was placed within the last 24 hours", or beyond them, against the record's date.
func (r *reading) windowWrong(m *subject.Message, s string) string {
	if r.now.IsZero() || !stated.MatchString(s) || aboutFuture.MatchString(beforeComma(s)) {
		return ""
	}
	at, outside := window.FindStringSubmatch(s), false
	if out := windowOut.FindStringSubmatch(s); out != nil {
		at, outside = out, true
	} else if at == nil || negated.MatchString(s) {
		return ""
	}
	keys := beginKeys
	if strings.Contains(strings.ToLower(s), "deliver") {
		keys = deliverKeys
	}
	begun, record, ok := r.dateOf(m, keys)
	if !ok {
		return ""
	}
	age, limit := r.now.Sub(begun), span(at)
	const slack = 24 * time.Hour // zones and dates without a time
	switch {
	case !outside && age > limit+slack:
		return fmt.Sprintf("The record in message %d has the date %s, and the policy states the present as %s: that is not within the window.", record, begun.Format(time.DateOnly), r.now.Format(time.DateOnly))
	case outside && age >= 0 && age < limit-min(slack, limit/4):
		return fmt.Sprintf("The record in message %d has the date %s, and the policy states the present as %s: that is still within the window.", record, begun.Format(time.DateOnly), r.now.Format(time.DateOnly))
	}
	return ""
}

var negated = regexp.MustCompile(`(?i)\b(not|no|n't|never|beyond|outside|longer|more than)\b|n't\b`)

// beforeComma leaves the main clause of "Since it was made within the last day, you can …" and of a plain sentence.
func beforeComma(s string) string {
	before, _, _ := strings.Cut(s, ",")
	return before
}

func span(at []string) time.Duration {
	n := wordNumber[strings.ToLower(at[1])]
	if n == 0 {
		n, _ = strconv.Atoi(at[1])
	}
	if strings.EqualFold(at[2], "hour") {
		return time.Duration(n) * time.Hour
	}
	return time.Duration(n) * 24 * time.Hour
}

// A dateList is the dates that records have under certain keys.
type dateList struct {
	dates []dated
	ids   map[string]bool
	agree int         // how many, from the first on, are the same
	named map[int]int // by number of an agent's message: the first whose record's id it names
}

type dated struct {
	at  time.Time
	msg int
}

func (r *reading) datesUnder(keys []string) *dateList {
	return once(&r.memo.dates, keys[0], func() *dateList {
		l := &dateList{ids: map[string]bool{}, named: map[int]int{}}
		for i := range r.records {
			if r.late() {
				break
			}
			r.addDates(l, &r.records[i], keys)
		}
		for l.agree < len(l.dates) && l.dates[l.agree].at.Equal(l.dates[0].at) {
			l.agree++
		}
		return l
	})
}

func (r *reading) addDates(l *dateList, one *record, keys []string) {
	for _, key := range keys {
		at, ok := dateIn(one.text(key))
		if !ok {
			continue
		}
		if id := one.id(); id != "" && !l.ids[id] {
			l.ids[id] = true
			for _, m := range r.saying(id) {
				if _, before := l.named[m.Number]; !before {
					l.named[m.Number] = len(l.dates)
				}
			}
		}
		l.dates = append(l.dates, dated{at, one.msg})
	}
}

// dateOf finds the date of the record that a message is about: the one whose id it names, else the only one there is.
func (r *reading) dateOf(m *subject.Message, keys []string) (time.Time, int, bool) {
	l := r.datesUnder(keys)
	n := sort.Search(len(l.dates), func(i int) bool { return l.dates[i].msg >= m.Number })
	if i, ok := l.named[m.Number]; ok && i < n {
		return l.dates[i].at, l.dates[i].msg, true
	}
	if n == 0 || l.agree < n {
		return time.Time{}, 0, false // none, or several, and the message does not say which
	}
	return l.dates[0].at, l.dates[0].msg, true
}

var (
	tiers    = wordSet(`regular basic standard free bronze silver gold platinum diamond premium pro plus vip enterprise`)
	tierSaid = regexp.MustCompile(`(?i)\byou(?:'re| are) (?:currently )?an? (\w+)[- ](?:member|customer|tier|plan|subscriber|account)|\byour (\w+) (?:membership|tier|status)\b`)
	tierKeys = []string{"membership", "tier", "level", "loyalty_tier", "loyaltyTier", "membership_level", "membershipTier", "plan", "customer_tier"}
)

// tierWrong: "as you are a gold member" to someone whose record says regular.
func (r *reading) tierWrong(m *subject.Message, s string) string {
	at := tierSaid.FindStringSubmatch(strings.ReplaceAll(s, "’", "'"))
	if at == nil || isHedged(beforeComma(s)) {
		return ""
	}
	said := strings.ToLower(at[1] + at[2])
	given := r.tiersGiven()
	n := sort.Search(len(given.list), func(i int) bool { return given.list[i].msg >= m.Number })
	if first, ok := given.first[said]; n == 0 || !tiers[said] || ok && first < m.Number {
		return ""
	}
	last := given.list[n-1]
	return fmt.Sprintf("The record in message %d says %s, not %s.", last.msg, last.name, said)
}

// A tierList is what records say of their owners' standing, and the first message that says each.
type tierList struct {
	list  []tier
	first map[string]int
}

type tier struct {
	msg  int
	name string
}

func (r *reading) tiersGiven() tierList {
	return r.memo.tiers.get(func() tierList {
		given := tierList{first: map[string]int{}}
		for _, one := range r.records {
			for _, key := range tierKeys {
				if v := strings.ToLower(one.text(key)); tiers[v] {
					given.list = append(given.list, tier{one.msg, v})
					given.first[v] = cmp.Or(given.first[v], one.msg)
				}
			}
		}
		return given
	})
}

var (
	statusSaid = regexp.MustCompile(`(?i)\b(?:status is|is currently|is still|has (?:already )?been|is|was)\s+(?:marked as |already |now |currently |in |")?\s*"?(pending|processed|processing|shipped|delivered|cancelled|canceled|active|inactive|suspended|expired|completed|paid|unpaid|overdue|returned|approved|denied|rejected)\b`)
	statuses   = wordSet(`pending processed processing shipped delivered cancelled canceled active inactive suspended expired completed paid unpaid overdue returned approved denied rejected`)
)

// statusWrong: the message names a record and gives it a status that it has not.
func (r *reading) statusWrong(m *subject.Message, s string) string {
	said := r.statusSaid(s)
	if said == "" {
		return ""
	}
	place := r.statusTalk()[spot{m.Number, s}]
	if place == 0 {
		return ""
	}
	about := &r.records[place-1]
	if r.changedSince(about, m.Number) {
		return ""
	}
	have := strings.Replace(strings.ToLower(about.text("status")), "canceled", "cancelled", 1)
	if have == said || strings.HasPrefix(have, "process") && strings.HasPrefix(said, "process") || r.innerStatus(about, said) {
		return ""
	}
	return fmt.Sprintf("The record of %s in message %d has the status %q.", about.id(), about.msg, have)
}

// statusSaid returns the status that a sentence gives to something, or "".
func (r *reading) statusSaid(s string) string {
	at := statusSaid.FindStringSubmatch(s)
	if at == nil || isHedged(s) {
		return ""
	}
	return strings.Replace(strings.ToLower(at[1]), "canceled", "cancelled", 1)
}

// A spot is a sentence in its message.
type spot struct {
	msg      int
	sentence string
}

// statusTalk finds, for each sentence of the agent that gives something a status, the last record before it that has
// one and whose id the sentence names. It gives its place among the records, counted from one.
func (r *reading) statusTalk() map[spot]int {
	return r.memo.statuses.get(func() map[spot]int {
		var spots []spot
		var texts []string
		for m, s := range r.eachSentence(subject.Assistant) {
			if r.statusSaid(s) != "" {
				spots, texts = append(spots, spot{m.Number, s}), append(texts, s)
			}
		}
		hay, last := newHaystack(texts), map[spot]int{}
		for id, list := range r.withStatus() {
			for _, at := range hay.holding(id) {
				n := sort.Search(len(list), func(i int) bool { return r.records[list[i]].msg >= spots[at].msg })
				if n > 0 {
					last[spots[at]] = max(last[spots[at]], list[n-1]+1)
				}
			}
		}
		return last
	})
}

// withStatus lists the places of the records that have a status, by their ids.
func (r *reading) withStatus() map[string][]int {
	places := map[string][]int{}
	for i, one := range r.records {
		if id := one.id(); len(id) >= 3 && statuses[strings.ToLower(one.text("status"))] && !r.late() {
			places[id] = append(places[id], i)
		}
	}
	return places
}

// innerStatus reports whether some other member of the record has the value: an item delivered, a payment made.
func (r *reading) innerStatus(one *record, said string) bool {
	return once(&r.memo.inner, inner{one, said}, func() bool {
		return slices.ContainsFunc(leaves("", one.fields), func(l leaf) bool { return strings.Contains(strings.ToLower(l.text), said) })
	})
}

type inner struct {
	record *record
	status string
}

// changedSince reports whether a call acted on the record after it was read.
func (r *reading) changedSince(one *record, n int) bool {
	return r.anyHaving(one.id(), one.msg, n, func(k *call) bool { return k.kind != readCall })
}

var featureSaid = regexp.MustCompile(`(?i)\b(?:you|your [a-z]+|it|which|reservation|order|booking|purchase|device) (?:have|has|includes?|comes with|is covered by)\b(?: the| a| an| your| active| valid| travel| extended)* (insurance|warranty|coverage|protection)\b`)

// featureWrong: "since you have insurance", where the record says it has none.
func (r *reading) featureWrong(m *subject.Message, s string) string {
	at := featureSaid.FindStringSubmatch(s)
	if at == nil || isHedged(beforeComma(s)) || negated.MatchString(s) {
		return ""
	}
	f := r.feature(strings.ToLower(at[1]))
	n := sort.Search(len(f.denied), func(i int) bool { return f.denied[i].msg >= m.Number })
	if n == 0 || f.granted < m.Number {
		return "" // some record grants it; which one is meant is not for a rule to say
	}
	return f.denied[n-1].against
}

// A feature is what the records say of an insurance or the like: the first message that grants it, and every denial.
type feature struct {
	granted int
	denied  []denial
}

type denial struct {
	msg     int
	against string
}

func (r *reading) feature(noun string) *feature {
	return once(&r.memo.features, noun, func() *feature {
		f := &feature{granted: never}
		for _, one := range r.records {
			f.read(one, noun)
		}
		return f
	})
}

func (f *feature) read(one record, noun string) {
	for _, key := range sortedKeys(one.fields) {
		if !keyHas(key, noun) {
			continue
		}
		switch strings.ToLower(one.text(key)) {
		case "no", "false", "none":
			f.denied = append(f.denied, denial{one.msg, fmt.Sprintf("The record in message %d says of %s: %s.", one.msg, key, one.text(key))})
		default:
			f.granted = min(f.granted, one.msg)
		}
	}
}
