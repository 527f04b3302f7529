// The end of a WireGuard tunnel on a host of a trial: wireguard-go's device between a TUN device, which
// is there already, and a UDP socket.
//
//	bentpipe-tunnel-wireguard key               prints a new private key and its public key
//	bentpipe-tunnel-wireguard run DEVICE        reads its configuration from standard input, prints
//	                                            `ready`, and carries packets until SIGTERM
//	bentpipe-tunnel-wireguard version           prints the version of wireguard-go
//
// The configuration is that of WireGuard's cross-platform userspace protocol
// (https://www.wireguard.com/xplatform), without the line `set=1`.
package main

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

const library = "golang.zx2c4.com/wireguard"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 1 && arguments[0] == "key":
		return makeKey()
	case len(arguments) == 1 && arguments[0] == "version":
		fmt.Println(version())
		return nil
	case len(arguments) == 2 && arguments[0] == "run":
		return carry(arguments[1])
	}
	return errors.New("write key, version, or run and the name of a TUN device")
}

func makeKey() error {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	fmt.Println(hex.EncodeToString(key.Bytes()), hex.EncodeToString(key.PublicKey().Bytes()))
	return nil
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

func carry(name string) error {
	packets, err := open(name)
	if err != nil {
		return fmt.Errorf("the TUN device %s: %w", name, err)
	}
	tunnel := device.NewDevice(packets, conn.NewDefaultBind(), device.NewLogger(device.LogLevelError, ""))
	defer tunnel.Close()
	if err := tunnel.IpcSetOperation(os.Stdin); err != nil {
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
