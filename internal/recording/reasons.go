package recording

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/observe"
	"jurat/internal/relay"
)

// reasons are errors that a record may name: their words are this program's own. The words of a library may quote what a client or a server wrote, which
// could then never be erased.
var reasons = []error{relay.ErrClientGone, relay.ErrSpoolFull, relay.ErrUpgrade, observe.ErrTooLong, observe.ErrEncoding, observe.ErrBehind, api.ErrConflict}

// inWords says in closed words what an error was.
func inWords(err error) string {
	if said, is := errors.AsType[relay.Reason](err); is {
		return said.Error()
	}
	for _, known := range reasons {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	var refused *evidence.FieldError
	var network net.Error
	switch {
	case errors.As(err, &refused):
		return "the format of records does not take it"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "it took too long"
	case errors.Is(err, context.Canceled):
		return "it was cancelled"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the connection broke off"
	case errors.As(err, &network):
		return "the network failed"
	case errors.Is(err, syscall.ENOSPC):
		return "the disk is full"
	case errors.Is(err, os.ErrPermission), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrClosed):
		return "a file could not be used"
	}
	return "another reason, whose words are not kept, as others may have written them"
}
