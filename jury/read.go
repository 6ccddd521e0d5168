package jury

import "jurat/evidence"

// ReadAct reads the act from a record of a trial. It does not check the act's place: Replay and package verify do.
// Its errors are those of DecodeBody.
func ReadAct(r *evidence.Record) (Act, error) {
	p := &r.Payload
	a := Act{Digest: r.Digest, Type: p.ActionType, Position: p.ChainPosition, Previous: p.PreviousRecord, Saw: p.Saw,
		Request: p.RequestDigest, Origin: Origin{Model: p.Model, ModelVersion: p.ModelVersion, Parameters: p.Parameters,
			Metadata: p.Metadata}}
	if role := p.Role(); role == evidence.RoleJuror || role == evidence.RoleJudge {
		a.Actor = p.AgentID
	}
	if p.ActionType == evidence.Submission {
		return a, nil // its content is the evidence, which jurors read
	}
	body, err := DecodeBody(p.ActionType, p.Response)
	a.Body = body
	return a, err
}
