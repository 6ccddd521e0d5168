package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"jurat/internal/atomicfile"
	"jurat/internal/stats"
)

const aboutVotes = `Votes are JSON Lines: {"item": "42", "juror": "juror-gpt", "vote": "unsafe_fail", "label": "unsafe_fail"}. A vote of null is an
abstention. The label, where the right answer is known, may stand on any line of an item. "confidence" (0 to 1) may stand on each
line, for the method weighted, and "model" and "template" (the digest of the seat's template) may say what gave the vote: weights then
hold for that model and template alone, and no other takes them.`

type calibrateCmd struct {
	Votes string `required:"" placeholder:"FILE" help:"Votes in JSON Lines; - is standard input."`
	Out   string `required:"" placeholder:"FILE" help:"The calibration file to write."`
	JSON  bool   `name:"json" help:"Print the calibration as JSON, too."`
}

// Help is shown by 'jurat-lab calibrate --help'.
func (*calibrateCmd) Help() string {
	return aboutVotes + `

Measured are, on items with a label: each juror's reliability, with a 95 % interval, and the weight that its vote gets (negative for a juror worse than chance, whose vote counts against its position); how the
errors of each pair go together (phi coefficient); and how many independent votes the jurors are worth given that.`
}

// Run measures jurors.
func (c *calibrateCmd) Run(io streams) error {
	ballots, err := readVotes(io.in, c.Votes)
	if err != nil {
		return err
	}
	measured, err := stats.Calibrate(ballots)
	if err != nil {
		return hint(err, "put the right answer as \"label\" on a line of each item that has one")
	}
	doc, err := document(measured)
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(c.Out, doc, 0o644); err != nil {
		return err
	}
	if c.JSON {
		return io.machine(doc)
	}
	var lines []string
	tell := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	tell("%d items with a label, %d choices", measured.Items, measured.Choices)
	for _, j := range measured.Jurors {
		tell("%-20s correct %d of %d (95 %% interval %.2f to %.2f), %d abstentions, weight %.3f",
			j.Juror, j.Correct, j.Votes, j.Low, j.High, j.Abstentions, float64(j.Weight)/stats.Unit)
	}
	for _, pair := range measured.Pairs {
		tell("errors of %s and %s: correlation %+.2f on %d items", pair.A, pair.B, pair.Correlation, pair.Items)
	}
	tell("worth %.2f independent votes", measured.EffectiveVotes)
	if leader := measured.Leader(); leader != "" {
		tell("%s weighs more than all others together: its vote always decides, and to follow it alone is the best that these weights can do", leader)
	}
	for _, line := range lines {
		err = errors.Join(err, io.say("%s", line))
	}
	return err
}

type aggregateCmd struct {
	Votes       string       `required:"" help:"Votes in JSON Lines; - is standard input."`
	Method      stats.Method `required:"" help:"majority, weighted (by stated confidence) or calibrated (by the log-odds of measured reliability)." enum:"majority,weighted,calibrated"`
	Calibration string       `help:"A calibration file, for the method calibrated. Without one, the labels among the votes are used."`
	JSON        bool         `name:"json" help:"Print {verdicts, accuracy, labelled, correct} as JSON."`
}

// Help is shown by 'jurat-lab aggregate --help'.
func (*aggregateCmd) Help() string {
	return aboutVotes + `

Each item gets one verdict: the choice whose votes weigh most, or null on a tie or if no vote weighs anything. With
labels the accuracy is told; an item without a verdict counts as wrong. For each item, the method calibrated uses weights that were
measured without that item's label, also if they come from a file.

    jurat-lab aggregate --votes votes.jsonl --method calibrated --calibration calibration.json --json`
}

// Run decides on each item.
func (c *aggregateCmd) Run(io streams) error {
	ballots, err := readVotes(io.in, c.Votes)
	if err != nil {
		return err
	}
	measured, err := stats.Load(c.Calibration)
	if err != nil {
		return hint(err, "'jurat-lab calibrate' writes such a file")
	}
	verdicts, err := stats.Aggregate(ballots, c.Method, measured)
	if err != nil {
		return hint(err, "measure the jurors with 'jurat-lab calibrate' and give --calibration FILE")
	}
	if c.JSON {
		doc, err := document(verdicts)
		if err != nil {
			return err
		}
		return io.machine(doc)
	}
	for _, item := range slices.Sorted(maps.Keys(verdicts.Verdicts)) {
		err = errors.Join(err, io.say("%s\t%s", item, verdicts.Verdicts[item].String()))
	}
	if verdicts.Accuracy != nil {
		io.note("accuracy %.4f: %d of %d labelled items", *verdicts.Accuracy, verdicts.Correct, verdicts.Labelled)
	}
	return err
}

func readVotes(stdin io.Reader, file string) ([]stats.Ballot, error) {
	if file == "-" {
		return stats.Read(stdin)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ballots, err := stats.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return ballots, nil
}
