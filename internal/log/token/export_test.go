package token

import "time"

// Hurry bounds each call from now on.
func (h *Helper) Hurry(d time.Duration) { h.patience = d }
