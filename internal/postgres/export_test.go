package postgres

import "time"

// SetPatience says how long a call waits for the database.
func (s *Files) SetPatience(d time.Duration) { s.patience = d }
