package evidence

import "testing"

const (
	cancelledBody = `{"by":"A. Person","event":"cancelled","reason":"submitted by mistake","trial":"trial-1"}`
	resumedBody   = `{"by":"A. Person","event":"resumed","reason":"it was none","trial":"trial-1"}`
	takenBody     = `{"by":"A. Person","event":"taken","record":"019b76da-a800-7af4-9dc1-0b1e7f1aa123","reviewer":"Mia Brandt","trial":"trial-1"}`
	leftBody      = `{"by":"A. Person","event":"left","reason":"on leave","record":"019b76da-a800-7af4-9dc1-0b1e7f1aa123","reviewer":"Mia Brandt","trial":"trial-1"}`
)

func trialVectors(t *testing.T) []actVector {
	t.Helper()
	return makeActs(t, "trial", TrialEvent, OperatorPrefix+"trials", [][2]string{{"cancelled", cancelledBody}, {"resumed", resumedBody}, {"taken", takenBody}, {"left", leftBody}}, []badAct{
		{"an event that is none", takenBody, `"taken"`, `"paused"`},
		{"without an event", takenBody, `"event":"taken",`, ``},
		{"by nobody", takenBody, `"A. Person"`, `""`},
		{"without by", cancelledBody, `"by":"A. Person",`, ``},
		{"cancelled for no reason", cancelledBody, `"reason":"submitted by mistake",`, ``},
		{"resumed for an empty reason", resumedBody, `it was none`, ``},
		{"left for an empty reason", leftBody, `on leave`, ``},
		{"left for a reason that is null", leftBody, `"on leave"`, `null`},
		{"cancelled, with a reviewer", cancelledBody, `"trial":`, `"reviewer":"Mia Brandt","trial":`},
		{"cancelled, with a record", cancelledBody, `"trial":`, `"record":"019b76da-a800-7af4-9dc1-0b1e7f1aa123","trial":`},
		{"taken by no reviewer", takenBody, `"reviewer":"Mia Brandt",`, ``},
		{"taken by a reviewer without a name", takenBody, `"Mia Brandt"`, `" "`},
		{"taken by two lines", takenBody, `Mia Brandt`, `Mia\nBrandt`},
		{"nothing taken", takenBody, `"record":"019b76da-a800-7af4-9dc1-0b1e7f1aa123",`, ``},
		{"a digest taken", takenBody, `019b76da-a800-7af4-9dc1-0b1e7f1aa123`, aDigest},
		{"left without a record", leftBody, `"record":"019b76da-a800-7af4-9dc1-0b1e7f1aa123",`, ``},
		{"taken of no trial", takenBody, `"trial-1"`, `"order-17"`},
		{"without a trial", takenBody, `,"trial":"trial-1"`, ``},
		{"with a member more", takenBody, `"by"`, `"at":1,"by"`},
	})
}
