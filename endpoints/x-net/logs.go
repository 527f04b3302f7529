package endpoint

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/net/quic"
	"golang.org/x/net/quic/qlog"
)

// logs are files that are kept in memory until they are written all at once: a trial must send the same packets whether
// it is logged or not, and in virtual time files are touched only while the stack stands still.
type logs struct {
	mu    sync.Mutex
	files []*logFile
}

type logFile struct {
	name string
	mu   *sync.Mutex
	text bytes.Buffer
}

// file begins a file. What others write at the same time does not mix with what is written into it.
func (l *logs) file(name string) *logFile {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &logFile{name: name, mu: &l.mu}
	l.files = append(l.files, f)
	return f
}

func (f *logFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.Write(b)
}

func (f *logFile) Close() error { return nil }

// qlogger logs every connection, frames included, into a qlog file of its own in folder; nil if folder is empty.
func (l *logs) qlogger(folder string) *slog.Logger {
	if folder == "" {
		return nil
	}
	return slog.New(qlog.NewJSONHandler(qlog.HandlerOptions{
		Level: quic.QLogLevelFrame,
		NewTrace: func(info qlog.TraceInfo) (io.WriteCloser, error) {
			name := fmt.Sprintf("%s_%s.sqlog", info.GroupID, info.Vantage)
			return l.file(filepath.Join(folder, name)), nil
		},
	}))
}

// write writes the files as they are now.
func (l *logs) write() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		if err := os.WriteFile(f.name, f.text.Bytes(), 0o644); err != nil {
			return fmt.Errorf("logs: %w", err)
		}
	}
	return nil
}
