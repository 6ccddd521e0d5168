package words

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"jurat/verify"
	"jurat/verify/assurance"
	"jurat/verify/trust"
)

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

func (t Texts) level(outcome verify.Status, l assurance.Level) string {
	if outcome == verify.Refuted {
		return t.Say("basis.refuted")
	}
	return cmp.Or(t.Say("basis.level."+string(l)), t.Say("basis.unproved"))
}

// orOpen returns a text, or for a key without one that this part is not proved.
func (t Texts) orOpen(key string) string { return cmp.Or(t.Say(key), t.Say("basis.open")) }

// keys says who keeps the keys of which roles.
func (t Texts) keys(b *assurance.Basis) string {
	if b.Keys == "" || len(b.Parties) == 0 {
		return t.Say("basis.open")
	}
	of := func(key string, is func(assurance.Party) bool) string {
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
		of("basis.keys.operator", func(p assurance.Party) bool { return p.Custody == trust.ByOperator }),
		of("basis.keys.owner", func(p assurance.Party) bool { return p.Custody == trust.ByOwner && p.By == trust.ByKey }),
		of("basis.keys.ca", func(p assurance.Party) bool { return p.Custody == trust.ByOwner && p.By == trust.ByCA }),
	}
	return strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), t.Say("basis.and"))
}

// Quoted quotes a name or a text from a file, so that nobody takes it for a sentence of the program.
func Quoted(text string) string { return strconv.Quote(text) }
