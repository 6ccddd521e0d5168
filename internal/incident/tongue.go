package incident

import (
	"cmp"
	"strings"

	"jurat/evidence"
	"jurat/internal/words"
	"jurat/jury"
	"jurat/verify"
)

// A tongue is what statements are written from in one language.
type tongue struct {
	words.Texts
	lang words.Lang
}

func in(lang words.Lang) tongue { return tongue{words.Of(lang), lang} }

// join makes a paragraph of the sentences that are not empty.
func (t tongue) join(sentences ...string) string {
	var said []string
	for _, s := range sentences {
		if s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, t.Say("statement.between"))
}

// named names a value. One without a name in the language is shown as it was sealed.
func (t tongue) named(kind, value string) string { return cmp.Or(t.Say(kind+"."+value), word(value)) }

func (t tongue) action(a evidence.ActionType) string { return t.named("action", string(a)) }

func (t tongue) role(r evidence.Role) string { return t.named("role", string(r)) }

func (t tongue) position(p jury.Position) string { return t.named("sealed_position", string(p)) }

func (t tongue) approval(s evidence.ApprovalStatus) string { return t.named("approval", string(s)) }

func (t tongue) method(m jury.Method) string { return t.named("sealed_method", string(m)) }

// reason says why a finding is what it is.
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
