package jury

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

// Ballot returns how the jury stands now: the position that most hold, and each seat's vote. It is nil before the first opening.
func (t *Tally) Ballot() *Ballot {
	if t.settings == nil {
		return nil
	}
	return &Ballot{prevailing(t.standing), votesOf(t.settings.Seats, t.standing)}
}
