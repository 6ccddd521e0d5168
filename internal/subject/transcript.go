package subject

import (
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/observe"
)

// A Transcript turns the records of a log into the messages that a jury reads, one record after the other, without a bound on their number.
// It is for those who show a chain, of which a part may be enough.
type Transcript struct{ r *recording }

// NewTranscript returns an empty Transcript.
func NewTranscript() *Transcript {
	return &Transcript{newRecording()}
}

// Skip leaves out a record, but keeps its bytes, from which later records may copy.
func (t *Transcript) Skip(r *evidence.Record) {
	if r.Payload.Observed != nil {
		t.r.window.Read(observed.Open(r))
	}
}

// Take reads the next record, with its disclosures. It returns an error if the record cannot be evidence.
func (t *Transcript) Take(r *evidence.Record) error {
	e := NewExhibit(r)
	t.r.rebuilt = 0
	return t.r.take(&e)
}

// An Act is what one record adds to a conversation.
type Act struct {
	Messages []Message // those that were not shown before; those of the Part "observed" are notes for a jury

	// Of what a recorder saw:
	Repeated []int              // the numbers of the messages that its prompt repeats
	Again    int                // the number of the message that its answer repeats; 0: it repeats none
	Lacks    []Lack             // bytes that cannot be read
	Said     observe.Projection // what the bytes say; zero: they could not be read
}

// Acts returns what each record that was taken adds, by its digest. Results of tools know their calls, and calls their results.
func (t *Transcript) Acts() map[evidence.Digest]Act {
	acts := map[evidence.Digest]Act{}
	for _, m := range t.r.messages {
		act := acts[m.Record]
		act.Messages = append(act.Messages, m)
		acts[m.Record] = act
	}
	for digest, one := range t.r.shown {
		act := acts[digest]
		if act.Again = one.again; one.sight != nil {
			act.Lacks, act.Said = one.sight.lacks, one.sight.said
		}
		for _, stood := range one.repeated {
			act.Repeated = append(act.Repeated, stood.Number)
		}
		acts[digest] = act
	}
	return acts
}
