package words

import (
	"cmp"
	"slices"
	"strconv"
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
