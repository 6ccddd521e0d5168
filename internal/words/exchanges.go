package words

import (
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/verify"
)

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
