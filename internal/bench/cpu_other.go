//go:build !unix

package bench

import "time"

// processorTime returns 0: it is unknown on this system, so the report has no figure for it.
func processorTime() time.Duration { return 0 }
