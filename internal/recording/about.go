package recording

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/atomicfile"
)

// About is what a recorder's folder says of its process. Who looks at the folder later knows by it whose calls the journal has.
type About struct {
	Recorder string           `json:"recorder"`
	Mode     observed.Mode    `json:"mode"`
	Vantage  evidence.Vantage `json:"vantage"`
	Agent    string           `json:"agent,omitempty"` // of calls without a token
	Version  string           `json:"version"`
	Began    time.Time        `json:"began"`
	Process  int              `json:"process"`

	Heartbeat int64 `json:"heartbeat_ms,omitempty"` // how often the log hears of it, in milliseconds
}

const aboutFile = "about.json"

// introduce writes who this process is.
func (r *Recorder) introduce() error {
	text, err := json.Marshal(About{Recorder: r.Name, Mode: r.mode(), Vantage: r.Vantage, Agent: r.Agent, Version: r.Version, Began: r.Now(), Process: os.Getpid(), Heartbeat: r.Heartbeat.Milliseconds()})
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(r.own, aboutFile), text, 0o600)
}

// readAbout reads what introduce wrote. Folders of earlier versions have none: fs.ErrNotExist.
func readAbout(folder string) (a About, err error) {
	file := filepath.Join(folder, aboutFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: %w; move it away, and what is left in the folder is sealed by the next recorder in its own name", file, err)
	}
	if err := evidence.CheckName(a.Recorder); err != nil {
		return a, fmt.Errorf("%s: recorder: %w; move it away, and what is left in the folder is sealed by the next recorder in its own name", file, err)
	}
	return a, nil
}
