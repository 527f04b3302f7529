package bentpipe;

import java.io.IOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.SocketException;

/**
 * A socket that hands out nothing before the thread that connects waits for the handshake.
 *
 * <p>kwik (0.10.8, and 0.10.9 the same) and its TLS (agent15 3.1) send the ClientHello in the thread that connects,
 * and only then set what its answer needs. An answer that comes in between, in the receiver's thread, ends the
 * handshake without a word, and the connection stands still until its timeout: TLS does not expect the ServerHello
 * yet (TlsClientEngineImpl.startHandshake), or, with early data, the idle timer is enabled and not yet there
 * (IdleTimer.setIdleTimeout), or what the server said of the early data is set back to "requested".
 */
final class WaitingSocket extends DatagramSocket {
    private final Thread connecting;
    private boolean open;

    WaitingSocket(Thread connecting) throws SocketException {
        this.connecting = connecting;
    }

    @Override
    public void receive(DatagramPacket packet) throws IOException {
        super.receive(packet);
        while (!open && !isClosed()) {
            pause();
            // The one place where that thread waits for a limited time is the one for the end of the handshake.
            open = connecting.getState() == Thread.State.TIMED_WAITING;
        }
    }

    private static void pause() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
