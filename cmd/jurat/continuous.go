package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"jurat/evidence"
	"jurat/internal/conduct"
	"jurat/internal/config"
	"jurat/internal/continuous"
	"jurat/internal/installation"
	"jurat/internal/panel"
	"jurat/internal/schedule"
	"jurat/internal/trial"
	"jurat/internal/webhook"
	"jurat/jury"
	"jurat/reputation"
	"jurat/verify/trust"
)

// continuousFlags say what a server tries without being asked.
type continuousFlags struct {
	Continuous string `placeholder:"FILE" help:"Try agents' records without being asked, and tell webhooks when a reputation crosses a threshold or a case needs a person's decision, as this configuration says: YAML as --config's, with the jury that sits then and the section continuous."`
}

// An unasked is what a server tries without being asked, and by which jury; nil: nothing.
type unasked struct {
	*court
	settings  *config.Continuous
	receivers map[string]*webhook.Receiver
}

// unasked reads the configuration that the flag names. It refuses, before anything is served, what would be found wrong only later.
func (f *continuousFlags) unasked() (*unasked, error) {
	if f.Continuous == "" {
		return nil, nil
	}
	u, err := f.read()
	if err != nil {
		return nil, hint(fmt.Errorf("--continuous: %s: %w", f.Continuous, err), "docs/operations.md shows such a file")
	}
	return u, nil
}

func (f *continuousFlags) read() (*unasked, error) {
	doc, err := readFile(f.Continuous)
	if err != nil {
		return nil, err
	}
	file, err := config.Parse(doc)
	if err != nil {
		return nil, err
	}
	if file.Continuous == nil {
		return nil, errors.New("the section continuous is missing")
	}
	if file.Method == string(jury.Calibrated) {
		return nil, errors.New("method: calibrated is for trials that a person starts, with --calibration")
	}
	plan, err := config.NewPlan(file, config.Wishes{}, os.Getenv)
	if err != nil {
		return nil, err
	}
	p, err := panel.New(plan, nil)
	if err != nil {
		return nil, err
	}
	u := &unasked{court: &court{panel: p, plan: plan, settings: p.Settings()}, settings: file.Continuous, receivers: map[string]*webhook.Receiver{}}
	if err := u.court.settings.Validate(); err != nil {
		return nil, err
	}
	if plan.NoModel && file.Continuous.Tries() {
		return nil, errors.New("no language model has a key; jurors: offline says that rules are to try, whose verdicts count for no reputation by the default policy")
	}
	for i := range u.settings.Webhooks {
		w := &u.settings.Webhooks[i]
		if u.receivers[w.ID], err = w.Receiver(os.Getenv); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// seating seats the jury of a submitter: that of the continuous trial for its own, and the server's for all others.
func (u *unasked) seating(others *court) func(submitter string, spent int64) (trial.Config, error) {
	return func(submitter string, spent int64) (trial.Config, error) {
		if u != nil && submitter == continuous.Submitter {
			return u.sit(spent)
		}
		return others.sit(spent)
	}
}

// service makes what tries without being asked. Of nil, it makes nothing.
func (u *unasked) service(ctx context.Context, i *installation.Installation, trials *schedule.Scheduler, views *conduct.Cache, url string, log *slog.Logger) (*continuous.Service, error) {
	if u == nil {
		return nil, nil
	}
	secret, err := i.ServerSecret(ctx, "sampling")
	if err != nil {
		return nil, err
	}
	s, err := continuous.New(continuous.Config{Settings: u.settings, Ledger: i.Ledger, Keys: i.Keys, Trust: i.Trust, Scheduler: trials, View: viewOf(views), Locks: i.Locks(),
		Receivers: u.receivers, Ceiling: u.plan.CostCeiling, Secret: secret, URL: url, Log: log, Now: time.Now,
		Disclose: func(ctx context.Context, r *evidence.Record) (*evidence.Record, error) {
			return i.Apart.Disclose(ctx, r, nil)
		}})
	if err != nil {
		return nil, fmt.Errorf("--continuous: %w", err)
	}
	return s, nil
}

// viewOf asks for views as pages do: what was computed for one is there for the other.
func viewOf(views *conduct.Cache) func(context.Context, string, *trust.Trust) (*reputation.View, error) {
	return func(ctx context.Context, agent string, by *trust.Trust) (*reputation.View, error) {
		return views.View(ctx, conduct.Asked{Agent: agent}, by, func(int64) error { return ctx.Err() })
	}
}
