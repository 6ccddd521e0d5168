// Command jurat puts AI agents before a jury and seals what every agent says into records that anyone can verify.
//
// # Many cases: the worst counts, and everything is reported
//
// The order is that of `verify`: a failure (1) is worse than a case that could not be tried (2), and that is worse than an undecided
// one (3). An unreadable case does not stop the others. An interrupted command still writes its reports; cases that it did not try
// are errors or skipped there, never passed. `--fail-on` can only add to `unsafe_fail`, so that a list which leaves it out by mistake
// does not let it through. A SARIF result points at the lines of the message in the case's own file. Records stand in one line each, so
// there it names the record and the message.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	_ "golang.org/x/crypto/x509roots/fallback" // where the system has no root certificates, such as in the container image

	"jurat/evidence"
	"jurat/evidence/jsonform"
	"jurat/evidence/operator"
	"jurat/evidence/property"
	"jurat/internal/court/trial"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/fault"
	"jurat/internal/log/access"
	"jurat/internal/log/ca"
	"jurat/internal/log/filestore"
	"jurat/internal/log/installation"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/log/postgres"
	"jurat/internal/log/stamping"
	"jurat/internal/tap/importing"
	"jurat/internal/web/openssl"
	"jurat/internal/web/portal"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

func main() { os.Exit(mainExit()) }

// mainExit returns the exit code instead of exiting, so that deferred calls run and tests can call it.
func mainExit() int {
	// After the first signal the program winds up; a second one ends it at once.
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it ignored
		ends = append(ends, syscall.SIGHUP) // a terminal that is closed ends what runs in it, as Ctrl-C does
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop)
	// A closed pipe must not end a trial in the middle: the write fails, and the trial goes on.
	signal.Ignore(syscall.SIGPIPE)
	if err := forgetEmpty(); err != nil {
		return report(stdio{err: os.Stderr}.guarded(), err)
	}
	return run(ctx, os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr})
}

// forgetEmpty makes settings that are set to nothing count as not set, as people mean it.
func forgetEmpty() error {
	for _, setting := range os.Environ() {
		name, value, _ := strings.Cut(setting, "=")
		if value != "" || !strings.HasPrefix(name, "JURY_") && !strings.HasPrefix(name, "JURAT_") {
			continue
		}
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	return nil
}

// Exit codes, beside 0 for "as it should be".
const (
	exitBad       = 1 // unsafe_fail; refuted; damaged
	exitCannot    = 2 // it could not be done: usage, unreadable, no such file
	exitUndecided = 3 // needs_review, inconclusive, a degraded safe_pass; not proved

	exitInterrupted = 130 // Ctrl-C or a signal ended it before it was done, as shells have it for SIGINT
)

type app struct {
	std   stdio
	token *installation.Token // where a new installation's own keys are made; nil: in files

	Data        string `help:"The data folder: keys, log, case files. With --db, only this machine's own." default:"./jurat-data" env:"JURAT_DATA" group:"place"`
	DB          string `name:"db" placeholder:"URL" help:"A shared PostgreSQL instead of the folder: postgres://USER@HOST/NAME." env:"JURAT_DB" group:"place"`
	WrappingKey string `name:"wrapping-key" placeholder:"FILE" help:"With --db: the key that wraps its keys and settings." env:"JURAT_WRAPPING_KEY" group:"place"`

	Version versionFlag `help:"Print the version."`
	Quiet   bool        `help:"Say only results, errors and their hints: no progress, no notes." env:"JURAT_QUIET"`

	Init    initCmd    `cmd:"" help:"Make an installation, also from a backup; or write a case, a configuration or a workflow to begin with."`
	Trial   trialCmd   `cmd:"" help:"Put an agent before the jury, seal every act, and leave a case file."`
	Seal    sealCmd    `cmd:"" help:"Seal one payload: what an agent said, or a reviewer decided; or only sign it, for an installation elsewhere."`
	Record  recordCmd  `cmd:"" help:"Record what an agent says and does as it passes, without a change to the agent."`
	Import  importCmd  `cmd:"" help:"Seal what files tell of an agent, second hand: results, logs, exports, session files."`
	Verify  verifyCmd  `cmd:"" help:"Verify records and case files, offline, by your own trust file."`
	Explain explainCmd `cmd:"" help:"Write the incident statement of a record or a case file."`
	Portal  portalCmd  `cmd:"" help:"Write the verification portal as one file: anyone can verify with it in a browser, offline."`
	Export  exportCmd  `cmd:"" help:"Write a file's records for openssl alone to check, as SCITT statements, or without texts that were sealed apart."`
	Apart   apartCmd   `cmd:"" help:"List or set which fields of whose payloads are sealed apart, so that you can withhold or erase them."`
	Prove   proveCmd   `cmd:"" help:"Prove what a value is like that was sealed apart: in a range, one of a few. The value stays hidden."`
	Erase   eraseCmd   `cmd:"" help:"Destroy a text that was sealed apart, for ever; every proof stands."`
	Trust   trustCmd   `cmd:"" help:"Print this installation's trust file, to give to those who verify; say what others mean, or join them."`
	Card    cardCmd    `cmd:"" help:"Check the signatures of an A2A agent card, by your own trust file; or log whose card it is."`
	Keys    keysCmd    `cmd:"" help:"Keys of agents, jurors and reviewers."`
	CA      caCmd      `cmd:"" name:"ca" help:"A certification authority for the keys of agents and reviewers, also on a machine without network."`
	Log     logCmd     `cmd:"" help:"The log: checkpoint, proofs, examination."`
	Witness witnessCmd `cmd:"" help:"Be a witness: see logs that others run grow, and cosign their checkpoints."`
	Serve   serveCmd   `cmd:"" help:"Run the server: pages for people, an HTTP API for programs."`
	Access  accessCmd  `cmd:"" help:"Who may do what on a server: tokens, and chains that everyone may read."`
	TSA     tsaCmd     `cmd:"" name:"tsa" help:"List, add and remove time-stamping authorities outside, beside the built-in one."`

	Backup backupCmd `cmd:"" help:"Copy everything into a file, also while in use."`

	Reputation reputationCmd `cmd:"" help:"Compute how an agent's sealed records were judged: bounds that everyone can compute again."`

	Trials  trialsCmd  `cmd:"" help:"List trials: by agent, verdict, juror, time, text and more; show one, or put two side by side."`
	Records recordsCmd `cmd:"" help:"Find who said something, and when; show what recorders saw; say which clauses of a law the records answer."`

	Help        helpCmd       `cmd:"" help:"Show the commands, or the help of one."`
	Doctor      doctorCmd     `cmd:"" help:"Say what is there, what is missing, and what to do about it; ask whether a server is ready, or test its webhook."`
	Completion  completionCmd `cmd:"" help:"Print a script with which a shell completes commands, flags and values."`
	ShowVersion versionCmd    `cmd:"" name:"version" help:"Print the version, the commit, and the formats that this program writes."`
}

// exitCode ends the program with a code and no further word.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

func hint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return hinted{err, fmt.Sprintf(format, args...)}
}

func hintIf(about, err error, format string, args ...any) error {
	if errors.Is(err, about) {
		return hint(err, format, args...)
	}
	return err
}

// run parses the arguments, runs the command, and says on stderr what went wrong.
func run(ctx context.Context, args []string, std stdio) int {
	std = std.guarded()
	defer std.flush()
	if slices.Contains(args, "--log-json") {
		std.logger(true) // also of what is wrong with the arguments
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if err := former(args); err != nil {
		return report(std, err)
	}
	idle := without(args)
	a, parser, parsed, code, err := parse(ctx, args, std, idle...)
	if err != nil && code < 0 && idle != nil { // what is wrong is said with all commands in view
		a, parser, parsed, code, err = parse(ctx, args, std)
	}
	if parser == nil {
		return report(std, fmt.Errorf("building the command line: %w", err))
	}
	if err == nil && a.Data == "" {
		err = errors.New("--data: no folder is named")
	}
	if code >= 0 { // --help has been answered
		return code
	}
	if errors.Is(err, errGone) {
		return report(std, err) // the reader closed the help early, which is fine
	}
	if err != nil {
		return report(std, suggest(parser.Model.Node, err))
	}
	if a.Quiet {
		std.hush()
	}
	return ended(ctx, report(std, advise(fault.Guard(func() error { return parsed.Run() }))))
}

// parse parses the arguments by a command line that lacks some commands. The code is negative unless they have been answered, as --help is.
func parse(ctx context.Context, args []string, std stdio, without ...string) (a *app, parser *kong.Kong, parsed *kong.Context, code int, err error) {
	a, code = &app{std: std}, -1
	parser, err = kong.New(a, append(timeFlags(), kong.Name("jurat"), kong.ExplicitGroups([]kong.Group{{Key: whichOne, Title: "The installation:"}}),
		kong.IgnoreFields(without...),
		kong.Writers(std.out, std.err), kong.Exit(func(c int) { code = c }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Help(help),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(std, a))...)
	if err == nil {
		parsed, err = parser.Parse(args)
	}
	return a, parser, parsed, code, err
}

// without returns patterns of those commands that no argument names, so that the library need not build them: that of all commands
// took half of the time in which this program starts. Completion and the command help show them all.
func without(args []string) (patterns []string) {
	if slices.Contains(args, "help") || slices.Contains(args, "completion") {
		return nil
	}
	for field := range reflect.TypeFor[app]().Fields() {
		_, command := field.Tag.Lookup("cmd")
		if name := cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name)); command && !slices.Contains(args, name) {
			patterns = append(patterns, `^app\.`+field.Name+`$`)
		}
	}
	return patterns
}

// ended is the exit code of a command that may have been interrupted. One that has found something bad says that.
func ended(ctx context.Context, code int) int {
	if code == exitCannot && ctx.Err() != nil {
		return exitInterrupted
	}
	return code
}

// suggest says what was meant, where arguments are wrong: the library knows typing errors, and not that a command is called by its last word alone.
func suggest(root *kong.Node, err error) error {
	command := strings.TrimSuffix(commandOf(err), " own")    // which 'jurat trust' alone runs
	said, _, _ := strings.Cut(err.Error(), ", did you mean") // the library's own guess
	flag, _, _ := strings.Cut(strings.TrimPrefix(said, "unknown flag "), ",")
	word, argument := strings.CutPrefix(said, "unexpected argument ")
	above := command[:max(0, strings.LastIndexByte(command, ' '))] // of which it may be the default
	instead := cmp.Or(gone()[command+" "+flag], gone()[flag])
	if argument {
		instead = cmp.Or(gone()[strings.TrimSpace(command+" "+word)], gone()[above+" "+word])
	}
	if instead != "" {
		return hint(errors.New(said), "%s", instead)
	}
	if like := endingIn(root, word); argument && command == "" && len(like) > 0 {
		return hint(err, "did you mean 'jurat %s'?", strings.Join(like, "' or 'jurat "))
	}
	return hint(err, "run 'jurat %s' to see what there is", strings.TrimSpace(command+" --help"))
}

// commandOf returns the command whose arguments were wrong, as it is typed, or "" if the error is not about a command's arguments.
func commandOf(err error) string {
	parse, is := errors.AsType[*kong.ParseError](err)
	if !is || parse.Context == nil || parse.Context.Selected() == nil {
		return ""
	}
	return parse.Context.Selected().Path()
}

// report turns the outcome of a command into words on stderr and an exit code.
func report(std stdio, err error) int {
	if err == nil {
		return 0
	}
	if code, is := errors.AsType[exitCode](err); is {
		return int(code)
	}
	h, _ := errors.AsType[hinted](err)
	what := oneLine(err)
	switch {
	case errors.Is(err, errGone) && h.hint == "":
		return exitCannot // the reader who closed the output knows
	case errors.Is(err, errGone):
		what = errGone.Error()
	case errors.Is(err, context.Canceled):
		what = "interrupted: " + what
	}
	std.fail(what, h.hint)
	return exitCannot
}

func (a *app) config() installation.Config {
	return installation.Config{Dir: a.Data, DB: a.DB, WrappingKey: a.WrappingKey, Token: a.token}
}

// again is how the command is called on the same installation, without any password.
func (a *app) again() string {
	if a.DB != "" {
		return "jurat" // with JURAT_DB and JURAT_WRAPPING_KEY
	}
	return "jurat --data " + quote(a.Data)
}

// refuse is the error of a use that is not meant. Where several checks stand in one list, cmp.Or takes the first that fails.
func refuse(when bool, format string, args ...any) error {
	if when {
		return fmt.Errorf(format, args...)
	}
	return nil
}

// with does something on the installation that the flags name, which must be there already, and has those stamp who are named.
func (a *app) with(ctx context.Context, do func(*installation.Installation) error, tsa ...string) error {
	config := a.config()
	config.TSA = tsa
	i, err := installation.Open(ctx, config)
	if err != nil {
		return err
	}
	return closing(do(i), i.Close())
}

// keyFlags say how an actor's keys are made when it first signs.
type keyFlags struct {
	Alg         evidence.Algorithm `name:"key-alg" help:"Algorithm of keys made on first use: ES256, RS256 or Ed25519." default:"ES256" enum:"ES256,RS256,Ed25519"`
	PostQuantum bool               `name:"pq" help:"Let every actor also sign with ML-DSA-65, which withstands quantum computers. From then on it always does."`
}

// withStamps does something on the installation in the data folder, which it makes on first use, and has those stamp who are named.
// Only a command whose purpose is to begin calls it, and only when it has checked everything else: a typing error makes nothing.
func (a *app) withStamps(ctx context.Context, std stdio, keys keyFlags, stamps stampFlags, do func(*installation.Installation) error) error {
	return a.begin(ctx, std, keys, stamps, func(i *installation.Installation, _ bool) error { return do(i) })
}

// begin is withStamps. It also tells do whether the installation was made just now. Authorities that a new installation cannot have make none.
func (a *app) begin(ctx context.Context, std stdio, keys keyFlags, stamps stampFlags, do func(i *installation.Installation, created bool) error) error {
	config := a.config()
	config.Algorithm, config.PostQuantum, config.TSA = keys.Alg, keys.PostQuantum, stamps.TSA
	open := installation.OpenOrCreate
	if slices.ContainsFunc(config.TSA, func(name string) bool { return name != stamping.BuiltIn }) {
		open = func(ctx context.Context, config installation.Config) (*installation.Installation, bool, error) {
			i, err := installation.Open(ctx, config)
			return i, false, err
		}
	}
	i, created, err := open(ctx, config)
	if err != nil {
		return err
	}
	std.tellIf(created, "made a new installation in %s: keys, time-stamping authority, log", config.Where())
	// The database was taken at its word, which happens once on each machine.
	std.tellIf(i.Joined, "this machine has seen nothing of the log before: it begins with the checkpoint that the database has, and keeps it in %s", a.Data)
	return closing(do(i, created), i.Close())
}

// closing joins the error of a command with the error of closing what it used: an exit code must not hide a failed close.
func closing(err, failed error) error {
	if failed != nil && is[exitCode](err) {
		return failed
	}
	return errors.Join(err, failed)
}

func readFile(file string) ([]byte, error) {
	doc, err := os.ReadFile(file)
	return jsonform.CutMark(doc), err
}

// parsed reads what is in a file. Its errors about the content name the file.
func parsed[T any](file string, parse func([]byte) (T, error)) (what T, err error) {
	doc, err := readFile(file)
	if err != nil {
		return what, err
	}
	what, err = parse(doc)
	fault.While(&err, "%s", file)
	return what, err
}

// each makes something of each of a list, unless that fails for one.
func each[T, V any](list []T, of func(T) (V, error)) ([]V, error) {
	all := make([]V, len(list))
	for i, one := range list {
		var err error
		if all[i], err = of(one); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// readInput reads a file, or standard input for "-", without a byte order mark.
func readInput(stdin io.Reader, file string) ([]byte, error) {
	if file != "-" {
		return readFile(file)
	}
	doc, err := io.ReadAll(stdin)
	if err != nil {
		return nil, fmt.Errorf("reading standard input: %w", err)
	}
	return jsonform.CutMark(doc), nil
}

// whenBehind says what to do with a log that has lost its end.
const whenBehind = "it came back from an older copy, or its end was cut off: put the latest copy back ('jurat init --from'). Until then it can be read; " +
	"for new records begin another data folder or database"

const notTogether = "'jurat keys list' shows whose keys sign, and which together"

// advices say what to do next about what can go wrong in any command. The first that fits is given.
var advices = []struct {
	about error
	hint  string
}{
	{installation.ErrNone, "'jurat init' makes one, so do serve, trial, seal, record and import; --data or JURAT_DATA names it, --db or JURAT_DB the database"},
	{installation.ErrNoWrappingKey, "--wrapping-key or JURAT_WRAPPING_KEY names this machine's copy; for a new database 'jurat keys rewrap --new FILE' makes one"},
	{filestore.ErrOtherKey, "--wrapping-key or JURAT_WRAPPING_KEY has to name a copy of the file that the other machines have"},
	{stamping.ErrNotConfigured, "its answers could not be checked; 'jurat tsa NAME URL --root FILE' adds one, 'jurat tsa' shows those there are"},
	{postgres.ErrURL, "--db or JURAT_DB names a PostgreSQL database, and no other kind; for a folder of this machine use --data or JURAT_DATA instead"},
	{postgres.ErrNoDatabase, "'createdb --encoding UTF8 --template template0 --owner ROLE NAME' makes one, jurat its tables; or --db or JURAT_DB names another"},
	{postgres.ErrNotLetIn, "the password is taken from PGPASSWORD, ~/.pgpass or the URL of --db or JURAT_DB, where all but letters, digits and -._~ " +
		"is written as %XX; whom the server lets in from where stands in its pg_hba.conf"},
	{postgres.ErrNotAllowed, "the role of --db or JURAT_DB has to own the schema jurat, or the database to make it in: ALTER DATABASE NAME OWNER TO ROLE"},
	{postgres.ErrUnreachable, "see that the server runs where --db or JURAT_DB says ('pg_isready -h HOST -p PORT' asks it), and that no firewall blocks it"},
	{ledger.ErrBehind, whenBehind},
	{access.ErrUnknown, "'jurat access list --all' shows every token there ever was"},
	{ca.ErrNone, "'jurat ca init' makes one; --ca DIR or JURAT_CA says where it is"},
	{ca.ErrTaken, "'jurat ca revoke FILE --cause CAUSE' frees the name"},
	{ca.ErrAlike, "records of both would look like one actor's; choose a name that differs in more than its letters' form"},
	{ca.ErrExpired, "make a new CA in another folder, and give readers its certificate"},
	{importing.ErrUnknown, "--from FORMAT names it: 'jurat import --help' lists the formats"},
	{keys.ErrExists, "'jurat keys list' shows it; 'jurat keys rotate' puts another in its place"},
	{keys.ErrHeld, "'jurat keys rotate ROLE NAME --public FILE' puts the owner's key in its place"},
	{keys.ErrPair, "give both keys in one 'jurat keys rotate', with --public FILE twice"},
	{keys.ErrOwner, "sign it with 'jurat seal --sign-only --key FILE' where the key is, and seal what that prints"},
	{keys.ErrNoSuchKey, "'jurat keys list' shows every key; 'jurat keys new' gives an actor its first"},
	{keys.ErrEvent, "'jurat keys list --history' shows what was done to it; nothing was changed"},
	{keys.ErrNoKey, "'jurat keys rotate ROLE NAME' makes another; 'jurat keys list' shows what became of the old one"},
	{keys.ErrEnded, notTogether},
	{keys.ErrIncomplete, notTogether},
	{keys.ErrForeign, notTogether},
	{keys.ErrLost, "restore it from a backup of the data folder, or make another with 'jurat keys rotate ROLE NAME'"},
	{openssl.ErrNoKey, "give the trust file of the installation that made the record, with --trust FILE"},
	{stamping.ErrAwaited, "'jurat log stamp' asks for them; --forget gives them up"},
	{stamping.ErrEndsTooEarly, "name another authority with --tsa, or an earlier time with --before"},
	{stamping.ErrListOutOfDate, "'jurat trust eu --fetch' brings newer lists, and 'jurat trust eu' writes a trust file from them"},
	{stamping.ErrNobodyOutside, "'jurat tsa NAME URL --root FILE' adds one"},
	{trial.ErrSettings, "a trial goes on by the settings with which it began: give the same flags, environment and configuration"},
	{ledger.ErrMoved, "put the data folder back as it was, or start jurat again on the one that is there now"},
}

// advise adds to the outcome of a command what to do next, where the command itself had nothing to say.
func advise(err error) error {
	if err == nil || is[hinted](err) {
		return err
	}
	at, unknown := strings.CutSuffix(err.Error(), ": unknown member")
	if instead := gone()[at[max(0, strings.LastIndexByte(at, '/')):]]; unknown && instead != "" {
		return hint(err, "%s", instead)
	}
	for _, a := range advices {
		if errors.Is(err, a.about) {
			return hint(err, "%s", a.hint)
		}
	}
	return err
}

func hintOf(err error) string {
	h, _ := errors.AsType[hinted](advise(err))
	return h.hint
}

type build struct {
	Version   string   `json:"version"` // (devel) if it was built from a folder without version control
	Commit    string   `json:"commit,omitempty"`
	Committed string   `json:"committed,omitempty"` // when; the time of building is nowhere, so that two builds are the same to the byte
	Modified  bool     `json:"modified,omitzero"`   // files differed from the commit
	Go        string   `json:"go"`
	Platform  string   `json:"platform"`
	Formats   []string `json:"formats"` // that it writes
}

var formats = []string{evidence.Schema, evidence.BundleFormat, verify.ReportFormat, trust.Format, operator.ConsistencyFormat,
	property.Format, jury.RequestFormat, jury.TrialRules, installation.BackupFormat}

func thisBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Formats: formats}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(info.Main.Version, b.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Committed = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func version() string { return thisBuild().Version }

func (b build) lines() string {
	commit := cmp.Or(b.Commit, "unknown: it was not built in a clone of the repository")
	commit += pick(b.Committed != "", ", "+b.Committed, "") + pick(b.Modified, ", and files were changed", "")
	return fmt.Sprintf("jurat %s\ncommit    %s\nbuilt by  %s for %s\nformats   %s\n", b.Version, commit, b.Go, b.Platform,
		strings.Join(b.Formats, "\n          "))
}

type versionCmd struct {
	jsonFlag
}

func (c *versionCmd) Run(std stdio) error {
	b := thisBuild()
	return c.answer(std, b, nil, func(p *printer) { p.lines(b.lines()) })
}

type versionFlag bool

func (versionFlag) BeforeReset(k *kong.Kong) error {
	if _, err := fmt.Fprintf(k.Stdout, "jurat %s\n", version()); err != nil {
		return err
	}
	k.Exit(0)
	return nil
}

// IgnoreDefault has the flag count only where it is given.
func (versionFlag) IgnoreDefault() {}

type portalCmd struct {
	Out string `help:"Where to write the page." default:"verify.html" placeholder:"FILE"`
}

func (c *portalCmd) Run(std stdio) error {
	err := atomicfile.Replace(c.Out, portal.File(), 0o644)
	std.tellIf(err == nil, "wrote %s", c.Out)
	std.tellIf(err == nil, "SHA-256 %x", portal.Digest())
	return err
}
