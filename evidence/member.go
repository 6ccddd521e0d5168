package evidence

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// read stores one member. Its value must be of the kind that the format demands.
func (p *Payload) read(name string, v jsontext.Value) (err error) {
	switch name {
	case "schema":
		p.Schema, err = readOneOf(v, Schema)
	case "record_id":
		p.RecordID, err = readRecordID(v)
	case "action_type":
		p.ActionType, err = readAction(v)
	case "signers":
		p.Signers, err = readSigners(v)
	case "agent_id":
		p.AgentID, err = readName(v)
	case "reviewer_id":
		p.ReviewerID, err = readName(v)
	case "request_id":
		p.RequestID, err = readName(v)
	case "timestamp":
		p.Timestamp, err = readTime(v)
	case "model":
		p.Model, err = readName(v)
	case "model_version":
		p.ModelVersion, err = readName(v)
	case "prompt":
		p.Prompt, err = readContent(v)
	case "context":
		p.Context, err = readContent(v)
	case "response":
		p.Response, err = readContent(v)
	case "parameters":
		p.Parameters, err = readKind(v, "an object")
	case "tools_used":
		p.ToolsUsed, err = readKind(v, "an array", "a string") // a string is a commitment: see checkRelations
	case "metadata":
		p.Metadata, err = readKind(v, "an object")
	default:
		err = p.readLink(name, v)
	}
	return err
}

// readLink stores the members that place an act among others.
func (p *Payload) readLink(name string, v jsontext.Value) (err error) {
	switch name {
	case "chain_id":
		p.ChainID, err = readName(v)
	case "chain_position":
		p.ChainPosition, err = readPosition(v)
	case "previous_agent":
		p.PreviousAgent, err = readName(v)
	case "next_agent":
		p.NextAgent, err = readName(v)
	case "parent_request_id":
		p.ParentRequestID, err = readName(v)
	case "previous_record":
		p.PreviousRecord, err = readDigest(v)
	case "saw":
		p.Saw, err = readDigests(v)
	case "case":
		p.Case, err = readDigest(v)
	case "request_digest":
		p.RequestDigest, err = readDigest(v)
	case "original_response_id":
		p.OriginalResponseID, err = readName(v)
	case "modified_response":
		p.ModifiedResponse, err = readContent(v)
	case "changes":
		p.Changes, err = readContent(v)
	case "approval_status":
		p.ApprovalStatus, err = readOneOf(v, Approved, ApprovedWithModifications, Rejected)
	case "sealed_apart":
		p.SealedApart, err = readStrings(v)
	case "observed":
		p.Observed, err = readObserved(v)
	case "request_body":
		p.RequestBody, err = readBody(v)
	case "response_body":
		p.ResponseBody, err = readBody(v)
	case "provable":
		p.Provable, err = readProvable(v)
	default:
		err = errors.New("unknown; a member of your own goes into metadata")
	}
	return err
}
