// Package recorder seals the calls that a Go program makes to language models, or passes on for others. Each call becomes a signed and
// time-stamped record in a jurat log: who asked whom, the bytes of the request and of the answer, when, and how it ended.
//
//	r, err := recorder.Open(ctx, recorder.Options{Folder: "jurat-data", Agent: "support"})
//	if err != nil {
//		return err
//	}
//	defer r.Close(ctx)
//	client := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: r.Transport(nil)}))
//
// From then on every call of that client is recorded. The client, the SDK and the provider see the same bytes as before. The command
// 'jurat --data jurat-data records --recorded' lists what was recorded, 'jurat log prove CHAIN' writes a conversation into a file
// that a stranger verifies offline, and 'jurat trial --recorded CHAIN' has a jury try it.
//
// # Inside the program, or before it
//
// [Recorder.Transport] sees calls inside the agent's own process. Its records say so (vantage in_process): whoever can change the program can
// change what is recorded. [Recorder.Handler] is a proxy between agents and their providers, for agents in any language (vantage proxy). 'jurat
// record proxy' is that handler as a command.
//
// # Closed and open
//
// In closed mode, the default, no call is made that cannot be recorded: a call is in a journal on disk before it is forwarded, and its answer ends for the
// caller only when its record is in the log. If that fails, reading the answer's body fails with [ErrNotRecorded] in place of its end, and further calls fail
// until the log seals again. In open mode everything passes. What was missed is counted by agent and minute, and sealed later.
//
// # Agents and conversations
//
// [Options.Agent] is who speaks, unless the call's context says otherwise ([WithAgent]). A conversation is a chain of records. [WithChain] names
// it. Without a name, a call belongs to the conversation that its messages begin with, and otherwise begins one.
//
// # The end of a program
//
// Close seals what is left, and that the recorder stopped. If the program is killed instead, the next recorder on the same folder seals for each call that
// had begun that it was lost in the crash. So call Close when the last answer has been read.
//
// # What was said can be erased
//
// Texts are sealed apart, so that 'jurat erase' can destroy them and the record still verifies. [Options.InTheRecord] puts them into the record itself.
// Credentials are never kept, only a keyed fingerprint of each.
package recorder
