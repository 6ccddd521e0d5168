// Command jurat puts AI agents before a jury and seals what every agent says into records that anyone can verify.
//
// # Many cases: the worst counts, and everything is reported
//
// The order is that of `verify`: what failed (1) is worse than what could not be tried (2), that than what is undecided (3). A case
// that cannot be read keeps no other from being tried, and a command that is interrupted writes its reports all the same, in which
// what was not tried is an error or skipped and never passed. `--fail-on` can only add to `unsafe_fail`: a list of kinds that left
// it out by mistake must not let it through. A SARIF result points at the lines of the message in the case's own file; of records,
// which stand in one line, at the record and the message.
package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() { os.Exit(mainExit()) }

// mainExit is main with its exit code returned, so that what is deferred runs and tests can call it.
func mainExit() int {
	// After the first signal the program winds up; a second one ends it at once.
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it ignored
		ends = append(ends, syscall.SIGHUP) // a terminal that is closed ends what runs in it, as Ctrl-C does
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop)
	// A reader who has seen enough must not end a trial in the middle: writing to him fails, and the trial goes on.
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
