package main

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// version names the versions of Caddy and of its QUIC library that the program was built with.
func version(info *debug.BuildInfo) string {
	return fmt.Sprintf("Caddy %s with quic-go %s",
		versionOf(info, "github.com/caddyserver/caddy/v2"),
		versionOf(info, "github.com/quic-go/quic-go"))
}

// versionOf is that of one module.
func versionOf(info *debug.BuildInfo, module string) string {
	if info != nil {
		for _, one := range info.Deps {
			if one.Path == module {
				return strings.TrimPrefix(one.Version, "v")
			}
		}
	}
	return "unknown"
}
