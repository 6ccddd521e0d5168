package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/internal/portal"
	"jurat/verify"
)

// verifierDriver verifies files with the client's verifier: node driver.mjs PAGE TRUST FILE... prints a line of JSON for each.
const verifierDriver = `import { readFileSync } from "node:fs";
import { verify } from "./jurat.js";
import { Verifier } from "./verifier.js";
const [page, trust, ...files] = process.argv.slice(2);
const verifier = new Verifier(readFileSync(page));
const answers = await Promise.all(files.map(async (file) => {
	try {
		return { report: await verify(readFileSync(file), readFileSync(trust), verifier) };
	} catch (err) {
		return { refused: err.message };
	}
}));
await verifier.close();
for (const answer of answers) console.log(JSON.stringify(answer));
try {
	new Verifier("<html></html>");
} catch (err) {
	console.log(JSON.stringify({ refused: err.message }));
}
`

// TestTypeScriptClientVerifiesWithoutTheCommand: the client in TypeScript runs the portal's program under Node, and finds of each file what the
// command finds.
func TestTypeScriptClientVerifiesWithoutTheCommand(t *testing.T) {
	t.Parallel()
	c := foreignClients(t, "typescript")
	dir := t.TempDir()
	data := "--data=" + filepath.Join(dir, "data")
	payload := write(t, filepath.Join(dir, "payload.json"), `{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p","response":"r","parameters":{}}`)
	doing(t, 0, data, "init")
	before := write(t, filepath.Join(dir, "before.json"), doing(t, 0, data, "trust")+"\n")
	record := write(t, filepath.Join(dir, "record.json"), doing(t, 0, data, "seal", payload)+"\n")
	trust := write(t, filepath.Join(dir, "trust.json"), doing(t, 0, data, "trust")+"\n")
	changed := write(t, filepath.Join(dir, "changed.json"), strings.Replace(read(t, record), `"prompt":"p"`, `"prompt":"q"`, 1))
	page := filepath.Join(dir, "verify.html")
	must.Do(t, os.WriteFile(page, portal.File(), 0o600))
	driver := write(t, filepath.Join(c.folder, "verifier-driver.mjs"), verifierDriver)
	type answer struct {
		Report  *verify.Report
		Refused string
	}
	asked := func(by string, files ...string) (answers []answer) {
		t.Helper()
		cmd := c.run(driver)
		cmd.Args = append(append(cmd.Args, page, by), files...)
		cmd.Dir, cmd.Env = c.folder, append(os.Environ(), "PATH=/nowhere") // no command is there
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, &errs)
		}
		for line := range strings.Lines(string(out)) {
			var a answer
			if err := json.Unmarshal([]byte(line), &a); err != nil {
				t.Fatal(line, err)
			}
			answers = append(answers, a)
		}
		return answers
	}
	for _, test := range []struct {
		by, file string
		code     int
		want     verify.Status
	}{{trust, record, 0, verify.Proved}, {trust, changed, exitBad, verify.Refuted}, {before, record, exitUndecided, verify.NotProved}} {
		var want verify.Report
		must.Do(t, json.Unmarshal([]byte(doing(t, test.code, "verify", "--json", "--trust", test.by, test.file)), &want))
		got := asked(test.by, test.file)[0]
		if got.Report == nil || got.Report.Outcome != test.want || want.Outcome != test.want || len(got.Report.Guarantees) != len(want.Guarantees) {
			t.Errorf("%s by %s: %+v, and the command says %+v", test.file, test.by, got, want)
			continue
		}
		for i, f := range want.Guarantees {
			if got.Report.Guarantees[i].Guarantee != f.Guarantee || got.Report.Guarantees[i].Status != f.Status {
				t.Errorf("%s: %+v, and the command says %+v", test.file, got.Report.Guarantees[i], f)
			}
		}
	}
	answers := asked(trust, record, payload, changed)
	if len(answers) != 4 || answers[0].Report == nil || answers[0].Report.Outcome != verify.Proved || !strings.Contains(answers[1].Refused, "neither a sealed record") ||
		answers[2].Report == nil || answers[2].Report.Outcome != verify.Refuted || !strings.Contains(answers[3].Refused, "jurat portal --out") {
		t.Errorf("%+v", answers)
	}
}
