package schedule

// Stops reports whether nobody is asked any more in a trial that is conducted here.
func (d *Scheduler) Stops(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.here[id]
	return s != nil && s.adjourned
}

// HoldReading keeps the log from being read for those who watch a trial, until begin is called. read says how many records were read for them.
func HoldReading(d *Scheduler, id string) (begin func(), read func() int) {
	s := d.join(id, nil)
	s.reading.Lock()
	return s.reading.Unlock, func() int {
		s.reading.Lock()
		defer s.reading.Unlock()
		return s.view.Records
	}
}
