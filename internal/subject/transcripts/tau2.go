package transcripts

import (
	"fmt"

	"jurat/internal/subject"
)

// simulations reads results of tau2-bench: {"simulations": [{"id", "messages", "reward_info", …}]}. See
// https://github.com/sierra-research/tau2-bench/blob/main/src/tau2/data_model/simulation.py.
func (t *reader) simulations(results members) error {
	list, err := t.file.elements(results.list["simulations"])
	if err != nil {
		return err
	}
	for i, at := range list {
		if len(t.found) == MaxCases {
			return t.file.ErrorAt(at.from, "", fmt.Sprintf("more than %d simulations: split the file", MaxCases))
		}
		pointer := fmt.Sprintf("/simulations/%d", i)
		one, err := t.file.members(at)
		messages, there := one.get("messages")
		from := &subject.Source{Kind: "tau2", ID: one.text("id")}
		if err == nil && !there {
			err = t.file.ErrorAt(at.from, pointer, "a simulation without messages")
		}
		if err == nil {
			err = t.room(messages)
		}
		if err != nil {
			t.wrong(from.String(), err)
			continue
		}
		t.conversation(from.String(), messages, pointer+"/messages", from)
	}
	return nil
}
