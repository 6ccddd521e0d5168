package words

// Pages holds the texts of a server's pages. A place for a value is written {so}; the page fills it.
type Pages struct {
	Frame     frameWords   // around every page, and shared by several pages
	Nav       navWords     // the links to the main pages
	Home      homeWords    // the first page
	Submit    submitWords  // the form that puts an agent before the jury
	Example   exampleWords // descriptions of the examples
	SignIn    signInWords  // the page for signing in
	Trouble   troubleWords // the kinds of errors; an error itself is described in English
	Court     courtWords   // the courtroom
	First     firstWords   // the first screen of the courtroom: why, and who disagrees
	Proof     proofWords   // what the proof rests on, as the server says of itself
	Card      cardWords    // the card of the agent
	LeftOut   leftOutWords
	Whole     wholeWords     // a text that a page carries only in part
	Message   messageWords   // one message of the conversation, or of the records
	Speaker   speakerWords   // the speakers of a conversation; Terms names people and operators
	Juror     jurorWords     // a juror in the courtroom
	Said      saidWords      // a statement of a juror
	Axes      axesWords      // the table of points
	Axis      axisWords      // the axes of the rubric
	Vote      voteWords      // the table of votes
	Chart     chartWords     // the picture of the scores
	Consensus consensusWords // how much the jurors agree
	Severity  severityWords  // how severe a finding is
	Finding   findingWords   // a finding of a juror
	Absent    absentWords    // why a juror did not answer
	Judgment  judgmentWords  // the judgment of the jury
	Method    methodWords    // how the jury decided
	State     stateWords     // the states of a trial
	Mark      markWords      // what weakens a verdict
	Outcome   outcomeWords   // the final outcome
	Desk      deskWords      // the list of what needs a person
	Review    reviewWords    // the page on which a person decides
	Record    recordWords    // the page of one record
	Link      linkWords      // other records that a record names
	Chain     chainWords     // the page of a chain
	Agent     agentWords     // the page of an agent

	Access accessWords // the pages of who may do what
}

// StateText is the name of a trial's state, and more about it.
type StateText struct{ Name, More string }

// MarkText is the name of what weakens a verdict, and why.
type MarkText struct{ Name, Why string }

type frameWords struct {
	Skip, Foot, Problem, And, Seconds, Copy, Copied, Sealed string
}

type navWords struct {
	Label, Trials, Desk, Verify, Languages string
}

type homeWords struct {
	Title, Lead, Trials, None, Hidden, Older string
}

type submitWords struct {
	Title, Examples, Try, Own, Rules, Panel, Documents, CardHelp, ConversationHelp, Records, Bundle, BundleHelp,
	Send string
}

type exampleWords struct {
	KitchenReturn, PharmacyRefill, InvoiceInbox string
}

type signInWords struct {
	Title, Out, As, How, Link, Token, TokenHelp, OpenID string
}

type troubleWords struct {
	SignIn, Forbidden, Missing, Busy, Ours, Refused, Home string
}

type courtWords struct {
	Kicker, Unnamed, Submitter, Opened, Duration, Cost, Dollars, NoCost, ID, CaseFile, Chain, Waiting, NoScript,
	Evidence, Ahead, Resume, Cancel, Why, By, Stopping, Next, Apart, Unreadable, Conversation, Records, Jury,
	NoJury, Discussion, NoDiscussion, RulesAreSilent, Judgment, Human string
	Follow                                                                                     string // scroll to what is new
	JudgeAlone, AskedAgain, Abstains, AfterTalk, EffectiveVotes, Measured, Assumed, SameVendor string
}

// firstWords are followed by what they announce, except Undecided, LeftOpen, NoVerdict, NoFinding and Nobody, which are whole.
type firstWords struct {
	Needs, Undecided, LeftOpen, NoVerdict, Verdict, Person, Jury, Rests, Found, By, NoFinding, Against, Nobody, Without string
}

type proofWords struct {
	Title, Alone, Keys, Clocks, OwnClock, Witnesses, NoWitness, Check string
}

type cardWords struct {
	Title, Version, Organization, Description, Skills string
	None                                              string // there is no card
}

// leftOutWords say what of a conversation the jurors are not shown.
type leftOutWords struct {
	Title                                                  string
	Reasoning, Unreadable, Elsewhere, Judged, Alternatives string // of each, how many
}

type wholeWords struct {
	Beginning, All, Failed, Partly, ToTrial, ToRecord, Found string
}

type messageWords struct {
	Number, Answers, Result, Calls, Arguments, Cited string
	AllCited, Find, NextFound, NextCited, Folded     string
}

type speakerWords struct {
	System, User, Assistant, Tool string
}

type jurorWords struct {
	Rules, Configured, Silent, Confidence, Alone, StandIn, Fallback string
}

type saidWords struct {
	Statement, Reasoning, Changed, ChangedFrom string
	Begins, GoesOn                             string // stand between the rounds, which have no numbers
}

type axesWords struct {
	Caption, Axis, Chart, Points string
}

type axisWords struct {
	TaskCompletion, ToolUsage, Autonomy, Safety string
}

type voteWords struct {
	Title, Juror, Alone, Talk, End, Agreement, Abstains string
}

type chartWords struct {
	Title, Desc, Table, Agreement string
}

type consensusWords struct {
	Unanimous, Majority, Split string
}

type severityWords struct {
	Minor, Major, Critical string
}

type findingWords struct {
	From, Unfounded, NoMessage, Explanation string
}

type absentWords struct {
	Label, Detail, TimedOut, Blocked, Invalid, Failed, Ceiling string
}

type judgmentWords struct {
	Reasons, Veto, SealedOpinion, Sealed string
}

type methodWords struct {
	MajorityVote, WeightedAverage, FinalJudge, Median, Calibrated string
}

type stateWords struct {
	Queued    StateText
	UnderWay  StateText
	BrokenOff StateText
	Cancelled StateText
	Over      string
}

type markWords struct {
	Degraded      MarkText
	Inconclusive  MarkText
	Offline       MarkText
	PartlyOffline MarkText
	Broken        MarkText
	TurnedByTalk  MarkText
	OneExtreme    MarkText
	JudgeMilder   MarkText
}

type outcomeWords struct {
	Person, Open, By, Otherwise, Jury string
}

type accessWords struct {
	Title, Lead, JSON, OnlyGood, WithEnded, Grants, Name, Roles, State, Until, Since, Used, UsedHelp, Acted, Token, Session, Empty, More, One, By, Why,
	Acts, ActsHelp, NoActs, Gone, End, EndHelp, Own, Reason, Sure, Good, Expired, Revoked, Auditor string
}

type deskWords struct {
	Title, Lead, Open, Empty, Decided, Own, Keys                             string
	Several, SeveralHelp, SeveralKeys, Mark, MarkAll, Results, Done, NotDone string // decisions on several cases by one form

	Show, All, Mine, Unassigned                   string // which cases the list has
	Who, WhoHelp, To, Take, GiveBack, Assign      string // the form that says who means to decide
	TakenBy, AssignedBy, Took, GaveBack, Assigned string // a name follows, except after Took and GaveBack
}

type reviewWords struct {
	Title, Open, Court, Before, Said, Decide, Own, MayNot, Reason, ReasonHelp, Change, Text, Compare, Diff, Added,
	Removed, Approve, Modify, Reject, Pass, Fail, Leave, Verdict, Next, Given, Sealed string
	Previous, Split, Keys, Chosen, NotChosen string
}

type recordWords struct {
	Kicker, Claimed, Proved, Waits, Unproved, ID, Digest, JSON, Bundle, OpenSSL, Guarantees, Together, Trust, Trial, NoOutcome,
	Offline, TrustFile, Portal, Statement,
	Input, Output, Configuration, Links, Withheld, Apart, Nothing string
}

type linkWords struct {
	Trial, Chain, Previous, Original, Saw, Case, Cut, Parent string
}

type chainWords struct {
	Title, Count, Timeline, Order, Others, Human, ByName, Pages, Page, Before, Next, Doubts, Cut string
}

type agentWords struct {
	Title, Lead, About, Personal, JSON, Recompute, Unjudged, People, Models, Rules, Judge, Number, TooFew, Uncounted, Incomplete, Unproved,
	Counts, Picture, Since, Moves, When, Verdict, Record, Unit, Bounds, Earlier, Judges, Coverage, All, Known, Log, OfLog, Incidents,
	Revoked, Allegations, AllegationsHelp, Left, LeftHelp, What, Rule, HowMany, Identity, ByKeys, ByRecorders, ByCA, Key, From, To, Formula, FormulaIs,
	Chosen, Policy, Trust string
}
