package bench

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// A Machine describes the machine that a benchmark ran on.
type Machine struct {
	CPU        string  `json:"cpu"` // "unknown" if the system does not say
	Cores      int     `json:"cores"`
	Threads    int     `json:"threads"` // the number of threads that may run at once: GOMAXPROCS
	Go         string  `json:"go"`
	OS         string  `json:"os"`
	Disk       string  `json:"disk"`        // the file system of the temporary installation, and its device
	LoadBefore float64 `json:"load_before"` // the load average of the last minute; -1: unknown
	LoadAfter  float64 `json:"load_after"`
}

const unknown = "unknown"

func machineOf(dir string) Machine {
	return Machine{CPU: cpuModel(), Cores: runtime.NumCPU(), Threads: runtime.GOMAXPROCS(0), Go: runtime.Version(), OS: system(), Disk: diskOf(dir), LoadBefore: loadAverage()}
}

// cpuModel reads the processor's name from Linux's list of processors, or returns "unknown".
func cpuModel() string {
	list, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return unknown
	}
	for line := range strings.Lines(string(list)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

func system() string {
	name := runtime.GOOS + "/" + runtime.GOARCH
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		name += " " + strings.TrimSpace(string(release))
	}
	return name
}

// diskOf returns the mount that a folder is on: the one with the longest matching path.
func diskOf(dir string) string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return unknown
	}
	best, found := "", unknown
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || len(fields[1]) < len(best) {
			continue
		}
		if at := strings.TrimSuffix(fields[1], "/"); dir == at || strings.HasPrefix(dir, at+"/") {
			best, found = fields[1], fields[2]+" on "+fields[0]
		}
	}
	return found
}

// loadAverage returns the load average of the last minute, or -1 if it is unknown.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return load
}
