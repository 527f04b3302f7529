package endpoint

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	family "bentpipe-endpoint-go-family"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlogwriter"
	"github.com/quic-go/quic-go/qlogwriter/jsontext"
)

// tracer makes the qlogs that the trial asks for; nil if it wants none. They are kept in memory: quic-go's own qlog
// writer hands events to another goroutine, and a trial must send the same packets whether it is logged or not.
func tracer(env *family.Environment) func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace {
	folder := env.Hello.Qlog
	if folder == "" {
		return nil
	}
	return func(_ context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
		side := "server"
		if isClient {
			side = "client"
		}
		// The name is the one that quic-go gives.
		text := env.Logs.File(filepath.Join(folder, fmt.Sprintf("%s_%s.sqlog", id, side)))
		// quic-go writes the header; it is not asked to write events.
		qlogwriter.NewConnectionFileSeq(text, isClient, id)
		return &trace{text: text, encoder: jsontext.NewEncoder(text), start: time.Now()}
	}
}

// trace is a qlog of one connection that is encoded where its events happen.
type trace struct {
	mu      sync.Mutex
	text    *family.LogFile
	encoder *jsontext.Encoder
	start   time.Time
	err     error
}

// AddProducer returns the trace itself: all parts of a connection write into it.
func (t *trace) AddProducer() qlogwriter.Recorder { return t }

// Close leaves the trace as it is; the log file is written at the end.
func (t *trace) Close() error { return nil }

// RecordEvent appends an event in the layout of quic-go's JSON text sequences: times in ms since the first event.
func (t *trace) RecordEvent(event qlogwriter.Event) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write([]byte{qlogwriter.RecordSeparator})
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
