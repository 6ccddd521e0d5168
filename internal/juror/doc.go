// Package juror holds what all jurors share, whoever answers for a seat: the test of a quotation, time limits, the search for
// words that speak to a reader of the record, and findings placed on a rubric's axes.
//
// Package model below it seats language models; they are the jury. Package rules seats jurors that are rules: a first sieve
// where no model is at hand, and the baseline that a jury of models has to beat.
package juror
