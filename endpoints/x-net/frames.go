package endpoint

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
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
	in  *bufio.Reader
	out *os.File
}

func openFrames() *frames {
	return &frames{in: bufio.NewReaderSize(os.NewFile(3, "questions"), 1<<16), out: os.NewFile(4, "answers")}
}

// read waits for the next frame. The error is io.EOF when the coordinator has gone away between two frames.
func (f *frames) read() (kind byte, body []byte, err error) {
	var head [frameHeadLen]byte
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length > maxFrame {
		return 0, nil, fmt.Errorf("file descriptor 3: a frame of %d bytes, want at most %d", length, maxFrame)
	}
	body = make([]byte, length)
	if _, err := io.ReadFull(f.in, body); err != nil {
		return 0, nil, fmt.Errorf("file descriptor 3: %w", err)
	}
	return head[4], body, nil
}

func (f *frames) write(kind byte, body []byte) error {
	head := binary.LittleEndian.AppendUint32(make([]byte, 0, frameHeadLen+len(body)), uint32(len(body)))
	_, err := f.out.Write(append(append(head, kind), body...))
	return err
}

func (f *frames) writeJSON(kind byte, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return f.write(kind, text)
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

// departures is the part of RAN that holds datagrams.
type departures struct {
	count uint32
	bytes []byte
}

// add appends a datagram without an ECN mark: the library sets none.
func (d *departures) add(now uint64, bytes []byte) {
	d.bytes = binary.LittleEndian.AppendUint64(d.bytes, now)
	d.bytes = append(d.bytes, 0)
	d.bytes = binary.LittleEndian.AppendUint16(d.bytes, uint16(len(bytes)))
	d.bytes = append(d.bytes, bytes...)
	d.count++
}

// ran is the body of a RAN with these departures.
func (d *departures) ran(nextWake uint64, done bool) []byte {
	body := binary.LittleEndian.AppendUint64(make([]byte, 0, ranHeadLen+len(d.bytes)), nextWake)
	if done {
		body = append(body, 1)
	} else {
		body = append(body, 0)
	}
	body = binary.LittleEndian.AppendUint32(body, d.count)
	return append(body, d.bytes...)
}
