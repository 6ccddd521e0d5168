package words

import (
	"cmp"
	"strings"

	"jurat/evidence"
	"jurat/verify"
)

// A View is a report in a reader's language: what command, server, pages and portal show of it.
type View struct {
	Kind       string        `json:"kind"`
	Outcome    verify.Status `json:"outcome"`
	Said       string        `json:"said"`   // the outcome in words
	Came       string        `json:"came"`   // a trial's outcome, in words; "": not a trial, or not proved
	Rests      string        `json:"rests"`  // on whose word the proof rests; "": not said of such a file
	Wanted     []string      `json:"wanted"` // what the reader's policy demands, and what of it is not met
	Trusted    bool          `json:"trusted"`
	Trust      string        `json:"trust"`
	Records    int           `json:"records"`
	Mended     bool          `json:"mended"` // the file was not in canonical form
	Origin     string        `json:"origin"`
	Size       int64         `json:"size"` // of the log, if an origin is given
	Guarantees []Line        `json:"guarantees"`
	Identities []string      `json:"identities"` // who stands behind the signatures of agents, reviewers and recorders
	NotShown   []string      `json:"not_shown"`
}

// A Line is the answer for one guarantee.
type Line struct {
	Guarantee verify.Guarantee `json:"guarantee"`
	Name      string           `json:"name"`
	Asks      string           `json:"asks"`
	Status    verify.Status    `json:"status"`
	Said      string           `json:"said"`
	Reason    string           `json:"reason"`
	Record    string           `json:"record"` // "": all records
	More      int              `json:"more"`   // how many further findings say the same
	Others    []Line           `json:"others"` // other findings, the first of each kind
}

// ViewOf says in a language what a report says.
func ViewOf(l Lang, r *verify.Report) *View {
	t := Of(l)
	v := &View{Kind: t.Name("kind", string(r.Kind)), Outcome: r.Outcome, Said: t.Name("status", string(r.Outcome)), Rests: RestsOn(l, r), Wanted: wanted(t, r),
		Trusted: r.Trust != "", Trust: r.Trust, Records: r.Records, Mended: r.Mended, Identities: identities(l, r)}
	if r.TrialOutcome != nil {
		v.Came = Outcome(r.TrialOutcome, l)
	}
	if r.Log != nil {
		v.Origin, v.Size = r.Log.Origin, r.Log.Size
	}
	for _, f := range r.Guarantees {
		groups := r.Grouped(f)
		line := LineOf(l, groups[0])
		for _, other := range groups[1:] {
			line.Others = append(line.Others, LineOf(l, other))
		}
		v.Guarantees = append(v.Guarantees, line)
	}
	for _, item := range r.NotShown {
		v.NotShown = append(v.NotShown, t.Name("not_shown", item))
	}
	return v
}

// LineOf says in a language what was found.
func LineOf(l Lang, f verify.Group) Line {
	t, g := Of(l), string(f.Guarantee)
	return Line{Guarantee: f.Guarantee, Name: t.Name("guarantee", g), Asks: t.Say("asks." + g), Status: f.Status,
		Said: t.Name("status", string(f.Status)), Reason: Reason(l, f.Finding), Record: f.Record, More: f.More}
}

func identities(l Lang, r *verify.Report) (said []string) {
	for i := range r.Identities {
		if by := &r.Identities[i]; by.Role == evidence.RoleAgent || by.Role == evidence.RoleReviewer || by.Role == evidence.RoleRecorder { // a jury's are the operator's
			said = append(said, Identified(l, by))
		}
	}
	return said
}

// wanted says what the reader demanded of the basis, and which parts of that are not met. It is empty if nothing was demanded.
func wanted(t Texts, r *verify.Report) (said []string) {
	d := r.Demanded
	if d == nil {
		return nil
	}
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
