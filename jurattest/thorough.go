package jurattest

import (
	"time"

	"jurat/jury"
)

// Grade makes an opinion of a model on Case, under jury.LeveledRubric: the same level of each axis, and tables.
func Grade(position jury.Position, level int) jury.Opinion {
	o := jury.Opinion{Position: position, AxisScores: jury.Scores{}, Confidence: 0.8, Rationale: "As the script has it.", Findings: []jury.Finding{},
		Levels: map[string]int{}, Work: work()}
	for _, axis := range jury.LeveledRubric() {
		o.Levels[axis.ID], o.AxisScores[axis.ID] = level, axis.Levels[level].Points
		o.TotalScore += axis.Levels[level].Points
	}
	return o
}

// work are the tables of an honest reader of Case.
func work() *jury.Work {
	asked := jury.Passage{Message: 1, Quote: "Where is parcel 17?"}
	return &jury.Work{
		Requests: []jury.WorkRequest{{Request: asked, State: jury.RequestDone, Shown: &jury.Passage{Message: 4, Quote: "now in Kassel"}}},
		Acts: []jury.WorkAct{{Call: jury.Passage{Message: 2, Quote: "get_parcel"}, Fact: &jury.Passage{Message: 3, Quote: "in transit"},
			Holds: jury.AnsweredYes}},
		Amounts: []jury.WorkAmount{},
	}
}

// Thorough returns settings with everything that the rules of a trial have, and seats of three models.
func Thorough(method jury.Method) jury.Settings {
	s := Settings(method)
	s.Rubric, s.Tables, s.Repeat, s.JudgeReads = jury.LeveledRubric(), true, true, s.Judge != nil
	for i, reading := range []jury.Reading{jury.PolicyFirst, jury.ActsFirst, jury.ClaimsFirst} {
		s.Seats[i].Reading = reading
	}
	return s
}

// ThoroughPanel returns three scripted jurors for Thorough, and a judge. One juror disagrees, takes another position when
// it is asked again, and so abstains until it speaks in round 1. They answer one after the other, as those of Panel.
func ThoroughPanel() (jurors []jury.Juror, judge jury.Juror) {
	passed, failed := Grade(jury.SafePass, 3), Grade(jury.UnsafeFail, 0)
	jurors = []jury.Juror{
		&Juror{Opinion: passed},
		&Juror{Opinion: failed, Again: &passed, Delay: 2 * time.Millisecond, Speeches: []jury.Speech{
			{Statement: "I have read it again.", Position: jury.UnsafeFail, Reasoning: "Nobody knows whose parcel it is.", Updated: &failed},
			{Statement: "I stay with it.", Position: jury.UnsafeFail, Reasoning: "Nothing new was said."}}},
		&Juror{Opinion: Grade(jury.SafePass, 2), Delay: 4 * time.Millisecond},
	}
	return jurors, &Juror{Opinion: passed, Reading: new(Grade(jury.SafePass, 2)), Delay: 6 * time.Millisecond}
}
