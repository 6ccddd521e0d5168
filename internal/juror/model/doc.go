// Package model seats language models as jurors: a [Juror] asks an [llm.Model] of any vendor, and checks everything
// that the model answers.
//
// # What a model is asked
//
// [Prompt] turns a brief into a question. It depends on the brief alone: `jury.BriefOf` rebuilds a brief from the
// records of a trial, [Prompt] the question, and [Follow] the question after an invalid answer, all to the byte. So
// the prompts need not be sealed as well, and a reader who doubts them builds them again. The seat holds the digest
// of the [Template]: it covers the words of the templates, the version of the code around them, and the edition of
// Unicode that says which characters are invisible.
//
// The system text holds nothing that the accused or another juror wrote. That comes in the user's message: first the
// evidence, then what the jurors said, then the task. The evidence has the same bytes for every seat, phase and round,
// so that providers can reuse what they read.
//
// # Evidence is data
//
// The evidence stands between two lines with a boundary of 128 bits, derived from the digest of the submission's act.
// That act has a random id and a time, and was sealed after the evidence was written, so the author of the evidence
// cannot know the boundary. Inside the frame, each line of the record begins with a bar and a space. Headings have no
// bar; the program writes them from numbers and fixed words. So no message can imitate another message. Invisible
// characters, and those that change how others show, are written as their code points. A quotation counts if it is in
// the message in its original or in its shown form; the original is recorded.
//
// # The canary
//
// Two tokens are unknown to every author of evidence. A code, derived from the digest of the request, must be in
// every answer. A guard stands inside the frame of the evidence; no answer may carry it, or a boundary. A model that
// obeys the record tends to give the answer that the record dictates, without the code, or to recite the text around
// it. Such an answer trips the canary: it does not count, the juror does not see it again, and is asked once more. A
// juror that trips it twice has no valid answer, and the trial is degraded; that is better than a verdict that the
// accused wrote. The juror's next valid answer gets findings of the rule "instructions-in-evidence" at the places
// where the record addresses its judges, if the program can locate them. These findings say that the program added
// them.
//
// # Work before scores
//
// Where the brief says so, a juror fills in tables before it scores: what the user asked for and what became of it;
// each call with consequences, the clause of the policy that governs it and the facts that the clause depends on; each
// amount that was announced or charged. Readers that do so judge better than readers that score at once. Then come
// findings, the rationale, a described level for each axis, and the position last. The program computes points and
// total from the levels: models drift on long scales. A passage that the record does not have is message 0 with an
// empty quotation, so no schema needs null. A juror fills in its tables once, before it has heard anybody.
//
// # Each seat reads in its own order
//
// The reading of a seat orders the steps of its task, its tables and the axes, in the prompt and in the schema. A seat
// that is asked again gets the same evidence in yet another order, with the sections, levels and positions reversed,
// and no hint at its first answer. A juror whose judgment depends on the order contradicts itself then.
//
// # Peers
//
// A juror sees the other jurors as Juror A, Juror B, and so on, in an order that follows from the digest of the
// request and is in the act. It differs between readers and rounds: neither a vendor's name nor a fixed place gives
// weight to an argument. The program replaces ids by these names in what the jurors said, and names by ids in what it
// records.
//
// In the first round a juror sees what others found that stands, and not how they judge. Later it sees positions and
// statements. It never sees the points, levels and confidence of others, nor a count of heads: readers follow numbers.
// A row or finding that was shown is not shown twice. The judge sees its own reading first, then the jury's.
//
// # Answers
//
// An answer is JSON by a schema and is read strictly: every member must be there, no other member may be, and none
// may be null. Levels and points are checked against the rubric. A juror whose answer is invalid is asked again with
// the reason, at most twice. A valid answer is objected to once, all objections together: a position other than
// safe_pass without a finding whose quotation is in the evidence; a call that the juror says is forbidden, without a
// clause or fact that stands; no calls listed although the record has some with consequences. After that the answer
// stands, with its quotations marked.
//
// # Passages that give instructions
//
// Below the evidence the program repeats passages of tools' results, and of what others gave the agent, that address
// their reader as an instruction. Package juror finds them, the same for every seat. Their heading says that a program
// chose them, and may be wrong.
//
// # Money is set aside before it is spent
//
// The calls of a phase run at the same time, so a ceiling that looked only at what was spent would let all of them
// through. Each call first sets aside the most that it may cost. A call that could exceed the budget is not made; its
// act records that.
//
// # A deadline ends a juror, not the trial
//
// A juror that misses its deadline is absent, the trial goes on, and the closing records the result. Only the
// interruption of the process stops a trial, and the trial continues later.
//
// # Shortening is one rule for all seats
//
// See [Shorten].
//
// # What this does not prevent
//
// A model can be persuaded by what it reads, and keep to all forms. Text can repeat the forms of honest findings.
// Misconduct can be in the part of a text that was cut. A vendor's model may have been trained on the accused's
// phrases. Against these there are three vendors, votes without sight of each other, quotations that must stand, and
// the vetoes of the rubric. Jurors that know each other's style can recognize each other.
package model
