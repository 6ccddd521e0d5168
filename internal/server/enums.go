package server

import (
	"reflect"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/access"
	"jurat/internal/subject"
	"jurat/jury"
	"jurat/property"
	"jurat/reputation"
	"jurat/verify"
)

// Enumerations returns the values of the types of strings that travel. A test compares them with the constants.
func Enumerations() schemaEnums {
	enums := schemaEnums{}
	enumerate(enums, api.Queued, api.UnderWay, api.Over, api.BrokenOff, api.Cancelled)
	enumerate(enums, api.GrantGood, api.GrantExpired, api.GrantRevoked)
	enumerate(enums, jury.SafePass, jury.NeedsReview, jury.UnsafeFail)
	enumerate(enums, jury.ByJury, jury.ByPerson)
	enumerate(enums, jury.MajorityVote, jury.WeightedAverage, jury.FinalJudge, jury.Median, jury.Calibrated)
	enumerate(enums, jury.Initial, jury.Repetition, jury.Discussion, jury.Judging)
	enumerate(enums, jury.RequestDone, jury.RequestPartly, jury.RequestNotDone, jury.RequestDeclined, jury.RequestOpen)
	enumerate(enums, jury.AnsweredYes, jury.AnsweredNo, jury.Unclear)
	enumerate(enums, jury.Minor, jury.Major, jury.Critical)
	enumerate(enums, jury.TimedOut, jury.Blocked, jury.Invalid, jury.Failed, jury.Ceiling)
	enumerate(enums, jury.Unanimous, jury.Majority, jury.Split)
	enumerate(enums, jury.TurnedByTalk, jury.OneExtreme, jury.JudgeMilder)
	enumerate(enums, evidence.Approved, evidence.ApprovedWithModifications, evidence.Rejected)
	enumerate(enums, evidence.ActionTypes()...)
	enumerate(enums, evidence.Roles()...)
	enumerate(enums, evidence.Vantages()...)
	enumerate(enums, evidence.JudgedAgent)
	enumerate(enums, evidence.ByBytes, evidence.Parsed, evidence.ByAttributes)
	enumerate(enums, evidence.Complete, evidence.UpstreamError, evidence.UpstreamCut, evidence.ClientGone, evidence.RecorderCut, evidence.LostInCrash)
	enumerate(enums, evidence.Asked, evidence.Answered)
	enumerate(enums, observed.Start, observed.Stop, observed.Heartbeat, observed.ModeChanged, observed.Configuration, observed.Gap, observed.LostInCrash, observed.ToolDefinitionChanged)
	enumerate(enums, observed.Closed, observed.Passing)
	enumerate(enums, subject.System, subject.User, subject.Assistant, subject.Tool, subject.Reviewer, subject.Operator, subject.Recorder)
	enumerate(enums, verify.Proved, verify.NotProved, verify.Refuted)
	enumerate(enums, reputation.People, reputation.Models, reputation.Rules)
	enumerate(enums, reputation.Scored, reputation.TooFew, reputation.Uncounted, reputation.Incomplete, reputation.Unproved)
	enumerate(enums, reputation.TheRecord, reputation.TheTrial, reputation.TheVerdict, reputation.TheDecision, reputation.TheReview, reputation.TheRevocation)
	return enums
}

func enumerate[T ~string](enums schemaEnums, values ...T) {
	t := reflect.TypeFor[T]()
	for _, value := range values {
		enums[t] = append(enums[t], string(value))
	}
}

// refine describes what the types of package api leave open, because programs write it as plain strings. What the server
// reads has no other members.
func refine(s *schemas, routes []describedRoute) {
	s.Member("Problem", "type", textOf(problems()))
	s.Member("Review", "approval_status", s.Of(reflect.TypeFor[evidence.ApprovalStatus]()))
	s.Member("Entry", "action_type", s.Of(reflect.TypeFor[evidence.ActionType]()))
	s.Member("Entry", "role", s.Of(reflect.TypeFor[evidence.Role]()))
	s.Member("Grant", "roles", schemaObject{"type": "array", "items": textOf(access.Roles())})
	s.Member("Property", "form", textOf([]property.Form{property.Range, property.In, property.NotIn, property.AgeAtLeast}))
	for _, route := range routes {
		if t := reflect.TypeOf(route.In); t != nil && t.Kind() == reflect.Struct {
			s.Closed(strings.TrimPrefix(s.Of(t)["$ref"].(string), schemaReference("")["$ref"].(string)))
		}
	}
}

func textOf[T ~string](values []T) schemaObject {
	return schemaObject{"type": "string", "enum": values}
}

func problems() (types []string) {
	for _, p := range api.Problems() {
		types = append(types, p.Type)
	}
	return types
}
