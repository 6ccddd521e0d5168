package pages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/evidence"
	"jurat/jury"
)

// Asked returns the review that the form asks for by a decision, or an error with api.ErrInvalid. On a verdict the decision is a position; the jury's own position
// means approval.
func (r *Review) Asked(decision string) (api.Review, error) {
	asked := api.Review{ApprovalStatus: decision}
	if strings.TrimSpace(r.Draft.Reason) == "" {
		return asked, fmt.Errorf("%w: a decision needs a reason", api.ErrInvalid)
	}
	var err error
	if asked.Changes, err = json.Marshal(r.Draft.Reason); err != nil {
		return asked, err
	}
	if given := jury.Position(decision); r.Editable.Position != "" && slices.Contains(jury.Decidable(), given) {
		asked.ApprovalStatus = string(evidence.Approved)
		if given != r.Editable.Position {
			asked.ApprovalStatus, asked.ModifiedResponse = string(evidence.ApprovedWithModifications), []byte(jury.ModifiedVerdict(given))
		}
		return asked, nil
	}
	if r.Editable.Position != "" && decision == string(evidence.Rejected) && !r.Decided() {
		return asked, fmt.Errorf("%w: the jury neither passed nor failed the agent, so there is nothing to reject: pass or fail it", api.ErrInvalid)
	}
	modified, err := Modified(r.Record, r.Draft)
	if err != nil {
		return asked, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	switch status := evidence.ApprovalStatus(decision); {
	case status == evidence.Approved && modified != nil:
		return asked, fmt.Errorf("%w: the text was changed: approve it with the changes, or undo them", api.ErrInvalid)
	case status == evidence.ApprovedWithModifications && modified == nil:
		return asked, fmt.Errorf("%w: nothing was changed: approve it as it is, or change something", api.ErrInvalid)
	case status == evidence.ApprovedWithModifications:
		asked.ModifiedResponse = []byte(modified)
	}
	return asked, nil
}
