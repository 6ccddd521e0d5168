// Package jurat is the tour of the program. It holds no code.
//
// jurat puts AI agents before a jury of three and seals everything that any agent says, the accused agent and the jurors
// alike, into signed and time-stamped records that a stranger can verify offline.
//
// # Life of an act
//
//	what an actor said            a payload: who, which model, which settings, what went in, what came out
//	  → may the caller say it?    internal/court/acts: the rules about people and agents
//	  → what is sealed apart?     internal/log/erasure: texts that must stay erasable leave the payload as commitments
//	  → canonical JSON → SHA-256  package evidence: one document, one form
//	  → signed                    internal/log/keys: the actor's own key
//	  → fits the log?             internal/log/ledger: chains, reviews and deliveries, inside the transaction
//	  → stamped                   internal/log/stamping and package timestamp: RFC 3161, over the signature
//	  → appended, durable         internal/log/ledger: one order for everything, in ledger/sqlite or postgres
//	  → proved                    internal/log/ledger: a proof of its place, up to a signed checkpoint
//	  → read                      internal/court/trial: events, result, case file, all projected from the records
//	  → verified by a stranger    package verify: takes trust from outside, gives one answer for each guarantee
//
// A trial consists of acts alone. Submissions enter through internal/court/trial, acts of jurors and the clerk through the clerk of internal/court/trial,
// other acts of people and agents through internal/court/acts, and the operator's through ledger.Operator. 'jurat seal' does what a POST does to
// the server.
//
// # When a server dies in a round
//
// The lock on the trial ends with the process or its connection. Within 15 seconds another process takes the trial over
// (internal/court/schedule). internal/court/trial replays the sealed acts and asks only the seats of that round that have no act yet. The jury must be the same.
// After six attempts the trial waits for a person.
//
// # Where to add what
//
// Tests name what is missing. The portal needs 'go generate ./internal/web/portal'.
//
//	an action type      evidence/payload.go, docs/format.md, internal/web/words, trial.View, testdata/second-verifier;
//	                    the body of an act of the operator: evidence/operator
//	a model vendor      internal/court/llm, internal/tap/convo, llm/llmtest, internal/tap/observe, internal/court/subject (its signs), internal/court/config, internal/court/panel
//	a language          internal/web/words: a file beside en.txt and pages/en.txt, and its line in words.go
//	a store of the log  ledger/storage.Store, tested by internal/test/storetest; internal/log/installation opens it. If machines share it: also
//	                    filestore.Store, lock.Locks and schedule/table.go
//	a guarantee         package verify (report.go), internal/web/words, docs/format.md, testdata/second-verifier
//	a page              its route in internal/web/server (table.go), its view and template in internal/web/pages, its texts in internal/web/words
//	a transcript form   internal/tap/convo (a reader), internal/court/subject (forms.go), an example in docs/case.md
//	a rule              internal/court/juror/rules: a line in rules.go and a function; Version changes, because trials record it
//	a method            jury (method.go, types.go, settings.go, tally.go), internal/web/words, docs/format.md, testdata/second-verifier
//	a key helper        docs/token.md has the protocol
//
// A page that follows a trial asks for what is new since its last record (?after=), on an event or after five seconds; all watchers share one trial.View.
//
// # Packages
//
// Public and pure: no clock, file or network, also in WebAssembly.
//
//	evidence    payloads, canonical form, signatures, sealing, strict opening; evidence/operator: bodies of the operator's acts,
//	            checkpoints, cosignatures; evidence/observed: acts that a recorder saw; evidence/scitt: COSE statements, and
//	            receipts of the log; evidence/property: commitments to values, and proofs about them
//	timestamp   RFC 3161: requests, tokens, the built-in authority, mock
//	jury        phases, rounds, consensus, methods; replays a trial
//	verify      takes a trust file and records, returns a report; verify/trust: what a reader believes; verify/eulist: verifies
//	            the EU's trusted lists
//	reputation  an agent's conduct as a number
//
// Public, for other programs: client (signs where the key is), client/api (what travels over HTTP), client/tiles (reads and proves a log
// over HTTP), recorder (seals a program's calls to models). examples has three cases to try.
//
// internal/log, the log:
//
//	ledger        the only writer: seals and appends; ledger/storage: the contract of stores; ledger/sqlite; ledger/brief: a record
//	              as lists need it; ledger/fsck
//	postgres      store, files, locks and connections on a PostgreSQL server
//	filestore     the small files of an installation, in a folder or a database; sqlitefile: SQLite files that processes share
//	lock          one process at a time
//	keys          which key is whose; key pairs
//	token         signs by a helper program
//	ca            issues and revokes certificates
//	erasure       texts that are sealed apart
//	stamping      asks time-stamping authorities
//	eutrust       fetches the EU's trusted lists
//	witness       cosigns checkpoints; asks witnesses; monitors logs
//	installation  keys, authority and log together; backup; expiry
//	access        who may do what
//	names         which names are taken, and count as the same
//	duties        which clauses of a law the records answer
//
// internal/court, the court:
//
//	subject       the agent under trial: card, conversation, sealed records
//	card          signatures of A2A agent cards
//	juror         what jurors share; juror/model: language models; juror/rules: rules
//	llm           one call to one model; llm/llmtest: vendors' servers
//	config        the configuration of a jury
//	panel         seats a jury, within limits of time, rate and money
//	trial         takes a case to a verdict; its read model
//	schedule      queues and conducts trials, and sends their events
//	acts          seal, accept, review, deliver; who may
//	stats         measures jurors
//
// internal/tap, what is recorded:
//
//	relay         passes calls on unchanged, and shows a witness a copy
//	recording     seals what passes a relay
//	observe       reads the bytes of recorded calls; observe/otlp: telemetry's JSON
//	convo         the vendors' formats: answers, streams, and the messages in them
//	telemetry     finds acts in what OpenTelemetry exporters send
//	importing     makes acts of files that others wrote
//
// internal/web, what is shown:
//
//	server        routes, and what each requires
//	pages         the browser pages
//	portal        the page on which a stranger verifies; portal/verifier, portal/visit, portal/build
//	words         all texts, in each language, as data, and what reports say in them
//	find          finds records and trials
//	docket        lists and views of records and trials
//	openid        sign-in by a provider; openid/openidtest
//	tracing       to an OpenTelemetry collector
//	openssl       what OpenSSL needs to check records
//
// Tools, internal/kit: cbor, jsonform and sigkey (one form each for CBOR, JSON and keys), plural (numbers and nouns), fault (a panic becomes
// an error), inorder (parallel work, results in order), atomicfile (whole files), webhook (signed messages, none inward).
//
// For tests, internal/test: jurattest (an installation with known keys and clock), listtest, dertest, must (ends a test), browsertest,
// tokentest (SoftHSM), disktest (small disks), storetest (conformance of stores), pgtest (PostgreSQL), bench (benchmarks).
//
// cmd/jurat is the command, cmd/jurat-lab measures juries. The folder pkcs11 is a module of its own: the helper for hardware tokens.
package jurat
