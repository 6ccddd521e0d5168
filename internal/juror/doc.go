// Package juror holds what all kinds of jurors share: the test of a quotation, time limits, the search for words that
// address the readers of the record, and the mapping of findings to a rubric's axes.
//
// Package model below it seats language models; they are the jury. Package rules seats jurors that apply fixed rules.
// They are a first sieve where no model is at hand, and the baseline that a jury of models has to beat.
package juror
