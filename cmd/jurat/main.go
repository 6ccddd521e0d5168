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
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	_ "golang.org/x/crypto/x509roots/fallback" // where the system has no root certificates, such as in the container image
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
