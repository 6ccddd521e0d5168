// Package jurat is the tour of the program. It holds no code.
//
// jurat puts AI agents before a jury of three and seals everything that any agent says, the accused agent and the jurors
// alike, into signed and RFC 3161 time-stamped records that a stranger can verify offline.
//
// # Life of an act
//
//	what an actor said            a payload: who, which model, which settings, what went in, what came out
//	  → may the caller say it?    internal/acts: the rules about people and agents
//	  → what is sealed apart?     internal/erasure: texts that must stay erasable leave the payload as commitments
//	  → canonical JSON → SHA-256  package evidence: one document, one form
//	  → signed                    internal/keys: the actor's own key
//	  → fits the log?             internal/ledger/links: chains, reviews and deliveries; judged again inside the transaction
//	  → stamped                   internal/stamping and package timestamp: RFC 3161, over the signature
//	  → appended, durable         internal/ledger: one order for everything, in ledger/sqlite or postgres
//	  → proved                    internal/ledger: a proof of its place, up to a signed checkpoint
//	  → read                      internal/trial: events, result, case file, all projected from the records
//	  → verified by a stranger    package verify: takes trust from outside, gives one answer for each guarantee
//
// A trial consists of acts alone: the submission, an opening before each phase and round, evaluations, statements,
// consensus checks, the final judgment, a closing. Submissions enter through internal/trial, other acts of people and agents through
// internal/acts, acts of jurors and the clerk through the clerk of internal/trial, and the operator's through ledger.Operator.
//
// 'jurat seal' (cmd/jurat/seal.go) takes these steps through acts.Seal, as a POST to the server does: may.go of internal/acts decides who may
// seal as whom, and the ledger does the rest. Nothing is printed before the record is durable.
//
// # When a server dies in a round
//
// The acts that were sealed stand. The lock on the trial ends with the process or its connection. About ten seconds later another process,
// or the same one after a restart, takes the trial over (internal/schedule). internal/trial replays the records and asks only the
// seats of that round that have no act yet. Answers that were not sealed are asked for, and paid for, again. The jury must sit as before.
// After six attempts the trial waits for a person. A server that died, or a database that was away, is no attempt. 'jurat trial' has no queue: --resume continues its trials.
//
// # Where to add what
//
//	an action type      evidence/action.go has the table of rules, evidence/doc.go and docs/format.md the same for readers; its name in
//	                    internal/words (each language); trial.View takes it in or ignores it with a reason;
//	                    testdata/second-verifier. For an act of the operator: its body in evidence/operator.
//	a model vendor      internal/llm (an adapter) and internal/llm/wire (its bodies), a server in llm/llmtest, internal/observe (its calls,
//	                    recorded); its name, key and model names
//	                    in internal/config (config.go, check.go, keys.go, plan.go, models.json); the table of adapters in internal/panel.
//	a language          internal/words: a file beside en.txt and pages/en.txt, and its line in words.go; the flag --lang of cmd/jurat/explain.go.
//	                    Tests name each text that is missing.
//	a store of the log  internal/ledger/storage.Store, tested by internal/storetest; internal/installation opens it. Machines that
//	                    share it also need a filestore.Store, lock.Locks and the engine's words for the queue (schedule/table.go);
//	                    its backup reads and fills it.
//	a guarantee         verify/assurance names it (guarantee.go) and verify/report.go again, verify.go says where it applies; its check in
//	                    package verify; internal/words names and explains it in each language; docs/format.md,
//	                    testdata/second-verifier. Then 'go generate ./internal/portal', as for every text of the portal.
//	a page              its route in internal/server/pages.go, or in the file of its area (table.go joins them); internal/pages
//	                    has the view and its template, internal/words its texts.
//	a transcript form   internal/subject: its name, signs and reader in form.go and forms.go, its reader in a file of its own. A file that holds
//	                    several conversations: transcripts.go. An example and its mistakes in docs/case.md, which
//	                    tests read.
//	a rule              internal/juror/rules: its line in the checklist of rules.go, and its function in the file of its subject. Then
//	                    Version changes, because trials record the digest of the rules.
//	a method            jury/method.go computes it; jury/types.go and settings.go name it, tally.go calls it; internal/words names it in each
//	                    language; docs/format.md, testdata/second-verifier. For new trials only: old ones keep their rules.
//	an authority        one that speaks RFC 3161 needs no code: 'jurat tsa'. Another protocol: internal/stamping. Another kind of
//	                    token: evidence.TimestampKind and package timestamp.
//	a key helper        no code here: docs/token.md describes the protocol between jurat and programs that keep keys.
//
// # How a courtroom page follows its trial
//
// The log notifies the stream of a watched trial when it grows. The stream reads each new record once, into one trial.View that all
// watchers share, and sends the resulting events to every watcher. On an event, the page asks for what is new since the last record
// that it has (?after=). The server renders only that, from the shared View. After five seconds without an event it asks as well: that a trial is
// stopped, broken off or continued, and its place in the queue, are no events of the trial.
//
// # Packages
//
// Public and pure. These packages use no clock, file or network, and compile to WebAssembly:
//
//	evidence    payloads, canonical form, signatures, sealing, strict opening; its package doc is the format in brief
//	            evidence/operator: what an operator states: bodies of its acts, checkpoints, consistency proofs, cosignatures
//	            evidence/observed: what a recorder seals: acts that it saw, with their bytes and the facts in them, and events of its own
//	timestamp   RFC 3161: requests, responses, tokens, verification; the built-in authority and a deterministic mock
//	jury        the deliberation: phases, rounds, consensus, methods; replays a trial from its acts
//	scitt       puts records into statements for other tools: COSE, and receipts of the log
//	sigma       proves linear relations between points of P-256 in zero knowledge, by an IRTF draft
//	property    commits to values, and proves what they are (in a range, in a set, equal) without showing them
//	            property/proving makes the proofs that records carry, from what they disclose
//	trustlist   verifies the EU's trusted lists from the Official Journal on, and says which services were qualified when
//	verify      takes a trust file and records, and returns a report: on each record, on chains and reviews, on what recorders
//	            saw and what proofs show, on trials, and on several files together
//	            verify/trust: what a reader believes of keys, certificates, revocation and tokens
//	            verify/assurance: which guarantees count, what a proof rests on, levels of it, and policy files
//	reputation  what verified records show about an agent's conduct: the same bytes for everyone who computes it
//
// Public, for programs that hold their own keys:
//
//	api         what travels over HTTP: requests, answers, problems
//	client      completes and signs a payload where the key is, and checks the server's answer
//
// Public, for programs whose calls to models are recorded:
//
//	recorder    seals the calls that a program makes to models, or passes on for others; 'jurat record' is built on it
//
// Public, for programs that watch a log:
//
//	tiles       reads a log over HTTP in the C2SP tlog-tiles layout, and proves what it reads from the log's checkpoint
//
// Beside them:
//
//	examples    three cases to try, embedded in the program
//
// For tests:
//
//	jurattest              an installation in a temporary folder, with known keys, clock and ids; scripted jurors; an authority that fails
//	internal/listtest      writes and signs trusted lists
//	internal/dertest       takes DER apart and encodes it again with the changes that a test wants
//	internal/must          ends a test when a step that it needs fails
//	internal/browsertest   drives a real browser through pages
//	internal/tokentest     SoftHSM tokens, and the program jurat-pkcs11
//	internal/disktest      a small disk that a test can fill; lists the files of a folder
//	internal/storetest     conformance tests for the stores of a log, for file stores and for locks
//	internal/pgtest        starts, kills and restarts a real PostgreSQL
//
// Internal:
//
//	internal/duties        which clauses of a law an agent's records answer, and what they do not show
//	internal/cbor          CBOR in one form, and read without doubt
//	plural        numbers with their nouns, in English
//	jsonform      JSON documents that have one form: canonical, strict, with errors that name the place
//	sigkey        the keys that sign: which are accepted, how they are written, whether a signature is valid
//	fault         turns a panic in a reader of foreign bytes into an error
//	inorder       works on many items at once, and hands on the results in their order
//	atomicfile    writes files whole or not at all
//	sqlitefile    opens SQLite files that processes share
//	filestore     the small files of an installation: in a folder of one machine, or in a database that several share, encrypted
//	              there under a key that the database never has
//	postgres      what machines share on a PostgreSQL server: the store of a log, a file store, locks, and the connections
//	lock          locks a trial, or an expiry, so that one process at a time works on it; for one machine, and the contract for several
//	keys          which key is whose, by the log's key events; one key pair for each actor and role, with an optional ML-DSA-65
//	              key beside it
//	token         signs with keys that a helper keeps, a program of its own
//	ca            issues and revokes certificates for keys of agents and reviewers, in a folder of its own
//	erasure       the texts that are sealed apart: each encrypted under a key of its own; erasing destroys that key
//	ledger        the only writer: seals and appends. ledger/storage is the contract that the stores ledger/sqlite and postgres
//	              fulfil; ledger/brief is a record as lists and links need it; ledger/links checks the links of a
//	              new record against the log; ledger/fsck examines all that is stored
//	eutrust       fetches the EU's trusted lists, and takes authorities for a trust file from them
//	stamping      asks time-stamping authorities over HTTP; stamps later what waits, and renews old stamps
//	witness       cosigns checkpoints of other logs, and asks witnesses to cosign those of its own log; monitors a log, and alarms
//	              when it forks, shrinks or is rewritten
//	card          checks the signatures of A2A agent cards
//	subject       the agent under trial: reads its card, and its conversations in files of any form, or its sealed records, which it verifies
//	juror         what all jurors share; juror/model seats language models; juror/rules seats jurors and a judge that are rules
//	llm           one call to one language model, with a file for each vendor; llm/wire has the vendors' request and answer
//	              bodies; llm/llmtest has servers that speak the vendors' protocols in tests
//	observe       reads the bytes of a recorded call to a model: what was asked, and what was answered, for whoever looks;
//	              observe/otlp has the JSON form of telemetry
//	telemetry     finds the acts of agents in what OpenTelemetry exporters send over HTTP, or have written to files, and has them sealed
//	config        the configuration of a jury: a strict file, flags, environment, keys, prices
//	panel         seats a jury: models behind their adapters, held to limits of time, rate and money
//	acts          what agents and people do with a log, each in one place: seal, accept, review, deliver; decides who may do
//	              it and who may read what
//	trial         takes a case through jury and ledger to a verdict; its read model gives pages, events, result, statistics and lists
//	find          finds records by their words, actors and times, and selects, sorts and counts trials
//	docket        what people and programs see of a log: lines and tables of trials and records, two trials side by side, recorded
//	              chains as conversations, and what is there of an agent; keeps the index of words up to date
//	schedule      queues trials, conducts them, and sends their events to any number of watchers, over WebSocket or as
//	              server-sent events; its table says which process holds which trial
//	stats         statistics over many trials; measures how reliable jurors are, and weighs votes by that
//	lab           tries labelled cases by several panels in an installation of its own, and measures how good the verdicts are
//	words         everything that people read in a language, as data: a file for each with what records, reports and statements say,
//	              and in its folder pages one with the texts of the pages and the portal
//	incident      writes the statement that tells people what happened
//	openssl       writes what OpenSSL needs to check records without jurat
//	pages         the browser pages: courtroom, desk, records and chains, in three languages
//	portal        the page on which a stranger verifies records in their own browser; portal/verifier is the WebAssembly program
//	              of that page, portal/visit its logic, and portal/build compiles and packs it
//	recording     seals what passes a relay: a journal before each call, a record after it
//	importing     reads files that others wrote about an agent (results, logs, conversations, session files), and makes acts of them, second hand
//	relay         passes HTTP calls to model providers on unchanged, and shows a witness a copy; a recorder is built on it
//	installation  keys, authority and log that belong together: a data folder, or a database that several machines share; its backup, and
//	              the expiry of old records, of which the hashes and proofs stay
//	webhook       sends signed messages, and none inward
//	bench         benchmarks alone, each beside what it cannot do without
//	names         which names people and agents may take, and which names count as the same
//	access        who may do what: read from the log, as acts of the operator
//	openid        asks an OpenID Connect provider who a person is; openid/openidtest is such a provider for tests
//	tracing       sends an OpenTelemetry collector, if one is configured, what the program did and how long it took
//	server        the installation over HTTP, for people and programs: one table of routes, and what each requires
//
// cmd/jurat is the command: main, a file for each subcommand, and help.txt. cmd/jurat-lab is the program that measures juries. The folder pkcs11 is a module of its own, whose program
// jurat-pkcs11 is the helper for hardware tokens. Tests in this folder check which package may import which, and that this tour names all of them.
package jurat
