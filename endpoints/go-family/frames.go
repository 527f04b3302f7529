package family

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// Message types of endpoints/CONTRACT.md.
const (
	FrameHello  = 1
	FrameReady  = 2
	FrameRun    = 3
	FrameRan    = 4
	FrameFinish = 5
	FrameBye    = 6
)

const (
	frameHeadLen    = 4 + 1
	runHeadLen      = 8 + 4
	ranHeadLen      = 8 + 1 + 4
	datagramHeadLen = 8 + 1 + 2
)

// maxFrame bounds the body of a frame, in bytes.
const maxFrame = 1 << 28

// frames are the two pipes to the coordinator. Both block: with one frame in flight there is nothing else to do.
type frames struct {
	in   *bufio.Reader
	out  *os.File
	body []byte
}

func openFrames() *frames {
	return &frames{in: bufio.NewReaderSize(os.NewFile(3, "questions"), 1<<16), out: os.NewFile(4, "answers")}
}

// read waits for the next frame. Its body is valid until the next call. The error is io.EOF when the coordinator has gone
// away between two frames.
func (f *frames) read() (kind byte, body []byte, err error) {
	var head [frameHeadLen]byte
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length > maxFrame {
		return 0, nil, fmt.Errorf("file descriptor 3: a frame of %d bytes, want at most %d", length, maxFrame)
	}
	f.body = slices.Grow(f.body[:0], int(length))[:length]
	if _, err := io.ReadFull(f.in, f.body); err != nil {
		return 0, nil, fmt.Errorf("file descriptor 3: %w", err)
	}
	return head[4], f.body, nil
}

// write sends a frame whose head is filled in here.
func (f *frames) write(kind byte, frame []byte) error {
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-frameHeadLen))
	frame[4] = kind
	_, err := f.out.Write(frame)
	return err
}

func (f *frames) writeJSON(kind byte, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return f.write(kind, append(make([]byte, frameHeadLen), text...))
}

// run is a RUN.
type run struct {
	until    uint64
	arrivals []Datagram
}

// Datagram is one that arrives.
type Datagram struct {
	ECN   byte
	Bytes []byte
	time  uint64 // ns since the start of the trial
}

func parseRun(body []byte) (run, error) {
	if len(body) < runHeadLen {
		return run{}, fmt.Errorf("RUN: %d bytes are too few", len(body))
	}
	r := run{until: binary.LittleEndian.Uint64(body)}
	rest := body[runHeadLen:]
	for i := range binary.LittleEndian.Uint32(body[8:]) {
		end := datagramHeadLen
		if len(rest) >= end {
			end += int(binary.LittleEndian.Uint16(rest[9:]))
		}
		if len(rest) < end {
			return run{}, fmt.Errorf("RUN: datagram %d is cut short", i)
		}
		r.arrivals = append(r.arrivals, Datagram{rest[8], rest[datagramHeadLen:end], binary.LittleEndian.Uint64(rest)})
		rest = rest[end:]
	}
	if len(rest) > 0 {
		return run{}, fmt.Errorf("RUN: %d bytes after the last datagram", len(rest))
	}
	return r, nil
}

// departures is a RAN in the making. There is one for all RUNs, because the collector does not run.
type departures struct {
	frame []byte
	count uint32
}

func (d *departures) reset() {
	d.frame = append(d.frame[:0], make([]byte, frameHeadLen+ranHeadLen)...)
	d.count = 0
}

func (d *departures) add(now uint64, ecn byte, bytes []byte) {
	d.frame = binary.LittleEndian.AppendUint64(d.frame, now)
	d.frame = append(d.frame, ecn)
	d.frame = binary.LittleEndian.AppendUint16(d.frame, uint16(len(bytes)))
	d.frame = append(d.frame, bytes...)
	d.count++
}

// ran completes the frame, but for its head.
func (d *departures) ran(nextWake uint64, done bool) []byte {
	head := d.frame[frameHeadLen:]
	binary.LittleEndian.PutUint64(head, nextWake)
	if done {
		head[8] = 1
	}
	binary.LittleEndian.PutUint32(head[9:], d.count)
	return d.frame
}
