package main

import (
	"github.com/alecthomas/kong"
	"strings"
)

// exampleLines has a command line for each command that can be run: the common case, as people type it. '--help' shows it, and a test runs
// it. A word in capitals stands for a value that the reader has, such as a record's id.
var exampleLines = map[string]string{
	"init":        "jurat init",
	"init case":   "jurat init case cases/parcels",
	"init config": "jurat init config jurat.yaml",
	"init ci":     "jurat init ci .github/workflows/jurat.yml",

	"trial":          "jurat trial examples/kitchen-return",
	"trials list":    "jurat trials list --verdict unsafe_fail --from 2026-01-01",
	"trials show":    "jurat trials show TRIAL",
	"trials compare": "jurat trials compare TRIAL OTHER-TRIAL",
	"case check":     "jurat case check transcript.json",
	"case schema":    "jurat case schema > conversation.schema.json",
	"reputation":     "jurat reputation support-agent",

	"record run":    "jurat record run --agent support-agent -- sh agent.sh",
	"record proxy":  "jurat record proxy --agent support-agent --listen 127.0.0.1:8419",
	"record otlp":   "jurat record otlp --agent support-agent --listen 127.0.0.1:4318",
	"record status": "jurat record status",
	"record a2a":    "jurat record a2a --agent support-agent --upstream http://127.0.0.1:9000 --listen 127.0.0.1:8420",
	"record mcp":    "jurat record mcp --agent support-agent -- sh server.sh",
	"record chains": "jurat record chains --agent support-agent",
	"record show":   "jurat record show recorded/support-agent/order-7",

	"import": "jurat import results.json --agent support-agent",

	"seal":        "jurat seal payload.json > record.json",
	"sign":        "jurat sign --key private.pem payload.json > signed.json",
	"apart":       "jurat apart",
	"apart set":   "jurat apart set support-agent prompt response /metadata/user_id",
	"apart list":  "jurat apart list",
	"apart unset": "jurat apart unset support-agent",
	"prove":       "jurat prove RECORD --range /metadata/amount=0..5000 -o proved.json",
	"redact":      "jurat redact record.json --field prompt --out for-the-auditor.json",
	"erase":       `jurat erase RECORD --field prompt --reason "request of 12 May" --by "data protection officer"`,

	"verify":  "jurat verify --trust trust.json case.jurat",
	"explain": "jurat explain record.json --trust trust.json",
	"portal":  "jurat portal --out verify.html",
	"export":  "jurat export record.json --openssl check --trust trust.json && sh check/verify.sh",
	"report":  "jurat report --ai-act --agent support-agent",

	"trust":         "jurat trust > trust.json",
	"trust eu":      "jurat trust eu --oj oj.pem --lists lists --with trust.json > with-eu.json",
	"trust join":    "jurat trust join trust.json theirs.json > both.json",
	"trust explain": "jurat trust explain trust.json",

	"keys":              "jurat keys",
	"keys list":         "jurat keys list",
	"keys new":          "jurat keys new agent logistics-agent-v1",
	"keys register":     `jurat keys register agent logistics-agent-v1 --public public.pem --reason "the owner's own key"`,
	"keys card":         `jurat keys card agent refund-bot signed-card.json --reason "the card of version 2"`,
	"keys rotate":       `jurat keys rotate agent support-agent --reason "once a year"`,
	"keys retire":       `jurat keys retire KEY-ID --reason "the agent is switched off"`,
	"keys revoke":       `jurat keys revoke KEY-ID --reason "the laptop was stolen"`,
	"keys wrapping-key": "jurat keys wrapping-key wrapping.key",
	"keys rewrap":       "jurat --db postgres://jurat@db.example/jurat --wrapping-key wrapping.key keys rewrap",
	"keys history":      "jurat keys history",

	"access":           "jurat access",
	"access list":      "jurat access list --all",
	"access grant":     `jurat access grant logistics-agent-v1 agent --reason "it goes into production"`,
	"access link":      "jurat access link --at https://jurat.example",
	"access revoke":    `jurat access revoke TOKEN-ID --reason "ines works elsewhere now"`,
	"access admit":     `jurat access admit tool-agent order-4711 --reason "it took over from the planner"`,
	"access publish":   `jurat access publish order-4711 --reason "the customer asked for it"`,
	"access unpublish": `jurat access unpublish order-4711 --reason "the order is closed"`,

	"card verify": "jurat card verify --trust trust.json signed-card.json",

	"ca init":   `jurat ca init --ca agents-ca --name "Example Ltd agents"`,
	"ca issue":  `jurat ca issue --ca agents-ca request.pem > certificate.pem`,
	"ca revoke": "jurat ca revoke --ca agents-ca certificate.pem --cause keyCompromise",
	"ca crl":    "jurat ca crl --ca agents-ca --out agents.crl",

	"lists fetch": "jurat lists fetch --oj oj.pem lists",

	"log checkpoint":     "jurat log checkpoint > now.checkpoint",
	"log consistency":    "jurat log consistency old.checkpoint > proof.json",
	"log monitor":        "jurat log monitor https://jurat.example/log --trust trust.json --state jurat.checkpoint",
	"log witness add":    "jurat log witness add https://witness.example --key WITNESS-KEY",
	"log witness list":   "jurat log witness list",
	"log witness remove": "jurat log witness remove witness.example/w1",
	"log witness ask":    "jurat log witness ask",
	"log entries":        "jurat log entries > entries.jsonl",
	"log prove":          "jurat log prove RECORD --withhold prompt > for-the-auditor.json",
	"log case":           "jurat log case order-4711 > chain.jurat",
	"log expire":         `jurat log expire --before 2025-01-01 --reason "the time for which they are kept is over" --by "records office"`,
	"log anchor":         "jurat log anchor",
	"log pending":        "jurat log pending",
	"log stamp":          "jurat log stamp",
	"log renew":          "jurat log renew --tsa freetsa",
	"log reindex":        "jurat log reindex",
	"log fsck":           "jurat log fsck",

	"records find": `jurat records find "transfer approved" --said`,

	"witness init":  "jurat witness init witness.example/w1",
	"witness key":   "jurat witness key",
	"witness serve": "jurat witness serve --addr 127.0.0.1:8418 --log trust.json",
	"witness list":  "jurat witness list",

	"tsa add":    "jurat tsa add freetsa https://freetsa.example/tsr --root freetsa-ca.pem",
	"tsa list":   "jurat tsa list",
	"tsa remove": "jurat tsa remove freetsa",

	"serve":        "jurat serve --addr 127.0.0.1:8417",
	"ready":        "jurat ready https://jurat.example",
	"webhook test": "jurat webhook test --config webhook.yaml",
	"backup":       "jurat backup backups/2026-01-31",
	"restore":      "jurat --data restored restore --checkpoint now.checkpoint backups/2026-01-30",

	"help":       "jurat help verifying",
	"doctor":     "jurat doctor",
	"completion": "jurat completion bash",
	"version":    "jurat version",
}

// exampleOf is the help's section with a command's example, or "".
func exampleOf(command *kong.Node) string {
	line, ok := exampleLines[command.Path()]
	if !ok {
		return ""
	}
	return "Example:\n\n    " + strings.ReplaceAll(line, "\n", "\n    ")
}
