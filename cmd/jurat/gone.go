package main

// gone are commands and flags that earlier programs had, and what to use instead.
var gone = map[string]string{
	"archive":                   "the log compresses its records itself, and each is read alone; 'jurat log expire --before DATE' removes the content of old ones, none younger than 183 days",
	"hold":                      "'jurat log expire --except CHAIN' leaves a chain; nothing is erased but by 'jurat erase'",
	"--archive":                 "the log compresses its records itself, and there are no archive files",
	"bench":                     "measurements are Go benchmarks now: 'scripts/test bench' in the source prints a table of them",
	"log draw":                  "'jurat reputation AGENT' shows how much of an agent's conduct was tried; who chose the records is the operator's word",
	"trial --drawn":             "'jurat trial --recorded CHAIN' tries what a recorder saw, and 'jurat log case CHAIN' writes other records to try",
	"serve --continuous":        "write webhook in the file of --config, which is told when a case needs a person; 'jurat trial --recorded CHAIN' tries records, on a schedule of your own",
	"webhook test --continuous": "'jurat webhook test --config FILE' reads the webhook of that file",
	"record reconcile":          "'GET /v1/recordings' lists the recorded conversations as JSON, and 'jurat log case' writes the calls of one, with what each used",
	"record mcp --sign-in":      "get a token at the server, by its own program or page, and give it with --key FILE",
	"record otlp --grpc":        "set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf and OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 in the exporter's environment",
	"trial --exhibit":           "put the text of the statement into the conversation, as a message or a tool's result",
	"case check --exhibit":      "put the text of the statement into the conversation, as a message or a tool's result",
	"prove --equal":             "give the two values to who must compare them: 'jurat redact' takes all other texts out of the file",
	"prove --at-most-sum":       "prove a bound of each value with --range",
	"verify --for-all":          "demands are asked of each record that has the member; --entries and --checkpoint prove that no record of a chain is left out",
	"trust scitt":               "'jurat verify' checks statements that 'jurat export --scitt' wrote; an issuer's own statements are checked with a tool for SCITT",
	"export --dsse":             "'jurat export --scitt' writes statements that are signed",
	"mandate":                   "say in the reader's trust file for whose keys a CA vouches: 'jurat trust --ca FILE --role ROLE --custody owner'",
	"trust --mandate":           "'jurat trust --ca FILE --role ROLE' says for whose keys the CA vouches",
	"lists keep":                "keep the files that 'jurat lists fetch' fetched: 'jurat trust eu' reads a folder of them, also an old one",
	"lists show":                "'jurat trust eu --lists DIR' reads the lists of a folder, which 'jurat lists fetch' fills",
	"reputation --export":       "'jurat reputation --json' prints all that is known, and 'jurat log case' the records behind it",
}
