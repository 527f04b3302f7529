package endpoint

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlogwriter"
	"github.com/quic-go/quic-go/qlogwriter/jsontext"
)

// logs are the TLS secrets and the qlog of a process. They are kept in memory until flush: quic-go's own qlog writer
// hands events to another goroutine, and a trial must send the same packets whether it is logged or not.
type logs struct {
	keylog io.Writer // nil: no secrets are written
	tracer func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace

	mu      sync.Mutex
	secrets bytes.Buffer
	files   []logFile
}

// logFile is a file to be written.
type logFile struct {
	name string
	text *bytes.Buffer
}

// openLogs prepares the logs that h asks for. Secrets are buffered too if buffered is set, and otherwise appended to
// their file as they become known.
func openLogs(h *hello, buffered bool) (*logs, error) {
	l := &logs{}
	switch {
	case h.Keylog == "":
	case buffered:
		l.keylog = &l.secrets
		l.files = append(l.files, logFile{h.Keylog, &l.secrets})
	default:
		file, err := os.OpenFile(h.Keylog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("keylog: %w", err)
		}
		l.keylog = file
	}
	if h.Qlog != "" {
		l.tracer = func(_ context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
			return l.trace(h.Qlog, isClient, id)
		}
	}
	return l, nil
}

// trace begins the qlog of a connection, in a file named as quic-go names it.
func (l *logs) trace(folder string, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
	side := "server"
	if isClient {
		side = "client"
	}
	text := &bytes.Buffer{}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = append(l.files, logFile{filepath.Join(folder, fmt.Sprintf("%s_%s.sqlog", id, side)), text})
	// quic-go writes the header; it is not asked to write events.
	qlogwriter.NewConnectionFileSeq(memoryFile{text}, isClient, id)
	return &trace{mu: &l.mu, text: text, encoder: jsontext.NewEncoder(text), start: time.Now()}
}

// flush writes what has been logged so far.
func (l *logs) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		if err := os.WriteFile(f.name, f.text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

type memoryFile struct{ *bytes.Buffer }

func (memoryFile) Close() error { return nil }

// trace is a qlog of one connection that is encoded where its events happen.
type trace struct {
	mu      *sync.Mutex
	text    *bytes.Buffer
	encoder *jsontext.Encoder
	start   time.Time
	err     error
}

// AddProducer returns the trace itself: all parts of a connection write into it.
func (t *trace) AddProducer() qlogwriter.Recorder { return t }

// Close leaves the trace as it is; logs.flush writes it.
func (t *trace) Close() error { return nil }

// RecordEvent appends an event in the layout of quic-go's JSON text sequences: times in ms since the first event.
func (t *trace) RecordEvent(event qlogwriter.Event) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.WriteByte(qlogwriter.RecordSeparator)
	for _, token := range []jsontext.Token{
		jsontext.BeginObject,
		jsontext.String("time"), jsontext.Float(float64(now.Sub(t.start)) / float64(time.Millisecond)),
		jsontext.String("name"), jsontext.String(event.Name()),
		jsontext.String("data"),
	} {
		t.note(t.encoder.WriteToken(token))
	}
	t.note(event.Encode(t.encoder, now))
	t.note(t.encoder.WriteToken(jsontext.EndObject))
}

// note reports the first thing that cannot be encoded.
func (t *trace) note(err error) {
	if err != nil && t.err == nil {
		t.err = err
		fmt.Fprintf(os.Stderr, "qlog: %v\n", err)
	}
}
