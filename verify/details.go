package verify

// The details of a report are bounded, because the sender of a file chooses how much there is to find against it. The worst finding of each
// record under each guarantee always has room.
const (
	roomOfFile   = 32 << 20 // bytes of details that a file has for all of its records
	roomOfRecord = 512      // and for each record, beside the worst under each guarantee
	sizeOfDetail = 80       // a Finding without its texts
	sizeOfText   = 64       // what is needed to know a text again
)

// notTold is the reason of a finding for whose own reason there was no room.
const notTold = "the reason is left out: there are more reasons in this file than a report holds"

// details decides which findings are kept, and keeps each reason once, however many records it is told of.
type details struct {
	room    int
	reasons map[string]string
	worst   map[string]tally // by record id
	leftOut int
}

func newDetails() *details {
	return &details{room: roomOfFile, reasons: map[string]string{}, worst: map[string]tally{}}
}

// A tally holds, for one record, the worst status under each guarantee, in two bits each.
type tally uint32

func (t tally) of(g Guarantee) int { return int(t >> (2 * placeOf[g]) & 3) }

func (t tally) with(g Guarantee, rank int) tally {
	return t&^(3<<(2*placeOf[g])) | tally(rank)<<(2*placeOf[g])
}

// placeOf is where a guarantee stands in a tally.
var placeOf = func() map[Guarantee]int {
	places := map[Guarantee]int{}
	for i, g := range allGuarantees {
		places[g] = i
	}
	return places
}()

// admit returns a finding as it is to be kept, or false if there is no room for it.
func (d *details) admit(f Finding) (Finding, bool) {
	worst := f.Record == "" || rank[f.Status] > d.worst[f.Record].of(f.Guarantee)
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
		d.worst[f.Record] = d.worst[f.Record].with(f.Guarantee, rank[f.Status])
	}
	return f, true
}

// keep adds what was found, as far as there is room.
func (c *check) keep(list []Finding, found ...Finding) []Finding {
	if c.details == nil { // of one record, which is looked at by itself
		return append(list, found...)
	}
	for _, f := range found {
		if f, kept := c.details.admit(f); kept {
			list = append(list, f)
		}
	}
	return list
}
