package postgres

import "time"

// SetPatience sets how long a call waits for the database.
func (s *Files) SetPatience(d time.Duration) { s.patience = d }
