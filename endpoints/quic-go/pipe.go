package endpoint

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"syscall"
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

const frameHeaderLen = 5

// maxFrame bounds the body of a frame: a longer one means that the pipe carries something else.
const maxFrame = 1 << 30

// pipe carries frames to and from the coordinator on two file descriptors.
//
// It calls the kernel directly: an os.File would park the goroutine in the network poller, and with one frame in
// flight at a time there is nothing else to do while it waits.
type pipe struct {
	in, out int
	buf     []byte
}

// read waits for the next frame. The body is valid until the next call. The error is io.EOF when the coordinator
// has gone away between two frames.
func (p *pipe) read() (kind byte, body []byte, err error) {
	if p.buf == nil {
		p.buf = make([]byte, 1<<20)
	}
	have, err := p.fill(0, frameHeaderLen)
	if err != nil {
		return 0, nil, err
	}
	length := int(binary.LittleEndian.Uint32(p.buf))
	if length > maxFrame {
		return 0, nil, fmt.Errorf("file descriptor 3: a frame of %d bytes: this is not Bentpipe's framing", length)
	}
	kind = p.buf[4]
	want := frameHeaderLen + length
	if want > len(p.buf) {
		p.buf = slices.Grow(p.buf[:have], want-have)
		p.buf = p.buf[:cap(p.buf)]
	}
	if have, err = p.fill(have, want); err != nil {
		return 0, nil, err
	}
	if have > want {
		// The coordinator asks only after it has been answered.
		return 0, nil, fmt.Errorf("file descriptor 3: %d bytes follow a frame of type %d unasked", have-want, kind)
	}
	return kind, p.buf[frameHeaderLen:want], nil
}

// fill reads until at least want bytes are in the buffer.
func (p *pipe) fill(have, want int) (int, error) {
	for have < want {
		n, err := syscall.Read(p.in, p.buf[have:])
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return have, fmt.Errorf("file descriptor 3: %w", err)
		case n == 0 && have == 0:
			return have, io.EOF
		case n == 0:
			return have, fmt.Errorf("file descriptor 3: %w", io.ErrUnexpectedEOF)
		default:
			have += n
		}
	}
	return have, nil
}

// write sends a whole frame; its length field is filled in here.
func (p *pipe) write(frame []byte) error {
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-frameHeaderLen))
	for len(frame) > 0 {
		n, err := syscall.Write(p.out, frame)
		if err != nil && err != syscall.EINTR {
			return fmt.Errorf("file descriptor 4: %w", err)
		}
		frame = frame[max(n, 0):]
	}
	return nil
}

func (p *pipe) writeJSON(kind byte, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return p.write(append([]byte{0, 0, 0, 0, kind}, text...))
}

// arrivals walks over the datagrams in the body of a RUN.
type arrivals struct {
	until uint64
	count uint32
	rest  []byte
}

type datagram struct {
	time  uint64 // ns since the start of the trial
	ecn   byte
	bytes []byte
}

const datagramHeaderLen = 8 + 1 + 2

func parseRun(body []byte) (arrivals, error) {
	if len(body) < 12 {
		return arrivals{}, fmt.Errorf("RUN: %d bytes are too few", len(body))
	}
	return arrivals{
		until: binary.LittleEndian.Uint64(body),
		count: binary.LittleEndian.Uint32(body[8:]),
		rest:  body[12:],
	}, nil
}

// next returns the next datagram; ok is false after the last one.
func (a *arrivals) next() (d datagram, ok bool, err error) {
	if a.count == 0 {
		if len(a.rest) > 0 {
			return d, false, fmt.Errorf("RUN: %d bytes after the last datagram", len(a.rest))
		}
		return d, false, nil
	}
	if len(a.rest) < datagramHeaderLen {
		return d, false, fmt.Errorf("RUN: %d datagrams are missing", a.count)
	}
	length := int(binary.LittleEndian.Uint16(a.rest[9:]))
	if len(a.rest) < datagramHeaderLen+length {
		return d, false, fmt.Errorf("RUN: a datagram of %d bytes is cut short", length)
	}
	d = datagram{
		time:  binary.LittleEndian.Uint64(a.rest),
		ecn:   a.rest[8],
		bytes: a.rest[datagramHeaderLen : datagramHeaderLen+length],
	}
	a.rest = a.rest[datagramHeaderLen+length:]
	a.count--
	return d, true, nil
}

// departures is a RAN in the making.
type departures struct {
	frame []byte
	count uint32
}

const ranHeadLen = frameHeaderLen + 8 + 1 + 4

func (d *departures) reset() {
	d.frame = append(d.frame[:0], make([]byte, ranHeadLen)...)
	d.frame[4] = frameRan
	d.count = 0
}

func (d *departures) add(now uint64, ecn byte, bytes []byte) {
	d.frame = binary.LittleEndian.AppendUint64(d.frame, now)
	d.frame = append(d.frame, ecn)
	d.frame = binary.LittleEndian.AppendUint16(d.frame, uint16(len(bytes)))
	d.frame = append(d.frame, bytes...)
	d.count++
}

// finish completes the frame.
func (d *departures) finish(nextWake uint64, done bool) []byte {
	head := d.frame[frameHeaderLen:]
	binary.LittleEndian.PutUint64(head, nextWake)
	if done {
		head[8] = 1
	}
	binary.LittleEndian.PutUint32(head[9:], d.count)
	return d.frame
}
