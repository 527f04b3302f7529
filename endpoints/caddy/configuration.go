package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/caddyfs" // lets file systems be named
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/fileserver"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

// served is the name of the served folder in the configuration.
const served = "www"

// named is the name that clients ask for (endpoints/CONTRACT.md). Whoever asks for none, or for another one,
// is taken to have asked for it.
const named = "server"

// protocols are Caddy's names of the application protocols.
var protocols = map[string]string{http1: "h1", http2: "h2", http3: "h3"}

// configure is Caddy's configuration for what is asked for: one server on one socket, and nothing else that Caddy does
// by default.
func (asked *settings) configure(at *sockets) (*caddy.Config, error) {
	encryption := &caddytls.TLS{DisableOCSPStapling: true, DisableStorageCheck: true, DisableStorageClean: true}
	if !asked.inTheClear {
		certificate, key, err := asked.certificate()
		if err != nil {
			return nil, err
		}
		pair := caddytls.CertKeyPEMPair{CertificatePEM: certificate, KeyPEM: key}
		encryption.CertificatesRaw = caddy.ModuleMap{"load_pem": encoded(caddytls.PEMLoader{pair})}
	}
	files := map[string]any{"name": served, "file_system": module(&folder{Path: asked.www}, "backend", "bentpipe")}
	// A client that was killed leaves connections, which would keep it from ending.
	web := &caddyhttp.App{GracePeriod: caddy.Duration(time.Second), Servers: map[string]*caddyhttp.Server{"bentpipe": asked.server(at)}}
	return &caddy.Config{
		Admin: &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: new(false)}},
		Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{
			// The administration warns that it is off.
			"default": {BaseLog: caddy.BaseLog{Level: "WARN"}, Exclude: []string{"admin"}},
		}},
		AppsRaw: caddy.ModuleMap{
			"http":              encoded(web),
			"tls":               encoded(encryption),
			"caddy.filesystems": encoded(map[string]any{"filesystems": []any{files}}),
		},
	}, nil
}

// server is that of the application protocol, on its sockets.
func (asked *settings) server(at *sockets) *caddyhttp.Server {
	server := &caddyhttp.Server{
		AutoHTTPS: &caddyhttp.AutoHTTPSConfig{Disabled: true},
		Routes:    caddyhttp.RouteList{{HandlersRaw: asked.handlers(int(at.address().Port()))}},
	}
	overTCP := asked.protocol
	if asked.protocol == upgrade {
		overTCP = http2
	}
	if at.tcp != nil {
		server.Listen = append(server.Listen, fmt.Sprintf("fd/%d", at.tcp.file.Fd()))
		server.ListenProtocols = append(server.ListenProtocols, []string{protocols[overTCP]})
	}
	if at.udp != nil {
		server.Listen = append(server.Listen, fmt.Sprintf("fdgram/%d", at.udp.file.Fd()))
		server.ListenProtocols = append(server.ListenProtocols, []string{protocols[http3]})
	}
	if !asked.inTheClear {
		server.TLSConnPolicies = caddytls.ConnectionPolicies{{
			ALPN:        []string{overTCP},
			ProtocolMin: "tls1.3",
			DefaultSNI:  named,
			FallbackSNI: named,
		}}
	}
	return server
}

// handlers answer requests with files, always with the whole of them.
func (asked *settings) handlers(port int) []json.RawMessage {
	whole := &headers.Handler{
		Request: &headers.HeaderOps{Delete: []string{"If-*", "Range"}},
		Response: &headers.RespHeaderOps{
			Deferred:  true, // the file server sets them
			HeaderOps: &headers.HeaderOps{Delete: []string{"Accept-Ranges", "Etag", "Last-Modified"}},
		},
	}
	files := &fileserver.FileServer{FileSystem: served, Root: "."}
	handlers := []json.RawMessage{
		module(whole, "handler", "headers"),
		module(files, "handler", "file_server"),
	}
	if !asked.overQUIC() || !asked.altSvc {
		return handlers
	}
	alternative := fmt.Sprintf(`h3=":%d"`, port)
	advertised := &headers.Handler{Response: &headers.RespHeaderOps{
		HeaderOps: &headers.HeaderOps{Set: http.Header{"Alt-Svc": {alternative}}},
	}}
	return append([]json.RawMessage{module(advertised, "handler", "headers")}, handlers...)
}

// encoded is a part of the configuration as Caddy reads it.
func encoded(part any) json.RawMessage { return caddyconfig.JSON(part, nil) }

// module is one that the key says which it is.
func module(part any, key, name string) json.RawMessage {
	return caddyconfig.JSONModuleObject(part, key, name, nil)
}
