package ledger

// Seats says how many callers have been let into the queue and have not gone, of how many there can be.
func (l *Ledger) Seats() (taken, all int) { return len(l.queue.seats), cap(l.queue.seats) }
