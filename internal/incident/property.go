package incident

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/words"
	"jurat/property"
	"jurat/verify"
)

// mostValues is how many entries of a set a sentence names.
const mostValues = 16

// proofs says what the proofs about hidden values show that the record carries. It asserts only what holds, of a record whose content and author
// are proved: an unsigned commitment hides no one's value.
func (w *writer) proofs(r *evidence.Record) string {
	if len(r.Properties) == 0 || !w.holds(r, verify.Content, verify.Authentication) {
		return ""
	}
	var said []string
	for i := range w.report.Properties {
		if shown := &w.report.Properties[i]; shown.Record == r.Payload.RecordID {
			said = append(said, w.proof(shown))
		}
	}
	if len(said) > 0 {
		said = append(said, w.Say("statement.hidden.own_word"))
	}
	if f := w.answers.For(verify.Property, r.Payload.RecordID); f.Status != verify.Proved {
		said = append(said, w.Say("statement.hidden.doubt."+string(f.Status), "reason", w.reason(f)))
	}
	return w.join(said...)
}

// Proofs says what each proof of a report shows, in the report's order. Like the statement, it says so only of records whose content and author
// are proved.
func Proofs(report *verify.Report, lang words.Lang) (said []string) {
	w := &writer{tongue: in(lang), report: report, answers: report.Answers()}
	for i := range report.Properties {
		shown := &report.Properties[i]
		if one := w.proof(shown); one != "" && w.proved(shown.Record, verify.Content, verify.Authentication) {
			said = append(said, one)
		}
	}
	return said
}

// proof says what one proof shows. It returns "" for a statement of a form that it does not know.
func (w *writer) proof(shown *verify.ShownProperty) string {
	s, err := property.ParseStatement(shown.Statement)
	if err != nil {
		return ""
	}
	said := w.Say("statement.hidden."+string(s.Form), "pointer", word(s.Members[0].Pointer), "lo", value(s.Lo), "hi", value(s.Hi), "set", w.values(s.Set),
		"years", s.Years, "at", word(s.At))
	if said != "" && s.Audience != "" {
		said = w.join(said, w.Say("statement.hidden.audience", "audience", quoted(quote(s.Audience))))
	}
	return said
}

// value writes a value of a statement: text in quotes, and other values as they stand in JSON.
func value(v jsontext.Value) string {
	if v.Kind() == '"' {
		return quoted(v)
	}
	return inert(shortened(string(v)))
}

func quote(text string) jsontext.Value {
	v, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return jsontext.Value(`""`) // the statement was read from JSON, so its text is valid
	}
	return v
}

func (w *writer) values(set []jsontext.Value) string {
	var list []string
	for _, v := range set[:min(len(set), mostValues)] {
		list = append(list, value(v))
	}
	if more := len(set) - len(list); more > 0 {
		list = append(list, w.Say("statement.hidden.more", "n", more))
	}
	return strings.Join(list, w.Say("statement.hidden.between"))
}
