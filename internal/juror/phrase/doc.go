// Package phrase reads what is said: sentences, dates, amounts of money, verbs and their relatives, a yes and a no, and the
// words in the names of tools. It knows words and nothing of conversations; package rules asks it.
//
// Comparisons are crude on purpose: both sides are cut in the same way. English is read best, Japanese and Russian a little.
package phrase
