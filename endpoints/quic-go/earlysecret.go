package endpoint

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/quic-go/quic-go/quicvarint"
)

// earlySecrets writes the one TLS secret that crypto/tls keeps to itself, the client's for 0-RTT, without which nobody
// can read these packets in a trace. It is derived (RFC 8446, section 7.1) from the key of the ticket, and from the
// ClientHello, which is taken out of the Initial packets that leave.
type earlySecrets struct {
	keylog io.Writer

	mu     sync.Mutex
	psk    []byte // nil: no ticket that allows early data is being offered
	suite  uint16
	keys   *initialKeys
	crypto []byte // the ClientHello, with gaps until it is complete
	have   int    // bytes of it
}

// offer prepares for the ClientHello that will offer state.
func (e *earlySecrets) offer(state *tls.ClientSessionState) error {
	_, session, err := state.ResumptionState()
	if err != nil || !session.EarlyData {
		return err
	}
	encoded, err := session.Bytes()
	if err != nil {
		return err
	}
	// Version, type and cipher suite, then the time, then the key with its length before it.
	const suiteAt, keyAt = 3, 13
	if len(encoded) <= keyAt || len(encoded) < keyAt+1+int(encoded[keyAt]) {
		return errors.New("crypto/tls encodes its sessions in another way")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.psk = encoded[keyAt+1:][:encoded[keyAt]]
	e.suite = binary.BigEndian.Uint16(encoded[suiteAt:])
	e.keys, e.crypto, e.have = nil, nil, 0
	return nil
}

// sent looks at what leaves: datagrams of size bytes each, but for the last.
func (e *earlySecrets) sent(datagrams []byte, size int) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for datagram := range slices.Chunk(datagrams, max(size, 1)) {
		e.look(datagram)
	}
}

// look takes the ClientHello out of a datagram, and writes the secret once all of it has left.
func (e *earlySecrets) look(datagram []byte) {
	if e.psk == nil || len(datagram) < 7 || datagram[0]&0xf0 != 0xc0 {
		return // no ticket, or no Initial packet in front
	}
	if e.keys == nil {
		e.keys = newInitialKeys(datagram[6:][:datagram[5]])
	}
	payload, err := e.keys.open(datagram)
	if err != nil {
		return
	}
	e.collect(payload)
	if len(e.crypto) < 38 || e.have < 4+int(binary.BigEndian.Uint32(e.crypto)&0xffffff) {
		return
	}
	fmt.Fprintf(e.keylog, "CLIENT_EARLY_TRAFFIC_SECRET %x %x\n", e.crypto[6:38], earlyTrafficSecret(e.suite, e.psk, e.crypto))
	e.psk = nil
}

// collect takes the CRYPTO frames out of a client's first packets, which hold PADDING and PING beside them.
func (e *earlySecrets) collect(payload []byte) {
	for len(payload) > 0 {
		kind := payload[0]
		payload = payload[1:]
		if kind < 2 {
			continue
		} else if kind != 6 {
			return
		}
		var head [2]uint64
		for i := range head {
			value, n, err := quicvarint.Parse(payload)
			if err != nil {
				return
			}
			head[i], payload = value, payload[n:]
		}
		end := int(head[0] + head[1])
		if grow := end - len(e.crypto); grow > 0 {
			e.crypto = append(e.crypto, make([]byte, grow)...)
		}
		e.have += copy(e.crypto[head[0]:end], payload)
		payload = payload[head[1]:]
	}
}

// earlyTrafficSecret is client_early_traffic_secret of RFC 8446, section 7.1.
func earlyTrafficSecret(suite uint16, psk, clientHello []byte) []byte {
	newHash := func() hash.Hash { return sha256.New() }
	if suite == tls.TLS_AES_256_GCM_SHA384 {
		newHash = func() hash.Hash { return sha512.New384() }
	}
	transcript := newHash()
	transcript.Write(clientHello)
	extract := hmac.New(newHash, make([]byte, transcript.Size()))
	extract.Write(psk)
	return expandLabel(newHash, extract.Sum(nil), "c e traffic", transcript.Sum(nil), transcript.Size())
}

// expandLabel is HKDF-Expand-Label of RFC 8446, section 7.1.
func expandLabel(newHash func() hash.Hash, secret []byte, label string, context []byte, length int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(length))
	info = append(append(info, byte(len("tls13 ")+len(label))), "tls13 "+label...)
	info = append(append(info, byte(len(context))), context...)
	key, err := hkdf.Expand(newHash, secret, string(info), length)
	if err != nil {
		panic(err) // lengths are constants
	}
	return key
}

// initialKeys open a client's Initial packets: RFC 9001, section 5.2.
type initialKeys struct {
	aead cipher.AEAD
	mask cipher.Block
	iv   []byte
}

var initialSalt = []byte{
	0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
}

func newInitialKeys(destination []byte) *initialKeys {
	newHash := func() hash.Hash { return sha256.New() }
	extract := hmac.New(newHash, initialSalt)
	extract.Write(destination)
	secret := expandLabel(newHash, extract.Sum(nil), "client in", nil, sha256.Size)
	key, err := aes.NewCipher(expandLabel(newHash, secret, "quic key", nil, 16))
	mask, err2 := aes.NewCipher(expandLabel(newHash, secret, "quic hp", nil, 16))
	aead, err3 := cipher.NewGCM(key)
	if err := errors.Join(err, err2, err3); err != nil {
		panic(err) // lengths are constants
	}
	return &initialKeys{aead, mask, expandLabel(newHash, secret, "quic iv", nil, 12)}
}

var errNotInitial = errors.New("not an Initial packet of version 1")

// open decrypts the Initial packet at the front of a datagram: RFC 9000, section 17.2.2, and RFC 9001, section 5.4.
func (k *initialKeys) open(datagram []byte) ([]byte, error) {
	at := 6 + int(datagram[5])
	if at >= len(datagram) {
		return nil, errNotInitial
	}
	at += 1 + int(datagram[at])
	var fields [2]uint64 // length of the token, and of the packet
	for i := range fields {
		value, n, err := quicvarint.Parse(datagram[min(at, len(datagram)):])
		if err != nil {
			return nil, err
		}
		fields[i] = value
		if at += n; i == 0 {
			at += int(value)
		}
	}
	end := at + int(fields[1])
	if end > len(datagram) || at+20 > end {
		return nil, errNotInitial
	}
	var mask [aes.BlockSize]byte
	k.mask.Encrypt(mask[:], datagram[at+4:at+20])
	head := append([]byte(nil), datagram[:at+4]...)
	head[0] ^= mask[0] & 0x0f
	numberLen := 1 + int(head[0]&3)
	head = head[:at+numberLen]
	nonce := append([]byte(nil), k.iv...)
	for i := range numberLen {
		head[at+i] ^= mask[1+i]
		nonce[len(nonce)-numberLen+i] ^= head[at+i]
	}
	return k.aead.Open(nil, nonce, datagram[at+numberLen:end], head)
}

// watchedSocket is a socket of the kernel whose departures are passed to the secrets of 0-RTT.
type watchedSocket struct {
	*net.UDPConn
	early *earlySecrets
}

// WriteMsgUDP lets datagrams depart.
func (s *watchedSocket) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	_, segment, err := parseControl(oob)
	if err != nil {
		return 0, 0, err
	}
	if segment == 0 {
		segment = len(b)
	}
	s.early.sent(b, segment)
	return s.UDPConn.WriteMsgUDP(b, oob, to)
}
