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
//
// # Money is set aside before it is spent
//
// Calls of a phase are made at the same time: a ceiling that looked only at what was spent would let all of them through. What may
// be too much is not asked for, which is an act, and not a crash.
//
// # A deadline ends a juror, not the trial
//
// Whoever is late is absent, the trial goes on, and what it came to is recorded. Only a person's interruption stops it, and then it
// goes on another time.
//
// # A prompt is a function of the records
//
// `jury.BriefOf` gives what a seat was given, `model.Prompt` the words, `model.Follow` what was said after an answer that did not
// count, all to the byte. So nothing has to be sealed twice, and whoever doubts what a juror was asked builds it again. The
// template's digest in the seat covers the words, the version of the code around them, and the edition of Unicode that says which
// characters do not show.
//
// # Evidence is data, by its form
//
// It stands between two lines with a boundary of 128 bits, derived from the digest of the submission's act: that has a random id and
// was sealed when the evidence was written. Every line of the record begins with a bar, every heading is the clerk's and has only
// numbers and fixed words, so that inside the frame, too, nobody can speak as another message. What does not show is written as its
// code point. Nothing that the accused or a juror wrote stands in the system text, which is the same whatever they wrote; the
// evidence comes first in the user's text and is the same to the byte for every seat, phase and round, which lets providers reuse
// what they read.
//
// # The canary
//
// Two tokens that no writer of evidence can know: a code that every answer must carry, derived from the request, and a guard inside
// the frame that no answer may carry. A model that does what the record dictates tends to give the answer that the record dictates,
// without the code, or to recite what stands around it. Such an answer is withdrawn rather than corrected: the juror does not see it
// again, is asked once more, and has no valid answer if it happens twice. The trial is then degraded, which is better than a verdict
// that the accused wrote. That somebody spoke to the jurors is reported where it can be located, under a name of its own, and said
// to be the program's addition.
//
// # Peers without names
//
// Jurors are shown as letters, in an order that hashes of the request give, another one for each reader and round: neither a
// vendor's name nor a place in the row speaks for an argument. In records they have their ids again.
//
// # Shortening is one rule for all seats
//
// `jurat/shorten/v1`: what counts are the bytes of the texts of the evidence (card, messages, names and arguments of calls, state of
// the task). Above the limit, results of tools are cut to the greatest common length that suffices, but to no less than 400 bytes;
// if that does not suffice, what the agent says, likewise. What users and operators say and the calls themselves are never cut, so
// evidence may stay above the limit. Beginning and end are kept, half and half and in whole characters; a line that the record
// cannot write says how many characters are left out. Quotations are held against the whole.
//
// # Not defended against by any of this
//
// Not defended against by any of this a model that is persuaded by what it reads rather than commanded, and keeps to all forms; text
// that repeats the forms of honest findings; misconduct in the middle of a text that was cut; a vendor whose model was trained on
// the accused's phrases. Three vendors, votes without sight of each other, quotations that must stand, and the vetoes of the rubric
// are what stands against these. Jurors who know each other's style can tell each other apart.
package model
