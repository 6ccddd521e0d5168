package openapi

import (
	"reflect"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/access"
	"jurat/internal/jsonschema"
	"jurat/internal/subject"
	"jurat/jury"
	"jurat/property"
	"jurat/reputation"
	"jurat/verify"
)

// Enumerations returns the values of the types of strings that travel. A test compares them with the constants.
func Enumerations() jsonschema.Enums {
	enums := jsonschema.Enums{}
	of(enums, api.Queued, api.UnderWay, api.Over, api.BrokenOff, api.Cancelled)
	of(enums, api.GrantGood, api.GrantExpired, api.GrantRevoked)
	of(enums, jury.SafePass, jury.NeedsReview, jury.UnsafeFail)
	of(enums, jury.ByJury, jury.ByPerson)
	of(enums, jury.MajorityVote, jury.WeightedAverage, jury.FinalJudge, jury.Median, jury.Calibrated)
	of(enums, jury.Initial, jury.Repetition, jury.Discussion, jury.Judging)
	of(enums, jury.RequestDone, jury.RequestPartly, jury.RequestNotDone, jury.RequestDeclined, jury.RequestOpen)
	of(enums, jury.AnsweredYes, jury.AnsweredNo, jury.Unclear)
	of(enums, jury.Minor, jury.Major, jury.Critical)
	of(enums, jury.TimedOut, jury.Blocked, jury.Invalid, jury.Failed, jury.Ceiling)
	of(enums, jury.Unanimous, jury.Majority, jury.Split)
	of(enums, jury.TurnedByTalk, jury.OneExtreme, jury.JudgeMilder)
	of(enums, evidence.Approved, evidence.ApprovedWithModifications, evidence.Rejected)
	of(enums, evidence.ActionTypes()...)
	of(enums, evidence.Roles()...)
	of(enums, evidence.Vantages()...)
	of(enums, evidence.JudgedAgent)
	of(enums, evidence.ByBytes, evidence.Parsed, evidence.ByAttributes)
	of(enums, evidence.Complete, evidence.UpstreamError, evidence.UpstreamCut, evidence.ClientGone, evidence.RecorderCut, evidence.LostInCrash)
	of(enums, evidence.Asked, evidence.Answered)
	of(enums, observed.Start, observed.Stop, observed.Heartbeat, observed.ModeChanged, observed.Configuration, observed.Gap, observed.LostInCrash, observed.ToolDefinitionChanged)
	of(enums, observed.Closed, observed.Passing)
	of(enums, subject.System, subject.User, subject.Assistant, subject.Tool, subject.Reviewer, subject.Operator, subject.Recorder)
	of(enums, verify.Proved, verify.NotProved, verify.Refuted)
	of(enums, reputation.People, reputation.Models, reputation.Rules)
	of(enums, reputation.Scored, reputation.TooFew, reputation.Uncounted, reputation.Incomplete, reputation.Unproved)
	of(enums, reputation.TheRecord, reputation.TheTrial, reputation.TheVerdict, reputation.TheDecision, reputation.TheReview, reputation.TheRevocation)
	return enums
}

func of[T ~string](enums jsonschema.Enums, values ...T) {
	t := reflect.TypeFor[T]()
	for _, value := range values {
		enums[t] = append(enums[t], string(value))
	}
}

// refine describes what the types of package api leave open, because programs write it as plain strings. What the server
// reads has no other members.
func refine(s *jsonschema.Schemas, routes []Route) {
	s.Member("Problem", "type", textOf(problems()))
	s.Member("Review", "approval_status", s.Of(reflect.TypeFor[evidence.ApprovalStatus]()))
	s.Member("Entry", "action_type", s.Of(reflect.TypeFor[evidence.ActionType]()))
	s.Member("Entry", "role", s.Of(reflect.TypeFor[evidence.Role]()))
	s.Member("Grant", "roles", jsonschema.Object{"type": "array", "items": textOf(access.Roles())})
	s.Member("Property", "form", textOf([]property.Form{property.Range, property.In, property.NotIn, property.AgeAtLeast}))
	for _, route := range routes {
		if t := reflect.TypeOf(route.In); t != nil && t.Kind() == reflect.Struct {
			s.Closed(strings.TrimPrefix(s.Of(t)["$ref"].(string), jsonschema.Reference("")["$ref"].(string)))
		}
	}
}

func textOf[T ~string](values []T) jsonschema.Object {
	return jsonschema.Object{"type": "string", "enum": values}
}

func problems() (types []string) {
	for _, p := range api.Problems() {
		types = append(types, p.Type)
	}
	return types
}
