package verify

import "jurat/verify/assurance"

// The details of a report are bounded, because the sender of a file controls how many findings there are. The worst
// finding of each record under each guarantee always has room.
const (
	roomOfFile   = 32 << 20 // bytes of details for the whole file
	roomOfRecord = 512      // and per record, besides its worst finding under each guarantee
	sizeOfDetail = 80       // size of a Finding without its texts
	sizeOfText   = 64       // cost of remembering one text
)

// notTold replaces the reason of a finding when there is no room for its reason.
const notTold = "the reason is left out: this file has more reasons than a report can hold"

// details decides which findings the report keeps. It stores each reason once, however many records share it.
type details struct {
	room    int
	reasons map[string]string
	worst   map[string]tally // by record id
	leftOut int
}

func newDetails() *details {
	return &details{room: roomOfFile, reasons: map[string]string{}, worst: map[string]tally{}}
}

// A tally holds the worst status of one record under each guarantee, two bits per guarantee.
type tally uint64

func (t tally) of(g Guarantee) int { return int(t >> (2 * placeOf[g]) & 3) }

func (t tally) with(g Guarantee, rank int) tally {
	return t&^(3<<(2*placeOf[g])) | tally(rank)<<(2*placeOf[g])
}

// placeOf is the index of a guarantee in a tally.
var placeOf = func() map[Guarantee]int {
	places := map[Guarantee]int{}
	for i, g := range assurance.Guarantees() {
		places[g] = i
	}
	return places
}()

// admit returns the finding in the form in which the report keeps it, or false if there is no room.
func (d *details) admit(f Finding) (Finding, bool) {
	worst := f.Record == "" || f.Status.Rank() > d.worst[f.Record].of(f.Guarantee)
	cost := 0
	if !worst {
		cost = sizeOfDetail
	}
	reason, known := d.reasons[f.Reason]
	if !known {
		reason, cost = f.Reason, cost+len(f.Reason)+sizeOfText
	}
	switch {
	case cost <= d.room:
		d.room -= cost
		d.reasons[reason] = reason
	case worst:
		reason = notTold
	default:
		d.leftOut++
		return f, false
	}
	f.Reason = reason
	if worst && f.Record != "" {
		d.worst[f.Record] = d.worst[f.Record].with(f.Guarantee, f.Status.Rank())
	}
	return f, true
}

// keep appends findings as long as there is room.
func (c *check) keep(list []Finding, found ...Finding) []Finding {
	if c.details == nil { // a single record needs no bound
		return append(list, found...)
	}
	for _, f := range found {
		if f, kept := c.details.admit(f); kept {
			list = append(list, f)
		}
	}
	return list
}
