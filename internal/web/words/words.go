// Package words holds all texts in the readers' languages. They are data: a file for each language says what records, reports and trust
// files mean, and one in the folder pages what a server's pages and the verification portal say besides. The program of the portal contains
// only the former.
//
// A line of a file is key = "text". Where a key names a value of the format, its last part is that value: position.safe_pass. A place for a
// value is written {so}. A text is a whole sentence, or a whole clause if the language can join clauses without inflection, so that the
// translator decides word order and cases, not the program. Lines that begin with # are notes.
//
// Above the texts stand the sentences. A View is a report in words. A statement tells a person who was not there what an agent said, when, under
// which configuration, and how far that is proved. It asserts only what the report proves: other content is called unproved, or attributed ("it
// claims"), and what is refuted is called false. Text from the records is quoted, so that no reader takes it for a sentence of the statement.
//
// Tests demand the same keys and places in every language, and that something asks for each key.
package words

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/verify"
	"jurat/verify/trust"
)

// Lang is the two-letter code of a language (ISO 639-1). The zero value is English.
type Lang string

// The languages that have texts.
const (
	English  Lang = "en"
	Japanese Lang = "ja"
	Russian  Lang = "ru"
)

// Langs lists every language, in the order of display. The first is the default.
func Langs() []Lang { return []Lang{English, Japanese, Russian} }

func (l Lang) Name() string { return Of(l).Say("language") }

// file returns the name of the language's file; English for an unknown language.
func (l Lang) file() string {
	if !slices.Contains(Langs(), l) {
		l = English
	}
	return string(l) + ".txt"
}

// Texts are the texts of a language by their keys.
type Texts map[string]string

// Say returns a text with values in its places, given as name and value in turn. It is "" for a key that has no text, as that of a value
// that this program does not know. It does not search inserted values for places, so text from a record cannot insert another value.
func (t Texts) Say(key string, pairs ...any) string {
	var old []string
	for i := 0; i+1 < len(pairs); i += 2 {
		old = append(old, fmt.Sprintf("{%v}", pairs[i]), fmt.Sprint(pairs[i+1]))
	}
	return strings.NewReplacer(old...).Replace(t[key])
}

func (t Texts) Name(kind, value string) string { return cmp.Or(t.Say(kind+"."+value), value) }

//go:embed *.txt
var ofRecords embed.FS

//go:embed pages/*.txt
var ofPages embed.FS

// Of returns what a language says of records, reports and trust files.
func Of(l Lang) Texts { return read(ofRecords, l.file(), nil) }

// OfPages returns all texts of a language.
func OfPages(l Lang) Texts { return read(ofPages, "pages/"+l.file(), Of(l)) }

// made has the texts of each file that was read.
var made sync.Map

// read adds the texts of a file to others. It reads each file once.
func read(files embed.FS, name string, others Texts) Texts {
	if all, is := made.Load(name); is {
		return all.(Texts)
	}
	doc, err := files.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("words: %v", err)) // each language has its files
	}
	all := Texts{}
	maps.Copy(all, others)
	maps.Copy(all, Parse(string(doc)))
	made.Store(name, all)
	return all
}

func Parse(doc string) Texts {
	all := Texts{}
	for line := range strings.Lines(doc) {
		if key, text, is := strings.Cut(strings.TrimSpace(line), ` = "`); is && key[0] != '#' {
			all[key] = strings.TrimSuffix(text, `"`)
		}
	}
	return all
}

// Reason says in a language why a finding is what it is. In English it is the finding's own reason, in package verify's words. Those have
// values: names, digests, times. Other languages take these over as they are; text from a file is never translated.
func Reason(l Lang, f verify.Finding) string {
	t := Of(l)
	if t["reason.with"] == "" || f.Reason == "" {
		return f.Reason
	}
	said := t.reason(f)
	values := valuesIn(f.Reason)
	if len(values) == 0 || f.Status == verify.Proved {
		return said
	}
	return t.Say("reason.with", "said", said, "values", strings.Join(values, ", "))
}

func (t Texts) reason(f verify.Finding) string {
	if f.Status == verify.Proved {
		return cmp.Or(t.Say("reason.proved/"+string(f.Guarantee)+"/"+f.Rule), t.Say("reason.proved/"+string(f.Guarantee)))
	}
	if f.Rule == "" { // nothing was examined
		return t.Say("reason.unopened")
	}
	keys := []string{string(f.Guarantee) + "/" + f.Rule, f.Rule}
	if f.Status == verify.Refuted {
		keys = []string{keys[0] + "!", keys[0], keys[1] + "!", keys[1]}
	} else if slices.Contains(ofReplay, f.Rule) && slices.Contains(aboutTrials, f.Guarantee) {
		keys = []string{"followed?"} // one act refuted another guarantee, and the rest could not be followed
	}
	for _, key := range keys {
		if said := t.Say("reason." + key); said != "" {
			return said
		}
	}
	return t.Say("reason.other", "rule", strconv.Quote(f.Rule))
}

var (
	ofReplay    = []string{"answer", "body", "completion", "consensus", "levels", "position", "previous", "request", "sequence", "settings", "simultaneity", "submission", "verdict"}
	aboutTrials = []verify.Guarantee{verify.Completeness, verify.Simultaneity, verify.Verdict}
)

// mostValues is how many values of a reason are taken over.
const mostValues = 6

// valuesIn returns the values in an English reason, each once: quoted texts, digests, record ids and times.
func valuesIn(reason string) []string {
	var found []string
	add := func(value string) {
		if value != "" && len(found) < mostValues && !slices.Contains(found, value) {
			found = append(found, value)
		}
	}
	for reason != "" {
		if quoted, err := strconv.QuotedPrefix(reason); err == nil && reason[0] == '"' {
			add(quoted)
			reason = reason[len(quoted):]
			continue
		}
		n := strings.IndexAny(reason, " \"")
		switch {
		case n < 0:
			n = len(reason)
		case n == 0:
			n = 1
		}
		if word := strings.Trim(reason[:n], ",;:.()"); isValue(word) {
			add(word)
		}
		reason = reason[n:]
	}
	return found
}

// isValue recognises a digest, a record id and a time, by its form.
func isValue(word string) bool {
	switch {
	case strings.HasPrefix(word, "sha256:"):
		return true
	case len(word) == 36:
		return strings.Count(word, "-") == 4
	}
	return len(word) >= len("2026-01-01T00:00:00Z") && word[4] == '-' && word[10] == 'T' && strings.HasSuffix(word, "Z")
}

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

// RestsOn says in one line on whose word a proof rests: what it comes to, and keys, time and log, each apart; "" if the report does not say.
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
			said = append(said, t.Say("trust.exchange."+key, "time", evidence.FormatTime(asked.Began), "asked", strconv.Quote(asked.Agent), "answered", strconv.Quote(answered.Agent),
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
