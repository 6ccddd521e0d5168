package words

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/verify"
	"jurat/verify/trust"
)

// Seen says who saw the acts of a file that recorders saw, from where.
func Seen(l Lang, list []verify.Seen) []string {
	var said []string
	for _, s := range list {
		key := "vantage." + string(s.Vantage)
		if s.Answered() {
			key = "recorder.answered"
		}
		if text := Of(l).Say(key, "recorder", s.Recorder); !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return said
}

// Identities says who stands behind the signatures of agents, reviewers and recorders, and by whose word. Those of a jury are the operator's.
func Identities(l Lang, list []trust.Identified) []string {
	var said []string
	for i := range list {
		if role := list[i].Role; role == evidence.RoleAgent || role == evidence.RoleReviewer || role == evidence.RoleRecorder {
			said = append(said, Identified(l, &list[i]))
		}
	}
	return said
}

// Identified says who stands behind a signature, and by whose word.
func Identified(l Lang, i *trust.Identified) string {
	t := Of(l)
	text := t.Say("trust.signer."+string(i.By)+"."+string(i.Custody), "role", t.Say("role."+string(i.Role)), "name", i.Name, "ca", i.CA)
	if i.Revoked != nil {
		text += " " + Revoked(l, i.Revoked)
	}
	return text
}

// Revoked says that a key or certificate was revoked, for which reason of RFC 5280 (section 5.3.1), and that what it signed is older.
func Revoked(l Lang, r *trust.Revoked) string {
	t, key := Of(l), "trust.now_revoked"
	if r.Certificate != "" {
		key = "trust.certificate_revoked"
	}
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	return t.Say(key, "certificate", strconv.Quote(r.Certificate), "on", at(r.On), "reason", cmp.Or(r.Reason, t.Say("trust.no_reason")), "authority", r.Existed.Authority, "time", at(r.Existed.Time))
}

// RestsOn says in one line on whose word a proof rests: what it comes to, and keys, time and log, each apart. It is "" if the report
// does not say.
func RestsOn(l Lang, r *verify.Report) string {
	t, b := Of(l), r.Basis
	if b == nil {
		return ""
	}
	parts := []string{t.level(r.Outcome, b.Level)}
	if r.Kind != verify.OneCheckpoint {
		parts = append(parts, t.Say("basis.keys", "who", t.keys(b)), t.Say("basis.time", "whose", t.orOpen("basis.time."+string(b.Time))))
	}
	return strings.Join(append(parts, t.Say("basis.log", "who", t.orOpen("basis.log."+string(b.Log)))), t.Say("statement.between"))
}

// Wanted says what the reader demanded of the basis, and which parts of that are not met. It is empty if nothing was demanded.
func Wanted(l Lang, r *verify.Report) []string {
	t, d := Of(l), r.Demanded
	if d == nil {
		return nil
	}
	var said []string
	if d.File != nil {
		said = append(said, t.Say("basis.file", "name", d.File.Name, "fingerprint", d.File.Fingerprint))
	}
	if d.Level != "" {
		said = append(said, t.Say("basis.demanded", "level", cmp.Or(t.Say("basis.need."+string(d.Level)), string(d.Level))))
	}
	if r.Basis != nil && len(r.Basis.Unmet) > 0 {
		var parts []string
		for _, p := range r.Basis.Unmet {
			parts = append(parts, t.Say("basis.part."+string(p)))
		}
		said = append(said, t.Say("basis.unmet", "parts", strings.Join(parts, ", ")))
	}
	return said
}

func (t Texts) level(outcome verify.Status, l verify.Level) string {
	if outcome == verify.Refuted {
		return t.Say("basis.refuted")
	}
	return cmp.Or(t.Say("basis.level."+string(l)), t.Say("basis.unproved"))
}

// orOpen returns a text, or for a key without one that this part is not proved.
func (t Texts) orOpen(key string) string { return cmp.Or(t.Say(key), t.Say("basis.open")) }

// keys says who keeps the keys of which roles.
func (t Texts) keys(b *verify.Basis) string {
	if b.Keys == "" || len(b.Parties) == 0 {
		return t.Say("basis.open")
	}
	of := func(key string, is func(verify.Party) bool) string {
		var roles []string
		for _, p := range b.Parties {
			if name := t.Say("role." + string(p.Role)); is(p) && !slices.Contains(roles, name) {
				roles = append(roles, name)
			}
		}
		if len(roles) == 0 {
			return ""
		}
		return t.Say(key, "roles", strings.Join(roles, ", "))
	}
	said := []string{
		of("basis.keys.operator", func(p verify.Party) bool { return p.Custody == trust.ByOperator }),
		of("basis.keys.owner", func(p verify.Party) bool { return p.Custody == trust.ByOwner && p.By == trust.ByKey }),
		of("basis.keys.ca", func(p verify.Party) bool { return p.Custody == trust.ByOwner && p.By == trust.ByCA }),
	}
	return strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), t.Say("basis.and"))
}

// Quoted quotes a name or a text from a file, so that nobody takes it for a sentence of the program.
func Quoted(text string) string { return strconv.Quote(text) }

// mostExchanges is how many pairs and differences are said in words. The report has them all.
const mostExchanges = 20

// Exchanges says which exchanges between agents the records of a log show from both sides. A log of "" stands for all logs of the report.
func Exchanges(l Lang, r *verify.Exchanges, log string) []string {
	if r == nil {
		return nil
	}
	t, said, more, alone, doubtful := Of(l), []string(nil), 0, 0, 0
	add := func(key string, asked, answered *verify.Sighting, why string) {
		switch {
		case log != "" && asked.Log != log && answered.Log != log:
		case len(said) == mostExchanges:
			more++
		default:
			said = append(said, t.Say("trust.exchange."+key, "time", evidence.FormatTime(asked.Began), "asked", Quoted(asked.Agent), "answered", Quoted(answered.Agent),
				"record", asked.Record, "other", answered.Record, "why", why))
		}
	}
	for i := range r.Pairs {
		p := &r.Pairs[i]
		key := "proved"
		switch {
		case !p.Proved:
			key = "open"
		case p.Witnesses < 2:
			key = "one"
		}
		add(key, &p.Asked, &p.Answered, t.reasons(p.Why))
	}
	for i := range r.Differences {
		add("differs", &r.Differences[i].Asked, &r.Differences[i].Answered, "")
	}
	if more > 0 {
		said = append(said, t.Say("trust.exchange.more", "count", more))
	}
	for _, s := range r.Alone {
		if log == "" || s.Log == log {
			alone++
		}
	}
	for _, d := range r.Doubtful {
		if log == "" || d.Log == log {
			doubtful++
		}
	}
	if alone > 0 && len(r.Pairs)+len(r.Differences) > 0 {
		said = append(said, t.Say("trust.exchange.alone", "count", alone))
	}
	if doubtful > 0 {
		said = append(said, t.Say("trust.exchange.doubtful", "count", doubtful))
	}
	return said
}

// reasons says why a pair is not proved, or one witness.
func (t Texts) reasons(why []verify.ExchangeReason) string {
	var parts []string
	for _, reason := range why {
		if text := t.Say("trust.why."+reason.Rule, "what", reason.What); !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}
