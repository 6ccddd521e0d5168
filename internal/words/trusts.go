package words

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"jurat/evidence"
	"jurat/verify/trust"
	"jurat/verify/vantage"
)

// Trusts are the sentences that say what a trust file means, and who stands behind signatures by it.
type Trusts struct {
	OwnKey, HeldKey, OwnCertified, HeldCertified Sentence

	NowRevoked, CertificateRevoked, NoReason Sentence

	KeyEnds, KeyRevoked, KeyWith             Sentence
	CA, CAOwner, CAOperator                  Sentence
	Asked, Short, Unasked                    Sentence
	Independent, OperatorClock, Ends, Listed Sentence
	Log, NoLog, Witnesses, NoWitness         Sentence

	ExchangeProved, ExchangeOne, ExchangeOpen, ExchangeDiffers Sentence // between agents, of which both sides have records
	ExchangeAlone, ExchangeDoubtful, ExchangeMore              Sentence
	WhyNoTime, WhyNoLog, WhyOneLog, WhyOneKey, WhyOneOwner     Sentence

	Rests, RestsOwners, RestsOperator, RestsCAs    Sentence
	RestsIndependent, RestsOperatorClock, RestsNot Sentence
}

// TrustsIn returns the sentences about trust files in a language.
func TrustsIn(l Lang) *Trusts { return in(l).trusts() }

// Seen says who saw the acts of a file that recorders saw, from where.
func Seen(l Lang, list []vantage.Seen) []string {
	var said []string
	for _, s := range list {
		sentence := TermsIn(l).Vantages.Of(s.Vantage)
		if s.Answered() {
			sentence = TermsIn(l).Vantages.Answered
		}
		if text := sentence.With("recorder", s.Recorder); !slices.Contains(said, text) {
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
	w, sentence := TrustsIn(l), Sentence("")
	switch owner := i.Custody == trust.ByOwner; {
	case i.By == trust.ByKey && owner:
		sentence = w.OwnKey
	case i.By == trust.ByKey:
		sentence = w.HeldKey
	case owner:
		sentence = w.OwnCertified
	default:
		sentence = w.HeldCertified
	}
	text := sentence.With("role", TermsIn(l).Roles.Of(i.Role), "name", i.Name, "ca", i.CA)
	if i.Revoked != nil {
		text += " " + Revoked(l, i.Revoked)
	}
	return text
}

// Revoked says that a key or certificate was revoked, for which reason of RFC 5280 (section 5.3.1), and that what it signed is older.
func Revoked(l Lang, r *trust.Revoked) string {
	w := TrustsIn(l)
	sentence := w.NowRevoked
	if r.Certificate != "" {
		sentence = w.CertificateRevoked
	}
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	return sentence.With("certificate", strconv.Quote(r.Certificate), "on", at(r.On), "reason", cmp.Or(r.Reason, string(w.NoReason)), "authority", r.Existed.Authority, "time", at(r.Existed.Time))
}
