package verify

import "jurat/evidence"

// Bounds of what a report lists.
const (
	maxShown     = 1000
	maxShownSize = 1 << 20 // bytes of statements
)

// A File sums up what the records of a file show. Make one with [NewFile].
type provedInFile struct {
	Carried int             // proofs
	Proved  int             // of these, that hold
	Shown   []ShownProperty // the first of these

	demands []*demanded
	size    int
	doubt   func(record string, d *proofDoubt)
}

// newProvedInFile returns a File of a reader with these demands. It hands each doubt on with the id of the record that it is about, or "".
func newProvedInFile(demands []*Demand, doubt func(record string, d *proofDoubt)) *provedInFile {
	f := &provedInFile{doubt: doubt}
	for _, d := range demands {
		f.demands = append(f.demands, &demanded{Demand: d})
	}
	return f
}

// Take takes in what was found about the next record.
func (f *provedInFile) Take(r *evidence.Record, found ProofsFound) {
	f.Carried += found.Carried
	for i, k := range found.known {
		if doubt := f.demands[i].ask(r, k); doubt != nil {
			f.doubt(r.Payload.RecordID, doubt)
		}
	}
	for i := range found.Doubts {
		f.doubt(r.Payload.RecordID, &found.Doubts[i])
	}
	for i := range found.Shown {
		f.show(&found.Shown[i])
	}
}

func (f *provedInFile) show(shown *ShownProperty) {
	f.Proved++
	for _, d := range f.demands {
		d.show(shown.statement)
	}
	if f.size += len(shown.Statement); f.size <= maxShownSize && len(f.Shown) < maxShown {
		f.Shown = append(f.Shown, *shown)
	}
}

// Answers says of each demand what came of it. Call it last.
func (f *provedInFile) Answers() (answers []DemandAnswer) {
	for _, d := range f.demands {
		answers = append(answers, d.answer(f.doubt))
	}
	return answers
}
