// Package verify answers what records prove, to somebody who trusts neither who sent them nor the program that made them.
//
// [File] and [Read] take a file as it came: a sealed record, a bundle of records (which may be the case file of a trial), an envelope
// around them, a checkpoint, or an evidence package of an older neighbour. [Options] is what the reader brings along, first of all
// a [Trust]: whose keys, clocks and logs the reader believes. It is never taken from the file, and without one nothing is proved.
//
// The [Report] has an answer for each [Guarantee], proved, not proved or refuted, with the reason; and says what a pass does not
// prove. A chain, the reviews in it and a trial are verified as graphs: what names what, and whether anything is missing.
// Of a trial consensus, threshold and method are run again on the sealed votes.
//
// Nothing here reads a clock, a file system or a network, so that the portal runs the same code in a browser.
// docs/format.md says all of it normatively, under "Verification".
package verify
