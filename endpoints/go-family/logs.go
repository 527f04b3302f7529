package family

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
)

// Logs are files that are kept in memory until they are written all at once: a trial must send the same packets whether
// it is logged or not, and in virtual time files are touched only while the stack stands still.
type Logs struct {
	// Keylog takes TLS secrets; nil: none are written.
	Keylog io.Writer

	mu    sync.Mutex
	files []*LogFile
}

// LogFile is one of them. What is written into it at the same time does not mix.
type LogFile struct {
	name string
	mu   *sync.Mutex
	text bytes.Buffer
}

// File begins a file.
func (l *Logs) File(name string) *LogFile {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &LogFile{name: name, mu: &l.mu}
	l.files = append(l.files, f)
	return f
}

// Write appends to the file.
func (f *LogFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.Write(b)
}

// Close leaves the file as it is: it is written at the end.
func (f *LogFile) Close() error { return nil }

// keylog begins the file of TLS secrets that h asks for. Where it is eager, secrets go to the file as they become known:
// whoever captures packets reads them while they come.
func (l *Logs) keylog(h *Hello, eager bool) error {
	switch {
	case h.Keylog == "":
	case eager:
		file, err := os.OpenFile(h.Keylog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("SSLKEYLOGFILE: %w", err)
		}
		l.Keylog = file
	default:
		l.Keylog = l.File(h.Keylog)
	}
	return nil
}

// write writes the files as they are now.
func (l *Logs) write() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		if err := os.WriteFile(f.name, f.text.Bytes(), 0o644); err != nil {
			return fmt.Errorf("logs: %w", err)
		}
	}
	return nil
}
