// Package jurat is the tour of the program. It holds no code.
//
// jurat puts AI agents before a jury of three, and seals everything that any agent says, the accused and the jurors alike, into signed and time-stamped
// records that a stranger can verify offline. Packages without a path are in the rooms of internal: log, court, tap, web.
//
// # An answer of an agent is recorded
//
//	the agent calls its model      package recorder inside the program, or 'jurat record' before it: tap/relay passes the bytes on unchanged
//	  → whose call is it?          log/access: the grant of a token
//	  → what was said?             tap/traffic and tap/convo read the bytes; evidence/observed makes the act of them
//	  → sealed, then answered      tap/sealer keeps a journal, and holds the end of the answer back until the record is there
//	  → who may seal it?           court/acts, as for 'jurat seal' and a POST to the server; the operator's acts: ledger.Operator
//	  → what must stay erasable    log/erasure: it leaves the payload as commitments
//	  → canonical JSON, signed     evidence: one document, one form; log/keys: the actor's own key
//	  → does it fit the log?       log/ledger: chains, reviews and deliveries, inside the transaction
//	  → stamped, durable, proved   log/stamping and timestamp: RFC 3161; ledger/sqlite or postgres; ledger: up to a signed checkpoint
//
// # A trial is held
//
//	a case                         court/subject: card and conversation of the accused, or its sealed records
//	  → its turn                   court/schedule: a queue that processes share
//	  → who judges?                court/panel: configuration, keys, limits; juror/rules, or juror/model through court/llm
//	  → rounds                     jury says what follows from the acts; court/trial asks, and its clerk seals one act at a time
//	  → what people see            trial.View, projected from the records: web/docket, web/pages, web/server
//
// A trial consists of acts alone. If a server dies in a round, its lock ends, and another process takes the trial over within 15 seconds. It replays the
// sealed acts and asks only the seats that have no act yet; the jury must be the same. After six attempts the trial waits for a person.
//
// # A file is verified
//
//	a file and a trust file        verify/trust: what the reader believes; evidence opens records strictly
//	  → an answer a guarantee      verify: signatures, time stamps, proofs, the jury replayed; nothing that comes with the file is believed
//	  → in words                   web/words; 'jurat verify', or web/portal in a browser
//
// # Where to add what
//
// Tests name what is missing. The portal needs 'go generate ./internal/web/portal'.
//
//	an action type      evidence/payload.go, docs/format.md, web/words, trial.View, testdata/second-verifier; the operator's: evidence/operator
//	a model vendor      court/llm and llm/llmtest, tap/convo, tap/traffic, court/subject (its signs), court/panel
//	a language          web/words: a file beside en.txt and pages/en.txt, and its line in words.go
//	a store of the log  ledger/storage.Store, tested by storetest; log/installation opens it. If machines share it: also filestore.Store, lock.Locks,
//	                    schedule/table.go
//	a guarantee         verify/report.go, web/words, docs/format.md, testdata/second-verifier
//	a page              its route in web/server/table.go, its view and template in web/pages, its texts in web/words
//	a rule              juror/rules: a line in rules.go and a function; Version changes, because trials record it. A method: jury/method.go, docs/format.md
//	a command           cmd/jurat: a field of its parent in main.go, its file, help.txt, testdata/help-all.txt (go test -run AllHelp -update)
//	a text              people's: web/words/en.txt and its translations, then the code that asks for it; a command's: where it is printed
//	a limit             a constant beside the check; if files can meet it, docs/format.md and testdata/second-verifier, else the document of its interface
//
// # The rooms
//
// Public and pure (no clock, file or network; also in WebAssembly): evidence (the format), evidence/operator, evidence/observed, evidence/jsonform,
// evidence/scitt (COSE), evidence/property (proofs about hidden values), timestamp, jury, verify, verify/trust, verify/eulist, reputation.
//
// Public, for other programs: client (signs where the key is), client/api (what travels over HTTP), client/tiles (reads a log), recorder. examples: cases to try.
//
//	log    ledger (the only writer), ledger/storage, ledger/sqlite, ledger/brief, ledger/fsck, postgres, filestore, lock, keys, token (signs by a helper
//	       program), ca, erasure, stamping, eutrust, witness, installation (all together; backup; expiry), access, names, duties (clauses of laws)
//	court  subject, card (signatures of agents' cards), juror, juror/model, juror/rules, llm, llm/llmtest, panel, trial, schedule, acts, stats
//	tap    relay (passes calls on, shows a copy), traffic (reads their bytes), traffic/otlp, convo (vendors' formats), sealer (seals them), telemetry
//	       (OpenTelemetry's exporters), importing (others' files)
//	web    server, pages, portal, portal/verifier, portal/visit, portal/build, words (all texts, and statements made of them), find, docket, openid, tracing, openssl
//	kit    cbor, sigkey, plural, fault (a panic becomes an error), inorder (parallel work), atomicfile, webhook
//	test   jurattest (an installation for tests), rig (disk, PostgreSQL, token, provider), must, listtest, browsertest, storetest, bench
//
// cmd/jurat is the command, cmd/jurat-lab measures juries. The folder pkcs11 is a module of its own: the helper for hardware tokens.
package jurat
