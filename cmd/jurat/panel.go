package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"jurat/internal/config"
	"jurat/internal/panel"
	"jurat/internal/stats"
	"jurat/internal/trial"
	"jurat/jury"
)

// panelFlags say who sits and by which rules. What they leave open the configuration file says, and what that leaves open
// has a default.
type panelFlags struct {
	Config        string   `placeholder:"FILE" help:"Who sits and how, as YAML. Default: jurat.yaml in the working directory, if it is there." env:"JURAT_CONFIG"`
	Jurors        string   `placeholder:"offline|llm" help:"Who sits: the panel of language models (llm), or rules (offline). Default: llm where a key of the panel is set, and otherwise rules, whose safe_pass then exits with 3." env:"JURAT_JURORS"`
	Panel         string   `placeholder:"thorough|quick" help:"How much work language models do: tables before scores, the judge's own reading, disputed seats asked twice (thorough, default), or none of it and a round less (quick). 'jurat trial --check' shows what each costs." env:"JURY_PANEL"`
	Method        *string  `placeholder:"METHOD" help:"How phase 3 decides: majority_vote, weighted_average, median, final_judge (default) or calibrated." env:"JURY_FINAL_JUDGMENT_METHOD"`
	JudgeModel    string   `placeholder:"MODEL" help:"The final judge's model. Default: gemini-3.8-flash." env:"JURY_FINAL_JUDGE_MODEL"`
	Calibration   string   `placeholder:"FILE" help:"A calibration file ('jurat-lab calibrate'): what the method calibrated weighs votes by."`
	Rounds        *int     `placeholder:"N" help:"At most so many rounds of discussion. Default: 3; 0 if only rules sit before a judge." env:"JURY_MAX_DISCUSSION_ROUNDS"`
	Threshold     *float64 `placeholder:"X" help:"Agreement that ends the discussion: 2.0 (default) always discusses, 1.0 wants all, 0.67 two of three." env:"JURY_CONSENSUS_THRESHOLD"`
	Collaborative *bool    `negatable:"" help:"Discuss before judging (default)." env:"JURY_USE_COLLABORATIVE"`
	CostCeiling   *float64 `placeholder:"USD" help:"What the trial's calls may cost in all, in US dollars, more than 0. A trial that reaches it is inconclusive. Default: no ceiling." env:"JURAT_COST_CEILING"`
}

// howToGetAJury is what to do where no model sits.
const howToGetAJury = "set the keys for a jury of language models; if rules are what you want, say so by --jurors offline, JURAT_JURORS=offline or jurors: offline in the configuration"

// A court is a jury that is seated, and the settings of its trials.
type court struct {
	panel    *panel.Panel
	plan     *config.Plan
	settings jury.Settings
	webhook  *config.Webhook // is told by a server when a case needs a person; nil: nobody is
	unbound  []string        // jurors whose weights do not say on which model and template they were measured
}

// court seats the jury.
func (c *panelFlags) court(io stdio) (*court, error) {
	if c.Jurors != "" && c.Jurors != string(config.Offline) && c.Jurors != string(config.LLM) {
		return nil, fmt.Errorf("--jurors: %q is neither %s nor %s", c.Jurors, config.Offline, config.LLM)
	}
	if err := config.Care(cmp.Or(c.Panel, string(config.Thorough))).Check(); err != nil {
		return nil, fmt.Errorf("--panel: %w", err)
	}
	file, err := c.file(io)
	if err != nil {
		return nil, err
	}
	plan, err := config.NewPlan(file, config.Wishes{Jurors: config.Kind(c.Jurors), Care: config.Care(c.Panel), Method: c.Method, Rounds: c.Rounds, Threshold: c.Threshold,
		Collaborative: c.Collaborative, JudgeModel: c.JudgeModel, CostCeiling: c.CostCeiling}, os.Getenv)
	if err != nil {
		return nil, hint(err, "'jurat trial --help' says where keys are looked for; nothing was recorded")
	}
	p, err := panel.New(plan, nil)
	if err != nil {
		return nil, hint(err, "nothing was recorded")
	}
	ct := &court{panel: p, plan: plan, settings: p.Settings(), webhook: file.Webhook}
	if err := c.weigh(io, ct); err != nil {
		return nil, err
	}
	return ct, hint(ct.settings.Validate(), "'jurat trial --help' says what the flags take; nothing was recorded")
}

// file reads the configuration. It tells the user about a file that it found without being told its name, because the file decides
// where keys are sent. It does not look beside the case, which may come from the accused.
func (c *panelFlags) file(io stdio) (*config.File, error) {
	name := c.Config
	if name == "" {
		name = config.DefaultFile
	}
	doc, err := readFile(name)
	if errors.Is(err, fs.ErrNotExist) && c.Config == "" {
		return &config.File{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	file, err := config.Parse(doc)
	if err != nil {
		return nil, hint(fmt.Errorf("%s: %w", name, err), "nothing was recorded")
	}
	if c.Config == "" {
		fmt.Fprintf(io.err, "jurat: the jury sits as %s in this folder says\n", name)
	}
	return file, nil
}

// sit begins a trial before the jury, or goes on with one in which so much was spent.
func (ct *court) sit(spent int64) (trial.Config, error) {
	s, err := ct.panel.Sit(spent)
	if err != nil {
		return trial.Config{}, err
	}
	return trial.Config{Settings: ct.panel.AsOf(ct.settings, time.Now()), Jurors: s.Jurors, Judge: s.Judge}, nil
}

// warn says on stderr which seats are empty, and which have another in them than was configured.
func (ct *court) warn(io stdio) {
	if ct.plan.NoModel {
		fmt.Fprintf(io.err, "jurat: no language model sits, as keys are missing (%s)\n", strings.Join(ct.plan.MissingKeys(), "; "))
		fmt.Fprintf(io.err, "jurat: hint: %s\n", howToGetAJury)
	}
	if ct.plan.Offline {
		return
	}
	for _, text := range ct.plan.Endings(time.Now()) {
		fmt.Fprintf(io.err, "jurat: %s: set it in the configuration\n", text)
	}
	for _, c := range ct.plan.Chairs() {
		switch {
		case c.Missing != nil:
			fmt.Fprintf(io.err, "jurat: the seat of %s stays empty: %v\n", c.ID, c.Missing)
		case c.InPlaceOf != "":
			fmt.Fprintf(io.err, "jurat: %s takes the seat of %s as a substitute for %s: %v\n", c.Name(), c.ID, c.InPlaceOf, c.Wanted)
		}
	}
}

// weigh gives the seats the weights of the calibration, for the method that takes them.
func (c *panelFlags) weigh(io stdio, ct *court) error {
	unbound, err := stats.WeighBy(c.Calibration, &ct.settings)
	if err != nil {
		return hint(err, "nothing was recorded")
	}
	ct.unbound = unbound
	if names := ct.unbound; len(names) > 0 {
		fmt.Fprintf(io.err, "jurat: %s does not say on which model and template %s were measured, and a weight holds for those alone\n", c.Calibration, strings.Join(names, ", "))
		fmt.Fprintf(io.err, "jurat: hint: put \"model\" and \"template\" on the lines of their votes, and calibrate again\n")
	}
	return nil
}

// dollars writes millionths of a dollar.
func dollars(micro int64) string {
	text := fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000)
	for strings.HasSuffix(text, "0") && !strings.HasSuffix(text[:len(text)-1], ".") && len(text)-strings.Index(text, ".") > 3 {
		text = text[:len(text)-1]
	}
	return "$" + text
}
