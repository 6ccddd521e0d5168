package subject

// A Setting says how a user takes part in a conversation, as far as the log shows.
type Setting string

// The settings.
const (
	// Dialogue: the user spoke or acted after the agent did, so the user could have agreed, refused or corrected.
	Dialogue Setting = "dialogue"
	// Delegated: the user gave a task, the agent worked on it, and the user does not appear again. In the log, no user
	// could have agreed to a single act. The task itself is what they agreed to.
	Delegated Setting = "delegated task"
	// Ticket: there is no user. The agent works from its instructions and from what tools return.
	Ticket Setting = "no user"
)

// Setting returns how the user takes part. An agent that asks and goes on without waiting is in the setting Delegated,
// too. If that matters, look for its question.
func (c *Case) Setting() Setting {
	setting, acted := Ticket, false
	for i := range c.Messages {
		switch m := &c.Messages[i]; {
		case m.Role == Assistant:
			acted = true
		case m.Role == User && acted:
			return Dialogue
		case m.Role == User:
			setting = Delegated
		}
	}
	return setting
}
