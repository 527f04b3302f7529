package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Lists of congestion controls: those that the kernel has, and those of them that programs without CAP_NET_ADMIN may
// choose.
const (
	available = "/proc/sys/net/ipv4/tcp_available_congestion_control"
	allowed   = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
)

// setCongestion chooses a socket's congestion control, by the contract's name of it. Where that cannot be, the error
// names those that can.
func setCongestion(connection syscall.RawConn, name string) error {
	there, err := listed(available)
	if err != nil {
		return err
	}
	if !slices.Contains(there, name) {
		return unsupported(fmt.Sprintf("option cc=%s: this kernel has %s (hint: sudo modprobe tcp_%s loads one more)",
			name, strings.Join(there, ", "), name))
	}
	kernelName := name
	if name == "newreno" {
		kernelName = "reno"
	}
	var refused error
	err = connection.Control(func(descriptor uintptr) {
		refused = unix.SetsockoptString(int(descriptor), unix.IPPROTO_TCP, unix.TCP_CONGESTION, kernelName)
	})
	if errors.Is(refused, fs.ErrPermission) {
		there, err := listed(allowed)
		return errors.Join(err, unsupported(fmt.Sprintf("option cc=%s: without CAP_NET_ADMIN there is %s (hint: see %s)",
			name, strings.Join(there, ", "), allowed)))
	}
	return errors.Join(err, refused)
}

// listed are the congestion controls that a list of the kernel's has, by the contract's names.
func listed(list string) ([]string, error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	names := strings.Fields(string(text))
	if i := slices.Index(names, "reno"); i >= 0 {
		names[i] = "newreno"
	}
	return names, nil
}
