// Package model seats language models as jurors: a [Juror] asks an [llm.Model] of any vendor, and checks everything
// that the model answers.
//
// # What a model is asked
//
// [Prompt] turns a brief into a question. It depends on the brief alone: `jury.BriefOf` rebuilds a brief from the records of a trial,
// [Prompt] the question, and [Follow] the question after an invalid answer, all to the byte. So prompts need not be sealed as well.
// The seat holds the digest of the [Template]. What the accused or another juror wrote comes only in the user's message: first the
// evidence, with the same bytes for every seat, phase and round, so that providers can reuse it; then what the jurors said, then the task.
//
// # Evidence is data
//
// The evidence stands between two lines with a boundary of 128 bits, derived from the digest of the submission's act. That act has a
// random id and was sealed after the evidence was written, so its author cannot know the boundary. Each line of the record begins with
// a bar and a space. Headings have no bar; the program writes them from numbers and fixed words. So no message can imitate another one.
// Invisible characters, and those that change how others show, are written as their code points. A quotation counts in its original or
// its shown form; the original is recorded.
//
// # The canary
//
// Two tokens are unknown to every author of evidence. A code, derived from the digest of the request, must be in every answer. A guard
// stands inside the frame of the evidence; no answer may carry it, or a boundary. A model that obeys the record tends to give the answer
// that the record dictates, without the code, or to recite the text around it. Such an answer does not count, and the juror is asked once
// more, without seeing it. A juror that trips the canary twice has no valid answer, which degrades the trial; that is better than a verdict
// that the accused wrote. To its next valid answer the program adds findings, marked so, where the record addresses its judges.
//
// # Work before scores
//
// Where the brief says so, a juror fills in tables before it scores, once, before it has heard anybody: readers that do so judge better
// than readers that score at once. Then come findings, the rationale, a described level for each axis, and the position last. The program
// computes points from the levels: models drift on long scales.
//
// # Each seat reads in its own order
//
// The reading of a seat orders its task, its tables and the axes, in the prompt and in the schema. A seat that is asked again gets another
// order, and no hint at its first answer. A juror that judges by the order contradicts itself then.
//
// # Peers
//
// A juror sees the others as Juror A, Juror B, and so on, in an order that follows from the digest of the request: neither a vendor's name
// nor a fixed place gives weight to an argument. In the first round it sees what others found that stands, and not how they judge; later
// positions and statements. It never sees points, levels and confidence of others, nor a count of heads: readers follow numbers.
//
// # Answers
//
// An answer is JSON by a schema and is read strictly. A juror whose answer is invalid is asked again with the reason, at most twice. A valid
// answer that the evidence does not bear out is objected to once. After that it stands, with its quotations marked.
//
// # Passages that give instructions
//
// Below the evidence the program repeats passages that the agent did not write and that address their reader as an instruction, the same
// for every seat. Their heading says that a program chose them, and may be wrong.
//
// # Money is set aside before it is spent
//
// The calls of a phase run at the same time, so a ceiling that looked only at what was spent would let all of them through. Each call first
// sets aside the most that it may cost. One that could exceed the budget is not made.
//
// # A deadline ends a juror, not the trial
//
// A juror that misses its deadline is absent, and the trial goes on.
//
// # Shortening is one rule for all seats
//
// See [Shorten].
//
// # What this does not prevent
//
// A model can be persuaded by what it reads, and keep to all forms. Text can repeat the forms of honest findings. Misconduct can be in the
// part of a text that was cut. A vendor's model may have been trained on the accused's phrases. Against these there are three vendors, votes
// without sight of each other, quotations that must stand, and the vetoes of the rubric. Jurors that know each other's style can recognize each other.
package model
