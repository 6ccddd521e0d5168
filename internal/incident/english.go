package incident

import (
	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

var english = language{
	name:    "English",
	between: " ",

	actions: map[evidence.ActionType]string{
		evidence.ModelOutput:     "model output",
		evidence.Recommendation:  "recommendation",
		evidence.Proposal:        "proposal",
		evidence.Instruction:     "instruction",
		evidence.APICall:         "api call",
		evidence.ToolPlan:        "tool plan",
		evidence.Message:         "message",
		evidence.ChainStep:       "chain step",
		evidence.HumanReview:     "human review",
		evidence.Delivery:        "delivery",
		evidence.Submission:      "submission",
		evidence.PhaseOpening:    "phase opening",
		evidence.Evaluation:      "evaluation",
		evidence.Statement:       "statement",
		evidence.Absence:         "absence",
		evidence.ConsensusCheck:  "consensus check",
		evidence.JudgeOpinion:    "judge opinion",
		evidence.FinalJudgment:   "final judgment",
		evidence.TrialClosing:    "trial closing",
		evidence.LateStamp:       "late time stamp",
		evidence.CheckpointStamp: "time stamp of a checkpoint",
		evidence.KeyEvent:        "change of a key",
		evidence.Erasure:         "erasure",
		evidence.AccessEvent:     "change of access",
		evidence.Refusal:         "refusal",
		evidence.TrialEvent:      "cancelling or resuming of a trial",
		evidence.RetentionEvent:  "decision on retention",
	},
	roles: map[evidence.Role]string{
		evidence.RoleAgent:     "agent",
		evidence.RoleReviewer:  "reviewer",
		evidence.RoleSubmitter: "submitter",
		evidence.RoleJuror:     "juror",
		evidence.RoleJudge:     "judge",
		evidence.RoleClerk:     "clerk",
		evidence.RoleOperator:  "operator",
	},
	positions: map[jury.Position]string{ // which are English
		jury.SafePass:    "safe_pass",
		jury.NeedsReview: "needs_review",
		jury.UnsafeFail:  "unsafe_fail",
	},
	methods: map[jury.Method]string{
		jury.MajorityVote:    "majority_vote",
		jury.WeightedAverage: "weighted_average",
		jury.FinalJudge:      "final_judge",
	},
	approvals: map[evidence.ApprovalStatus]string{
		evidence.Approved:                  "approved",
		evidence.ApprovedWithModifications: "approved with modifications",
		evidence.Rejected:                  "rejected",
	},

	questions: map[verify.Guarantee]question{
		verify.Content:        {"Content", "Is it unchanged since it was signed?"},
		verify.Authentication: {"Authentication", "Is it signed with the key of the actor that it names?"},
		verify.NonRepudiation: {"Non-repudiation", "Could nobody but that actor have signed it?"},
		verify.Configuration:  {"Configuration", "Does it state under its signature which model and settings made it?"},
		verify.Time:           {"Time", "Does an authority vouch for when it existed?"},
		verify.Before:         {"Before", "Did it exist before the time that was asked about?"},
		verify.Order:          {"Order", "Does it have its place in a log?"},
		verify.Chain:          {"Chain", "Do the records follow each other as they say, with none left out?"},
		verify.HumanReview:    {"Human review", "Did a person decide on this, and was this delivered?"},
		verify.GivenOn:        {"Given on", "Is what was delivered, without a person having decided, the answer that it names, unchanged?"},
		verify.Completeness:   {"Completeness", "Is everything there, once and in its place?"},
		verify.Simultaneity:   {"Simultaneity", "Did nobody see what others said in the same round?"},
		verify.Verdict:        {"Verdict", "Does the judgment follow from the votes?"},
		verify.Enclosures:     {"Enclosures", "Does whatever lies in the package belong to what is signed?"},
		verify.Envelope:       {"Envelope", "Did the operator put the records into the envelope?"},
	},
	statuses: map[verify.Status]string{
		verify.Proved:    "proved",
		verify.NotProved: "not proved",
		verify.Refuted:   "refuted",
	},
	kinds: map[verify.Kind]string{
		verify.OneRecord:     "one record",
		verify.ManyRecords:   "a bundle of records",
		verify.Trial:         "the case file of a trial",
		verify.SeveralFiles:  "what several files say together",
		verify.OneCheckpoint: "a checkpoint of a log",
		verify.Package:       "an evidence package of the Aletheia AI project",
	},
	clocks: map[verify.Clock]string{
		verify.Independent:   "a clock independent of the operator",
		verify.OperatorClock: "the operator's own clock",
	},

	recorded:          "This {action} was recorded as that of {role} {actor}, and is signed with the key that is known to be that actor's.",
	recordedWithModel: "This {action} was recorded as that of {role} {actor} with the model {model} (version {version}), and is signed with the key that is known to be that actor's.",
	notProved:         "It is not proved who produced this {action}. It names {role} {actor}, but {because}.",
	notProvedModel:    "It is not proved who produced this {action}. It names {role} {actor} with the model {model} (version {version}), but {because}.",
	refuted:           "It is refuted that this {action}, which names {role} {actor} as its author, is what that actor signed: {because}.",

	claimed:      "Its author gives the time {time}.",
	timeRefuted:  "The time stamp that comes with it is refuted: {because}.",
	timeUnproved: "No proved time stands behind that: {because}.",
	independent:  "The signature existed at {time} (RFC 3161 time stamp by {authority}: an authority whose clock is independent of the operator).",
	operator:     "The signature existed at {time} (RFC 3161 time stamp by {authority}: the operator's own authority, so that this rests on the operator's word).",

	keyOfActor:     "The actor keeps the key itself, so nobody else could have signed it.",
	keyOfOperator:  "The operator keeps the key, and could have signed in the actor's place.",
	keysOfOperator: "The operator keeps keys with which acts are signed, and could have signed in the place of their actors.",
	keyUnproved:    "That nobody but the actor could have signed is not proved: {reason}.",

	sealed:           "It was sealed with a signature ({algorithms}), and its content has not been changed since.",
	place:            "It stands at place {place} of the log.",
	contentNotProved: "It is not proved that the content is what was sealed.",
	contentRefuted:   "It is refuted that the content is what was sealed.",

	configuration: "By the record, the configuration was {parameters}.",
	context:       "By the record, the context was: {context}.",
	contextApart:  "By the record, the context was: sealed apart; what was signed has a commitment to it in its place.",
	check:         "The record is {record}, with payload digest {digest}. Whoever holds it and a trust file can check all this alone: jurat verify --trust FILE.",

	checkTrial: "All this stands in the case file, from the submission (record {submission}) to the judgment (record {judgment}). Whoever holds it and a trust file can check it alone: jurat verify --trust FILE.",

	reviewed:       "It is a person's decision on record {original}: {status}.",
	decided:        "Reviewer {actor} decided on record {original} ({status}), and gives the time {time}; record {record}.",
	decidedVerdict: "Reviewer {actor} decided on the verdict ({status}): {position}, and gives the time {time}; record {record}.",
	decidedOpen:    "Reviewer {actor} decided on the verdict ({status}) and neither passed nor failed the agent, and gives the time {time}; record {record}.",
	decidedDoubted: "Record {record} names reviewer {actor} and the decision on record {original} ({status}); that this person decided so on that is not proved.",
	decidedWhy:     "The reason, in the reviewer's words: {why}.",
	delivered:      "In record {record}, agent {actor} delivered an answer, and gives the time {time}.",

	outcome: map[jury.Decider]sentence{
		jury.ByJury:   "The outcome is {position}: so the jury judged, with {score} of 100 points by {method}, and no person has decided otherwise in this file.",
		jury.ByPerson: "The outcome is {position}: so reviewer {actor} decided ({status}). The jury had judged {jury} with {score} of 100 points by {method}.",
	},
	open: map[jury.Decider]sentence{
		jury.ByJury:   "The outcome is open: the jury judged {jury} with {score} of 100 points by {method}, and in this file no person has passed or failed the agent.",
		jury.ByPerson: "The outcome is open: reviewer {actor} decided ({status}) and neither passed nor failed the agent. The jury had judged {jury} with {score} of 100 points by {method}.",
	},
	doubted: "The outcome is open: it is not proved that reviewer {actor} decided ({status}) on this verdict. The jury had judged {jury} with {score} of 100 points by {method}.",
	unknown: "Decisions by people on the verdict in this file: {count}. What they come to is not stated, because the verdict and the completeness of the file are not both proved.",

	sat:        "By the records of the clerk and of the seats, on the jury sat: {items}.",
	seatRules:  "{seat} (rules, no language model)",
	seatModel:  "{seat} (model {model} of {provider}; answered as {reported})",
	seatOther:  "{seat} (model {model} of {provider} was asked for, and another answered: {reported})",
	seatSilent: "{seat} (model {model} of {provider}, which gave no answer)",

	// The reasons are English themselves and say more than a sentence before them could.
	because: map[verify.Guarantee]byStatus{
		verify.Content:        {verify.NotProved: "{reason}", verify.Refuted: "{reason}"},
		verify.Authentication: {verify.NotProved: "{reason}", verify.Refuted: "{reason}"},
		verify.Time:           {verify.NotProved: "{reason}", verify.Refuted: "{reason}"},
	},
	noReason: "no reason was found",

	noActs:     "The file holds no act of a trial.",
	acts:       "Records in the file: {count}; of these, acts of the trial: {acts}, and by people who reviewed or delivered: {people}. The first act names its trial {trial}, and evidence with the digest {digest}.",
	actsProved: "Every act is signed by its actor and unchanged.",
	actsDoubted: map[verify.Guarantee]byStatus{
		verify.Authentication: {
			verify.NotProved: "That the acts are their actors' is not proved: {reason}.",
			verify.Refuted:   "That the acts are their actors' is refuted: {reason}.",
		},
		verify.Content: {
			verify.NotProved: "That the acts are what was sealed is not proved: {reason}.",
			verify.Refuted:   "That the acts are what was sealed is refuted: {reason}.",
		},
	},
	procedure: map[verify.Guarantee]byStatus{
		verify.Completeness: {
			verify.Proved:    "Completeness: proved; {reason}.",
			verify.NotProved: "Completeness: not proved; {reason}.",
			verify.Refuted:   "Completeness: refuted; {reason}.",
		},
		verify.Simultaneity: {
			verify.Proved:    "Simultaneity: proved; {reason}.",
			verify.NotProved: "Simultaneity: not proved; {reason}.",
			verify.Refuted:   "Simultaneity: refuted; {reason}.",
		},
	},
	noJudgment: "The file holds no judgment.",
	unreadable: "The sealed judgment cannot be read: {reason}.",
	judged:     "The jury judged {position} with {score} of 100 points by {method}; run again on the sealed votes, consensus and method give the same.",
	judgedStated: byStatus{
		verify.NotProved: "The file states the judgment {position} with {score} of 100 points by {method}, and that this follows from the votes is not proved: {reason}.",
		verify.Refuted:   "The file states the judgment {position} with {score} of 100 points by {method}, and that this follows from the votes is refuted: {reason}.",
	},

	degraded:           "The trial was degraded: a juror was absent or blocked, or the judge failed.",
	degradedStated:     "It states that the trial was degraded: a juror was absent or blocked, or the judge failed.",
	inconclusive:       "The trial was inconclusive: fewer than two valid votes.",
	inconclusiveStated: "It states that the trial was inconclusive: fewer than two valid votes.",

	disclaimer: "None of this says {items}.",
	nor:        ", nor ",
	notShown: map[string]string{
		"that what was said is correct":                      "that what was said is correct",
		"that anybody is legally responsible for it":         "that anybody is legally responsible for it",
		"that it is safe or appropriate":                     "that it is safe or appropriate",
		"that nothing came after the last record of a chain": "that nothing came after the last record of a chain",
		"that the decision should be carried out":            "that the decision should be carried out",
	},
}
