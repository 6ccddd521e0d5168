// Package jurat holds no code: it is the tour.
//
// jurat puts AI agents before a jury of three and seals everything that any agent says, the accused's and the jurors'
// alike, into signed and RFC 3161 time-stamped records that a stranger can verify offline.
//
// # Life of an act
//
//	what an actor said            a payload: who, which model, which settings, what went in, what came out
//	  → canonical JSON → SHA-256  package evidence: one document, one form
//	  → signed                    internal/keys: the actor's own key
//	  → stamped                   package timestamp: RFC 3161, over the signature
//	  → appended, durable         internal/ledger: one order for everything, in ledger/sqlite or postgres
//	  → read                      internal/trial: events, result, case file, all projected from the records
//	  → verified by a stranger    package verify: trust from outside in, one answer for each guarantee out
//
// A trial is nothing but acts: the submission, an opening before each phase and round, evaluations, statements,
// consensus checks, the final judgment, a closing.
//
// # How a courtroom page follows its trial
//
// The log tells that it has grown. The stream of a trial that is watched then reads the new records, each once, into one trial.View, which
// all watchers share, and encodes the events that this gives. Each watcher is sent the events. The page, when it hears one, asks for what is
// new since the record that it has (?after=), and gets only that, rendered from the shared View.
//
// # Packages, bottom up
//
// Public, pure (no clock, no file, no network; they compile to WebAssembly):
//
//	evidence    payload, canonical form, signatures, sealing, strict opening; its package doc is the format in brief
//	            evidence/operator: what the operator states: bodies of its acts, checkpoints, consistency, cosignatures
//	timestamp   RFC 3161: request, response, token, verification; the built-in authority and the deterministic mock
//	jury        the deliberation: phases, rounds, consensus, methods; replaying a trial from its acts
//	aep         an older neighbour's evidence packages, read
//	dsse        an envelope for other tools, DSSE around an in-toto statement about records
//	trustlist   the EU's trusted lists: verified from the Official Journal on, and which services were qualified when
//	verify      a trust file and records in, a report out
//	            verify/trust: what a reader believes, asked about keys, certificates, revocation and tokens
//	            verify/graph: how the records of a file name each other; timelines, and who introduced a text
//
// Public, for those who hold their keys themselves:
//
//	api         what travels over HTTP: requests, answers, problems
//	client      completes and signs a payload where the key is, and checks what came back
//
// Public, for those who watch a log:
//
//	tiles       reads a log over HTTP as C2SP tlog-tiles lays it out, and proves from it what its checkpoint covers
//
// Beside them:
//
//	examples    three cases to try, contained in the program
//
// For tests:
//
//	jurattest          an installation in memory whose keys, clock and ids are known; scripted jurors; an authority that fails
//	internal/listtest  trusted lists, written and signed
//	internal/dertest   DER taken apart and put together again, changed where a test wants it
//	internal/aeptest   evidence packages, honest and not
//	internal/browsertest   a real browser, driven through pages
//	internal/tokentest     tokens of SoftHSM, and the program jurat-token
//	internal/disktest      a small disk, which can be filled, and mounted for reading
//	internal/storetest     what every store of a log, and every file store, must do
//	internal/pgtest        a real PostgreSQL, started, killed and started again
//
// Internal:
//
//	rsakey        says which RSA keys are used, and which take too long
//	plural        how many there are of something, in English
//	fault         makes a panic in a reader of foreign bytes an error
//	atomicfile    files that are there whole or not at all
//	filestore     the small files of an installation, in a folder of one machine or in a database that many share;
//	              encrypted there under a key that the database never has
//	postgres      what machines share on a PostgreSQL server: the store of a log, a file store, and the connections to it
//	lock          who is at work on a trial, among the processes of one machine or among machines
//	keys          whose key is whose: what the log says of keys, and one key pair per actor and role, with an ML-DSA-65 key
//	              beside it where that is wanted
//	token         the protocol of helpers that keep keys: jurat's client, and the server of a helper
//	pkcs11        keys on hardware tokens, through the vendor's PKCS #11 library; only jurat-token links it
//	erasure       what opens the fields that are sealed apart: kept encrypted, each under a key that can be destroyed; and erasing it
//	ledger        the only writer: seals and appends. ledger/storage is the contract of the stores ledger/sqlite, postgres and
//	              ledger/memory; ledger/brief says what lists show of records, and what names what;
//	              ledger/links judges what a record says that it follows; ledger/fsck examines all that is stored
//	archive       ranges of the log in compressed files, from which each record is read and proved by itself; and what the log says on
//	              keeping records: for how long, which are held, and which were deleted
//	eutrust       authorities of a trust file, taken from the EU's trusted lists; and fetches these lists
//	stamping      time-stamping authorities, asked over HTTP; what waits for a time stamp, gets one later, or needs a new one
//	witness       cosigns checkpoints of logs that it has seen grow, and asks the witnesses of the own log to; and watches a log that somebody else
//	              runs, and alarms when it forks, shrinks or rewrites
//	card          an A2A agent card's signatures, made and checked in each form that implementations use
//	subject       the agent under trial: reads its card and its conversation, or what its sealed
//	              records say, once they are verified
//	juror         what all jurors share; juror/model seats language models, and juror/rules, below them, jurors and a judge
//	              that are rules
//	llm           one call to one language model, with a file for each vendor; llm/wire has the bodies that travel, and the
//	              servers of llm/llmtest speak the vendors' protocols to tests
//	config        how a jury is to sit: a strict file, what flags and environment say, keys, prices
//	panel         a jury that is seated: models behind their adapters, held to time, rate and money
//	acts          what agents and people do with a log, each once: seal, accept, review, deliver; who may do it, and who may read what, is decided here
//	trial         a case through jury and ledger to a verdict; its read model, from which page, events, result, statistics and lists are made
//	schedule      which trials are to be held, and by which process: the queue, who conducts them, and what happens in them, for any number
//	              of watchers over WebSocket or as server-sent events; a watched trial is followed in the log once for all
//	stats         what many trials have in common; how reliable jurors are, measured, and votes weighed by that
//	words         everything that people read in a language, a file for each: terms, statements, pages, the portal
//	incident      the statement for people about what happened
//	openssl       what OpenSSL needs to check records without jurat
//	pages         what people see in a browser: courtroom, desk, records and chains, in three languages
//	portal        the page on which a stranger verifies in his own browser; portal/verifier is the program that runs there, of
//	              portal/visit, and portal/build compiles and packs it
//	installation  keys, authority and log that belong together: a data folder, or a database that several machines share
//	backup        copies an installation that is in use, and makes one of a copy
//	bench         what this machine does, measured in turn with what cannot be done without
//	names         which names people and agents may begin to act under, and which names are one person's
//	access        who may do what: read from the log, as acts of the operator
//	provider      asks a provider of OpenID Connect who somebody is; provider/providertest is one, for tests
//	tracing       what the program did and how long it took, told to an OpenTelemetry collector where one is named
//	limits        how often a caller may ask, and what requests hold in memory together
//	jsonschema    describes Go types as JSON schemas
//	server        the house as people and programs enter it over HTTP: one table of routes, and what each needs
//
// cmd/jurat-token is the helper for hardware tokens, a program of its own. cmd/jurat is the command: main, then a file for each subcommand. Tests in this folder hold which package may see which, and
// that all of them are named here.
package jurat
