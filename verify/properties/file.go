package properties

import "jurat/evidence"

// Bounds of what a report lists.
const (
	maxShown     = 1000
	maxShownSize = 1 << 20 // bytes of statements
)

// A File sums up what the records of a file show. Make one with [NewFile].
type File struct {
	Carried int     // proofs
	Proved  int     // of these, that hold
	Shown   []Shown // the first of these

	demands []*demanded
	known   Known
	size    int
	doubt   func(record string, d *Doubt)
}

// NewFile returns a File of a reader with these demands. It hands each doubt on with the id of the record that it is about, or "".
func NewFile(demands []*Demand, doubt func(record string, d *Doubt)) *File {
	f := &File{doubt: doubt}
	for _, d := range demands {
		f.demands = append(f.demands, &demanded{Demand: d})
	}
	return f
}

// Take takes in what was found about the next record.
func (f *File) Take(r *evidence.Record, found Found) {
	f.Carried += found.Carried
	f.known.Add(r)
	for i, k := range found.known {
		if doubt := f.demands[i].ask(r, k); doubt != nil {
			f.doubt(r.Payload.RecordID, doubt)
		}
	}
	for i := range found.Shown {
		f.take(r.Payload.RecordID, &found.Shown[i], nil)
	}
	for i := range found.Doubts {
		f.take(r.Payload.RecordID, nil, &found.Doubts[i])
	}
	if doubt := f.known.Later(found.Open); doubt != nil {
		f.take(r.Payload.RecordID, nil, doubt)
	}
}

func (f *File) take(record string, shown *Shown, doubt *Doubt) {
	if doubt != nil {
		f.doubt(record, doubt)
		return
	}
	f.Proved++
	for _, d := range f.demands {
		d.show(shown.statement)
	}
	if f.size += len(shown.Statement); f.size <= maxShownSize && len(f.Shown) < maxShown {
		f.Shown = append(f.Shown, *shown)
	}
}

// Joint checks the proofs about several records, when all records are known.
func (f *File) Joint() { f.known.Joint(f.take) }

// Answers says of each demand what came of it. complete says whether the chains of the file are proved complete. Call it last.
func (f *File) Answers(complete bool) (answers []Answer) {
	for _, d := range f.demands {
		answers = append(answers, d.answer(complete, f.doubt))
	}
	return answers
}
