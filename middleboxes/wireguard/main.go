// The end of a WireGuard tunnel on a host of a trial: wireguard-go's device between a TUN device, which
// is there already, and a UDP socket. It keeps the contract's part for tunnels
// (endpoints/contract/middleboxes.md): JSON on standard input, packets until SIGTERM. With --version it
// prints the version of wireguard-go.
package main

import (
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

const library = "golang.zx2c4.com/wireguard"

// instructions are the HELLO of an end. The other end gets the same secret.
type instructions struct {
	Device  string
	Listen  *netip.AddrPort `json:"listen"`
	NextHop *netip.AddrPort `json:"next_hop"`
	Secret  string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 1 && arguments[0] == "--version" {
		fmt.Println(version())
		return nil
	}
	if len(arguments) > 0 {
		return errors.New("write --version, or nothing and instructions on standard input")
	}
	var given instructions
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		return fmt.Errorf("the instructions: %w", err)
	}
	return carry(given)
}

// key derives an end's private key from the secret that both ends know.
func key(secret, end string) (*ecdh.PrivateKey, error) {
	bytes := sha256.Sum256([]byte(end + " " + secret))
	return ecdh.X25519().NewPrivateKey(bytes[:])
}

// configuration is the text of these instructions in WireGuard's cross-platform userspace protocol
// (https://www.wireguard.com/xplatform), without the line `set=1`.
func configuration(given instructions) (string, error) {
	own, other := "client", "far"
	if given.Listen != nil {
		own, other = other, own
	}
	private, err := key(given.Secret, own)
	if err != nil {
		return "", err
	}
	peer, err := key(given.Secret, other)
	if err != nil {
		return "", err
	}
	lines := []string{"private_key=" + hex.EncodeToString(private.Bytes())}
	if given.Listen != nil {
		lines = append(lines, fmt.Sprintf("listen_port=%d", given.Listen.Port()))
	}
	lines = append(lines, "public_key="+hex.EncodeToString(peer.PublicKey().Bytes()),
		"allowed_ip=0.0.0.0/0", "allowed_ip=::/0")
	if given.NextHop != nil {
		lines = append(lines, "endpoint="+given.NextHop.String())
	}
	return strings.Join(lines, "\n") + "\n", nil
}

func version() string {
	build, _ := debug.ReadBuildInfo()
	for _, dependency := range build.Deps {
		if dependency.Path == library {
			return "wireguard-go " + dependency.Version
		}
	}
	return "wireguard-go"
}

func carry(given instructions) error {
	configured, err := configuration(given)
	if err != nil {
		return err
	}
	packets, err := open(given.Device)
	if err != nil {
		return fmt.Errorf("the TUN device %s: %w", given.Device, err)
	}
	tunnel := device.NewDevice(packets, conn.NewDefaultBind(), device.NewLogger(device.LogLevelError, ""))
	defer tunnel.Close()
	if err := tunnel.IpcSet(configured); err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	if err := tunnel.Up(); err != nil {
		return err
	}
	fmt.Println("ready")
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-ended:
		return nil
	case <-tunnel.Wait():
		return errors.New("the device was closed")
	}
}

// open attaches to a device that is there. Without the header that tells of merged packets: each
// crosses the device as a wire would carry it.
func open(name string) (tun.Device, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, err
	}
	packets, _, err := tun.CreateUnmonitoredTUNFromFD(fd)
	return packets, err
}
