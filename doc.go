// Package jurat is the tour of the program. It holds no code.
//
// jurat puts AI agents before a jury, and seals what they and the jurors say into signed and time-stamped records that a stranger can verify
// offline. Packages without a path are in the rooms of internal: log, court, tap, web. The ways list the calls that change what is said, or whom to believe.
//
// # An answer of an agent is recorded
//
//	the agent calls its model      package recorder in its program, or 'jurat record' before it, leads it through tap/relay
//	  → whose call is it?          relay: sealer.AgentOf; recorder: access.Agent; access: ledger.InChain
//	  → noted before it goes on    relay: sealer.Begin, which keeps a journal; sealer: ledger.InPlace; relay asks the provider
//	  → the end is held back       relay: sealer.End, in closed mode until the record is there; open mode holds nothing
//	  → what was said?             sealer: traffic.Project finds its conversation, observed.Draft facts in the bytes; observed: evidence.NewDraft
//	  → who may seal it?           sealer: acts.Seal, by Observations; acts: keys.ToSeal, ledger.Seal
//	'jurat seal', or a POST        cmd/jurat: evidence.ParseDraft, acts.Sealable, acts.Seal; acts: ledger.Bind, keys.ToSeal, ledger.Seal
//	every seal: what stays apart   ledger: erasure.Apart says it of agents and reviewers, the sealer of what it recorded
//	  → canonical JSON, signed     ledger: evidence.Seal leaves commitments; the actor's own key
//	  → does it fit, stamped       clock, links of agents and reviewers; ledger: erasure.Keep, stamping.Stamp; stamping: timestamp.Issue
//	  → durable                    ledger: brief.Of, verify.JudgedActor, storage.Append; sqlite or postgres; ledger judges again inside the transaction
//	  → proved, later              ledger: up to a signed checkpoint
//
// # A trial is held
//
//	a case                         server: access.Who, subject.NewAs: card and conversation, or sealed records; access: ledger.InChain
//	  → submitted                  server: acts.KeyedID, schedule.SubmitOnce; schedule: trial.Follow, trial.Submit, then a shared queue has it
//	  → sealed, as all its acts    trial: lock.Lock, keys.Signers, evidence.NewDraft, ledger.Seal
//	  → its turn                   schedule: trial.Resume; trial: ledger.Chain, subject.Parse; schedule: installation.Vouch; installation: verify.Record
//	  → who judges?                cmd/jurat: panel.Sit, by configuration, keys, limits; panel: model.New (or rules), juror.Juror
//	  → rounds                     trial: jury.Run, which says what follows; jury: juror.Answer; juror: model.Answer; model: llm.Ask; trial: jury.EncodeBody
//	  → what people see            schedule: ledger.Checkpoint; View of trial, projected from the records: web/docket, web/pages, web/server
//
// A trial consists of acts alone. If a server dies, another process takes the trial over within 15 seconds, replays the sealed acts, and asks only the seats
// that have none; the settings must be the same. After six attempts the trial waits for a person.
//
// # A file is verified
//
//	a file and a trust file        verify/trust: what the reader believes; evidence opens records, in other spellings of JSON too
//	  → an answer a guarantee      verify: checkpoint; of each record time stamps, signatures, disclosures, place, proofs, recorded bytes; of all chains, reviews, the jury replayed
//	  → in words                   English reasons: verify, verify/trust, timestamp; names, questions, translations: web/words; 'jurat verify' adds lines; or web/portal
//
// # Where to add what
//
// Tests name most of what is missing. Changes in evidence, timestamp, jury, verify or web/words need 'go generate ./internal/web/portal'.
//
//	an action type      its constant and rule in evidence/payload.go; verify/trial.go (statesModel) if it names a model; docs/format.md, web/words,
//	                    testdata/second-verifier. A trial's: jury, trial.View; the operator's: evidence/operator; a recorder's: evidence/observed.go, kinds in tap/sealer
//	a model vendor      tap/convo. To judge: court/llm, llm/llmtest, court/panel, court/juror (its name), docs/configuration.md. To be recorded or tried:
//	                    evidence/observed/facts.go, tap/traffic, relay/protocol.go, recorder/options.go, court/subject, docs/facts.md, testdata/second-verifier
//	a language          web/words: files beside en.txt, pages/en.txt, and words.go; --lang in cmd/jurat: verify.go, help.txt; web/server: openapi.go, table.go
//	a store of the log  ledger/storage.Store (by storage.Engine), storage.Values, storetest; log/installation: installation.go (find), folder.go, backup.go,
//	                    restore.go; if machines share it, filestore.Store, lock.Locks, schedule/table.go
//	a guarantee         verify: report.go, its rules in rules.go, and applies; web/words, docs/format.md, testdata/second-verifier
//	a page              web/server: its route in table.go and its method; web/pages: its type, a template of that name in small letters, frame.html; web/words/pages; a column: client/api, web/docket
//	a juror's rule      juror/rules: a line and help in rules.go, and a function; Version; docs/rules.md; testdata/passages
//	a method            jury: types.go, method.go, tally.go, settings.go; web/server/openapi.go, web/words, docs/format.md, testdata/second-verifier
//	a command           cmd/jurat: a field of its parent (main.go, log.go, …; of the top, help.go's group), help.txt, testdata/help-all.txt (go test -run AllHelp -update)
//	a text              a report's reason: verify, verify/trust, timestamp, and reason.* of the translations; pages': web/words; a webhook's: web/server/outside.go; a command's: where printed
//	a limit             a constant beside the check (a payload: MaxDocument in evidence/record.go), and those computed from it; if files can meet it,
//	                    docs/format.md and testdata/second-verifier
//
// # The rooms
//
// Public and pure (no clock, file or network; for browsers what a verifier needs of them): evidence (the format), evidence/operator, evidence/observed, evidence/jsonform,
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
//	kit    cbor, sigkey, plural, fault (a panic becomes an error), inorder (parallel work, in order), atomicfile, webhook
//	test   jurattest (an installation for tests), rig (disk, PostgreSQL, token, provider), must, listtest, browsertest, storetest, bench
//
// cmd/jurat is the command, cmd/jurat-lab measures juries. The folder pkcs11 is a module of its own: the helper for hardware tokens.
package jurat
