package family

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
)

// Message types of endpoints/CONTRACT.md.
const (
	MessageHello  = 1
	MessageReady  = 2
	MessageRun    = 3
	MessageRan    = 4
	MessageFinish = 5
	MessageBye    = 6
)

const (
	messageHeadLen  = 4 + 1
	runHeadLen      = 8 + 4
	ranHeadLen      = 8 + 1 + 4
	datagramHeadLen = 8 + 1 + 2
)

// messageShared is added to the type of a message whose body is in shared memory.
const messageShared = 0x80

// sharedFrom is the length, in bytes, from which on a message goes there. Shorter ones go through the pipe.
const sharedFrom = 2048

// maxBody bounds the body of a message, in bytes.
const maxBody = 1 << 28

// pipes are the two pipes to the coordinator. Both block: with one message in flight there is nothing else to do. If
// memory is shared with the coordinator, bodies to the program are in the first half of it, from the program in the
// second.
type pipes struct {
	in     *bufio.Reader
	out    *os.File
	body   []byte
	memory []byte
}

func openPipes() *pipes {
	return &pipes{in: bufio.NewReaderSize(os.NewFile(3, "questions"), 1<<16), out: os.NewFile(4, "answers")}
}

// share maps the memory that HELLO offers, if it offers any, and says whether it did. The descriptor is something else
// behind a program that passes on the first four alone.
func (p *pipes) share(offer *SharedMemory) (bool, error) {
	if offer == nil {
		return false, nil
	}
	var status syscall.Stat_t
	if err := syscall.Fstat(offer.FD, &status); err != nil || status.Size != int64(offer.Bytes) {
		return false, nil
	}
	memory, err := syscall.Mmap(offer.FD, 0, offer.Bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return false, fmt.Errorf("shared memory: %w", err)
	}
	p.memory = memory
	return true, syscall.Close(offer.FD)
}

// read waits for the next message. Its body is valid until the next call. The error is io.EOF when the coordinator has
// gone away between two messages.
func (p *pipes) read() (kind byte, body []byte, err error) {
	var head [messageHeadLen]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.LittleEndian.Uint32(head[:])
	if kind := head[4]; kind&messageShared != 0 {
		if int(length) > len(p.memory)/2 {
			return 0, nil, fmt.Errorf("file descriptor 3: a message of %d bytes in shared memory", length)
		}
		return kind &^ messageShared, p.memory[:length], nil
	}
	if length > maxBody {
		return 0, nil, fmt.Errorf("file descriptor 3: a message of %d bytes, want at most %d", length, maxBody)
	}
	p.body = slices.Grow(p.body[:0], int(length))[:length]
	if _, err := io.ReadFull(p.in, p.body); err != nil {
		return 0, nil, fmt.Errorf("file descriptor 3: %w", err)
	}
	return head[4], p.body, nil
}

// write sends a message whose head is filled in here.
func (p *pipes) write(kind byte, message []byte) error {
	binary.LittleEndian.PutUint32(message, uint32(len(message)-messageHeadLen))
	message[4] = kind
	// The coordinator learns from READY that the memory is used.
	body, half := message[messageHeadLen:], len(p.memory)/2
	if kind != MessageReady && len(body) >= sharedFrom && len(body) <= half {
		copy(p.memory[half:], body)
		message[4] |= messageShared
		message = message[:messageHeadLen]
	}
	_, err := p.out.Write(message)
	return err
}

func (p *pipes) writeJSON(kind byte, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return p.write(kind, append(make([]byte, messageHeadLen), text...))
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
	From  *net.UDPAddr // its sender
	path  int
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
		r.arrivals = append(r.arrivals, Datagram{
			ECN: rest[8] &^ pathBits, Bytes: rest[datagramHeadLen:end],
			path: int(rest[8]&pathBits) >> pathShift, time: binary.LittleEndian.Uint64(rest),
		})
		rest = rest[end:]
	}
	if len(rest) > 0 {
		return run{}, fmt.Errorf("RUN: %d bytes after the last datagram", len(rest))
	}
	return r, nil
}

// departures is a RAN in the making. There is one for all RUNs, because the collector does not run.
type departures struct {
	message []byte
	count   uint32
}

func (d *departures) reset() {
	d.message = append(d.message[:0], make([]byte, messageHeadLen+ranHeadLen)...)
	d.count = 0
}

func (d *departures) add(now uint64, ecn byte, bytes []byte) {
	d.message = binary.LittleEndian.AppendUint64(d.message, now)
	d.message = append(d.message, ecn)
	d.message = binary.LittleEndian.AppendUint16(d.message, uint16(len(bytes)))
	d.message = append(d.message, bytes...)
	d.count++
}

// ran completes the message, but for its head.
func (d *departures) ran(nextWake uint64, done bool) []byte {
	head := d.message[messageHeadLen:]
	binary.LittleEndian.PutUint64(head, nextWake)
	if done {
		head[8] = 1
	}
	binary.LittleEndian.PutUint32(head[9:], d.count)
	return d.message
}
