package words

import (
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/verify/bilateral"
)

// mostExchanges is how many pairs and differences are said in words. The report has them all.
const mostExchanges = 20

// Exchanges says which exchanges between agents the records of a log show from both sides. A log of "" stands for all logs of the report.
func Exchanges(l Lang, r *bilateral.Report, log string) []string {
	if r == nil {
		return nil
	}
	w, said, more, alone, doubtful := TrustsIn(l), []string(nil), 0, 0, 0
	add := func(sentence Sentence, asked, answered *bilateral.Sighting, why string) {
		switch {
		case log != "" && asked.Log != log && answered.Log != log:
		case len(said) == mostExchanges:
			more++
		default:
			said = append(said, sentence.With("time", evidence.FormatTime(asked.Began), "asked", Quoted(asked.Agent), "answered", Quoted(answered.Agent), "record", asked.Record, "other", answered.Record, "why", why))
		}
	}
	for i := range r.Pairs {
		p := &r.Pairs[i]
		sentence := w.ExchangeProved
		switch {
		case !p.Proved:
			sentence = w.ExchangeOpen
		case p.Witnesses < 2:
			sentence = w.ExchangeOne
		}
		add(sentence, &p.Asked, &p.Answered, w.reasons(p.Why))
	}
	for i := range r.Differences {
		add(w.ExchangeDiffers, &r.Differences[i].Asked, &r.Differences[i].Answered, "")
	}
	if more > 0 {
		said = append(said, w.ExchangeMore.With("count", more))
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
		said = append(said, w.ExchangeAlone.With("count", alone))
	}
	if doubtful > 0 {
		said = append(said, w.ExchangeDoubtful.With("count", doubtful))
	}
	return said
}

// reasons says why a pair is not proved, or one witness.
func (w *Trusts) reasons(why []bilateral.Reason) string {
	sentences := map[string]Sentence{bilateral.NoTime: w.WhyNoTime, bilateral.NoLog: w.WhyNoLog, bilateral.OneLog: w.WhyOneLog, bilateral.OneKey: w.WhyOneKey, bilateral.OneOwner: w.WhyOneOwner}
	var parts []string
	for _, reason := range why {
		if text := sentences[reason.Rule].With("what", reason.What); !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}
