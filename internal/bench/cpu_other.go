//go:build !unix

package bench

import "time"

// processorTime is not known here, and no figure is made of it.
func processorTime() time.Duration { return 0 }
