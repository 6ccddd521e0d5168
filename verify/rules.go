package verify

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/evidence/operator"
	"jurat/evidence/property"
	"jurat/evidence/scitt"
	"jurat/jury"
	"jurat/verify/trust"
)

// A rule is a row of the tables of docs/format.md: its name there, the guarantees that it speaks against, when it is asked, and the function that
// asks it. The function changes nothing of what it reads.
type rule[In any] struct {
	name string
	of   []Guarantee
	when when
	ask  func(In, *asked)
}

// rules is a table of them, which are asked of one thing.
type rules[In any] []rule[In]

// when says when a rule is asked, and what for.
type when int

const (
	always    when = iota
	otherwise      // if the rule before it that was asked found nothing
	applying       // always, and what it finds counts against guarantees that apply
	ifOpen         // as applying, against those of them against which nothing else was found
)

// each makes a row of each name, in their order, of one function.
func each[In any](names []string, of []Guarantee, when when, ask func(In, *asked)) (rows rules[In]) {
	for _, name := range names {
		rows = append(rows, rule[In]{name, of, when, ask})
	}
	return rows
}

// ask asks the rules of a table in their order, and reports whether one found something. What they find is about r; nil: about all.
func ask[In any](to *findings, table rules[In], r *evidence.Record, in In) (found bool) {
	a := &asked{to: to}
	for i := range table {
		row := &table[i]
		if row.when == otherwise && a.found {
			continue
		}
		a.rule, a.of, a.when, a.found = row.name, row.of, row.when, false
		row.ask(in, a.about(r))
		found = found || a.found
	}
	return found
}

// An asked rule takes what it finds.
type asked struct {
	to     *findings
	rule   string
	of     []Guarantee
	when   when
	record string // which it is about; "": all
	found  bool   // the rule found something
}

// about says which record it is about from now on; nil: all.
func (a *asked) about(r *evidence.Record) *asked {
	if a.record = ""; r != nil {
		a.record = recordName(r)
	}
	return a
}

func (a *asked) add(s Status, format string, args ...any) {
	f := Finding{Status: s, Rule: a.rule, Record: a.record, Reason: strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")} // joined errors have lines
	for _, f.Guarantee = range a.of {
		if a.when < applying || a.to.applies(f.Guarantee) && (a.when == applying || a.to.worst(f.Guarantee) == nil) {
			a.to.keep(f)
		}
	}
	a.found = true
}

// speaks reports whether a reason of this name is for the rule that is asked, of these: the last one has those of a name that none has.
func (a *asked) speaks(name string, of []string) bool {
	return name == a.rule || a.rule == of[len(of)-1] && !slices.Contains(of, name)
}

func (a *asked) refute(format string, args ...any) { a.add(Refuted, format, args...) }
func (a *asked) doubt(format string, args ...any)  { a.add(NotProved, format, args...) }

// refuteIf and doubtIf are for what can be said whether or not it holds.
func (a *asked) refuteIf(wrong bool, format string, args ...any) {
	if wrong {
		a.refute(format, args...)
	}
}

func (a *asked) doubtIf(open bool, format string, args ...any) {
	if open {
		a.doubt(format, args...)
	}
}

// restsOn asks whether the guarantees are proved on which another rests. What records say together is proved only if each record is proved.
func restsOn(what string, others ...Guarantee) func(*findings, *asked) {
	return func(f *findings, a *asked) {
		for _, other := range others {
			if worst := f.worst(other); worst != nil && !a.found {
				a.doubt("it rests on %s whose %s is %s", what, other, worst.Status)
			}
		}
	}
}

var (
	onContent, onAuthentication, onNonRepudiation = []Guarantee{Content}, []Guarantee{Authentication}, []Guarantee{NonRepudiation}
	onConfiguration, onVantage, onTime, onBefore  = []Guarantee{Configuration}, []Guarantee{Vantage}, []Guarantee{Time}, []Guarantee{Before}
	onQualified, onProperty, onOrder, onChain     = []Guarantee{Qualified}, []Guarantee{Property}, []Guarantee{Order}, []Guarantee{Chain}
	onHumanReview, onGivenOn, onCompleteness      = []Guarantee{HumanReview}, []Guarantee{GivenOn}, []Guarantee{Completeness}
	onVerdict, onEnvelope                         = []Guarantee{Verdict}, []Guarantee{Envelope}

	ofAll     = []Guarantee{Content, Authentication, NonRepudiation}
	ofAuthor  = []Guarantee{Authentication, NonRepudiation}
	ofTrial   = []Guarantee{Completeness, Simultaneity, Verdict}
	ofHistory = []Guarantee{Order, Completeness} // of a log
	ofRecords = []Guarantee{Content, Authentication, NonRepudiation, Time, Qualified, Property, Order}
	ofSeveral = []Guarantee{Configuration, Order, Chain, HumanReview, Completeness, Simultaneity, Verdict}

	ofDoubts   = []string{"revoked", "revocation", "future", "renewal", "effort", "authority"} // rules that package trust names
	ofVouching = []string{"", "actor", "revoked", "revocation", "effort", "certificate"}
	ofServices = []string{"before-eidas", "service", "status", "operator-name", "list"}
)

// The rules, in the order of docs/format.md: of the file, of each record, of records among others, of trials, and of what else a reader brings.
var (
	rulesOfTrust = rules[error]{{"unknown-key", onAuthentication, always, func(err error, a *asked) {
		a.doubt("the trust cannot be used, so no key is trusted: %v", err)
	}}}

	rulesOfLog = rules[*log]{
		{"checkpoint", onOrder, always, func(l *log, a *asked) {
			forged := errors.Is(l.unknown, trust.ErrForged) || errors.Is(l.unknown, trust.ErrNoCheckpoint)
			a.refuteIf(forged, "%v", l.unknown)
			a.doubtIf(l.unknown != nil && !forged, "%v", l.unknown)
		}},
		{"cosignature", onOrder, always, func(l *log, a *asked) {
			a.refuteIf(l.unwitnessed != nil && !errors.Is(l.unwitnessed, trust.ErrNotWitnessed), "%v", l.unwitnessed)
		}},
		{"witnesses", onOrder, always, func(l *log, a *asked) {
			a.doubtIf(errors.Is(l.unwitnessed, trust.ErrNotWitnessed), "%v", l.unwitnessed)
		}},
		{"fork", onOrder, always, func(l *log, a *asked) { // the first anchor that is of another history than the file's checkpoint
			if i := slices.IndexFunc(l.anchors, func(o opened) bool { return errors.Is(o.err, operator.ErrFork) }); i >= 0 {
				a.refute("stamped checkpoint %d: %v", i, l.anchors[i].err)
			}
		}},
	}

	rulesOfAnchors = rules[*log]{{"token", onTime, always, func(l *log, a *asked) {
		for i, o := range l.anchors {
			a.refuteIf(o.forged != nil, "stamped checkpoint %d: %v", i, o.forged)
		}
	}}}

	rulesOfNothing = rules[int]{{"empty", ofRecords, applying, func(records int, a *asked) {
		a.doubtIf(records == 0, "the file has no record")
	}}}

	rulesOfVolume = rules[*volume]{{"volume", ofSeveral, applying, func(v *volume, a *asked) {
		a.doubtIf(v.Exceeded != "", "%s: what the records of such a file say of each other is not checked", v.Exceeded)
	}}}

	rulesOfTime = slices.Concat(
		rules[*dated]{{"token", onTime, always, func(d *dated, a *asked) { a.refuteIf(d.forged != nil, "%v", d.forged) }}},
		each(ofDoubts, onTime, always, func(d *dated, a *asked) {
			a.doubtIf(d.open() && d.doubts != nil && a.speaks(trust.Doubtful(d.doubts), ofDoubts), "%v", d.doubts)
		}),
		rules[*dated]{
			{"pending", onTime, always, func(d *dated, a *asked) {
				a.doubtIf(d.open() && d.doubts == nil, "pending since %s, the time that it claims: no authority has stamped it yet", d.Payload.Timestamp)
			}},
			// A record may claim any earlier time, because it can be stamped late, and no later one: it is signed after its act.
			{Skew, onTime, always, func(d *dated, a *asked) {
				if d.at.Proved() && d.Payload.Time().Sub(d.at.Earliest.Time) > trust.MaxSkew {
					a.doubt("it claims %s, and existed at %s: one of the two clocks is wrong", d.Payload.Timestamp, utc(d.at.Earliest.Time))
				}
			}},
			{"policy", onTime, always, func(d *dated, a *asked) {
				a.doubtIf(d.options.Policy == Strict && !d.checked,
					"no authority proves its time whose clock is independent and whose certificates were checked for revocation")
			}},
			{"time", onBefore, always, func(d *dated, a *asked) {
				existed, _ := d.at.Before(d.options.Before)
				switch by := d.at.By(); {
				case d.options.Before.IsZero():
				case by == nil:
					a.doubt("%s", untimed(d.at, "its time is not proved"))
				case !existed && d.at.Demanded:
					a.doubt("the earliest proof by an independent clock that it existed is of %s, not before %s", utc(by.Time), utc(d.options.Before))
				case !existed:
					a.doubt("the earliest proof that it existed is of %s, not before %s", utc(by.Time), utc(d.options.Before))
				}
			}},
		},
		each(ofServices, onQualified, always, func(d *dated, a *asked) {
			if d.unqualified != nil && a.speaks(d.unqualified.Rule, ofServices) {
				a.doubt("%s", d.unqualified.Reason)
			}
		}))

	rulesOfSignature = rules[*signing]{
		{"unknown-key", ofAll, always, func(s *signing, a *asked) {
			switch p := &s.Payload; {
			case s.key != nil || s.vouched != nil || s.wrong != nil:
			case s.options.Trust == nil:
				a.doubt("no trust file was given, so no key is trusted")
			case s.trust.Knows(p.Actor(), p.Role()):
				a.doubt("signed with the key %s; the trust file has other keys for %s %q", s.signer(), p.Role(), p.Actor())
			default:
				a.doubt("the trust file has no key %s", s.signer())
			}
		}},
		{"signature", onContent, always, func(s *signing, a *asked) { a.refuteIf(s.wrong != nil, "signature %d: %v", s.place, s.wrong) }},
		{"signature", ofAuthor, always, func(s *signing, a *asked) {
			a.refuteIf(s.wrong != nil, "signature %d was not made with the key that it names", s.place)
		}},
	}

	// of a right signature with a key that the trust file lists
	rulesOfKey = rules[*signing]{
		{"actor", onAuthentication, always, func(s *signing, a *asked) {
			a.refuteIf(!s.isActors(), "it names %s %q as its actor and is signed with the key of %s %q", s.Payload.Role(), s.Payload.Actor(), s.key.Role, s.key.Name)
		}},
		{"validity", onAuthentication, otherwise, func(s *signing, a *asked) {
			inTime, _ := s.at.Within(s.key.NotAfter)
			switch by := s.at.By(); {
			case s.isEarly():
				a.refute("signed at %s, before the key was valid (%s)", utc(s.at.Earliest.Time), utc(s.key.NotBefore))
			case s.key.NotAfter.IsZero():
			case by == nil:
				a.doubt("the key was valid only until %s, and %s", utc(s.key.NotAfter), untimed(s.at, "the time of signing is not proved"))
			case !inTime: // a time stamp proves only the latest possible time: the record may have been signed in time and stamped late
				a.doubt("the key was valid only until %s, and the record is proved to be signed only by %s", utc(s.key.NotAfter), utc(by.Time))
			}
		}},
		// The operator's own clock does not show that the record is older: a thief of the key may have that clock, too.
		{"revoked", ofAuthor, always, func(s *signing, a *asked) {
			if !s.key.Revoked.IsZero() && !s.at.IndependentlyBefore(s.key.Revoked) {
				a.doubt("the key of %s %q is revoked from %s on, and no independent authority proves that it was signed before",
					s.key.Role, s.key.Name, utc(s.key.Revoked))
			}
		}},
		// If the record does not name the keys that must sign, too, it was sealed without them, so a forger of this one signature made it. The
		// signatures of named keys are checked one by one.
		{"second-signature", ofAuthor, always, func(s *signing, a *asked) {
			from := s.key.WithFrom
			if existed, _ := s.at.Before(from); existed {
				return
			}
			for _, id := range s.missing() {
				if !from.IsZero() && (!s.at.Proved() || s.at.Earliest.Time.Before(from)) {
					a.doubt("the key %s must sign, too, from %s on; it did not, and %s", id, utc(from), untimed(s.at, "the time of signing is not proved"))
					continue
				}
				a.refute("the key of %s %q signs only together with the key %s, which did not sign", s.key.Role, s.key.Name, id)
			}
		}},
	}

	// of a right signature with another key, whose certificates the record has
	rulesOfCertificate = slices.Concat(
		each([]string{"certificate", "effort"}, ofAll, always, isUnvouched),
		each([]string{"actor", "revoked", "revocation"}, ofAuthor, always, isUnvouched),
		rules[*signing]{
			{"policy", onAuthentication, always, func(s *signing, a *asked) {
				if s.vouched.Rule == "" && s.options.Policy == Strict && !s.vouched.CA.Asked() {
					a.doubt("whether the certificates by which %s vouches were revoked was not asked", s.vouched.CA.Name)
				}
			}},
		})

	// of a right signature
	rulesOfCustody = rules[*signing]{{"custody", onNonRepudiation, always, func(s *signing, a *asked) {
		if s.key != nil {
			a.doubtIf(s.key.Custody != trust.ByOwner, "the operator keeps the key of %s %q and could have signed in its place", s.key.Role, s.key.Name)
			return
		}
		if v := s.vouched; v != nil && slices.Contains([]string{"", "actor", "revoked", "revocation"}, v.Rule) && v.CA.Custody != trust.ByOwner {
			a.doubt("the trust file says that the operator keeps the keys that %s certifies: the operator could have signed in place of %s %q",
				v.CA.Name, s.Payload.Role(), s.Payload.Actor())
		}
	}}}

	// of the error of a record's disclosures: about one that gives another commitment than the payload has, the first, or only that for proofs
	rulesOfDisclosures = rules[error]{
		{"provable", onContent, always, func(err error, a *asked) { a.refuteIf(errors.Is(err, evidence.ErrProvable), "%v", err) }},
		{"disclosure", onContent, always, func(err error, a *asked) {
			a.refuteIf(err != nil && !errors.Is(err, evidence.ErrProvable), "%v", err)
		}},
	}

	rulesOfPlace = rules[placed]{{"inclusion", onOrder, always, func(p placed, a *asked) {
		switch {
		case p.log == nil:
		case p.Log == nil:
			a.doubt("it carries no proof of its place in a log")
		default:
			if err := included(p.Record, *p.log); err != nil {
				a.refute("the log has no such record at index %d: %v", p.Log.Index, err)
			}
		}
	}}}

	rulesOfValue = rules[shown]{{"value", onProperty, always, func(s shown, a *asked) {
		if s.there && s.value != nil && !s.met {
			a.doubt("%s: the value that it shows is another: %s", s.name(), evidence.Abbreviate(string(s.value)))
		}
	}}}

	rulesOfDemand = rules[*demanded]{{"demand", onProperty, always, func(d *demanded, a *asked) {
		to := " to everybody"
		if d.Audience != "" {
			to = fmt.Sprintf(" to %q", evidence.Abbreviate(d.Audience))
		}
		for _, p := range d.open {
			a.record = p.record
			a.doubtIf(!p.proved, "%s: the value at %s is hidden, and no proof that holds shows this of it%s", d.name(), evidence.Abbreviate(d.pointer), to)
		}
		a.doubtIf(d.asked == 0, "%s: no record of the file is asked: none has this member", d.name())
	}}}

	rulesOfProof = append(
		each([]string{"volume", "statement", "record", "unprovable"}, onProperty, always, func(p *carried, a *asked) {
			a.doubtIf(p.open == a.rule, "%v", p.why)
		}),
		rule[*carried]{"proof", onProperty, always, func(p *carried, a *asked) { // it is one of something else, or of nothing
			if errors.Is(p.why, property.ErrProof) {
				a.refute("the proof of %s does not hold: %v", p.statement.Form, p.why)
			}
		}})

	// A reader who requires properties, and does not say which, wants to see one.
	rulesOfProofs = rules[*proofs]{{"missing", onProperty, always, func(all *proofs, a *asked) {
		a.doubtIf(all.carried == 0 && all.required, "no record carries a proof of a property")
	}}}

	rulesOfEvent = rules[*look]{
		{"body", onVantage, always, func(l *look, a *asked) {
			a.doubtIf(l.unread != nil, "its response is no event of a recorder: %v", l.unread)
		}},
		{"gap", onVantage, always, func(l *look, a *asked) {
			switch {
			case l.unread != nil:
			case l.event.Event == observed.Gap:
				calls := int64(0)
				for _, m := range l.event.Missed {
					calls += min(m.Calls, 1<<40)
				}
				a.doubt("the recorder says that at least %d calls passed without a record", calls)
			case l.event.Event == observed.LostInCrash:
				a.doubt("the recorder died during a call of %q: nothing else is known of it", l.event.Agent)
			}
		}},
	}

	// The first that fits counts.
	rulesOfSight = slices.Concat(
		rules[*look]{
			{"volume", onVantage, always, func(l *look, a *asked) {
				a.doubtIf(l.tooMuch, "the records of the file copy more than %d bytes from each other", maxCopied)
			}},
			{"digest", onVantage, otherwise, func(l *look, a *asked) {
				err := l.unseen(observed.ErrWrong)
				a.refuteIf(err != nil, "%v", err)
			}},
			{"projection", onVantage, otherwise, func(l *look, a *asked) {
				if i := slices.IndexFunc(l.compared, func(f fact) bool { return f.stated && !f.same }); i >= 0 && l.known {
					a.refute("its bytes say another %s than the record", l.compared[i].name)
				}
			}},
			{"second-hand", onVantage, otherwise, func(l *look, a *asked) {
				switch p := &l.record.Payload; p.Observed.Fidelity {
				case evidence.ByAttributes:
					a.doubt("%s: nobody saw the bytes", SeenFrom(p.Observed, p.AgentID))
				case evidence.Parsed:
					a.doubt("%s, as values that somebody else had parsed: nobody saw the bytes", SeenFrom(p.Observed, p.AgentID))
				}
			}},
			{"recorder-agent", onVantage, otherwise, func(l *look, a *asked) {
				p := &l.record.Payload
				a.doubtIf(p.Observed.Agent == p.AgentID, "%q records its own acts: nobody else saw them", p.AgentID)
			}},
		},
		each([]string{"missing", "withheld", "unsealed", "truncated", "masked"}, onVantage, otherwise, func(l *look, a *asked) {
			err := l.unseen(whyUnseen[a.rule])
			a.doubtIf(err != nil, "%v", err)
		}),
		rules[*look]{
			{"readers", onVantage, otherwise, func(l *look, a *asked) {
				why := readDifferently(l.record.Payload.Observed)
				a.doubtIf(why != "", "%s", why)
			}},
			{"projection", onVantage, otherwise, func(l *look, a *asked) {
				a.doubtIf(!l.known && slices.ContainsFunc(l.compared, func(f fact) bool { return f.stated }),
					"the protocol %q is not read here: what the record says of its bytes is the recorder's word", l.record.Payload.Observed.Protocol)
			}},
			{"gap", onVantage, otherwise, func(l *look, a *asked) {
				o := l.record.Payload.Observed
				a.doubtIf(o.Ended == evidence.LostInCrash, "the recorder died during a call of %q: the end is not known", o.Agent)
			}},
			{"projection", onVantage, otherwise, func(l *look, a *asked) {
				beside := besideBytes(&l.record.Payload)
				a.doubtIf(beside != "", "its %s is no fact in bytes: what the record says there is the recorder's word", beside)
			}},
		})

	rulesOfGaps = rules[[]*evidence.Record]{{"gap", onCompleteness, applying, func(gaps []*evidence.Record, a *asked) {
		for _, r := range gaps {
			a.about(r).doubt("a recorder says that it missed acts: they are in no record")
		}
	}}}

	rulesOfConfiguration = rules[configured]{
		{"rests", onConfiguration, always, func(o configured, a *asked) {
			if f := o.unsound; f != nil {
				a.doubt("it rests on a signature of which %s is %s", f.Guarantee, f.Status)
			}
		}},
		// A step in a chain may leave out model, version and parameters. Then they are not proved.
		{"unstated", onConfiguration, always, func(o configured, a *asked) {
			p := &o.Payload
			a.doubtIf(p.ActionType == evidence.ChainStep && (p.Model == "" || p.ModelVersion == "" || len(p.Parameters) == 0),
				"it does not state all of model, version and parameters")
		}},
		{"seat", onConfiguration, always, func(o configured, a *asked) {
			a.doubtIf(o.compared && o.seat == nil, "the file has no opening that gives %q a seat", o.Payload.AgentID)
		}},
		{"parameters", onConfiguration, always, func(o configured, a *asked) {
			if o.compared && o.seat != nil && !o.sameParameters {
				a.refute("%q answers with the parameters %s, and its seat has %s", o.Payload.AgentID, o.Payload.Parameters, o.seat.Parameters)
			}
		}},
		{"model", onConfiguration, otherwise, func(o configured, a *asked) {
			if o.compared && o.seat != nil && !o.sameModel {
				a.doubt("%q answers with the model %q, and its seat has %q", o.Payload.AgentID, o.Payload.Model, o.seat.Model)
			}
		}},
	}

	rulesOfNaming = rules[naming]{
		{"causality", onOrder, always, func(n naming, a *asked) { // a record cannot have seen one that is later in the log
			a.refuteIf(n.other.Log != nil && n.Log != nil && n.other.Log.Index >= n.Log.Index, "it names record %s, which is later in the log", recordName(n.other))
		}},
		{"claimed-time", onOrder, always, func(n naming, a *asked) {
			a.refuteIf(n.Payload.ActionType.InTrial() && n.other.Payload.Time().After(n.Payload.Time()),
				"it claims %s, and names record %s, which claims the later time %s", n.Payload.Timestamp, recordName(n.other), n.other.Payload.Timestamp)
		}},
	}

	rulesOfCounts = rules[*counting]{
		{"count", onOrder, always, (*counting).isMiscounted},
		{"subject", onOrder, always, (*counting).isOfOtherSubject},
	}

	// of reviews, and of deliveries that name what they deliver
	onOriginal = rules[*decided]{
		{"binding", onHumanReview, otherwise, func(d *decided, a *asked) {
			switch {
			case len(d.named) > 0:
			case d.byGoods():
				a.doubt("it names a review and does not name the reviewed record")
			default:
				a.doubt("it names record %s by id only, not by digest, so it is not bound to what that record says", d.Payload.OriginalResponseID)
			}
		}},
		{"version", onHumanReview, otherwise, func(d *decided, a *asked) {
			if d.astray() && d.original != nil && d.here < len(d.named) {
				a.refute("it is about another version: record %s in the file has the digest %s, which it does not name", recordName(d.original), d.original.Digest)
			}
		}},
		{"original", onHumanReview, otherwise, func(d *decided, a *asked) {
			a.refuteIf(d.astray() && d.here == len(d.named), "by id it is about record %s, and by digest about another", d.Payload.OriginalResponseID)
		}},
		{"missing", onHumanReview, otherwise, func(d *decided, a *asked) {
			a.doubtIf(d.astray(), "the file lacks record %s, which it is about", d.Payload.OriginalResponseID)
		}},
	}

	rulesOfReview = slices.Concat(onOriginal, rules[*decided]{
		{"rejection", onHumanReview, always, func(d *decided, a *asked) { // the format demands a text where one is needed
			p := &d.Payload
			a.refuteIf(p.ModifiedResponse != nil && p.ApprovalStatus == evidence.Rejected, "it rejects, and comes with a response: a rejection must have none")
		}},
		{"withheld", onHumanReview, always, func(d *decided, a *asked) {
			if d.against != nil && !d.known {
				a.doubt("its response or that of record %s is withheld, so they cannot be compared", recordName(d.against))
			}
		}},
		{"approval", onHumanReview, otherwise, func(d *decided, a *asked) {
			if d.against != nil && !d.equal && d.Payload.ApprovalStatus == evidence.Approved {
				a.refute("it approves record %s unchanged, and comes with another response", recordName(d.against))
			}
		}},
		{"modification", onHumanReview, otherwise, func(d *decided, a *asked) {
			if d.against != nil && d.equal && d.Payload.ApprovalStatus == evidence.ApprovedWithModifications {
				a.refute("it says that the response was modified, but its response is that of record %s unchanged", recordName(d.against))
			}
		}},
		{"own-output", onHumanReview, always, (*decided).isOwn},
		{"case", onHumanReview, always, (*decided).isOfOtherCase},
	})

	rulesOfDelivery = slices.Concat(
		rules[*decided]{{"missing", onHumanReview, always, func(d *decided, a *asked) {
			// If no review was found, the missing record can be the review.
			unclear := len(d.reviews) == 0 && (d.original == nil || !slices.Contains(d.others, d.original.Digest))
			a.doubtIf(d.missing && (unclear || d.byGoods()), "the file lacks a record that it names")
		}}},
		onOriginal,
		rules[*decided]{
			{"delivery-review", onHumanReview, always, func(d *decided, a *asked) {
				if review := d.stray(); review != nil {
					a.add(d.contradicts(), "it names the review %s, which is a review of record %s and not of what it delivers",
						recordName(review), review.Payload.OriginalResponseID)
				}
			}},
			{"delivery-rejected", onHumanReview, otherwise, (*decided).isRejected},
			{"unreviewed", onHumanReview, otherwise, func(d *decided, a *asked) {
				a.doubtIf(len(d.reviews) == 0 && d.missing, "the file lacks the review that it names, so nothing shows that a person approved it")
				a.doubtIf(len(d.reviews) == 0 && !d.missing, "it names no review, so nothing shows that a person approved it")
			}},
			{"withheld", onHumanReview, otherwise, func(d *decided, a *asked) {
				if d.against != nil && !d.known {
					a.doubt("what it delivers or what review %s approved is withheld or not in the file, so they cannot be compared", recordName(d.against))
				}
			}},
			{"delivery", onHumanReview, otherwise, func(d *decided, a *asked) {
				if d.against != nil && !d.equal {
					a.add(d.contradicts(), "what it delivers differs from what review %s approved", recordName(d.against))
				}
			}},
		})

	// If the log counted a record that the file lacks, the chain is incomplete.
	rulesOfChains = rules[*file]{{"gap", onChain, always, func(f *file, a *asked) {
		f.counted(func(r *evidence.Record, number int64) {
			if chained(r) { // a trial's own rules check its acts
				a.about(r).add(f.missed(true), "the log counts it as record %d of chain %q, and it is number %d in the file: a record was left out",
					r.Log.ChainSeq, r.Payload.ChainID, number)
			}
		})
	}}}

	rulesOfChain = rules[link]{
		{"dangling", onChain, always, func(l link, a *asked) {
			if i := slices.IndexFunc(l.Payload.Saw, func(d evidence.Digest) bool { return l.ByDigest[d] == nil }); i >= 0 {
				a.doubt("it names %s, and the file has no such record", l.Payload.Saw[i])
			}
		}},
		{"dangling", onChain, always, func(l link, a *asked) { // the first record of a chain can follow a record of another chain
			if p := &l.Payload; !p.PreviousRecord.IsZero() && l.ByDigest[p.PreviousRecord] == nil {
				a.add(l.missed(p.ChainPosition > 1), "the record before it is %s, and the file has no such record", p.PreviousRecord)
			}
		}},
		{"gap", onChain, otherwise, func(l link, a *asked) {
			if at := l.Payload.ChainPosition; at > 1 && len(l.Within(l.Record)) == 0 && len(l.At[l.Before(l.Record)]) == 0 {
				a.add(l.unsure(), "it is at position %d, and no record of its chain is at position %d", at, at-1)
			}
		}},
		{"unbound", onChain, otherwise, func(l link, a *asked) {
			p, r, named := &l.Payload, l.Record, l.Named(l.Record)
			begins := p.ChainPosition == 1 || p.ChainPosition == 0 && (l.First[l.Threads[r]] == r || len(named) > 0 || len(l.Parents(r)) > 0)
			known := p.PreviousAgent == "" || !p.PreviousRecord.IsZero() || anyOf(named, p.PreviousAgent)
			a.doubtIf(len(l.Within(r)) == 0 && !(begins && known),
				"it names no record of its chain by digest, only by names and places: it could follow another record of the same name")
		}},
		// A record's position is one more than the highest position among the records that it names. Acts of one round name the same records, so
		// they share a position.
		{"position", onChain, always, func(l link, a *asked) {
			at, highest := l.Payload.ChainPosition, int64(0)
			for _, other := range l.Within(l.Record) {
				highest = max(highest, other.Payload.ChainPosition)
			}
			a.refuteIf(at > 0 && highest > 0 && at != highest+1, "it is at position %d, and the highest position that it names is %d", at, highest)
		}},
		{"previous-agent", onChain, always, link.followsOther},
		{"next-agent", onChain, always, link.leadsToOther},
		{"time", onChain, always, link.isBackward},
		// A parent is often recorded after its children, so this link implies no order. The parent can be in another chain or in none.
		{"parent", onChain, always, func(l link, a *asked) {
			parent := l.Payload.ParentRequestID
			a.doubtIf(parent != "" && len(l.Parents(l.Record)) == 0, "it names the parent request %q, and the file has no other record of that request", parent)
		}},
		{"cycle", onChain, otherwise, func(l link, a *asked) {
			if p := &l.Payload; p.ParentRequestID != "" && p.RequestID != "" && !l.rooted[p.RequestID] {
				a.add(l.missed(true), "its parent requests form a cycle")
			}
		}},
	}

	rulesOfRest = map[Guarantee]rules[*findings]{
		Vantage:     {{"rests", onVantage, ifOpen, restsOn("records", Content, Authentication)}},
		HumanReview: {{"rests", onHumanReview, ifOpen, restsOn("records", Content, Authentication)}},
		GivenOn:     {{"rests", onGivenOn, ifOpen, restsOn("records", Content, Authentication)}},
		Chain:       {{"rests", onChain, ifOpen, restsOn("records", Content, Authentication, Order)}},
	}

	rulesOfFiles = rules[*gathered]{
		{"fork", ofHistory, always, func(g *gathered, a *asked) {
			for _, size := range slices.Sorted(maps.Keys(g.forked)) {
				a.refute("the files show two checkpoints of %d entries with different roots", size)
			}
		}},
		{"fork", onOrder, always, func(g *gathered, a *asked) {
			for _, r := range g.doubled {
				a.about(r).refute("the files show two records at index %d", r.Log.Index)
			}
		}},
	}

	rulesOfIDs = rules[[]*evidence.Record]{{"twin", onOrder, always, func(all []*evidence.Record, a *asked) {
		seen := map[string]bool{}
		for _, r := range all {
			a.about(r).refuteIf(seen[recordName(r)], "the log has another record with this id, at a lower index")
			seen[recordName(r)] = true
		}
	}}}

	rulesOfOneAct = rules[*evidence.Record]{{"one-act", ofTrial, ifOpen, func(r *evidence.Record, a *asked) {
		a.doubtIf(r.Payload.ActionType.InTrial(), "one act alone does not show the trial that it is part of: ask for the case file")
	}}}

	rulesOfBodies = rules[*heard]{
		{jury.RuleBody, onCompleteness, always, func(h *heard, a *asked) {
			for _, r := range h.records {
				a.about(r).refuteIf(h.unread[r] != nil, "%s: %v", r.Payload.ActionType, h.unread[r])
			}
		}},
		{jury.RuleBody, ofTrial, ifOpen, func(h *heard, a *asked) { a.doubtIf(len(h.unread) > 0, "an act cannot be read") }},
	}

	rulesOfBeginning = rules[*heard]{{"submission", onCompleteness, always, func(h *heard, a *asked) {
		a.about(h.records[0]).refuteIf(!h.begins(), "the first act in the file is not the submission; every trial begins with it")
	}}}

	rulesOfAct = rules[act]{
		{"one-trial", onCompleteness, always, func(o act, a *asked) {
			p, first := &o.Payload, &o.records[0].Payload
			a.refuteIf(p.ChainID != first.ChainID || p.Case != first.Case, "it is of another trial: chain %q, case %s", p.ChainID, p.Case)
		}},
		{"one-clerk", onCompleteness, always, func(o act, a *asked) {
			p := &o.Payload
			a.refuteIf(p.Role() == evidence.RoleClerk && o.clerk != p.AgentID, "it is by clerk %q, and the acts before it by %q", p.AgentID, o.clerk)
		}},
	}

	rulesOfTrial = rules[*heard]{
		// If the evidence is sealed apart, the digest is that of the commitment, so this needs no disclosure.
		{"case", onCompleteness, always, func(h *heard, a *asked) {
			for _, r := range h.records {
				if r.Payload.ActionType == evidence.Submission {
					digest := evidence.DigestOf(r.Payload.Response)
					a.about(r).refuteIf(digest != r.Payload.Case, "the evidence has the digest %s; the acts judge %s", digest, r.Payload.Case)
				}
			}
		}},
		// A case file may hold only the trial's acts and, after the first of them, people's decisions on the trial.
		{"foreign", onCompleteness, always, func(h *heard, a *asked) {
			begun, of := false, &h.records[0].Payload
			for _, r := range h.all {
				p := &r.Payload
				begun = begun || r == h.records[0]
				stray := !begun || p.ChainID != of.ChainID || !p.Case.IsZero() && p.Case != of.Case
				a.about(r).refuteIf(stray && !p.ActionType.InTrial(), "it does not belong to this trial")
			}
		}},
		// A record that the log counted and the file lacks was left out: another branch of the trial, for example, that ended less well.
		{"gap", onCompleteness, always, func(h *heard, a *asked) {
			want := int64(0)
			for _, r := range h.chain() {
				if r.Log == nil {
					continue
				}
				if want++; r.Log.ChainSeq != want {
					a.about(r).refute("the log counts it as record %d of the trial, and it is number %d in the file: a record was left out", r.Log.ChainSeq, want)
					return
				}
			}
		}},
		// A record without its count could hide one: anybody can take it away.
		{"inclusion", onCompleteness, otherwise, func(h *heard, a *asked) {
			chain := h.chain()
			if i := slices.IndexFunc(chain, func(r *evidence.Record) bool { return r.Log == nil }); i >= 0 {
				a.about(chain[i]).doubt("nothing says as which record of the trial the log counts it, so another could have been left out")
			}
		}},
		{"submission", ofTrial, ifOpen, func(h *heard, a *asked) {
			a.doubtIf(!h.begins(), "the file lacks the submission, so the trial cannot be followed from its beginning")
		}},
	}

	rulesOfReplay = slices.Concat(
		ofReplay(Completeness, jury.RuleSequence, jury.RuleBody, jury.RulePrevious, jury.RulePosition, jury.RuleCompletion),
		ofReplay(Simultaneity, jury.RuleSaw, jury.RuleRequest),
		ofReplay(Verdict, jury.RuleSettings, jury.RuleAnswer, jury.RuleLevels, jury.RuleConsensus, jury.RuleVerdict),
		rules[*heard]{
			{"quotation", onVerdict, always, func(h *heard, a *asked) {
				tooMany := errors.Is(h.invented, errTooManyQuotations)
				a.doubtIf(tooMany, "%v", h.invented)
				a.about(h.ByDigest[h.quoting]).refuteIf(h.invented != nil && !tooMany, "%v", h.invented)
			}},
			{"replay", onCompleteness, always, func(h *heard, a *asked) { a.refuteIf(h.fault != nil, "%v", h.fault) }},
			{"replay", ofTrial, ifOpen, func(h *heard, a *asked) { a.doubtIf(h.fault != nil || h.wrong != nil, "the trial cannot be followed") }},
			{"closing", ofTrial, ifOpen, func(h *heard, a *asked) {
				a.doubtIf(h.wrong == nil && h.fault == nil && h.replayed == nil,
					"the trial is not closed: it is still under way, was broken off, or its end was cut away")
			}},
		})

	// Each act must be proved to be its actor's.
	rulesOfActs = rules[*findings]{{"signatures", ofTrial, ifOpen, restsOn("acts", Content, Authentication)}}

	rulesOfReadersLog = rules[*readersLog]{
		{"checkpoint", onCompleteness, always, func(k *readersLog, a *asked) { a.doubtIf(k.unknown != nil, "%v", k.unknown) }},
		{"fork", ofHistory, otherwise, (*readersLog).isForked},
		{"consistency", onCompleteness, otherwise, (*readersLog).isUnconnected},
	}

	rulesOfEntries = rules[*readersLog]{
		{"entries", onCompleteness, always, func(k *readersLog, a *asked) {
			changed := errors.Is(k.unread, operator.ErrEntries)
			a.doubtIf(changed, "%v; they may have been changed on the way, so this says nothing against the log: get them again ('jurat log checkpoint --entries')",
				k.unread)
			a.doubtIf(k.unread != nil && !changed, "%v", k.unread)
		}},
		{"fork", ofHistory, otherwise, func(k *readersLog, a *asked) {
			a.refuteIf(k.known.Size >= k.own.Size && k.root != k.own.Root,
				"the first %d entries of the reader's log have another root than the file's checkpoint of %d", k.own.Size, k.own.Size)
		}},
		{"count", onCompleteness, otherwise, (*readersLog).isMiscounted},
	}

	rulesOfChainCount = rules[*chainCount]{
		{"count", onCompleteness, always, func(n *chainCount, a *asked) {
			a.refuteIf(n.Wrong != "", "the log counts %s: it counts the records of chain %q falsely", n.Wrong, n.ID)
		}},
		{"cut", onCompleteness, otherwise, func(n *chainCount, a *asked) {
			age := ""
			if n.Later == n.Lacks {
				age = fmt.Sprintf("; the log added them after the file's checkpoint of %d, so the file is older or was cut", n.cut)
			}
			a.refuteIf(n.Lacks > 0, "the log has %d records of chain %q, the file has %d of them; missing chain_seq %s%s",
				n.Entries, n.ID, n.Entries-n.Lacks, strings.Join(n.Missing, ", "), age)
		}},
	}

	rulesOfCaseCount = rules[*tagCount]{{"count", onCompleteness, always, func(t *tagCount, a *asked) {
		a.refuteIf(t.Wrong != "", "the log counts %s: it counts the submissions of this case falsely", t.Wrong)
	}}}

	// Nothing shows whether the file's chains continue after their last record here.
	rulesOfTail = rules[string]{{"tail", onCompleteness, always, func(compared string, a *asked) {
		a.doubt("%s; only the log's entries up to such a checkpoint show whether its chains continue after their last record here", compared)
	}}}

	rulesOfExport = rules[*export]{
		{"signature", onEnvelope, always, func(x *export, a *asked) {
			a.refuteIf(x.contradiction != nil, "the statement contradicts itself: %v", x.contradiction)
		}},
		{"unknown-key", onEnvelope, otherwise, func(x *export, a *asked) {
			a.doubtIf(x.key == nil, "no key of the trust file signed the statement")
		}},
		{"unsupported", onEnvelope, otherwise, func(x *export, a *asked) {
			a.doubtIf(errors.Is(x.wrong, scitt.ErrUnsupported), "the statement: %v", x.wrong)
		}},
		{"signature", onEnvelope, otherwise, func(x *export, a *asked) {
			a.refuteIf(x.wrong != nil, "the statement was not signed with the key that it names: %v", x.wrong)
		}},
	}

	// of a statement that a key of the trust file signed
	rulesOfExporter = rules[*export]{
		{"unsupported", onEnvelope, always, func(x *export, a *asked) {
			a.doubtIf(x.unread != nil, "the certificate that it names: %v", x.unread)
		}},
		{"actor", onEnvelope, always, func(x *export, a *asked) {
			switch p := &x.record.Payload; {
			case x.Issuer != scitt.Issuer(x.key.Role, x.key.Name):
				a.refute("the statement names the issuer %q, and is signed with the key of %s %q", evidence.Abbreviate(x.Issuer), x.key.Role, x.key.Name)
			case x.key.Role != evidence.RoleOperator && (x.key.Role != p.Role() || x.key.Name != p.Actor()):
				a.refute("the operator or the record's actor signs its statement, and this one is signed with the key of %s %q", x.key.Role, x.key.Name)
			}
		}},
		{"revoked", onEnvelope, always, func(x *export, a *asked) {
			a.doubtIf(!x.key.Revoked.IsZero(), "the key is revoked from %s on, and nothing shows when the statement was signed", utc(x.key.Revoked))
		}},
		{"validity", onEnvelope, otherwise, func(x *export, a *asked) {
			a.doubtIf(!x.key.NotAfter.IsZero(), "the key was valid only until %s, and nothing shows when the statement was signed", utc(x.key.NotAfter))
		}},
		{"second-signature", onEnvelope, always, func(x *export, a *asked) {
			if len(x.key.With) > 0 {
				a.doubt("the key %s must sign, too, and a COSE_Sign1 has one signature", x.key.With[0])
			}
		}},
	}
)
