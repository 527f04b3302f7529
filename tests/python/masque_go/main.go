// A client and a proxy of masque-go, for tests of the ones here over loopback.
//
//	masque_go client CA PROXY TARGET    sends "ping" to TARGET by way of PROXY, prints what comes back
//	masque_go proxy CERTS TARGET        listens at any port and prints it; sends all to TARGET
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/quic-go/masque-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
)

const path = "/.well-known/masque/udp/{target_host}/{target_port}/"

func main() {
	log.SetFlags(0)
	switch {
	case len(os.Args) == 5 && os.Args[1] == "client":
		client(os.Args[2], os.Args[3], os.Args[4])
	case len(os.Args) == 4 && os.Args[1] == "proxy":
		proxy(os.Args[2], os.Args[3])
	default:
		log.Fatal("usage: masque_go client CA PROXY TARGET | proxy CERTS TARGET")
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func client(ca, proxy, target string) {
	pem, err := os.ReadFile(ca)
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := masque.Client{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "server", NextProtos: []string{http3.NextProtoH3}},
		QUICConfig:      &quic.Config{EnableDatagrams: true, InitialPacketSize: 1350},
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	connection, response, err := client.DialAddr(ctx, uritemplate.MustNew("https://"+proxy+path), target)
	check(err)
	fmt.Println(response.StatusCode)
	_, err = connection.WriteTo([]byte("ping"), nil)
	check(err)
	check(connection.SetReadDeadline(time.Now().Add(10 * time.Second)))
	buffer := make([]byte, 1500)
	length, _, err := connection.ReadFrom(buffer)
	check(err)
	fmt.Println(string(buffer[:length]))
}

func proxy(certs, target string) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "cert.pem"), filepath.Join(certs, "priv.key"))
	check(err)
	to, err := net.ResolveUDPAddr("udp", target)
	check(err)
	template := uritemplate.MustNew("https://server" + path)
	var proxy masque.Proxy
	handle := func(w http.ResponseWriter, r *http.Request) {
		request, err := masque.ParseRequest(r, template)
		if err != nil {
			log.Print(err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		socket, err := net.DialUDP("udp", nil, to)
		check(err)
		if err := proxy.ProxyConnectedSocket(w, request, socket); err != nil {
			log.Print(err)
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
