package installation_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/stamping"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/verify"
	"jurat/verify/trust"
)

// withOutside makes an installation with an outside authority.
func withOutside(t *testing.T) (installation.Config, *jurattest.TSA) {
	t.Helper()
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	must.Do(t, installation.Create(t.Context(), c))
	description, authority := outside(t, "outside")
	must.Do(t, installation.AddOutside(t.Context(), c, description, false))
	authority.Asked()
	return c, authority
}

func wantWhole(t *testing.T, c installation.Config) {
	t.Helper()
	damages, _, err := installation.Fsck(t.Context(), c, nil)
	must.Do(t, err)
	for _, d := range damages {
		t.Errorf("damage: %v", d)
	}
}

// wantStamped checks that the outside authority alone proves every record except the acts about stamps.
func wantStamped(t *testing.T, i *installation.Installation) (records, acts int) {
	t.Helper()
	trusted := get(i.Trust(t.Context()))
	trusted.Authorities = trusted.Authorities[1:]
	for r, err := range i.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		report := verify.Record(r.Record, verify.Options{Trust: trusted})
		at, ok := report.TimeOf(r.Payload.RecordID)
		must.Hold(t, ok && at.Clock == trust.Independent, "%s %s: %+v", r.Payload.ActionType, r.Payload.RecordID, report.Of(verify.Time))
		if r.Payload.ActionType == evidence.LateStamp {
			acts++
			continue
		}
		records++
	}
	return records, acts
}

func stampWaiting(t *testing.T, i *installation.Installation, config stamping.Order) stamping.Outcome {
	t.Helper()
	outcomes, err := i.Timekeeper.Stamp(t.Context(), config)
	must.Need(t, err == nil && len(outcomes) == 1, "outcomes %v, %v; want one", outcomes, err)
	return outcomes[0]
}

// TestOutbox seals while the authority gives each kind of bad answer. No record counts as stamped and none is lost. When
// the authority works again, all are stamped.
func TestOutbox(t *testing.T) {
	for _, mood := range jurattest.Moods()[1:] {
		t.Run(string(mood), func(t *testing.T) {
			t.Parallel()
			c, authority := withOutside(t)
			be(t, authority, mood)
			i := open(t, c)
			i.Timekeeper.Stampers.Patience = 500 * time.Millisecond // keeps the test short
			held := seal(t, i)
			must.Need(t, len(held.Timestamps) == 1, "%d time stamps, want the operator's alone", len(held.Timestamps))
			wantWhole(t, c)
			if mood != jurattest.Hangs { // waiting for the authority would take long
				o := stampWaiting(t, i, stamping.Order{})
				must.Hold(t, o.Stamped == 0 && o.Records == 1 && o.Reason != nil && !o.Since.IsZero(), "while the authority %s: %+v", mood, o)
			}
			be(t, authority, jurattest.Good)
			i.Timekeeper.Stampers.Patience = time.Minute
			var told []int64
			o := stampWaiting(t, i, stamping.Order{Progress: func(_ string, done, total int64) { told = append(told, done, total) }})
			must.Hold(t, o.Stamped == 1 && o.Records == 0 && o.Reason == nil && len(told) == 2 && told[0] == 1 && told[1] == 1,
				"when it is good: %+v, progress %v", o, told)
			records, acts := wantStamped(t, i)
			must.Hold(t, records == 1 && acts == 1, "%d records and %d acts", records, acts)
			outcomes, err := i.Timekeeper.Stamp(t.Context(), stamping.Order{})
			must.Hold(t, len(outcomes) == 0 && err == nil, "again: %v, %v", outcomes, err)
			wantWhole(t, c)
		})
	}
}

// TestOutageIsWaitedForOnce: while an authority fails, it is asked at growing intervals only. When it answers, every
// record asks it again.
func TestOutageIsWaitedForOnce(t *testing.T) {
	c, authority := withOutside(t)
	now := time.Now()
	c.Now = func() time.Time { return now }
	i := open(t, c)
	be(t, authority, jurattest.Refuses)
	steps := []struct {
		after time.Duration
		asked int
	}{{0, 1}, {29 * time.Second, 0}, {2 * time.Second, 1}, {31 * time.Second, 0}, {30 * time.Second, 1}}
	for n, step := range steps {
		now = now.Add(step.after)
		for range 5 {
			seal(t, i)
		}
		must.Equal(t, authority.Asked(), step.asked, "step", n)
	}
	be(t, authority, jurattest.Good)
	now = now.Add(3 * time.Minute) // together less ahead of the authority's clock than is refused
	for range 3 {
		seal(t, i)
	}
	must.Equal(t, authority.Asked(), 3, "asked")
	now = time.Now()
	o := stampWaiting(t, i, stamping.Order{})
	must.Need(t, o.Stamped == 25, "%+v", o)
	wantStamped(t, i)
}

// TestCatchUp: a catch-up stamps waiting records only if the authority has answered this process.
func TestCatchUp(t *testing.T) {
	c, authority := withOutside(t)
	be(t, authority, jurattest.Refuses)
	first := open(t, c)
	seal(t, first)
	o := stampWaiting(t, first, stamping.Order{CatchUp: true})
	must.Hold(t, o.Stamped == 0 && o.Records == 1 && o.Reason != nil, "after a failure: %+v", o)
	be(t, authority, jurattest.Good)
	authority.Asked()
	second := open(t, c)
	o = stampWaiting(t, second, stamping.Order{CatchUp: true})
	must.Hold(t, o.Stamped == 0 && o.Records == 1 && o.Reason == nil && authority.Asked() == 0, "before it was asked: %+v", o)
	seal(t, second)
	o = stampWaiting(t, second, stamping.Order{CatchUp: true})
	must.Hold(t, o.Stamped == 1 && o.Records == 0, "after an answer: %+v", o)
	wantStamped(t, second)
}

// TestMoreThanOneAct: no act describes more stamps than its limit.
func TestMoreThanOneAct(t *testing.T) {
	c, authority := withOutside(t)
	be(t, authority, jurattest.Refuses)
	i := open(t, c)
	const records = 501
	for range records {
		sealQuickly(t, i)
	}
	be(t, authority, jurattest.Good)
	o := stampWaiting(t, i, stamping.Order{})
	must.Hold(t, o.Stamped == records && o.Records == 0, "%+v", o)
	n, acts := wantStamped(t, i)
	must.Hold(t, n == records && acts == 2, "%d records and %d acts", n, acts)
}

// TestGivenUp: stamps that came before the user cancelled are kept.
func TestGivenUp(t *testing.T) {
	c, authority := withOutside(t)
	be(t, authority, jurattest.Refuses)
	i := open(t, c)
	for range 4 {
		seal(t, i)
	}
	be(t, authority, jurattest.Good)
	ctx, cancel := context.WithCancel(t.Context())
	outcomes, err := i.Timekeeper.Stamp(ctx, stamping.Order{Progress: func(_ string, done, _ int64) {
		if done == 3 {
			cancel()
		}
	}})
	must.Hold(t, errors.Is(err, context.Canceled) && len(outcomes) == 1 && outcomes[0].Stamped == 3, "%v, %v", outcomes, err)
	wantWhole(t, c)
	o := stampWaiting(t, i, stamping.Order{})
	must.Hold(t, o.Stamped == 1 && o.Records == 0, "%+v", o)
	wantStamped(t, i)
}

func TestSelectedAuthorities(t *testing.T) {
	c, one := withOutside(t)
	description, two := outside(t, "two")
	must.Do(t, installation.AddOutside(t.Context(), c, description, false))
	two.Asked()
	for _, tt := range []struct {
		tsa              []string
		stamps, one, two int
	}{
		{nil, 3, 1, 1},
		{[]string{"built-in"}, 1, 0, 0},
		{[]string{"two"}, 1, 0, 1},
		{[]string{"two", two.URL, "two"}, 1, 0, 1},
		{[]string{"built-in", one.URL}, 2, 1, 0},
	} {
		c.TSA = tt.tsa
		i := open(t, c)
		r := seal(t, i)
		a, b := one.Asked(), two.Asked()
		must.Hold(t, len(r.Timestamps) == tt.stamps && a == tt.one && b == tt.two, "%v: %d time stamps, asked %d and %d times", tt.tsa, len(r.Timestamps), a, b)
	}
	for _, unknown := range []string{"three", "http://127.0.0.1:1", ""} {
		c.TSA = []string{unknown}
		must.Fail(t, stamping.ErrNotConfigured, unknown)(installation.Open(t.Context(), c))
	}
}

// TestRemovedWhileAwaited: records can still wait for an authority that was removed. The program reports this, and can
// repair it.
func TestRemovedWhileAwaited(t *testing.T) {
	c, authority := withOutside(t)
	be(t, authority, jurattest.Refuses)
	seal(t, open(t, c))
	must.Do(t, os.Remove(filepath.Join(c.Dir, "outside-authorities", "outside.json")))
	i := open(t, c)
	o := stampWaiting(t, i, stamping.Order{})
	must.Hold(t, errors.Is(o.Reason, stamping.ErrNotConfigured) && o.Records == 1, "%+v", o)
	must.Give(i.Timekeeper.Remove(t.Context(), "outside", true))(t, 1)
	wantWhole(t, c)
}

// TestFsckOfWhatWaits: a record that waits for its time stamp is not damaged. A record by an unknown key is.
func TestFsckOfWhatWaits(t *testing.T) {
	c, authority := withOutside(t)
	be(t, authority, jurattest.Refuses)
	only := c
	only.TSA = []string{"outside"}
	seal(t, open(t, only))
	wantWhole(t, c)
	must.Do(t, os.RemoveAll(filepath.Join(c.Dir, "keys", "agent")))
	finds(t, c, fsck.DamageCheck)
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		fmt.Fprintln(os.Stderr, child(dir, os.Getenv(childTask)))
		os.Exit(1)
	}
	if dir := os.Getenv(rotatorFolder); dir != "" {
		fmt.Fprintln(os.Stderr, rotateAndDie(dir))
		os.Exit(1)
	}
	if dir := os.Getenv(expirerFolder); dir != "" {
		after, err := strconv.Atoi(os.Getenv("JURAT_TEST_STEP"))
		fmt.Fprintln(os.Stderr, errors.Join(err, expireAndDie(dir, after)))
		os.Exit(1)
	}
	code := m.Run()
	if err := errors.Join(os.RemoveAll(yearOld.dir), os.RemoveAll(withRecord.dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

const childFolder, childTask = "JURAT_TEST_FOLDER", "JURAT_TEST_TASK"

// child runs a process that seals, or stamps waiting records, until it is killed. The process prints a line for each.
func child(dir, task string) error {
	ctx := context.Background()
	i, err := installation.Open(ctx, installation.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer i.Close()
	if task == "stamp" {
		_, err := i.Timekeeper.Stamp(ctx, stamping.Order{Progress: func(string, int64, int64) { fmt.Println("stamped") }})
		return err
	}
	for {
		r, err := sealAgain(ctx, i, "/prompt")
		if err != nil {
			return err
		}
		fmt.Println(r.Payload.RecordID)
	}
}

func sealAgain(ctx context.Context, i *installation.Installation, apart ...string) (*evidence.Record, error) {
	d, err := evidence.ParseDraft([]byte(`{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v",
		"prompt":"p","response":"r","parameters":{}}`))
	if err != nil {
		return nil, err
	}
	signers, err := i.Keys.Signers(ctx, evidence.RoleAgent, "a")
	if err != nil {
		return nil, err
	}
	return i.Ledger.Seal(ctx, d.SealingApart(nil, apart...), signers)
}

func sealQuickly(t *testing.T, i *installation.Installation) {
	t.Helper()
	get(sealAgain(t.Context(), i))
}

// killed starts a child. The returned function waits until it has printed n lines, kills it, and returns the lines.
func killed(t *testing.T, c installation.Config, task string, lines int) func() []string {
	t.Helper()
	process := exec.CommandContext(t.Context(), get(os.Executable()))
	process.Env = append(os.Environ(), childFolder+"="+c.Dir, childTask+"="+task)
	process.Stderr = os.Stderr
	out := get(process.StdoutPipe())
	must.Do(t, process.Start())
	return func() (printed []string) {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			if printed = append(printed, strings.TrimSpace(scanner.Text())); len(printed) == lines {
				must.Do(t, process.Process.Kill())
			}
		}
		err := process.Wait()
		must.Need(t, err != nil, "the process ended by itself")
		return printed
	}
}

// TestKilledBetweenSealingAndStamping kills processes that seal apart, two at once, while the authority is silent, and processes that ask for waiting
// stamps. Every acknowledged record is there, discloses its text and waits, and is stamped once in the end.
func TestKilledBetweenSealingAndStamping(t *testing.T) {
	c, authority := withOutside(t)
	be(t, authority, jurattest.Refuses)
	whole := func() {
		t.Helper()
		damages, _, err := installation.Fsck(t.Context(), c, nil)
		must.Do(t, err)
		for _, d := range damages {
			must.Hold(t, d.Kind == fsck.DamageOrphan, "%v", d) // a text that was kept for a record that did not come
		}
	}
	var acknowledged []string
	for round := range 3 {
		first, second := killed(t, c, "seal", 4+5*round), killed(t, c, "seal", 12)
		acknowledged = append(append(acknowledged, first()...), second()...)
		whole()
	}
	be(t, authority, jurattest.Good)
	killed(t, c, "stamp", 3)() // before the transaction: everything still waits
	whole()
	i := open(t, c)
	for _, id := range acknowledged {
		r, err := i.Ledger.Record(t.Context(), id)
		must.Need(t, err == nil && len(r.Timestamps) == 1, "record %s: %v", id, err)
		wantDisclosed(t, i, r, "/prompt")
	}
	size := get(i.Ledger.Size(t.Context()))
	o := stampWaiting(t, i, stamping.Order{})
	must.Hold(t, o.Stamped == size && o.Records == 0, "%+v; want %d stamped", o, size)
	records, acts := wantStamped(t, i)
	must.Hold(t, int64(records) == size && acts == 1, "%d records and %d acts", records, acts)
	whole()
}

// outside is an authority that the operator does not run.
func outside(t *testing.T, name string) (stamping.Outside, *jurattest.TSA) {
	t.Helper()
	a := get(jurattest.StartTSA())
	t.Cleanup(a.Close)
	return stamping.Outside{Name: name, URL: a.URL, Roots: string(a.PEM())}, a
}

func be(t *testing.T, a *jurattest.TSA, mood jurattest.Mood) {
	t.Helper()
	must.Do(t, a.Be(mood))
}

func sealRequest(t *testing.T, i *installation.Installation, request string) (*evidence.Record, error) {
	t.Helper()
	draft := get(evidence.ParseDraft([]byte(`{"agent_id":"a","request_id":"` + request + `","timestamp":"2026-01-31T16:15:00Z","model":"m",
		"model_version":"v","prompt":"p","response":"r","parameters":{}}`)))
	signers := get(i.Keys.Signers(t.Context(), evidence.RoleAgent, "a"))
	return i.Ledger.Seal(t.Context(), draft, signers)
}

// TestOutsideAuthority: an outside authority stamps beside the operator's. A reader may trust it alone. If it does not
// answer, records wait.
func TestOutsideAuthority(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	must.Do(t, installation.Create(t.Context(), c))
	description, authority := outside(t, "outside")
	must.Do(t, installation.AddOutside(t.Context(), c, description, false))
	must.Say(t, installation.AddOutside(t.Context(), c, description, false), "already", "added twice")
	i := get(installation.Open(t.Context(), c))
	defer i.Close()
	r := get(sealRequest(t, i, "r1"))
	must.Need(t, len(r.Timestamps) == 2, "%d time stamps, want the operator's and the outside one", len(r.Timestamps))
	trusted := get(i.Trust(t.Context()))
	for n, want := range []trust.Clock{trust.OperatorClock, trust.Independent} {
		only := *trusted
		only.Authorities = trusted.Authorities[n : n+1]
		report := verify.Record(r, verify.Options{Trust: &only})
		if at, ok := report.TimeOf(r.Payload.RecordID); !ok || at.Clock != want {
			t.Errorf("trusting only %s: %+v", trusted.Authorities[n].Name, report.Of(verify.Time))
		}
	}
	be(t, authority, jurattest.Refuses)
	held, err := sealRequest(t, i, "r2")
	must.Need(t, err == nil && len(held.Timestamps) == 1, "without the outside authority: %v, %d time stamps", err, len(held.Timestamps))
	n, err := i.Timekeeper.Remove(t.Context(), "outside", false)
	must.Hold(t, errors.Is(err, stamping.ErrAwaited) && n == 1, "removed while a record waits: %d, %v", n, err)
	n, err = i.Timekeeper.Remove(t.Context(), "outside", true)
	must.Need(t, n == 1 && err == nil, "%v %v", n, err)
	must.Refuse(t, "no authority is named", "removed twice")(i.Timekeeper.Remove(t.Context(), "outside", true))
	list, err := installation.ListOutside(t.Context(), c)
	must.Hold(t, len(list) == 0 && err == nil, "after removing: %v, %v", list, err)
}

// TestRemoveLeavesNothingBare: when an authority is removed, the built-in one stamps the records that waited for it alone.
func TestRemoveLeavesNothingBare(t *testing.T) {
	c, authority := withOutside(t)
	be(t, authority, jurattest.Refuses)
	only := c
	only.TSA = []string{"outside"}
	i := open(t, only)
	bare := seal(t, i)
	must.Need(t, len(bare.Timestamps) == 0, "%d time stamps", len(bare.Timestamps))
	seal(t, open(t, c))
	wantWhole(t, c)
	if n, err := i.Timekeeper.Remove(t.Context(), "outside", true); n != 1 || err != nil {
		t.Fatalf("gave up %d, %v; want the one record that has the built-in authority's stamp", n, err)
	}
	got, err := i.Ledger.Record(t.Context(), bare.Payload.RecordID)
	must.Hold(t, err == nil && len(got.Timestamps) == 1, "%d time stamps, %v", len(got.Timestamps), err)
	wantWhole(t, c)
}

func TestOutsideAuthorityIsTriedFirst(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	must.Do(t, installation.Create(t.Context(), c))
	good, authority := outside(t, "outside")
	be(t, authority, jurattest.Refuses)
	other, _ := outside(t, "other")
	for name, o := range map[string]stamping.Outside{
		"down":                    good,
		"another's root":          {Name: "x", URL: other.URL, Roots: good.Roots},
		"no root":                 {Name: "x", URL: other.URL},
		"no URL":                  {Name: "x", Roots: good.Roots},
		"a name that is a path":   {Name: "../x", URL: other.URL, Roots: other.Roots},
		"the built-in one's name": {Name: stamping.BuiltIn, URL: other.URL, Roots: other.Roots},
		"another policy":          {Name: "x", URL: other.URL, Roots: other.Roots, Policy: "1.2.3"},
		"no policy at all":        {Name: "x", URL: other.URL, Roots: other.Roots, Policy: "one"},
	} {
		must.Say(t, installation.AddOutside(t.Context(), c, o, false), "", name)
	}
	list, err := installation.ListOutside(t.Context(), c)
	must.Hold(t, len(list) == 0 && err == nil, "listed: %v, %v", list, err)
	wantError(t, "untried", nil, installation.AddOutside(t.Context(), c, good, true))
}

// TestClockAheadOfAnAuthority: the operator's clock, which gives a new key its beginning, is a little ahead of an
// authority's clock. Records of the key are not refuted for that.
func TestClockAheadOfAnAuthority(t *testing.T) {
	c, _ := withOutside(t)
	c.Now = func() time.Time { return time.Now().Add(4 * time.Minute) }
	i := open(t, c)
	wantSound := func(what string, r *evidence.Record) {
		t.Helper()
		report := verify.Record(r, verify.Options{Trust: get(i.Trust(t.Context()))})
		for _, g := range []verify.Guarantee{verify.Authentication, verify.Time} {
			f := report.Of(g)
			must.Hold(t, f.Status == verify.Proved, "%s: %s %s: %s", what, g, f.Status, f.Reason)
		}
	}
	wantSound("the first record", get(sealRequest(t, i, "r")))
	must.Do(t, i.Keys.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, because))
	wantSound("after a rotation", get(sealRequest(t, i, "r")))
	wantWhole(t, c)
}
