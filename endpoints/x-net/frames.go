package endpoint

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// Frame types of CONTRACT section 4.
const (
	frameHello  = 1
	frameReady  = 2
	frameRun    = 3
	frameRan    = 4
	frameFinish = 5
	frameBye    = 6
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
	arrivals []datagram
}

// datagram is one that arrives. Its ECN bits are left out: see virtualSocket.
type datagram struct {
	time  uint64 // ns since the start of the trial
	bytes []byte
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
		r.arrivals = append(r.arrivals, datagram{binary.LittleEndian.Uint64(rest), rest[datagramHeadLen:end]})
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

// add appends a datagram without an ECN mark: the library sets none.
func (d *departures) add(now uint64, bytes []byte) {
	d.frame = binary.LittleEndian.AppendUint64(d.frame, now)
	d.frame = append(d.frame, 0)
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
