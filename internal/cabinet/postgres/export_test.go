package postgres

import "time"

// SetPatience says how long a call waits for the database.
func (c *Cabinet) SetPatience(d time.Duration) { c.patience = d }
