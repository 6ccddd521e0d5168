package jury

// Votes are the jury's votes at three moments. Moments that have not come yet are nil.
type Votes struct {
	AfterPhase1     *Ballot `json:"afterPhase1"`
	AfterDiscussion *Ballot `json:"afterDiscussion"` // after the last round; nil also if there was no discussion
	Final           *Ballot `json:"final"`           // as the final judgment counted them, with its verdict
}

// A Ballot is the jury's votes at one moment.
type Ballot struct {
	Verdict Position `json:"verdict"` // the majority's, needs_review on a tie; in the final ballot, the judgment's
	Votes   []Vote   `json:"votes"`   // by seat
}

// Ballot returns the jury's current votes: the most common position, and each seat's vote. It returns nil before the
// first opening.
func (t *Tally) Ballot() *Ballot {
	if t.settings == nil {
		return nil
	}
	return &Ballot{prevailing(t.standing), votesOf(t.settings.Seats, t.now())}
}
