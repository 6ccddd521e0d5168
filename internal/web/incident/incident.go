// Package incident writes the incident statement. It tells a person who was not there what an agent said, when, under which configuration,
// and how far that is proved.
//
// A statement asserts only what the verification report proves. Other content is called unproved, or attributed ("it claims"). What is
// refuted is called false. Text from the records is quoted, so that no reader takes it for a sentence of the statement.
package incident

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/web/words"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// A Site is the public address of a server that shows records on pages, such as https://jurat.example. A statement names the record's
// page there. The empty Site has no pages.
type Site string

// Statement returns the paragraphs of the statement on one record, or on a trial's records. report is the verification report on these
// records. The statement says the same in every language, and names the pages of the site.
func (s Site) Statement(records []*evidence.Record, report *verify.Report, lang words.Lang) []string {
	w := &writer{in(lang), report, report.Answers(), s}
	if report.Kind == verify.Trial {
		return w.trial(records)
	}
	var paragraphs []string
	for _, r := range records {
		paragraphs = append(paragraphs, w.record(r)...)
	}
	return w.end(paragraphs)
}

// OnRecord returns the paragraphs of the statement on one record of a larger file. report is on the whole file. If the file is a trial,
// Statement would describe the whole trial instead.
func (s Site) OnRecord(r *evidence.Record, report *verify.Report, lang words.Lang) []string {
	w := &writer{in(lang), report, report.Answers(), s}
	return w.end(w.record(r))
}

// end adds what the proof rests on, and what it does not show.
func (w *writer) end(paragraphs []string) []string {
	return present(append(paragraphs, words.RestsOn(w.lang, w.report), w.disclaim(w.report))...)
}

// present returns the texts that are not empty.
func present(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// A writer writes one statement.
type writer struct {
	tongue
	report  *verify.Report
	answers *verify.Answers // the report's answers on single records
	site    Site
}

func (w *writer) record(r *evidence.Record) []string {
	check := w.Say("statement.check", "record", r.Payload.RecordID, "digest", r.Digest)
	return present(w.join(w.who(r), w.when(r), w.sealing(r), w.keys(r)), w.reviewOf(r), w.under(r), w.proofs(r), w.join(check, w.page(r)))
}

// page names the record's page, where the server that keeps the record has one.
func (w *writer) page(r *evidence.Record) string {
	if w.site == "" {
		return ""
	}
	return w.Say("statement.page", "link", w.site.Page(r.Payload.RecordID))
}

func (s Site) Page(record string) string {
	return strings.TrimRight(string(s), "/") + "/records/" + url.PathEscape(record)
}

// who names the actor. It states this as a fact only if the signature proves it.
func (w *writer) who(r *evidence.Record) string {
	key := "statement.not_proved"
	switch proved, model := w.holds(r, verify.Content, verify.Authentication), r.Payload.Model != ""; {
	case proved && model:
		key = "statement.recorded_with_model"
	case proved:
		key = "statement.recorded"
	case w.refutes(r, verify.Content, verify.Authentication):
		key = "statement.refuted"
	case model:
		key = "statement.not_proved_model"
	}
	p := &r.Payload
	return w.Say(key, "action", w.named("action", p.ActionType), "role", w.named("role", p.Role()), "actor", strconv.Quote(p.Actor()),
		"model", word(p.Model), "version", word(p.ModelVersion), "because", w.why(r, verify.Content, verify.Authentication))
}

// when returns the time that the actor claims, and separately the time that the authority proves.
func (w *writer) when(r *evidence.Record) string {
	return w.join(w.Say("statement.claimed", "time", r.Payload.Timestamp), w.stamped(r))
}

// stamped returns the proved time, if there is one, and whose clock it comes from.
func (w *writer) stamped(r *evidence.Record) string {
	if w.refutes(r, verify.Time) {
		return w.Say("statement.time_refuted", "because", w.why(r, verify.Time))
	}
	t, ok := w.answers.TimeOf(r.Payload.RecordID)
	if !ok || !w.holds(r, verify.Content) {
		return w.Say("statement.time_unproved", "because", w.why(r, verify.Time, verify.Content))
	}
	if t.Independent != nil { // an independent clock proves more, although its time is later
		return w.join(w.byAuthority(*t.Independent), w.byAuthority(t.ProvedTime))
	}
	return w.byAuthority(t.ProvedTime)
}

func (w *writer) byAuthority(t trust.ProvedTime) string {
	return w.Say("statement.clock."+string(t.Clock), "time", t.Time.UTC().Format(time.RFC3339Nano), "authority", t.Authority)
}

// keys says who else could have signed, if it is known who did.
func (w *writer) keys(r *evidence.Record) string {
	if !w.holds(r, verify.Content, verify.Authentication) {
		return ""
	}
	said := []string{w.keysBy(w.answers.For(verify.NonRepudiation, r.Payload.RecordID), "statement.key_of_operator")}
	for _, by := range w.report.Identities {
		if by.Revoked != nil && slices.ContainsFunc(r.Payload.Signers, func(s evidence.SignerInfo) bool { return s.KeyID == by.KeyID }) {
			said = append(said, inert(words.Revoked(w.lang, by.Revoked)))
		}
	}
	return w.join(said...)
}

func (w *writer) keysBy(f verify.Finding, ofOperator string) string {
	switch {
	case f.Status == verify.Proved:
		return w.Say("statement.key_of_actor")
	case f.Rule == "custody":
		return w.Say(ofOperator)
	}
	return w.Say("statement.key_unproved", "reason", w.reason(f))
}

func (w *writer) reviewOf(r *evidence.Record) string {
	p := &r.Payload
	if p.ActionType != evidence.HumanReview || !w.holds(r, verify.Content, verify.Authentication) {
		return ""
	}
	return w.join(w.Say("statement.reviewed", "status", w.named("approval", p.ApprovalStatus), "original", word(p.OriginalResponseID)), w.reasonOf(r))
}

func (w *writer) reasonOf(r *evidence.Record) string {
	why, withheld := r.Said("/changes", r.Payload.Changes)
	if withheld || len(why) == 0 {
		return ""
	}
	return w.Say("statement.decided_why", "why", quoted(why))
}

func (w *writer) sealing(r *evidence.Record) string {
	switch {
	case w.refutes(r, verify.Content):
		return w.Say("statement.content_refuted")
	case !w.holds(r, verify.Content):
		return w.Say("statement.content_not_proved")
	}
	var algorithms []string
	for _, s := range r.Payload.Signers {
		algorithms = append(algorithms, string(s.Algorithm))
	}
	place := ""
	if w.holds(r, verify.Order) && r.Log != nil {
		place = w.Say("statement.place", "place", r.Log.Index)
	}
	return w.join(w.Say("statement.sealed", "algorithms", strings.Join(algorithms, ", ")), place)
}

// under names the parameters and the context of an output, as the record states them, or as the file discloses what the record commits to.
func (w *writer) under(r *evidence.Record) string {
	said, withheld := r.Said("/context", r.Payload.Context)
	parameters, context := parameters(r.Payload.Parameters), ""
	if parameters != "" {
		parameters = w.Say("statement.configuration", "parameters", parameters)
	}
	switch {
	case withheld:
		context = w.Say("statement.context_apart")
	case len(said) > 0:
		context = w.Say("statement.context", "context", quoted(said))
	}
	return w.join(parameters, context)
}

// parameters formats {"temperature":0.2} as temperature=0.2, sorted by name.
func parameters(value jsontext.Value) string {
	members := map[string]jsontext.Value{}
	if len(value) == 0 || json.Unmarshal(value, &members) != nil {
		return ""
	}
	var parts []string
	for name, v := range members {
		parts = append(parts, fmt.Sprintf("%s=%s", word(name), inert(shortened(string(v)))))
	}
	slices.Sort(parts)
	return shortened(strings.Join(parts, ", "))
}

func quoted(value jsontext.Value) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	return strconv.Quote(shortened(text))
}

// shortened limits a text, so that people read a statement to its end.
func shortened(text string) string {
	const most = 600 // characters
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// word returns a single word as it is, and quotes any other text.
func word(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+"
	if s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !strings.ContainsRune(plain, c) }) {
		return s
	}
	return strconv.Quote(s)
}

// inert keeps a text on its line. It replaces characters that would move a cursor or change the writing direction. It separates joined
// errors, each on a line of its own, by semicolons.
func inert(s string) string {
	s = strings.ReplaceAll(s, "\n", "; ")
	return strings.Map(func(c rune) rune {
		if c == ' ' || unicode.IsPrint(c) {
			return c
		}
		return unicode.ReplacementChar
	}, s)
}

// holds reports whether all these guarantees are proved for the record.
func (w *writer) holds(r *evidence.Record, guarantees ...verify.Guarantee) bool {
	return w.proved(r.Payload.RecordID, guarantees...)
}

func (w *writer) proved(record string, guarantees ...verify.Guarantee) bool {
	return !slices.ContainsFunc(guarantees, func(g verify.Guarantee) bool { return w.answers.For(g, record).Status != verify.Proved })
}

// refutes reports whether any of these guarantees is refuted for the record.
func (w *writer) refutes(r *evidence.Record, guarantees ...verify.Guarantee) bool {
	return slices.ContainsFunc(guarantees, func(g verify.Guarantee) bool { return w.answers.For(g, r.Payload.RecordID).Status == verify.Refuted })
}

// why explains the first of these guarantees that is not proved for the record: what is missing or false.
func (w *writer) why(r *evidence.Record, guarantees ...verify.Guarantee) string {
	for _, g := range guarantees {
		if f := w.answers.For(g, r.Payload.RecordID); f.Status != verify.Proved {
			return w.because(f)
		}
	}
	return w.Say("statement.no_reason")
}

// A tongue is what statements are written from in one language.
type tongue struct {
	words.Texts
	lang words.Lang
}

func in(lang words.Lang) tongue { return tongue{words.Of(lang), lang} }

// join makes a paragraph of the sentences that are not empty.
func (t tongue) join(sentences ...string) string {
	return strings.Join(present(sentences...), t.Say("statement.between"))
}

// named names a value. One without a name in the language is shown as it was sealed.
func (t tongue) named(kind string, value any) string {
	text := fmt.Sprint(value)
	return cmp.Or(t.Say(kind+"."+text), word(text))
}

func (t tongue) position(p jury.Position) string { return t.named("sealed_position", p) }

func (t tongue) reason(f verify.Finding) string { return inert(words.Reason(t.lang, f)) }

// because says what a finding about one record lacks or refutes, in a sentence that can do without the reason, which is in English.
func (t tongue) because(f verify.Finding) string {
	return cmp.Or(t.answer("because", f), t.reason(f))
}

// answer says what a finding comes to, by its guarantee and its status.
func (t tongue) answer(about string, f verify.Finding) string {
	return t.Say("statement."+about+"."+string(f.Guarantee)+"."+string(f.Status), "reason", t.reason(f))
}

// disclaim says what the report does not prove. An item without words in the language is shown in the report's words.
func (t tongue) disclaim(report *verify.Report) string {
	var items []string
	for _, item := range report.NotShown {
		items = append(items, t.Name("not_shown", item))
	}
	return t.Say("statement.disclaimer", "items", strings.Join(items, t.Say("statement.nor")))
}
