// Package model puts language models into the jury's chairs: a [Juror] asks an [llm.Model], whoever its vendor is, and
// takes its word for nothing.
//
// # What a model is asked
//
// [Prompt] turns a brief into a question. It is a function of the brief alone, so whoever has the records of a trial
// builds every prompt again to the byte, and with [Follow] also what was said to a juror whose answer did not count.
// The words are in templates, whose digest ([Template]) stands in the seat.
//
// The system text holds who the juror is, the rubric, the positions and how to cite. What the accused or another juror
// wrote never stands there: it comes in the user's message, the evidence first, the same bytes for every seat of a trial,
// then what the jurors said, then the task.
//
// # Evidence is data
//
// The evidence stands between two lines with a boundary that is derived from the digest of the submission's act. That
// act has a random id and a time, and was sealed when the evidence was written already. In between, each line of the record
// begins with a bar and a space; headings do not. Characters that do not show, or that change how others show, are shown as
// their code points. A quotation counts if it is in the message as it is or as it was shown; it is recorded as it is.
//
// # The canary
//
// Every answer must carry a code that stands in the task and is derived from the digest of the request. No answer may carry the
// token of the guard line inside the frame of the evidence, or a boundary. An answer that breaks either has tripped the
// canary: it does not count, and it is not shown to the juror again, who is asked once more. A juror who trips it twice has no
// valid answer. The next answer of that juror that counts gets findings of the rule "instructions-in-evidence" where
// the record speaks to whoever judges it, so far as that can be located.
//
// # Peers
//
// The other jurors are Juror A, Juror B, …, in an order that follows from the digest of the request, so that it is another one
// for each reader and round. Their ids are replaced by these names in what they said, and the other way round in what is
// recorded. The order is recorded with the act.
//
// # Answers
//
// An answer is JSON by a schema and is read strictly: no member too many, too few or null, every number held against the
// rubric, the total against the sum. An answer that does not count is asked for again with the reason, at most twice. A position
// other than safe_pass without any finding that stands in the evidence is asked about once, and then stays as it is, its
// findings marked.
package model
