package main

import (
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/words"
	"jurat/verify/trust"
)

// explainTrust explains a trust file.
func explainTrust(io stdio, name string, lang words.Lang) error {
	file, err := readTrust("trust file", name)
	if err != nil {
		return err
	}
	fingerprint, err := file.Fingerprint()
	if err != nil {
		return err
	}
	e := explainer{newPrinter(io.out), lang}
	e.p.line("%s: %s", e.p.bold(name), fingerprint)
	for i := range file.Keys {
		e.key(&file.Keys[i])
	}
	for i := range file.CAs {
		e.ca(&file.CAs[i])
	}
	for i := range file.Authorities {
		e.authority(&file.Authorities[i])
	}
	e.log(file)
	e.rests(file)
	return e.p.err
}

// An explainer writes what a trust file means.
type explainer struct {
	p    *printer
	lang words.Lang
}

func (e *explainer) say(indent, key string, pairs ...any) {
	e.p.text(indent, inert(words.Of(e.lang).Say(key, pairs...)))
}

func (e *explainer) key(k *trust.Key) {
	e.p.text("  ", inert(words.Identified(e.lang, k.Identified())))
	e.p.line("    %s", k.KeyID)
	if !k.NotAfter.IsZero() {
		e.say("    ", "trust.key_ends", "time", evidence.FormatTime(k.NotAfter))
	}
	if !k.Revoked.IsZero() {
		e.say("    ", "trust.key_revoked", "time", evidence.FormatTime(k.Revoked))
	}
	for _, with := range k.With {
		e.say("    ", "trust.key_with", "key", with)
	}
}

func (e *explainer) ca(ca *trust.CA) {
	var roles []string
	for _, role := range ca.Roles {
		roles = append(roles, words.Of(e.lang).Say("role."+string(role)))
	}
	e.say("  ", "trust.ca", "ca", ca.Name, "roles", strings.Join(roles, ", "))
	e.say("    ", "trust.ca."+string(ca.Custody))
	switch {
	case !ca.Asked():
		e.say("    ", "trust.unasked")
	case ca.Revocation == trust.ShortLived:
		e.say("    ", "trust.short")
	default:
		e.say("    ", "trust.asked")
	}
}

func (e *explainer) authority(a *trust.Authority) {
	e.say("  ", "trust.authority."+string(a.Clock), "authority", a.Name)
	for _, s := range a.Services {
		e.say("    ", "trust.listed", "territory", s.Territory, "sequence", s.List.Sequence, "issued", s.List.Issued.Format(time.DateOnly), "tsp", s.TSP[0])
	}
	if !a.NotAfter.IsZero() {
		e.say("    ", "trust.ends", "time", evidence.FormatTime(a.NotAfter))
	}
	if a.Asked() {
		e.say("    ", "trust.asked")
	} else {
		e.say("    ", "trust.unasked")
	}
}

func (e *explainer) log(file *trust.Trust) {
	for _, log := range file.Logs {
		name, _, _ := strings.Cut(log, "+")
		e.say("  ", "trust.log", "log", name)
	}
	switch {
	case len(file.Logs) == 0:
		e.say("  ", "trust.no_log")
	case len(file.Witnesses) == 0:
		e.say("    ", "trust.no_witness")
	default:
		e.say("    ", "trust.witnesses", "quorum", file.Quorum, "count", len(file.Witnesses))
	}
}

// rests sums up.
func (e *explainer) rests(file *trust.Trust) {
	owners, operators, independent := 0, 0, 0
	for _, k := range file.Keys {
		if k.Custody == trust.ByOwner {
			owners++
		} else {
			operators++
		}
	}
	for _, a := range file.Authorities {
		if a.Clock == trust.Independent {
			independent++
		}
	}
	e.say("", "trust.rests")
	for _, line := range []struct {
		count int
		of    string
	}{{owners, "trust.rests_owners"}, {operators, "trust.rests_operator"}, {len(file.CAs), "trust.rests_cas"}, {independent, "trust.rests_independent"}} {
		if line.count > 0 {
			e.say("  ", line.of, "count", line.count)
		}
	}
	switch {
	case len(file.Authorities) == 0:
		e.say("  ", "trust.rests_not")
	case independent == 0:
		e.say("  ", "trust.rests_operator_clock")
	}
}
