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
	lang  words.Lang
	says  *words.Statement
	terms *words.Terms
}

func in(lang words.Lang) tongue { return tongue{lang, words.StatementIn(lang), words.TermsIn(lang)} }

// join makes a paragraph of the sentences that are not empty.
func (t tongue) join(sentences ...string) string {
	var said []string
	for _, s := range sentences {
		if s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, string(t.says.Between))
}

// A value without words in the language is shown as it was sealed.

func (t tongue) action(a evidence.ActionType) string {
	return cmp.Or(t.terms.Actions.Of(a), word(string(a)))
}

func (t tongue) role(r evidence.Role) string { return cmp.Or(t.terms.Roles.Of(r), word(string(r))) }

func (t tongue) position(p jury.Position) string {
	return cmp.Or(t.terms.Positions.Of(p).Sealed, word(string(p)))
}

func (t tongue) approval(s evidence.ApprovalStatus) string {
	return cmp.Or(t.terms.Approvals.Of(s), word(string(s)))
}

func (t tongue) method(m jury.Method) string { return cmp.Or(t.terms.Methods.Of(m), word(string(m))) }

// because returns the sentences about a guarantee of one record. For other guarantees, the sentence is the reason alone.
func (t tongue) because(g verify.Guarantee) *words.Doubts {
	switch g {
	case verify.Content:
		return &t.says.Because.Content
	case verify.Authentication:
		return &t.says.Because.Authentication
	case verify.Time:
		return &t.says.Because.Time
	}
	return &words.Doubts{NotProved: "{reason}", Refuted: "{reason}"}
}

// disclaim says what the report does not prove. An item without words in the language is shown in the report's words.
func (t tongue) disclaim(report *verify.Report) string {
	var items []string
	for _, item := range report.NotShown {
		items = append(items, cmp.Or(t.terms.NotShown.Of(item), item))
	}
	return t.says.Disclaimer.With("items", strings.Join(items, string(t.says.Nor)))
}
