package jury

import "jurat/evidence"

// Votes are how the jury stood at three moments. What has not come yet is nil.
type Votes struct {
	AfterPhase1     *Ballot `json:"afterPhase1"`
	AfterDiscussion *Ballot `json:"afterDiscussion"` // when the last round was over; nil also where there was no discussion
	Final           *Ballot `json:"final"`           // as the final judgment counted them, with its verdict
}

// A Ballot is how the jury stood at one moment.
type Ballot struct {
	Verdict Position `json:"verdict"` // the majority's, needs_review on a tie; of the final one the judgment's
	Votes   []Vote   `json:"votes"`   // by seat
}

// ReadVotes finds the votes in the acts of a trial, however far it got. The error is a *Discrepancy.
func ReadVotes(acts []Act) (*Votes, error) {
	votes, tally := new(Votes), NewTally(evidence.Digest{})
	var talked *Ballot
	for _, act := range acts {
		if err := tally.Apply(act); err != nil {
			return nil, err
		}
		switch body := act.Body.(type) {
		case *Check:
			state := tally.State()
			now := &Ballot{state.Result.DiscussionVerdict, state.Standing}
			if body.Phase == Initial {
				votes.AfterPhase1 = now
			} else {
				talked = now
			}
		case *Opening:
			if body.Phase == Judging {
				votes.AfterDiscussion = talked
			}
		case *Judgment:
			votes.Final = &Ballot{body.Position, body.Votes}
		}
	}
	return votes, nil
}
