package schedule

// Stops reports whether a trial that is conducted here asks no more jurors.
func (d *Scheduler) Stops(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.here[id]
	return s != nil && s.adjourned
}

// HoldReading delays reading the log for watchers of a trial until begin is called. read returns how many records were
// read for them.
func HoldReading(d *Scheduler, id string) (begin func(), read func() int) {
	s := d.join(id, nil)
	s.reading.Lock()
	return s.reading.Unlock, func() int {
		s.reading.Lock()
		defer s.reading.Unlock()
		return s.view.Records
	}
}
