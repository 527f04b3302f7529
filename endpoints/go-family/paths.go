package family

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// In the byte of a datagram with its ECN bits: the number of its path.
const (
	pathBits  = 0x30
	pathShift = 4
)

// latestMigration is the latest time at which a client may be asked to migrate.
const latestMigration = time.Hour

// Path is one of several paths (endpoints/contract/paths.md): the addresses of both ends on it.
type Path struct {
	Name   string `json:"name"`
	Local  string `json:"local"`
	Remote string `json:"remote"`
}

// takeMigration takes the option migrate, if the stack can migrate and this is a client; else it is left, and unknown.
func (h *Hello) takeMigration(stack *Stack) error {
	value, asked := h.Options["migrate"]
	if !asked || !stack.Migrates || h.Role != "client" {
		return nil
	}
	after, err := time.ParseDuration(value)
	if err != nil || after < 0 || after > latestMigration || after%time.Millisecond != 0 {
		return Unsupported{fmt.Sprintf("option migrate=%s: want a time since the start up to an hour, such as 2s or 1500ms", value)}
	}
	if len(h.Paths) < 2 {
		return Unsupported{"option migrate: there is one path; choose a scenario with several, such as terrestrial-leo"}
	}
	delete(h.Options, "migrate")
	h.migrateAfter = &after
	return nil
}

// followsPaths says whether datagrams take the paths of their addresses: those of a client that migrates, and of a server,
// which answers to wherever the client is.
func (h *Hello) followsPaths(stack *Stack) bool {
	return stack.Migrates && len(h.Paths) > 1 && (h.Role == "server" || h.migrateAfter != nil)
}

// Migrates says whether the client is to migrate.
func (c *Client) Migrates() bool { return c.Hello.migrateAfter != nil }

// AwaitMigration waits until the client is to migrate, and returns the socket at its address on the second path; false if
// the connection ends before.
func (c *Client) AwaitMigration(ended <-chan struct{}) (net.PacketConn, bool, error) {
	left := *c.Hello.migrateAfter - time.Duration(c.Now())
	select {
	case <-ended:
		return nil, false, nil
	case <-time.After(left):
	}
	socket, err := c.second()
	return socket, err == nil, err
}

// readPaths reads the client's address on each path, as socket mode has it: names and addresses. A client's socket of the
// first path is that of all that are not asked for.
func (h *Hello) readPaths(text string) error {
	for word := range strings.FieldsSeq(text) {
		name, address, _ := strings.Cut(word, "=")
		if _, err := netip.ParseAddr(address); err != nil {
			return fmt.Errorf("BENTPIPE_PATHS: %q: want NAME=ADDRESS: %w", word, err)
		}
		h.Paths = append(h.Paths, Path{Name: name, Local: net.JoinHostPort(address, "0")})
	}
	return nil
}

// listenSecond opens a socket at the client's address on the second path, in socket mode.
func (h *Hello) listenSecond() (net.PacketConn, error) {
	address, err := net.ResolveUDPAddr("udp", h.Paths[1].Local)
	if err != nil {
		return nil, fmt.Errorf("BENTPIPE_PATHS: %w", err)
	}
	return net.ListenUDP("udp", address)
}
