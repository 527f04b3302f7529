// A client and a proxy of connect-ip-go, for tests of the ones here over loopback. Packets are in hexadecimal.
//
//	connect_ip_go client CA PROXY ADDRESS PACKET   asks for ADDRESS, sends PACKET, prints what it is told and what comes
//	connect_ip_go proxy CERTS ASSIGNED ROUTE       listens at any port and prints it; sends back what comes, turned round
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	connectip "github.com/quic-go/connect-ip-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
)

const path = "/.well-known/masque/ip/*/*/"

func main() {
	log.SetFlags(0)
	switch {
	case len(os.Args) == 6 && os.Args[1] == "client":
		client(os.Args[2], os.Args[3], netip.MustParsePrefix(os.Args[4]), os.Args[5])
	case len(os.Args) == 5 && os.Args[1] == "proxy":
		proxy(os.Args[2], netip.MustParsePrefix(os.Args[3]), netip.MustParseAddr(os.Args[4]))
	default:
		log.Fatal("usage: connect_ip_go client CA PROXY ADDRESS PACKET | proxy CERTS ASSIGNED ROUTE")
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func client(ca, proxy string, wanted netip.Prefix, packet string) {
	pem, err := os.ReadFile(ca)
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	connection, err := quic.DialAddr(ctx, proxy,
		&tls.Config{RootCAs: roots, ServerName: "server", NextProtos: []string{http3.NextProtoH3}},
		&quic.Config{EnableDatagrams: true, InitialPacketSize: 1350})
	check(err)
	transport := connectip.Transport{}
	session, err := transport.NewClientConn(connection)
	check(err)
	request, err := connectip.NewRequest(ctx, uritemplate.MustNew("https://server"+path))
	check(err)
	tunnel, response, err := session.Dial(request)
	check(err)
	fmt.Println(response.StatusCode)
	_, err = tunnel.RequestAddresses([]netip.Prefix{wanted})
	check(err)
	for isAnswered := false; !isAnswered; {
		assigned, err := tunnel.ReceiveAddressAssignment(ctx)
		check(err)
		for _, one := range assigned {
			if one.RequestID != 0 {
				isAnswered = true
				fmt.Println("assigned", one.IPPrefix)
			}
		}
	}
	routes, err := tunnel.Routes(ctx)
	check(err)
	for _, route := range routes {
		fmt.Println("route", route.StartIP, route.EndIP, route.IPProtocol)
	}
	bytes, err := hex.DecodeString(packet)
	check(err)
	_, err = tunnel.WritePacket(bytes)
	check(err)
	buffer := make([]byte, 1500)
	length, err := tunnel.ReadPacket(buffer)
	check(err)
	fmt.Println("packet", hex.EncodeToString(buffer[:length]))
	check(tunnel.Close())
}

func proxy(certs string, assigned netip.Prefix, route netip.Addr) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "cert.pem"), filepath.Join(certs, "priv.key"))
	check(err)
	template := uritemplate.MustNew("https://server" + path)
	var proxy connectip.Proxy
	handle := func(w http.ResponseWriter, r *http.Request) {
		request, err := connectip.ParseProxyRequest(r, template)
		if err != nil {
			log.Print(err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		tunnel, err := proxy.Proxy(w, request)
		check(err)
		check(tunnel.AdvertiseRoute([]connectip.IPRoute{{StartIP: route, EndIP: route}}))
		go func() {
			for {
				asked, err := tunnel.ReceiveAddressRequest(r.Context())
				if err != nil {
					return
				}
				check(asked.Respond([]netip.Prefix{assigned}, nil))
			}
		}()
		buffer := make([]byte, 1500)
		for {
			length, err := tunnel.ReadPacket(buffer)
			if err != nil {
				return
			}
			packet := buffer[:length]
			source := slices.Clone(packet[12:16])
			copy(packet[12:16], packet[16:20])
			copy(packet[16:20], source)
			if _, err := tunnel.WritePacket(packet); err != nil {
				return
			}
		}
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check(err)
	fmt.Println(socket.LocalAddr())
	server := http3.Server{
		TLSConfig:       http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
		QUICConfig:      &quic.Config{EnableDatagrams: true},
		EnableDatagrams: true,
		Handler:         http.HandlerFunc(handle),
	}
	check(server.Serve(socket))
}
