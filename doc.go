// Package jurat is the tour of the program. It holds no code.
//
// jurat puts AI agents before a jury of three and seals everything that any agent says, the accused agent and the jurors
// alike, into signed and time-stamped records that a stranger can verify offline.
//
// # Life of an act
//
//	what an actor said            a payload: who, which model, which settings, what went in, what came out
//	  → may the caller say it?    internal/acts: the rules about people and agents
//	  → what is sealed apart?     internal/erasure: texts that must stay erasable leave the payload as commitments
//	  → canonical JSON → SHA-256  package evidence: one document, one form
//	  → signed                    internal/keys: the actor's own key
//	  → fits the log?             internal/ledger: chains, reviews and deliveries, inside the transaction
//	  → stamped                   internal/stamping and package timestamp: RFC 3161, over the signature
//	  → appended, durable         internal/ledger: one order for everything, in ledger/sqlite or postgres
//	  → proved                    internal/ledger: a proof of its place, up to a signed checkpoint
//	  → read                      internal/trial: events, result, case file, all projected from the records
//	  → verified by a stranger    package verify: takes trust from outside, gives one answer for each guarantee
//
// A trial consists of acts alone. Submissions enter through internal/trial, acts of jurors and the clerk through the clerk of internal/trial,
// other acts of people and agents through internal/acts, and the operator's through ledger.Operator. 'jurat seal' takes the same steps as a POST to
// the server.
//
// # When a server dies in a round
//
// The lock on the trial ends with the process or its connection. Within 15 seconds another process takes the trial over
// (internal/schedule). internal/trial replays the sealed acts and asks only the seats of that round that have no act yet. The jury must be the same.
// After six attempts the trial waits for a person.
//
// # Where to add what
//
// Tests name what is missing. The portal needs 'go generate ./internal/portal'.
//
//	an action type      evidence/payload.go, docs/format.md, internal/words, trial.View, testdata/second-verifier;
//	                    the body of an act of the operator: evidence/operator
//	a model vendor      internal/llm, internal/convo, llm/llmtest, internal/observe, internal/subject (its signs), internal/config, internal/panel
//	a language          internal/words: a file beside en.txt and pages/en.txt, and its line in words.go
//	a store of the log  ledger/storage.Store, tested by internal/storetest; internal/installation opens it. If machines share it: also
//	                    filestore.Store, lock.Locks and schedule/table.go
//	a guarantee         package verify (report.go), internal/words, docs/format.md, testdata/second-verifier
//	a page              its route in internal/server (table.go), its view and template in internal/pages, its texts in internal/words
//	a transcript form   internal/convo (a reader), internal/subject (forms.go), an example in docs/case.md
//	a rule              internal/juror/rules: a line in rules.go and a function; Version changes, because trials record it
//	a method            jury (method.go, types.go, settings.go, tally.go), internal/words, docs/format.md, testdata/second-verifier
//	a key helper        docs/token.md has the protocol
//
// A page that follows a trial asks for what is new since its last record (?after=), on an event or after five seconds; all watchers share one trial.View.
//
// # Packages
//
// Public and pure: no clock, file or network, also in WebAssembly.
//
//	evidence    payloads, canonical form, signatures, sealing, strict opening; evidence/operator: bodies of the operator's acts,
//	            checkpoints, cosignatures; evidence/observed: acts that a recorder saw
//	timestamp   RFC 3161: requests, tokens, the built-in authority, mock
//	jury        phases, rounds, consensus, methods; replays a trial
//	scitt       COSE statements, and receipts of the log
//	property    commitments to values, and proofs about them
//	trustlist   verifies the EU's trusted lists
//	verify      takes a trust file and records, returns a report; verify/trust: what a reader believes
//	reputation  an agent's conduct as a number
//
// Public, for other programs: api (what travels over HTTP) and client (signs where the key is), recorder (seals a program's calls to models),
// tiles (reads and proves a log over HTTP). examples has three cases to try.
//
// For tests: jurattest (an installation with known keys and clock), listtest, dertest, must (ends a test), browsertest,
// tokentest (SoftHSM), disktest (small disks), storetest (conformance of stores), pgtest (PostgreSQL), bench (benchmarks).
//
// Internal, the log:
//
//	ledger        the only writer: seals and appends; ledger/storage: the contract of stores; ledger/sqlite; ledger/brief: a record
//	              as lists need it; ledger/fsck
//	postgres      store, files, locks and connections on a PostgreSQL server
//	filestore     the small files of an installation, in a folder or a database
//	lock          one process at a time
//	keys          which key is whose; key pairs
//	token         signs by a helper program
//	ca            issues and revokes certificates
//	erasure       texts that are sealed apart
//	stamping      asks time-stamping authorities
//	eutrust       fetches the EU's trusted lists
//	witness       cosigns checkpoints; asks witnesses; monitors logs
//	installation  keys, authority and log together; backup; expiry
//
// The court:
//
//	subject       the agent under trial: card, conversation, sealed records
//	card          signatures of A2A agent cards
//	juror         what jurors share; juror/model: language models; juror/rules: rules
//	llm           one call to one model; llm/llmtest: vendors' servers
//	convo         the vendors' formats: answers, streams, and the messages in them
//	config        the configuration of a jury
//	panel         seats a jury, within limits of time, rate and money
//	trial         takes a case to a verdict; its read model
//	schedule      queues and conducts trials, and sends their events
//	acts          seal, accept, review, deliver; who may
//	stats         measures jurors
//
// What is recorded:
//
//	relay         passes calls on unchanged, and shows a witness a copy
//	recording     seals what passes a relay
//	observe       reads the bytes of recorded calls; observe/otlp: telemetry's JSON
//	telemetry     finds acts in what OpenTelemetry exporters send
//	importing     makes acts of files that others wrote
//	duties        which clauses of a law the records answer
//
// What is shown:
//
//	server        routes, and what each requires
//	pages         the browser pages
//	portal        the page on which a stranger verifies; portal/verifier, portal/visit, portal/build
//	words         all texts, in each language, as data
//	find          finds records and trials
//	docket        lists and views of records and trials
//	access        who may do what
//	openid        sign-in by a provider; openid/openidtest
//	names         which names are taken, and count as the same
//	webhook       signed messages, none inward
//	tracing       to an OpenTelemetry collector
//	incident      the statement that tells people what happened
//	openssl       what OpenSSL needs to check records
//
// Tools: cbor, jsonform and sigkey (one form each for CBOR, JSON and keys), plural (numbers and nouns), fault (a panic becomes an error), inorder
// (parallel work, results in order), atomicfile (whole files), sqlitefile (SQLite files that processes share).
//
// cmd/jurat is the command, cmd/jurat-lab measures juries. The folder pkcs11 is a module of its own: the helper for hardware tokens.
package jurat
