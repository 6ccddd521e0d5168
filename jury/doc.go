// Package jury lets a panel of jurors judge an AI agent, and computes the result from their answers.
//
// It is pure: no file, no network, no clock, no vendor. It asks each [Juror], and the judge, through one method. Every
// act of a trial goes to a [Clerk], and has happened when the clerk returns. [Deliberation.Run] conducts a trial.
// [Replay] computes everything again from the recorded acts, so it detects a clerk who recorded another result than the
// votes give.
//
// # A trial
//
// docs/format.md, "Trials", has every rule: what opens a phase, what an answer must have, agreement, methods. In phase 1 (initial) every
// juror evaluates the evidence alone; disputed seats may be asked again. Phase 2 (discussion) has rounds: in each all jurors speak at the
// same time, and are given the evaluations and the statements of earlier rounds, never one of the same round. Phase 3 (judging) gives the
// final judgment. The clerk opens each phase and round with an act, before any seat is asked. A seat's answer is recorded when it
// arrives; the order among seats is always that of the panel.
//
// A juror chooses its position freely: any may go with any total. A juror that fails, panics, is late or answers wrongly is absent from
// that phase or round, and keeps its last valid evaluation. If a filter blocked one that has none yet, a neutral stand-in is recorded
// in its name: it counts for agreement and methods, and is no valid vote. Fewer than two valid votes are no verdict.
//
// # The law of a trial stands once
//
// `jury.Tally` takes acts one by one and knows what must come next. Trials are conducted and checked (`jury.Replay`)
// by it, so the two cannot differ. `verify` only decides under which guarantee a discrepancy falls.
//
// # Causality is in the digests
//
// An opening names the digest of what each seat will be asked, before any seat is asked. An answer names the opening
// and everything that the seat was shown. A check names the answers. So the digests show whether a juror saw a
// statement of the same round, whatever any clock says.
//
// # A request is digests
//
// A request names the seat, the rubric, the template, the evidence and the acts shown, by digest. A verifier rebuilds
// it from an opening and a list, without any vendor's SDK, and also after evidence was erased.
//
// # Absence is an act
//
// If a seat gives no valid answer, the clerk records it as absent, with the reason. So every seat has one act in every
// phase, and a missing act is a gap. An absence is only the clerk's word, so the report says so, and the trial is degraded.
//
// # Ties, means, silence
//
// What a tie scores, which confidence a stand-in has, that any absence degrades the trial, and that a juror that has
// never spoken has changed no position: this the rules of the jury leave open, and docs/format.md decides it.
//
// # A trial has one outcome, read in one place
//
// `jury.Reckoning` reads a trial's chain and says what the jury judged and what the last person decided. Lists, pages,
// events, statement, report, statistics and the exit code of `trial --outcome` all use it. A person's decision is a
// position and a reason: with the judge's score and model beside it, these would appear as the person's.
package jury
